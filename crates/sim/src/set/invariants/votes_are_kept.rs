//! The last vote that a member has told is on its disk: after any end of its process it knows that vote, or a newer one
//! (INV-8). And it tells no two votes in one term.

use super::{Invariant, Problems};
use crate::set::look::Look;
use pando_base::Term;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Rule {
    /// The newest vote that could be told, by member.
    told: BTreeMap<usize, (Term, i64)>,
}

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (who, now, _) in look.running() {
            let Some((term, candidate)) = now.kept_vote else { continue };
            let (told, named) = *self.told.entry(who).or_insert((term, candidate));
            if term < told {
                problems.push(format!("member {who} has voted in term {told} and remembers {term}"));
            }
            if term == told && candidate != named {
                problems.push(format!("member {who} voted for {named} and {candidate} in term {term}"));
            }
            if term > told {
                self.told.insert(who, (term, candidate));
            }
        }
    }
    fn forget(&mut self, who: usize) {
        self.told.remove(&who);
    }
}
