//! Ends of transactions, and prepared ones, which belong to no operation.

use super::Maintenance;
use pando_base::{OpTime, Result, Timestamp};
use pando_bson::RawDoc;
use pando_catalog::{About, Committed, PreparedView, TxnId, WriteGuard, WriteUnit};
use pando_storage::Bytes;
use std::time::Duration;

impl Maintenance {
    /// Commits. A collection that it made may have come into being elsewhere meanwhile: then it conflicts.
    pub async fn commit_transaction(
        &self,
        unit: WriteUnit,
        lsid: &RawDoc,
        id: TxnId,
        patience: Duration,
    ) -> Result<Committed> {
        self.catalog.commit_transaction(unit, lsid, id, patience).await
    }
    /// Prepares an open transaction: its entries are in the log when this returns.
    pub async fn prepare_transaction(
        &self,
        unit: WriteUnit,
        lsid: &RawDoc,
        id: TxnId,
        held: Vec<WriteGuard>,
        about: Option<About>,
    ) -> Result<OpTime> {
        self.catalog.prepare_transaction(unit, lsid, id, held, about).await
    }
    /// The decision of a primary. `commit` is not below the prepare timestamp; `None` gives the transaction up.
    pub fn decide_prepared(&self, lsid: &RawDoc, id: &TxnId, commit: Option<Timestamp>) -> Result<OpTime> {
        self.catalog.decide_prepared(lsid, id, commit)
    }
    /// After a recovery: the transaction whose prepare entry is at `at` is undecided.
    pub fn restore_prepared(&self, at: Timestamp) -> Result<()> {
        self.catalog.restore_prepared(at)
    }
    /// Before a rollback: whatever is prepared is made anew from the log afterwards, which must not lose anything until
    /// then.
    pub fn forget_prepared(&self) {
        self.catalog.forget_prepared()
    }
    /// A step-up, before anything else is written: definitions stand still until they are decided.
    pub fn lock_prepared(&self) -> Result<()> {
        self.catalog.lock_prepared()
    }
    /// A step-down: members that follow hold no locks for them (T-PREP-12).
    pub fn yield_prepared(&self) {
        self.catalog.yield_prepared()
    }
    pub fn prepared(&self) -> Vec<PreparedView> {
        self.catalog.prepared()
    }
    pub fn prepared_count(&self) -> usize {
        self.catalog.prepared_count()
    }
    /// The entries of a transaction before its last one, oldest first, from this node's own log.
    pub fn earlier_parts(&self, last: &RawDoc) -> Result<Vec<Bytes>> {
        self.catalog.earlier_parts(last)
    }
}
