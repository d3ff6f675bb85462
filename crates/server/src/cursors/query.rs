//! The cursor of a find: its plan, pulled batch by batch.

use super::batch::Batch;
use super::parked::More;
use crate::read::scan::{Scan, in_plan};
use crate::read::{Reads, STEPS_PER_TURN};
use bytes::Bytes;
use pando_access::Acquisition;
use pando_base::{Error, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_command::OpCtx;
use pando_query::exec::{Fed, OutRow, Quota, Step};
use pando_query::script::Scripts;
use pando_query::source::{RecordId, Source};
use pando_request::FindArgs;
use std::sync::Arc;

/// The state of a query between batches.
pub(crate) struct QueryCursor {
    scan: Scan,
    first_context: &'static str,
    tailable: bool,
    /// Rows show their `$recordId`.
    record_ids: bool,
    /// A row that did not fit into the last batch.
    stash: Option<Bytes>,
    /// Of a cursor whose batches tell where they end.
    resume: Option<Resume>,
}

#[derive(Default)]
struct Resume {
    /// The last row that was returned, and the one put aside.
    last: Option<RecordId>,
    stashed: Option<RecordId>,
}

impl QueryCursor {
    /// Plans a find on `coll`.
    pub(crate) fn open(
        reads: &Reads,
        ctx: &OpCtx,
        coll: &Acquisition,
        args: &FindArgs<'_>,
    ) -> Result<(QueryCursor, Box<dyn Source>)> {
        let query = reads.parse_find(ctx, &coll.ns, Some(coll), args)?;
        let (scan, source) = reads.open_scan(ctx, coll, query, args.allow_disk_use)?;
        let mut cursor = QueryCursor::new(scan, "Executor error during find command");
        cursor.resume = args.resume_token.then(Resume::default);
        Ok((cursor, source))
    }
    /// `context` goes before errors of the first batch.
    pub(crate) fn new(scan: Scan, context: &'static str) -> QueryCursor {
        let q = scan.exec.query();
        let (tailable, record_ids) = (q.tailable, q.show_record_id && !q.return_key);
        QueryCursor { scan, first_context: context, tailable, record_ids, stash: None, resume: None }
    }
    pub(crate) fn scripts(&self) -> Option<&Arc<dyn Scripts>> {
        self.scan.exec.ctx().scripts.as_ref()
    }
    pub(crate) fn into_scan(self) -> Scan {
        self.scan
    }
    pub(crate) fn at_cluster_time(&self) -> Option<Timestamp> {
        self.scan.at_cluster_time()
    }
    /// Appends rows until the batch is full. `source` is given when the query was just opened on it.
    pub(crate) async fn fill(
        &mut self,
        reads: &Reads,
        ctx: &OpCtx,
        batch: &mut Batch<'_>,
        source: Option<Box<dyn Source>>,
    ) -> Result<More> {
        if let Some(doc) = self.stash.take() {
            batch.push(&doc);
            if let Some(resume) = &mut self.resume {
                resume.last = resume.stashed.take();
            }
        }
        let mut source = match source {
            Some(source) => source,
            None => {
                let wait = self.scan.must_be_decided(reads, ctx)?;
                reads.access.past_prepared(ctx, wait).await?;
                self.scan.reopen(reads, ctx)?
            }
        };
        let more = self.pull(reads, ctx, batch, &mut source).await;
        self.scan.end_batch(reads, ctx, matches!(more, Ok(More::Yes)));
        more
    }

    async fn pull(
        &mut self,
        reads: &Reads,
        ctx: &OpCtx,
        batch: &mut Batch<'_>,
        source: &mut Box<dyn Source>,
    ) -> Result<More> {
        let mut opened = ctx.env().clock.mono();
        let mut quota = Quota::new(STEPS_PER_TURN);
        let context = if self.scan.noted { "Executor error during getMore" } else { self.first_context };
        while !batch.is_full() {
            let fed = self.feed(batch, &mut **source, &mut quota);
            // What the planner refuses is said as it is; what happens while a plan runs gets MongoDB's prefix.
            let running = self.scan.exec.plan().is_some();
            match fed.map_err(|e: Error| if running { in_plan(e, context) } else { e })? {
                Fed::Stopped if self.stash.is_some() => return Ok(More::Yes),
                Fed::Stopped => {}
                Fed::NeedYield => {
                    quota = Quota::new(STEPS_PER_TURN);
                    self.scan.pause(reads, ctx, source, &mut opened).await?;
                }
                // A tailing cursor on an empty collection has no position to wait at: it is over at once.
                Fed::Eof if self.tailable && self.scan.exec.stats().total_docs_examined() > 0 => {
                    return Ok(More::Yes);
                }
                Fed::Eof => return Ok(More::No),
            }
        }
        // A query whose limit is reached has no cursor, even when the batch ends exactly there.
        let limit_met = self.scan.exec.query().limit.is_some_and(|limit| limit <= batch.len());
        Ok(if limit_met { More::No } else { More::Yes })
    }

    fn put_row(&mut self, batch: &mut Batch<'_>, row: OutRow) -> Fed {
        let fed = match self.record_ids {
            true => put(batch, &mut self.stash, &with_record_id(&row)),
            false => put(batch, &mut self.stash, &row.doc),
        };
        if let Some(resume) = &mut self.resume {
            let place = if self.stash.is_some() { &mut resume.stashed } else { &mut resume.last };
            *place = row.rid;
        }
        fed
    }
    /// What its plan and the row put aside hold in memory.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.scan.exec.stats().total_held_bytes() + self.stash.as_ref().map_or(0, |row| row.len() as u64)
    }
    pub(crate) fn resume_token(&self) -> Option<DocBuf> {
        self.resume.as_ref().map(|r| pando_request::read::resume_token::document(r.last.as_ref()))
    }

    /// Puts rows into the batch, until it is full or the quota is used up.
    fn feed(&mut self, batch: &mut Batch<'_>, source: &mut dyn Source, quota: &mut Quota) -> Result<Fed> {
        if self.record_ids || self.resume.is_some() {
            return Ok(match self.scan.exec.next(source, quota)? {
                Step::Row(row) => self.put_row(batch, row),
                Step::NeedYield => Fed::NeedYield,
                Step::Eof => Fed::Eof,
            });
        }
        let stash = &mut self.stash;
        self.scan.exec.feed(source, quota, &mut |doc| {
            put(batch, stash, doc);
            Ok(stash.is_none() && !batch.is_full())
        })
    }
}

/// Adds a document, or puts it aside when there is no room.
fn put(batch: &mut Batch<'_>, stash: &mut Option<Bytes>, doc: &[u8]) -> Fed {
    if batch.has_room(doc.len()) {
        batch.push(doc);
    } else {
        *stash = Some(Bytes::copy_from_slice(doc));
    }
    Fed::Stopped
}

fn with_record_id(row: &OutRow) -> Bytes {
    let mut b = DocBuilder::with_capacity(row.doc.len() + 32);
    b.elems_of(RawDoc::trusted(&row.doc));
    match &row.rid {
        Some(RecordId::Long(n)) => {
            b.i64("$recordId", *n);
        }
        Some(RecordId::Key(key)) => {
            b.binary("$recordId", 0, key);
        }
        None => {}
    }
    Bytes::from(b.finish().into_bytes())
}
