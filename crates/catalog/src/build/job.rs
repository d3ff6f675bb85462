//! Builds under way: a task each, and what it shares with those who want something of it.
//!
//! ```text
//!   building ──► ready: this member votes ──┬─ permitted, and this node is primary ──► committed here, told to the log
//!      │                    ▲ drains on ────┤
//!      │                                    └─ claimed: the log says commit ─────────► finished by whoever applies it
//!      └── unwanted, or failed: given up where that is permitted and this node is primary, told to the log
//! ```
//! Whoever wants a build away only wishes so, and a part that fails is only told: the task stays until the log knows, so
//! that a member which is primary no more still has its part, or its failure, to tell. A task that is told to stop ends
//! without a word.
//!
//! The task takes only the collection's lock, never the database's: a drop that waits for the build to stop holds the
//! latter. A task belongs to no role; only what ends it does.

use crate::Catalog;
use crate::build::entries;
use crate::build::jobs::{BuildView, Job, JobWatch};
use crate::build::run::Runner;
use crate::build::slots::Slot;
use crate::build::target::Target;
use crate::catalog::Whose;
use crate::schema::collection::{Collection, Index};
use crate::schema::durable::{self, Parts};
use crate::schema::snapshot::Named;
use crate::write::interrupt::Interrupt;
use crate::write::observer::Defined;
use pando_base::codes::class;
use pando_base::redaction::WithCode;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, Uuid, limits, patience};
use pando_bson::{DocBuilder, RawDoc};
use pando_env::log::Component;
use pando_env::sync::Notify;
use pando_index::IndexSpec;
use pando_storage::{ReadAt, Txn};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A wait that ends with this node's office.
struct WhileLeading<'a>(&'a Catalog, &'a Job);

impl Interrupt for WhileLeading<'_> {
    fn check(&self) -> Result<()> {
        self.1.check_stop()?;
        match self.0.gate().is_open() && !self.1.is_claimed() {
            true => Ok(()),
            false => Err(Error::new(ErrorCode::NotWritablePrimary, "not primary")),
        }
    }
}

