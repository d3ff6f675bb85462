//! Making the tables stand at the stable timestamp.
//!
//! ```text
//!   log synced past stable ─► history run ─► index run ─► record run ─► checkpoint file ─► memory freed, log cut
//! ```
//!
//! A crash between any two steps leaves tables of different age; replay from the last checkpoint file makes them
//! whole because each row says how far it is. As long as memory suffices nothing above stable reaches a table, so
//! rolling back to stable is forgetting rows in memory ([`crate::undo`] tells of the other case).

use crate::flush::{self, Cut, Walk};
use crate::kv::{Gc, Tree};
use crate::storage::Storage;
use crate::store::Store;
use pando_base::{Error, Result, Timestamp, limits};
use std::sync::atomic::Ordering;

impl Storage {
    /// Brings the tables to the stable timestamp and returns it. Runs beside reads and commits; one at a time.
    ///
    /// An error leaves the directory recoverable but this process must stop: the log is poisoned.
    pub fn checkpoint(&self) -> Result<Timestamp> {
        let _one = self.store.checkpointing();
        self.store.log.check()?;
        // The last one could not make room below stable: go past it.
        let past_stable = self.store.stuck.load(Ordering::Acquire);
        let before = self.store.mem.bytes();
        let (goal, stable) = self.store.goal(past_stable);
        let done = self.store.checkpoint(goal, stable);
        self.store.flush_floor.store(u64::MAX, Ordering::Release);
        // Rows that came meanwhile do not count against it: the next one takes them.
        let helped = done.is_ok() && self.store.mem.bytes() < before / 2;
        // Well within bounds: what the checkpoint itself leaves in memory must not tip the balance, or a waiting writer
        // and the checkpoints it asks for would wait for each other.
        let room = self.store.mem.bytes() <= self.store.memory_soft() / 8 * 7;
        self.store.stuck.store(!room && !helped, Ordering::Release);
        self.store.hopeless.store(!room && !helped && past_stable, Ordering::Release);
        let again = helped || (!room && !past_stable && done.is_ok());
        self.store.in_vain.store(!again && self.wants_checkpoint(), Ordering::Release);
        self.store.asked_for_checkpoint.store(false, Ordering::Release);
        self.store.room_changed.bump();
        done.map(Timestamp).map_err(|e| self.store.log.poison(e))
    }

    /// Brings the tables to `all_durable` though stable is below it, and returns where they stand: the last resort
    /// when stable stands still and memory is full ([`Storage::checkpoint`] comes to it by itself). Until stable
    /// has caught up, a rollback has to walk all tables and put older versions back from the history.
    pub fn checkpoint_past_stable(&self) -> Result<Timestamp> {
        let _one = self.store.checkpointing();
        self.store.log.check()?;
        let (goal, stable) = self.store.goal(true);
        let done = self.store.checkpoint(goal, stable);
        self.store.flush_floor.store(u64::MAX, Ordering::Release);
        self.store.room_changed.bump();
        done.map(Timestamp).map_err(|e| self.store.log.poison(e))
    }

    /// During a replay: brings the tables to the entry at `at`, up to which the log has been applied, so that memory
    /// stays bounded whatever the length of the log. Only where [`Storage::is_consistent_at`].
    pub fn checkpoint_replayed(&self, at: Timestamp) -> Result<()> {
        let _one = self.store.checkpointing();
        self.store.log.check()?;
        let stable = self.store.stable.load(Ordering::Acquire);
        let done = self.store.checkpoint(at.0, stable);
        self.store.flush_floor.store(u64::MAX, Ordering::Release);
        self.store.asked_for_checkpoint.store(false, Ordering::Release);
        done.map(drop).map_err(|e| self.store.log.poison(e))
    }
    /// Whether the rows are those of `at` once a replay has come so far; before that an interrupted checkpoint's
    /// rows of later entries lie among them.
    pub fn is_consistent_at(&self, at: Timestamp) -> bool {
        at.0 >= self.store.readable_from
    }

