//! Pipelines that end in `$out` or `$merge`: their results are written instead of returned.
//!
//! `$out` fills a temporary collection with the target's options and indexes and renames it over the target, so that
//! readers see the old contents or the new. `$merge` writes result by result, a batch at a time; a batch is tried to
//! its end and its first error ends the command, as an unordered write would.

mod merge;
mod out;

use super::{Aggregation, Aggregations};
use crate::cursors::body::CursorBody;
use crate::cursors::pipeline::{ERROR_CONTEXT, PipelineCursor, Turn};
use crate::write::Writes;
use merge::{MergeJob, check_unique};
use out::Out;
use pando_access::{Access, WriteAcquisition, WriteOp};
use pando_base::{Error, ErrorCode, Namespace, Result, limits};
use pando_bson::RawDoc;
use pando_command::{OpCtx, ReadLevel, Request};
use pando_query::QueryCtx;
use pando_query::stage::{Row, Sink, sinks_of};

/// What the command says beside the pipeline.
pub(crate) struct Writing<'a> {
    pub(crate) sink: Sink,
    pub(crate) collation: Option<&'a RawDoc>,
    pub(crate) bypass_validation: bool,
    /// Variables of the command, which a pipeline of `whenMatched` sees.
    pub(crate) let_vars: Option<&'a RawDoc>,
}

/// Results that wait to be written together.
struct Rows<'a> {
    writes: &'a Writes,
    ctx: &'a OpCtx,
    cursor: PipelineCursor,
    turn: Turn,
}

impl Rows<'_> {
    /// Empty at the end. Errors have their context already.
    async fn next_batch(&mut self) -> Result<Vec<Row>> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while rows.len() < limits::INSERT_UNIT_DOCS_MAX && bytes < limits::INSERT_UNIT_BYTES_MAX {
            let Some(row) = self.cursor.next(&self.writes.reads, self.ctx, &mut self.turn).await? else {
                break;
            };
            bytes += row.bytes().len();
            rows.push(row);
        }
        if !rows.is_empty() {
            self.writes.admission.before_write(self.ctx).await?;
        }
        Ok(rows)
    }
}

/// What is wrong with the targets of a pipeline's sinks, wherever they stand. They are looked at while stages are parsed.
pub(super) fn check_targets(access: &Access, db: &str, pipeline: &RawDoc, q: &QueryCtx) -> Result<()> {
    for sink in sinks_of(pipeline) {
        if let Sink::Merge(m) = &sink
            && let Ok(into) = Namespace::new(m.into.db.as_deref().unwrap_or(db), &m.into.coll)
        {
            check_unique(access, &into, m, q)?;
        }
        sink.target(db)?;
    }
    Ok(())
}

fn while_running(e: Error) -> Error {
    e.context(ERROR_CONTEXT)
}

impl Writing<'_> {
    /// Runs `agg` and writes what comes out of it.
    pub(crate) async fn run(
        &self,
        aggregations: &Aggregations,
        writes: &Writes,
        ctx: &OpCtx,
        req: &Request<'_>,
        agg: Aggregation,
    ) -> Result<()> {
        let rc = &ctx.read_concern;
        self.sink.check_level(rc.level() == ReadLevel::Linearizable, &rc.shell_text())?;
        let member = &writes.reads.replication.member;
        if member.is_replicated() && !member.is_primary() {
            return Err(Error::new(ErrorCode::NotWritablePrimary, "not primary"));
        }
        let into = self.sink.target(req.db)?;
        if let Sink::Merge(m) = &self.sink {
            check_unique(&writes.reads.access, &into, m, agg.ctx())?;
        }
        let q = agg.ctx().clone();
        let (body, source) = aggregations.open(ctx, agg)?;
        let cursor = match body {
            CursorBody::Pipeline(p) => *p,
            CursorBody::Query(q) => PipelineCursor::passing_on(q.into_scan())?,
            CursorBody::List(_) | CursorBody::Oplog(_) | CursorBody::ChangeStream(_) => {
                return Err(Error::internal("an aggregation is a plan or a pipeline"));
            }
        };
        writes.admission.before_write(ctx).await?;
        let turn = cursor.begin(&writes.reads, ctx, source)?;
        let mut rows = Rows { writes, ctx, cursor, turn };
        match &self.sink {
            Sink::Out(_) => {
                Out { writes, ctx, into: &into, bypass_validation: self.bypass_validation }
                    .run(&mut rows)
                    .await?;
            }
            Sink::Merge(m) => {
                MergeJob { writes, ctx, req, into: &into, spec: m, w: self, q }.run(&mut rows).await?;
            }
        }
        rows.cursor.end(&writes.reads, ctx, false);
        Ok(())
    }
}

/// All of a batch are tried; the first error counts.
async fn insert_rows(
    writes: &Writes,
    ctx: &OpCtx,
    op: &WriteOp<'_>,
    coll: &WriteAcquisition,
    batch: &[Row],
) -> Result<()> {
    let docs: Vec<&RawDoc> = batch.iter().map(Row::doc).collect();
    let metrics = &writes.reads.instance.metrics;
    metrics.op_counters.insert.add(docs.len() as u64);
    let done = writes.reads.access.insert_many(ctx, op, coll, &docs, &[], false).await;
    ctx.wrote(done.last);
    metrics.documents.inserted.add(done.n as u64);
    done.errors.into_iter().next().map_or(Ok(()), |(_, e)| Err(e))
}
