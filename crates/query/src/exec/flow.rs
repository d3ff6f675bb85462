//! Stages with one input that pass rows on: fetch, skip, limit, project, return key.

use super::{Cx, KeyData, Next, Row, Stage, StageStats};
use crate::facts::MetaField;
use crate::matcher::Matcher;
use crate::plan::Query;
use crate::projection::{Projection, RowMeta};
use crate::sort::SortKeys;
use bytes::Bytes;
use pando_base::Result;
use pando_bson::keystring::KeyReader;
use pando_bson::{Bson, DocBuf, DocBuilder, Document, RawDoc};
use std::sync::Arc;

/// Record ids into documents.
pub(super) struct FetchStage {
    input: Box<dyn Stage>,
    filter: Option<Arc<Matcher>>,
    /// For rows found before the snapshot changed.
    recheck: Option<Arc<Matcher>>,
    stats: StageStats,
}

impl FetchStage {
    pub(super) fn new(
        input: Box<dyn Stage>,
        filter: Option<Arc<Matcher>>,
        recheck: Option<Arc<Matcher>>,
    ) -> FetchStage {
        FetchStage { input, filter, recheck, stats: StageStats::default() }
    }
}

impl Stage for FetchStage {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next> {
        loop {
            let mut row = match self.input.next(cx)? {
                Next::Row(row) => row,
                Next::Yield => {
                    return Ok(Next::Yield);
                }
                Next::Eof => {
                    self.stats.works += 1;
                    self.stats.eof = true;
                    return Ok(Next::Eof);
                }
            };
            self.stats.works += 1;
            if row.doc.is_none()
                && let Some(rid) = &row.rid
            {
                // Gone since the index entry was read, if the snapshot changed in between.
                let Some(doc) = cx.src.fetch(rid)? else { continue };
                self.stats.docs_examined += 1;
                cx.quota.spend_document(doc.len());
                if row.generation != cx.generation
                    && let Some(m) = &self.recheck
                    && !m.matches(RawDoc::trusted(&doc))?
                {
                    continue;
                }
                row.doc = Some(doc);
            }
            if let (Some(filter), Some(doc)) = (&self.filter, &row.doc)
                && !filter.matches(RawDoc::trusted(doc))?
            {
                continue;
            }
            self.stats.advanced += 1;
            return Ok(Next::Row(row));
        }
    }
    fn save(&mut self) {
        self.stats.saves += 1;
        self.input.save();
    }
    fn stats(&self) -> StageStats {
        StageStats { inputs: vec![self.input.stats()], ..self.stats.clone() }
    }
}

pub(super) struct SkipStage {
    input: Box<dyn Stage>,
    left: u64,
    stats: StageStats,
}

impl SkipStage {
    pub(super) fn new(input: Box<dyn Stage>, n: u64) -> SkipStage {
        SkipStage { input, left: n, stats: StageStats::default() }
    }
}

impl Stage for SkipStage {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next> {
        loop {
            let next = self.input.next(cx)?;
            self.stats.works += 1;
            match &next {
                Next::Row(_) if self.left > 0 => {
                    self.left -= 1;
                    continue;
                }
                Next::Row(_) => self.stats.advanced += 1,
                Next::Eof => self.stats.eof = true,
                Next::Yield => {}
            }
            return Ok(next);
        }
    }
    fn save(&mut self) {
        self.stats.saves += 1;
        self.input.save();
    }
    fn stats(&self) -> StageStats {
        StageStats { inputs: vec![self.input.stats()], ..self.stats.clone() }
    }
}

pub(super) struct LimitStage {
    input: Box<dyn Stage>,
    left: u64,
    stats: StageStats,
}

impl LimitStage {
    pub(super) fn new(input: Box<dyn Stage>, n: u64) -> LimitStage {
        LimitStage { input, left: n, stats: StageStats::default() }
    }
}

impl Stage for LimitStage {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next> {
        self.stats.works += 1;
        if self.left == 0 {
            self.stats.eof = true;
            return Ok(Next::Eof);
        }
        let next = self.input.next(cx)?;
        match &next {
            Next::Row(_) => {
                self.left -= 1;
                self.stats.advanced += 1;
            }
            Next::Eof => self.stats.eof = true,
            Next::Yield => {}
        }
        Ok(next)
    }
    fn save(&mut self) {
        self.stats.saves += 1;
        self.input.save();
    }
    fn stats(&self) -> StageStats {
        StageStats { inputs: vec![self.input.stats()], ..self.stats.clone() }
    }
}

/// Applies the projection, to documents or to index keys.
pub(super) struct ProjectStage {
    input: Box<dyn Stage>,
    projection: Arc<Projection>,
    /// Names of the fields in rows' index keys.
    key_fields: Vec<String>,
    shows_key: bool,
    positional: Option<Arc<Matcher>>,
    sort_keys: Option<SortKeys>,
    stats: StageStats,
}

impl ProjectStage {
    pub(super) fn new(
        input: Box<dyn Stage>,
        projection: Arc<Projection>,
        key_fields: Vec<String>,
        query: &Query,
    ) -> ProjectStage {
        let sort_keys = query
            .sort
            .as_ref()
            .filter(|_| projection.metas().contains(&MetaField::SortKey))
            .map(|s| SortKeys::new(s.clone(), query.ctx.collation.clone()));
        ProjectStage {
            input,
            positional: projection.needs_array_index().then(|| query.matcher.clone()),
            shows_key: projection.metas().contains(&MetaField::IndexKey),
            projection,
            key_fields,
            sort_keys,
            stats: StageStats::default(),
        }
    }

