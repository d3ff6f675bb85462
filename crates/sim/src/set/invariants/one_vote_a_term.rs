//! Nobody decides for two candidates in one term (INV-8). A decision that a crash came before has not been told; those that
//! have are followed across restarts by [`super::votes_are_kept`].

use super::{Invariant, Problems};
use crate::set::lines::{VOTED, number};
use crate::set::look::Look;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Rule {
    /// Voter, start of its process and term: candidate.
    votes: BTreeMap<(usize, u32, i64), i64>,
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
            let Some(boots) = look.members[*voter].as_ref().map(|m| m.boots) else { continue };
            let first = *self.votes.entry((*voter, boots, term)).or_insert(candidate);
            if first != candidate {
                problems.push(format!("member {voter} voted for {first} and {candidate} in term {term}"));
            }
        }
    }
    fn forget(&mut self, who: usize) {
        self.votes.retain(|(voter, ..), _| *voter != who);
    }
}
