//! The coordinator's tasks: one gives the core its time, one works through the queue of actions.

use crate::coordinator::Coordinator;
use pando_base::{Error, limits};
use pando_topology::{Action, Event, MemberState, Position, Positions};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

const IDLE: Duration = Duration::from_millis(limits::COORDINATOR_IDLE_MS);

pub(crate) fn spawn(coordinator: &Arc<Coordinator>) {
    let (a, b) = (coordinator.clone(), coordinator.clone());
    coordinator.env.spawn("replication clock", async move { clock(a).await });
    coordinator.env.spawn("replication coordinator", async move { work(b).await });
}

async fn clock(c: Arc<Coordinator>) {
    while !c.effects.is_stopping() {
        c.tell(Event::Tick);
        loop {
            let seen = c.stepped.version();
            let deadline = c.read(|core| core.next_deadline());
            let left =
                deadline.map_or(IDLE, |d| Duration::from_millis((d - c.now()).max(0) as u64)).min(IDLE);
            if left.is_zero() || c.env.timeout(left, c.stepped.changed(seen)).await.is_none() {
                break;
            }
        }
    }
}

async fn work(c: Arc<Coordinator>) {
    let mut roles = Roles { following: false, copying: Arc::default() };
    while !c.effects.is_stopping() {
        let seen = c.stepped.version();
        let next = c.lock().queue.pop_front();
        let Some(action) = next else {
            roles.settle(&c).await;
            if c.stepped.version() == seen {
                c.stepped.changed(seen).await;
            }
            continue;
        };
        roles.carry_out(&c, action).await;
    }
}

/// What this node is busy with because of its place in the set.
struct Roles {
    following: bool,
    /// An initial sync is under way.
    copying: Arc<AtomicBool>,
}

impl Roles {
    /// Starts or stops following as the state asks; a member without data copies first.
    async fn settle(&mut self, c: &Arc<Coordinator>) {
        let (wants, state) = c.read(|core| (core.wants_to_fetch(), core.state()));
        if self.copying.load(SeqCst) {
            return;
        }
        if wants_data(c) {
            match c.effects.is_empty() {
                Ok(true) => return self.copy_all(c),
                Ok(false) => {}
                // Half a copy must not pass for data.
                Err(e) => return c.effects.fatal("The state of this member's data could not be read", &e),
            }
        }
        if state == MemberState::Startup2 || (state == MemberState::Startup && wants_data(c)) {
            c.tell(Event::FollowerState(MemberState::Secondary));
            return;
        }
        // A leader catches up by following, also one that was elected before it ever followed; its drain ends that.
        if wants != self.following && (wants || !c.read(|core| core.is_leader())) {
            self.follow(c, wants).await;
        }
    }

    async fn follow(&mut self, c: &Arc<Coordinator>, on: bool) {
        match c.effects.follow(on).await {
            Ok(()) => self.following = on,
            Err(e) => c.effects.fatal("Following another member could not be started", &e),
        }
    }

    fn copy_all(&mut self, c: &Arc<Coordinator>) {
        self.copying.store(true, SeqCst);
        c.tell(Event::FollowerState(MemberState::Startup2));
        let (c, copying) = (c.clone(), self.copying.clone());
        c.env.clone().spawn("initial sync", async move {
            match c.effects.initial_sync().await {
                Ok(at) => {
                    copying.store(false, SeqCst);
                    c.tell(Event::Rewound(Positions::at(at)));
                    c.tell(Event::FollowerState(MemberState::Secondary));
                }
                Err(e) => c.effects.fatal("Initial sync failed", &e),
            }
        });
    }

    async fn carry_out(&mut self, c: &Arc<Coordinator>, action: Action) {
        match action {
            Action::PersistVote { id, vote } => {
                let done = c.effects.persist_vote(vote).await;
                persisted(c, id, done.map(|()| None));
            }
            Action::PersistConfig { id, config, note } => {
                let done = c.effects.persist_config(config, note).await;
                persisted(c, id, done);
            }
            Action::LocateSelf { id, config } => {
                let index = c.effects.locate_self(config).await;
                c.tell(Event::SelfLocated { id, index });
            }
            Action::Drain { term } => {
                self.following = false;
                match c.effects.drain().await {
                    Ok(()) => c.tell(Event::Drained { term }),
                    Err(e) => c.effects.fatal("Fetched entries could not be applied", &e),
                }
            }
            Action::BecomeWritable { term } => match c.effects.become_writable(term).await {
                Ok(at) => c.tell(Event::FirstEntry { term, at }),
                Err(e) => c.effects.fatal("The first entry of a term could not be written", &e),
            },
            Action::TakeStateLock { id } => {
                let c = c.clone();
                c.env.clone().spawn("state lock", async move {
                    c.effects.take_state_lock().await;
                    c.tell(Event::StateLockHeld { id });
                });
            }
            Action::ReleaseStateLock { .. } => c.effects.release_state_lock(),
            call => c.call(call),
        }
    }
}

/// Is this node a member that should hold data?
fn wants_data(c: &Coordinator) -> bool {
    c.read(|core| core.self_member().is_some_and(|m| !m.arbiter_only) && !core.is_leader())
}

fn persisted(c: &Coordinator, id: u64, done: Result<Option<Position>, Error>) {
    match done {
        Ok(at) => {
            if let Some(at) = at {
                c.tell(Event::Progress(Positions::at(at)));
                c.tell(Event::FollowerState(MemberState::Secondary));
            }
            c.tell(Event::Persisted(id));
        }
        Err(e) => {
            c.env.log.error(
                pando_env::Component::Repl,
                21452,
                "A replication document could not be written",
                |a| {
                    a.str("error", &e.message);
                },
            );
            c.tell(Event::PersistFailed(id));
        }
    }
}
