//! Text search: scores of terms summed up by record, and what only the document can tell.

use super::{Cx, KeyData, Next, Row, Stage, StageStats};
use crate::facts::Facts;
use crate::matcher::{Matcher, TextMeaning};
use crate::source::RecordId;
use crate::text::SCORE_FIELD;
use bytes::Bytes;
use pando_base::limits::RECORD_SET_BYTES_MAX;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::keystring::KeyReader;
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads all inputs, then gives every record once with the sum of its scores.
pub(super) struct TextOrStage {
    inputs: Vec<Box<dyn Stage>>,
    at: usize,
    filter: Option<Arc<Matcher>>,
    key_fields: Vec<String>,
    /// `None`: a key of the record did not match.
    scores: BTreeMap<RecordId, Option<f64>>,
    bytes: usize,
    stats: StageStats,
}

impl TextOrStage {
    pub(super) fn new(
        inputs: Vec<Box<dyn Stage>>,
        filter: Option<Arc<Matcher>>,
        key_fields: Vec<String>,
    ) -> TextOrStage {
        TextOrStage {
            inputs,
            at: 0,
            filter,
            key_fields,
            scores: BTreeMap::new(),
            bytes: 0,
            stats: StageStats::default(),
        }
    }

    fn add(&mut self, row: Row) -> Result<()> {
        let (Some(rid), Some(key)) = (row.rid, row.key) else {
            return Err(Error::internal("a text index scan without keys"));
        };
        let key = flat_key(&key, &self.key_fields)?;
        let mine = match self.scores.get(&rid) {
            Some(None) => return Ok(()),
            Some(Some(score)) => *score,
            None => {
                self.bytes += size_of::<(RecordId, Option<f64>)>() * 2;
                if self.bytes > RECORD_SET_BYTES_MAX {
                    return Err(Error::new(
                        ErrorCode::ExceededMemoryLimit,
                        format!("The scores of a text search take more than {RECORD_SET_BYTES_MAX} bytes"),
                    ));
                }
                let fits = self.filter.as_ref().map_or(Ok(true), |f| f.matches(&key))?;
                if !fits {
                    self.scores.insert(rid, None);
                    return Ok(());
                }
                0.0
            }
        };
        let score = key.get(SCORE_FIELD).and_then(|v| v.as_f64()).unwrap_or(0.0);
        self.scores.insert(rid, Some(mine + score));
        Ok(())
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

impl Stage for TextOrStage {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next> {
        while let Some(input) = self.inputs.get_mut(self.at) {
            let next = input.next(cx)?;
            self.stats.works += 1;
            match next {
                Next::Row(row) => self.add(row)?,
                Next::Yield => {
                    return Ok(Next::Yield);
                }
                Next::Eof => self.at += 1,
            }
        }
        while let Some((rid, score)) = self.scores.pop_first() {
            let Some(score) = score else { continue };
            self.stats.works += 1;
            let Some(doc) = cx.src.fetch(&rid)? else { continue };
            self.stats.docs_examined += 1;
            self.stats.advanced += 1;
            let row =
                Row { rid: Some(rid), doc: Some(doc), facts: Some(Facts::scored(score)), ..Row::default() };
            return Ok(Next::Row(Row { generation: cx.generation, ..row }));
        }
        self.stats.works += 1;
        self.stats.eof = true;
        Ok(Next::Eof)
    }
    fn save(&mut self) {
        self.stats.saves += 1;
        self.inputs.iter_mut().for_each(|i| i.save());
    }
    fn stats(&self) -> StageStats {
        let inputs = self.inputs.iter().map(|i| i.stats()).collect();
        StageStats { inputs, held_bytes: self.bytes as u64, ..self.stats.clone() }
    }
}

/// Rows whose keys match; the keys are dropped.
pub(super) struct KeyFilterStage {
    input: Box<dyn Stage>,
    filter: Arc<Matcher>,
    key_fields: Vec<String>,
}

impl KeyFilterStage {
    pub(super) fn new(
        input: Box<dyn Stage>,
        filter: Arc<Matcher>,
        key_fields: Vec<String>,
    ) -> KeyFilterStage {
        KeyFilterStage { input, filter, key_fields }
    }
}

impl Stage for KeyFilterStage {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next> {
        loop {
            match self.input.next(cx)? {
                Next::Row(mut row) => {
                    let fits = match row.key.take() {
                        Some(key) => self.filter.matches(&flat_key(&key, &self.key_fields)?)?,
                        None => true,
                    };
                    if fits {
                        return Ok(Next::Row(row));
                    }
                }
                other => return Ok(other),
            }
        }
    }
    fn save(&mut self) {
        self.input.save();
    }
    fn stats(&self) -> StageStats {
        self.input.stats()
    }
}

/// Letters compared with phrases that count as one step of a turn.
const LETTERS_PER_STEP: usize = 4096;

/// Documents that have everything the search asks for.
pub(super) struct TextMatchStage {
    input: Box<dyn Stage>,
    meaning: Arc<TextMeaning>,
    stats: StageStats,
}

impl TextMatchStage {
    pub(super) fn new(input: Box<dyn Stage>, meaning: Arc<TextMeaning>) -> TextMatchStage {
        TextMatchStage { input, meaning, stats: StageStats::default() }
    }
}

impl Stage for TextMatchStage {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next> {
        loop {
            let next = self.input.next(cx)?;
            self.stats.works += 1;
            match &next {
                Next::Row(Row { doc: Some(doc), .. }) => {
                    let doc: &Bytes = doc;
                    // With many phrases, or long ones, a few documents take as long as many others.
                    let work = self.meaning.query.work_bytes(doc.len()) / LETTERS_PER_STEP;
                    cx.quota.spend(u32::try_from(work).unwrap_or(u32::MAX));
                    if !self.meaning.query.accepts(RawDoc::trusted(doc), &self.meaning.spec)? {
                        self.stats.docs_rejected += 1;
                        continue;
                    }
                    self.stats.advanced += 1;
                }
                Next::Row(_) => return Err(Error::internal("a text search without documents")),
                Next::Yield => {}
                Next::Eof => self.stats.eof = true,
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
