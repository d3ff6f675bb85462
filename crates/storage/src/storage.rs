//! The handle that everything above holds.

use crate::conflict::Conflicts;
use crate::ident::{Ident, IdentKind};
use crate::kv::mem::MemKv;
use crate::log::OpLog;
use crate::memtable::{MemTable, Version};
use crate::options::Options;
use crate::prepared::Prepares;
use crate::snapshot::ReadAt;
use crate::store::{Store, too_old};
use crate::txn::{BeginOptions, Txn};
use crate::writes::Writes;
use pando_base::{Result, Timestamp};
use pando_env::Env;
use pando_env::sync::Notify;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// One data directory's rows and log. Cheap to clone.
#[derive(Clone)]
pub struct Storage {
    pub(crate) store: Arc<Store>,
}

impl Storage {
    /// Opens what the last checkpoint and the logs hold. The caller then replays the oplog after
    /// [`Storage::recovery_ts`] between [`Storage::start_replay`] and [`Storage::end_replay`].
    pub fn open(env: Env, opts: Options) -> Result<Storage> {
        let log = OpLog::new(env.clone());
        let seed = env.rng.next_u64();
        let store = Store {
            opts,
            mem: MemTable::default(),
            kv: Box::new(MemKv::default()),
            log,
            conflicts: Conflicts::new(seed),
            prepares: Prepares::default(),
            next_txn: AtomicU64::new(1),
            next_ident: AtomicU32::new(Ident::FIRST_FREE),
            stable: AtomicU64::new(0),
            oldest: AtomicU64::new(0),
            lost_below: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            recovery: AtomicU64::new(0),
            recovering: AtomicBool::new(false),
            dropped: Mutex::new(BTreeMap::new()),
            local_seq: AtomicU64::new(1),
            local_flushed: AtomicU64::new(0),
            local: Mutex::default(),
            prepare_changed: Notify::new(),
            room_changed: Notify::new(),
            env,
        };
        Ok(Storage { store: Arc::new(store) })
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
        let too_low = matches!(at, ReadAt::At(ts) if ts.0 < self.store.oldest.load(Ordering::Acquire));
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
        let n = self.store.next_ident.fetch_add(2, Ordering::AcqRel);
        Ok(Ident(match kind {
            IdentKind::Records => n,
            IdentKind::Index => n + 1,
        }))
    }
    /// The rows of `i` may go once nobody can read below `at`.
    pub fn drop_ident(&self, i: Ident, at: Timestamp) {
        self.store.dropped.lock().unwrap_or_else(PoisonError::into_inner).insert(i.0, at.0);
    }

    pub fn log(&self) -> &OpLog {
        &self.store.log
    }
    /// Moves on when a prepared transaction is decided.
    pub fn prepare_changes(&self) -> &Notify {
        &self.store.prepare_changed
    }
    /// The point that no rollback can reach; checkpoints stand at it (R-TS-1). Never moves back.
    pub fn set_stable(&self, ts: Timestamp) {
        self.store.stable.fetch_max(ts.0, Ordering::AcqRel);
        self.store.room_changed.bump();
    }
    /// Reads below this fail; versions replaced below it may go (R-TS-2). Never moves back.
    pub fn set_oldest(&self, ts: Timestamp) {
        self.store.oldest.fetch_max(ts.0, Ordering::AcqRel);
    }
    pub fn stable(&self) -> Timestamp {
        Timestamp(self.store.stable.load(Ordering::Acquire))
    }
    pub fn oldest(&self) -> Timestamp {
        Timestamp(self.store.oldest.load(Ordering::Acquire))
    }
    pub fn all_durable(&self) -> Timestamp {
        self.store.log.all_durable()
    }
    /// Where `ReadAt::Latest` reads.
    pub fn last_committed(&self) -> Timestamp {
        Timestamp(self.store.log.0.state().committed)
    }
}

impl Store {
    pub(crate) fn commit_local(&self, writes: &Writes) -> Result<()> {
        let _one = self.local.lock().unwrap_or_else(PoisonError::into_inner);
        let seq = self.local_seq.load(Ordering::Acquire) + 1;
        for ident in writes.idents() {
            let rows = self.mem.get_or_add(ident);
            let versions = writes.ops().iter().filter(|op| op.ident == ident).map(|op| {
                (&op.key, Version { ts: seq, local: true, fresh: op.fresh, value: op.value.clone() })
            });
            self.mem.grew(rows.apply(versions, 0));
        }
        self.local_seq.store(seq, Ordering::Release);
        Ok(())
    }
}
