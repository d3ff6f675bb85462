//! `$near`: nearest first, from an index whose entries are in no such order.
//!
//! Rings around the centre are searched one after the other, each larger than the one before while little is found.
//! What a ring turns up is measured and waits until everything that is nearer has been given.

use super::record_set::RecordSet;
use super::scan::IxScanStage;
use super::{Cx, Next, Row, Stage, StageStats};
use crate::geo::{GeoIndex, NearResult, Xy};
use crate::matcher::Matcher;
use crate::plan::{GeoNear, NearOutput};
use crate::source::RecordId;
use bytes::Bytes;
use pando_base::limits::GEO_NEAR_DOCUMENTS_KEPT_MAX;
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// What is known of a record that waits.
struct Waiting {
    distance: f64,
    /// Order of being found; equal distances keep it.
    nth: u64,
    rid: RecordId,
    /// Kept while few wait; else it is read again.
    doc: Option<Bytes>,
    generation: u32,
}

impl Ord for Waiting {
    /// The nearest is the greatest.
    fn cmp(&self, other: &Waiting) -> Ordering {
        other.distance.total_cmp(&self.distance).then(other.nth.cmp(&self.nth))
    }
}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Waiting {}

pub(super) struct NearStage {
    plan: Arc<GeoNear>,
    /// For rows found before the snapshot changed.
    recheck: Arc<Matcher>,
    waiting: BinaryHeap<Waiting>,
    seen: RecordSet,
    found: u64,
    ring: Option<IxScanStage>,
    /// Everything nearer than `inner` is known; the present ring ends at `outer`. In the unit of searching.
    inner: f64,
    outer: f64,
    /// Width of the next ring.
    step: f64,
    found_in_ring: u64,
    limit: f64,
    all_known: bool,
    stats: StageStats,
    scans: StageStats,
}

/// Records of one ring from which the next one is not wider any more.
const MANY: u64 = 200;
/// How much wider a ring is than the one before: after an empty one, after one with few records.
const GROWTH: (f64, f64) = (8.0, 2.0);

impl NearStage {
    pub(super) fn new(plan: Arc<GeoNear>, recheck: Arc<Matcher>) -> NearStage {
        let near = &plan.near;
        let inner = near.reach(near.min);
        let limit = near.reach(near.max).min(plan.geo.furthest(near.on_sphere));
        let step = plan.geo.first_ring(near.on_sphere);
        NearStage {
            inner,
            outer: inner,
            step,
            limit,
            all_known: inner > limit,
            recheck,
            waiting: BinaryHeap::new(),
            seen: RecordSet::default(),
            found: 0,
            ring: None,
            found_in_ring: 0,
            stats: StageStats::default(),
            scans: StageStats::default(),
            plan,
        }
    }

    fn check_center(&self) -> Result<()> {
        let at = self.plan.near.center.at;
        match &*self.plan.geo {
            GeoIndex::Plane(grid) if !grid.holds(at) => {
                let Xy { x, y } = at;
                let mut b = DocBuilder::new();
                b.f64("0", x).f64("1", y);
                let text =
                    format!("point not in interval of {} :: caused by :: {}", grid.interval(), b.finish());
                Err(Error::location(16433, text))
            }
            _ => Ok(()),
        }
    }

    /// Begins the next ring.
    fn widen(&mut self) {
        self.inner = self.outer;
        self.step *= match self.found_in_ring {
            0 => GROWTH.0,
            1..=MANY => GROWTH.1,
            _ => 1.0,
        };
        self.outer = (self.inner + self.step).min(self.limit);
        self.found_in_ring = 0;
        let scan = self.plan.ring(self.inner, self.outer);
        self.ring = Some(IxScanStage::new(Arc::new(scan)));
    }

    fn end_ring(&mut self) {
        if let Some(ring) = self.ring.take() {
            let s = ring.stats();
            self.scans.keys_examined += s.keys_examined;
            self.scans.seeks += s.seeks;
            self.scans.works += s.works;
            self.scans.advanced += s.advanced;
        }
        self.all_known = self.outer >= self.limit;
    }

    fn consider(&mut self, cx: &mut Cx<'_>, rid: RecordId) -> Result<()> {
        if !self.seen.insert(&rid)? {
            return Ok(());
        }
        let Some(doc) = cx.src.fetch(&rid)? else { return Ok(()) };
        self.stats.docs_examined += 1;
        let Some(found) = self.plan.near.measure(RawDoc::trusted(&doc), &self.plan.path) else {
            return Ok(());
        };
        if !self.plan.near.accepts(&found) {
            return Ok(());
        }
        self.found_in_ring += 1;
        self.found += 1;
        let (distance, nth) = (found.reach, self.found);
        let keeps = self.waiting.len() < GEO_NEAR_DOCUMENTS_KEPT_MAX;
        self.waiting.push(Waiting {
            distance,
            nth,
            rid,
            doc: keeps.then_some(doc),
            generation: cx.generation,
        });
        Ok(())
    }

