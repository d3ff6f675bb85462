//! Where statements read and write: in a unit of their own, or in that of their transaction.

use super::OpenTxn;
use super::conflicts::on_prepared;
use super::source::TxnSource;
use crate::Server;
use crate::by_ctx::ByCtx;
use crate::cursors::query::ReadPoint;
use pando_base::codes::class;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result};
use pando_bson::RawDoc;
use pando_catalog::{
    Collection, CollectionOptions, Inserts, WriteGuard, WriteOp, WriteUnit, retry_conflicts,
};
use pando_command::OpCtx;
use pando_query::source::Source;
use pando_storage::{OnPrepared, PREPARE_CONFLICT};
use std::sync::Arc;

impl Server {
    /// Opens a collection for this operation: its transaction's view of it, or the one at `point`.
    pub(crate) fn open_source(
        &self,
        ctx: &OpCtx,
        coll: &Arc<Collection>,
        point: ReadPoint,
    ) -> Result<Box<dyn Source>> {
        match self.open_txn(ctx) {
            Some(open) => Ok(Box::new(TxnSource::new(open.clone(), coll.clone())?)),
            None => {
                let waits = on_prepared(&ctx.read_concern);
                self.catalog.open_source_with(coll, self.read_at(point), waits)
            }
        }
    }
    /// Opens it for a write's search; outside of a transaction something undecided is met as
    /// [`PREPARE_CONFLICT`](pando_storage::PREPARE_CONFLICT).
    pub(crate) fn open_target(&self, ctx: &OpCtx, coll: &Arc<Collection>) -> Result<Box<dyn Source>> {
        if self.open_txn(ctx).is_some() {
            return self.open_source(ctx, coll, ReadPoint::Latest);
        }
        self.catalog.open_source_with(coll, self.read_at(ReadPoint::Latest), OnPrepared::Conflict)
    }
    /// Locks a collection for writing; in a transaction it is locked already, or was made by it.
    pub(crate) async fn lock_for_write(&self, ctx: &OpCtx, ns: &Namespace) -> Result<Option<WriteGuard>> {
        match self.open_txn(ctx) {
            None => match self.catalog.try_write_lock(ns) {
                Err(e) if e.code == ErrorCode::LockTimeout => {
                    ctx.interruptible(self.catalog.write_lock(ns)).await?
                }
                Ok(Some(guard)) => Ok(Some(guard.join_task().await)),
                done => done,
            },
            Some(open) => {
                let Some(coll) = open.collection(self, ns)? else { return Ok(None) };
                check_not_capped(&coll)?;
                Ok(Some(WriteGuard::held_by_transaction(coll)))
            }
        }
    }
    pub(crate) async fn lock_or_create(&self, ctx: &OpCtx, ns: &Namespace) -> Result<WriteGuard> {
        if let Some(guard) = self.lock_for_write(ctx, ns).await? {
            return Ok(guard);
        }
        let Some(open) = self.open_txn(ctx) else {
            return ctx.interruptible(self.catalog.write_lock_or_create(ns)).await?;
        };
        let options = CollectionOptions::default();
        let coll = open.with(|unit| self.catalog.create_within(unit, ns, options))?;
        Ok(WriteGuard::held_by_transaction(coll))
    }
    /// Runs `work` in one unit that commits when it succeeds, again after a write conflict. In a transaction: within its
    /// unit, once, and without a position in the log.
    pub(crate) async fn in_unit<T>(
        &self,
        ctx: &OpCtx,
        coll: &WriteGuard,
        mut work: impl FnMut(&mut WriteUnit) -> Result<T>,
    ) -> Result<(T, OpTime)> {
        if let Some(open) = self.open_txn(ctx) {
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
    pub(crate) async fn insert_final(
        &self,
        ctx: &OpCtx,
        op: &WriteOp<'_>,
        coll: &WriteGuard,
        doc: &RawDoc,
        stmt_ids: &[i32],
    ) -> Result<OpTime> {
        if let Some(open) = self.open_txn(ctx) {
            open.with(|unit| self.catalog.insert_within(unit, op, coll, doc))?;
            return Ok(OpTime::NULL);
        }
        retry_conflicts(&self.catalog, &ByCtx(ctx), || {
            self.catalog.insert_final(op, coll, &[std::borrow::Cow::Borrowed(doc)], stmt_ids)
        })
        .await
    }
    /// Inserts documents as they come; the first error ends it.
    pub(crate) fn insert_within(
        &self,
        open: &OpenTxn,
        op: &WriteOp<'_>,
        coll: &WriteGuard,
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
    /// An error of one write: in a transaction the whole transaction ends with it, and those that tell the client to try
    /// the transaction again end the command too.
    pub(crate) fn write_failed(&self, ctx: &OpCtx, e: &Error) -> Result<()> {
        let Some(statement) = self.statement(ctx) else { return Ok(()) };
        if e.code == PREPARE_CONFLICT {
            return Err(e.clone());
        }
        statement.fail();
        if e.code.is(class::RETRIABLE | class::TRANSIENT_IN_TXN) { Err(e.clone()) } else { Ok(()) }
    }
}

fn check_not_capped(coll: &Collection) -> Result<()> {
    if !coll.is_capped() {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::OperationNotSupportedInTransaction,
        format!(
            "Collection '{}' is a capped collection. Writes in transactions are not allowed on capped collections.",
            coll.ns
        ),
    ))
}
