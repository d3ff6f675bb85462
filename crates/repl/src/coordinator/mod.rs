//! The shell of the topology core: feeds it what happens, and carries out what it decides.
//!
//! ```text
//!   commands, replies of members, clock, log ──► Coordinator::tell ──► Core::step ──► actions
//!                                                       ▲                              │ at once: state, answers, positions
//!                                                       └── driver tasks ◄── lanes ◄───┘ the rest: calls, disk, role changes
//! ```
//!
//! Actions that only change what others may read here, or that answer somebody, are carried out while the core is
//! locked: nobody sees a half of them. What takes time goes into one of three lanes, each of which a task of its own works
//! through in order: calls to other members, which go out at once and wait for nothing; writes of votes and configurations;
//! changes of role. A slow disk, or a long drain, thus never holds a heartbeat back. What must not be said before a vote is
//! on disk the core itself says only afterwards.
//!
//! * [`effects`] — what the coordinator needs of the server around it;
//! * [`driver`] — the tasks: clock, queue;
//! * [`calls`] — questions to other members;
//! * [`wire`] — the protocol's messages as documents;
//! * [`upper`] — the data path's questions;
//! * [`answers`] — who waits for what.

mod answers;
mod calls;
mod driver;
pub mod effects;
mod notes;
mod upper;
pub mod wire;

pub use answers::Said;
pub use effects::Effects;

use crate::data::Progress;
use crate::state::Repl;
use answers::{Answers, Waiting};
use pando_base::panics::{self, poisoned};
use pando_base::{Error, ErrorCode, Millis, Result, limits};
use pando_env::Env;
use pando_env::sync::Notify;
use pando_rpc::{LoginAs, Options, Pool};
use pando_topology::write_concern::Want;
use pando_topology::{Action, Boot, Core, Event, Position, Positions};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

struct Inner {
    core: Core,
    answers: Answers,
    lanes: Lanes,
    /// The fetcher should look for another source.
    change_source: bool,
}

/// What waits for a task, in order within each lane.
#[derive(Default)]
struct Lanes {
    calls: VecDeque<Action>,
    disk: VecDeque<Action>,
    roles: VecDeque<Action>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lane {
    Calls,
    Disk,
    Roles,
}

impl Lanes {
    fn of(&mut self, lane: Lane) -> &mut VecDeque<Action> {
        match lane {
            Lane::Calls => &mut self.calls,
            Lane::Disk => &mut self.disk,
            Lane::Roles => &mut self.roles,
        }
    }
    fn push(&mut self, action: Action) {
        let lane = match &action {
            Action::SendHeartbeat { .. }
            | Action::SendVoteRequest { .. }
            | Action::SendStepUp { .. }
            | Action::FetchConfig { .. }
            | Action::CheckQuorum { .. } => Lane::Calls,
            Action::PersistVote { .. } | Action::PersistConfig { .. } => Lane::Disk,
            _ => Lane::Roles,
        };
        self.of(lane).push_back(action);
    }
}

/// One member's coordinator; lives as long as the server.
pub struct Coordinator {
    pub(crate) env: Env,
    pub(crate) repl: Arc<Repl>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) effects: Arc<dyn Effects>,
    pub(crate) pool: Pool,
    inner: Mutex<Inner>,
    /// Deadlines moved, or the queue is not empty.
    stepped: Notify,
    /// Unix time at the start less monotonic time at the start.
    epoch: Millis,
}

impl Coordinator {
    /// `boot` is what the disk said. Nothing happens before [`Coordinator::start`].
    pub fn new(
        env: Env,
        repl: Arc<Repl>,
        progress: Arc<Progress>,
        effects: Arc<dyn Effects>,
        boot: Boot,
        login: LoginAs,
    ) -> Arc<Coordinator> {
        let epoch = env.clock.wall_ms() - env.clock.mono().as_millis() as Millis;
        let options = Options { name: "ReplCoord", login, ..Options::default() };
        let inner = Inner {
            core: Core::new(boot),
            answers: Answers::default(),
            lanes: Lanes::default(),
            change_source: false,
        };
        let coordinator = Arc::new(Coordinator {
            pool: Pool::new(env.clone(), options),
            env,
            repl,
            progress,
            effects,
            inner: Mutex::new(inner),
            stepped: Notify::new(),
            epoch,
        });
        coordinator.show();
        coordinator
    }
    /// Connections to other members.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }
    /// Starts the tasks.
    pub fn start(self: &Arc<Self>) {
        driver::spawn(self);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(poisoned)
    }
    /// Milliseconds that never go back, close to Unix time.
    pub fn now(&self) -> Millis {
        self.epoch + self.env.clock.mono().as_millis() as Millis
    }
    /// Asks the core something that changes nothing.
    pub fn read<T>(&self, ask: impl FnOnce(&Core) -> T) -> T {
        ask(&self.lock().core)
    }

    /// Something happened.
    pub fn tell(&self, event: Event) {
        let mut inner = self.lock();
        self.step(&mut inner, event);
    }

