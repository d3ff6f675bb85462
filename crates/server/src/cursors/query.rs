//! A running query: planned once, pulled batch by batch.

use crate::Server;
use crate::cursors::batch::Batch;
use crate::cursors::body::{CursorBody, More};
use crate::statistics::plan_use;
use bytes::Bytes;
use pando_access::open_txn;
use pando_access::transaction::conflicts::{Undecided, on_prepared};
use pando_access::{Acquisition, Collection, CollectionScan, Reading};
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_command::{OpCtx, Param, ReadLevel};
use pando_query::exec::{Executor, Fed, OutRow, Quota, Resources, Step};
use pando_query::matcher::Matcher;
use pando_query::plan::{Query, QueryKind, natural_of};
use pando_query::projection::Projection;
use pando_query::script::Scripts;
use pando_query::sort::SortPattern;
use pando_query::source::{RecordId, Source};
use pando_request::FindArgs;
use pando_storage::{OnPrepared, ReadAt};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Steps of the executor between two chances for others to run: well under a millisecond.
pub(crate) const STEPS_PER_TURN: u32 = 1024;

/// What goes wrong while a plan runs gets MongoDB's prefix; a place that was lost between two batches does not.
pub(crate) fn in_plan(e: Error, context: &'static str) -> Error {
    let at_restore = e.code == ErrorCode::CappedPositionLost && !e.message.contains("failure to restore");
    if at_restore { e } else { e.context(context) }
}

/// Where a cursor reads from on: the latest state at each batch, or one fixed point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReadPoint {
    Latest,
    /// What is committed by the majority at each batch.
    Committed,
    At(Timestamp),
}

/// A plan being run on a collection, over any number of batches.
pub(crate) struct Scan {
    coll: CollectionScan,
    pub(crate) point: ReadPoint,
    pub(crate) exec: Executor,
    noted: bool,
}

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

