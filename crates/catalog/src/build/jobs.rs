//! The builds of this process, as data: what a build's task shares with those who want something of it.

use crate::build::slots::Slots;
use crate::build::target::Target;
use crate::write::interrupt::Interrupt;
use pando_base::panics::poisoned;
use pando_base::patience::Operation;
use pando_base::{Error, ErrorCode, OpTime, Result, Uuid};
use pando_env::Env;
use pando_env::sync::Notify;
use pando_index::IndexSpec;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// A running build: what its task and those who wait for it share.
pub(crate) struct Job {
    pub(crate) uuid: Uuid,
    pub(crate) collection: Uuid,
    pub(crate) specs: Vec<IndexSpec>,
    /// The task ends with this: the log has said it, or the indexes stay unfinished.
    stop: Mutex<Option<Error>>,
    /// Somebody does not want the build any more. Only a primary can give it up: elsewhere the log decides.
    unwanted: Mutex<Option<Error>>,
    /// Why this member cannot make its part.
    failed: Mutex<Option<Error>>,
    /// A primary may give it up.
    pub(crate) may_abort: AtomicBool,
    /// This member has its part.
    pub(crate) ready: AtomicBool,
    /// A primary may commit.
    pub(crate) permitted: AtomicBool,
    /// The log says commit: who applies that wants the indexes.
    pub(crate) claimed: AtomicBool,
    /// For who claimed them, as far as they are, or why they could not be made here.
    desk: Mutex<Option<Result<Vec<Target>>>>,
    outcome: Mutex<Option<Result<OpTime>>>,
    pub(crate) changed: Notify,
}

/// Says whether builds stand still at their beginning, or fail there.
pub(crate) type Held = Box<dyn Fn() -> Result<bool> + Send + Sync>;

/// Builds that run in this process.
#[derive(Default)]
pub(crate) struct Builds {
    jobs: Mutex<BTreeMap<Uuid, Arc<Job>>>,
    pub(crate) slots: Arc<Slots>,
    pub(crate) held: OnceLock<Held>,
    /// Somebody decides when a primary commits; without one each build does so when it is ready.
    pub(crate) judged: AtomicBool,
    /// A build has begun, has its part, or is over.
    pub(crate) news: Notify,
}

/// A build of this process, as others see it.
#[derive(Clone, Debug)]
pub struct BuildView {
    pub uuid: Uuid,
    pub collection: Uuid,
    pub names: Vec<String>,
    /// This member has its part: it may vote.
    pub ready: bool,
    /// It cannot make its part.
    pub failed: Option<Error>,
    /// Somebody does not want it any more.
    pub unwanted: bool,
}

impl Builds {
    pub(crate) fn jobs(&self) -> std::sync::MutexGuard<'_, BTreeMap<Uuid, Arc<Job>>> {
        self.jobs.lock().unwrap_or_else(poisoned)
    }
    pub(crate) fn all(&self) -> Vec<Arc<Job>> {
        self.jobs().values().cloned().collect()
    }
    pub(crate) fn of(&self, collection: Uuid) -> Vec<Arc<Job>> {
        self.jobs().values().filter(|j| j.collection == collection).cloned().collect()
    }
    pub(crate) fn get(&self, build: Uuid) -> Option<Arc<Job>> {
        self.jobs().get(&build).cloned()
    }
    pub(crate) fn is_held(&self) -> Result<bool> {
        self.held.get().map_or(Ok(false), |held| held())
    }
}

impl Interrupt for Job {
    fn check(&self) -> Result<()> {
        self.check_stop()
    }
}

