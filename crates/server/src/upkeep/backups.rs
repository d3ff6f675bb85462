//! Backups under way: checkpoints held still while somebody copies their files, piece by piece, over the wire.
//!
//! A client that goes away leaves its checkpoint behind; it is let go when nobody has read from it for a while.

use pando_base::{Error, ErrorCode, Result, Uuid, limits};
use pando_storage::PinnedCheckpoint;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

struct Open {
    pin: Arc<PinnedCheckpoint>,
    used: Duration,
    /// Whoever begins anew has no use for what it has opened before.
    owner: Option<Uuid>,
}

#[derive(Default)]
pub(crate) struct Backups(Mutex<BTreeMap<i64, Open>>);

impl Backups {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<i64, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn is_any_open(&self) -> bool {
        !self.lock().is_empty()
    }
    /// Lets go what somebody had opened who begins anew: it may have ended without a word.
    pub(crate) fn close_of(&self, owner: Uuid) {
        self.lock().retain(|_, open| open.owner != Some(owner));
    }
    /// Error when there are as many as may be.
    pub(crate) fn check_room(&self) -> Result<()> {
        if self.lock().len() < limits::BACKUPS_OPEN_MAX {
            return Ok(());
        }
        let text = format!("{} backups are being taken from this server already", limits::BACKUPS_OPEN_MAX);
        Err(Error::new(ErrorCode::ConflictingOperationInProgress, text))
    }
    /// Numbers are drawn: one that was given by an earlier process must not name another backup.
    pub(crate) fn add(
        &self,
        pin: PinnedCheckpoint,
        draw: u64,
        now: Duration,
        owner: Option<Uuid>,
    ) -> (i64, Arc<PinnedCheckpoint>) {
        let (id, pin) = ((draw >> 1) as i64, Arc::new(pin));
        self.lock().insert(id, Open { pin: pin.clone(), used: now, owner });
        (id, pin)
    }
    pub(crate) fn find(&self, id: i64, now: Duration) -> Result<Arc<PinnedCheckpoint>> {
        let mut all = self.lock();
        let Some(open) = all.get_mut(&id) else { return Err(gone(id)) };
        open.used = now;
        Ok(open.pin.clone())
    }
    pub(crate) fn close(&self, id: i64) -> Result<()> {
        self.lock().remove(&id).map(drop).ok_or_else(|| gone(id))
    }
    /// Lets go what nobody has used for long.
    pub(crate) fn expire(&self, now: Duration) {
        let idle = Duration::from_millis(limits::BACKUP_IDLE_MS);
        self.lock().retain(|_, open| now.saturating_sub(open.used) < idle);
    }
}

fn gone(id: i64) -> Error {
    Error::new(
        ErrorCode::CursorNotFound,
        format!("backup id {id} not found: it was closed, or nobody has read from it for long"),
    )
}
