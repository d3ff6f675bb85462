//! A unit of work: reads in one snapshot, buffered writes, one commit.
//!
//! The first updater wins: `put` and `delete` fail with a write conflict when another transaction holds the key,
//! or has committed a version this snapshot does not see. The caller gives up the whole unit and retries.
//!
//! Commit puts the rows in place at their timestamps, then closes the unit's log slots; only the closing makes
//! the rows visible, all at once, and the entry and the rows become durable together because tables never get
//! ahead of the log.

use crate::bytes::Bytes;
use crate::cursor::Cursor;
use crate::ident::Ident;
use crate::log::Slot;
use crate::memtable::Version;
use crate::row;
use crate::snapshot::{OnPrepared, Snapshot};
use crate::store::Store;
use crate::undecided::PreparedTxn;
use crate::writes::{Op, Writes};
use lsm_tree::Slice;
use pando_base::panics::{self, poisoned};
use pando_base::{Error, ErrorCode, Result, Timestamp, limits};
use pando_bson::RawDoc;
use std::ops::Bound;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// Direction of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dir {
    #[default]
    Forward,
    Backward,
}

/// A place in a transaction to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    ops: usize,
    slots: usize,
    commit_hooks: usize,
    abort_hooks: usize,
    commit_ts: u64,
}

type CommitHook = Box<dyn FnOnce(Timestamp) + Send>;
type AbortHook = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Hooks {
    commit: Vec<CommitHook>,
    abort: Vec<AbortHook>,
}

/// An open unit of work. Dropping it aborts.
#[must_use]
pub struct Txn {
    store: Arc<Store>,
    snap: Arc<Snapshot>,
    id: u64,
    writes: Writes,
    slots: Vec<(Slot, Bytes)>,
    /// Timestamp of the writes to come; 0 = the commit's.
    commit_ts: u64,
    /// Writes carry no timestamp and go to the local log.
    local: bool,
    begun_local: u64,
    taken: Vec<u64>,
    hooks: Mutex<Hooks>,
    /// Its snapshot keeps the versions it sees.
    pinned: bool,
}

impl Txn {
    pub(crate) fn begin(store: Arc<Store>, snap: Snapshot, local: bool) -> Txn {
        let id = store.next_txn.fetch_add(1, Ordering::Relaxed);
        let begun_local = store.local_seq.load(Ordering::Acquire);
        let snap = Arc::new(snap);
        Txn {
            store,
            snap,
            id,
            writes: Writes::default(),
            slots: Vec::new(),
            commit_ts: 0,
            local,
            begun_local,
            taken: Vec::new(),
            hooks: Mutex::default(),
            pinned: true,
        }
    }

    /// Where this transaction reads; `Timestamp::MAX` for `ReadAt::Applied`.
    pub fn read_ts(&self) -> Timestamp {
        Timestamp(self.snap.read)
    }
    /// Whether anything was written.
    pub fn is_dirty(&self) -> bool {
        self.writes.len() > 0 || !self.slots.is_empty()
    }
    /// What no checkpoint will stand before ([`crate::Storage::counted`]).
    pub fn counted(&self) -> Timestamp {
        self.store.counted()
    }
    /// Bytes of keys and values written so far.
    pub fn written_bytes(&self) -> usize {
        self.writes.bytes()
    }

    pub fn written_count(&self) -> usize {
        self.writes.len()
    }

    /// The row of `key`, own writes included.
    pub fn get(&self, i: Ident, key: &[u8]) -> Result<Option<Bytes>> {
        if let Some(op) = self.own(i.0, key) {
            return Ok(op.value.clone());
        }
        self.store.get(&self.snap, i.0, key)
    }
    fn own(&self, ident: u32, key: &[u8]) -> Option<&Op> {
        if self.writes.len() == 0 {
            return None;
        }
        self.writes.find(ident, key, || self.store.conflicts.hash(ident, key))
    }
    /// Whether a row of `key` is there.
    pub fn exists(&self, i: Ident, key: &[u8]) -> Result<bool> {
        Ok(self.get(i, key)?.is_some())
    }
    /// Timestamp of the newest committed version of a row, deletions included, whatever this transaction sees.
    /// `None` when nothing is known of the key. Replays ask it to skip what is done already.
    pub fn newest_ts(&self, i: Ident, key: &[u8]) -> Result<Option<Timestamp>> {
        Ok(self.store.newest(i.0, key)?.filter(|(_, local)| !local).map(|(ts, _)| Timestamp(ts)))
    }
    /// The rows within the bounds. Own writes made so far are included, later ones are not.
    pub fn scan(&self, i: Ident, lower: Bound<&[u8]>, upper: Bound<&[u8]>, dir: Dir) -> Result<Cursor> {
        let own = self.writes.range(i.0, lower, upper);
        Cursor::open(self.store.clone(), self.snap.clone(), i.0, lower, upper, dir, own)
    }

