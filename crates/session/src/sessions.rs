//! The logical sessions table: which sessions exist and when each was last used.
//!
//! The set's own record of them is a collection; this table says what must be written there ([`Sessions::changes`]).
//!
//! A session comes into being by being named in any command; it ends after thirty idle minutes, or when its
//! client says so. What hangs on it (cursors, transactions) ends with it: [`Sessions::reap`] tells the caller
//! which ones are over.

use pando_base::panics::poisoned;
use pando_base::{Error, ErrorCode, Result, limits};
use pando_command::generic_args::SessionId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// `logicalSessionTimeoutMinutes`.
pub const TIMEOUT_MINUTES: u64 = pando_base::limits::SESSION_TIMEOUT_MINUTES;

/// The table. Times are monotonic.
#[derive(Default)]
pub struct Sessions(Mutex<Table>);

#[derive(Default)]
struct Table {
    used: BTreeMap<SessionId, Duration>,
    /// By their clients' word, and not yet taken out of the set's record.
    ended: BTreeSet<SessionId>,
    /// Uses up to here are in the set's record.
    told: Option<Duration>,
}

/// What the set's record does not know yet.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub used: Vec<SessionId>,
    pub ended: Vec<SessionId>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(poisoned)
    }
    /// Notes a use; a new session is refused (261) when `max` exist.
    pub fn touch(&self, lsid: &SessionId, now: Duration, max: usize) -> Result<()> {
        let mut table = self.lock();
        if let Some(last) = table.used.get_mut(lsid) {
            *last = now;
            return Ok(());
        }
        if table.used.len() >= max {
            return Err(Error::new(
                ErrorCode::TooManyLogicalSessions,
                format!(
                    "Unable to add session ID {} into the cache because the number of active sessions is too high",
                    crate::lsid_text(lsid)
                ),
            ));
        }
        table.used.insert(*lsid, now);
        table.ended.remove(lsid);
        Ok(())
    }
    /// `endSessions`: forgets it at the next [`Sessions::reap`] at the latest.
    pub fn end(&self, lsid: &SessionId) {
        let mut table = self.lock();
        table.used.remove(lsid);
        // Without it the session ends by its age, which is all that happens where its end is never told.
        if table.ended.len() < limits::SESSIONS_ENDED_MAX {
            table.ended.insert(*lsid);
        }
    }
    /// What has happened since the last [`Sessions::told`].
    pub fn changes(&self) -> Changes {
        let table = self.lock();
        let since = |last: &Duration| table.told.is_none_or(|told| *last >= told);
        let used = table.used.iter().filter(|(_, last)| since(last)).map(|(id, _)| *id).collect();
        Changes { used, ended: table.ended.iter().copied().collect() }
    }
    /// The set's record holds `changes`, which were taken at `at`.
    pub fn told(&self, changes: &Changes, at: Duration) {
        let mut table = self.lock();
        table.told = Some(at);
        for id in &changes.ended {
            table.ended.remove(id);
        }
    }
    /// Sessions that were not used since `at`: the set's record decides whether they live.
    pub fn unused_since(&self, at: Duration) -> Vec<SessionId> {
        self.lock().used.iter().filter(|(_, last)| **last < at).map(|(id, _)| *id).collect()
    }
    /// Forgets a session unless it was used since `at`.
    pub fn forget(&self, id: &SessionId, at: Duration) {
        let mut table = self.lock();
        if table.used.get(id).is_some_and(|last| *last < at) {
            table.used.remove(id);
        }
    }
    pub fn contains(&self, id: &SessionId) -> bool {
        self.lock().used.contains_key(id)
    }
    pub fn count(&self) -> usize {
        self.lock().used.len()
    }
    /// Removes and returns sessions unused for `idle_max`.
    pub fn reap(&self, now: Duration, idle_max: Duration) -> Vec<SessionId> {
        let mut table = self.lock();
        let old: Vec<SessionId> = table
            .used
            .iter()
            .filter(|(_, last)| now.saturating_sub(**last) >= idle_max)
            .map(|(id, _)| *id)
            .collect();
        for id in &old {
            table.used.remove(id);
        }
        old
    }
    /// All sessions with the time since their last use, for `$listLocalSessions`.
    pub fn all(&self, now: Duration) -> Vec<(SessionId, Duration)> {
        self.lock().used.iter().map(|(id, last)| (*id, now.saturating_sub(*last))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_live_while_they_are_used() {
        let s = Sessions::default();
        let a = SessionId::of([1; 16]);
        let b = SessionId::of([2; 16]);
        let t = Duration::from_secs;
        s.touch(&a, t(0), 2).unwrap();
        s.touch(&b, t(0), 2).unwrap();
        s.touch(&a, t(1000), 2).unwrap();
        assert_eq!(s.reap(t(1800), t(1800)), vec![SessionId::of([2; 16])]);
        assert_eq!(s.count(), 1);
        s.end(&a);
        assert_eq!(s.count(), 0);
    }

    #[test]
    fn what_was_told_is_not_told_again_and_an_end_until_it_was() {
        let s = Sessions::default();
        let id = |n| SessionId::of([n; 16]);
        let t = Duration::from_secs;
        s.touch(&id(1), t(1), 9).unwrap();
        s.touch(&id(2), t(2), 9).unwrap();
        s.end(&id(2));
        let first = s.changes();
        assert_eq!(
            (&first.used[..], &first.ended[..]),
            (&[SessionId::of([1; 16])][..], &[SessionId::of([2; 16])][..])
        );
        assert_eq!(s.changes().ended.len(), 1, "nobody has heard of it yet");
        s.touch(&id(3), t(11), 9).unwrap();
        s.told(&first, t(10));
        let second = s.changes();
        assert_eq!((&second.used[..], second.ended.len()), (&[SessionId::of([3; 16])][..], 0));
        assert_eq!(s.unused_since(t(10)), [SessionId::of([1; 16])]);
        s.touch(&id(1), t(12), 9).unwrap();
        s.forget(&SessionId::of([1; 16]), t(10));
        s.forget(&SessionId::of([3; 16]), t(12));
        assert!(s.contains(&SessionId::of([1; 16])) && !s.contains(&SessionId::of([3; 16])));
    }

    #[test]
    fn ends_that_nobody_is_told_of_are_bounded() {
        let s = Sessions::default();
        for n in 0..limits::SESSIONS_ENDED_MAX as u128 + 1_000 {
            s.end(&SessionId::of(n.to_be_bytes()));
        }
        let changes = s.changes();
        assert_eq!(changes.ended.len(), limits::SESSIONS_ENDED_MAX);
        s.told(&changes, Duration::ZERO);
        s.end(&SessionId::of([1; 16]));
        assert_eq!(s.changes().ended, [SessionId::of([1; 16])]);
    }

    #[test]
    fn the_table_is_bounded() {
        let s = Sessions::default();
        let id = |n| SessionId::of([n; 16]);
        s.touch(&id(1), Duration::ZERO, 1).unwrap();
        assert_eq!(s.touch(&id(2), Duration::ZERO, 1).unwrap_err().code, ErrorCode::TooManyLogicalSessions);
        s.touch(&id(1), Duration::ZERO, 1).unwrap();
    }
}
