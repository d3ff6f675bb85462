//! The two sets that one may become. Each is looked at as a set alone is ([`crate::set`]), and its rules must hold; whoever has the
//! configuration of one is away from the other. And no time of the one set's log is ever taken for a commit point of the other.

use super::shape::{DONOR, FIRST_PORT, MEMBERS, OTHER_RECIPIENT, RECIPIENT, STAY};
use crate::links::Machine;
use crate::node::Node;
use crate::set::invariants::{self, Invariant};
use crate::set::look::Watch;
use crate::world::Line;
use pando_base::limits::SPLIT_TERMS_AHEAD;
use std::time::Duration;

/// One of them.
pub(super) struct Side {
    name: &'static str,
    /// The first of the machines that can be members.
    first: usize,
    /// Of machines from here on elections and votes are this set's.
    votes: std::ops::Range<usize>,
    pub(super) watch: Watch,
    rules: Vec<Box<dyn Invariant>>,
}

impl Side {
    pub(super) fn donor() -> Side {
        Side::new(&[DONOR], 0, 0..STAY)
    }
    pub(super) fn recipient() -> Side {
        Side::new(&[RECIPIENT, OTHER_RECIPIENT], STAY, STAY..MEMBERS)
    }
    fn new(names: &[&'static str], first: usize, votes: std::ops::Range<usize>) -> Side {
        let watch = Watch::of_set(MEMBERS - first, FIRST_PORT + first as u16, names);
        // Nobody asks these members for write concerns one by one.
        Side { name: names[0], first, votes, watch, rules: invariants::all(&Default::default()) }
    }
    /// Its primary of the newest term, by the number of its machine.
    pub(super) fn leader(&self) -> Option<usize> {
        Some(self.first + self.watch.newest_leader()?)
    }
    /// Looks at all machines: what breaks a rule.
    pub(super) fn look(&mut self, nodes: &[Node], now: Duration, lines: &[Line], problems: &mut Vec<String>) {
        let machines: Vec<Machine> = nodes[self.votes.clone()].iter().map(Node::machine).collect();
        let own = lines.iter().filter(|line| machines.contains(&line.machine)).cloned().collect();
        let (rules, name) = (&mut self.rules, self.name);
        let mut found = Vec::new();
        let looked = self.watch.look(&nodes[self.first..], now, own, &mut |look| {
            rules.iter_mut().for_each(|rule| rule.look(look, &mut found));
        });
        found.extend(looked.err());
        for (i, m) in self.watch.members().iter().enumerate() {
            let Some(m) = m.filter(|m| !m.committed.is_null()) else { continue };
            // Terms of the set that leaves begin far ahead of the other's. What it commits first makes all of the log committed that both have.
            let own = m.committed.t >= SPLIT_TERMS_AHEAD || self.watch.committed.may_name(m.committed);
            let is_of_other = if name == RECIPIENT { !own } else { m.committed.t >= SPLIT_TERMS_AHEAD };
            if is_of_other {
                found.push(format!(
                    "member {} says {} is committed, of the other set",
                    self.first + i,
                    m.committed
                ));
            }
        }
        problems.extend(found.into_iter().map(|p| format!("{name} (machines from {}): {p}", self.first)));
    }
}
