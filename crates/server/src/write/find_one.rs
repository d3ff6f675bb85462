//! Finding the documents that a write is about.

use crate::read::query_ctx::simple_id;
use crate::read::{Reads, STEPS_PER_TURN, yield_from};
use bytes::Bytes;
use pando_access::{Collection, WriteAcquisition, WriteUnit};
use pando_base::{Error, Result, Timestamp};
use pando_bson::{DocBuf, Elem, RawDoc, doc};
use pando_command::OpCtx;
use pando_query::QueryCtx;
use pando_query::exec::{Executor, OutRow, Quota, Step};
use pando_query::facts::{Facts, MetaField};
use pando_query::matcher::{MatchDetails, Matcher, Place};
use pando_query::plan::{Hint, Query, natural_of};
use pando_query::projection::{Projection, RowMeta};
use pando_query::sort::SortPattern;
use pando_query::source::{RecordId, Source};
use pando_storage::PREPARE_CONFLICT;
use std::sync::Arc;

/// A document with its place, and where in which array the filter matched.
pub(crate) struct Found {
    pub(crate) rid: RecordId,
    pub(crate) doc: Bytes,
    pub(crate) details: Option<MatchDetails>,
    pub(crate) told: Option<Arc<Told>>,
}

/// What a search knows of a document beside it, if the lookup was made to tell.
#[derive(Default)]
pub(crate) struct Told {
    facts: Option<Box<Facts>>,
    index_key: Option<DocBuf>,
}

impl Told {
    pub(crate) fn row(&self) -> RowMeta<'_> {
        let (facts, index_key) = (self.facts.as_deref(), self.index_key.as_deref());
        RowMeta { facts, index_key, ..RowMeta::default() }
    }
}

/// A parsed filter and the way to what it matches.
pub(crate) struct Lookup<'a> {
    /// `{_id: x}` alone: one point get.
    id: Option<Elem<'a>>,
    query: Query,
    tells: bool,
}

/// Which document to write.
pub(crate) enum Target {
    /// Looked up by `_id` inside the unit.
    ById,
    /// Found before; looked at again inside the unit.
    Record(RecordId, Option<Arc<Told>>),
}

