//! What of a pipeline becomes a find plan.

use super::conditions;
use super::geo_near::NearPart;
use super::limit::Limit;
use super::needs::Needs;
use super::pipeline::Pipeline;
use super::skip::Skip;
use super::spec::{Spec, Stage};
use super::spelled;
use super::unsorted::Unsorted;
use crate::ctx::QueryCtx;
use crate::matcher::Matcher;
use crate::plan::{Firsts, Hint, Query, QueryKind};
use crate::projection::Projection;
use crate::sort::SortPattern;
use crate::source::{CollectionInfo, IndexInfo};
use pando_base::Result;
use pando_bson::{DocBuf, DocBuilder};
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
            query.says_collation = true;
            return Ok(query);
        }
        let matcher = self.matcher.unwrap_or_else(|| Arc::new(Matcher::all()));
        let mut query = Query::new(ns, matcher, q.clone());
        query.says_collation = true;
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

/// Moves a stage into the find plan, if it can go there.
fn push_down(stage: &Stage, find: &mut FindPart, q: &QueryCtx) -> bool {
    match &stage.spec {
        Spec::Limit(Limit(n)) => find.limit = Some(find.limit.map_or(*n, |l| l.min(*n))),
        Spec::Skip(Skip(n)) => match find.limit {
            None => find.skip = find.skip.saturating_add(*n),
            // The plan skips before it limits; with nothing left over this stage ends the rows itself.
            Some(limit) if *n < limit => {
                find.skip = find.skip.saturating_add(*n);
                find.limit = Some(limit - n);
            }
            Some(_) => return false,
        },
        // A later sort replaces an earlier one only when nothing was cut off in between.
        Spec::Sort(sort) => {
            if sort.keep_key || find.sort.is_some() || find.skip > 0 || find.limit.is_some() {
                return false;
            }
            find.sort = Some(sort.pattern.clone());
        }
        // Behind a sort the filter may as well come first; behind a skip or limit it may not.
        Spec::Match(m) => {
            if find.skip > 0 || find.limit.is_some() {
                return false;
            }
            let both = |first: &Matcher| conditions::joined(&[first.filter().to_buf(), m.filter().to_buf()]);
            find.matcher = match &find.matcher {
                None => Some(m.matcher().clone()),
                Some(first) => match Matcher::parse(&both(first), q) {
                    Ok(both) => Some(Arc::new(both)),
                    Err(_) => return false,
                },
            };
        }
        Spec::GeoNear(near) => find.near = Some(near.clone()),
        _ => return false,
    }
    true
}

impl Pipeline {
    /// Takes away the leading stages that a find plan can do, and says which fields the rest needs.
    pub fn take_find(&mut self) -> FindPart {
        let mut find =
            FindPart { text_score: self.text_score, nearness: self.nearness, ..FindPart::default() };
        let mut taken = 0;
        loop {
            self.join_filters(taken);
            let Some(stage) = self.stages.get(taken) else { break };
            // Conditions behind a `$geoNear` may be on what it adds.
            let held_back = find.near.is_some() && !matches!(stage.spec, Spec::Limit(_));
            if held_back || !push_down(stage, &mut find, &self.ctx) {
                break;
            }
            taken += 1;
        }
        find.project = self.project_at(taken, &find);
        taken += usize::from(find.project.is_some());
        self.stages.drain(..taken);
        let mut needs = Needs::default();
        self.add_needs(&mut needs);
        find.fields = needs.fields();
        if find.project.is_none()
            && find.skip == 0
            && find.limit.is_none()
            && find.near.is_none()
            && !find.text_score
        {
            find.firsts = match self.stages.first().map(|s| &s.spec) {
                Some(Spec::Group(group)) => group.firsts(),
                _ => None,
            };
        }
        if self.unsorted {
            self.stages.insert(0, Stage::hidden(DocBuf::new(), Unsorted));
        }
        find
    }
    /// The stage at `at`, if the find plan can do it last: a `$project` that keeps named fields.
    fn project_at(&mut self, at: usize, find: &FindPart) -> Option<Arc<Projection>> {
        if !self.metas.is_empty() || find.near.is_some() || find.text_score || find.nearness {
            return None;
        }
        let stage = self.stages.get_mut(at)?;
        let spec = spelled::projection(stage.text.get("$project")?.as_doc()?, &self.ctx);
        let Spec::Reshape(reshape) = &mut stage.spec else { return None };
        let shape = reshape.take_inclusion()?;
        let projection = match shape.computes() {
            true => Projection::of_stage(spec, shape, &self.ctx),
            false => Projection::parse(&spec, &self.ctx)
                .unwrap_or_else(|_| Projection::of_stage(spec, shape, &self.ctx)),
        };
        Some(Arc::new(projection))
    }
}
