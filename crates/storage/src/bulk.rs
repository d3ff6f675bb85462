//! Rows that go straight into tables: how an index over existing documents is built.

use crate::ident::Ident;
use crate::kv::{KvBulk, Tree};
use crate::memtable::MemIdent;
use crate::row;
use crate::store::Store;
use lsm_tree::Slice;
use pando_base::{Error, Result, Timestamp};
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
    last: Option<Slice>,
    rows: u64,
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
        Ok(BulkLoad { store, ident: ident.0, ts: visible_from.0, held, run, last: None, rows: 0 })
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
        let Some(run) = &mut self.run else { return Err(Error::internal("the bulk load is finished")) };
        let pushed = run.push(row::key(self.ident, key), row::stamped_value(self.ts, value));
        pushed.map_err(|e| self.store.log.poison(e))
    }
    /// Rows pushed so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }
    /// Makes the rows durable and readable. As everywhere, a failed write or sync poisons the log: what the disk
    /// holds is unknown.
    pub fn finish(mut self) -> Result<()> {
        let Some(run) = self.run.take() else { return Ok(()) };
        self.store.flushed.fetch_max(self.ts, Ordering::AcqRel);
        run.finish().map_err(|e| self.store.log.poison(e))?;
        self.store.mem.next_epoch();
        Ok(())
    }
}

impl Drop for BulkLoad {
    fn drop(&mut self) {
        self.held.held.store(false, Ordering::Release);
    }
}
