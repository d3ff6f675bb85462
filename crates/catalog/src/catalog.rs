//! The catalog itself: what exists now, who may change it, and units of work.

use crate::ddl::permit::Permit;
use crate::lock::order::Resource;
use crate::lock::{Counts, Guard, Holders, Lock};
use crate::schema::collection::{Collection, View};
use crate::schema::snapshot::{CatalogSnapshot, Named};
use crate::schema::write_guard::WriteGuard;
use crate::write::gate::WriteGate;
use crate::write::observer::{DocumentKeys, OpObserver};
use crate::write::oid::ObjectIdSource;
use arc_swap::ArcSwap;
use pando_base::panics::poisoned;
use pando_base::{Error, ErrorCode, Namespace, Result, Term, Timestamp, Uuid, limits};
use pando_env::Env;
use pando_storage::{ReadAt, Storage, Txn};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

/// All databases of one server, as one operation may change them. Cheap to clone.
#[derive(Clone)]
pub struct Catalog(pub(crate) Arc<Inner>, pub(crate) Option<Permit>, pub(crate) Whose);

/// Whose definitions a handle changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Whose {
    #[default]
    Own,
    /// They were made by another set, of which this one copies a tenant: change streams are not told.
    OtherSets,
    /// Of a sharded collection, whose definitions its primary shard tells change streams: here is another part of it.
    Part,
}

pub(crate) struct Inner {
    env: Env,
    storage: Storage,
    current: ArcSwap<CatalogSnapshot>,
    changing: pando_base::sync::Mutex<()>,
    /// One checkpoint at a time: a clean end may come while another one is taken.
    checkpoint: pando_base::sync::Mutex<()>,
    /// No definition was changed after this.
    defined_upto: AtomicU64,
    db_locks: Mutex<BTreeMap<String, Lock>>,
    /// Of collections that are gone.
    dropped: Mutex<Counts>,
    /// Of locks of databases that were thrown away.
    dropped_databases: Mutex<Counts>,
    observers: RwLock<Arc<[Arc<dyn OpObserver>]>>,
    document_keys: OnceLock<Arc<dyn DocumentKeys>>,
    term: AtomicI64,
    gate: WriteGate,
    pub(crate) dropping: crate::ddl::dropping::Dropping,
    /// `local.oplog.rs` can be read.
    exposes_oplog: bool,
    pub(crate) oids: ObjectIdSource,
    pub(crate) dollar_inserts: pando_metrics::Counter,
    pub(crate) builds: crate::build::jobs::Builds,
    pub(crate) rebuilds: crate::build::rebuilds::Rebuilds,
    /// The data is an unfinished copy of another member's.
    pub(crate) copying: AtomicBool,
    pub(crate) applied: crate::apply::applied::Applied,
    /// Only indexes on `_id` are made here (`buildIndexes: false`).
    pub(crate) without_indexes: AtomicBool,
    pub(crate) before_min_valid: AtomicBool,
    pub(crate) imports: crate::import::told::Imports,
    pub(crate) prepared: crate::transaction::prepared_table::PreparedTable,
}

/// How a server opens its catalog.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Part of a replica set: `local.oplog.rs` is there to read.
    pub replset: bool,
}

/// A collection whose definition this holder may change: no writer is active.
pub(crate) struct DdlGuard {
    pub(crate) coll: Arc<Collection>,
    _lock: Guard,
}

