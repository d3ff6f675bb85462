//! What can be wrong between machines, named by their places in a list: what it comes to for the [`Links`] between them.

use crate::links::{Links, Machine, Refusal};

/// Between members (and routers, where there are any); clients go on unless it says otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// A member from all others.
    Member(usize),
    /// A member from all others and from the clients.
    Machine(usize),
    /// A member hears the others; they do not hear it.
    Mute(usize),
    /// The others hear a member; it does not hear them.
    Deaf(usize),
    /// Each member reaches only its neighbours in a ring; with three, one pair is apart.
    Ring(usize),
    Pair(usize, usize),
    /// The second does not hear the first.
    OneWay(usize, usize),
    Slow(usize, u64),
    Loss(u64),
    /// New connections to a member are turned away while it goes on with those that it has.
    Refusing(usize, Refusal),
}

impl Cut {
    pub(crate) fn apply(self, members: &[Machine], clients: &[Machine], links: &mut Links) {
        let others = |i: usize| members.iter().copied().filter(move |m| *m != members[i]);
        let mut both = |a: Machine, b: Machine| {
            links.cut(a, b);
            links.cut(b, a);
        };
        match self {
            Cut::Member(i) => others(i).for_each(|m| both(members[i], m)),
            Cut::Machine(i) => others(i).chain(clients.iter().copied()).for_each(|m| both(members[i], m)),
            Cut::Mute(i) => others(i).for_each(|m| links.cut(members[i], m)),
            Cut::Deaf(i) => others(i).for_each(|m| links.cut(m, members[i])),
            Cut::Pair(a, b) => both(members[a], members[b]),
            Cut::OneWay(a, b) => links.cut(members[a], members[b]),
            Cut::Ring(start) => {
                let n = members.len();
                let at = |i: usize| members[(start + i) % n];
                for a in 0..n {
                    for b in a + 1..n {
                        let neighbours = b == a + 1 || (n > 3 && a == 0 && b == n - 1);
                        if !neighbours {
                            both(at(a), at(b));
                        }
                    }
                }
            }
            Cut::Slow(i, ms) => links.set_slow(members[i], ms),
            Cut::Loss(ppm) => links.set_loss(ppm),
            Cut::Refusing(i, how) => links.set_refusing(members[i], how),
        }
    }
}
