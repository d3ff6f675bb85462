//! Leaves: scans of records and of index entries.

use super::record_set::RecordSet;
use super::{Cx, Each, Fed, KeyData, Next, Row, Stage, StageStats};
use crate::matcher::{Matcher, Operand};
use crate::plan::{CollScan, IxScan, KeyCheck};
use crate::source::{Found, IndexCursor, IndexScan, RecordCursor, RecordId, RecordScan, Verdict};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::keystring::KeyReader;
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use std::sync::Arc;

pub(super) struct CollScanStage {
    scan: CollScan,
    cursor: Option<Box<dyn RecordCursor>>,
    last: Option<RecordId>,
    done: bool,
    /// A tailable scan has seen everything there was.
    at_end: bool,
    stats: StageStats,
}

/// The record after which the scan would go on was overwritten: what lay between is lost.
fn position_lost(last: &RecordId, at_end: bool) -> Error {
    let last = shown(last);
    let what = match at_end {
        true => "failure to restore tailable cursor position",
        false => "position in capped collection being deleted",
    };
    let text = format!("CollectionScan died due to {what}. Last seen record id: {last}");
    Error::new(ErrorCode::CappedPositionLost, text)
}

fn resume_point_gone(at: &RecordId) -> Error {
    let text = format!(
        "Failed to resume collection scan: the recordId from which we are attempting to resume no longer exists in the \
         collection. recordId: {}",
        shown(at)
    );
    Error::new(ErrorCode::KeyNotFound, text)
}
fn shown(rid: &RecordId) -> String {
    match rid {
        RecordId::Long(n) => format!("RecordId({n})"),
        RecordId::Key(_) => "RecordId(key)".to_owned(),
    }
}

impl CollScanStage {
    pub(super) fn new(scan: CollScan) -> CollScanStage {
        CollScanStage {
            scan,
            cursor: None,
            last: None,
            done: false,
            at_end: false,
            stats: StageStats::default(),
        }
    }

    fn open(&mut self, cx: &mut Cx<'_>) -> Result<()> {
        if self.last.is_none()
            && let Some(after) = &self.scan.resume_after
        {
            if cx.src.fetch(after)?.is_none() {
                return Err(resume_point_gone(after));
            }
            self.last = Some(after.clone());
        } else if let (true, Some(last)) = (cx.src.collection().capped, &self.last)
            && cx.src.fetch(last)?.is_none()
        {
            return Err(position_lost(last, self.at_end));
        }
        let scan = RecordScan {
            dir: self.scan.dir,
            min: self.scan.min.as_ref(),
            max: self.scan.max.as_ref(),
            after: self.last.as_ref(),
        };
        self.cursor = Some(cx.src.scan_records(scan)?);
        Ok(())
    }

    /// Walks on to a record that matches and is not passed.
    #[inline]
    fn walk(&mut self, cx: &mut Cx<'_>, mut judge: impl FnMut(&[u8]) -> Result<Verdict>) -> Result<Found> {
        if self.done {
            return Ok(Found::End);
        }
        if self.cursor.is_none() {
            self.open(cx)?;
        }
        let Some(cursor) = &mut self.cursor else { return Ok(Found::End) };
        if !cx.quota.tick() {
            return Ok(Found::Stopped);
        }
        let (scan, stats, last) = (&self.scan, &mut self.stats, &mut self.last);
        let (quota, mut beyond) = (&mut *cx.quota, false);
        stats.works += 1;
        let found = cursor.find(&mut |rid, doc| {
            beyond = scan.is_beyond(rid);
            if beyond {
                return Ok(Verdict::Stop);
            }
            stats.docs_examined += 1;
            quota.spend_document(doc.len());
            match last {
                Some(last) => last.clone_from(rid),
                None => *last = Some(rid.clone()),
            }
            let matches = match &scan.filter {
                None => true,
                Some(filter) => filter.matches(RawDoc::trusted(doc))?,
            };
            stats.advanced += u64::from(matches);
            let verdict = if matches { judge(doc)? } else { Verdict::Pass };
            if verdict != Verdict::Pass {
                return Ok(verdict);
            }
            if !quota.tick() {
                return Ok(Verdict::Stop);
            }
            stats.works += 1;
            Ok(Verdict::Pass)
        })?;
        self.at_end = beyond || matches!(found, Found::End);
        if self.at_end {
            self.stats.eof = true;
            self.done = !self.scan.tailable;
            self.cursor = None;
            return Ok(Found::End);
        }
        Ok(found)
    }
}

impl Stage for CollScanStage {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next> {
        Ok(match self.walk(cx, |_| Ok(Verdict::Take))? {
            Found::Record(rid, doc) => Next::Row(Row {
                rid: Some(rid),
                doc: Some(doc),
                key: None,
                generation: cx.generation,
                facts: None,
            }),
            Found::Stopped => Next::Yield,
            Found::End => Next::Eof,
        })
    }
    fn feed(&mut self, cx: &mut Cx<'_>, each: &mut Each<'_>) -> Result<Fed> {
        let mut wants = true;
        let found = self.walk(cx, |doc| {
            wants = each(doc)?;
            Ok(if wants { Verdict::Pass } else { Verdict::Stop })
        })?;
        Ok(match found {
            Found::End => Fed::Eof,
            _ if wants => Fed::NeedYield,
            _ => Fed::Stopped,
        })
    }
    fn save(&mut self) {
        self.stats.saves += 1;
        self.cursor = None;
    }
    fn stats(&self) -> StageStats {
        self.stats.clone()
    }
}

/// One document by `_id`.
pub(super) struct IdHackStage {
    id: Operand,
    done: bool,
    stats: StageStats,
}

