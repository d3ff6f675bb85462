//! Index builds on collections that hold documents, beside writers.
//!
//! 1. Register (alone with the collection for a moment): the index exists but is not ready. From now on writers
//!    leave every change of its keys in a side table, in their own units.
//! 2. Scan the collection as it was at that moment, sort the keys, load them in bulk.
//! 3. Apply the side table to the index, again and again, until nothing is left.
//! 4. Alone again: apply the rest, look once more at what seemed to be duplicates, make the index ready.
//!
//! Steps 2 to 4 run in a task of their own, so that a client which goes away does not take the build with it.
//! The task takes only the collection's lock, never the database's: a drop that waits for the build to stop holds
//! the latter. Rows of an unfinished index are not in the log (only that something was written); nobody reads them,
//! and after a crash the build starts over.

use crate::Catalog;
use crate::build_slots::{Slot, Slots};
use crate::build_target::{Target, made_ready};
use crate::collection::{Collection, Index, KeyFormat};
use crate::durable::{self, Parts};
use crate::index_ddl::format_of;
use crate::index_entries;
use crate::keys::{Key, KeySet};
use crate::observer::Defined;
use crate::record_id::{self, Record};
use crate::snapshot::Named;
use crate::spec::IndexSpec;
use crate::unit::WriteUnit;
use crate::write::Interrupt;
use pando_base::panics::poisoned;
use pando_base::patience::Operation;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, Timestamp, Uuid, limits, patience};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuilder, RawDoc};
use pando_env::Env;
use pando_env::log::Component;
use pando_env::sync::Notify;
use pando_oplog::EntryView;
use pando_storage::{Dir, Ident, IdentKind, ReadAt, Txn};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// The unfinished state of one index.
#[derive(Debug)]
pub struct Build {
    /// One build may make several indexes.
    pub uuid: Uuid,
    /// Changes that came after the scan's moment, in order.
    pub(crate) side: Ident,
    /// Side writes are wanted: the scan's moment has come.
    pub(crate) active: AtomicBool,
    seq: AtomicU64,
    /// Monotonic time of the registration (of the restart, for a build taken up again).
    pub started: Duration,
    pub progress: Progress,
}

/// How far a build is.
#[derive(Debug, Default)]
pub struct Progress {
    phase: AtomicU8,
    pub docs_total: AtomicU64,
    pub docs_done: AtomicU64,
    pub keys: AtomicU64,
    pub side_writes: AtomicU64,
    pub side_applied: AtomicU64,
}

/// What a build is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    Scanning,
    Loading,
    Draining,
}

impl Progress {
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Scanning,
            1 => Phase::Loading,
            _ => Phase::Draining,
        }
    }
    fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }
}

/// What a writer did to a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SideOp {
    Add,
    Remove,
}

/// A running build: what its task and those who wait for it share.
pub(crate) struct Job {
    pub uuid: Uuid,
    pub collection: Uuid,
    specs: Vec<IndexSpec>,
    names: Vec<String>,
    stop: Mutex<Option<String>>,
    /// It ends without a word in the log: its indexes stay unfinished.
    abandoned: AtomicBool,
    outcome: Mutex<Option<Result<OpTime>>>,
    changed: Notify,
}

/// Says whether builds stand still at their beginning.
type Held = Box<dyn Fn() -> bool + Send + Sync>;

/// Builds that run in this process.
#[derive(Default)]
pub(crate) struct Builds {
    jobs: Mutex<BTreeMap<Uuid, Arc<Job>>>,
    pub(crate) slots: Slots,
    held: OnceLock<Held>,
}

impl Builds {
    fn jobs(&self) -> std::sync::MutexGuard<'_, BTreeMap<Uuid, Arc<Job>>> {
        self.jobs.lock().unwrap_or_else(poisoned)
    }
    fn of(&self, collection: Uuid) -> Vec<Arc<Job>> {
        self.jobs().values().filter(|j| j.collection == collection).cloned().collect()
    }
}

