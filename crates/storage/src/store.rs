//! What every handle shares: memory tables, tables, log, conflict table, clock points.

use crate::bytes::Bytes;
use crate::conflict::Conflicts;
use crate::history;
use crate::kv::{Kv, Tree};
use crate::late::Lates;
use crate::log::OpLog;
use crate::log::local::LocalLog;
use crate::memtable::{Found, MemTable};
use crate::meta::Meta;
use crate::options::Options;
use crate::prepared::Prepares;
use crate::row;
use crate::snapshot::{OnPrepared, Snapshot};
use crate::stats::Counters;
use lsm_tree::Slice;
use pando_base::limits::STORAGE_MEMTABLE_HARD_FACTOR;
use pando_base::panics::poisoned;
use pando_base::sync::Mutex;
use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_env::Env;
use pando_env::sync::Notify;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

pub(crate) struct Store {
    pub(crate) env: Env,
    pub(crate) opts: Options,
    pub(crate) mem: MemTable,
    pub(crate) kv: Box<dyn Kv>,
    pub(crate) log: OpLog,
    pub(crate) conflicts: Conflicts,
    pub(crate) prepares: Prepares,
    pub(crate) lates: Arc<Lates>,
    /// Idents of tables that are being taken in: nobody names them yet.
    pub(crate) loading: Mutex<BTreeSet<u32>>,
    /// Not known yet which transactions are prepared: nothing of the log's front goes.
    pub(crate) hold_front: AtomicBool,
    pub(crate) next_txn: AtomicU64,
    pub(crate) next_ident: AtomicU32,
    pub(crate) stable: AtomicU64,
    /// Where checkpoints under way stand at the earliest ([`crate::Storage::begin_checkpoint`]).
    pub(crate) under_way: Mutex<Vec<u64>>,
    pub(crate) oldest: AtomicU64,
    /// Tables left by an interrupted checkpoint cannot be read below this.
    pub(crate) readable_from: u64,
    /// Snapshots below this have lost versions they may need.
    pub(crate) lost_below: AtomicU64,
    /// Every timestamped row in the tables is at or below this.
    pub(crate) flushed: AtomicU64,
    /// Timestamp of the checkpoint that recovery would start from.
    pub(crate) recovery: AtomicU64,
    /// Replay is under way: a write below a stored row's timestamp is void.
    pub(crate) recovering: AtomicBool,
    /// What the checkpoint file says, and what the next one will.
    pub(crate) meta: Mutex<Meta>,
    pub(crate) checkpointing: Mutex<()>,
    /// No version replaced above this is pruned: a checkpoint is looking at them.
    pub(crate) flush_floor: AtomicU64,
    /// Bytes of the history after its last sweep.
    pub(crate) history_after: AtomicU64,
    pub(crate) local_log: LocalLog,
    pub(crate) local_seq: AtomicU64,
    /// Local rows in the tables are at or below this.
    pub(crate) local_flushed: AtomicU64,
    /// Held while a local commit takes its number and its rows go in place.
    pub(crate) local: Mutex<()>,
    pub(crate) prepare_changed: Notify,
    pub(crate) room_changed: Notify,
    /// Bumped when the rows in memory outgrow their budget.
    pub(crate) checkpoint_wanted: Notify,
    pub(crate) asked_for_checkpoint: AtomicBool,
    /// The last checkpoint left memory over its budget.
    pub(crate) in_vain: AtomicBool,
    /// The last checkpoint freed little and left too much in memory: stable stands still. The next goes past it.
    pub(crate) stuck: AtomicBool,
    /// Even that did not help.
    pub(crate) hopeless: AtomicBool,
    pub(crate) counters: Counters,
}

