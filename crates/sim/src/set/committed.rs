//! Entries of the members' logs, and the chain of those that the set has committed.

use pando_base::{OpTime, Term, Timestamp};
use std::collections::BTreeMap;

/// An entry of a log, without its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) at: OpTime,
    pub(crate) hash: u64,
    /// The entry before it, if that was seen.
    pub(crate) before: Option<OpTime>,
}

/// An entry that is committed, and in which term it came to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promise {
    pub(crate) entry: Entry,
    pub(crate) in_term: Term,
}

/// What the set has committed, as one chain.
#[derive(Default)]
pub(crate) struct Committed {
    pub(crate) chain: BTreeMap<Timestamp, Promise>,
    /// Behind the first, before the second of two times: committed while no running member's log had the entries.
    pub(crate) unseen: Vec<(Timestamp, Timestamp)>,
}

impl Committed {
    pub(crate) fn newest(&self) -> OpTime {
        self.chain.last_key_value().map_or(OpTime::NULL, |(_, p)| p.entry.at)
    }
    pub(crate) fn names(&self, at: OpTime) -> bool {
        self.chain.get(&at.ts).is_some_and(|c| c.entry.at == at)
    }
    /// It was committed, for all that was seen.
    pub(crate) fn may_name(&self, at: OpTime) -> bool {
        let unseen = || self.unseen.iter().any(|(from, to)| *from < at.ts && at.ts < *to);
        self.names(at) || (!self.chain.contains_key(&at.ts) && unseen())
    }
    pub(crate) fn holds(&self, e: &Entry) -> bool {
        self.names(e.at)
    }
}
