//! The handle that everything above holds.

use crate::bulk::BulkLoad;
use crate::conflict::Conflicts;
use crate::damage::damaged;
use crate::ident::{Ident, IdentKind};
use crate::kv::long::LongKeys;
use crate::kv::lsm::LsmKv;
use crate::kv::mem::MemKv;
use crate::kv::{Kv, Tree};
use crate::log::OpLog;
use crate::log::local::LocalLog;
use crate::memtable::{MemTable, Version};
use crate::meta::Meta;
use crate::options::{Backend, Options};
use crate::prepared::Prepares;
use crate::row;
use crate::snapshot::ReadAt;
use crate::stats::Counters;
use crate::store::{Store, too_old};
use crate::txn::{BeginOptions, Txn};
use crate::upgrade;
use crate::writes::Writes;
use pando_base::panics::poisoned;
use pando_base::sync::Mutex;
use pando_base::{Error, Result, Timestamp};
use pando_env::disk::make_folder;
use pando_env::sync::Notify;
use pando_env::{Disk, Env};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// One data directory's rows and log. Cheap to clone.
#[derive(Clone)]
pub struct Storage {
    pub(crate) store: Arc<Store>,
}

/// A checkpoint that has begun.
pub struct CheckpointUnderWay {
    store: Arc<Store>,
    at: u64,
}

impl Drop for CheckpointUnderWay {
    fn drop(&mut self) {
        let mut under_way = self.store.under_way.lock().unwrap_or_else(poisoned);
        if let Some(i) = under_way.iter().position(|at| *at == self.at) {
            under_way.swap_remove(i);
        }
    }
}

