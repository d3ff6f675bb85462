//! Nobody votes for two candidates in one term, also across restarts (INV-8).

use super::{Invariant, Problems};
use crate::set::look::Look;
use crate::set::{VOTED, number};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Rule {
    /// Voter and term: candidate.
    votes: BTreeMap<(usize, i64), i64>,
}

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (voter, line) in look.lines.iter().filter(|(_, l)| l.id == VOTED) {
            let says = |what: &str| line.attr.contains(what);
            if !says("\"voteGranted\":true") || says("\"dryRun\":true") {
                continue;
            }
            let (Some(term), Some(candidate)) = (number(&line.attr, "term"), number(&line.attr, "candidate"))
            else {
                problems.push(format!("a vote without term or candidate: {}", line.attr));
                continue;
            };
            let first = *self.votes.entry((*voter, term)).or_insert(candidate);
            if first != candidate {
                problems.push(format!("member {voter} voted for {first} and {candidate} in term {term}"));
            }
        }
    }
    fn forget(&mut self, who: usize) {
        self.votes.retain(|(voter, _), _| *voter != who);
    }
}
