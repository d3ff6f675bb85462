//! Prepared transactions: written, logged, undecided.
//!
//! One may consist of several units, each the share of one worker; no key is in two of them. They have one prepare timestamp
//! and one decision: its entry is what makes their rows visible, or gives them up, all in one moment.

use crate::bytes::Bytes;
use crate::log::Slot;
use crate::store::Store;
use crate::txn::Txn;
use pando_base::panics;
use pando_base::{Error, Result, Timestamp};
use pando_bson::RawDoc;
use std::sync::Arc;

/// Dropping it gives it up without a log entry (shutdown, rollback).
#[must_use]
pub struct PreparedTxn {
    units: Vec<Txn>,
    first: u64,
    prepare_ts: u64,
    open: bool,
}

/// Where the log tells of a decision.
pub enum Decision<'a> {
    /// In an entry to be written now.
    Here(Slot, &'a RawDoc),
    /// In an entry that is there already, of another member's.
    At(Timestamp),
}

impl Decision<'_> {
    fn ts(&self) -> u64 {
        match self {
            Decision::Here(slot, _) => slot.ts().0,
            Decision::At(ts) => ts.0,
        }
    }
}

impl PreparedTxn {
    pub(crate) fn of(unit: Txn, first: u64, prepare_ts: u64) -> PreparedTxn {
        PreparedTxn { units: vec![unit], first, prepare_ts, open: true }
    }
    /// Both are decided as one from now on.
    pub fn join(&mut self, mut other: PreparedTxn) -> Result<()> {
        if (self.first, self.prepare_ts) != (other.first, other.prepare_ts) {
            return Err(Error::internal("units of two prepared transactions have no decision in common"));
        }
        other.open = false;
        self.units.append(&mut other.units);
        Ok(())
    }
    pub fn prepare_ts(&self) -> Timestamp {
        Timestamp(self.prepare_ts)
    }
    /// The first of its entries.
    pub fn first_ts(&self) -> Timestamp {
        Timestamp(self.first)
    }
    /// Bytes of keys and values.
    pub fn written_bytes(&self) -> usize {
        self.units.iter().map(Txn::written_bytes).sum()
    }
    /// What no checkpoint will stand before ([`crate::Storage::counted`]).
    pub fn counted(&self) -> Timestamp {
        self.units.first().map_or(Timestamp::ZERO, Txn::counted)
    }
    pub fn units(&self) -> usize {
        self.units.len()
    }
    fn store(&self) -> Option<&Arc<Store>> {
        self.units.first().map(Txn::store)
    }
    /// Commits: readers at or above `commit_ts` see it, which lies between the prepare timestamp and the decision's
    /// entry. The rows carry that entry's timestamp.
    pub fn commit(mut self, commit_ts: Timestamp, decision: Decision<'_>) -> Result<()> {
        let entry = decision.ts();
        if commit_ts.0 < self.prepare_ts || commit_ts.0 > entry {
            return Err(Error::internal(format!(
                "the commit timestamp {commit_ts} must lie between the prepare timestamp {} and the entry at {}",
                Timestamp(self.prepare_ts),
                Timestamp(entry)
            )));
        }
        let _to_its_end = panics::indivisible();
        self.units.iter().for_each(|unit| unit.apply(|_| entry));
        if let Some(store) = self.store() {
            store.lates.add(entry, self.prepare_ts, commit_ts.0, store.gc_below_unfloored());
        }
        self.end(entry, decision);
        self.units.iter_mut().for_each(|unit| unit.finish(Some(Timestamp(entry))));
        Ok(())
    }
    /// Gives it up.
    pub fn abort(mut self, decision: Decision<'_>) {
        let _to_its_end = panics::indivisible();
        self.end(decision.ts(), decision);
        self.units.iter_mut().for_each(|unit| unit.finish(None));
    }
    fn end(&mut self, at: u64, decision: Decision<'_>) {
        self.undecide(at);
        if let (Decision::Here(slot, entry), Some(store)) = (decision, self.store()) {
            let (_, place) = slot.take();
            store.log.0.close([(place, Some(Bytes::from(entry.as_bytes())))].into_iter());
        }
    }
    /// The keys are decided; those waiting may look again.
    fn undecide(&mut self, at: u64) {
        if !std::mem::replace(&mut self.open, false) {
            return;
        }
        if let Some(store) = self.store() {
            store.prepares.remove(self.units.iter().flat_map(Txn::written_keys));
            store.prepares.decided(self.prepare_ts, self.first, at);
            store.prepare_changed.bump();
        }
    }
}

impl Drop for PreparedTxn {
    fn drop(&mut self) {
        self.undecide(0);
    }
}