impl Interrupt for Job {
    fn check(&self) -> Result<()> {
        self.check_stop()
    }
}

/// Keys and sorts of a build end when it is asked to stop, and let others have this thread meanwhile.
struct JobWatch {
    job: Arc<Job>,
    env: Env,
}

impl Operation for JobWatch {
    fn check(&self) -> Result<()> {
        self.job.check_stop()
    }
    fn now(&self) -> Duration {
        self.env.clock.mono()
    }
    fn step_aside(&self, wait: Duration) {
        self.env.tasks.step_aside(wait);
    }
    fn pause(&self, d: Duration) {
        self.env.tasks.block_for(d);
    }
}

impl Job {
    fn ask_to_stop(&self, why: &str) {
        self.stop.lock().unwrap_or_else(poisoned).get_or_insert_with(|| why.to_owned());
    }
    fn check_stop(&self) -> Result<()> {
        match &*self.stop.lock().unwrap_or_else(poisoned) {
            Some(why) => Err(Error::new(ErrorCode::IndexBuildAborted, why.clone())),
            None => Ok(()),
        }
    }
    fn outcome(&self) -> Option<Result<OpTime>> {
        self.outcome.lock().unwrap_or_else(poisoned).clone()
    }
    async fn finished(&self) -> Result<OpTime> {
        loop {
            let seen = self.changed.version();
            if let Some(outcome) = self.outcome() {
                return outcome;
            }
            self.changed.changed(seen).await;
        }
    }
}

impl Build {
    pub(crate) fn new(uuid: Uuid, side: Ident, started: Duration) -> Build {
        Build {
            uuid,
            side,
            started,
            active: AtomicBool::new(false),
            seq: AtomicU64::new(0),
            progress: Progress::default(),
        }
    }
    /// Leaves a change of the index's keys for later.
    pub(crate) fn side_write(
        &self,
        unit: &mut WriteUnit,
        op: SideOp,
        record: &Record,
        key: Key<'_>,
    ) -> Result<()> {
        if !self.active.load(Ordering::Acquire) {
            return Ok(());
        }
        let seq = self.seq.fetch_add(1, Ordering::Relaxed);
        let row = SideRow { op, record: &record.key, key: key.bytes, type_bits: key.type_bits }.encode();
        self.progress.side_writes.fetch_add(1, Ordering::Relaxed);
        unit.txn.put_new(self.side, &seq.to_be_bytes(), &row)
    }
}

/// A row of the side table.
pub(crate) struct SideRow<'a> {
    pub(crate) op: SideOp,
    pub(crate) record: &'a [u8],
    pub(crate) key: &'a [u8],
    pub(crate) type_bits: &'a [u8],
}

impl<'a> SideRow<'a> {
    fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(7 + self.record.len() + self.key.len() + self.type_bits.len());
        row.push(u8::from(self.op == SideOp::Remove));
        index_entries::push_with_length(&mut row, self.record);
        row.extend_from_slice(&(self.key.len() as u32).to_be_bytes());
        row.extend_from_slice(self.key);
        row.extend_from_slice(self.type_bits);
        row
    }
    fn decode(row: &'a [u8]) -> Option<SideRow<'a>> {
        let (op, rest) = row.split_first()?;
        let (record, rest) = index_entries::split_length(rest)?;
        let (n, rest) = rest.split_first_chunk::<4>()?;
        let (key, type_bits) = rest.split_at_checked(u32::from_be_bytes(*n) as usize)?;
        Some(SideRow { op: if *op == 0 { SideOp::Add } else { SideOp::Remove }, record, key, type_bits })
    }
}

/// A registered build, ready to run.
pub(crate) struct Registered {
    job: Arc<Job>,
    /// The collection as it was when the build was registered.
    scan: Txn,
    /// `None` for builds that nobody asked for just now.
    slot: Option<Slot>,
}