impl Storage {
    /// Opens what the last checkpoint and the logs hold. The caller then replays the oplog after
    /// [`Storage::recovery_ts`] between [`Storage::start_replay`] and [`Storage::end_replay`].
    pub fn open(env: Env, opts: Options) -> Result<Storage> {
        let meta = Meta::load(&*env.disk)?;
        let is_new = meta.is_none();
        let mut meta = meta.unwrap_or_default();
        // The replay says again what was dropped later, if the log still does.
        let recovery = meta.recovery;
        meta.dropped.retain(|_, at| *at <= recovery);
        let kv = open_tables(&env.disk, &opts, |tree| is_new || (meta.one_tree && upgrade::is_newer(tree)))?;
        if is_new {
            check_empty(&*kv)?;
        }
        upgrade::upgrade(&*kv, &mut meta, &*env.disk)?;
        let log = OpLog::open(env.clone(), opts.oplog_bytes_max, opts.log_segment_bytes, opts.keys.clone())?;
        // Slots closed empty leave no entry, yet their timestamps may be where the tables stand: never again.
        let log_ends = log.last().0;
        log.start_above(meta.recovery.max(meta.flushing).max(meta.stable));
        let local_log = LocalLog::open(env.disk.clone(), opts.log_segment_bytes, opts.keys.clone())?;
        check_ends(&meta, log_ends, local_log.last())?;
        let seed = env.rng.next_u64();
        let local_seq = meta.local_seq.max(local_log.last());
        let store = Store {
            opts,
            mem: MemTable::default(),
            kv,
            conflicts: Conflicts::new(seed),
            prepares: Prepares::default(),
            lates: Arc::default(),
            loading: Mutex::default(),
            hold_front: AtomicBool::new(false),
            next_txn: AtomicU64::new(1),
            next_ident: AtomicU32::new(meta.ident_limit.max(Ident::FIRST_FREE)),
            stable: AtomicU64::new(meta.stable),
            under_way: Mutex::default(),
            // Memory lost with the last process held the versions that older reads would need.
            oldest: AtomicU64::new(meta.stable.min(meta.recovery)),
            readable_from: meta.flushing,
            lost_below: AtomicU64::new(0),
            flushed: AtomicU64::new(meta.recovery.max(meta.flushing)),
            recovery: AtomicU64::new(meta.recovery),
            recovering: AtomicBool::new(false),
            local_seq: AtomicU64::new(local_seq),
            local_flushed: AtomicU64::new(local_seq),
            local: Mutex::default(),
            meta: Mutex::new(meta),
            checkpointing: Mutex::default(),
            flush_floor: AtomicU64::new(u64::MAX),
            history_after: AtomicU64::new(0),
            local_log,
            log,
            prepare_changed: Notify::new(),
            room_changed: Notify::new(),
            checkpoint_wanted: Notify::new(),
            asked_for_checkpoint: AtomicBool::new(false),
            in_vain: AtomicBool::new(false),
            stuck: AtomicBool::new(false),
            hopeless: AtomicBool::new(false),
            counters: Counters::default(),
            env,
        };
        store.replay_local()?;
        store.finish_undo()?;
        Ok(Storage { store: Arc::new(store) })
    }
    /// Whether tables and logs are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.store.opts.keys.is_some()
    }
    /// Nothing was ever written here.
    pub fn is_new(&self) -> bool {
        self.store.log.last().is_zero() && self.recovery_ts().is_zero()
    }
    /// The timestamp the tables stand at: replay starts after it.
    pub fn recovery_ts(&self) -> Timestamp {
        Timestamp(self.store.recovery.load(Ordering::Acquire))
    }
    /// From here to [`Storage::end_replay`] a write is void when the stored row carries its timestamp or a later
    /// one. Skipping must be row by row: the trees of an interrupted checkpoint stand at different timestamps.
    pub fn start_replay(&self) {
        self.store.recovering.store(true, Ordering::Release);
    }
    pub fn end_replay(&self) {
        self.store.recovering.store(false, Ordering::Release);
    }
    pub fn is_replaying(&self) -> bool {
        self.store.recovering.load(Ordering::Acquire)
    }

    /// Begins a unit of work that ignores undecided prepared writes.
    pub fn begin(&self, at: ReadAt) -> Result<Txn> {
        self.begin_with(at, BeginOptions::default())
    }
    pub fn begin_with(&self, at: ReadAt, how: BeginOptions) -> Result<Txn> {
        let log = &self.store.log.0;
        let mut snap = match at {
            ReadAt::Latest => log.state().snapshot(None),
            ReadAt::AllDurable => {
                let mut state = log.state();
                let read = state.all_durable;
                state.snapshot(Some(read))
            }
            ReadAt::At(ts) => log.state().snapshot(Some(ts.0)),
            ReadAt::Applied => {
                let mut state = log.state();
                let mut snap = state.snapshot(None);
                snap.read = u64::MAX;
                snap.in_flight = Box::default();
                snap
            }
        };
        snap.on_prepared = how.on_prepared;
        snap.late = self.store.lates.seen_by(&snap, &self.store.prepares);
        let oldest = self.store.oldest.load(Ordering::Acquire).max(self.store.readable_from);
        let too_low = matches!(at, ReadAt::At(ts) if ts.0 < oldest);
        let read = snap.read;
        let txn = Txn::begin(self.store.clone(), snap, false);
        if too_low {
            return Err(too_old(read));
        }
        Ok(txn)
    }
    /// Begins a unit whose writes carry no timestamp and no oplog entry: the `local` database and server markers.
    /// They are visible to every snapshot at once and are made durable by the local log.
    pub fn begin_local(&self) -> Result<Txn> {
        let snap = self.store.log.0.state().snapshot(None);
        Ok(Txn::begin(self.store.clone(), snap, true))
    }

    /// A number never used before. It becomes durable with the catalog row that names it.
    pub fn create_ident(&self, kind: IdentKind) -> Result<Ident> {
        self.store.log.check()?;
        let n = self.store.next_ident.fetch_add(2, Ordering::AcqRel);
        let mut meta = self.store.meta();
        if n + 2 > meta.ident_limit {
            // Numbers are promised in blocks, before the first of a block is used: never twice, even after a crash.
            meta.ident_limit = n.saturating_add(IDENT_BLOCK);
            meta.save(&*self.store.env.disk).map_err(|e| self.store.log.poison(e))?;
        }
        Ok(Ident(match kind {
            IdentKind::Records => n,
            IdentKind::Index => n + 1,
        }))
    }
    /// The rows of `i` may go once nobody can read below `at`.
    pub fn drop_ident(&self, i: Ident, at: Timestamp) {
        self.store.meta().dropped.insert(i.0, at.0);
    }

    /// After a replay: idents with rows in tables that neither `named` nor a pending drop knows are dropped. A crash
    /// leaves such rows behind when it comes between a bulk load and the row that names its ident.
    pub fn drop_unnamed(&self, named: impl Fn(Ident) -> bool) -> Result<usize> {
        let at = self.store.log.last().0;
        let mut found = 0;
        for tree in Tree::ALL {
            let mut from = Ident::FIRST_FREE;
            loop {
                let low = from.to_be_bytes();
                let first = self.store.kv.range(tree, Bound::Included(&low), Bound::Unbounded, false).next();
                let Some((key, _)) = first.transpose()? else { break };
                let ident = row::ident_of(&key);
                let loading = self.store.loading.lock().unwrap_or_else(poisoned);
                let mut meta = self.store.meta();
                let known = loading.contains(&ident) || named(Ident(ident));
                if !known && !meta.dead.contains(&ident) && !meta.dropped.contains_key(&ident) {
                    meta.dropped.insert(ident, at);
                    found += 1;
                }
                let Some(next) = ident.checked_add(1) else { break };
                from = next;
            }
        }
        if found > 0 {
            // Where the log has nothing to replay the next start would not look again.
            let saved = self.store.meta().save(&*self.store.env.disk);
            saved.map_err(|e| self.store.log.poison(e))?;
        }
        Ok(found)
    }

    /// Loads a new ident's rows in ascending key order past the memory tables (index builds). They carry
    /// `visible_from` and appear together when finished. Until then the ident's ordinary writes stay in memory,
    /// where they win over loaded rows of the same key; nothing of the ident may be in tables yet.
    pub fn bulk(&self, i: Ident, visible_from: Timestamp) -> Result<BulkLoad> {
        BulkLoad::start(self.store.clone(), i, visible_from)
    }

    pub fn log(&self) -> &OpLog {
        &self.store.log
    }
    /// Moves on when a prepared transaction is decided.
    pub fn prepare_changes(&self) -> &Notify {
        &self.store.prepare_changed
    }
    /// Whether it is not known yet which transactions are prepared: then the log keeps all that it has.
    pub fn hold_log(&self, hold: bool) {
        self.store.hold_front.store(hold, Ordering::Release);
    }
    /// Whether an undecided transaction that was prepared at or before `upto` has written to one of these.
    pub fn has_prepared(&self, mut idents: impl Iterator<Item = Ident>, upto: Timestamp) -> bool {
        !self.store.prepares.is_empty() && idents.any(|i| self.store.prepares.any_in(i.0, upto.0))
    }
    /// The oldest entry of a prepared transaction that is undecided.
    pub fn oldest_prepared(&self) -> Option<Timestamp> {
        self.store.prepares.oldest_open().map(Timestamp)
    }
    /// A replay has met the commit, at `entry`, of a transaction whose entries begin at `first`. `None`: it was given up.
    pub fn replayed_decision(
        &self,
        first: Timestamp,
        prepare: Timestamp,
        commit: Option<Timestamp>,
        entry: Timestamp,
    ) {
        self.store.prepares.decided(prepare.0, first.0, entry.0);
        if let Some(commit) = commit {
            self.store.lates.add(entry.0, prepare.0, commit.0, self.store.gc_below_unfloored());
        }
    }
    /// The point that no rollback can reach; checkpoints stand at it (R-TS-1). Never moves back.
    pub fn set_stable(&self, ts: Timestamp) {
        self.store.stable.fetch_max(ts.0, Ordering::AcqRel);
        self.store.room_changed.bump();
    }
    /// Reads below this fail; versions replaced below it may go (R-TS-2). Never moves back, never passes
    /// stable.
    pub fn set_oldest(&self, ts: Timestamp) {
        self.store.oldest.fetch_max(ts.0.min(self.stable().0), Ordering::AcqRel);
    }
    /// Before a checkpoint, until what is told as of it has been stored: [`Storage::counted`] stays behind it.
    pub fn begin_checkpoint(&self) -> CheckpointUnderWay {
        let mut under_way = self.store.under_way.lock().unwrap_or_else(poisoned);
        let at = self.store.next_checkpoint();
        under_way.push(at);
        drop(under_way);
        CheckpointUnderWay { store: self.store.clone(), at }
    }
    /// What no checkpoint will stand before, neither one under way nor one to come.
    pub fn counted(&self) -> Timestamp {
        self.store.counted()
    }
    pub fn stable(&self) -> Timestamp {
        Timestamp(self.store.stable.load(Ordering::Acquire))
    }
    pub fn oldest(&self) -> Timestamp {
        Timestamp(self.store.oldest.load(Ordering::Acquire))
    }
    /// Whether every row can be read as of `ts`.
    pub fn remembers(&self, ts: Timestamp) -> bool {
        let lost = self.store.lost_below.load(Ordering::Acquire).max(self.store.readable_from);
        ts.0 >= self.store.oldest.load(Ordering::Acquire).max(lost)
    }
    pub fn all_durable(&self) -> Timestamp {
        self.store.log.all_durable()
    }
    /// The bound on memory that cached blocks and waiting rows share.
    pub fn memory_limit(&self) -> usize {
        self.store.opts.memory()
    }
    /// Whether a unit that writes should await [`Storage::wait_room`] before it begins.
    pub fn has_room(&self) -> bool {
        self.store.mem.bytes() <= self.store.memory_soft()
    }
    /// Resolves when rows in memory are well within bounds, or when waiting does not help because even a checkpoint
    /// past the stable timestamp freed little (a log slot stays open; then commits go on, up to the bound at which
    /// they fail with `TemporarilyUnavailable`). Writers that outrun the disk are slowed here, before they take any
    /// key.
    pub fn wait_room(&self) -> impl Future<Output = ()> + Send + 'static {
        let store = self.store.clone();
        async move {
            store.counters.room_waits.inc();
            loop {
                let seen = store.room_changed.version();
                if store.mem.bytes() <= store.memory_soft() || store.hopeless.load(Ordering::Acquire) {
                    return;
                }
                // Whatever the last checkpoint could do: now somebody waits.
                store.in_vain.store(false, Ordering::Release);
                store.checkpoint_wanted.bump();
                store.room_changed.changed(seen).await;
            }
        }
    }
    /// Where `ReadAt::Latest` reads.
    pub fn last_committed(&self) -> Timestamp {
        Timestamp(self.store.log.0.state().committed)
    }
}