    /// Does one piece of background work (compaction); true when there was some.
    pub fn step(&self) -> Result<bool> {
        self.store.log.check()?;
        let gc = self.store.gc();
        self.store.kv.compact(&gc).map_err(|e| self.store.log.poison(e))
    }
    /// Whether the rows in memory are over their budget: time for a checkpoint.
    pub fn wants_checkpoint(&self) -> bool {
        self.store.mem.bytes() > self.store.opts.memtable_bytes
    }
    /// Resolves when a commit takes the rows in memory over their budget, at once when they are over it; never
    /// when the last checkpoint could not bring them below (look again after a while).
    pub fn wait_checkpoint_wanted(&self) -> impl Future<Output = ()> + Send + 'static {
        let store = self.store.clone();
        async move {
            loop {
                let seen = store.checkpoint_wanted.version();
                if store.mem.bytes() > store.opts.memtable_bytes && !store.in_vain.load(Ordering::Acquire) {
                    return;
                }
                store.checkpoint_wanted.changed(seen).await;
            }
        }
    }
    /// Rewrites all tables, dropping every row and version that nobody can ask for.
    pub fn compact_all(&self) -> Result<()> {
        self.store.log.check()?;
        let gc = self.store.gc();
        for tree in Tree::ALL {
            self.store.kv.compact_all(tree, &gc).map_err(|e| self.store.log.poison(e))?;
        }
        Ok(())
    }

    /// Forgets every timestamped row, whatever was stable; the caller then cuts the whole log. A crash in the middle leaves
    /// tables of any state: the caller knows then that it must do this again.
    pub fn start_afresh(&self) -> Result<()> {
        {
            let _one = self.store.checkpointing();
            self.store.stable.store(0, Ordering::Release);
            self.store.oldest.store(0, Ordering::Release);
            self.store.lost_below.store(0, Ordering::Release);
            self.store.meta().stable = 0;
        }
        self.recover_to_stable().map(drop)
    }

    /// Forgets every row above `to`, also where stable has passed it. Rows whose older version is not kept any more (see
    /// [`Storage::remembers`]) are gone, or older than they should be: the caller writes what was changed after `to`
    /// anew, at `to`.
    pub fn rewind_to(&self, to: Timestamp) -> Result<()> {
        {
            let _one = self.store.checkpointing();
            self.store.stable.store(to.0, Ordering::Release);
            self.store.oldest.fetch_min(to.0, Ordering::AcqRel);
            self.store.meta().stable = to.0;
        }
        self.recover_to_stable()?;
        self.store.oldest.store(to.0, Ordering::Release);
        Ok(())
    }
    /// Brings rows that were written at `to` after [`Storage::rewind_to`] to the tables, as often as there are some.
    pub fn checkpoint_rewound(&self, to: Timestamp) -> Result<()> {
        {
            // The tables stand there already; they shall take what came since.
            let _one = self.store.checkpointing();
            let mut meta = self.store.meta();
            meta.recovery = meta.recovery.min(to.0.saturating_sub(1));
            self.store.recovery.store(meta.recovery, Ordering::Release);
        }
        self.checkpoint_replayed(to)
    }

    /// Forgets every row above the stable timestamp and returns it. The caller holds no transaction, cuts the log
    /// at the common point and replays it from the returned timestamp.
    pub fn recover_to_stable(&self) -> Result<Timestamp> {
        let _one = self.store.checkpointing();
        self.store.log.check()?;
        if self.store.log.0.state().has_open() {
            return Err(Error::internal("rollback while a log slot is open"));
        }
        let stable = self.store.stable.load(Ordering::Acquire);
        for (_, rows) in self.store.mem.all() {
            let freed = rows.forget(|v| !v.local && v.ts > stable);
            self.store.mem.grew(-(freed as isize));
        }
        self.store.lates.forget_above(stable);
        {
            // Also on disk: a drop that is undone must not be carried out after a crash.
            let mut meta = self.store.meta();
            meta.dropped.retain(|_, at| *at <= stable);
            // The log is about to be cut.
            meta.log_end = meta.log_end.min(stable);
            meta.save(&*self.store.env.disk).map_err(|e| self.store.log.poison(e))?;
        }
        if self.store.flushed.load(Ordering::Acquire) > stable {
            self.store.undo(stable).map_err(|e| self.store.log.poison(e))?;
        }
        let mut state = self.store.log.0.state();
        state.committed = state.committed.min(stable);
        state.all_durable = state.all_durable.min(stable);
        Ok(Timestamp(stable))
    }
}

impl Store {
    fn gc(&self) -> Gc {
        let meta = self.meta();
        // A restart knows only the stable timestamp of the checkpoint file, and must be able to go back to it.
        Gc { below: self.gc_below_unfloored().min(meta.stable), dead: meta.dead.clone() }
    }

