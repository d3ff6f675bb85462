//! Inserts of measurements: as many as fit into a unit of work at once, each bucket written once in it.
//!
//! A unit that fails is done again measurement by measurement, so that each error has its own, and so that an ordered
//! command stops at the right one.

use super::stage::Stage;
use crate::object_id::new_object_id;
use crate::write::Writes;
use crate::write::inserting::Inserted;
use crate::write::writes::Retry;
use pando_access::{Missing, Series, WriteAcquisition};
use pando_base::{Error, ErrorCode, OpTime, Result, limits};
use pando_bson::RawDoc;
use pando_command::OpCtx;
use pando_session::retryable::{Done, Kind};
use std::borrow::Cow;

/// A measurement with its place in the command.
type Measurement<'a> = (usize, Cow<'a, RawDoc>);

impl Writes {
    /// Inserts measurements; the statement of the first is `first`. Those of an earlier try are not among them.
    pub(crate) async fn insert_measurements(
        &self,
        ctx: &OpCtx,
        series: &Series,
        docs: &[(usize, &RawDoc)],
        ordered: bool,
        retry: &mut Retry,
    ) -> Result<Inserted> {
        if ctx.in_txn() {
            return Err(Error::new(
                ErrorCode::OperationNotSupportedInTransaction,
                "Cannot insert into a time-series collection in a multi-document transaction",
            ));
        }
        let mut out = Inserted::default();
        let Some(coll) = self.reads.access.write(ctx, &series.buckets, Missing::Nothing).await? else {
            // Dropped after the command had found them.
            let text = format!("Could not find collection {} for write", series.buckets);
            return Err(Error::new(ErrorCode::NamespaceNotFound, text));
        };
        let mut good: Vec<Measurement<'_>> = Vec::with_capacity(docs.len());
        for (i, doc) in docs {
            match series.of.time_of(doc).and_then(|_| self.reads.access.fix_for_insert(doc)) {
                Ok(doc) => good.push((*i, doc)),
                Err(e) => {
                    out.errors.push((*i, e));
                    if ordered {
                        break;
                    }
                }
            }
        }
        let mut rest = &good[..];
        while !rest.is_empty() {
            let (unit, behind) = rest.split_at(unit_end(rest));
            rest = behind;
            match self.write_measurements(ctx, &coll, series, unit, retry).await {
                Ok(last) => out.took(unit.len(), last),
                Err(e) if e.code.ends_batch_of(out.n > 0) => return Err(e),
                Err(_) if self.one_by_one(ctx, &coll, series, unit, ordered, retry, &mut out).await? => break,
                Err(_) => {}
            }
        }
        out.errors.sort_by_key(|(i, _)| *i);
        if ordered {
            out.errors.truncate(1);
        }
        Ok(out)
    }

    /// True when the command has to stop.
    async fn one_by_one(
        &self,
        ctx: &OpCtx,
        coll: &WriteAcquisition,
        series: &Series,
        unit: &[Measurement<'_>],
        ordered: bool,
        retry: &mut Retry,
        out: &mut Inserted,
    ) -> Result<bool> {
        for one in unit.chunks(1) {
            match self.write_measurements(ctx, coll, series, one, retry).await {
                Ok(last) => out.took(1, last),
                Err(e) if e.code.ends_batch_of(out.n > 0) => return Err(e),
                Err(e) => {
                    out.errors.push((one[0].0, e));
                    if ordered {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Writes them in one unit: all or none.
    async fn write_measurements(
        &self,
        ctx: &OpCtx,
        coll: &WriteAcquisition,
        series: &Series,
        measurements: &[Measurement<'_>],
        retry: &mut Retry,
    ) -> Result<OpTime> {
        let (turn, waited) = self.open_buckets.turn(ctx, coll.uuid).await?;
        // Buckets are made here and need no validation.
        let op = retry.op(true);
        let stmt_id = |i: usize| retry.is_retryable().then(|| retry.stmt_id(i));
        let (mut stage, last) = self
            .reads
            .access
            .in_unit(ctx, coll, |unit| {
                let mut stage = Stage::new(series, coll, &self.open_buckets);
                for (i, doc) in measurements {
                    stage.put(unit, *i, doc, || new_object_id(ctx.env()))?;
                }
                stage.write(unit, &op, stmt_id)?;
                ctx.before_commit(op.session.is_some())?;
                Ok(stage)
            })
            .await?;
        drop(turn);
        stage.counts.waits += i64::from(waited);
        let counts = stage.counts;
        self.open_buckets.committed(coll.uuid, stage.newest(), &counts);
        if !last.is_null() {
            for (i, _) in measurements {
                retry.note(*i, Done { kind: Kind::Insert, inserted_id: None, image: None, op_time: last });
            }
        }
        Ok(last)
    }
}

/// As many as one unit takes.
fn unit_end(rest: &[Measurement<'_>]) -> usize {
    let mut bytes = 0;
    let fits = |(_, doc): &&Measurement<'_>| {
        bytes += doc.byte_len();
        bytes <= limits::INSERT_UNIT_BYTES_MAX
    };
    rest.iter().take_while(fits).count().max(1)
}
