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

    /// The next entry, from the target on where that is to be sought; `None` behind the last one.
    fn entry(&mut self, cx: &mut Cx<'_>) -> Result<Option<Entry>> {
        let scan = &self.plan.scan;
        let cursor = match &mut self.cursor {
            Some(cursor) => cursor,
            // Behind the last entry, and past its value if that is where `target` points.
            None => self.cursor.insert(open(scan, &self.last, cx)?),
        };
        self.stats.works += 1;
        if std::mem::take(&mut self.seek) {
            if let Some(near) = step(&mut **cursor, &self.target, scan.dir.is_forward())? {
                return Ok(Some(near));
            }
            self.stats.seeks += 1;
            cursor.seek(&self.target)?;
        }
        Ok(cursor.next()?.map(|e| Entry::of(&e)))
    }

    /// The row of an entry that the bounds and the filter let through; `None` when it holds no value.
    fn row(&mut self, entry: Entry, cx: &mut Cx<'_>) -> Result<Option<Row>> {
        let Entry { key, type_bits, rid } = entry;
        let value = self.value(&key, &type_bits)?;
        let generation = cx.generation;
        if self.plan.gives == Gives::Entries {
            let scan = &self.plan.scan;
            let directions = scan.bounds.directions();
            let data = || Box::new(KeyData { bytes: key.into(), type_bits: type_bits.into(), directions });
            let key = scan.keep_key.then(data);
            return Ok(Some(Row { rid: Some(rid), doc: None, key, generation, facts: None }));
        }
        match value {
            // An empty array.
            Bson::Undefined => {
                self.seek = true;
                return Ok(None);
            }
            Bson::Null => {
                let found = cx.src.fetch(&rid)?;
                self.stats.docs_examined += 1;
                if !found.is_some_and(|d| has_null(RawDoc::trusted(&d), &self.plan.key)) {
                    return Ok(None);
                }
            }
            _ => {}
        }
        let doc = Some(self.document(value));
        Ok(Some(Row { rid: Some(rid), doc, key: None, generation, facts: None }))
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
        loop {
            if self.done {
                self.stats.eof = true;
                self.cursor = None;
                return Ok(Next::Eof);
            }
            if !cx.quota.tick() {
                return Ok(Next::Yield);
            }
            let Some(entry) = self.entry(cx)? else {
                self.done = true;
                continue;
            };
            self.stats.keys_examined += 1;
            remember(&mut self.last, &entry.key, &entry.rid);
            let scan = &self.plan.scan;
            match scan.bounds.check(&entry.key, scan.dir, &mut self.target) {
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
            if !key_matches(scan, &scan.filter, &entry.key, &entry.type_bits)? {
                continue;
            }
            if let Some(row) = self.row(entry, cx)? {
                self.seek = true;
                self.stats.advanced += 1;
                return Ok(Next::Row(row));
            }
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