    fn project(&mut self, row: &Row) -> Result<DocBuf> {
        let covered;
        let doc = match (&row.key, &row.doc) {
            (_, Some(doc)) => RawDoc::trusted(doc),
            (Some(key), None) => {
                covered = key_document(key, &self.key_fields)?;
                &*covered
            }
            (None, None) => RawDoc::empty(),
        };
        let mut meta =
            RowMeta { record_id: row.rid.as_ref(), facts: row.facts.as_deref(), ..RowMeta::default() };
        if let Some(m) = &self.positional {
            meta.array_index = m.matches_position(doc)?.and_then(|d| d.array_index);
        }
        let sort_key = match &mut self.sort_keys {
            Some(keys) => Some(keys.values(doc, row.facts.as_deref())?),
            None => None,
        };
        meta.sort_key = sort_key.as_deref();
        let index_key = match &row.key {
            Some(key) if self.shows_key => Some(flat_key(key, &self.key_fields)?),
            _ => None,
        };
        meta.index_key = index_key.as_deref();
        self.projection.apply(doc, &meta)
    }
}

/// An index key under the names of its pattern.
fn flat_key(key: &KeyData, fields: &[String]) -> Result<DocBuf> {
    let mut reader = KeyReader::new(&key.bytes, key.directions, &key.type_bits);
    let mut b = DocBuilder::new();
    for f in fields {
        reader.next_into(&mut b, f)?;
    }
    Ok(b.finish())
}

/// An index key as the document it was made from, as far as it tells: dotted fields nest.
pub(super) fn key_document(key: &KeyData, fields: &[String]) -> Result<DocBuf> {
    if fields.iter().all(|f| !f.contains('.')) {
        return flat_key(key, fields);
    }
    let mut reader = KeyReader::new(&key.bytes, key.directions, &key.type_bits);
    let mut d = Document::new();
    for f in fields {
        if let Some(v) = reader.next_value()? {
            set_path(&mut d, f, v);
        }
    }
    Ok(d.to_raw())
}

fn set_path(d: &mut Document, path: &str, v: Bson) {
    match path.split_once('.') {
        None => d.set(path, v),
        Some((head, rest)) => {
            if !matches!(d.get(head), Some(Bson::Document(_))) {
                d.set(head, Document::new());
            }
            if let Some(Bson::Document(inner)) = d.get_mut(head) {
                set_path(inner, rest, v);
            }
        }
    }
}

impl Stage for ProjectStage {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next> {
        let next = self.input.next(cx)?;
        self.stats.works += 1;
        Ok(match next {
            Next::Row(mut row) => {
                let doc = self.project(&row)?;
                row.doc = Some(Bytes::from(doc.into_bytes()));
                self.stats.advanced += 1;
                Next::Row(row)
            }
            other => {
                if let Next::Eof = other {
                    self.stats.eof = true
                }
                other
            }
        })
    }
    fn save(&mut self) {
        self.stats.saves += 1;
        self.input.save();
    }
    fn stats(&self) -> StageStats {
        StageStats { inputs: vec![self.input.stats()], ..self.stats.clone() }
    }
}

/// Rows become the index keys that found them, and of a projection what it says of sort keys.
pub(super) struct ReturnKeyStage {
    input: Box<dyn Stage>,
    fields: Vec<String>,
    /// Under which names sort keys are told, and what they are.
    sort_keys: Option<(Vec<String>, SortKeys)>,
    stats: StageStats,
}

impl ReturnKeyStage {
    pub(super) fn new(input: Box<dyn Stage>, fields: Vec<String>, query: &Query) -> ReturnKeyStage {
        let names = query.projection.as_ref().map_or_else(Vec::new, |p| p.sort_key_names());
        let sort = query.sort.as_ref().filter(|_| !names.is_empty());
        let sort_keys = sort.map(|s| (names, SortKeys::new(s.clone(), query.ctx.collation.clone())));
        ReturnKeyStage { input, fields, sort_keys, stats: StageStats::default() }
    }

    fn told(&mut self, row: &Row) -> Result<DocBuf> {
        let key = match &row.key {
            Some(key) => flat_key(key, &self.fields)?,
            None => DocBuf::new(),
        };
        let Some((names, sort_keys)) = &mut self.sort_keys else { return Ok(key) };
        let values = match (&row.doc, &row.key) {
            (Some(doc), _) => sort_keys.values(RawDoc::trusted(doc), row.facts.as_deref())?,
            (None, Some(key)) => sort_keys.values(&key_document(key, &self.fields)?, None)?,
            (None, None) => return Ok(key),
        };
        let mut b = DocBuilder::with_capacity(key.byte_len() + values.byte_len() + 32);
        b.elems_of(&key);
        names.iter().for_each(|name| _ = b.raw_array(name, &values));
        Ok(b.finish())
    }
}

impl Stage for ReturnKeyStage {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next> {
        let next = self.input.next(cx)?;
        self.stats.works += 1;
        Ok(match next {
            Next::Row(mut row) => {
                let key = self.told(&row)?;
                row.doc = Some(Bytes::from(key.into_bytes()));
                self.stats.advanced += 1;
                Next::Row(row)
            }
            other => other,
        })
    }
    fn save(&mut self) {
        self.stats.saves += 1;
        self.input.save();
    }
    fn stats(&self) -> StageStats {
        StageStats { inputs: vec![self.input.stats()], ..self.stats.clone() }
    }
}

#[derive(Default)]
pub(super) struct EofStage {
    stats: StageStats,
}

impl Stage for EofStage {
    fn next(&mut self, _cx: &mut Cx<'_>) -> Result<Next> {
        self.stats.works += 1;
        self.stats.eof = true;
        Ok(Next::Eof)
    }
    fn save(&mut self) {}
    fn stats(&self) -> StageStats {
        self.stats.clone()
    }
}
