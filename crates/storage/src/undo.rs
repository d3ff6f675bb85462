//! Taking rows above a timestamp out of the tables again.
//!
//! When stable stood still for so long that memory was full, a checkpoint has gone past it. Nothing is lost by
//! that: every version it replaced above `oldest` is in the history. A rollback then walks the index and record
//! trees, puts the version of the wanted timestamp back wherever a row is newer, and drops the history of what is
//! undone (the new timeline may use the same timestamps again).
//!
//! The pass can be repeated from any point; the checkpoint file says that it must be until it is done.

use crate::history;
use crate::kv::{RunRow, Tree};
use crate::row;
use crate::snapshot::Snapshot;
use crate::store::Store;
use pando_base::Result;
use std::ops::Bound;
use std::sync::atomic::Ordering;

impl Store {
    /// Brings the tables back to `to`, which is not below `oldest`. Memory holds no timestamped row above it.
    pub(crate) fn undo(&self, to: u64) -> Result<()> {
        {
            let mut meta = self.meta();
            meta.undo_to = to;
            meta.save(&*self.env.disk)?;
        }
        let snap = Snapshot { read: to, ..Snapshot::default() };
        for tree in [Tree::Indexes].into_iter().chain(Tree::records()) {
            let rows = self.kv.range(tree, Bound::Unbounded, Bound::Unbounded, false);
            let mut older = rows.filter_map(|item| self.older_row(&snap, item).transpose());
            self.kv.write_run(tree, &mut older)?;
        }
        let replaced = self.kv.range(Tree::History, Bound::Unbounded, Bound::Unbounded, false);
        let mut undone = replaced.filter_map(|item| match item {
            Ok((key, _)) => (row::stop_of(&key) > to).then_some(Ok((key, None))),
            Err(e) => Some(Err(e)),
        });
        self.kv.write_run(Tree::History, &mut undone)?;
        self.mem.next_epoch();
        let mut meta = self.meta();
        (meta.undo_to, meta.flushing, meta.recovery) = (0, 0, meta.recovery.min(to));
        meta.save(&*self.env.disk)?;
        self.recovery.store(meta.recovery, Ordering::Release);
        self.flushed.store(to, Ordering::Release);
        Ok(())
    }

    /// What replaces a row that is too new; `None` when it may stay.
    fn older_row(
        &self,
        snap: &Snapshot,
        item: Result<(lsm_tree::Slice, lsm_tree::Slice)>,
    ) -> Result<Option<RunRow>> {
        let (key, value) = item?;
        let (ts, _) = row::header(&value)?;
        if ts <= snap.read {
            return Ok(None);
        }
        let (ident, user) = (row::ident_of(&key), &key[4..]);
        let older = match history::find_value(&*self.kv, snap, ident, user, ts)? {
            Some(older) => Some(older),
            // Absent then; who reads before its deletion must still find the way into the history.
            None => history::last_stop(&*self.kv, ident, user, snap.read)?.map(|at| row::value(at, None)),
        };
        Ok(Some((key, older)))
    }

    /// Ends an undo that the last process began.
    pub(crate) fn finish_undo(&self) -> Result<()> {
        let to = self.meta().undo_to;
        if to == 0 { Ok(()) } else { self.undo(to) }
    }
}
