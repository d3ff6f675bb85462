//! A find's arguments become a query; and reads that are over with one call.

use super::{Reads, STEPS_PER_TURN, yield_from};
use pando_access::{Acquisition, Collection};
use pando_base::{Namespace, Result};
use pando_bson::RawDoc;
use pando_command::OpCtx;
use pando_query::ctx::TextIndex;
use pando_query::exec::{Executor, Quota, Step};
use pando_query::matcher::Matcher;
use pando_query::plan::{Query, QueryKind, check_one_order, natural_of};
use pando_query::projection::Projection;
use pando_query::sort::SortPattern;
use pando_request::FindArgs;
use std::sync::Arc;

impl Reads {
    /// Everything about a find that can be checked without a collection's indexes.
    pub(crate) fn parse_find(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        coll: Option<&Collection>,
        args: &FindArgs<'_>,
    ) -> Result<Query> {
        let mut q = self.query_ctx(ctx, coll, args.collation, args.let_vars)?;
        if coll.is_none() {
            q.text_index = TextIndex::NoCollection(ns.as_str().into());
        }
        let matcher = Matcher::parse(args.filter.unwrap_or(RawDoc::empty()), &q)?;
        let mut query = Query::new(ns.as_str(), Arc::new(matcher), q.clone());
        if let Some(coll) = coll {
            query.check_search(&coll.info)?;
        }
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
        check_one_order(&query.matcher, query.hint.as_ref(), query.natural)?;
        Ok(query)
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
        let mut source = self.access.source(ctx, coll, self.at(self.point(ctx)))?;
        let mut exec = Executor::new(query, &*source, self.resources(None))?;
        let mut n = 0;
        loop {
            match exec.next(&mut *source, &mut Quota::new(STEPS_PER_TURN))? {
                Step::Row(_) => n += 1,
                Step::NeedYield => yield_from(ctx, &exec, coll).await?,
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
        let mut source = self.access.source(ctx, coll, self.at(self.point(ctx)))?;
        let mut exec = Executor::new(query, &*source, self.resources(None))?;
        loop {
            match exec.next(&mut *source, &mut Quota::new(STEPS_PER_TURN))? {
                Step::Row(row) if each(RawDoc::trusted(&row.doc))? => {}
                Step::NeedYield => yield_from(ctx, &exec, coll).await?,
                Step::Row(_) | Step::Eof => break,
            }
        }
        self.note_plan(ctx, &exec, coll);
        Ok(())
    }
}
