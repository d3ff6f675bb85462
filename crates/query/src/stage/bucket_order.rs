//! A sort of measurements by time asks for buckets in an order that lets the first rows go early.
//!
//! ```text
//! buckets by source and least time ─► $_internalUnpackBucket ─► $match… ─► $_internalBoundedSort
//!                                     tells how early all later rows may be      gives out what comes before that
//! ```

use super::ask_buckets::Ask;
use super::bucket_frontier::{Base, BucketOrder};
use super::pipeline::Pipeline;
use super::sort::BoundedBy;
use super::spec::Spec;
use crate::plan::{Query, solutions};
use crate::sort::{SortPart, SortPattern};
use crate::source::CollectionInfo;
use pando_base::Result;
use pando_bson::DocBuilder;
use std::sync::Arc;

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
        let Some(series) = self.stages.first().and_then(|s| s.unpacking()) else { return Ok(()) };
        let (ask, span) = (Ask::of(series, &self.ctx), series.span_secs);
        let filters = self.stages[1..].iter().take_while(|s| s.filter().is_some()).count();
        let at = filters + 1;
        let sort = self.stages.get(at).and_then(|s| s.sort()).filter(|s| !s.keep_key);
        let (Some(sort), Some(span), None) = (sort, span, &query.sort) else { return Ok(()) };
        let Some((prefix, descending)) = split(&ask, &sort.pattern) else { return Ok(()) };
        for way in ways(&ask, &prefix, descending)? {
            let with = Query { sort: Some(Arc::new(way.pattern)), ..query.clone() };
            if !solutions(&with, info)?.iter().any(|s| !s.root.has_blocking_sort()) {
                continue;
            }
            *query = with;
            let end = if way.base == Base::Max { "max" } else { "min" };
            let offset_secs = if descending && end == "min" { span } else { 0 };
            if let Some(sort) = self.stages[at].sort_mut() {
                sort.bounded = Some(BoundedBy { time_field: ask.time.clone(), end, offset_secs });
            }
            if let Spec::UnpackBucket(unpack) = &mut self.stages[0].spec {
                unpack.order = Some(BucketOrder {
                    descending,
                    base: way.base,
                    time: format!("control.{end}.{}", ask.time),
                    span_ms: span * 1000,
                    prefix: Arc::new(pattern_of(&prefix, None)?),
                });
            }
            break;
        }
        Ok(())
    }
}
