//! How far this shard is with the range that it receives, and what became of the last one (SH-MIG-9).
//!
//! In memory: a recipient that becomes primary gives up what an earlier one has begun.

use pando_base::panics::poisoned;
use pando_base::{Error, ErrorCode, Result, Uuid};
use pando_bson::DocBuf;
use std::sync::{Mutex, MutexGuard};

#[derive(Default)]
struct Reception {
    receiver: Option<i64>,
    /// Numbers of the last turns that are here.
    copied: u64,
    changed: u64,
    histories: u64,
    steady: bool,
    docs: i64,
    bytes: i64,
    failure: Option<Error>,
}

/// One range at a time is received.
#[derive(Default)]
pub(crate) struct Receptions(Mutex<Option<(Uuid, Reception)>>);

impl Receptions {
    fn lock(&self) -> MutexGuard<'_, Option<(Uuid, Reception)>> {
        self.0.lock().unwrap_or_else(poisoned)
    }
    fn with<T: Default>(&self, id: Uuid, look: impl FnOnce(&mut Reception) -> T) -> T {
        match &mut *self.lock() {
            Some((of, reception)) if *of == id => look(reception),
            _ => T::default(),
        }
    }
    /// Another one is forgotten; whether it is a new one.
    pub(crate) fn begin(&self, id: Uuid) -> bool {
        let mut lock = self.lock();
        let is_new = lock.as_ref().is_none_or(|(of, _)| *of != id);
        if is_new {
            *lock = Some((id, Reception::default()));
        }
        is_new
    }
    /// Another receiver begins from the start; 117 while another range is received.
    fn of_receiver(&self, id: Uuid, receiver: i64, look: impl FnOnce(&mut Reception) -> u64) -> Result<u64> {
        let found = self.with(id, |r| {
            if r.receiver != Some(receiver) {
                *r = Reception { receiver: Some(receiver), ..Reception::default() };
            }
            Some(look(r))
        });
        let text = "another range is received by this shard";
        found.ok_or_else(|| Error::new(ErrorCode::ConflictingOperationInProgress, text))
    }
    pub(crate) fn copied(&self, id: Uuid, receiver: i64) -> Result<u64> {
        self.of_receiver(id, receiver, |r| r.copied)
    }
    pub(crate) fn changed(&self, id: Uuid, receiver: i64) -> Result<u64> {
        self.of_receiver(id, receiver, |r| r.changed)
    }
    pub(crate) fn histories(&self, id: Uuid, receiver: i64) -> Result<u64> {
        self.of_receiver(id, receiver, |r| r.histories)
    }
    pub(crate) fn has_histories(&self, id: Uuid, number: u64) {
        self.with(id, |r| r.histories = number);
    }
    pub(crate) fn has_copied(&self, id: Uuid, number: u64, docs: &[DocBuf]) {
        self.with(id, |r| {
            r.copied = number;
            r.docs += docs.len() as i64;
            r.bytes += docs.iter().map(|d| d.byte_len() as i64).sum::<i64>();
        });
    }
    pub(crate) fn has_changed(&self, id: Uuid, number: u64) {
        self.with(id, |r| r.changed = number);
    }
    /// It has everything but what is written just now.
    pub(crate) fn steady(&self, id: Uuid, is_steady: bool) {
        self.with(id, |r| r.steady = is_steady);
    }
    pub(crate) fn is_steady(&self, id: Uuid) -> bool {
        self.with(id, |r| r.steady)
    }
    /// Documents and bytes.
    pub(crate) fn received(&self, id: Uuid) -> (i64, i64) {
        self.with(id, |r| (r.docs, r.bytes))
    }
    pub(crate) fn failed(&self, id: Uuid, why: Error) {
        self.with(id, |r| r.failure = Some(why));
    }
    pub(crate) fn failure(&self, id: Uuid) -> Option<Error> {
        self.with(id, |r| r.failure.clone())
    }
}
