//! Runs a workflow straight, and then through every accident at every action.
//!
//! ```text
//!   straight ─► n actions
//!   for each of the n, and for each fault: a world of its own, one run, the test's own end condition
//! ```
//! The faults are in [`Fault`]; the world, with what a majority has of it, in [`World`]. A workflow with a state document goes on
//! from its last checkpoint in another life, which may end early too. One without is asked for again where its life or its first try failed: whatever it
//! left behind, a second try must come to the end.
//!
//! What is checked besides the test's own condition: it ends; nothing is held behind the end; nothing is written that needs a lock
//! without it; a state document says all there is to say; two runs of one plan are the same; and what
//! [`Running`] and [`Workflow::check`] assert.

mod life;
mod plan;
mod world;

pub use plan::{Fault, Plan};
pub use world::{Heard, Peers, Record, Sections, Waited, World};

use crate::{Home, Restore, Running, Workflow};
use pando_base::{ErrorCode, Result};
use pando_bson::DocBuf;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What failures are tried: one of each class that a workflow may have to tell from others.
pub const FAILURES: &[ErrorCode] = &[
    ErrorCode::HostUnreachable,
    ErrorCode::NetworkTimeout,
    ErrorCode::NotWritablePrimary,
    ErrorCode::InterruptedDueToReplStateChange,
    ErrorCode::ShutdownInProgress,
    ErrorCode::Interrupted,
    ErrorCode::MaxTimeMSExpired,
    ErrorCode::LockTimeout,
    ErrorCode::WriteConcernFailed,
    ErrorCode::OutOfDiskSpace,
    ErrorCode::BadValue,
    ErrorCode::InternalError,
];

/// How far into the life behind an accident the next one is tried.
const AGAIN: usize = 5;

/// A workflow under test.
pub struct Kit<'a> {
    pub home: Home,
    /// As it is when somebody asks for it.
    pub make: &'a dyn Fn() -> Box<dyn Workflow>,
    /// From a state document.
    pub restore: Option<Restore>,
    pub world: &'a dyn Fn() -> World,
    /// What must be true of each story.
    pub end: &'a dyn Fn(&Story) -> Result<(), String>,
    /// In how many orders the actions that are under way at once are carried out.
    pub orders: u64,
}

/// What happened in one run.
pub struct Story {
    pub plan: Plan,
    pub world: World,
    /// How each life ended that came to an end.
    pub results: Vec<Result<DocBuf>>,
    /// Actions that were carried out.
    pub actions: usize,
    pub lives: u32,
    /// The orders of all lives, as text.
    pub orders: Vec<String>,
    /// Somebody wanted it to end.
    pub aborted: bool,
}

impl Story {
    /// The first life's result; `None`: it had none.
    pub fn first(&self) -> Option<&Result<DocBuf>> {
        self.results.first()
    }
    pub fn last(&self) -> Option<&Result<DocBuf>> {
        self.results.last()
    }
    /// A life ended with the workflow, before it could tell anybody.
    pub fn ended_unheard(&self) -> bool {
        self.world.forgotten && self.results.is_empty()
    }
    /// Nothing went wrong on purpose.
    pub fn is_straight(&self) -> bool {
        self.plan.fault == Fault::None
    }
}

impl Kit<'_> {
    /// Every run there is: how many there were, or what is wrong with the first bad one.
    pub fn run_all(&self) -> Result<usize, String> {
        let mut runs = 0;
        for order in 0..self.orders.max(1) {
            let plan = |fault| Plan { order, ..Plan::of(fault) };
            let straight = self.run(plan(Fault::None))?;
            let again = self.run(plan(Fault::None))?;
            if straight.orders != again.orders {
                return Err("two runs of one plan are not the same".into());
            }
            runs += 2;
            for fault in Fault::all(straight.actions, self.home) {
                self.run(plan(fault))?;
                runs += 1;
                for second in fault.last_action().into_iter().flat_map(|at| at + 1..=at + AGAIN) {
                    self.run(Plan { then_crash: Some(second), ..plan(fault) })?;
                    runs += 1;
                }
            }
        }
        Ok(runs)
    }

    /// One run.
    pub fn run(&self, plan: Plan) -> Result<Story, String> {
        match catch_unwind(AssertUnwindSafe(|| self.play(plan))) {
            Ok(story) => story.map_err(|e| format!("{plan:?}: {e}")),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
                Err(format!("{plan:?}: {}", text.unwrap_or_default()))
            }
        }
    }

    fn play(&self, plan: Plan) -> Result<Story, String> {
        let mut story = Story {
            plan,
            world: (self.world)(),
            results: Vec::new(),
            actions: 0,
            lives: 0,
            orders: Vec::new(),
            aborted: false,
        };
        // The last life of a plan is an undisturbed one.
        for _ in 0..5 {
            let workflow = match (story.world.durable.as_deref(), self.restore) {
                (Some(state), Some(restore)) => restore(state).map_err(|e| e.to_string())?,
                _ => (self.make)(),
            };
            story.lives += 1;
            let ended = life::live(&mut story, Running::new(workflow, self.home), self.restore)?;
            // The same client, or the next one, asks again.
            let asked_again = self.home == Home::Command && !matches!(story.last(), Some(Ok(_)));
            if story.world.forgotten || ended && !asked_again {
                break;
            }
        }
        if self.home == Home::Command && !matches!(story.last(), Some(Ok(_))) {
            return Err(format!("asked again it fails: {:?}", story.results));
        }
        story.world.verdict()?;
        (self.end)(&story)?;
        Ok(story)
    }
}

/// What `run` finds wrong with each of these mutants, switched on alone; `None`: it does not notice. Without any, all must
/// be well.
pub fn notice<M: Copy>(
    all: &[M],
    activate: fn(Option<M>),
    run: impl Fn() -> Result<usize, String>,
) -> Vec<(M, Option<String>)> {
    if let Err(e) = run() {
        panic!("something is wrong without any mutant: {e}");
    }
    let noticed = all.iter().map(|mutant| {
        activate(Some(*mutant));
        let said = run();
        activate(None);
        (*mutant, said.err())
    });
    noticed.collect()
}
