//! The small log of writes that have no oplog entry: the `local` database, votes, markers.
//!
//! Its records are physical (ident, key, value), numbered by a sequence of its own, and blind: replaying them in
//! order from an older state ends in the same rows. So tables may hold any newer state of these rows, and a
//! checkpoint only notes up to which number they hold everything.

use super::files::LogFiles;
use super::payload::Payloads;
use crate::bytes::Bytes;
use crate::writes::Writes;
use lsm_tree::Slice;
use pando_base::panics::poisoned;
use pando_base::sync::Mutex;
use pando_base::{Error, Result, limits};
use pando_encryption::Keys;
use pando_env::Disk;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const DELETED: u32 = u32::MAX;

pub(crate) struct LocalLog {
    files: LogFiles,
    pending: Mutex<Vec<(u64, Vec<u8>)>>,
    /// Held while units are written; the error after which nothing more is.
    flushing: Mutex<Option<Error>>,
    durable: AtomicU64,
    /// A file is worth a new one after it above this.
    seal_bytes: u64,
}

/// (ident, key, value or deletion).
pub(crate) type LocalRow = (u32, Slice, Option<Bytes>);

fn encode(writes: &Writes) -> Vec<u8> {
    let mut out = Vec::with_capacity(writes.bytes() + writes.len() * 12);
    for op in writes.ops() {
        out.extend_from_slice(&op.ident.to_le_bytes());
        out.extend_from_slice(&(op.key.len() as u32).to_le_bytes());
        out.extend_from_slice(&op.value.as_ref().map_or(DELETED, |v| v.len() as u32).to_le_bytes());
        out.extend_from_slice(&op.key);
        out.extend_from_slice(op.value.as_deref().unwrap_or_default());
    }
    out
}

fn decode(mut b: &[u8]) -> Option<Vec<LocalRow>> {
    let mut rows = Vec::new();
    while !b.is_empty() {
        let word = |at: usize| b.get(at..at + 4)?.first_chunk().map(|c| u32::from_le_bytes(*c));
        let (ident, key_len, value_len) = (word(0)?, word(4)? as usize, word(8)?);
        b = &b[12..];
        let (key, rest) = b.split_at_checked(key_len)?;
        let (value, rest) =
            rest.split_at_checked(if value_len == DELETED { 0 } else { value_len as usize })?;
        rows.push((ident, Slice::from(key), (value_len != DELETED).then(|| Bytes::from(value))));
        b = rest;
    }
    Some(rows)
}

impl LocalLog {
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        segment: Option<u64>,
        keys: Option<Arc<Keys>>,
    ) -> Result<LocalLog> {
        let segment_bytes = segment.unwrap_or(limits::LOCAL_LOG_SEGMENT_BYTES);
        let files = LogFiles::open(disk, Payloads::new("local", keys), segment_bytes)?;
        let seal_bytes = segment.unwrap_or(limits::LOCAL_LOG_SEAL_BYTES);
        let durable = AtomicU64::new(files.last());
        Ok(LocalLog { files, pending: Mutex::default(), flushing: Mutex::default(), durable, seal_bytes })
    }
    pub(crate) fn files(&self) -> &LogFiles {
        &self.files
    }
    pub(crate) fn last(&self) -> u64 {
        self.files.last()
    }
    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }
    /// Every row written after number `after`, in order.
    pub(crate) fn replay(&self, after: u64, mut each: impl FnMut(u64, Vec<LocalRow>)) -> Result<()> {
        let mut at = after;
        loop {
            let records = self.files.read_forward(at, false, 1024)?;
            let Some((last, _)) = records.last() else { return Ok(()) };
            at = *last;
            for (seq, payload) in &records {
                let rows = decode(payload)
                    .ok_or_else(|| Error::internal("a record of the local log is malformed"))?;
                each(*seq, rows);
            }
        }
    }
    /// Adds a unit; the caller orders the numbers.
    pub(crate) fn append(&self, seq: u64, writes: &Writes) {
        self.pending.lock().unwrap_or_else(poisoned).push((seq, encode(writes)));
    }
    /// Writes and syncs what was added so far. After a failure every later call fails with the same error: the units
    /// that it had taken may be on the disk or not, and nobody may be told that they are.
    pub(crate) fn flush(&self) -> Result<()> {
        let mut failed = self.flushing.lock().unwrap_or_else(poisoned);
        if let Some(e) = &*failed {
            return Err(e.clone());
        }
        let units = std::mem::take(&mut *self.pending.lock().unwrap_or_else(poisoned));
        let Some((last, _)) = units.last() else { return Ok(()) };
        if let Err(e) = self.files.append(units.iter().map(|(seq, bytes)| (*seq, &bytes[..]))) {
            return Err(failed.insert(e.context("the local log cannot be written")).clone());
        }
        self.durable.store(*last, Ordering::Release);
        Ok(())
    }
    /// The tables hold everything up to `upto`: start a new file when this one is worth it, drop old ones.
    pub(crate) fn forget(&self, upto: u64) -> Result<()> {
        let mut failed = self.flushing.lock().unwrap_or_else(poisoned);
        if let Some(e) = &*failed {
            return Err(e.clone());
        }
        let seal = self.files.bytes() > self.seal_bytes;
        let sealed = if seal { self.files.seal() } else { Ok(()) };
        let done = sealed.and_then(|()| self.files.truncate_front(|_, last| last <= upto));
        done.map(drop).map_err(|e| failed.insert(e).clone())
    }
}
