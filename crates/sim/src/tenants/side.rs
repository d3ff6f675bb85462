//! The two sets. Each is looked at as a set alone is ([`crate::set`]), and its rules must hold; whoever has the configuration of one is
//! away from the other. And where one comes from the other, no time of the one's log is ever taken for a commit point of the other.

use super::{FIRST_PORT, Home};
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
    pub(super) first: usize,
    /// Of machines from here on elections and votes are this set's.
    votes: std::ops::Range<usize>,
    /// Of a set that splits: whether it is the one that leaves.
    leaves: Option<bool>,
    pub(super) watch: Watch,
    rules: Vec<Box<dyn Invariant>>,
}

impl Side {
    /// Of a set that may leave another one: whose names it may have, and which machines may be its members.
    pub(super) fn splitting(names: &[&'static str], members: std::ops::Range<usize>, home: Home) -> Side {
        Side::new(names, members, home, Some(home == Home::Second))
    }
    /// Of a set that stays what it is.
    pub(super) fn apart(name: &'static str, home: Home) -> Side {
        Side::new(&[name], home.machines(), home, None)
    }
    fn new(
        names: &[&'static str],
        members: std::ops::Range<usize>,
        home: Home,
        leaves: Option<bool>,
    ) -> Side {
        let first = members.start;
        let watch = Watch::of_set(members.len(), FIRST_PORT + first as u16, names);
        // Nobody asks these members for write concerns one by one.
        let rules = invariants::all(&Default::default());
        Side { name: names[0], first, votes: home.machines(), leaves, watch, rules }
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
        let members = &nodes[self.first..self.first + self.watch.members().len()];
        let looked = self.watch.look(members, now, own, &mut |look| {
            rules.iter_mut().for_each(|rule| rule.look(look, &mut found));
        });
        found.extend(looked.err());
        if let Some(leaves) = self.leaves {
            self.own_commit_points(leaves, &mut found);
        }
        problems.extend(found.into_iter().map(|p| format!("{name} (machines from {}): {p}", self.first)));
    }
    /// Terms of the set that leaves begin far ahead of the other's.
    fn own_commit_points(&self, leaves: bool, found: &mut Vec<String>) {
        for (i, m) in self.watch.members().iter().enumerate() {
            let Some(m) = m.filter(|m| !m.committed.is_null()) else { continue };
            // What it commits first makes all of the log committed that both have.
            let own = m.committed.t >= SPLIT_TERMS_AHEAD || self.watch.committed.may_name(m.committed);
            let is_of_other = if leaves { !own } else { m.committed.t >= SPLIT_TERMS_AHEAD };
            if is_of_other {
                found.push(format!(
                    "member {} says {} is committed, of the other set",
                    self.first + i,
                    m.committed
                ));
            }
        }
    }
}