/// Keys and sorts of a build end when it is asked to stop, and let others have this thread meanwhile.
pub(crate) struct JobWatch {
    pub(crate) job: Arc<Job>,
    pub(crate) env: Env,
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
    pub(crate) fn new(collection: Uuid, uuid: Uuid, specs: Vec<IndexSpec>) -> Job {
        Job {
            uuid,
            collection,
            specs,
            stop: Mutex::default(),
            unwanted: Mutex::default(),
            failed: Mutex::default(),
            may_abort: AtomicBool::new(false),
            ready: AtomicBool::new(false),
            permitted: AtomicBool::new(false),
            claimed: AtomicBool::new(false),
            desk: Mutex::default(),
            outcome: Mutex::default(),
            changed: Notify::new(),
        }
    }
    /// The first reason is the one.
    pub(crate) fn ask_to_stop(&self, why: Error) {
        self.stop.lock().unwrap_or_else(poisoned).get_or_insert(why);
        self.changed.bump();
    }
    pub(crate) fn check_stop(&self) -> Result<()> {
        self.stop.lock().unwrap_or_else(poisoned).clone().map_or(Ok(()), Err)
    }
    pub(crate) fn wish_away(&self, why: Error) {
        self.unwanted.lock().unwrap_or_else(poisoned).get_or_insert(why);
        self.changed.bump();
    }
    pub(crate) fn is_unwanted(&self) -> bool {
        self.unwanted.lock().unwrap_or_else(poisoned).is_some()
    }
    /// This node cannot tell the log that the build is given up: whoever wished that has to ask the next primary.
    pub(crate) fn forget_wish(&self) {
        self.may_abort.store(false, Ordering::Release);
        *self.unwanted.lock().unwrap_or_else(poisoned) = None;
        self.changed.bump();
    }
    /// True the first time.
    pub(crate) fn note_failed(&self, why: Error) -> bool {
        let mut failed = self.failed.lock().unwrap_or_else(poisoned);
        let first = failed.is_none();
        failed.get_or_insert(why);
        first
    }
    pub(crate) fn failure(&self) -> Option<Error> {
        self.failed.lock().unwrap_or_else(poisoned).clone()
    }
    /// Why a primary gives it up now. `judged`: somebody decides whether it may.
    pub(crate) fn to_give_up(&self, judged: bool) -> Option<Error> {
        if judged && !self.may_abort.load(Ordering::Acquire) {
            return None;
        }
        self.unwanted.lock().unwrap_or_else(poisoned).clone().or_else(|| self.failure())
    }
    pub(crate) fn is_claimed(&self) -> bool {
        self.claimed.load(Ordering::Acquire)
    }
    pub(crate) fn is_permitted(&self) -> bool {
        self.permitted.load(Ordering::Acquire)
    }
    /// True the first time.
    pub(crate) fn note_ready(&self) -> bool {
        !self.ready.swap(true, Ordering::AcqRel)
    }
    pub(crate) fn lay_out(&self, built: Result<Vec<Target>>) {
        *self.desk.lock().unwrap_or_else(poisoned) = Some(built);
        self.changed.bump();
    }
    pub(crate) fn is_laid_out(&self) -> bool {
        self.desk.lock().unwrap_or_else(poisoned).is_some()
    }
    pub(crate) fn take(&self) -> Option<Result<Vec<Target>>> {
        self.desk.lock().unwrap_or_else(poisoned).take()
    }
    pub(crate) fn outcome(&self) -> Option<Result<OpTime>> {
        self.outcome.lock().unwrap_or_else(poisoned).clone()
    }
    pub(crate) fn end(&self, outcome: Result<OpTime>) {
        self.outcome.lock().unwrap_or_else(poisoned).get_or_insert(outcome);
        self.changed.bump();
    }
    pub(crate) async fn finished(&self) -> Result<OpTime> {
        loop {
            let seen = self.changed.version();
            if let Some(outcome) = self.outcome() {
                return outcome;
            }
            self.changed.changed(seen).await;
        }
    }
}

/// A wait that ends when nobody wants the build any more.
pub(crate) struct WhileWanted<'a>(pub(crate) &'a Job);

impl Interrupt for WhileWanted<'_> {
    fn check(&self) -> Result<()> {
        self.0.check_stop()?;
        match self.0.is_unwanted() {
            true => Err(Error::new(ErrorCode::IndexBuildAborted, "nobody wants the index build any more")),
            false => Ok(()),
        }
    }
}