    /// Writes a row. A write conflict means: abort the unit and retry it.
    pub fn put(&mut self, i: Ident, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(i, key, Some(value), false)
    }
    /// Writes a row whose key this snapshot shows absent, as a unique index does after looking. Two such writers
    /// of one key still conflict; a flush is spared the search for an older version.
    pub fn insert(&mut self, i: Ident, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(i, key, Some(value), true)
    }
    /// Writes a row whose key nobody else can be writing (it holds a fresh record id): no check at all.
    pub fn put_new(&mut self, i: Ident, key: &[u8], value: &[u8]) -> Result<()> {
        if self.store.recovering.load(Ordering::Relaxed) || self.local {
            return self.write(i, key, Some(value), true);
        }
        check_key(key)?;
        let op = Op {
            ident: i.0,
            key: Slice::from(key),
            value: Some(row::stamped(self.commit_ts, value)),
            ts: self.commit_ts,
            fresh: true,
            hash: self.store.conflicts.hash(i.0, key),
        };
        self.writes.push(op);
        Ok(())
    }
    /// Deletes a row (also when there is none).
    pub fn delete(&mut self, i: Ident, key: &[u8]) -> Result<()> {
        self.write(i, key, None, false)
    }

    fn write(&mut self, i: Ident, key: &[u8], value: Option<&[u8]>, fresh: bool) -> Result<()> {
        check_key(key)?;
        let hash = self.store.conflicts.hash(i.0, key);
        match self.store.conflicts.take(hash, self.id) {
            None => return Err(self.store.write_conflict()),
            Some(false) => {}
            Some(true) => {
                self.taken.push(hash);
                // Whoever applies another member's entries sees all there is; only the server's own rows can be local.
                if self.snap.read != u64::MAX || i.0 < Ident::FIRST_FREE {
                    self.store.check_newest(&self.snap, self.begun_local, i.0, key)?;
                }
            }
        }
        let replay = !self.local && self.store.recovering.load(Ordering::Relaxed);
        if replay && self.commit_ts != 0 && self.is_replayed(i.0, key)? {
            return Ok(());
        }
        let fresh = fresh && !replay;
        let value = value.map(|v| row::stamped(if self.local { 0 } else { self.commit_ts }, v));
        self.writes.push(Op { ident: i.0, key: Slice::from(key), value, ts: self.commit_ts, fresh, hash });
        Ok(())
    }
    /// During replay: the stored row already carries this write or a later one.
    fn is_replayed(&self, ident: u32, key: &[u8]) -> Result<bool> {
        if self.own(ident, key).is_some_and(|op| op.ts >= self.commit_ts) {
            return Ok(false);
        }
        Ok(self.store.newest(ident, key)?.is_some_and(|(ts, local)| !local && ts >= self.commit_ts))
    }

