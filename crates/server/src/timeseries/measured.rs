//! Deletes of single measurements, by any condition: buckets that may hold some are unpacked and written without them.

use crate::aggregation::hint_on_buckets;
use crate::write::Writes;
use crate::write::find_one::Lookup;
use crate::write::writes::Retry;
use pando_access::{Missing, Series, UpdateForm, WriteAcquisition, WriteOp, WriteUnit};
use pando_base::Result;
use pando_bson::{DocBuf, RawDoc};
use pando_command::OpCtx;
use pando_query::matcher::{Matcher, Place};
use pando_query::source::RecordId;
use pando_query::stage::{bucket_filter, measurements};
use pando_query::timeseries::Bucket;
use pando_request::DeleteStatement;
use pando_session::retryable::{Done, Kind};

/// Buckets that one unit of work writes again: each may be as large as many documents.
const BUCKETS_PER_UNIT: usize = 16;

/// A delete on its way through the buckets.
struct Deleting<'a> {
    series: &'a Series,
    coll: &'a WriteAcquisition,
    buckets: Lookup<'a>,
    matcher: Matcher,
    multi: bool,
}

impl Writes {
    /// Returns how many measurements went.
    pub(super) async fn delete_measured(
        &self,
        ctx: &OpCtx,
        series: &Series,
        s: &DeleteStatement<'_>,
        retry: &mut Retry,
    ) -> Result<u64> {
        let Some(coll) = self.reads.access.write(ctx, &series.buckets, Missing::Nothing).await? else {
            return Ok(0);
        };
        let q = self.reads.query_ctx(ctx, Some(coll.collection()), s.collation, s.let_vars)?;
        let matcher = Matcher::parse(s.filter, &q)?;
        let collated = q.collation.is_some() || coll.collation().is_some();
        let filter = bucket_filter(&series.of, s.filter, collated);
        let hint = hint_on_buckets(s.hint.clone(), &series.of)?;
        let buckets = Lookup::new(Place::Query, &filter, hint, None, q, coll.collection())?;
        let deleting = Deleting { series, coll: &coll, buckets, matcher, multi: s.multi };
        deleting.run(self, ctx, s.index, retry).await
    }
}

impl Deleting<'_> {
    async fn run(&self, writes: &Writes, ctx: &OpCtx, index: usize, retry: &mut Retry) -> Result<u64> {
        let stmt = [retry.stmt_id(index)];
        let stmt_ids: &[i32] = if retry.is_retryable() && !self.multi { &stmt } else { &[] };
        let mut candidates = self.buckets.all(&writes.reads, ctx, self.coll).await?;
        let mut total = 0;
        loop {
            let batch = candidates.next_batch(ctx, self.coll, BUCKETS_PER_UNIT).await?;
            if batch.is_empty() || (total > 0 && !self.multi) {
                candidates.note(&writes.reads, ctx, self.coll);
                return Ok(total);
            }
            let op = if self.multi { WriteOp::default() } else { retry.op(false) };
            let (n, last) = writes
                .reads
                .access
                .in_unit(ctx, self.coll, |unit| self.from_buckets(ctx, unit, &op, &batch, stmt_ids))
                .await?;
            total += n;
            if !last.is_null() {
                ctx.set_last_op(last);
            }
            if n > 0 && !self.multi {
                let done = Done { kind: Kind::Delete, inserted_id: None, image: None, op_time: last };
                retry.note(index, done);
            }
            ctx.yield_now().await?;
            writes.admission.before_write(ctx).await?;
        }
    }

    fn from_buckets(
        &self,
        ctx: &OpCtx,
        unit: &mut WriteUnit,
        op: &WriteOp<'_>,
        buckets: &[RecordId],
        stmt_ids: &[i32],
    ) -> Result<u64> {
        let mut total = 0;
        for rid in buckets {
            let Some(found) = self.buckets.record_in_unit(rid, self.coll, unit, false)? else { continue };
            let old = RawDoc::trusted(&found.doc);
            let (n, kept) = self.without_matches(old)?;
            if n == 0 {
                continue;
            }
            if kept.is_empty() {
                unit.delete(op, self.coll, rid, old, stmt_ids)?;
            } else {
                let new = Bucket::rebuilt(&self.series.of, old, &kept)?;
                unit.update(op, self.coll, rid, old, &new, UpdateForm::Replacement, stmt_ids)?;
            }
            total += n;
            if !self.multi {
                break;
            }
        }
        ctx.before_commit(op.session.is_some())?;
        Ok(total)
    }

    /// How many measurements go, and those that stay.
    fn without_matches(&self, bucket: &RawDoc) -> Result<(u64, Vec<DocBuf>)> {
        let (mut n, mut kept) = (0, Vec::new());
        for measurement in measurements(&self.series.of, bucket)? {
            let goes = (self.multi || n == 0) && self.matcher.matches(&measurement)?;
            if goes { n += 1 } else { kept.push(measurement) }
        }
        Ok((n, kept))
    }
}
