//! What is committed is never rolled back (INV-2).

use super::{Invariant, Problems};
use crate::set::look::{Look, Loss};

pub(super) struct Rule;

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (who, why, lost) in look.gone {
            let committed = lost.iter().find(|e| look.committed.holds(e));
            if let Some(e) = committed.filter(|_| *why != Loss::Crash) {
                problems.push(format!("member {who} rolled {} back, which is committed", e.at));
            }
        }
    }
}