    /// A question whose answer may take a while. Dropping the future gives up.
    pub async fn ask(&self, event: impl FnOnce(u64) -> Event) -> Said {
        let waiting = {
            let mut inner = self.lock();
            let (token, slot) = inner.answers.open();
            let waiting = Waiting { coordinator: self, token, slot };
            match event(token) {
                // Its disk does not keep up with what it promises.
                Event::VoteRequested { .. } if inner.lanes.disk.len() >= limits::COORDINATOR_QUEUE_MAX => {
                    let text = "too many votes and configurations wait for this member's disk";
                    let e = Error::new(ErrorCode::ExceededTimeLimit, text);
                    inner.answers.give(token, Said::Vote(Err(e)));
                }
                event => self.step(&mut inner, event),
            }
            waiting
        };
        waiting.answer().await
    }
    /// A command of an operator.
    pub async fn command(&self, event: impl FnOnce(u64) -> Event) -> Result<pando_topology::CommandReply> {
        match self.ask(event).await {
            Said::Command(result) => result,
            _ => Err(Error::internal("an answer of another kind")),
        }
    }
    /// Whoever waits gets this error; no elections from now on.
    pub fn shut_down(&self) {
        self.tell(Event::ShutDown);
        let mut inner = self.lock();
        let e = Error::new(ErrorCode::ShutdownInProgress, "Replication is being shut down");
        inner.answers.fail_all(&e);
    }

    /// An operator gives this node's data up.
    pub fn ask_resync(&self) -> Result<()> {
        self.effects.resync()
    }
    fn step(&self, inner: &mut Inner, event: Event) {
        let _to_its_end = panics::indivisible();
        if waits_for_others(&event) {
            self.progress.await_positions(self.env.clock.mono());
        }
        let mut actions = Vec::new();
        let now = self.now();
        let primary = inner.core.primary();
        inner.core.step(now, event, &mut actions);
        // Learned from a heartbeat, without any change of this node's own.
        if inner.core.primary() != primary {
            self.repl.show_core(&inner.core);
        }
        let mut at = 0;
        // Carrying one out may add more behind it.
        while let Some(action) = actions.get(at).cloned() {
            at += 1;
            if let Action::Draw = action {
                inner.core.step(now, Event::Random(self.env.rng.next_u64()), &mut actions);
            } else if let Some(later) = self.at_once(inner, action) {
                inner.lanes.push(later);
            }
        }
        self.stepped.bump();
    }

    /// What can be done under the lock; the rest comes back.
    fn at_once(&self, inner: &mut Inner, action: Action) -> Option<Action> {
        match action {
            Action::State(change) => {
                // Who is told that writes are taken here may write at once; who is told that they are not, not any more.
                if change.writable {
                    self.effects.state_changed(&change);
                } else {
                    self.effects.writes_end();
                }
                self.repl.show_core(&inner.core);
                if !change.writable {
                    self.effects.state_changed(&change);
                }
                notes::state(&self.env.log, &change);
                // The driver may have to start or stop following.
                return Some(Action::State(change));
            }
            Action::TopologyVersion(_) | Action::Term(_) | Action::UpToDate(_) => {
                self.repl.show_core(&inner.core)
            }
            Action::Config { .. } => {
                self.repl.show_core(&inner.core);
                return Some(action);
            }
            Action::CommitPoint(p) => {
                if self.progress.advance_committed(wire::to_data(p)) {
                    self.effects.commit_point(p.op);
                }
            }
            Action::JoinedRecipientSet => {
                self.progress.leave_set();
                self.repl.show_core(&inner.core);
                self.effects.joined_recipient_set();
            }
            Action::HeartbeatReply { token, result } => inner.answers.give(token, Said::Heartbeat(result)),
            Action::VoteReply { token, result } => inner.answers.give(token, Said::Vote(result)),
            Action::PositionsReply { token, result } => inner.answers.give(token, Said::Positions(result)),
            Action::Reply { token, result } => inner.answers.give(token, Said::Command(result)),
            Action::WaitDone { id, result } => inner.answers.give(id, Said::Waited(result)),
            Action::SyncSource { token, choice } => inner.answers.give(token, Said::Source(choice)),
            Action::ChangeSyncSource { .. } => {
                inner.change_source = true;
                // Whoever waits for a source looks again.
                self.progress.changed().bump();
            }
            // The reporter of the data path sends them.
            Action::SendPositions { .. } => self.progress.changed().bump(),
            Action::Log(note) => notes::log(&self.env.log, &note),
            later => return Some(later),
        }
        None
    }

    /// Shows what the core is now.
    fn show(&self) {
        self.repl.show_core(&self.lock().core);
    }
    /// How far this node is now: after a commit on a primary, after each stage on a secondary.
    pub fn progressed(&self, written: Position, applied: Position, durable: Position) {
        self.tell(Event::Progress(Positions { written, applied, durable }));
    }
}

/// Is it for other members' positions that somebody waits now?
fn waits_for_others(event: &Event) -> bool {
    match event {
        Event::Await(waiter) => !matches!(waiter.concern.want, Want::Nodes(0 | 1)),
        Event::StepDown { .. } => true,
        _ => false,
    }
}
