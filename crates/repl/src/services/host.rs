//! Runs workflows on a primary (R-POS-2..4).
//!
//! ```text
//!   paused ──step-up──► rebuilding: the term's first entry on a majority, documents read ──► running
//!      ▲                    │                                                                  │
//!      └────────────────────┴─────────── step-down: everything is interrupted ◄────────────────┘
//! ```
//! An instance is known by the `_id` of its state document. Its workflow decides; the host has its orders carried out,
//! and starts again where the last checkpoint was, on whichever node is primary. Before a node rebuilds, everything it
//! ran in an earlier term has ended: one instance never runs twice on a node, and two nodes never both pass the write
//! gate. Who joins, who conflicts and how many there may be is decided by [`pando_workflows::table`].

use super::ReplicaSetAware;
use super::drive::{End, drive};
use super::hands::{InstanceHands, check_size};
use super::store::{Held, Store};
use crate::data::Stop;
use pando_base::panics::poisoned;
use pando_base::{Error, ErrorCode, Namespace, Result, Term};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_env::sync::Notify;
use pando_env::{Component, Env};
use pando_workflows::table::Key;
use pando_workflows::{Home, Restore, Running, Table};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

/// A kind of workflow.
#[derive(Clone, Debug)]
pub struct Service {
    pub name: &'static str,
    /// Where its state documents are.
    pub ns: Namespace,
    pub restore: Restore,
    /// Of a new instance's document, what it must have in common with the one that runs to join it.
    pub options: fn(&RawDoc) -> DocBuf,
}

#[derive(Clone, Debug)]
enum State {
    Paused,
    Rebuilding,
    Running,
    /// The documents could not be read: nothing runs in this term.
    Failed(Error),
}

impl State {
    fn text(&self) -> &'static str {
        match self {
            State::Paused => "paused",
            State::Rebuilding => "rebuilding",
            State::Running => "running",
            State::Failed(_) => "rebuildFailed",
        }
    }
}

struct Inner {
    state: State,
    term: Term,
    /// Of this term's tasks.
    stop: Stop,
    instances: Table<Arc<Instance>>,
}

pub struct Host {
    env: Env,
    store: Arc<dyn Store>,
    services: Vec<Service>,
    inner: Mutex<Inner>,
    changed: Notify,
    /// For its own tasks.
    me: Weak<Host>,
}

/// One workflow under way, or just ended.
pub struct Instance {
    /// `{_id: …}`.
    id: DocBuf,
    /// The last checkpoint.
    durable: Mutex<DocBuf>,
    nudges: AtomicU64,
    /// Somebody wants it to end.
    aborted: OnceLock<Error>,
    changed: Notify,
    ended: OnceLock<Result<DocBuf>>,
}

impl Instance {
    fn new(state: &RawDoc) -> Result<Instance> {
        let id = state.elem("_id").ok_or_else(|| Error::bad_value("a state document needs an _id"))?;
        let mut b = DocBuilder::new();
        b.elem(id);
        Ok(Instance {
            id: b.finish(),
            durable: Mutex::new(state.to_buf()),
            nudges: AtomicU64::new(0),
            aborted: OnceLock::new(),
            changed: Notify::new(),
            ended: OnceLock::new(),
        })
    }
    /// The state document as last checkpointed (or handed in, before the first checkpoint).
    pub fn state(&self) -> DocBuf {
        self.durable.lock().unwrap_or_else(poisoned).clone()
    }
    pub(super) fn id(&self) -> &RawDoc {
        &self.id
    }
    pub(super) fn checkpointed(&self, doc: DocBuf) {
        *self.durable.lock().unwrap_or_else(poisoned) = doc;
        self.changed.bump();
    }
    /// Returns when somebody has said so since the last time.
    pub(super) async fn nudged(&self) {
        loop {
            let seen = self.changed.version();
            if self.nudges.swap(0, SeqCst) > 0 {
                return;
            }
            self.changed.changed(seen).await;
        }
    }
    /// Lets a waiting workflow go on.
    pub fn nudge(&self) {
        self.nudges.fetch_add(1, SeqCst);
        self.changed.bump();
    }
    /// Somebody wants it to end, for that reason; the workflow decides. Only the first word counts.
    pub fn abort(&self, why: Error) {
        let _ = self.aborted.set(why);
        self.changed.bump();
    }
    async fn told_to_end(&self) -> Error {
        loop {
            let seen = self.changed.version();
            if let Some(why) = self.aborted.get() {
                return why.clone();
            }
            self.changed.changed(seen).await;
        }
    }
    /// Returns when what was checkpointed last looks so, or, with false, when it has ended before.
    pub async fn when(&self, looks_so: impl Fn(&RawDoc) -> bool) -> bool {
        loop {
            let seen = self.changed.version();
            if looks_so(&self.state()) {
                return true;
            }
            if self.ended.get().is_some() {
                return false;
            }
            self.changed.changed(seen).await;
        }
    }
    /// The workflow's result; 11602 when this node stops being primary before.
    pub async fn result(&self) -> Result<DocBuf> {
        loop {
            let seen = self.changed.version();
            if let Some(result) = self.ended.get() {
                return result.clone();
            }
            self.changed.changed(seen).await;
        }
    }
    fn end(&self, result: Result<DocBuf>) {
        let _ = self.ended.set(result);
        self.changed.bump();
    }
}