pub(crate) fn open_tables(
    disk: &Arc<dyn Disk>,
    opts: &Options,
    fresh: impl Fn(Tree) -> bool,
) -> Result<Box<dyn Kv>> {
    Ok(match opts.backend {
        Backend::Mem => Box::new(MemKv::open(disk.clone(), opts.keys.clone())?),
        Backend::Lsm => {
            let root =
                disk.real_path().ok_or_else(|| Error::internal("the disk has no folder for table files"))?;
            make_folder(&**disk, "tables")?;
            for tree in Tree::ALL {
                // The crate removes the tables that its list does not name: first the list that it finds is durable.
                let folder = format!("tables/{}", tree.name());
                if disk.exists(&format!("{folder}/current")) {
                    disk.sync_dir(&folder)?;
                }
            }
            let kv = LsmKv::open(&root.join("tables"), opts, fresh)?;
            for tree in Tree::ALL {
                // The crate syncs the files that it makes and their folders, not the names of these.
                disk.sync_dir(&format!("tables/{}", tree.name()))?;
            }
            disk.sync_dir("tables")?;
            Box::new(LongKeys::new(kv, opts.key_cut)?)
        }
    })
}

/// Before the first row reaches a table the checkpoint file is there.
fn check_empty(kv: &dyn Kv) -> Result<()> {
    for tree in Tree::ALL {
        if kv.range(tree, Bound::Unbounded, Bound::Unbounded, false).next().transpose()?.is_some() {
            let text = format!(
                "{} is missing, but the folder tables holds data. The folder journal belongs to it: without its log and \
                 checkpoint file the data cannot be trusted. Put journal back where it was, restore a backup into an \
                 empty folder, or, for a member of a replica set, empty the data folder and let it copy the set's data",
                crate::meta::PATH
            );
            return Err(damaged(text));
        }
    }
    Ok(())
}

