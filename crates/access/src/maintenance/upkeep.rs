//! What the server does by itself to its collections, and what it adds to the catalog.

use super::Maintenance;
use pando_base::{Millis, Namespace, Result, Uuid};
use pando_catalog::observer::OpObserver;
use pando_catalog::{Interrupt, Table, ValidateReport};
use std::sync::Arc;

impl Maintenance {
    /// Adds an observer behind those there are.
    pub fn add_observer(&self, o: Arc<dyn OpObserver>) {
        self.catalog.add_observer(o)
    }
    /// Shows `table` as a collection, in the place of whatever has had this name so far.
    pub fn show_table(&self, ns: &Namespace, uuid: Uuid, table: Arc<dyn Table>) -> Result<()> {
        self.catalog.show_table(ns, uuid, table)
    }
    /// Deletes what has expired at `now`; returns how many documents. A collection that fails is skipped until the
    /// next pass.
    pub async fn ttl_pass(&self, now: Millis, interrupt: &dyn Interrupt) -> Result<u64> {
        self.catalog.ttl_pass(now, interrupt).await
    }
    /// Sets the kept count right by what a check of [`Extent::Latest`](pando_catalog::Extent::Latest) has found. Only where no entries of another member
    /// were applied when the two were taken: those lock nothing, and are counted before they can be seen.
    pub fn mend_count(&self, found: &ValidateReport) {
        self.catalog.mend_count(found)
    }
    /// Documents to insert that had a field whose name begins with a dollar.
    pub fn dollar_inserts(&self) -> u64 {
        self.catalog.dollar_inserts()
    }
    pub fn new_uuid(&self) -> Uuid {
        self.catalog.new_uuid()
    }
}
