//! Signs that an election need not wait for its timeout: a primary that refuses connections, a set that starts as a whole.

use crate::member::MemberId;
use pando_base::{Millis, Term};

/// The primary that was found refusing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Suspicion {
    pub(crate) primary: MemberId,
    /// In which it was primary.
    pub(crate) term: Term,
    /// This node's own probe was refused too.
    pub(crate) claimed: bool,
    pub(crate) tries: u32,
    /// Since when a majority agrees, and how many are better placed.
    pub(crate) confirmed: Option<(Millis, i64)>,
}

/// How far the start of this process is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Gathering {
    /// Not everybody was heard of yet.
    Waiting,
    /// Everybody is there; the election is due, behind this many better-placed members.
    Due { rank: i64 },
    /// A primary was seen, a vote was given, or this node stood.
    Over,
}
