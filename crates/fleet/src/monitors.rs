//! Monitors of sets: one for each set's name, made when somebody first asks and kept while anybody has it.

use crate::probe::Asker;
use pando_base::{Error, Millis, Result};
use pando_env::Env;
use pando_env::sync::Notify;
use pando_monitor::select::Criteria;
use pando_monitor::{Action, CallError, Core, Event, Set, Token, What};
use pando_rpc::{Connection, Failure, Kind, Options, Pool};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// All sets that this node knows, by name.
#[derive(Clone)]
pub struct Monitors(Arc<All>);

struct All {
    env: Env,
    options: Options,
    pool: Pool,
    sets: Mutex<BTreeMap<String, Weak<Inner>>>,
}

impl Monitors {
    /// `pool` is told of hosts whose connections are good for nothing; `options` are for the monitors' own connections.
    pub fn new(env: Env, options: Options, pool: Pool) -> Monitors {
        Monitors(Arc::new(All { env, options, pool, sets: Mutex::default() }))
    }
    /// How many sets are watched.
    pub fn watched(&self) -> usize {
        lock(&self.0.sets).values().filter(|set| set.strong_count() > 0).count()
    }
    /// The monitor of a set; hosts that it did not know are asked too.
    pub fn of<'a>(&self, name: &str, hosts: impl IntoIterator<Item = &'a str>) -> SetMonitor {
        let mut sets = lock(&self.0.sets);
        if let Some(inner) = sets.get(name).and_then(Weak::upgrade) {
            drop(sets);
            let monitor = SetMonitor(inner);
            let hosts: Vec<String> = hosts.into_iter().map(str::to_owned).collect();
            // Lists of shards are read often, and mostly say what they said before: no monitor is woken for that.
            if !lock(&monitor.0.state).core.knows(&hosts) {
                monitor.feed(Event::Seeds { hosts });
            }
            return monitor;
        }
        sets.retain(|_, set| set.strong_count() > 0);
        let core = Core::new(Set::new(name, hosts));
        let state = Mutex::new(State { core, answers: BTreeMap::new(), tokens: 0 });
        let All { env, options, pool, .. } = &*self.0;
        let (env, options, pool) = (env.clone(), options.clone(), pool.clone());
        let idle = Mutex::default();
        let inner =
            Arc::new(Inner { name: name.to_owned(), env, options, pool, state, wake: Notify::new(), idle });
        sets.insert(name.to_owned(), Arc::downgrade(&inner));
        drop(sets);
        inner.env.spawn("replica set monitor", drive(Arc::downgrade(&inner)));
        let monitor = SetMonitor(inner);
        monitor.feed(Event::Start);
        monitor
    }
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What came of a selection.
type Selected = Result<(String, u64)>;

struct State {
    core: Core,
    /// Of selections that wait: told through the notification.
    answers: BTreeMap<Token, (Notify, Option<Selected>)>,
    tokens: Token,
}

pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) env: Env,
    pub(crate) options: Options,
    pool: Pool,
    state: Mutex<State>,
    wake: Notify,
    /// Connections of probes that have ended well.
    pub(crate) idle: Mutex<BTreeMap<String, Connection>>,
}

/// One set's monitor. Cheap to clone; with the last one it ends.
#[derive(Clone)]
pub struct SetMonitor(Arc<Inner>);

/// A selection that is given up is taken back.
struct Waiting<'a>(&'a SetMonitor, Token);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if lock(&self.0.0.state).answers.remove(&self.1).is_some() {
            self.0.feed(Event::Cancel { token: self.1 });
        }
    }
}

impl SetMonitor {
    pub fn name(&self) -> &str {
        &self.0.name
    }
    /// What is known of the set at the moment.
    pub fn look(&self) -> Set {
        lock(&self.0.state).core.set().clone()
    }
    fn now(&self) -> Millis {
        self.0.now()
    }
    pub(crate) fn feed(&self, event: Event) {
        Inner::feed(&self.0, event);
    }

    /// A host that may answer, and its generation for [`SetMonitor::failed`]; waits at most `limit` for one.
    ///
    /// # Errors
    /// `FailedToSatisfyReadPreference` when there was none in time.
    pub async fn select(&self, criteria: Criteria, limit: Duration) -> Selected {
        let draw = self.0.env.rng.next_u64();
        if let Some(there) = lock(&self.0.state).core.selected(&criteria, draw) {
            return Ok(there);
        }
        let turn = Notify::new();
        let token = {
            let mut state = lock(&self.0.state);
            state.tokens += 1;
            let token = state.tokens;
            state.answers.insert(token, (turn.clone(), None));
            token
        };
        let _waiting = Waiting(self, token);
        let deadline = self.now().saturating_add(limit.as_millis().try_into().unwrap_or(Millis::MAX / 2));
        self.feed(Event::Select { token, criteria, deadline, draw });
        loop {
            let seen = turn.version();
            {
                let mut state = lock(&self.0.state);
                if let Some((_, answer @ Some(_))) = state.answers.get_mut(&token) {
                    let answer = answer.take();
                    state.answers.remove(&token);
                    return answer.unwrap_or_else(|| Err(Error::internal("an answer was lost")));
                }
            }
            turn.changed(seen).await;
        }
    }