    /// A place to come back to with [`Txn::back_to`].
    pub fn mark(&self) -> Mark {
        let hooks = self.hooks.lock().unwrap_or_else(poisoned);
        Mark {
            ops: self.writes.len(),
            slots: self.slots.len(),
            commit_hooks: hooks.commit.len(),
            abort_hooks: hooks.abort.len(),
            commit_ts: self.commit_ts,
        }
    }
    /// Undoes everything since the mark: writes, log entries (their slots close empty), hooks (the abort hooks
    /// registered since then run).
    pub fn back_to(&mut self, mark: Mark) {
        self.writes.truncate(mark.ops);
        self.slots.truncate(mark.slots);
        self.commit_ts = mark.commit_ts;
        let mut hooks = self.hooks.lock().unwrap_or_else(poisoned);
        hooks.commit.truncate(mark.commit_hooks);
        let at = mark.abort_hooks.min(hooks.abort.len());
        let aborted = hooks.abort.split_off(at);
        drop(hooks);
        aborted.into_iter().rev().for_each(|hook| hook());
    }
    /// Writes from here on carry `t` (one entry of a vectored insert, or a replicated entry).
    pub fn set_commit_ts(&mut self, t: Timestamp) {
        self.commit_ts = t.0;
    }
    /// Runs after the commit is visible, in registration order, with the commit timestamp.
    pub fn on_commit(&mut self, hook: CommitHook) {
        self.hooks.lock().unwrap_or_else(poisoned).commit.push(hook);
    }
    /// Runs when the unit is given up, in reverse registration order.
    pub fn on_abort(&mut self, hook: AbortHook) {
        self.hooks.lock().unwrap_or_else(poisoned).abort.push(hook);
    }
    /// The oplog entry of this unit (its `ts` is the slot's). Durable together with the rows, or neither is.
    pub fn log_entry(&mut self, slot: Slot, entry: &RawDoc) {
        self.slots.push((slot, Bytes::from(entry.as_bytes())));
    }

    /// Makes the unit visible. The timestamp is that of its last log entry, or the one set for it.
    // tour: insert 6/9
    pub fn commit(self) -> Result<Timestamp> {
        self.commit_with(|| {})
    }
    /// The same; `certain` runs when nothing can undo the writes any more, before anybody can see them and before the log can bring
    /// them to the disk.
    pub fn commit_with(mut self, certain: impl FnOnce()) -> Result<Timestamp> {
        self.store.log.check()?;
        if self.local {
            return self.commit_local(certain);
        }
        let last_slot = self.slots.iter().map(|(s, _)| s.ts().0).max().unwrap_or(0);
        let ts = last_slot.max(self.commit_ts);
        if self.writes.len() > 0 {
            if ts == 0 && self.writes.ops().iter().any(|op| op.ts == 0) {
                return Err(Error::internal("a unit with writes commits without a timestamp"));
            }
            // A replay makes room itself, and who applies another member's entries waits for it before each batch: both
            // must come to their end.
            let applies = self.snap.read == u64::MAX;
            let bounded = !applies && !self.store.recovering.load(Ordering::Acquire);
            if bounded && self.store.mem.bytes() > self.store.memory_max() {
                self.store.counters.refused.inc();
                return Err(no_room());
            }
        }
        certain();
        // Rows without their entry, or an entry that never comes and holds back all after it: neither can be mended.
        let _to_its_end = panics::indivisible();
        if self.writes.len() > 0 {
            self.apply(|own| if own == 0 { ts } else { own });
        }
        if !self.slots.is_empty() {
            let slots = std::mem::take(&mut self.slots);
            // tour: insert 7/9
            self.store.log.0.close(slots.into_iter().map(|(slot, entry)| (slot.take().1, Some(entry))));
        }
        self.finish(Some(Timestamp(ts)));
        Ok(Timestamp(ts))
    }
    fn commit_local(mut self, certain: impl FnOnce()) -> Result<Timestamp> {
        if !self.slots.is_empty() {
            return Err(Error::internal("a local unit has no log entries"));
        }
        let _to_its_end = panics::indivisible();
        if self.writes.len() > 0 {
            if self.writes.bytes() > limits::LOCAL_UNIT_BYTES_MAX {
                return Err(unit_too_large(self.writes.bytes()));
            }
            certain();
            self.store.commit_local(&self.writes)?;
        }
        self.finish(Some(Timestamp::ZERO));
        Ok(Timestamp::ZERO)
    }
    /// Puts the rows into the memory tables.
    pub(crate) fn apply(&self, at: impl Fn(u64) -> u64) {
        let gc = self.store.gc_below();
        for ident in self.writes.idents() {
            let rows = self.store.mem.get_or_add(ident);
            let versions = self
                .writes
                .ops()
                .iter()
                .filter(|op| op.ident == ident)
                .map(|op| (&op.key, Version::new(at(op.ts), false, op.fresh, op.value.clone())));
            let grown = rows.apply(versions, gc);
            self.store.grew(grown);
        }
    }

    /// Gives the unit up (as dropping it does).
    pub fn abort(self) {}

