//! No term has two leaders, not even one after another (INV-1).

use super::{Invariant, Problems};
use crate::set::lines::{ELECTED, number};
use crate::set::look::Look;
use pando_base::Term;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Rule {
    leaders: BTreeMap<Term, usize>,
}

impl Rule {
    fn note(&mut self, term: Term, who: usize, problems: &mut Problems) {
        let first = *self.leaders.entry(term).or_insert(who);
        if first != who {
            problems.push(format!("members {first} and {who} both led term {term}"));
        }
    }
}

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (who, line) in look.lines.iter().filter(|(_, l)| l.id == ELECTED) {
            match number(&line.attr, "term") {
                Some(term) => self.note(term, *who, problems),
                None => problems.push(format!("an election without a term: {}", line.attr)),
            }
        }
        for (who, now, _) in look.running().filter(|(_, m, _)| m.leader) {
            self.note(now.term, who, problems);
        }
    }
}