impl Catalog {
    /// Step 1. The collection must be locked.
    pub(crate) fn start_build(
        &self,
        coll: &Arc<Collection>,
        specs: Vec<IndexSpec>,
        uuid: Uuid,
        slot: Slot,
    ) -> Result<Registered> {
        let mut unit = self.begin_write(coll)?;
        unit.stamp();
        let mut parts = Parts::of(coll);
        for spec in &specs {
            parts.indexes.push(Arc::new(self.unfinished_index(spec.clone(), uuid)?));
        }
        let current = parts.assemble()?;
        durable::put_row(&mut unit.txn, &current, [].iter())?;
        unit.observe(&Defined::BuildStarted { coll: &current, build: uuid, specs: &specs })?;
        unit.commit()?;
        let mut registered = self.activate(current, specs, uuid)?;
        registered.slot = Some(slot);
        Ok(registered)
    }

    pub(crate) fn unfinished_index(&self, spec: IndexSpec, uuid: Uuid) -> Result<Index> {
        let format = format_of(&spec);
        self.unfinished_index_as(spec, uuid, format)
    }
    pub(crate) fn unfinished_index_as(
        &self,
        spec: IndexSpec,
        uuid: Uuid,
        format: KeyFormat,
    ) -> Result<Index> {
        let ident = self.storage().create_ident(IdentKind::Index)?;
        let side = self.storage().create_ident(IdentKind::Records)?;
        let mut index = durable::new_index(spec, ident, format, Timestamp::MAX, self.now_ms())?;
        index.building = Some(Arc::new(Build::new(uuid, side, self.env().clock.mono())));
        Ok(index)
    }

    /// From here on side writes happen; the snapshot of the scan is taken. The collection must be locked.
    fn activate(&self, current: Arc<Collection>, specs: Vec<IndexSpec>, uuid: Uuid) -> Result<Registered> {
        let scan = self.storage().begin(ReadAt::Latest)?;
        for index in current.building_indexes() {
            if let Some(b) = index.building.as_ref().filter(|b| b.uuid == uuid) {
                b.progress.docs_total.store(current.count(), Ordering::Relaxed);
                b.active.store(true, Ordering::Release);
            }
        }
        let collection = current.uuid;
        self.publish(|s| s.put(Named::Collection(current)));
        let names = specs.iter().map(|s| s.name.clone()).collect();
        let job = Arc::new(Job {
            uuid,
            collection,
            specs,
            names,
            stop: Mutex::default(),
            abandoned: AtomicBool::new(false),
            outcome: Mutex::default(),
            changed: Notify::new(),
        });
        self.0.builds.jobs().insert(uuid, job.clone());
        Ok(Registered { job, scan, slot: None })
    }

    /// Steps 2 to 4 in a task; waits for the outcome. An interruption aborts the build.
    pub(crate) async fn run_build(&self, build: Registered, interrupt: &dyn Interrupt) -> Result<OpTime> {
        let job = build.job.clone();
        self.spawn_build(build);
        let (mut stopped, mut patience) = (None, limits::INDEX_BUILD_ABORT_WAITS);
        loop {
            let seen = job.changed.version();
            if let Some(outcome) = job.outcome() {
                // Whoever ended the build may have ended its caller.
                return match (outcome, stopped.map_or_else(|| interrupt.check(), Err)) {
                    (Err(_), Err(why)) => Err(why),
                    (outcome, _) => outcome,
                };
            }
            if stopped.is_none()
                && let Err(e) = interrupt.check()
            {
                job.ask_to_stop(&e.message);
                stopped = Some(e);
            }
            if let Some(why) = stopped.take_if(|_| patience == 0) {
                // Somebody holds the collection's lock for long; the build goes when it is free.
                return Err(why);
            }
            patience -= usize::from(stopped.is_some());
            // Interruptions are looked for ten times a second.
            self.env().timeout(Duration::from_millis(100), job.changed.changed(seen)).await;
        }
    }

