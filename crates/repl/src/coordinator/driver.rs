//! The coordinator's tasks: one gives the core its time, the others work through the lanes of actions.

use crate::coordinator::{Coordinator, Lane};
use crate::data::Upper;
use pando_base::mutants::{Mutant as Planted, broken as planted};
use pando_base::{Error, limits};
use pando_topology::{Action, Event, MemberState, Position, Positions};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

const IDLE: Duration = Duration::from_millis(limits::COORDINATOR_IDLE_MS);

pub(crate) fn spawn(coordinator: &Arc<Coordinator>) {
    let env = &coordinator.env;
    env.spawn("replication clock", clock(coordinator.clone()));
    env.spawn("replication calls", make_calls(coordinator.clone()));
    env.spawn("replication votes", persist(coordinator.clone()));
    env.spawn("replication coordinator", change_roles(coordinator.clone()));
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

/// The next action of a lane; `None` when the lane is empty, and what to wait for then.
fn next(c: &Coordinator, lane: Lane) -> Result<Action, u64> {
    let seen = c.stepped.version();
    c.lock().lanes.of(lane).pop_front().ok_or(seen)
}

/// Each call is a task of its own.
async fn make_calls(c: Arc<Coordinator>) {
    while !c.effects.is_stopping() {
        match next(&c, Lane::Calls) {
            Ok(action) => c.call(action),
            Err(seen) => c.stepped.changed(seen).await,
        }
    }
}

/// Votes and configurations, one after the other.
async fn persist(c: Arc<Coordinator>) {
    while !c.effects.is_stopping() {
        match next(&c, Lane::Disk) {
            Ok(Action::PersistVote { id, vote }) => {
                let lost = planted(Planted::VoteNotPersisted);
                let done = if lost { Ok(()) } else { c.effects.persist_vote(vote).await };
                persisted(&c, id, done.map(|()| None));
            }
            Ok(Action::PersistConfig { id, config, note }) => {
                let done = c.effects.persist_config(config, note).await;
                persisted(&c, id, done);
            }
            Ok(_) => {}
            Err(seen) => c.stepped.changed(seen).await,
        }
    }
}

async fn change_roles(c: Arc<Coordinator>) {
    let mut roles = Roles { following: false, copying: Arc::default() };
    while !c.effects.is_stopping() {
        match next(&c, Lane::Roles) {
            Ok(action) => roles.carry_out(&c, action).await,
            Err(seen) => {
                roles.settle(&c).await;
                if c.stepped.version() == seen {
                    c.stepped.changed(seen).await;
                }
            }
        }
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
            Action::DrainToLeave { id } => {
                self.following = false;
                match c.effects.drain().await {
                    Ok(()) => {
                        // What was applied last is told before anybody takes this node for drained.
                        Upper::progressed(&**c);
                        c.tell(Event::DrainedToLeave { id });
                    }
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
            // Told at once; what follows from it is settled above.
            _ => {}
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
                    a.data("error", &e);
                },
            );
            c.tell(Event::PersistFailed(id));
        }
    }
}
