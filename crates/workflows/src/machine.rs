//! What a workflow is.
//!
//! After a failover another node's machine begins at the last checkpoint, so whatever happens between two checkpoints
//! may happen again: every action must be safe to repeat. A phase that may fail comes before the first effect that
//! others see; every later phase goes forward only.

use crate::{Actions, Event, Level, Resource};
use pando_base::{Millis, Result};
use pando_bson::{DocBuf, RawDoc};

/// One operation of several steps. State is plain data; time and random numbers come with the events.
pub trait Workflow: Send {
    /// Takes one event and says what is to be done.
    ///
    /// `now` never goes back. An event for a slot comes once for each action that was begun under it, whatever the
    /// network did: late and doubled answers are dropped before they get here.
    fn step(&mut self, now: Millis, event: Event, out: &mut Actions);

    /// The state document, with its `_id`. `None`: this workflow keeps none, and ends with the life that began it.
    fn document(&self) -> Option<DocBuf>;

    /// What it holds at its last checkpoint, in order: a new primary takes it again before it lets anybody else in.
    fn holds(&self) -> Vec<(Resource, Level)> {
        Vec::new()
    }

    /// Asserts what must hold after every step. A violation is a bug, and the workflow must not go on.
    fn check(&self);
}

/// Makes a workflow of a state document, new or found.
pub type Restore = fn(&RawDoc) -> Result<Box<dyn Workflow>>;

impl<W: Workflow + ?Sized> Workflow for Box<W> {
    fn step(&mut self, now: Millis, event: Event, out: &mut Actions) {
        (**self).step(now, event, out);
    }
    fn document(&self) -> Option<DocBuf> {
        (**self).document()
    }
    fn holds(&self) -> Vec<(Resource, Level)> {
        (**self).holds()
    }
    fn check(&self) {
        (**self).check();
    }
}
