//! A primary moves the commit point by entries of its own term only (INV-10).

use super::{Invariant, Problems};
use crate::set::look::Look;

pub(super) struct Rule;

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (who, now, before) in look.running() {
            let same =
                |b: &&crate::set::look::Member| b.boots == now.boots && b.writable && b.term == now.term;
            let Some(before) = before.filter(same).filter(|_| now.writable) else { continue };
            if now.committed != before.committed && now.committed.t != now.term {
                problems
                    .push(format!("member {who}, primary of term {}, committed {}", now.term, now.committed));
            }
        }
    }
}
