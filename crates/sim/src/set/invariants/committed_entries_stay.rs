//! What is committed is never rolled back (INV-2): no member begins to roll an entry back that somebody has called committed.
//!
//! What others commit while this member rolls back is theirs, if enough of them hold it: its own copy was not needed, and
//! comes back with the branch that won.

use super::{Invariant, Problems};
use crate::set::committed::Entry;
use crate::set::look::{Log, Look, Loss};
use pando_base::OpTime;
use pando_repl::MemberState;
use std::collections::BTreeMap;

/// Enough others hold the entry, by some configuration of this time; who is away holds what it was last seen to hold.
fn is_on_a_majority_without(look: &Look<'_>, who: usize, e: &Entry) -> bool {
    let holds = |log: &Log| log.holds(e.at) || log.entries.first().is_some_and(|first| first.at.ts > e.at.ts);
    let others = look.logs.iter().enumerate().filter(|(i, log)| *i != who && holds(log));
    let others = others.fold(0u64, |all, (i, _)| all | 1 << i);
    let seen = look.members.iter().chain(look.before).flatten().filter(|m| m.write_majority > 0);
    seen.into_iter().any(|m| (m.voters & others).count_ones() >= m.write_majority)
}

#[derive(Default)]
pub(super) struct Rule {
    /// The newest commit point at the look before.
    newest: OpTime,
    /// The same when a member was first seen to roll back.
    begun: BTreeMap<usize, OpTime>,
}

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (who, now, _) in look.running() {
            if now.state == MemberState::Rollback {
                self.begun.entry(who).or_insert(self.newest);
            }
        }
        for (who, why, lost) in look.gone {
            // Whoever was never seen to roll back is judged by what is known now.
            let known = self.begun.get(who).copied().unwrap_or(look.committed.newest());
            let mut committed = lost
                .iter()
                .filter(|e| !matches!(why, Loss::Crash | Loss::CrashInRollback) && look.committed.holds(e));
            let needed = |e: &&Entry| e.at.ts <= known.ts || !is_on_a_majority_without(look, *who, e);
            if let Some(e) = committed.find(needed) {
                problems.push(format!("member {who} rolled {} back, which is committed", e.at));
            }
        }
        for (who, now, _) in look.running() {
            if now.state != MemberState::Rollback {
                self.begun.remove(&who);
            }
        }
        self.newest = look.committed.newest();
    }
    fn forget(&mut self, who: usize) {
        self.begun.remove(&who);
    }
}
