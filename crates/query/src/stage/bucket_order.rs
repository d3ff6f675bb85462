//! A sort of measurements by time asks for buckets in an order that lets the first rows go early.
//!
//! ```text
//! buckets by source and least time ─► $_internalUnpackBucket ─► $match… ─► $_internalBoundedSort
//!                                     tells how early all later rows may be      gives out what comes before that
//! ```

use super::ask_buckets::Ask;
use super::{Pipeline, bounded_sort};
use crate::plan::{Query, solutions};
use crate::sort::{SortKeys, SortPart, SortPattern};
use crate::source::CollectionInfo;
use pando_base::Result;
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// What is known of all rows to come. Written where buckets are opened, read where rows wait; by one thread at a time.
pub(super) struct Frontier {
    pub(super) descending: bool,
    /// No later row has an earlier time; a later one if rows come downwards.
    time: AtomicI64,
    /// Counts the values of what rows are sorted by before the time: earlier ones have all come.
    group: AtomicU64,
}

impl Frontier {
    fn new(descending: bool) -> Frontier {
        let time = if descending { i64::MAX } else { i64::MIN };
        Frontier { descending, time: time.into(), group: 0.into() }
    }
    pub(super) fn group(&self) -> u64 {
        self.group.load(Ordering::Relaxed)
    }
    /// Whether a row of this group and time comes before all later ones.
    pub(super) fn has_passed(&self, group: u64, time: i64) -> bool {
        let bound = self.time.load(Ordering::Relaxed);
        group < self.group() || if self.descending { time > bound } else { time < bound }
    }
}

/// What buckets are ordered by, which bounds the times of later ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    Id,
    Min,
    Max,
}

/// Reads the frontier off each bucket.
pub(crate) struct BucketOrder {
    pub(super) frontier: Arc<Frontier>,
    base: Base,
    /// `control.min.t` or `control.max.t`
    time: String,
    span_ms: i64,
    /// What comes before the time.
    prefix: SortKeys,
    last: Option<Vec<u8>>,
}

impl BucketOrder {
    pub(super) fn opens(&mut self, bucket: &RawDoc) -> Result<()> {
        let f = &self.frontier;
        if !self.prefix.pattern().is_empty() {
            let key = self.prefix.key(bucket, None)?;
            if self.last.as_deref() != Some(key) {
                self.last = Some(key.to_vec());
                f.group.fetch_add(1, Ordering::Relaxed);
            }
        }
        let unknown = if f.descending { i64::MAX } else { i64::MIN };
        let bound = match self.base {
            Base::Id => self.of_id(bucket),
            base => match bucket.get_path(&self.time) {
                Some(Value::DateTime(ms)) if f.descending && base == Base::Min => {
                    Some(ms.saturating_add(self.span_ms))
                }
                Some(Value::DateTime(ms)) => Some(ms),
                _ => None,
            },
        };
        f.time.store(bound.unwrap_or(unknown), Ordering::Relaxed);
        Ok(())
    }

    /// An `_id` begins with the least time in seconds, if these can tell it.
    fn of_id(&self, bucket: &RawDoc) -> Option<i64> {
        let Some(Value::ObjectId(id)) = bucket.get("_id") else { return None };
        let secs = u32::from_be_bytes(*id.0.first_chunk()?);
        let first = i64::from(secs) * 1000;
        match self.frontier.descending {
            false => (secs > 0).then_some(first),
            true => (secs < u32::MAX).then(|| first.saturating_add(999 + self.span_ms)),
        }
    }
}

/// A way to order buckets.
struct Way {
    base: Base,
    pattern: SortPattern,
}

/// What the pattern sorts by before the time, as buckets call it; and whether the time runs downwards.
fn split(ask: &Ask, pattern: &SortPattern) -> Option<(Vec<SortPart>, bool)> {
    let mut prefix = Vec::new();
    for part in &pattern.parts {
        if part.meta.is_some() {
            return None;
        }
        if part.path == ask.time {
            return Some((prefix, part.descending));
        }
        prefix.push(SortPart { path: ask.renamed(&part.path)?, ..part.clone() });
    }
    None
}

fn pattern_of(parts: &[SortPart], last: Option<(&str, bool)>) -> Result<SortPattern> {
    let mut b = DocBuilder::new();
    let sign = |descending: bool| if descending { -1 } else { 1 };
    for p in parts {
        b.i32(&p.path, sign(p.descending));
    }
    if let Some((path, descending)) = last {
        b.i32(path, sign(descending));
    }
    SortPattern::parse(&b.finish())
}

fn ways(ask: &Ask, prefix: &[SortPart], descending: bool) -> Result<Vec<Way>> {
    let (min, max) = (format!("control.min.{}", ask.time), format!("control.max.{}", ask.time));
    let mut out = Vec::new();
    let mut way = |base, path: &str| -> Result<()> {
        out.push(Way { base, pattern: pattern_of(prefix, Some((path, descending)))? });
        Ok(())
    };
    if prefix.is_empty() {
        way(Base::Id, "_id")?;
    }
    if descending {
        way(Base::Max, &max)?;
    }
    way(Base::Min, &min)?;
    Ok(out)
}

impl Pipeline {
    /// Has the buckets come in the order of a `$sort` by time, if there is a plan that gives it without sorting.
    pub fn order_buckets(&mut self, query: &mut Query, info: &CollectionInfo) -> Result<()> {
        let Some(series) = self.stages.first().and_then(|s| s.as_unpack()) else { return Ok(()) };
        let (ask, span) = (Ask::of(&series, &self.ctx), series.span_secs);
        let filters = self.stages[1..].iter().take_while(|s| s.as_filter().is_some()).count();
        let at = filters + 1;
        let sort = self.stages.get(at).and_then(|s| s.as_sort());
        let (Some(sort), Some(span), None) = (sort, span, &query.sort) else { return Ok(()) };
        let Some((prefix, descending)) = split(&ask, &sort.pattern) else { return Ok(()) };
        for way in ways(&ask, &prefix, descending)? {
            let with = Query { sort: Some(Arc::new(way.pattern)), ..query.clone() };
            if !solutions(&with, info)?.iter().any(|s| !s.root.has_blocking_sort()) {
                continue;
            }
            *query = with;
            let end = if way.base == Base::Max { "max" } else { "min" };
            let frontier = Arc::new(Frontier::new(descending));
            let prefix = SortKeys::new(Arc::new(pattern_of(&prefix, None)?), self.ctx.collation.clone());
            self.shown[at] = Some(shown(&sort.pattern, sort.limit, end, descending, span));
            self.stages[at] = bounded_sort::stage(sort, frontier.clone(), &ask.time, &self.ctx);
            self.stages[0].follow_order(BucketOrder {
                frontier,
                base: way.base,
                time: format!("control.{end}.{}", ask.time),
                span_ms: span * 1000,
                prefix,
                last: None,
            });
            break;
        }
        Ok(())
    }
}

fn shown(pattern: &SortPattern, limit: Option<u64>, end: &str, descending: bool, span: i64) -> DocBuf {
    let offset = if descending && end == "min" { span } else { 0 };
    let mut b = DocBuilder::new();
    b.doc("$_internalBoundedSort", |d| {
        d.raw_doc("sortKey", &pattern.spec);
        d.doc("bound", |b| {
            b.str("base", end).i64("offsetSeconds", offset);
        });
        d.i64("limit", limit.unwrap_or(0) as i64);
    });
    b.finish()
}
