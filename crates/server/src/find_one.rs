//! Finding the documents that a write is about.

use crate::hint::Hint;
use crate::query_ctx::simple_id;
use bytes::Bytes;
use pando_base::{Error, Result};
use pando_bson::{Elem, RawDoc};
use pando_catalog::{Collection, CollectionSource, find_id};
use pando_command::OpCtx;
use pando_query::QueryCtx;
use pando_query::matcher::{MatchDetails, Matcher};
use pando_query::source::{Direction, RecordCursor, RecordId, RecordScan, Source};
use pando_storage::Txn;
use std::sync::Arc;

/// A document with its place, and where in which array the filter matched.
pub(crate) struct Found {
    pub(crate) rid: RecordId,
    pub(crate) doc: Bytes,
    pub(crate) details: Option<MatchDetails>,
}

/// A parsed filter and the way to what it matches.
pub(crate) struct Lookup<'a> {
    /// `{_id: x}` alone: one point get.
    id: Option<Elem<'a>>,
    matcher: Arc<Matcher>,
    sort: Option<&'a RawDoc>,
    hint: Option<Hint>,
    q: QueryCtx,
}

impl<'a> Lookup<'a> {
    pub(crate) fn new(
        filter: &'a RawDoc,
        hint: Option<Hint>,
        q: QueryCtx,
        coll: &Collection,
    ) -> Result<Lookup<'a>> {
        let same_collation = match (&q.collation, coll.collation()) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        let id = simple_id(filter).filter(|_| same_collation && hint.is_none());
        // The id lookup needs no matcher.
        let matcher = Arc::new(if id.is_some() { Matcher::all() } else { Matcher::parse(filter, &q)? });
        Ok(Lookup { id, matcher, sort: None, hint, q })
    }
    pub(crate) fn with_sort(mut self, sort: Option<&'a RawDoc>) -> Lookup<'a> {
        self.sort = sort;
        self
    }

    /// The first match in a snapshot.
    pub(crate) fn first_in(
        &self,
        coll: &Arc<Collection>,
        txn: &Txn,
        position: bool,
    ) -> Result<Option<Found>> {
        if let Some(id) = self.id {
            let found = find_id(txn, coll, id)?;
            return Ok(found.map(|(rid, doc)| Found { rid, doc: Bytes::from_owner(doc), details: None }));
        }
        let mut source = CollectionSource::within(coll.clone(), txn);
        let mut cursor = source.scan_records(RecordScan::all(Direction::Forward))?;
        while let Some((rid, doc)) = cursor.next()? {
            if let Some(found) = self.check(&rid, doc, position)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
    /// The record ids of all matches of a snapshot, in batches.
    pub(crate) fn all(&self, mut source: Box<dyn Source>) -> Result<Candidates<'_>> {
        let cursor = source.scan_records(RecordScan::all(Direction::Forward))?;
        Ok(Candidates { lookup: self, cursor, _source: source })
    }
    pub(crate) fn matches(&self, doc: &RawDoc) -> Result<bool> {
        match self.id {
            Some(id) => Ok(doc.get("_id").is_some_and(|v| pando_bson::compare::values_equal(v, id.value()))),
            None => self.matcher.matches(doc),
        }
    }
    /// The document as a find of this lookup, if it matches.
    pub(crate) fn check(&self, rid: &RecordId, doc: Bytes, position: bool) -> Result<Option<Found>> {
        let raw = RawDoc::trusted(&doc);
        let details = if position {
            match self.matcher.matches_position(raw)? {
                None => return Ok(None),
                details => details,
            }
        } else if self.matches(raw)? {
            None
        } else {
            return Ok(None);
        };
        Ok(Some(Found { rid: rid.clone(), doc, details }))
    }
    /// Whether a duplicate key error may come from a race of two upserts with this filter: the key's fields are
    /// what the filter asks for by equality, so the other one's document is the one to update.
    pub(crate) fn is_point_query_of(&self, e: &Error) -> bool {
        let extra = RawDoc::trusted(&e.extra);
        let (Some(pattern), Some(value)) = (
            extra.get("keyPattern").and_then(|v| v.as_doc()),
            extra.get("keyValue").and_then(|v| v.as_doc()),
        ) else {
            return false;
        };
        let filter = match self.id {
            Some(_) => return pattern.count() == 1 && pattern.elem("_id").is_some(),
            None => self.matcher.filter(),
        };
        pattern.iter().all(|k| match (filter.get(k.name()), value.get(k.name())) {
            (Some(want), Some(have)) => pando_bson::compare::values_equal(want, have),
            _ => false,
        })
    }
}

/// See [`Lookup::all`].
pub(crate) struct Candidates<'a> {
    lookup: &'a Lookup<'a>,
    cursor: Box<dyn RecordCursor>,
    _source: Box<dyn Source>,
}

impl Candidates<'_> {
    /// Up to `n` more; empty at the end.
    pub(crate) async fn next_batch(&mut self, ctx: &OpCtx, n: usize) -> Result<Vec<RecordId>> {
        let mut out = Vec::with_capacity(n);
        let mut looked = 0u32;
        while out.len() < n {
            let Some((rid, doc)) = self.cursor.next()? else { break };
            if self.lookup.matches(RawDoc::trusted(&doc))? {
                out.push(rid);
            }
            looked += 1;
            if looked % 1024 == 0 {
                ctx.yield_now().await?;
            }
        }
        Ok(out)
    }
}