    fn spawn_build(&self, build: Registered) {
        let catalog = self.clone();
        self.env().spawn("index-build", async move {
            let job = build.job.clone();
            let runner = Runner { catalog: catalog.clone(), job: job.clone() };
            let watch = Arc::new(JobWatch { job: job.clone(), env: catalog.env().clone() });
            let mut outcome = patience::within(watch, Box::pin(runner.run(build.scan))).await;
            if let Err(e) = &outcome
                && !job.abandoned.load(Ordering::Acquire)
                && let Err(worse) = catalog.abort_build(&job, e).await
            {
                outcome = Err(worse);
            }
            catalog.0.builds.jobs().remove(&job.uuid);
            drop(build.slot);
            *job.outcome.lock().unwrap_or_else(poisoned) = Some(outcome);
            job.changed.bump();
        });
    }

    /// For tests: builds that have been registered wait while `held` says so.
    pub fn hold_builds_while(&self, held: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.0.builds.held.set(Box::new(held));
    }

    /// Takes unfinished indexes out again.
    async fn abort_build(&self, job: &Job, cause: &Error) -> Result<()> {
        self.env().log.info(Component::Index, 4656003, "Aborting index build", |a| {
            a.show("buildUUID", job.uuid);
            a.show("error", cause);
        });
        let Some(coll) = self.lookup_uuid(job.collection) else { return Ok(()) };
        let _alone = coll.shared.lock.exclusive(&self.env().clock).await;
        let Some(coll) = self.lookup_uuid(job.collection) else { return Ok(()) };
        let mine: Vec<Arc<Index>> =
            coll.building_indexes().iter().filter(|i| is_of(i, job.uuid)).cloned().collect();
        let mut b = DocBuilder::new();
        b.bool("ok", false);
        b.i32("code", cause.code.0);
        b.str("codeName", &cause.code.name());
        b.str("errmsg", &cause.message);
        let cause = b.finish();
        let mut unit = self.begin_write(&coll)?;
        unit.stamp();
        let mut parts = Parts::of(&coll);
        parts.indexes.retain(|i| !is_of(i, job.uuid));
        let current = parts.assemble()?;
        durable::put_row(&mut unit.txn, &current, [].iter())?;
        unit.observe(&Defined::BuildAborted {
            coll: &coll,
            build: job.uuid,
            specs: &job.specs,
            cause: &cause,
        })?;
        let last = unit.commit()?;
        self.publish(|s| s.put(Named::Collection(current)));
        mine.iter().for_each(|i| self.drop_index_rows(i, last.ts));
        Ok(())
    }

    /// Stops builds on a collection that is about to go and waits until they have stopped.
    pub(crate) async fn abort_builds(&self, ns: &Namespace, why: &str) -> Result<()> {
        let Some(coll) = self.lookup(ns) else { return Ok(()) };
        for job in self.0.builds.of(coll.uuid) {
            job.ask_to_stop(why);
            // Its own caller reports the error.
            let _ = job.finished().await;
        }
        Ok(())
    }

    /// Stops all builds and waits until they have stopped. Their indexes stay unfinished, for
    /// [`Catalog::resume_builds`] here or on another member.
    pub async fn end_builds(&self, why: &str) {
        let jobs: Vec<Arc<Job>> = self.0.builds.jobs().values().cloned().collect();
        for job in &jobs {
            job.abandoned.store(true, Ordering::Release);
            job.ask_to_stop(why);
        }
        for job in jobs {
            // Its own caller reports the error.
            let _ = job.finished().await;
        }
    }
    /// Those that were told to end by [`Catalog::end_builds`] have.
    async fn await_abandoned(&self) {
        let jobs: Vec<Arc<Job>> = self.0.builds.jobs().values().cloned().collect();
        for job in jobs.iter().filter(|j| j.abandoned.load(Ordering::Acquire)) {
            let _ = job.finished().await;
        }
    }

