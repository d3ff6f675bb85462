//! In a log timestamps grow and terms never go back (INV-7).

use super::{Invariant, Problems};
use crate::set::look::Look;

pub(super) struct Rule;

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (who, (log, new)) in look.logs.iter().zip(look.new).enumerate() {
            let from = (log.entries.len() - new).saturating_sub(1);
            for pair in log.entries[from..].windows(2) {
                let (a, b) = (pair[0].at, pair[1].at);
                if b.ts <= a.ts || b.t < a.t {
                    problems.push(format!("the log of member {who} goes from {a} to {b}"));
                }
            }
        }
    }
}
