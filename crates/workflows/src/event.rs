//! What a workflow hears.

use crate::Slot;
use pando_base::{Error, Namespace, OpTime, Result};
use pando_bson::DocBuf;

/// Something happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// This node runs the instance now, from its start or from its last checkpoint.
    Begin,
    /// The checkpoint is on a majority.
    Durable,
    /// The writes are done, and the last one is at this opTime (`None`: nothing had to be changed); or one failed.
    Wrote {
        slot: Slot,
        result: Result<Option<OpTime>>,
    },
    /// The collections that were asked for.
    Found {
        slot: Slot,
        result: Result<Vec<Namespace>>,
    },
    /// Others have what was waited for, or the wait failed.
    Replicated {
        slot: Slot,
        result: Result<()>,
    },
    /// What another node said, or why nobody knows.
    Answer {
        slot: Slot,
        reply: Result<DocBuf>,
    },
    Locked {
        slot: Slot,
        result: Result<()>,
    },
    Entered {
        slot: Slot,
        result: Result<()>,
    },
    /// The pause is over.
    Rested {
        slot: Slot,
    },
    /// Somebody said that it may go on.
    Nudged {
        slot: Slot,
    },
    Random {
        slot: Slot,
        number: u64,
    },
    /// Somebody wants it to end, with this error: a killed operation, a deadline, an operator. The workflow decides whether
    /// that is still possible.
    Abort(Error),
}