impl IdHackStage {
    pub(super) fn new(id: Operand) -> IdHackStage {
        IdHackStage { id, done: false, stats: StageStats::default() }
    }
}

impl Stage for IdHackStage {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next> {
        if self.done {
            return Ok(Next::Eof);
        }
        self.done = true;
        self.stats.works += 1;
        let info = cx.src.collection().clone();
        let Some(at) = info.indexes.iter().position(|i| i.is_id_index()) else {
            return Err(Error::internal("a plan by _id without the index on _id"));
        };
        let mut b = pando_bson::keystring::KeyBuilder::default();
        b.append_elem(&self.id.elem(), crate::collation::Collation::order(&info.indexes[at].collation));
        if let Some(rid) = cx.src.find_key(at, b.bytes())? {
            self.stats.keys_examined += 1;
            if let Some(doc) = cx.src.fetch(&rid)? {
                self.stats.docs_examined += 1;
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
        self.stats.eof = true;
        Ok(Next::Eof)
    }
    fn save(&mut self) {
        self.stats.saves += 1;
    }
    fn stats(&self) -> StageStats {
        self.stats.clone()
    }
}

/// The place of an index scan.
pub(super) struct Position {
    key: Vec<u8>,
    rid: RecordId,
}

pub(super) struct IxScanStage {
    scan: Arc<IxScan>,
    cursor: Option<Box<dyn IndexCursor>>,
    last: Option<Position>,
    /// Where to go on, if not behind `last`.
    target: Vec<u8>,
    seek: bool,
    seen: RecordSet,
    done: bool,
    stats: StageStats,
}

impl IxScanStage {
    pub(super) fn new(scan: Arc<IxScan>) -> IxScanStage {
        let done = scan.bounds.nothing;
        IxScanStage {
            scan,
            cursor: None,
            last: None,
            target: Vec::new(),
            seek: false,
            seen: RecordSet::default(),
            done,
            stats: StageStats::default(),
        }
    }
}

/// A cursor at the start of the scan, or behind `last`.
pub(super) fn open(scan: &IxScan, last: &Option<Position>, cx: &mut Cx<'_>) -> Result<Box<dyn IndexCursor>> {
    cx.src.scan_index(IndexScan {
        index: scan.index,
        start: &scan.bounds.start,
        end: &scan.bounds.end,
        dir: scan.dir,
        after: last.as_ref().map(|p| (p.key.as_slice(), &p.rid)),
    })
}

pub(super) fn remember(last: &mut Option<Position>, key: &[u8], rid: &RecordId) {
    match last {
        Some(p) => {
            p.key.clear();
            p.key.extend_from_slice(key);
            p.rid.clone_from(rid);
        }
        None => *last = Some(Position { key: key.to_vec(), rid: rid.clone() }),
    }
}

/// A key as a document with the index fields' dotted names.
fn flat_key(scan: &IxScan, key: &[u8], type_bits: &[u8]) -> Result<DocBuf> {
    let mut reader = KeyReader::new(key, scan.bounds.directions(), type_bits);
    let mut b = DocBuilder::new();
    for f in &scan.fields {
        reader.next_into(&mut b, &f.name)?;
    }
    Ok(b.finish())
}

pub(super) fn key_matches(
    scan: &IxScan,
    filter: &Option<Arc<Matcher>>,
    key: &[u8],
    type_bits: &[u8],
) -> Result<bool> {
    match filter {
        None => Ok(true),
        Some(f) => f.matches(&flat_key(scan, key, type_bits)?),
    }
}

impl Stage for IxScanStage {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next> {
        if self.done {
            self.stats.eof = true;
            return Ok(Next::Eof);
        }
        let cursor = match &mut self.cursor {
            Some(cursor) => cursor,
            None => {
                self.stats.seeks += 1;
                self.cursor.insert(open(&self.scan, &self.last, cx)?)
            }
        };
        loop {
            if !cx.quota.tick() {
                return Ok(Next::Yield);
            }
            self.stats.works += 1;
            if std::mem::take(&mut self.seek) {
                self.stats.seeks += 1;
                cursor.seek(&self.target)?;
            }
            let Some(entry) = cursor.next()? else { break };
            self.stats.keys_examined += 1;
            remember(&mut self.last, entry.key, &entry.rid);
            match self.scan.bounds.check(entry.key, self.scan.dir, &mut self.target) {
                KeyCheck::Inside => {}
                KeyCheck::Seek => {
                    self.seek = true;
                    continue;
                }
                KeyCheck::Done => break,
            }
            if !key_matches(&self.scan, &self.scan.filter, entry.key, entry.type_bits)? {
                continue;
            }
            if self.scan.dedup {
                self.stats.dups_tested += 1;
                if !self.seen.insert(&entry.rid)? {
                    self.stats.dups_dropped += 1;
                    continue;
                }
            }
            self.stats.advanced += 1;
            let key = self.scan.keep_key.then(|| {
                Box::new(KeyData {
                    bytes: entry.key.into(),
                    type_bits: entry.type_bits.into(),
                    directions: self.scan.bounds.directions(),
                })
            });
            return Ok(Next::Row(Row {
                rid: Some(entry.rid),
                doc: None,
                key,
                generation: cx.generation,
                facts: None,
            }));
        }
        self.done = true;
        self.stats.eof = true;
        self.cursor = None;
        Ok(Next::Eof)
    }
    fn save(&mut self) {
        self.stats.saves += 1;
        self.cursor = None;
    }
    fn stats(&self) -> StageStats {
        StageStats { held_bytes: self.seen.held_bytes(), ..self.stats.clone() }
    }
}
