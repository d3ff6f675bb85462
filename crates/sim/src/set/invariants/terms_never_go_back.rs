//! A member's term never goes back, also across restarts once it has voted or led in it (INV-8).

use super::{Invariant, Problems};
use crate::set::lines::{ELECTED, number};
use crate::set::look::Look;
use pando_base::Term;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Rule {
    /// The newest term in which a member was elected: on its disk.
    kept: BTreeMap<usize, Term>,
}

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (who, line) in look.lines.iter().filter(|(_, l)| l.id == ELECTED) {
            let kept = self.kept.entry(*who).or_default();
            *kept = (*kept).max(number(&line.attr, "term").unwrap_or_default());
        }
        for (who, now, before) in look.running() {
            if let Some(before) = before.filter(|b| b.boots == now.boots && b.term > now.term) {
                problems.push(format!("member {who} went from term {} to {}", before.term, now.term));
            }
            if let Some(kept) = self.kept.get(&who).filter(|kept| now.term < **kept) {
                problems.push(format!("member {who} was elected in term {kept} and is in {}", now.term));
            }
        }
    }
    fn forget(&mut self, who: usize) {
        self.kept.remove(&who);
    }
}