    /// Waits until no build runs on a collection.
    pub(crate) async fn wait_for_builds(&self, coll: &Collection, interrupt: &dyn Interrupt) -> Result<()> {
        let jobs = self.0.builds.of(coll.uuid);
        if jobs.is_empty() {
            // Unfinished, and nobody at work here: it could not even be aborted, or it is another member's.
            interrupt.check()?;
            if let Some(e) = self.storage().log().poisoned() {
                return Err(e);
            }
            self.env().clock.sleep(Duration::from_millis(limits::INTERRUPT_CHECK_MS)).await;
        }
        for job in jobs {
            while job.outcome().is_none() {
                interrupt.check()?;
                self.env().timeout(Duration::from_millis(100), job.finished()).await;
            }
        }
        Ok(())
    }

    /// Builds that run now: collection, build id, index names and counters, for `currentOp` and `listIndexes`.
    pub fn running_builds(&self) -> Vec<(Namespace, Uuid, Vec<Arc<Index>>)> {
        let jobs: Vec<Arc<Job>> = self.0.builds.jobs().values().cloned().collect();
        let mut out = Vec::new();
        for job in jobs {
            if let Some(c) = self.lookup_uuid(job.collection) {
                let indexes = c.building_indexes().iter().filter(|i| is_of(i, job.uuid)).cloned().collect();
                out.push((c.ns.clone(), job.uuid, indexes));
            }
        }
        out
    }

    /// Unfinished indexes whose build ended when this node stopped being primary start afresh. The collection must be
    /// locked.
    fn made_dormant(&self, coll: Arc<Collection>) -> Result<Arc<Collection>> {
        let jobs: BTreeSet<Uuid> = self.0.builds.jobs().keys().copied().collect();
        let abandoned = |b: &&Arc<Build>| b.active.load(Ordering::Acquire) && !jobs.contains(&b.uuid);
        if !coll.building_indexes().iter().any(|i| i.building.as_ref().filter(abandoned).is_some()) {
            return Ok(coll);
        }
        let mut parts = Parts::of(&coll);
        for index in &mut parts.indexes {
            let Some(b) = index.building.as_ref().filter(abandoned) else { continue };
            let (spec, ident) = (index.spec.clone(), index.ident);
            let unfinished = durable::Unfinished { spec, ident, side: b.side, build: b.uuid };
            let at = self.storage().last_committed();
            *index = Arc::new(self.dormant_index(unfinished, self.now_ms(), at)?);
        }
        let fresh = parts.assemble()?;
        self.publish(|s| s.put(Named::Collection(fresh.clone())));
        Ok(fresh)
    }

    /// Takes up the builds that the last process left unfinished. They run in the background.
    pub async fn resume_builds(&self) -> Result<usize> {
        self.await_abandoned().await;
        let colls: Vec<Arc<Collection>> =
            self.snapshot().all_collections().filter(|c| !c.building_indexes().is_empty()).cloned().collect();
        let mut n = 0;
        for seen in colls {
            let _alone = seen.shared.lock.exclusive(&self.env().clock).await;
            let Some(coll) = self.lookup_uuid(seen.uuid) else { continue };
            let coll = self.made_dormant(coll)?;
            let mut by_build: BTreeMap<Uuid, Vec<IndexSpec>> = BTreeMap::new();
            for i in coll.building_indexes() {
                if let Some(b) = i.building.as_ref().filter(|b| !b.active.load(Ordering::Acquire)) {
                    by_build.entry(b.uuid).or_default().push(i.spec.clone());
                }
            }
            for (uuid, specs) in by_build {
                self.spawn_build(self.activate(coll.clone(), specs, uuid)?);
                n += 1;
            }
        }
        Ok(n)
    }

