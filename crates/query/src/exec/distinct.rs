//! The distinct values of one index field: after each entry, past all that share its value.
//!
//! Rows are documents with just that field. A null key may stand for a missing field, which is no value; such
//! documents are fetched, until one has a null indeed. Where a group wants one entry per value, null is a value like
//! others, and rows are what an index scan gives.

use super::scan::{Position, key_matches, open, remember};
use super::{Cx, KeyData, Next, Row, Stage, StageStats};
use crate::matcher::Path;
use crate::plan::{DistinctScan, Gives, KeyCheck};
use crate::source::{IndexCursor, IndexEntry, RecordId};
use bytes::Bytes;
use pando_base::Result;
use pando_bson::keystring::{AFTER, KeyReader};
use pando_bson::{Bson, Document, ElementType, RawDoc};
use std::sync::Arc;

pub(super) struct DistinctStage {
    plan: Arc<DistinctScan>,
    cursor: Option<Box<dyn IndexCursor>>,
    last: Option<Position>,
    target: Vec<u8>,
    seek: bool,
    done: bool,
    stats: StageStats,
}

impl DistinctStage {
    pub(super) fn new(plan: Arc<DistinctScan>) -> DistinctStage {
        let done = plan.scan.bounds.nothing;
        DistinctStage {
            plan,
            cursor: None,
            last: None,
            target: Vec::new(),
            seek: false,
            done,
            stats: StageStats::default(),
        }
    }

    /// The wanted value of a key; the target is set past all keys that agree with it so far.
    fn value(&mut self, key: &[u8], type_bits: &[u8]) -> Result<Bson> {
        let scan = &self.plan.scan;
        let mut reader = KeyReader::new(key, scan.bounds.directions(), type_bits);
        let mut value = Bson::Null;
        for _ in 0..=self.plan.field {
            value = reader.next_value()?.unwrap_or(Bson::Null);
        }
        self.target.clear();
        self.target.extend_from_slice(&key[..reader.position()]);
        if scan.dir.is_forward() {
            self.target.push(AFTER);
        }
        Ok(value)
    }

    /// `{key: value}`; elements of arrays stay in an array, so that an array among them is one value.
    fn document(&self, value: Bson) -> Bytes {
        let multikey = self.plan.scan.fields[self.plan.field].multikey != 0;
        let mut v = if multikey { Bson::Array(vec![value]) } else { value };
        for part in self.plan.key.rsplit('.') {
            v = Bson::Document(Document::from(vec![(part.to_owned(), v)]));
        }
        match v {
            Bson::Document(d) => Bytes::from(d.to_raw().into_bytes()),
            _ => Bytes::new(),
        }
    }
}

struct Entry {
    key: Vec<u8>,
    type_bits: Vec<u8>,
    rid: RecordId,
}

impl Entry {
    fn of(e: &IndexEntry<'_>) -> Entry {
        Entry { key: e.key.to_vec(), type_bits: e.type_bits.to_vec(), rid: e.rid.clone() }
    }
}

/// Steps tried before a seek, which costs as much as many of them: values often lie close together.
const NEAR_STEPS: usize = 3;

/// The first entry at or past the target, if it is near.
fn step(cursor: &mut dyn IndexCursor, target: &[u8], forward: bool) -> Result<Option<Entry>> {
    for _ in 0..NEAR_STEPS {
        let Some(entry) = cursor.next()? else { return Ok(None) };
        if (entry.key >= target) == forward {
            return Ok(Some(Entry::of(&entry)));
        }
    }
    Ok(None)
}

/// Whether the document holds a null at the path.
fn has_null(doc: &RawDoc, path: &str) -> bool {
    let path = Path::new(path);
    crate::matcher::any_at(doc, &path, &mut |e| e.is_some_and(|e| e.ty == ElementType::Null))
}

impl Stage for DistinctStage {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next> {
        let plan = self.plan.clone();
        loop {
            if self.done {
                self.stats.eof = true;
                self.cursor = None;
                return Ok(Next::Eof);
            }
            if !cx.quota.tick() {
                return Ok(Next::Yield);
            }
            let cursor = match &mut self.cursor {
                Some(cursor) => cursor,
                // Behind the last entry, and past its value if that is where `target` points.
                None => self.cursor.insert(open(&plan.scan, &self.last, cx)?),
            };
            self.stats.works += 1;
            let mut near = None;
            if self.seek {
                near = step(&mut **cursor, &self.target, plan.scan.dir.is_forward())?;
                if near.is_none() {
                    self.stats.seeks += 1;
                    cursor.seek(&self.target)?;
                }
            }
            let entry = match near {
                Some(entry) => entry,
                None => match cursor.next()? {
                    Some(entry) => Entry::of(&entry),
                    None => {
                        self.done = true;
                        continue;
                    }
                },
            };
            self.seek = false;
            self.stats.keys_examined += 1;
            let Entry { key, type_bits, rid } = entry;
            remember(&mut self.last, &key, &rid);
            match plan.scan.bounds.check(&key, plan.scan.dir, &mut self.target) {
                KeyCheck::Inside => {}
                KeyCheck::Seek => {
                    self.seek = true;
                    continue;
                }
                KeyCheck::Done => {
                    self.done = true;
                    continue;
                }
            }
            if !key_matches(&plan.scan, &plan.scan.filter, &key, &type_bits)? {
                continue;
            }
            if plan.gives == Gives::Entries {
                self.value(&key, &type_bits)?;
                self.seek = true;
                self.stats.advanced += 1;
                let key = plan.scan.keep_key.then(|| {
                    let directions = plan.scan.bounds.directions();
                    Box::new(KeyData { bytes: key.into(), type_bits: type_bits.into(), directions })
                });
                let generation = cx.generation;
                return Ok(Next::Row(Row { rid: Some(rid), doc: None, key, generation, facts: None }));
            }
            let doc = match self.value(&key, &type_bits)? {
                // An empty array.
                Bson::Undefined => {
                    self.seek = true;
                    continue;
                }
                Bson::Null => {
                    let found = cx.src.fetch(&rid)?;
                    self.stats.docs_examined += 1;
                    if !found.is_some_and(|d| has_null(RawDoc::trusted(&d), &plan.key)) {
                        continue;
                    }
                    self.document(Bson::Null)
                }
                value => self.document(value),
            };
            self.seek = true;
            self.stats.advanced += 1;
            return Ok(Next::Row(Row {
                rid: Some(rid),
                doc: Some(doc),
                key: None,
                generation: cx.generation,
                facts: None,
            }));
        }
    }
    fn save(&mut self) {
        self.stats.saves += 1;
        self.cursor = None;
    }
    fn stats(&self) -> StageStats {
        self.stats.clone()
    }
}