impl<'a> Lookup<'a> {
    pub(crate) fn new(
        place: Place,
        filter: &'a RawDoc,
        hint: Option<Hint>,
        sort: Option<&RawDoc>,
        q: QueryCtx,
        coll: &Collection,
    ) -> Result<Lookup<'a>> {
        let same_collation = match (&q.collation, coll.collation()) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        let reachable = coll.id_index().is_some() || coll.is_clustered();
        let id =
            simple_id(filter).filter(|_| same_collation && reachable && hint.is_none() && sort.is_none());
        // The id lookup needs no matcher.
        let matcher = if id.is_some() { Matcher::all() } else { Matcher::parse_in(place, filter, &q)? };
        let mut query = Query::new(coll.ns.as_str(), Arc::new(matcher), q);
        query.hint = hint;
        query.of_write = true;
        if let Some(spec) = sort {
            query.natural = natural_of(spec)?;
            if query.natural.is_none() {
                query.sort = Some(Arc::new(SortPattern::parse(spec)?)).filter(|s| !s.is_empty());
            }
        }
        query.resolve_text(&coll.info)?;
        query.check_metas()?;
        Ok(Lookup { id, query, tells: false })
    }

    /// Its errors tell the collation.
    pub(crate) fn saying_collation(mut self) -> Lookup<'a> {
        self.query.says_collation = true;
        self
    }
    /// What it finds comes with what `$meta` asks for.
    pub(crate) fn tell(mut self, metas: &[MetaField]) -> Result<Lookup<'a>> {
        if self.id.is_some() {
            return Ok(self);
        }
        let searched = self.query.matcher.has_text();
        self.query.text_score |= searched && metas.contains(&MetaField::TextScore);
        self.query.nearness |=
            metas.iter().any(|m| matches!(m, MetaField::GeoNearDistance | MetaField::GeoNearPoint));
        if metas.contains(&MetaField::IndexKey) {
            let spec = doc! { "_id": 1, "key": { "$meta": "indexKey" } }.to_raw();
            self.query.projection = Some(Arc::new(Projection::parse(&spec, &self.query.ctx)?));
        }
        self.tells = !metas.is_empty();
        Ok(self)
    }

    /// The first match in the newest snapshot; `None` when there is none.
    pub(crate) async fn first(
        &self,
        reads: &Reads,
        ctx: &OpCtx,
        coll: &WriteAcquisition,
    ) -> Result<Option<Target>> {
        if self.id.is_some() {
            return Ok(Some(Target::ById));
        }
        let decided = reads.storage.prepare_changes();
        loop {
            let seen = decided.version();
            match self.first_decided(reads, ctx, coll).await {
                // In a transaction the whole statement begins again.
                Err(e) if e.code == PREPARE_CONFLICT && !ctx.in_txn() => {
                    ctx.interruptible(decided.changed(seen)).await?;
                }
                found => return found,
            }
        }
    }
    async fn first_decided(
        &self,
        reads: &Reads,
        ctx: &OpCtx,
        coll: &WriteAcquisition,
    ) -> Result<Option<Target>> {
        let query = Query { limit: Some(1), ..self.query.clone() };
        let mut source = reads.access.target_source(ctx, coll)?;
        let mut exec = Executor::new(query, &*source, reads.resources(None))?;
        loop {
            match exec.next(&mut *source, &mut Quota::new(STEPS_PER_TURN))? {
                Step::Row(row) => {
                    reads.note_plan(ctx, &exec, coll);
                    let told = self.tells.then(|| Arc::new(told(&row)));
                    return Ok(row.rid.map(|rid| Target::Record(rid, told)));
                }
                Step::NeedYield => yield_from(ctx, &exec, coll).await?,
                Step::Eof => {
                    reads.note_plan(ctx, &exec, coll);
                    return Ok(None);
                }
            }
        }
    }
    /// The target as `unit` sees it; `None` when it is gone or does not match any more.
    pub(crate) fn in_unit(
        &self,
        target: &Target,
        coll: &WriteAcquisition,
        unit: &WriteUnit,
        position: bool,
    ) -> Result<Option<Found>> {
        match (target, self.id) {
            (Target::ById, Some(id)) => {
                let found = coll.find_id(unit, id)?;
                Ok(found.map(|(rid, doc)| Found {
                    rid,
                    doc: Bytes::from_owner(doc),
                    details: None,
                    told: None,
                }))
            }
            (Target::ById, None) => Ok(None),
            (Target::Record(rid, told), _) => {
                let found = self.record_in_unit(rid, coll, unit, position)?;
                Ok(found.map(|found| Found { told: told.clone(), ..found }))
            }
        }
    }
    pub(crate) fn record_in_unit(
        &self,
        rid: &RecordId,
        coll: &WriteAcquisition,
        unit: &WriteUnit,
        position: bool,
    ) -> Result<Option<Found>> {
        let doc = coll.fetch(unit, rid)?;
        let Some(doc) = doc else { return Ok(None) };
        let details = match position {
            true => match self.query.matcher.matches_position(RawDoc::trusted(&doc))? {
                None => return Ok(None),
                details => details,
            },
            false if self.matches(RawDoc::trusted(&doc))? => None,
            false => return Ok(None),
        };
        Ok(Some(Found { rid: rid.clone(), doc, details, told: None }))
    }
    fn matches(&self, doc: &RawDoc) -> Result<bool> {
        match self.id {
            Some(id) => Ok(doc.get("_id").is_some_and(|v| pando_bson::compare::values_equal(v, id.value()))),
            None => self.query.matcher.matches(doc),
        }
    }

    /// The record ids of all matches of one snapshot, in batches.
    pub(crate) async fn all(
        &self,
        reads: &Reads,
        ctx: &OpCtx,
        coll: &WriteAcquisition,
    ) -> Result<Candidates> {
        let decided = reads.storage.prepare_changes();
        loop {
            let seen = decided.version();
            match self.all_decided(reads, ctx, coll).await {
                Err(e) if e.code == PREPARE_CONFLICT && !ctx.in_txn() => {
                    ctx.interruptible(decided.changed(seen)).await?;
                }
                found => return found,
            }
        }
    }
    async fn all_decided(&self, reads: &Reads, ctx: &OpCtx, coll: &WriteAcquisition) -> Result<Candidates> {
        // A scan that has written cannot begin again. What is prepared after this look came later than the command.
        let undecided = reads.storage.has_prepared(coll.idents(), Timestamp::MAX);
        let source = match undecided {
            true => reads.access.target_source(ctx, coll)?,
            false => reads.access.decided_source(ctx, coll)?,
        };
        let query = match self.id {
            // As a plan it needs its filter.
            Some(id) => {
                let mut b = pando_bson::DocBuilder::new();
                b.elem(id);
                let matcher = Matcher::parse(&b.finish(), &self.query.ctx)?;
                Query { matcher: Arc::new(matcher), ..self.query.clone() }
            }
            None => self.query.clone(),
        };
        let exec = Executor::new(query, &*source, reads.resources(None))?;
        let mut all = Candidates { exec, source, found: None, failed: None };
        if ctx.in_txn() || undecided {
            // The unit's own writes would come into the scan's way: everything is found before anything is written.
            all.find_all(ctx, coll).await?;
        }
        Ok(all)
    }

    /// Whether a duplicate key error may come from a race of two upserts with this filter: then the other one's document is the one to
    /// update.
    pub(crate) fn may_have_lost_a_race(&self, e: &Error) -> bool {
        let extra = RawDoc::trusted(&e.extra);
        match extra.get("keyValue").and_then(|v| v.as_doc()) {
            // The filter was not parsed.
            Some(key) if self.id.is_some() => key.count() == 1 && key.elem("_id").is_some(),
            Some(key) => super::point_query::asks_for(self.query.matcher.filter(), key),
            None => false,
        }
    }
}

