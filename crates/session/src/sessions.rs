//! The logical sessions table: which sessions exist and when each was last used.
//!
//! A session comes into being by being named in any command; it ends after thirty idle minutes, or when its
//! client says so. What hangs on it (cursors, transactions) ends with it: [`Sessions::reap`] tells the caller
//! which ones are over.

use pando_base::{Error, ErrorCode, Result};
use pando_command::generic_args::Lsid;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// `logicalSessionTimeoutMinutes`.
pub const TIMEOUT_MINUTES: u64 = pando_base::limits::SESSION_TIMEOUT_MINUTES;

/// The table. Times are monotonic.
#[derive(Default)]
pub struct Sessions(Mutex<BTreeMap<[u8; 16], Duration>>);

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<[u8; 16], Duration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Notes a use; a new session is refused (261) when `max` exist.
    pub fn touch(&self, lsid: &Lsid, now: Duration, max: usize) -> Result<()> {
        let mut table = self.lock();
        if let Some(last) = table.get_mut(&lsid.id) {
            *last = now;
            return Ok(());
        }
        if table.len() >= max {
            return Err(Error::new(
                ErrorCode::TooManyLogicalSessions,
                format!(
                    "Unable to add session ID {} into the cache because the number of active sessions is too high",
                    crate::lsid_text(lsid)
                ),
            ));
        }
        table.insert(lsid.id, now);
        Ok(())
    }
    /// `endSessions`: forgets it at the next [`Sessions::reap`] at the latest.
    pub fn end(&self, lsid: &Lsid) {
        self.lock().remove(&lsid.id);
    }
    pub fn contains(&self, id: &[u8; 16]) -> bool {
        self.lock().contains_key(id)
    }
    pub fn count(&self) -> usize {
        self.lock().len()
    }
    /// Removes and returns sessions unused for `idle_max`.
    pub fn reap(&self, now: Duration, idle_max: Duration) -> Vec<[u8; 16]> {
        let mut table = self.lock();
        let old: Vec<[u8; 16]> = table
            .iter()
            .filter(|(_, last)| now.saturating_sub(**last) >= idle_max)
            .map(|(id, _)| *id)
            .collect();
        for id in &old {
            table.remove(id);
        }
        old
    }
    /// All sessions with the time since their last use, for `$listLocalSessions`.
    pub fn all(&self, now: Duration) -> Vec<([u8; 16], Duration)> {
        self.lock().iter().map(|(id, last)| (*id, now.saturating_sub(*last))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_live_while_they_are_used() {
        let s = Sessions::default();
        let a = Lsid { id: [1; 16], uid: None };
        let b = Lsid { id: [2; 16], uid: None };
        let t = Duration::from_secs;
        s.touch(&a, t(0), 2).unwrap();
        s.touch(&b, t(0), 2).unwrap();
        s.touch(&a, t(1000), 2).unwrap();
        assert_eq!(s.reap(t(1800), t(1800)), vec![[2; 16]]);
        assert_eq!(s.count(), 1);
        s.end(&a);
        assert_eq!(s.count(), 0);
    }

    #[test]
    fn the_table_is_bounded() {
        let s = Sessions::default();
        let id = |n| Lsid { id: [n; 16], uid: None };
        s.touch(&id(1), Duration::ZERO, 1).unwrap();
        assert_eq!(s.touch(&id(2), Duration::ZERO, 1).unwrap_err().code, ErrorCode::TooManyLogicalSessions);
        s.touch(&id(1), Duration::ZERO, 1).unwrap();
    }
}