impl Store {
    pub(crate) fn counted(&self) -> Timestamp {
        // First this: a checkpoint that begins later stands there or behind it.
        let next = self.next_checkpoint();
        let under_way = self.under_way.lock().unwrap_or_else(poisoned);
        Timestamp(under_way.iter().copied().fold(next, u64::min))
    }
    /// Where a checkpoint that begins now stands at the earliest.
    pub(crate) fn next_checkpoint(&self) -> u64 {
        self.stable.load(Ordering::Acquire).min(self.log.durable().0)
    }
    pub(crate) fn meta(&self) -> MutexGuard<'_, Meta> {
        self.meta.lock().unwrap_or_else(poisoned)
    }
    pub(crate) fn checkpointing(&self) -> MutexGuard<'_, ()> {
        self.checkpointing.lock().unwrap_or_else(poisoned)
    }
    /// Versions replaced at or below this are needed by nobody, and no checkpoint is looking at them.
    pub(crate) fn gc_below(&self) -> u64 {
        self.gc_below_unfloored().min(self.flush_floor.load(Ordering::Acquire))
    }
    /// Versions replaced at or below this are needed by no reader.
    pub(crate) fn gc_below_unfloored(&self) -> u64 {
        let oldest = self.oldest.load(Ordering::Acquire);
        let pinned = self.log.0.state().lowest_pin().unwrap_or(u64::MAX);
        oldest.min(pinned).max(self.lost_below.load(Ordering::Acquire))
    }
    /// Counts rows that a commit put into memory; asks for a checkpoint when the budget is passed.
    pub(crate) fn grew(&self, by: isize) {
        self.mem.grew(by);
        if self.mem.bytes() > self.opts.memtable_bytes
            && !self.asked_for_checkpoint.swap(true, Ordering::AcqRel)
        {
            self.checkpoint_wanted.bump();
        }
    }
    /// Bytes of rows in memory above which writers are slowed.
    pub(crate) fn memory_soft(&self) -> usize {
        self.opts.memtable_bytes.saturating_mul(2)
    }
    /// Bytes of rows in memory above which commits are refused.
    pub(crate) fn memory_max(&self) -> usize {
        self.opts.memtable_bytes.saturating_mul(STORAGE_MEMTABLE_HARD_FACTOR)
    }
    /// Somebody else writes the key, or wrote it since the snapshot.
    pub(crate) fn write_conflict(&self) -> Error {
        self.counters.write_conflicts.inc();
        Error::write_conflict()
    }
    pub(crate) fn check_age(&self, snap: &Snapshot) -> Result<()> {
        if snap.pin < self.lost_below.load(Ordering::Acquire) { Err(too_old(snap.read)) } else { Ok(()) }
    }
    pub(crate) fn check_prepared(&self, snap: &Snapshot, ident: u32, key: &[u8]) -> Result<()> {
        if snap.on_prepared == OnPrepared::Conflict && self.prepares.blocks(ident, key, snap) {
            return Err(prepare_conflict());
        }
        Ok(())
    }
    /// The row of `key` as `snap` sees it.
    // tour: find 6/9
    pub(crate) fn get(&self, snap: &Snapshot, ident: u32, key: &[u8]) -> Result<Option<Bytes>> {
        self.check_age(snap)?;
        self.check_prepared(snap, ident, key)?;
        if let Some(rows) = self.mem.find(ident) {
            match rows.get(key, snap) {
                Found::Row(v) => return Ok(Some(v)),
                Found::Absent => return Ok(None),
                Found::Unknown => {}
            }
        }
        let engine_key = row::key(ident, key);
        match self.kv.get(Tree::of(ident), &engine_key)? {
            None => Ok(None),
            Some(value) => self.resolve(snap, ident, key, value),
        }
    }
    /// A table's row as `snap` sees it: the row itself, nothing, or an older version from the history.
    #[inline]
    pub(crate) fn resolve(
        &self,
        snap: &Snapshot,
        ident: u32,
        key: &[u8],
        value: Slice,
    ) -> Result<Option<Bytes>> {
        let (ts, deleted) = row::header(&value)?;
        if ts == 0 || snap.sees(ts) {
            return Ok((!deleted).then(|| row::payload(value)));
        }
        history::find(&*self.kv, snap, ident, key, ts)
    }
    /// The timestamp on the newest version of `key` (memory or tables), with its `local` mark.
    pub(crate) fn newest(&self, ident: u32, key: &[u8]) -> Result<Option<(u64, bool)>> {
        if let Some(v) = self.mem.find(ident).and_then(|rows| rows.newest(key)) {
            return Ok(Some((v.ts, v.local)));
        }
        match self.kv.get(Tree::of(ident), &row::key(ident, key))? {
            None => Ok(None),
            Some(value) => row::header(&value).map(|(ts, _)| Some((ts, ts == 0))),
        }
    }
    /// Fails when somebody committed a version of `key` that `snap` does not see.
    pub(crate) fn check_newest(
        &self,
        snap: &Snapshot,
        begun_local: u64,
        ident: u32,
        key: &[u8],
    ) -> Result<()> {
        let mem = self.mem.find(ident).and_then(|rows| rows.newest(key));
        let clash = match mem {
            Some(v) if v.local => v.ts > begun_local,
            Some(v) => !snap.sees(v.ts),
            None if snap.sees_all_up_to(self.flushed.load(Ordering::Acquire)) => {
                // An untimestamped row may have been flushed since this transaction began.
                begun_local < self.local_flushed.load(Ordering::Acquire)
                    && self.newest(ident, key)?.is_some_and(|(_, local)| local)
            }
            None => self.newest(ident, key)?.is_some_and(|(ts, local)| {
                if local { begun_local < self.local_flushed.load(Ordering::Acquire) } else { !snap.sees(ts) }
            }),
        };
        if clash { Err(self.write_conflict()) } else { Ok(()) }
    }
}

pub(crate) fn too_old(ts: u64) -> Error {
    Error::new(
        ErrorCode::SnapshotTooOld,
        format!("Read timestamp {} is older than the oldest available timestamp.", Timestamp(ts)),
    )
}
/// A read met a key that a prepared transaction has written: it waits for [`crate::Storage::prepare_changes`] and tries
/// again. Never shown to clients.
pub const PREPARE_CONFLICT: ErrorCode = ErrorCode(-31808);

pub(crate) fn prepare_conflict() -> Error {
    Error::new(PREPARE_CONFLICT, "the key was written by a prepared transaction that is still undecided")
}
