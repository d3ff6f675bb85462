//! What an operation holds that may write to a collection, and how it writes: in a unit of its own, or in that of its transaction.

use crate::placement::{OwnedSource, Visible, filter};
use crate::transaction::conflicts::on_prepared;
use crate::transaction::{OpenTxn, open_txn};
use crate::{Access, ByCtx};
use bytes::Bytes;
use pando_base::{OpTime, Result};
use pando_bson::{Elem, RawDoc};
use pando_catalog::{
    Collection, CollectionSource, Inserts, WriteGuard, WriteOp, WriteUnit, buckets_for, find_id,
    retry_conflicts,
};
use pando_command::OpCtx;
use pando_query::source::{Owned, RecordId, Source};
use pando_query::timeseries::TimeSeries;
use pando_routing::ShardKey;
use pando_shard::OwnedDocuments;
use pando_storage::{OnPrepared, ReadAt};
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

/// A collection that the door has let an operation write to. Its definition cannot change meanwhile.
pub struct WriteAcquisition {
    guard: WriteGuard,
    visible: Visible,
    key: Option<ShardKey>,
}

impl Deref for WriteAcquisition {
    type Target = Collection;
    fn deref(&self) -> &Collection {
        &self.guard
    }
}

impl WriteAcquisition {
    pub(crate) fn new(guard: WriteGuard, visible: Visible, key: Option<ShardKey>) -> WriteAcquisition {
        WriteAcquisition { guard, visible, key }
    }
    /// On a shard, of a collection that is sharded: by what.
    pub fn shard_key(&self) -> Option<&ShardKey> {
        self.key.as_ref()
    }
    /// On a shard, of a collection that others own parts of: which documents are this shard's.
    pub fn owned(&self) -> Option<&OwnedDocuments> {
        filter(&self.visible)
    }
    pub fn collection(&self) -> &Arc<Collection> {
        self.guard.collection()
    }
    /// The record with this `_id`, as `unit` sees it.
    pub fn find_id(
        &self,
        unit: &WriteUnit,
        id: Elem<'_>,
    ) -> Result<Option<(RecordId, pando_storage::Bytes)>> {
        let found = find_id(unit.txn(), &self.guard, id)?;
        Ok(found.filter(|(_, doc)| self.owned().is_none_or(|v| v.owns(RawDoc::trusted(doc)))))
    }
    /// The record of that place, as `unit` sees it.
    pub fn fetch(&self, unit: &WriteUnit, rid: &RecordId) -> Result<Option<Bytes>> {
        CollectionSource::within(self.collection().clone(), unit.txn()).fetch(rid)
    }
    /// Buckets of a time series that may take a measurement of `source` at `time`.
    pub fn buckets_for(
        &self,
        unit: &WriteUnit,
        series: &TimeSeries,
        source: &RawDoc,
        time: i64,
    ) -> Result<Vec<(RecordId, pando_bson::DocBuf)>> {
        buckets_for(unit.txn(), self.collection(), series, source, time)
    }
}

impl Access {
    /// Opens a collection for a write's search; outside of a transaction something undecided is met as
    /// [`PREPARE_CONFLICT`](pando_storage::PREPARE_CONFLICT).
    pub fn target_source(&self, ctx: &OpCtx, coll: &WriteAcquisition) -> Result<Box<dyn Source>> {
        let transaction = open_txn(ctx);
        let source =
            self.open_whole_source(transaction, coll.collection(), ReadAt::Latest, OnPrepared::Conflict)?;
        Ok(OwnedSource::wrap(source, &coll.visible))
    }
    /// The same where nothing undecided is in the way.
    pub fn decided_source(&self, ctx: &OpCtx, coll: &WriteAcquisition) -> Result<Box<dyn Source>> {
        let on_prepared = on_prepared(&ctx.read_concern);
        let source = self.open_whole_source(open_txn(ctx), coll.collection(), ReadAt::Latest, on_prepared)?;
        Ok(OwnedSource::wrap(source, &coll.visible))
    }

    /// Runs `work` in one unit that commits when it succeeds, again after a write conflict. In a transaction: within its
    /// unit, once, and without a position in the log.
    pub async fn in_unit<T>(
        &self,
        ctx: &OpCtx,
        coll: &WriteAcquisition,
        mut work: impl FnMut(&mut WriteUnit) -> Result<T>,
    ) -> Result<(T, OpTime)> {
        if let Some(open) = open_txn(ctx) {
            return open.with(|unit| {
                let mark = unit.mark();
                match work(unit) {
                    Ok(done) => Ok((done, OpTime::NULL)),
                    Err(e) => {
                        unit.back_to(mark);
                        Err(e)
                    }
                }
            });
        }
        retry_conflicts(&self.catalog, &ByCtx(ctx), || {
            let mut unit = self.catalog.begin_write_waiting(coll)?;
            let done = work(&mut unit)?;
            Ok((done, unit.commit()?))
        })
        .await
    }
    /// Inserts a document that is in its final form.
    pub async fn insert_final(
        &self,
        ctx: &OpCtx,
        op: &WriteOp<'_>,
        coll: &WriteAcquisition,
        doc: &RawDoc,
        stmt_ids: &[i32],
    ) -> Result<OpTime> {
        if let Some(open) = open_txn(ctx) {
            open.with(|unit| self.catalog.insert_within(unit, op, coll, doc))?;
            return Ok(OpTime::NULL);
        }
        retry_conflicts(&self.catalog, &ByCtx(ctx), || {
            self.catalog.insert_final(op, coll, &[Cow::Borrowed(doc)], stmt_ids)
        })
        .await
    }
    /// Inserts documents as they come, in units of many; in a transaction the first error ends it. `stmt_ids` is empty or one per
    /// document.
    pub async fn insert_many(
        &self,
        ctx: &OpCtx,
        op: &WriteOp<'_>,
        coll: &WriteAcquisition,
        docs: &[&RawDoc],
        stmt_ids: &[i32],
        ordered: bool,
    ) -> Inserts {
        match open_txn(ctx) {
            Some(open) => self.insert_within(open, op, coll, docs),
            None => self.catalog.insert_many(op, coll, docs, stmt_ids, ordered, &ByCtx(ctx)).await,
        }
    }
    fn insert_within(
        &self,
        open: &OpenTxn,
        op: &WriteOp<'_>,
        coll: &WriteAcquisition,
        docs: &[&RawDoc],
    ) -> Inserts {
        let mut out = Inserts::default();
        for (i, doc) in docs.iter().enumerate() {
            let done = self.catalog.fix_for_insert(doc).and_then(|doc| {
                open.with(|unit| {
                    let mark = unit.mark();
                    let done = self.catalog.insert_within(unit, op, coll, &doc);
                    if done.is_err() {
                        unit.back_to(mark);
                    }
                    done
                })
            });
            match done {
                Ok(()) => out.n += 1,
                Err(e) => {
                    out.errors.push((i, e));
                    break;
                }
            }
        }
        out
    }
    /// A document as it will be stored: an `_id` comes first, and is made where there is none.
    pub fn fix_for_insert<'d>(&self, doc: &'d RawDoc) -> Result<Cow<'d, RawDoc>> {
        self.catalog.fix_for_insert(doc)
    }
}
