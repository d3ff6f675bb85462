//! A prepared unit of work: everything but its decision.

use crate::schema::collection::Shared;
use crate::schema::sizes::Totals;
use pando_base::panics;
use pando_base::{Result, Timestamp};
use pando_storage::{Decision, PreparedTxn};
use std::sync::Arc;

/// What follows a commit; it is told the commit's timestamp.
pub(crate) type AfterCommit = Box<dyn FnOnce(Timestamp) + Send>;

/// A prepared unit: its writes wait for their decision, and with them all that follows their commit.
#[must_use]
pub(crate) struct Undecided {
    txn: PreparedTxn,
    deltas: Vec<(Arc<Shared>, Totals)>,
    after: Vec<AfterCommit>,
}

impl Undecided {
    pub(crate) fn new(
        txn: PreparedTxn,
        deltas: Vec<(Arc<Shared>, Timestamp, Totals)>,
        after: Vec<AfterCommit>,
    ) -> Undecided {
        let deltas = deltas.into_iter().map(|(shared, _, delta)| (shared, delta)).collect();
        Undecided { txn, deltas, after }
    }
    /// Both are decided as one from now on.
    pub(crate) fn join(&mut self, other: Undecided) -> Result<()> {
        self.txn.join(other.txn)?;
        self.deltas.extend(other.deltas);
        self.after.extend(other.after);
        Ok(())
    }
    /// How many units one decision ends.
    pub(crate) fn units(&self) -> usize {
        self.txn.units()
    }
    pub(crate) fn commit(self, commit_ts: Timestamp, decision: Decision<'_>, entry: Timestamp) -> Result<()> {
        let _to_its_end = panics::indivisible();
        // Totals first: a checkpoint at the entry must find them.
        for (shared, delta) in &self.deltas {
            shared.sizes.changed(entry, *delta, || self.txn.counted());
        }
        self.txn.commit(commit_ts, decision)?;
        for f in self.after {
            f(entry);
        }
        Ok(())
    }
    pub(crate) fn abort(self, decision: Decision<'_>) {
        self.txn.abort(decision);
    }
}