    /// The nearest of those that wait, if nothing unknown can be nearer.
    fn give(&mut self, cx: &mut Cx<'_>) -> Result<Option<Row>> {
        while let Some(next) = self.waiting.peek() {
            if !self.all_known && next.distance >= self.inner {
                return Ok(None);
            }
            let Some(next) = self.waiting.pop() else { return Ok(None) };
            let current = next.generation == cx.generation;
            let doc = match next.doc {
                Some(doc) if current => doc,
                _ => match cx.src.fetch(&next.rid)? {
                    Some(doc) if current || self.recheck.matches(RawDoc::trusted(&doc))? => doc,
                    _ => continue,
                },
            };
            let mut facts = None;
            let doc = match &self.plan.output {
                None if !self.plan.tells => doc,
                _ => match self.plan.near.measure(RawDoc::trusted(&doc), &self.plan.path) {
                    Some(found) => {
                        facts = self.plan.tells.then(|| found.facts());
                        self.with_output(&doc, &found)
                    }
                    None => continue,
                },
            };
            self.stats.advanced += 1;
            return Ok(Some(Row {
                rid: Some(next.rid),
                doc: Some(doc),
                generation: cx.generation,
                facts,
                ..Row::default()
            }));
        }
        Ok(None)
    }

    fn with_output(&self, doc: &Bytes, found: &NearResult<'_>) -> Bytes {
        let Some(output) = &self.plan.output else { return doc.clone() };
        Bytes::from(output.added_to(RawDoc::trusted(doc), found).into_bytes())
    }
}

impl NearOutput {
    /// The document with what is known of its nearness.
    pub(crate) fn added_to(&self, doc: &RawDoc, found: &NearResult<'_>) -> DocBuf {
        let distance = Value::Double(found.distance * self.multiplier);
        let doc = with_field(doc, &self.distance_field, distance);
        match &self.place_field {
            Some(field) => with_field(&doc, field, found.place.value()),
            None => doc,
        }
    }
}

/// The document with a value under a dotted path; what is no document on the way is replaced.
fn with_field(doc: &RawDoc, path: &str, v: Value<'_>) -> DocBuf {
    let mut b = DocBuilder::with_capacity(doc.byte_len() + 32);
    put(doc, path, v, &mut b);
    b.finish()
}

fn put(doc: &RawDoc, path: &str, v: Value<'_>, b: &mut DocBuilder) {
    let (name, rest) = match path.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    };
    let write = |old: Option<&RawDoc>, b: &mut DocBuilder| match rest {
        None => {
            b.value(name, v);
        }
        Some(rest) => {
            b.doc(name, |inner| put(old.unwrap_or(RawDoc::empty()), rest, v, inner));
        }
    };
    let mut written = false;
    for e in doc {
        if e.name_bytes() != name.as_bytes() {
            b.elem(e);
            continue;
        }
        written = true;
        match e.value() {
            Value::Document(old) => write(Some(old), b),
            _ => write(None, b),
        }
    }
    if !written {
        write(None, b);
    }
}

impl Stage for NearStage {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next> {
        self.check_center()?;
        self.stats.works += 1;
        loop {
            if self.ring.is_none() {
                if let Some(row) = self.give(cx)? {
                    return Ok(Next::Row(row));
                }
                if self.all_known {
                    self.stats.eof = true;
                    return Ok(Next::Eof);
                }
                self.widen();
            }
            let Some(ring) = &mut self.ring else { continue };
            match ring.next(cx)? {
                Next::Row(Row { rid: Some(rid), .. }) => self.consider(cx, rid)?,
                Next::Row(_) => {}
                Next::Yield => {
                    return Ok(Next::Yield);
                }
                Next::Eof => {
                    self.end_ring();
                    self.inner = self.outer;
                }
            }
        }
    }
    fn save(&mut self) {
        self.stats.saves += 1;
        if let Some(ring) = &mut self.ring {
            ring.save();
        }
    }
    fn stats(&self) -> StageStats {
        let mut own = self.stats.clone();
        own.keys_examined = self.scans.keys_examined;
        own.seeks = self.scans.seeks;
        own.held_bytes = self.seen.held_bytes();
        own
    }
}