fn aborted(why: impl Into<String>) -> Error {
    Error::new(ErrorCode::IndexBuildAborted, why.into())
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
    /// Step 1 on a primary. The collection and a database must be locked.
    pub(crate) fn start_build(
        &self,
        coll: &Arc<Collection>,
        specs: Vec<IndexSpec>,
        uuid: Uuid,
        quorum: &RawDoc,
        slot: Slot,
    ) -> Result<Registered> {
        let entries = self.try_write_lock(&entries::ns())?;
        let mut unit = self.begin_write(coll)?;
        if let Some(entries) = entries.filter(|e| e.replicated) {
            entries::add(&mut unit, &entries, uuid, coll.uuid, quorum, &specs)?;
        }
        unit.stamp();
        let mut parts = Parts::of(coll);
        for spec in &specs {
            parts.indexes.push(Arc::new(self.unfinished_index(spec.clone(), uuid)?));
        }
        let current = parts.assemble()?;
        durable::put_row(&mut unit.txn, &current, [].iter())?;
        unit.observe(&Defined::BuildStarted { coll: &current, build: uuid, specs: &specs })?;
        unit.commit()?;
        self.publish(|s| s.put(Named::Collection(current.clone())));
        let mut registered = self.register(&current, specs, uuid)?;
        registered.slot = Some(slot);
        Ok(registered)
    }

    /// Side writes happen already; the snapshot of the scan is taken. The collection's definition must stand still.
    pub(crate) fn register(
        &self,
        current: &Collection,
        specs: Vec<IndexSpec>,
        uuid: Uuid,
    ) -> Result<Registered> {
        let scan = self.storage().begin(ReadAt::Latest)?;
        for index in current.building_indexes() {
            if let Some(b) = index.building.as_ref().filter(|b| b.uuid == uuid) {
                b.progress.docs_total.store(current.count(), Ordering::Relaxed);
                b.begun.store(true, Ordering::Release);
            }
        }
        self.env().log.info(Component::Index, 20384, "Index build: starting", |a| {
            a.show("buildUUID", uuid);
            a.show("collectionUUID", current.uuid);
            a.show("namespace", &current.ns);
            a.u64("numSpecs", specs.len() as u64);
        });
        let job = Arc::new(Job::new(current.uuid, uuid, specs));
        self.0.builds.jobs().insert(uuid, job.clone());
        Ok(Registered { job, scan, slot: None })
    }

    /// Steps 2 to 4 in a task; waits for the outcome. An interruption aborts the build, unless it is a change of role: then
    /// the build goes on without its caller.
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
                if e.code.is(class::NOT_PRIMARY | class::RECOVERING | class::SHUTDOWN) {
                    return Err(e);
                }
                self.wish_away(&job, aborted(e.message.to_string()));
                stopped = Some(e);
            }
            if let Some(why) = stopped.take_if(|_| patience == 0) {
                // Somebody holds the collection's lock for long; the build goes when it is free.
                return Err(why);
            }
            patience -= usize::from(stopped.is_some());
            self.env()
                .timeout(Duration::from_millis(limits::INTERRUPT_CHECK_MS), job.changed.changed(seen))
                .await;
        }
    }

    pub(crate) fn spawn_build(&self, build: Registered) {
        let catalog = self.clone();
        self.0.builds.news.bump();
        self.env().spawn("index-build", async move {
            let job = build.job.clone();
            let runner = Runner { catalog: catalog.clone(), job: job.clone() };
            let watch = Arc::new(JobWatch { job: job.clone(), env: catalog.env().clone() });
            let outcome = patience::within(watch, Box::pin(runner.run(build.scan))).await;
            let builds = &catalog.0.builds;
            builds.jobs().remove(&job.uuid);
            drop(build.slot);
            job.end(outcome);
            builds.news.bump();
        });
    }

    /// `maxNumActiveUserIndexBuilds`.
    pub fn set_active_builds_max(&self, n: usize) {
        self.0.builds.slots.set_max(n);
    }
    /// For tests: builds that have been registered wait while `held` says so; with an error this member's part fails.
    pub fn hold_builds_while(&self, held: impl Fn() -> Result<bool> + Send + Sync + 'static) {
        let _ = self.0.builds.held.set(Box::new(held));
    }
    /// From now on a primary commits a build only when [`Catalog::permit_build`] was called for it, and gives it up only after
    /// [`Catalog::permit_abort`].
    pub fn judge_builds(&self) {
        self.0.builds.judged.store(true, Ordering::Release);
    }
    /// Bumped when a build of this process begins, has its part, or is over.
    pub fn build_news(&self) -> &Notify {
        &self.0.builds.news
    }
    /// Builds of this process.
    pub fn builds(&self) -> Vec<BuildView> {
        let view = |j: Arc<Job>| BuildView {
            uuid: j.uuid,
            collection: j.collection,
            names: j.specs.iter().map(|s| s.name.clone()).collect(),
            ready: j.ready.load(Ordering::Acquire),
            failed: j.failure(),
            unwanted: j.is_unwanted(),
        };
        self.0.builds.all().into_iter().map(view).collect()
    }
    /// The commit quorum is met: this primary commits the build when it has its own part.
    pub fn permit_build(&self, build: Uuid) {
        if let Some(job) = self.0.builds.get(build) {
            job.permitted.store(true, Ordering::Release);
            job.changed.bump();
        }
    }
    fn wish_away(&self, job: &Job, why: Error) {
        job.wish_away(why);
        self.0.builds.news.bump();
    }
    /// Somebody does not want a build any more; false where none runs.
    pub fn unwanted_build(&self, build: Uuid, why: Error) -> bool {
        let job = self.0.builds.get(build);
        job.inspect(|job| self.wish_away(job, why)).is_some()
    }
    /// A primary gives the build up, if somebody wishes so or its own part failed.
    pub fn permit_abort(&self, build: Uuid) {
        if let Some(job) = self.0.builds.get(build) {
            job.may_abort.store(true, Ordering::Release);
            job.changed.bump();
        }
    }
    /// Whoever did not want the build any more is not heard: this node is not primary.
    pub fn keep_build(&self, build: Uuid) {
        if let Some(job) = self.0.builds.get(build) {
            job.forget_wish();
        }
    }
    /// Whether a collection has unfinished indexes of this build.
    pub fn is_unfinished(&self, build: Uuid) -> bool {
        self.snapshot().all_collections().any(|c| c.building_indexes().iter().any(|i| i.is_of(build)))
    }

    /// Takes unfinished indexes out again.
    pub(crate) async fn abort_build(&self, job: &Job, cause: &Error) -> Result<()> {
        self.env().log.info(Component::Index, 4656003, "Aborting index build", |a| {
            a.show("buildUUID", job.uuid);
            a.data("error", &WithCode(cause));
        });
        let Some(coll) = self.lookup_uuid(job.collection) else { return Ok(()) };
        let alone = coll.shared.lock.exclusive(&self.env().clock);
        let _alone = self.unless_interrupted(&WhileLeading(self, job), alone).await?;
        let Some(coll) = self.lookup_uuid(job.collection) else { return Ok(()) };
        let mine: Vec<Arc<Index>> =
            coll.building_indexes().iter().filter(|i| i.is_of(job.uuid)).cloned().collect();
        let mut b = DocBuilder::new();
        b.bool("ok", false);
        b.i32("code", cause.code.0);
        b.str("codeName", &cause.code.name());
        b.str("errmsg", &cause.message);
        let cause = b.finish();
        let mut unit = self.begin_write(&coll)?;
        unit.stamp();
        let mut parts = Parts::of(&coll);
        parts.indexes.retain(|i| !i.is_of(job.uuid));
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

    /// Gives up every build of a collection that is about to go, and waits until none of its indexes is unfinished: also those that nobody
    /// works on, because a task ended without a word, or because this node leads and has not taken them up yet.
    pub async fn abort_builds(&self, ns: &Namespace, why: &str) -> Result<()> {
        let Some(coll) = self.lookup(ns) else { return Ok(()) };
        let mut tries = limits::INDEX_BUILD_GIVEN_UP_TRIES;
        loop {
            for job in self.0.builds.of(coll.uuid) {
                match self.give_up(&job, why).await? {
                    Some(e) if tries == 0 => return Err(e),
                    left => tries -= usize::from(left.is_some()),
                }
            }
            let Some(now) = self.lookup_uuid(coll.uuid) else { return Ok(()) };
            if now.building_indexes().is_empty() {
                return Ok(());
            }
            self.check_leads()?;
            self.take_up(&now).await?;
        }
    }
    fn check_leads(&self) -> Result<()> {
        match self.gate().is_open() {
            true => Ok(()),
            false => Err(Error::new(ErrorCode::NotWritablePrimary, "not primary")),
        }
    }
    /// Returns why its task has ended without a word, if it has: its indexes are there still.
    async fn give_up(&self, job: &Job, why: &str) -> Result<Option<Error>> {
        self.wish_away(job, aborted(why));
        loop {
            let seen = job.changed.version();
            if let Some(outcome) = job.outcome() {
                // Its own caller reports the error.
                return Ok(outcome.err().filter(|_| self.is_unfinished(job.uuid)));
            }
            // Who may not wish it away any more has to ask the next primary.
            if !self.gate().is_open() || !job.is_unwanted() {
                job.forget_wish();
                return Err(Error::new(ErrorCode::NotWritablePrimary, "not primary"));
            }
            let look = Duration::from_millis(limits::INTERRUPT_CHECK_MS);
            self.env().timeout(look, job.changed.changed(seen)).await;
        }
    }

    /// Stops all builds and waits until they have stopped. Their indexes stay unfinished, for
    /// [`Catalog::resume_builds`] here or on another member.
    pub async fn end_builds(&self, why: &str) {
        for job in self.tell_builds_to_end(why) {
            // Its own caller reports the error.
            let _ = job.finished().await;
        }
    }
    /// The same without a wait.
    pub fn abandon_builds(&self, why: &str) {
        self.tell_builds_to_end(why);
    }
    fn tell_builds_to_end(&self, why: &str) -> Vec<Arc<Job>> {
        let jobs = self.0.builds.all();
        jobs.iter().for_each(|job| job.ask_to_stop(aborted(why)));
        jobs
    }
    /// The log says that a build is over: its task ends without a word.
    pub(crate) async fn end_build(&self, build: Uuid, why: &str) {
        if let Some(job) = self.0.builds.get(build) {
            job.ask_to_stop(aborted(why));
            let _ = job.finished().await;
        }
    }
    /// The same for all builds on a collection.
    pub(crate) async fn end_builds_on(&self, collection: Uuid, why: &str) {
        for job in self.0.builds.of(collection) {
            self.end_build(job.uuid, why).await;
        }
    }

    /// The log says that a build is committed: waits until this member has its part, which [`Catalog::claimed_build`] then
    /// gives.
    pub(crate) async fn claim_build(&self, build: Uuid) {
        let Some(job) = self.0.builds.get(build) else { return };
        job.claimed.store(true, Ordering::Release);
        job.changed.bump();
        loop {
            let seen = job.changed.version();
            if job.is_laid_out() || job.outcome().is_some() {
                return;
            }
            job.changed.changed(seen).await;
        }
    }
    /// What the task of a claimed build has made; `None` without one.
    pub(crate) fn claimed_build(&self, build: Uuid) -> Option<Result<Vec<Target>>> {
        self.0.builds.get(build).filter(|j| j.is_claimed())?.take()
    }
    /// A claimed build is over.
    pub(crate) fn end_claimed(&self, build: Uuid, outcome: Result<OpTime>) {
        let job = self.0.builds.jobs().remove(&build);
        if let Some(job) = job {
            job.end(outcome);
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
                self.env().timeout(Duration::from_millis(limits::INTERRUPT_CHECK_MS), job.finished()).await;
            }
        }
        Ok(())
    }

    /// Builds that run now: collection, build id, index names and counters, for `currentOp` and `listIndexes`.
    pub fn running_builds(&self) -> Vec<(Namespace, Uuid, Vec<Arc<Index>>)> {
        let mut out = Vec::new();
        for job in self.0.builds.all() {
            if let Some(c) = self.lookup_uuid(job.collection) {
                let indexes = c.building_indexes().iter().filter(|i| i.is_of(job.uuid)).cloned().collect();
                out.push((c.ns.clone(), job.uuid, indexes));
            }
        }
        out
    }

    /// Indexes of builds whose task has ended in the middle start afresh; what writers leave for them goes on. The
    /// collection's definition must stand still.
    fn made_dormant(&self, coll: Arc<Collection>, at_work: &BTreeSet<Uuid>) -> Result<Arc<Collection>> {
        let mut parts = Parts::of(&coll);
        let mut any = false;
        for index in &mut parts.indexes {
            let begun = |b: &&Arc<crate::build::state::Build>| b.begun.load(Ordering::Acquire);
            let Some(b) = index.building.as_ref().filter(begun) else { continue };
            if at_work.contains(&b.uuid) {
                continue;
            }
            any = true;
            b.progress.start_over();
            self.storage().drop_ident(index.ident, self.storage().last_committed());
            let ident = self.storage().create_ident(pando_storage::IdentKind::Index)?;
            *index = Arc::new(Index { ident, ..Index::clone(index) });
        }
        if !any {
            return Ok(coll);
        }
        let fresh = parts.assemble()?;
        self.publish(|s| s.put(Named::Collection(fresh.clone())));
        Ok(fresh)
    }

    /// Takes up unfinished builds that nobody works on, in the background. Nothing else may change definitions that the locks
    /// of collections do not hold back (on a member that follows: while nothing is applied). Returns how many.
    pub async fn resume_builds(&self) -> Result<usize> {
        // Those that were told to end have.
        for job in self.0.builds.all().iter().filter(|j| j.check_stop().is_err()) {
            let _ = job.finished().await;
        }
        let at_work = self.at_work();
        let idle = |i: &Arc<Index>| i.building.as_ref().is_some_and(|b| !at_work.contains(&b.uuid));
        let is_idle = |c: &&Arc<Collection>| c.building_indexes().iter().any(idle);
        let colls: Vec<Arc<Collection>> =
            self.snapshot().all_collections().filter(is_idle).cloned().collect();
        let mut n = 0;
        for coll in colls {
            n += self.take_up(&coll).await?;
        }
        Ok(n)
    }
    fn at_work(&self) -> BTreeSet<Uuid> {
        self.0.builds.jobs().keys().copied().collect()
    }
    /// The same of one collection.
    async fn take_up(&self, seen: &Collection) -> Result<usize> {
        let _alone = seen.shared.lock.exclusive(&self.env().clock).await;
        let Some(coll) = self.lookup_uuid(seen.uuid) else { return Ok(0) };
        let at_work = self.at_work();
        let coll = self.made_dormant(coll, &at_work)?;
        let mut by_build: BTreeMap<Uuid, Vec<IndexSpec>> = BTreeMap::new();
        for i in coll.building_indexes() {
            if let Some(b) = i.building.as_ref().filter(|b| !at_work.contains(&b.uuid)) {
                by_build.entry(b.uuid).or_default().push(i.spec.clone());
            }
        }
        let n = by_build.len();
        // It outlives whatever this handle was made for.
        let own = Catalog(self.0.clone(), None, Whose::Own);
        for (uuid, specs) in by_build {
            own.spawn_build(own.register(&coll, specs, uuid)?);
        }
        Ok(n)
    }
}
