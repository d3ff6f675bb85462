//! What of a pipeline becomes a find plan.

use super::NearPart;
use crate::ctx::QueryCtx;
use crate::matcher::Matcher;
use crate::plan::{Firsts, Hint, Query, QueryKind};
use crate::projection::Projection;
use crate::sort::SortPattern;
use crate::source::{CollectionInfo, IndexInfo};
use pando_base::Result;
use pando_bson::DocBuilder;
use std::sync::Arc;

/// The part of a pipeline that a find plan does, in this order: filter, sort, skip, limit.
#[derive(Default)]
pub struct FindPart {
    pub matcher: Option<Arc<Matcher>>,
    pub sort: Option<Arc<SortPattern>>,
    pub skip: u64,
    pub limit: Option<u64>,
    /// Dotted paths that the rest of the pipeline reads; `None` when it needs whole documents. With `Some`, a plan
    /// may return documents that have only these (an index may cover them).
    pub fields: Option<Vec<String>>,
    /// A `$project` that keeps named fields, behind all of these.
    pub project: Option<Arc<Projection>>,
    /// Rows have to carry their text score.
    pub text_score: bool,
    /// Rows have to tell how near they are.
    pub nearness: bool,
    /// A `$geoNear` in front.
    pub near: Option<NearPart>,
    /// A `$group` behind it needs one document of each group.
    pub firsts: Option<Firsts>,
}

impl FindPart {
    /// The part as a query on the collection `ns`.
    pub fn into_query(
        self,
        ns: &str,
        info: &CollectionInfo,
        q: &QueryCtx,
        hint: Option<Hint>,
    ) -> Result<Query> {
        if let Some(near) = self.near {
            let mut query = near.into_query(ns, info, q)?;
            (query.limit, query.hint, query.nearness) = (self.limit, hint, self.nearness);
            return Ok(query);
        }
        let matcher = self.matcher.unwrap_or_else(|| Arc::new(Matcher::all()));
        let mut query = Query::new(ns, matcher, q.clone());
        query.sort = self.sort;
        query.skip = self.skip;
        query.limit = self.limit;
        query.hint = hint;
        query.text_score = self.text_score;
        query.firsts = self.firsts;
        if self.project.is_some() {
            query.projection = self.project;
            return Ok(query);
        }
        let Some(fields) = self.fields else { return Ok(query) };
        if fields.is_empty() {
            // The stages above only count rows.
            if query.sort.is_none() {
                query.kind = QueryKind::Count;
            }
            return Ok(query);
        }
        let mut b = DocBuilder::new();
        for path in &fields {
            b.i32(path, 1);
        }
        if !fields.iter().any(|f| f == "_id" || f.starts_with("_id.")) {
            b.i32("_id", 0);
        }
        let reads = Projection::parse(&b.finish(), q).map(Arc::new);
        let holds = |i: &IndexInfo| fields.iter().all(|want| i.fields.iter().any(|have| have.path == *want));
        match info.indexes.iter().any(holds) {
            // An index may answer without the documents.
            true => query.projection = Some(reads?),
            false => query.reads = reads.ok(),
        }
        Ok(query)
    }
}