impl Catalog {
    /// Without any definition; `observers` are told of every write, in their order.
    pub(crate) fn new(
        env: Env,
        storage: Storage,
        options: OpenOptions,
        observers: Arc<[Arc<dyn OpObserver>]>,
    ) -> Catalog {
        let inner = Inner {
            oids: ObjectIdSource::new(&*env.rng),
            dollar_inserts: pando_metrics::Counter::default(),
            env,
            storage,
            current: ArcSwap::default(),
            changing: pando_base::sync::Mutex::new(()),
            checkpoint: pando_base::sync::Mutex::new(()),
            defined_upto: AtomicU64::new(0),
            db_locks: Mutex::default(),
            dropped: Mutex::default(),
            dropped_databases: Mutex::default(),
            observers: RwLock::new(observers),
            document_keys: OnceLock::new(),
            term: AtomicI64::new(-1),
            gate: WriteGate::default(),
            dropping: crate::ddl::dropping::Dropping::default(),
            exposes_oplog: options.replset,
            builds: crate::build::jobs::Builds::default(),
            rebuilds: crate::build::rebuilds::Rebuilds::default(),
            copying: AtomicBool::new(false),
            applied: Default::default(),
            without_indexes: AtomicBool::new(false),
            before_min_valid: AtomicBool::new(false),
            imports: Default::default(),
            prepared: Default::default(),
        };
        Catalog(Arc::new(inner), None, Whose::Own)
    }
    /// The same catalog for whoever carries out what another set has defined.
    pub fn of_other_set(&self) -> Catalog {
        Catalog(self.0.clone(), self.1.clone(), Whose::OtherSets)
    }

    /// The same catalog for whoever changes a part of a sharded collection, or one that comes from another shard: change streams are told by
    /// the primary shard alone.
    pub fn of_part(&self) -> Catalog {
        Catalog(self.0.clone(), self.1.clone(), Whose::Part)
    }

