//! What is committed is never rolled back (INV-2): no member begins to roll an entry back that somebody has called committed.
//!
//! What others commit while this member rolls back is theirs, if enough of them hold it: its own copy was not needed, and
//! comes back with the branch that won. So is what others committed in a later term, by an entry of that term which this member never
//! had: an entry of an older term is committed by those that hold the later one, and a member that has only the older one may still follow
//! a branch of a term in between, of a primary that is cut off with it.

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
            // Whoever was never seen to roll back began after the look before, as one that is first seen now.
            let known = self.begun.get(who).copied().unwrap_or(self.newest);
            // What committed an entry is of the term that committed it.
            let newest = lost.iter().map(|e| e.at.t).max().unwrap_or(-1);
            let counted = |e: &Entry| look.committed.chain.get(&e.at.ts).is_none_or(|p| p.in_term <= newest);
            let mut committed = lost
                .iter()
                .filter(|e| !matches!(why, Loss::Crash | Loss::CrashInRollback) && look.committed.holds(e));
            let needed =
                |e: &&Entry| (e.at.ts <= known.ts && counted(e)) || !is_on_a_majority_without(look, *who, e);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::committed::{Committed, Promise};
    use crate::set::look::Member;
    use pando_base::Timestamp;
    use pando_repl::topology::ConfigId;
    use std::time::Duration;

    fn entry(secs: u32) -> Entry {
        Entry { at: OpTime::new(Timestamp::new(secs, 1), 1), hash: 0, before: None }
    }
    fn member() -> Member {
        let (none, zero) = (OpTime::NULL, Timestamp::default());
        Member {
            boots: 1,
            rbid: 1,
            state: MemberState::Secondary,
            copying: false,
            leader: false,
            writable: false,
            term: 2,
            committed: none,
            config: ConfigId::UNINITIALIZED,
            voters: 0b011,
            write_majority: 2,
            kept_vote: None,
            applied: none,
            durable: none,
            written: none,
            oldest: zero,
            stable: zero,
            all_durable: zero,
            synced: zero,
        }
    }

    /// Members 0 and 1 hold `holders` of them the second entry, member 2 loses it between two looks; `before` and `now`
    /// are what was committed at each.
    fn told(holders: usize, before: u32, now: u32) -> bool {
        told_in(1, holders, before, now)
    }
    /// The same of what was committed in that term; all entries are of the first one.
    fn told_in(in_term: i64, holders: usize, before: u32, now: u32) -> bool {
        let members = [Some(member()), Some(member()), Some(member())];
        let logs = [holders > 0, holders > 1, false].map(|holds| {
            let mut log = Log::default();
            log.entries = (1..=1 + u32::from(holds)).map(entry).collect();
            log
        });
        let up_to = |secs: u32| {
            let promise = |s| (entry(s).at.ts, Promise { entry: entry(s), in_term });
            Committed { chain: (1..=secs).map(promise).collect(), ..Committed::default() }
        };
        let (mut rule, mut problems) = (Rule::default(), Problems::default());
        for (gone, committed) in
            [(vec![], up_to(before)), (vec![(2, Loss::Rollback, vec![entry(2)])], up_to(now))]
        {
            let look = Look {
                now: Duration::ZERO,
                members: &members,
                before: &members,
                logs: &logs,
                gone: &gone,
                new: &[0; 3],
                committed: &committed,
                newly_committed: &[],
                lines: &[],
            };
            rule.look(&look, &mut problems);
        }
        !problems.is_empty()
    }

    #[test]
    fn a_rollback_between_two_looks_is_judged_by_what_was_committed_before() {
        assert!(told(2, 2, 2), "it was committed when the rollback began");
        assert!(!told(2, 1, 2), "others hold it, and have committed it since");
        assert!(told(1, 1, 2), "the copy that is gone was needed");
        assert!(!told(1, 1, 1), "it is not committed");
    }

    #[test]
    fn what_a_later_term_has_committed_may_be_lost_by_whoever_has_nothing_of_that_term() {
        assert!(!told_in(2, 2, 2, 2), "those that hold it have committed it without this member");
        assert!(told_in(2, 1, 2, 2), "the copy that is gone was needed");
    }
}