fn not_primary(service: &str) -> Error {
    let text = format!("not primary: {service} runs on a primary only");
    Error::new(ErrorCode::NotWritablePrimary, text)
}
fn interrupted() -> Error {
    let text = "the workflow goes on on the next primary";
    Error::new(ErrorCode::InterruptedDueToReplStateChange, text)
}

impl Host {
    pub fn new(env: Env, store: Arc<dyn Store>, services: Vec<Service>) -> Arc<Host> {
        let inner =
            Inner { state: State::Paused, term: -1, stop: Stop::default(), instances: Table::default() };
        Arc::new_cyclic(|me| Host {
            env,
            store,
            services,
            inner: Mutex::new(inner),
            changed: Notify::new(),
            me: me.clone(),
        })
    }
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(poisoned)
    }
    fn service(&self, name: &str) -> Result<usize> {
        let found = self.services.iter().position(|s| s.name == name);
        found.ok_or_else(|| Error::internal(format!("no primary-only service {name}")))
    }
    /// Name, state and number of instances of each service (`serverStatus.repl.primaryOnlyServices`).
    pub fn counts(&self) -> Vec<(&'static str, &'static str, usize)> {
        let inner = self.lock();
        let all = self.services.iter().enumerate();
        all.map(|(i, s)| (s.name, inner.state.text(), inner.instances.count(i))).collect()
    }

    /// Waits out a rebuild, then looks under the lock.
    async fn when_running<T>(&self, name: &str, look: impl Fn(&mut Inner) -> Result<T>) -> Result<T> {
        loop {
            let seen = self.changed.version();
            {
                let mut inner = self.lock();
                match &inner.state {
                    State::Running => return look(&mut inner),
                    State::Paused => return Err(not_primary(name)),
                    State::Failed(e) => return Err(e.clone()),
                    State::Rebuilding => {}
                }
            }
            self.changed.changed(seen).await;
        }
    }
    /// The running instance with this `{_id: …}`.
    pub async fn find(&self, name: &str, id: &RawDoc) -> Result<Option<Arc<Instance>>> {
        let key = (self.service(name)?, id.as_bytes().to_vec());
        self.when_running(name, |inner| Ok(inner.instances.get(&key).cloned())).await
    }
    /// All that run.
    pub async fn all(&self, name: &str) -> Result<Vec<Arc<Instance>>> {
        let at = self.service(name)?;
        self.when_running(name, |inner| Ok(inner.instances.of(at).cloned().collect())).await
    }
    /// The running instance with the document's `_id`, or a new one that begins with this document; 117 where one runs with
    /// other options.
    pub async fn start(&self, name: &str, state: &RawDoc) -> Result<Arc<Instance>> {
        let at = self.service(name)?;
        check_size(state)?;
        (self.services[at].restore)(state)?;
        let options = (self.services[at].options)(state);
        let join_or_add = |inner: &mut Inner| {
            let instance = Instance::new(state)?;
            let key = (at, instance.id.as_bytes().to_vec());
            if let Some(running) = inner.instances.ask(&key, options.as_bytes())? {
                return Ok(running.clone());
            }
            self.add(inner, key, instance, state, Held::default())
        };
        self.when_running(name, join_or_add).await
    }
    fn add(
        &self,
        inner: &mut Inner,
        key: Key,
        instance: Instance,
        state: &RawDoc,
        held: Held,
    ) -> Result<Arc<Instance>> {
        let service = &self.services[key.0];
        let running = Running::new((service.restore)(state)?, Home::Primary);
        let Some(host) = self.me.upgrade() else { return Err(interrupted()) };
        let instance = Arc::new(instance);
        let options = (service.options)(state).as_bytes().to_vec();
        inner.instances.add(key.clone(), options, instance.clone());
        let (task, stop) = (instance.clone(), inner.stop.clone());
        let run = async move { host.run(key, task, running, held, stop).await };
        inner.stop.spawn(&self.env, "workflow", run);
        Ok(instance)
    }

    async fn run(&self, key: Key, instance: Arc<Instance>, running: Running, held: Held, stop: Stop) {
        let hands = InstanceHands {
            env: &self.env,
            store: &*self.store,
            service: &self.services[key.0],
            instance: &instance,
            stop: &stop,
            held: Mutex::new(held),
        };
        let told = Box::pin(instance.told_to_end());
        let end = stop.unless_asked(drive(&self.env, &hands, running, told)).await;
        drop(hands);
        let result = match end {
            Some(End::Result(result)) => result,
            Some(End::Abandoned(_)) | None => Err(interrupted()),
        };
        self.lock().instances.remove_if(&key, |i| Arc::ptr_eq(i, &instance));
        instance.end(result);
    }

    /// At a step-up: everything that has a document runs again.
    async fn rebuild(&self, term: Term, before: Stop, stop: Stop) {
        before.wait_ended().await;
        let read = async {
            self.store.first_of_term_committed().await?;
            let mut found = Vec::new();
            for (at, service) in self.services.iter().enumerate() {
                for doc in self.store.load(&service.ns)? {
                    let held = self.held_by(service, &doc).await?;
                    found.push((at, doc, held));
                }
            }
            Ok(found)
        };
        let Some(read) = stop.unless_asked(read).await else { return };
        let mut inner = self.lock();
        if inner.term != term || stop.is_asked() {
            return;
        }
        let started = read.and_then(|found| {
            found.into_iter().try_for_each(|(at, doc, held)| {
                let instance = Instance::new(&doc)?;
                let key = (at, instance.id.as_bytes().to_vec());
                match inner.instances.get(&key) {
                    Some(_) => Ok(()),
                    None => self.add(&mut inner, key, instance, &doc, held).map(drop),
                }
            })
        });
        let instances = inner.instances.len();
        inner.state = match started {
            Ok(()) => State::Running,
            Err(e) => State::Failed(e),
        };
        drop(inner);
        self.changed.bump();
        self.env.log.info(Component::Repl, 5123005, "Primary-only services rebuilt", |a| {
            a.i64("term", term).u64("numInstances", instances as u64);
        });
    }

    /// Locks that an instance held when it was checkpointed. Nobody else is let in before it has them again; whoever of this node's
    /// earlier office still has one is on the way out.
    async fn held_by(&self, service: &Service, doc: &RawDoc) -> Result<Held> {
        let mut held = Held::default();
        for (resource, level) in (service.restore)(doc)?.holds() {
            let guard = self.store.lock(&resource, level).await?;
            held.locked(resource, guard);
        }
        Ok(held)
    }
    /// Returns when whatever was found at the step-up has its locks.
    pub async fn ready(&self) -> Result<()> {
        self.when_running("this operation", |_| Ok(())).await
    }

    fn pause(&self) {
        let mut inner = self.lock();
        inner.state = State::Paused;
        inner.stop.ask();
        // Each ends itself; lookups must not find them any more.
        inner.instances.clear();
        drop(inner);
        self.changed.bump();
    }
}

impl ReplicaSetAware for Host {
    fn name(&self) -> &'static str {
        "workflows"
    }
    fn on_step_up_complete(&self, term: Term) {
        let Some(host) = self.me.upgrade() else { return };
        let stop = Stop::default();
        let before = {
            let mut inner = self.lock();
            inner.state = State::Rebuilding;
            inner.term = term;
            std::mem::replace(&mut inner.stop, stop.clone())
        };
        // Counted as one of the term's own tasks: the next term waits for it too.
        let mine = stop.clone();
        stop.spawn(&self.env, "primary-only services", async move {
            host.rebuild(term, before, mine).await;
        });
    }
    fn on_step_down(&self) {
        self.pause();
    }
    fn on_shutdown(&self) {
        self.pause();
    }
}