    /// Registers a build as a log entry says; it stays dormant until its commit entry or [`Catalog::resume_builds`].
    pub(crate) fn apply_start_build(&self, e: &EntryView<'_>) -> Result<()> {
        let Some(coll) = e.ui.and_then(|u| self.lookup_uuid(u)) else { return Ok(()) };
        let uuid = match e.o.get("indexBuildUUID") {
            Some(pando_bson::Value::Binary { bytes, .. }) => Uuid::from_slice(bytes),
            _ => None,
        };
        let uuid = uuid.ok_or_else(|| Error::internal("an index build entry without UUID"))?;
        let mut parts = Parts::of(&coll);
        for spec in crate::apply::specs_of(e)? {
            if coll.index(&spec.name).is_none() {
                parts.indexes.push(Arc::new(self.unfinished_index(spec, uuid)?));
            }
        }
        self.apply_parts(e.ts, parts)
    }

    /// Builds indexes at once, nobody else writing: for unreplicated collections (`at` is `None`) and replays.
    pub(crate) fn build_in_place(
        &self,
        coll: &Arc<Collection>,
        specs: &[IndexSpec],
        at: Option<Timestamp>,
    ) -> Result<OpTime> {
        let mut unit = match at {
            Some(ts) => self.begin_applied(ts)?,
            None => self.begin_write(coll)?,
        };
        let mut current = coll.clone();
        for spec in specs {
            current = self.with_new_index(&unit, &current, spec.clone())?;
        }
        let new: Vec<Arc<Index>> =
            current.indexes.iter().filter(|i| specs.iter().any(|s| s.name == i.spec.name)).cloned().collect();
        let mut cursor = unit.txn.scan(coll.records, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
        let (mut builder, mut keys) = (KeyBuilder::default(), KeySet::default());
        while let Some((key, doc)) = cursor.next()? {
            let record = Record::of(&record_id::from_storage_key(coll.is_clustered(), &key)?);
            for index in &new {
                index.keys.keys(RawDoc::trusted(&doc), &mut builder, &mut keys)?;
                index_entries::note_arrays(&mut unit, &current, index, &keys);
                for k in keys.iter() {
                    index_entries::apply(&mut unit, &current, index, &record, index_entries::Change::Add, k)?;
                }
            }
        }
        unit.take_unwritten_marks();
        let (txn, marks) = unit.txn_and_marks();
        durable::put_row(txn, &current, marks.iter())?;
        let last = unit.commit()?;
        self.publish(|s| s.put(Named::Collection(current)));
        Ok(last)
    }
}

fn is_of(index: &Index, build: Uuid) -> bool {
    index.building.as_ref().is_some_and(|b| b.uuid == build)
}

/// Steps 2 to 4.
struct Runner {
    catalog: Catalog,
    job: Arc<Job>,
}

impl Runner {
    fn collection(&self) -> Result<Arc<Collection>> {
        self.catalog
            .lookup_uuid(self.job.collection)
            .ok_or_else(|| Error::new(ErrorCode::IndexBuildAborted, "collection dropped"))
    }

    async fn run(&self, scan: Txn) -> Result<OpTime> {
        while self.catalog.0.builds.held.get().is_some_and(|held| held()) {
            self.job.check_stop()?;
            self.catalog.env().clock.sleep(Duration::from_millis(limits::INTERRUPT_CHECK_MS)).await;
        }
        let coll = self.collection()?;
        let memory = limits::INDEX_BUILD_MEMORY_BYTES / self.job.names.len().max(1);
        let mut targets: Vec<Target> = coll
            .building_indexes()
            .iter()
            .filter_map(|i| {
                let build = i.building.clone().filter(|b| b.uuid == self.job.uuid)?;
                Some(Target::new(&self.catalog, i.clone(), build, memory))
            })
            .collect();
        self.scan(&coll, &scan, &mut targets).await?;
        let visible_from = scan.read_ts();
        drop(scan);
        for t in &mut targets {
            t.build.progress.enter(Phase::Loading);
            self.load(&coll, t, visible_from).await?;
        }
        targets.iter().for_each(|t| t.build.progress.enter(Phase::Draining));
        while self.drain_some(&coll, &mut targets)? {
            self.pause().await?;
        }
        let alone = coll.shared.lock.exclusive(&self.catalog.env().clock);
        let _alone = self.catalog.unless_interrupted(&*self.job, alone).await?;
        self.job.check_stop()?;
        let coll = self.collection()?;
        while self.drain_some(&coll, &mut targets)? {}
        self.commit(&coll, &mut targets)
    }

