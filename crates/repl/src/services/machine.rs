//! A workflow as a pure machine over one state document.
//!
//! The machine answers each event with one action; the host carries it out and comes back with the next event. The
//! first action is a [`Action::Checkpoint`] of the document. After a failover another node's machine begins at the
//! last checkpoint, so whatever happens between two checkpoints may happen again: every action must be safe to repeat.

use pando_base::{Millis, Result};
use pando_bson::{DocBuf, RawDoc};

/// What has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// This node runs the instance now.
    Begin,
    /// The checkpoint is on a majority.
    Durable,
    /// The document is put (and as safe as the next checkpoint).
    Put,
    /// The pause is over.
    Rested,
    /// Somebody said that it may go on.
    Nudged,
}

/// What to do next.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// The state document, on a majority.
    Checkpoint(DocBuf),
    /// A document of another collection, by its `_id`.
    Put {
        db: &'static str,
        collection: &'static str,
        doc: DocBuf,
    },
    Rest(Millis),
    AwaitNudge,
    /// Finished: the state document goes, and whoever waits gets this.
    Done(DocBuf),
}

pub trait Machine: Send {
    fn step(&mut self, event: Event) -> Action;
}

/// Makes a machine of a state document, new or found.
pub type Restore = fn(&RawDoc) -> Result<Box<dyn Machine>>;