/// A damaged end of a log looks like a write that was cut off, and has been cut; not where it is known to have been
/// synced.
fn check_ends(meta: &Meta, log_ends: u64, local_ends: u64) -> Result<()> {
    let (has, had) = (Timestamp(log_ends), Timestamp(meta.log_end));
    if has < had {
        return Err(damaged(format!(
            "the last file journal/oplog.* ends at {has}, but was synced up to {had}"
        )));
    }
    let (has, had) = (local_ends.max(meta.local_seq), meta.local_end);
    if has < had {
        return Err(damaged(format!(
            "the last file journal/local.* ends at {has}, but was synced up to {had}"
        )));
    }
    Ok(())
}

const IDENT_BLOCK: u32 = 4096;

impl Storage {
    /// At a clean end, everything synced: the next start knows where the logs end.
    pub fn note_log_ends(&self) -> Result<()> {
        self.store.log.check()?;
        let mut meta = self.store.meta();
        meta.log_end = self.store.log.durable_entry().0;
        meta.local_end = self.store.local_log.durable();
        meta.save(&*self.store.env.disk).map_err(|e| self.store.log.poison(e))
    }
    /// Removes every log entry above `ts` (a rollback, or the end of an interrupted batch). No slot may be open.
    pub fn cut_log(&self, ts: Timestamp) -> Result<()> {
        self.store.log.check()?;
        {
            // First what the next start expects of the log: power lost in between leaves a log that is longer than that.
            let mut meta = self.store.meta();
            if meta.log_end > ts.0 {
                meta.log_end = ts.0;
                meta.save(&*self.store.env.disk).map_err(|e| self.store.log.poison(e))?;
            }
        }
        self.store.log.truncate_after(ts)
    }
    /// Syncs every untimestamped unit committed so far (votes, markers: before acting on them).
    pub fn sync_local(&self) -> Result<()> {
        self.store.log.check()?;
        self.store.local_log.flush().map_err(|e| self.store.log.poison(e))
    }
}

impl Store {
    pub(crate) fn commit_local(&self, writes: &Writes) -> Result<()> {
        let _one = self.local.lock().unwrap_or_else(poisoned);
        let seq = self.local_seq.load(Ordering::Acquire) + 1;
        for ident in writes.idents() {
            let rows = self.mem.get_or_add(ident);
            let versions = writes
                .ops()
                .iter()
                .filter(|op| op.ident == ident)
                .map(|op| (&op.key, Version::new(seq, true, op.fresh, op.value.clone())));
            self.grew(rows.apply(versions, 0));
        }
        self.local_log.append(seq, writes);
        self.local_seq.store(seq, Ordering::Release);
        Ok(())
    }
    fn replay_local(&self) -> Result<()> {
        let after = self.meta().local_seq;
        self.local_log.replay(after, |seq, rows| {
            for (ident, key, value) in rows {
                let version = Version::new(seq, true, false, value);
                let grown = self.mem.get_or_add(ident).apply([(&key, version)].into_iter(), 0);
                self.mem.grew(grown);
            }
        })
    }
}