fn told(row: &OutRow) -> Told {
    let doc = if row.doc.is_empty() { RawDoc::empty() } else { RawDoc::trusted(&row.doc) };
    let key = doc.get("key").and_then(|v| v.as_doc());
    Told { facts: row.facts.clone(), index_key: key.map(RawDoc::to_buf) }
}

/// See [`Lookup::all`].
pub(crate) struct Candidates {
    exec: Executor,
    source: Box<dyn Source>,
    /// All there are, each once.
    found: Option<std::vec::IntoIter<RecordId>>,
    /// Met behind candidates that were handed out first: what came before an error is still written.
    failed: Option<Error>,
}

impl Candidates {
    /// Up to `n` more; empty at the end.
    pub(crate) async fn next_batch(
        &mut self,
        ctx: &OpCtx,
        coll: &Collection,
        n: usize,
    ) -> Result<Vec<RecordId>> {
        if let Some(e) = self.failed.take() {
            return Err(e);
        }
        if let Some(found) = &mut self.found {
            return Ok(found.take(n).collect());
        }
        let mut out = Vec::with_capacity(n);
        while out.len() < n {
            match self.exec.next(&mut *self.source, &mut Quota::new(STEPS_PER_TURN)) {
                Ok(Step::Row(row)) => out.extend(row.rid),
                Ok(Step::NeedYield) => yield_from(ctx, &self.exec, coll).await?,
                Ok(Step::Eof) => break,
                Err(e) if out.is_empty() => return Err(e),
                Err(e) => {
                    self.failed = Some(e);
                    break;
                }
            }
        }
        Ok(out)
    }
    async fn find_all(&mut self, ctx: &OpCtx, coll: &Collection) -> Result<()> {
        let mut found = Vec::new();
        let mut seen = pando_base::HashSet::default();
        loop {
            let batch = self.next_batch(ctx, coll, pando_base::limits::MULTI_WRITE_UNIT_DOCS).await?;
            if batch.is_empty() {
                break;
            }
            found.extend(batch.into_iter().filter(|rid| seen.insert(rid.clone())));
        }
        self.found = Some(found.into_iter());
        Ok(())
    }
    pub(crate) fn note(&self, reads: &Reads, ctx: &OpCtx, coll: &Collection) {
        reads.note_plan(ctx, &self.exec, coll);
    }
}