    async fn pause(&self) -> Result<()> {
        self.job.check_stop()?;
        self.catalog.await_room(&*self.job).await?;
        self.catalog.env().tasks.yield_now().await;
        Ok(())
    }

    async fn scan(&self, coll: &Collection, scan: &Txn, targets: &mut [Target]) -> Result<()> {
        let mut cursor = scan.scan(coll.records, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
        let (mut builder, mut keys) = (KeyBuilder::default(), KeySet::default());
        loop {
            let (mut docs, mut bytes) = (0, 0);
            while docs < limits::INDEX_BUILD_STEP_DOCS && bytes < limits::INDEX_BUILD_STEP_BYTES {
                if !cursor.advance()? {
                    return Ok(());
                }
                docs += 1;
                bytes += cursor.value().len();
                let record = Record::of(&record_id::from_storage_key(coll.is_clustered(), cursor.key())?);
                for t in targets.iter_mut() {
                    t.add(&record, RawDoc::trusted(cursor.value()), &mut builder, &mut keys)?;
                }
            }
            for t in targets.iter() {
                t.build.progress.docs_done.fetch_add(docs as u64, Ordering::Relaxed);
            }
            self.pause().await?;
        }
    }

    async fn load(&self, coll: &Collection, t: &mut Target, visible_from: Timestamp) -> Result<()> {
        let Some(mut load) = t.load(&self.catalog, visible_from)? else { return Ok(()) };
        while load.some(coll, t)? {
            self.pause().await?;
        }
        load.finish()
    }

    /// Applies a part of the side tables; false when they were empty.
    fn drain_some(&self, coll: &Collection, targets: &mut [Target]) -> Result<bool> {
        let mut any = false;
        for t in targets.iter_mut() {
            let mut unit = self.catalog.begin_unit(true)?;
            let mut cursor = unit.txn.scan(t.build.side, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
            let (mut rows, mut bytes) = (Vec::new(), 0);
            while rows.len() < limits::INDEX_BUILD_STEP_DOCS && bytes < limits::INDEX_BUILD_STEP_BYTES {
                let Some(row) = cursor.next()? else { break };
                bytes += row.1.len();
                rows.push(row);
            }
            if rows.is_empty() {
                continue;
            }
            any = true;
            unit.stamp();
            for (seq, row) in &rows {
                let row = SideRow::decode(row).ok_or_else(|| Error::internal("damaged side table row"))?;
                t.apply(coll, &mut unit.txn, &row)?;
                unit.txn.delete(t.build.side, seq)?;
            }
            unit.log_noop("index build")?;
            unit.commit()?;
            t.build.progress.side_applied.fetch_add(rows.len() as u64, Ordering::Relaxed);
        }
        Ok(any)
    }

    /// Step 4, alone with the collection.
    fn commit(&self, coll: &Arc<Collection>, targets: &mut [Target]) -> Result<OpTime> {
        let mut unit = self.catalog.begin_write(coll)?;
        unit.stamp();
        for t in targets.iter_mut() {
            t.settle_doubts(coll, &mut unit.txn)?;
        }
        let (current, marks) = made_ready(coll, targets, unit.ts())?;
        durable::put_row(&mut unit.txn, &current, marks.iter())?;
        marks.into_iter().for_each(|m| unit.note_marks(m));
        unit.observe(&Defined::BuildCommitted {
            coll: &current,
            build: self.job.uuid,
            specs: &self.job.specs,
        })?;
        let last = unit.commit()?;
        self.catalog.publish(|s| s.put(Named::Collection(current)));
        for t in targets.iter() {
            self.catalog.storage().drop_ident(t.build.side, last.ts);
        }
        Ok(last)
    }
}