impl Server {
    /// Nothing in the request asks for anything but the newest data.
    pub(crate) fn reads_latest(&self, ctx: &OpCtx) -> bool {
        let level = ctx.read_concern.level();
        !ctx.in_txn()
            && matches!(level, ReadLevel::Local | ReadLevel::Available)
            && on_prepared(&ctx.read_concern) == OnPrepared::Ignore
    }
    /// What a name means to this operation.
    pub(crate) fn read(&self, ctx: &OpCtx, ns: &Namespace) -> Result<Reading> {
        self.access.read(ctx, ns, self.read_at(self.read_point(ctx)))
    }
    pub(crate) fn read_point(&self, ctx: &OpCtx) -> ReadPoint {
        if ctx.in_txn() {
            return ReadPoint::Latest;
        }
        match (ctx.read_concern.level(), ctx.read_concern.at_cluster_time) {
            (_, Some(at)) => ReadPoint::At(at),
            (ReadLevel::Snapshot, None) if !self.config.majority_reads => {
                ReadPoint::At(self.replication.last_applied().ts)
            }
            (ReadLevel::Snapshot, None) => ReadPoint::At(self.replication.committed()),
            (ReadLevel::Majority | ReadLevel::Linearizable, None) => ReadPoint::Committed,
            _ => ReadPoint::Latest,
        }
    }
    pub(crate) fn read_at(&self, point: ReadPoint) -> ReadAt {
        match point {
            ReadPoint::Latest => ReadAt::Latest,
            ReadPoint::Committed => ReadAt::At(self.replication.committed()),
            ReadPoint::At(ts) => ReadAt::At(ts),
        }
    }
    pub(crate) fn resources(&self, allow_disk_use: Option<bool>) -> Resources {
        let params = &self.instance.params;
        let spills = allow_disk_use.unwrap_or_else(|| params.bool(Param::allowDiskUseByDefault));
        Resources {
            sort_bytes_max: params.int(Param::internalQueryMaxBlockingSortMemoryUsageBytes).max(0) as usize,
            spill: spills.then(|| self.upkeep.spills.clone() as _),
        }
    }
    /// Everything about a find that can be checked without a collection's indexes.
    pub(crate) fn parse_find(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        coll: Option<&Collection>,
        args: &FindArgs<'_>,
    ) -> Result<Query> {
        let q = self.query_ctx(ctx, coll, args.collation, args.let_vars)?;
        let matcher = Matcher::parse(args.filter.unwrap_or(RawDoc::empty()), &q)?;
        let mut query = Query::new(ns.as_str(), Arc::new(matcher), q.clone());
        if let Some(spec) = args.projection {
            let projection = Projection::parse(spec, &q)?;
            query.projection = (!projection.is_identity()).then(|| Arc::new(projection));
        }
        if let Some(spec) = args.sort {
            query.natural = natural_of(spec)?;
            if query.natural.is_none() {
                query.sort = Some(Arc::new(SortPattern::parse(spec)?)).filter(|s| !s.is_empty());
            }
        }
        query.skip = args.skip;
        query.limit = args.limit;
        query.hint = args.hint.clone();
        query.min = args.min.map(RawDoc::to_buf);
        query.max = args.max.map(RawDoc::to_buf);
        query.return_key = args.return_key;
        query.show_record_id = args.show_record_id;
        query.tailable = args.tailable;
        query.resume_after = pando_request::read::resume_token::parse(args.resume_after)?;
        query.check_metas()?;
        if coll.is_none() {
            query.check_text_without_collection()?;
        }
        Ok(query)
    }
    pub(crate) fn open_query(
        &self,
        ctx: &OpCtx,
        coll: &Acquisition,
        args: &FindArgs<'_>,
    ) -> Result<(CursorBody, Box<dyn Source>)> {
        let query = self.parse_find(ctx, &coll.ns, Some(coll), args)?;
        let (scan, source) = self.open_scan(ctx, coll, query, args.allow_disk_use)?;
        let mut cursor = QueryCursor::new(scan, "Executor error during find command");
        cursor.resume = args.resume_token.then(Resume::default);
        Ok((CursorBody::Query(Box::new(cursor)), source))
    }
    /// Plans `query` and opens what it reads from.
    pub(crate) fn open_scan(
        &self,
        ctx: &OpCtx,
        coll: &Acquisition,
        query: Query,
        allow_disk_use: Option<bool>,
    ) -> Result<(Scan, Box<dyn Source>)> {
        let point = self.read_point(ctx);
        let (coll, source) = self.access.scan(ctx, coll, self.read_at(point))?;
        let exec = Executor::new(query, &*source, self.resources(allow_disk_use))?;
        Ok((Scan { coll, point, exec, noted: false }, source))
    }
    /// How many documents a find with these arguments would return.
    pub(crate) async fn count_matching(
        &self,
        ctx: &OpCtx,
        coll: &Acquisition,
        args: &FindArgs<'_>,
    ) -> Result<u64> {
        let mut query = self.parse_find(ctx, &coll.ns, Some(coll), args)?;
        query.kind = QueryKind::Count;
        let mut source = self.access.source(ctx, coll, self.read_at(self.read_point(ctx)))?;
        let mut exec = Executor::new(query, &*source, self.resources(None))?;
        let mut n = 0;
        loop {
            match exec.next(&mut *source, &mut Quota::new(STEPS_PER_TURN))? {
                Step::Row(_) => n += 1,
                Step::NeedYield => ctx.yield_now().await?,
                Step::Eof => break,
            }
        }
        self.note_plan(ctx, &exec, coll);
        Ok(n)
    }
    /// Hands out what a query finds, until `each` has enough.
    pub(crate) async fn each_found(
        &self,
        ctx: &OpCtx,
        coll: &Acquisition,
        args: &FindArgs<'_>,
        mut each: impl FnMut(&RawDoc) -> Result<bool> + Send,
    ) -> Result<()> {
        let query = self.parse_find(ctx, &coll.ns, Some(coll), args)?;
        let mut source = self.access.source(ctx, coll, self.read_at(self.read_point(ctx)))?;
        let mut exec = Executor::new(query, &*source, self.resources(None))?;
        loop {
            match exec.next(&mut *source, &mut Quota::new(STEPS_PER_TURN))? {
                Step::Row(row) if each(RawDoc::trusted(&row.doc))? => {}
                Step::NeedYield => ctx.yield_now().await?,
                Step::Row(_) | Step::Eof => break,
            }
        }
        self.note_plan(ctx, &exec, coll);
        Ok(())
    }
    /// After a query has run: index use, counters, the line's plan summary.
    pub(crate) fn note_plan(&self, ctx: &OpCtx, exec: &Executor, coll: &Collection) {
        let stats = exec.stats();
        let (keys, docs) = (stats.total_keys_examined(), stats.total_docs_examined());
        let documents = &self.instance.metrics.documents;
        documents.scanned_keys.add(keys);
        documents.scanned_docs.add(docs);
        let Some(plan) = exec.plan() else { return };
        plan_use::count_use(plan, coll);
        let (scans, not_tailing) = plan_use::collection_scans(plan);
        documents.collection_scans.add(scans);
        documents.collection_scans_not_tailing.add(not_tailing);
        coll.shared.scans.total.fetch_add(scans, Relaxed);
        coll.shared.scans.not_tailing.fetch_add(not_tailing, Relaxed);
        let sorts = plan.has_blocking_sort();
        if sorts {
            documents.sorted_in_memory.inc();
        }
        ctx.debug(|d| {
            d.plan_summary = plan_use::summary(plan, coll);
            d.keys_examined = Some(keys);
            d.docs_examined = Some(docs);
            d.has_sort_stage = sorts;
            d.used_disk = stats.used_disk();
            d.replanned = exec.replanned().map(str::to_owned);
        });
    }
}