    /// Where the next checkpoint is to stand, and the stable timestamp as it was when that was decided.
    fn goal(&self, past_stable: bool) -> (u64, u64) {
        if !self.opts.replicated {
            let all_durable = self.log.all_durable().0;
            self.stable.fetch_max(all_durable, Ordering::AcqRel);
            self.oldest.fetch_max(all_durable, Ordering::AcqRel);
        }
        let stable = self.stable.load(Ordering::Acquire);
        let goal = if past_stable { stable.max(self.log.all_durable().0) } else { stable };
        (goal, stable)
    }

    /// `stable` may have moved on since the goal was chosen. What the file says of it must not: the log is synced up to
    /// the goal only, and a start takes every timestamp up to the file's stable one for durable.
    fn checkpoint(&self, goal: u64, stable: u64) -> Result<u64> {
        // While the walks run no version that they take may be pruned: stand still first, then look.
        self.flush_floor.store(0, Ordering::Release);
        if self.log.durable().0 < goal {
            self.log.flush_once()?;
        }
        self.local_log.flush()?;
        let local_upto = self.local_log.durable();
        let upto = goal.min(self.log.durable().0);
        let gc = self.gc_below_unfloored().min(upto).min(stable);
        let cut = Cut { upto, local_upto, gc };
        let before = self.meta().clone();
        let drops_due = before.dropped.values().any(|at| *at <= gc);
        if upto <= before.recovery && local_upto <= before.local_seq && !drops_due {
            return Ok(before.recovery);
        }
        let idents: Vec<_> =
            self.mem.all().into_iter().filter(|(_, m)| !m.held.load(Ordering::Acquire)).collect();
        {
            // Should we die in the middle, the next open knows how far rows may have come.
            let mut meta = self.meta();
            meta.flushing = upto;
            meta.stable = stable;
            meta.save(&*self.env.disk)?;
        }
        self.flushed.fetch_max(upto, Ordering::AcqRel);
        self.local_flushed.fetch_max(local_upto, Ordering::AcqRel);
        for tree in [Tree::History, Tree::Indexes].into_iter().chain(Tree::records()) {
            self.kv.write_run(tree, &mut Walk::new(self, cut, tree, &idents))?;
        }
        self.mem.next_epoch();
        let recovery = {
            let mut meta = self.meta();
            meta.recovery = meta.recovery.max(upto);
            meta.local_seq = meta.local_seq.max(local_upto);
            meta.flushing = 0;
            meta.long_keys |= self.kv.has_long_keys();
            meta.log_end = meta.log_end.max(upto.min(self.log.durable_entry().0));
            self.bury(&mut meta, gc)?;
            meta.save(&*self.env.disk)?;
            meta.recovery
        };
        self.recovery.store(recovery, Ordering::Release);
        flush::forget(self, &cut, &idents);
        self.local_log.forget(local_upto)?;
        if !self.hold_front.load(Ordering::Acquire) {
            let point = recovery.min(stable);
            self.log.truncate_front(point, self.prepares.oldest(point))?;
        }
        self.bound_history(stable)?;
        Ok(recovery)
    }

    /// Idents whose drop nobody can look behind any more become dead; dead ones without rows are forgotten.
    fn bury(&self, meta: &mut crate::meta::Meta, gc: u64) -> Result<()> {
        let due: Vec<u32> = meta.dropped.iter().filter(|(_, at)| **at <= gc).map(|(i, _)| *i).collect();
        for ident in due {
            meta.dropped.remove(&ident);
            meta.dead.insert(ident);
            self.mem.remove(ident);
        }
        for ident in meta.dead.clone() {
            if !self.has_rows(ident)? {
                meta.dead.remove(&ident);
            }
        }
        Ok(())
    }
    fn has_rows(&self, ident: u32) -> Result<bool> {
        Ok(self.kv.has_rows(Tree::of(ident), ident)? || self.kv.has_rows(Tree::History, ident)?)
    }

    /// Gives up the oldest snapshots when the history has outgrown its bound.
    fn bound_history(&self, stable: u64) -> Result<()> {
        let bytes = self.kv.stats(Tree::History).bytes;
        let expected = self.history_after.load(Ordering::Acquire);
        if bytes > self.opts.history_bytes_max {
            self.oldest.fetch_max(stable, Ordering::AcqRel);
            self.lost_below.fetch_max(stable, Ordering::AcqRel);
            self.counters.snapshots_given_up.inc();
        } else if bytes < expected.saturating_mul(2).max(limits::STORAGE_HISTORY_SWEEP_BYTES) {
            return Ok(());
        }
        self.kv.compact_all(Tree::History, &self.gc())?;
        self.history_after.store(self.kv.stats(Tree::History).bytes, Ordering::Release);
        Ok(())
    }
}
