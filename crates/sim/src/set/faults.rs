//! What breaks, for how long, and how it heals. Several faults may be under way at once.

use super::Run;
use crate::links::{Links, Machine};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often each kind happened.
pub type Counts = BTreeMap<&'static str, u32>;

/// Between members; clients go on unless it says otherwise.
#[derive(Clone, Copy, Debug)]
enum Cut {
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
    Slow(usize, u64),
    Loss(u64),
}

#[derive(Clone, Copy, Debug)]
enum Heal {
    Boot(usize),
    Cut(u64),
}

/// What is broken now.
#[derive(Default)]
pub(super) struct Broken {
    cuts: BTreeMap<u64, Cut>,
    due: Vec<(Duration, Heal)>,
    next_id: u64,
    pub(super) counts: Counts,
}

impl Broken {
    /// A member that is down comes back now.
    pub(super) fn boots_now(&mut self, who: usize) {
        self.due.retain(|(_, heal)| !matches!(heal, Heal::Boot(i) if *i == who));
    }
    pub(super) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }
}

fn apply(cut: Cut, members: &[Machine], clients: &[Machine], links: &mut Links) {
    let others = |i: usize| members.iter().copied().filter(move |m| *m != members[i]);
    let mut both = |a: Machine, b: Machine| {
        links.cut(a, b);
        links.cut(b, a);
    };
    match cut {
        Cut::Member(i) => others(i).for_each(|m| both(members[i], m)),
        Cut::Machine(i) => others(i).chain(clients.iter().copied()).for_each(|m| both(members[i], m)),
        Cut::Mute(i) => others(i).for_each(|m| links.cut(members[i], m)),
        Cut::Deaf(i) => others(i).for_each(|m| links.cut(m, members[i])),
        Cut::Pair(a, b) => both(members[a], members[b]),
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
    }
}

impl Run {
    fn machines(&self) -> Vec<Machine> {
        self.nodes.iter().map(crate::Node::machine).collect()
    }
    fn relink(&mut self) {
        let (members, clients) = (self.machines(), self.clients.clone());
        let mut links = self.world.net.links();
        links.heal();
        for cut in self.broken.cuts.values() {
            apply(*cut, &members, &clients, &mut links);
        }
    }
    fn below(&self, n: u64) -> u64 {
        self.world.sim.below(n)
    }
    fn heal_after(&mut self, ms: u64, heal: Heal) {
        let at = self.world.sim.now() + Duration::from_millis(ms);
        self.broken.due.push((at, heal));
    }
    fn cut(&mut self, what: &'static str, cut: Cut) {
        let id = self.broken.next_id;
        self.broken.next_id += 1;
        self.broken.cuts.insert(id, cut);
        self.broken.count(what);
        self.relink();
        let ms = match self.below(3) {
            0 => self.below(2000),
            _ => self.below(self.options.longest_ms),
        };
        self.heal_after(ms, Heal::Cut(id));
    }
    /// The primary more often than others.
    fn somebody(&self) -> usize {
        let leader = self.watch.newest_leader();
        let anyone = self.below(self.nodes.len() as u64) as usize;
        if self.below(2) == 0 { leader.unwrap_or(anyone) } else { anyone }
    }

    /// Something breaks.
    pub(super) fn fault(&mut self) {
        let who = self.somebody();
        match self.below(21) {
            0..=2 => self.stop(who, false),
            3..=5 => self.stop(who, true),
            6 if self.below(4) == 0 => {
                self.broken.count("power loss of all");
                let absent = self.below(5000);
                for i in 0..self.nodes.len() {
                    self.take_down(i, true, absent);
                }
            }
            6 | 7 => self.cut("cut off from members", Cut::Member(who)),
            8 | 9 => self.cut("cut off", Cut::Machine(who)),
            10 => self.cut("mute", Cut::Mute(who)),
            11 => self.cut("deaf", Cut::Deaf(who)),
            12 => self.cut("ring", Cut::Ring(who)),
            13 => {
                let other = (who + 1 + self.below(self.nodes.len() as u64 - 1) as usize) % self.nodes.len();
                self.cut("pair apart", Cut::Pair(who, other));
            }
            14 => {
                let ms = 20 + self.below(2000);
                self.cut("slow", Cut::Slow(who, ms));
            }
            15 => {
                let ppm = 10_000 + self.below(200_000);
                self.cut("loss", Cut::Loss(ppm));
            }
            16 => self.reset(who),
            17 => {
                let ms = self.below(120_000) as i64 - 60_000;
                self.broken.count("clock jump");
                self.world.set_skew(self.nodes[who].machine(), ms);
            }
            18 => self.replace(who),
            19 => self.order("step-down", who, super::orders::Order::StepDown),
            _ => self.order("reconfiguration", who, super::orders::Order::Prefer(who)),
        }
    }

    fn order(&mut self, what: &'static str, who: usize, order: super::orders::Order) {
        self.broken.count(what);
        let env = self.env(self.operator);
        let addrs = self.addrs();
        self.world.sim.spawn(self.operator, "operator", super::orders::give(env, addrs, who, order));
    }

    /// Every connection of a member breaks.
    fn reset(&mut self, who: usize) {
        self.broken.count("reset");
        let machine = self.nodes[who].machine();
        self.world.net.reset_connections(|a, _| a == machine);
    }

    fn stop(&mut self, who: usize, power: bool) {
        self.broken.count(if power { "power loss" } else { "kill" });
        let absent = match self.below(3) {
            0 => 0,
            1 => self.below(3000),
            _ => self.below(self.options.longest_ms),
        };
        self.take_down(who, power, absent);
    }

    fn take_down(&mut self, who: usize, power: bool, absent_ms: u64) {
        if self.is_down(who) {
            return;
        }
        if power {
            self.nodes[who].lose_power();
        } else {
            self.nodes[who].kill();
        }
        self.heal_after(absent_ms, Heal::Boot(who));
    }
    fn is_down(&self, who: usize) -> bool {
        self.broken.due.iter().any(|(_, h)| matches!(h, Heal::Boot(i) if *i == who))
    }

    /// Heals what is due.
    pub(super) fn heal_due(&mut self) {
        let now = self.world.sim.now();
        let (due, later) = std::mem::take(&mut self.broken.due).into_iter().partition(|(at, _)| *at <= now);
        self.broken.due = later;
        self.heal(due);
    }
    /// Heals everything.
    pub(super) fn heal_all(&mut self) {
        let due = std::mem::take(&mut self.broken.due);
        self.heal(due);
    }
    fn heal(&mut self, due: Vec<(Duration, Heal)>) {
        for (_, heal) in due {
            match heal {
                Heal::Boot(who) => self.nodes[who].boot(),
                Heal::Cut(id) => {
                    self.broken.cuts.remove(&id);
                    self.relink();
                    // Some connections have given up meanwhile, others go on where they stood.
                    if self.below(2) == 0 {
                        let members = self.machines();
                        let who = members[self.below(members.len() as u64) as usize];
                        self.world.net.reset_connections(|a, b| a == who && members.contains(&b));
                    }
                }
            }
        }
    }
}
