//! Two logs that hold one entry are equal up to it (INV-4): an optime names one entry, and one entry before it.

use super::{Invariant, Problems};
use crate::set::look::Look;
use pando_base::{OpTime, Term, Timestamp};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Rule {
    /// Hash of an entry, and the entry before it once that is known.
    known: BTreeMap<(Timestamp, Term), (u64, Option<OpTime>)>,
}

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (who, (log, new)) in look.logs.iter().zip(look.new).enumerate() {
            for e in &log.entries[log.entries.len() - new..] {
                let known = self.known.entry((e.at.ts, e.at.t)).or_insert((e.hash, e.before));
                if known.0 != e.hash {
                    problems.push(format!("member {who} has another entry {} than others", e.at));
                }
                match (known.1, e.before) {
                    (None, _) => known.1 = e.before,
                    (Some(a), Some(b)) if a != b => {
                        problems.push(format!("before {} member {who} has {b}, others {a}", e.at));
                    }
                    _ => {}
                }
            }
        }
    }
}
