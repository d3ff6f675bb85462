//! A new primary's log holds everything that was committed in lower terms (INV-5).

use super::{Invariant, Problems};
use crate::set::look::Look;
use pando_base::Term;
use std::collections::BTreeSet;

#[derive(Default)]
pub(super) struct Rule {
    checked: BTreeSet<(usize, Term)>,
}

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (who, now, _) in look.running().filter(|(_, m, _)| m.writable) {
            if !self.checked.insert((who, now.term)) {
                continue;
            }
            let log = &look.logs[who];
            let first = log.entries.first().map(|e| e.at.ts).unwrap_or_default();
            let earlier = look.committed.chain.range(first..).rev().map(|(_, p)| p);
            let owed = earlier.into_iter().find(|p| p.in_term < now.term).map(|p| p.entry);
            if let Some(e) = owed.filter(|e| !log.holds(e.at)) {
                problems.push(format!("member {who} is primary of term {} without {}", now.term, e.at));
            }
        }
    }
}