    /// A call to `host` failed that was selected with `generation`.
    pub fn failed(&self, host: &str, generation: u64, failure: &Failure) {
        let what = match failure.kind {
            Kind::Refused | Kind::Reset | Kind::Unreachable | Kind::Protocol => What::Network,
            Kind::TimedOut => What::Timeout,
            Kind::Command => What::Code(failure.code()),
            // It says nothing of the peer, or nothing that asking again would mend.
            Kind::NotSent | Kind::Handshake => return,
        };
        let version = failure.reply.as_ref().and_then(|r| r.get("topologyVersion"));
        let topology_version =
            version.and_then(|v| v.as_doc()).and_then(pando_monitor::TopologyVersion::parse);
        let was_connected = failure.kind != Kind::Refused;
        let error = CallError { what, generation, was_connected, topology_version };
        self.feed(Event::Failed { host: host.to_owned(), error });
    }
}

impl Inner {
    fn now(&self) -> Millis {
        self.env.clock.mono().as_millis().try_into().unwrap_or(Millis::MAX)
    }
    /// Whether a probe is still wanted.
    pub(crate) fn wants(&self, host: &str, attempt: u64) -> bool {
        lock(&self.state).core.is_asking(host, attempt)
    }
    pub(crate) fn take_idle(&self, host: &str) -> Option<Connection> {
        lock(&self.idle).remove(host)
    }
    pub(crate) fn put_idle(&self, connection: Connection) {
        let host = connection.addr().to_owned();
        // Only of members: the map is no larger than the set.
        if connection.is_usable() && lock(&self.state).core.set().members.contains_key(&host) {
            lock(&self.idle).insert(host, connection);
        }
    }

    /// One event, and what the core wants done about it.
    pub(crate) fn feed(this: &Arc<Inner>, event: Event) {
        let mut actions = Vec::new();
        let mut turns = Vec::new();
        {
            let mut state = lock(&this.state);
            state.core.step(this.now(), event, &mut actions);
            actions.retain_mut(|action| {
                let (token, answer) = match action {
                    Action::Selected { token, host } => {
                        (*token, Ok((std::mem::take(host), state.core.generation(host))))
                    }
                    Action::NotFound { token, code, message } => {
                        (*token, Err(Error::new(*code, std::mem::take(message))))
                    }
                    _ => return true,
                };
                if let Some((turn, slot)) = state.answers.get_mut(&token) {
                    *slot = Some(answer);
                    turns.push(turn.clone());
                }
                false
            });
        }
        turns.iter().for_each(Notify::bump);
        for action in actions {
            this.carry_out(action);
        }
        this.wake.bump();
    }

    fn carry_out(self: &Arc<Inner>, action: Action) {
        match action {
            Action::Probe { host, attempt, known } => {
                let asker = Asker::new(self, host);
                self.env.spawn("replica set monitor", asker.probe(attempt, known));
            }
            Action::Ping { host } => {
                self.env.spawn("replica set monitor", Asker::new(self, host).ping());
            }
            Action::DropConnections { host, .. } => {
                self.pool.forget(&host);
                drop(self.take_idle(&host));
            }
            // Answered above; whoever keeps connection strings asks with `look`.
            Action::Selected { .. } | Action::NotFound { .. } => {}
            Action::MembersChanged { .. } | Action::PrimaryChanged { .. } => {}
        }
    }
}

/// Tells the core of the time.
async fn drive(set: Weak<Inner>) {
    loop {
        let Some(this) = set.upgrade() else { return };
        let seen = this.wake.version();
        let next = lock(&this.state).core.next_deadline();
        let wait = next.map_or(3_600_000, |at| (at - this.now()).max(0));
        let (env, wake) = (this.env.clone(), this.wake.clone());
        drop(this);
        let changed = async { wake.changed(seen).await };
        if wait > 0 && env.timeout(Duration::from_millis(wait as u64), changed).await.is_some() {
            continue;
        }
        let Some(this) = set.upgrade() else { return };
        Inner::feed(&this, Event::Tick);
    }
}
