//! Rows that go straight into tables: how an index over existing documents is built.
//!
//! A load whose rows the log can give back after a crash ([`BulkLoad::small_in_memory`]) stays among the rows in
//! memory when it is small, and reaches the tables with the next checkpoint: no table of its own, no sync.

use crate::ident::Ident;
use crate::kv::{KvBulk, Tree};
use crate::memtable::{MemIdent, Version};
use crate::row;
use crate::store::Store;
use lsm_tree::Slice;
use pando_base::{Error, Result, Timestamp, limits};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// See [`crate::Storage::bulk`]. Dropping it gives the load up.
#[must_use]
pub struct BulkLoad {
    store: Arc<Store>,
    ident: u32,
    ts: u64,
    held: Arc<MemIdent>,
    run: Option<Box<dyn KvBulk>>,
    /// Rows that have not been given to the tables, as long as they are few.
    small: Option<Small>,
    last: Option<Slice>,
    rows: u64,
}

/// Keys and payloads, and their bytes.
#[derive(Default)]
struct Small {
    rows: Vec<(Slice, Vec<u8>)>,
    bytes: usize,
}

impl BulkLoad {
    pub(crate) fn start(store: Arc<Store>, ident: Ident, visible_from: Timestamp) -> Result<BulkLoad> {
        // No checkpoint may be between choosing this ident and flushing it.
        let _one = store.checkpointing();
        let held = store.mem.get_or_add(ident.0);
        if held.held.swap(true, Ordering::AcqRel) {
            return Err(Error::internal(format!("{ident:?} is being loaded already")));
        }
        let run = store.kv.bulk(Tree::of(ident.0))?;
        let run = Some(run);
        let store = store.clone();
        Ok(BulkLoad {
            store,
            ident: ident.0,
            ts: visible_from.0,
            held,
            run,
            small: None,
            last: None,
            rows: 0,
        })
    }
    /// The rows need not be durable when the load is finished: should the process die before the next checkpoint, the
    /// caller makes them again from the log. To be called before the first row. Not for unreplicated collections: they
    /// are in no log.
    pub fn small_in_memory(mut self) -> BulkLoad {
        debug_assert!(self.rows == 0);
        self.small = Some(Small::default());
        self
    }
    /// Adds a row; keys ascend strictly.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.last.as_ref().is_some_and(|last| &**last >= key) {
            return Err(Error::internal("keys of a bulk load must ascend"));
        }
        if key.len() > row::KEY_BYTES_MAX {
            return Err(crate::txn::key_too_long(key.len()));
        }
        self.last = Some(Slice::from(key));
        self.rows += 1;
        if let Some(small) = &mut self.small {
            small.bytes += key.len() + value.len();
            small.rows.push((Slice::from(key), value.to_vec()));
            // Where memory is small, a share of it.
            let most =
                limits::BULK_IN_MEMORY_BYTES.min(self.store.opts.memtable_bytes / limits::BULK_MEMORY_SHARE);
            return if small.bytes > most { self.outgrow_memory() } else { Ok(()) };
        }
        self.push_to_run(key, value)
    }
    /// The rows gathered so far, and all that follow, go to tables.
    fn outgrow_memory(&mut self) -> Result<()> {
        let Some(small) = self.small.take() else {
            return Err(Error::internal("a bulk load without rows in memory outgrew it"));
        };
        small.rows.iter().try_for_each(|(key, value)| self.push_to_run(key, value))
    }
    fn push_to_run(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let Some(run) = &mut self.run else { return Err(Error::internal("the bulk load is finished")) };
        let pushed = run.push(row::key(self.ident, key), row::stamped_value(self.ts, value));
        pushed.map_err(|e| self.store.log.poison(e))
    }
    /// Rows pushed so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }
    /// Makes the rows readable, and durable (unless they stay in memory, see [`BulkLoad::small_in_memory`]). As
    /// everywhere, a failed write or sync poisons the log: what the disk holds is unknown.
    pub fn finish(mut self) -> Result<()> {
        let Some(run) = self.run.take() else { return Ok(()) };
        if let Some(small) = self.small.take() {
            drop(run);
            self.put_in_memory(small);
            return Ok(());
        }
        self.store.flushed.fetch_max(self.ts, Ordering::AcqRel);
        run.finish().map_err(|e| self.store.log.poison(e))?;
        self.store.mem.next_epoch();
        Ok(())
    }
    /// What writers have put there meanwhile is newer and stays on top.
    fn put_in_memory(&self, small: Small) {
        let version = |value: &[u8]| Version::new(self.ts, false, true, Some(row::stamped(self.ts, value)));
        let versions = small.rows.iter().map(|(key, value)| (key, version(value)));
        let grown = self.held.apply(versions, self.store.gc_below());
        // An ident that was dropped meanwhile has left the memory tables.
        if self.store.mem.find(self.ident).is_some_and(|now| Arc::ptr_eq(&now, &self.held)) {
            self.store.grew(grown);
        }
    }
}

impl Drop for BulkLoad {
    fn drop(&mut self) {
        self.held.held.store(false, Ordering::Release);
    }
}