    pub(crate) fn finish(&mut self, committed: Option<Timestamp>) {
        self.slots.clear();
        self.store.conflicts.release(&self.taken);
        self.taken.clear();
        let hooks = std::mem::take(&mut *self.hooks.lock().unwrap_or_else(poisoned));
        match committed {
            Some(ts) => hooks.commit.into_iter().for_each(|hook| hook(ts)),
            None => hooks.abort.into_iter().rev().for_each(|hook| hook()),
        }
    }

    /// First phase of a two-phase commit: what was logged appears at once, the writes stay undecided and their keys taken.
    /// The prepare timestamp is that of the last entry.
    pub fn prepare(mut self) -> Result<PreparedTxn> {
        self.store.log.check()?;
        let Some(ts) = self.slots.iter().map(|(s, _)| s.ts().0).max().filter(|_| !self.local) else {
            return Err(Error::internal("a unit is prepared by a log entry"));
        };
        let first = self.slots.iter().map(|(s, _)| s.ts().0).min().unwrap_or(ts);
        self.take_all()?;
        let _to_its_end = panics::indivisible();
        let slots = std::mem::take(&mut self.slots);
        let log = self.store.log.0.clone();
        let prepared = self.undecided(first, ts);
        log.close(slots.into_iter().map(|(slot, entry)| (slot.take().1, Some(entry))));
        Ok(prepared)
    }
    /// A unit whose entries, from `first` to `prepare_ts`, are in the log already.
    pub fn prepare_again(mut self, first: Timestamp, prepare_ts: Timestamp) -> Result<PreparedTxn> {
        self.take_all()?;
        Ok(self.undecided(first.0, prepare_ts.0))
    }
    /// `put_new` takes no key; from now on others must see it taken.
    fn take_all(&mut self) -> Result<()> {
        for op in self.writes.ops() {
            match self.store.conflicts.take(op.hash, self.id) {
                None => return Err(self.store.write_conflict()),
                Some(true) => self.taken.push(op.hash),
                Some(false) => {}
            }
        }
        Ok(())
    }
    fn undecided(mut self, first: u64, ts: u64) -> PreparedTxn {
        self.store.prepares.open(ts, first);
        self.store.prepares.add(self.written_keys(), ts);
        // It reads no more.
        self.unpin();
        PreparedTxn::of(self, first, ts)
    }
    pub(crate) fn written_keys(&self) -> impl Iterator<Item = (u32, &Slice)> {
        self.writes.ops().iter().map(|op| (op.ident, &op.key))
    }
    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }
    fn unpin(&mut self) {
        if std::mem::replace(&mut self.pinned, false) {
            self.store.log.unpin(self.snap.pin);
        }
    }
    /// Takes back the writes of one ident; others may write there again.
    pub fn give_back(&mut self, i: Ident) {
        let mut out = self.writes.remove_ident(i.0);
        out.retain(|hash| self.taken.contains(hash));
        self.taken.retain(|hash| !out.contains(hash));
        out.sort_unstable();
        out.dedup();
        self.store.conflicts.release(&out);
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        self.unpin();
        self.finish_if_open();
    }
}

impl Txn {
    fn finish_if_open(&mut self) {
        let hooks = self.hooks.get_mut().unwrap_or_else(poisoned);
        if !self.taken.is_empty() || !self.slots.is_empty() || !hooks.abort.is_empty() {
            self.finish(None);
        }
    }
}

fn check_key(key: &[u8]) -> Result<()> {
    if key.len() > row::KEY_BYTES_MAX {
        return Err(key_too_long(key.len()));
    }
    Ok(())
}

#[cold]
pub(crate) fn key_too_long(len: usize) -> Error {
    Error::new(
        ErrorCode::KeyTooLong,
        format!("key of {len} bytes is longer than {} bytes", row::KEY_BYTES_MAX),
    )
}

#[cold]
fn unit_too_large(bytes: usize) -> Error {
    let max = limits::LOCAL_UNIT_BYTES_MAX;
    Error::new(
        ErrorCode::TransactionTooLarge,
        format!("an unreplicated write of {bytes} bytes of keys and values is larger than {max} bytes"),
    )
}

#[cold]
fn no_room() -> Error {
    Error::new(
        ErrorCode(365),
        "the memory for rows above the stable timestamp is used up; retry when the stable timestamp has moved",
    )
}

/// How a transaction reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct BeginOptions {
    pub on_prepared: OnPrepared,
}
