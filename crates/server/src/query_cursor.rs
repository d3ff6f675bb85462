//! A running query: planned once, pulled batch by batch.

use crate::Server;
use crate::batch::Batch;
use crate::body::{CursorBody, More};
use crate::find_args::FindArgs;
use bytes::Bytes;
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp};
use pando_bson::RawDoc;
use pando_catalog::{Collection, View};
use pando_command::{OpCtx, ReadLevel, Reply, Request};
use pando_query::matcher::Matcher;
use pando_query::projection::{Projection, RowMeta};
use pando_query::source::{Direction, RecordCursor, RecordId, RecordScan, Source};
use pando_storage::ReadAt;
use std::sync::Arc;

/// Where a cursor reads from on: the latest state at each batch, or one fixed point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReadPoint {
    Latest,
    /// What is committed by the majority at each batch.
    Committed,
    At(Timestamp),
}

/// The state of a query between batches.
pub struct QueryCursor {
    coll: Arc<Collection>,
    point: ReadPoint,
    matcher: Arc<Matcher>,
    projection: Option<Projection>,
    skip: u64,
    limit: Option<u64>,
    tailable: bool,
    after: Option<RecordId>,
    stash: Option<Bytes>,
}

impl Server {
    /// Nothing in the request asks for anything but the newest data.
    pub(crate) fn reads_latest(&self, ctx: &OpCtx) -> bool {
        matches!(ctx.read_concern.level(), ReadLevel::Local | ReadLevel::Available)
    }
    pub(crate) fn read_point(&self, ctx: &OpCtx) -> ReadPoint {
        match (ctx.read_concern.level(), ctx.read_concern.at_cluster_time) {
            (_, Some(at)) => ReadPoint::At(at),
            (ReadLevel::Snapshot, None) => ReadPoint::At(self.committed()),
            (ReadLevel::Majority | ReadLevel::Linearizable, None) => ReadPoint::Committed,
            _ => ReadPoint::Latest,
        }
    }
    pub(crate) fn read_at(&self, point: ReadPoint) -> ReadAt {
        match point {
            ReadPoint::Latest => ReadAt::Latest,
            ReadPoint::Committed => ReadAt::At(self.committed()),
            ReadPoint::At(ts) => ReadAt::At(ts),
        }
    }
    pub(crate) fn parse_find(
        &self,
        ctx: &OpCtx,
        _ns: &Namespace,
        coll: Option<&Collection>,
        args: &FindArgs<'_>,
    ) -> Result<(Matcher, Option<Projection>)> {
        let q = self.query_ctx(ctx, coll, args.collation, args.lets)?;
        let matcher = Matcher::parse(args.filter.unwrap_or(RawDoc::empty()), &q)?;
        let projection = args.projection.map(|p| Projection::parse(p, &q)).transpose()?;
        Ok((matcher, projection))
    }
    pub(crate) fn open_query(
        &self,
        ctx: &OpCtx,
        coll: &Arc<Collection>,
        args: &FindArgs<'_>,
    ) -> Result<CursorBody> {
        let (matcher, projection) = self.parse_find(ctx, &coll.ns, Some(coll), args)?;
        if args.sort.is_some() {
            return Err(Error::new(ErrorCode::NotImplemented, "sort is not built in yet"));
        }
        Ok(CursorBody::Query(Box::new(QueryCursor {
            coll: coll.clone(),
            point: self.read_point(ctx),
            matcher: Arc::new(matcher),
            projection,
            skip: args.skip,
            limit: args.limit,
            tailable: args.tailable,
            after: None,
            stash: None,
        })))
    }
    pub(crate) async fn find_on_view(
        &self,
        _ctx: &OpCtx,
        _req: &Request<'_>,
        _view: &View,
        _args: &FindArgs<'_>,
    ) -> Result<Reply> {
        Err(Error::new(ErrorCode::NotImplemented, "views are not built in yet"))
    }
}

impl QueryCursor {
    pub(crate) async fn fill(&mut self, server: &Server, ctx: &OpCtx, batch: &mut Batch<'_>) -> Result<More> {
        if let Some(doc) = self.stash.take() {
            batch.push(&doc);
        }
        let mut source = server.catalog.open_source(&self.coll, server.read_at(self.point))?;
        let scan = RecordScan { after: self.after.as_ref(), ..RecordScan::all(Direction::Forward) };
        let mut rows: Box<dyn RecordCursor> = source.scan_records(scan)?;
        let mut looked = 0u32;
        while !batch.is_full() {
            if self.limit == Some(0) {
                return Ok(More::No);
            }
            let Some((rid, doc)) = rows.next()? else {
                return Ok(if self.tailable { More::Yes } else { More::No });
            };
            looked += 1;
            if looked % 1024 == 0 {
                ctx.yield_now().await?;
            }
            let raw = RawDoc::trusted(&doc);
            let matched = self.matcher.matches(raw)?;
            self.after = Some(rid);
            if !matched {
                continue;
            }
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            let out = match &self.projection {
                Some(p) => Bytes::from(p.apply(raw, &RowMeta::default())?.into_bytes()),
                None => doc,
            };
            self.limit = self.limit.map(|n| n - 1);
            if !batch.has_room(out.len()) {
                self.stash = Some(out);
                return Ok(More::Yes);
            }
            batch.push(&out);
        }
        Ok(if self.limit == Some(0) { More::No } else { More::Yes })
    }
}

impl Server {
    pub(crate) async fn count_on_view(
        &self,
        _ctx: &OpCtx,
        _req: &Request<'_>,
        _view: &View,
        _args: &FindArgs<'_>,
    ) -> Result<Reply> {
        Err(Error::new(ErrorCode::NotImplemented, "views are not built in yet"))
    }
    pub(crate) async fn count_matching(
        &self,
        ctx: &OpCtx,
        coll: &Arc<Collection>,
        args: &FindArgs<'_>,
    ) -> Result<u64> {
        let (matcher, _) = self.parse_find(ctx, &coll.ns, Some(coll), args)?;
        let mut source = self.catalog.open_source(coll, self.read_at(self.read_point(ctx)))?;
        let mut rows = source.scan_records(RecordScan::all(Direction::Forward))?;
        let (mut n, mut looked) = (0u64, 0u32);
        while let Some((_, doc)) = rows.next()? {
            n += u64::from(matcher.matches(RawDoc::trusted(&doc))?);
            looked += 1;
            if looked % 1024 == 0 {
                ctx.yield_now().await?;
            }
        }
        let left = n.saturating_sub(args.skip);
        Ok(args.limit.map_or(left, |limit| left.min(limit)))
    }
}