    pub fn env(&self) -> &Env {
        &self.0.env
    }
    pub fn storage(&self) -> &Storage {
        &self.0.storage
    }
    /// What exists now. Take it once per operation.
    pub fn snapshot(&self) -> Arc<CatalogSnapshot> {
        self.0.current.load_full()
    }
    pub fn lookup(&self, ns: &Namespace) -> Option<Arc<Collection>> {
        self.0.current.load().collection(ns).cloned()
    }
    pub fn lookup_uuid(&self, uuid: Uuid) -> Option<Arc<Collection>> {
        self.0.current.load().by_uuid(uuid).cloned()
    }
    pub fn lookup_view(&self, ns: &Namespace) -> Option<Arc<View>> {
        self.0.current.load().view(ns).cloned()
    }
    /// Who may write replicated collections now.
    pub fn gate(&self) -> &WriteGate {
        &self.0.gate
    }
    /// The term that new log entries carry.
    pub fn term(&self) -> Term {
        self.0.term.load(Ordering::Acquire)
    }
    pub fn set_term(&self, term: Term) {
        self.0.term.store(term, Ordering::Release);
    }
    pub fn exposes_oplog(&self) -> bool {
        self.0.exposes_oplog
    }
    /// Adds an observer behind those there are.
    pub fn add_observer(&self, o: Arc<dyn OpObserver>) {
        let mut all = self.0.observers.write().unwrap_or_else(poisoned);
        *all = all.iter().cloned().chain([o]).collect();
    }
    pub(crate) fn observers(&self) -> Arc<[Arc<dyn OpObserver>]> {
        self.0.observers.read().unwrap_or_else(poisoned).clone()
    }
    /// From now on entries tell documents apart by what this says.
    pub fn tell_documents_by(&self, keys: Arc<dyn DocumentKeys>) {
        let _ = self.0.document_keys.set(keys);
    }
    pub(crate) fn document_keys(&self) -> Option<&Arc<dyn DocumentKeys>> {
        self.0.document_keys.get()
    }
    pub fn new_uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.0.env.rng.fill(&mut bytes);
        Uuid::from_random(bytes)
    }
    pub(crate) fn mono(&self) -> std::time::Duration {
        self.0.env.clock.mono()
    }
    pub(crate) fn now_ms(&self) -> i64 {
        self.0.env.clock.wall_ms()
    }
    /// Nobody else takes a checkpoint while it is held.
    pub(crate) fn lock_checkpoint(&self) -> std::sync::MutexGuard<'_, ()> {
        self.0.checkpoint.lock().unwrap_or_else(poisoned)
    }

    /// Replaces the snapshot by a changed copy.
    pub(crate) fn publish(&self, change: impl FnOnce(&mut CatalogSnapshot)) {
        let _one = self.0.changing.lock().unwrap_or_else(poisoned);
        let mut next = CatalogSnapshot::clone(&self.0.current.load());
        change(&mut next);
        next.version += 1;
        // The change has committed: its time lies at or below the newest one handed out.
        self.0.defined_upto.fetch_max(self.storage().log().clock().0, Ordering::AcqRel);
        self.0.current.store(Arc::new(next));
    }
    /// No definition that can be seen was changed after this.
    pub(crate) fn defined_upto(&self) -> Timestamp {
        Timestamp(self.0.defined_upto.load(Ordering::Acquire))
    }
    /// Serializes definition changes of a database.
    pub async fn lock_database(&self, db: &str) -> Guard {
        self.database_lock(db).exclusive(&self.env().clock).await
    }
    /// Keeps definition changes of a database away, and nobody else who does the same.
    pub async fn share_database(&self, db: &str) -> Guard {
        self.database_lock(db).shared(&self.env().clock).await
    }
    fn database_lock(&self, db: &str) -> Lock {
        let mut all = self.0.db_locks.lock().unwrap_or_else(poisoned);
        if all.len() >= limits::DATABASE_LOCKS_MAX && !all.contains_key(db) {
            self.drop_unused_locks(&mut all);
        }
        let new = || Lock::of(Resource::Database(db.to_owned()));
        all.entry(db.to_owned()).or_insert_with(new).clone()
    }
    /// Whoever holds one, or waits for it, has a handle of it; the others are as good as new. What was counted is kept.
    fn drop_unused_locks(&self, all: &mut BTreeMap<String, Lock>) {
        let mut counts = self.0.dropped_databases.lock().unwrap_or_else(poisoned);
        all.retain(|_, lock| {
            let used = lock.is_shared_with_others();
            if !used {
                counts.add(lock.counts());
            }
            used
        });
    }
    /// Locks of databases and collections that somebody holds or waits for, with their names.
    pub fn locks_in_use(&self) -> Vec<(String, Holders)> {
        let all = self.0.db_locks.lock().unwrap_or_else(poisoned);
        let mut out: Vec<_> = all.iter().map(|(db, lock)| (db.clone(), lock.holders())).collect();
        drop(all);
        let snapshot = self.snapshot();
        out.extend(snapshot.all_collections().map(|c| (c.ns.as_str().to_owned(), c.shared.lock.holders())));
        out.retain(|(_, holders)| holders.any());
        out
    }
    /// Both, in name order.
    pub(crate) async fn lock_databases(&self, a: &str, b: &str) -> (Guard, Option<Guard>) {
        if a == b {
            return (self.lock_database(a).await, None);
        }
        let first = self.lock_database(a.min(b)).await;
        let second = self.lock_database(a.max(b)).await;
        (first, Some(second))
    }

    /// How often the locks of databases and of collections were taken since the start.
    pub fn lock_counts(&self) -> (Counts, Counts) {
        let (mut databases, mut collections) = (
            *self.0.dropped_databases.lock().unwrap_or_else(poisoned),
            *self.0.dropped.lock().unwrap_or_else(poisoned),
        );
        let all = self.0.db_locks.lock().unwrap_or_else(poisoned);
        all.values().for_each(|lock| databases.add(lock.counts()));
        drop(all);
        self.snapshot().all_collections().for_each(|c| collections.add(c.shared.lock.counts()));
        (databases, collections)
    }
    /// A collection is gone; what was counted of its lock is not.
    pub(crate) fn keep_lock_counts(&self, coll: &Collection) {
        let counts = Counts { queued: 0, ..coll.shared.lock.counts() };
        self.0.dropped.lock().unwrap_or_else(poisoned).add(counts);
    }

    /// Locks a collection for writing. `None` when there is none of that name; an error for a view.
    pub async fn write_lock(&self, ns: &Namespace) -> Result<Option<WriteGuard>> {
        loop {
            let coll = match self.0.current.load().get(ns) {
                Some(Named::Collection(c)) => c.clone(),
                Some(Named::View(v)) => return Err(is_a_view(v)),
                None => return Ok(None),
            };
            check_stored(&coll)?;
            let guard = match coll.shared.lock.try_shared() {
                Some(g) => g.join_task().await,
                None => coll.shared.lock.shared(&self.env().clock).await,
            };
            // Its definition may have changed while we waited, or the name may mean another collection now.
            match self.lookup(ns) {
                Some(now) if now.uuid == coll.uuid => {
                    return Ok(Some(WriteGuard::new(now, guard)));
                }
                _ => drop(guard),
            }
        }
    }
    /// The same without waiting (24 when it would have to).
    pub fn try_write_lock(&self, ns: &Namespace) -> Result<Option<WriteGuard>> {
        let coll = match self.0.current.load().get(ns) {
            Some(Named::Collection(c)) => c.clone(),
            Some(Named::View(v)) => return Err(is_a_view(v)),
            None => return Ok(None),
        };
        check_stored(&coll)?;
        let busy =
            || Error::new(ErrorCode::LockTimeout, format!("Unable to acquire IX lock on '{ns}' within 0ms."));
        let guard = coll.shared.lock.try_shared().ok_or_else(busy)?;
        match self.lookup(ns) {
            Some(now) if now.uuid == coll.uuid => Ok(Some(WriteGuard::new(now, guard))),
            _ => Err(busy()),
        }
    }
    /// Locks a collection for writing, creating it with default options when there is none.
    pub async fn write_lock_or_create(&self, ns: &Namespace) -> Result<WriteGuard> {
        loop {
            if let Some(guard) = self.write_lock(ns).await? {
                return Ok(guard);
            }
            match self.create_collection(ns, Default::default()).await {
                Err(e) if e.code != ErrorCode::NamespaceExists => return Err(e),
                _ => {}
            }
        }
    }
    /// Locks a collection for a change of its definition. The database's lock must be held.
    pub(crate) async fn ddl_lock(&self, ns: &Namespace) -> Option<DdlGuard> {
        let coll = self.lookup(ns).filter(|c| c.is_stored())?;
        let guard = coll.shared.lock.exclusive(&self.env().clock).await;
        // Names change only under the database's lock, versions under the collection's.
        let coll = self.lookup(ns)?;
        Some(DdlGuard { coll, _lock: guard })
    }

    /// Returns when everybody is out who came in to write before, transactions included. Whoever comes meanwhile waits.
    pub async fn await_writers(&self, ns: &Namespace) {
        // Those that are about to make the collection hold the lock of the database.
        drop(self.lock_database(ns.db()).await);
        if let Some(coll) = self.lookup(ns) {
            drop(coll.shared.lock.exclusive(&self.env().clock).await);
        }
    }

    /// Begins a read.
    pub fn begin_read(&self, at: ReadAt) -> Result<Txn> {
        self.storage().begin(at)
    }
}

/// 73 for what is read from elsewhere than rows.
fn check_stored(coll: &Collection) -> Result<()> {
    match coll.is_stored() {
        true => Ok(()),
        false => Err(crate::schema::names::cannot_write(&coll.ns)),
    }
}

/// 166.
pub fn is_a_view(view: &View) -> Error {
    let kind = match view.buckets() {
        Some(_) => "a timeseries collection",
        None => "a view, not a collection",
    };
    Error::new(ErrorCode::CommandNotSupportedOnView, format!("Namespace {} is {kind}", view.ns))
}