impl Scan {
    pub(crate) fn at_cluster_time(&self) -> Option<Timestamp> {
        match self.point {
            ReadPoint::At(ts) => Some(ts),
            _ => None,
        }
    }
    /// Before a batch that goes on, what was prepared up to here must be decided: rows behind it could not be told from
    /// those it has passed.
    pub(crate) fn must_be_decided(&self, server: &Server, ctx: &OpCtx) -> Result<Option<Undecided>> {
        let upto = match open_txn(ctx) {
            Some(open) => open.with(|unit| Ok(unit.txn().read_ts()))?,
            None if self.coll.on_prepared() == OnPrepared::Ignore => return Ok(None),
            None => self.at_cluster_time().unwrap_or_else(|| server.storage.log().clock()),
        };
        Ok(Some((self.coll.acquisition().collection().clone(), upto)))
    }
    /// What to read from now; 175 when the collection is not what the plan was made for.
    pub(crate) fn reopen(&self, server: &Server, ctx: &OpCtx) -> Result<Box<dyn Source>> {
        if !ctx.in_txn()
            && let Some(now) = server.access.changed_since(self.coll.acquisition())?
        {
            plan_use::check_indexes(self.coll.acquisition(), &now, self.exec.plan())?;
        }
        server.access.rescan(ctx, &self.coll, server.read_at(self.point))
    }
    /// Lets others run; a snapshot that has become old is exchanged for a new one.
    pub(crate) async fn pause(
        &mut self,
        server: &Server,
        ctx: &OpCtx,
        source: &mut Box<dyn Source>,
        opened: &mut Duration,
    ) -> Result<()> {
        ctx.yield_now().await?;
        let now = ctx.env().clock.mono();
        if now.saturating_sub(*opened) > Duration::from_secs(pando_base::limits::SNAPSHOT_AGE_SECS_MAX) {
            self.exec.save();
            let wait = self.must_be_decided(server, ctx)?;
            server.access.past_prepared(ctx, wait).await?;
            *source = self.reopen(server, ctx)?;
            *opened = now;
        }
        Ok(())
    }
    /// At the end of a batch: the plan is counted once, and nothing of the snapshot is kept.
    pub(crate) fn end_batch(&mut self, server: &Server, ctx: &OpCtx, goes_on: bool) {
        if !self.noted && self.exec.plan().is_some() {
            self.noted = true;
            server.note_plan(ctx, &self.exec, self.coll.acquisition());
        }
        if goes_on {
            self.exec.save();
        }
    }
}

impl QueryCursor {
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
        server: &Server,
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
                let wait = self.scan.must_be_decided(server, ctx)?;
                server.access.past_prepared(ctx, wait).await?;
                self.scan.reopen(server, ctx)?
            }
        };
        let more = self.pull(server, ctx, batch, &mut source).await;
        self.scan.end_batch(server, ctx, matches!(more, Ok(More::Yes)));
        more
    }

    async fn pull(
        &mut self,
        server: &Server,
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
                    self.scan.pause(server, ctx, source, &mut opened).await?;
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
