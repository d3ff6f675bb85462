//! Scans of clustered collections: bounds from conditions on `_id`, the hint of the cluster's own index.

use super::candidates::{Planner, Solution};
use super::node::CollScan;
use super::{Hint, Query};
use crate::collation::Collation;
use crate::source::{CollectionInfo, Direction, RecordId};
use pando_base::{Error, Result};
use pando_bson::{DocBuf, Value};

/// Whether the query's hint names the index that the records are ordered by.
fn is_hinted(q: &Query, info: &CollectionInfo) -> bool {
    let Some(name) = &info.clustered else { return false };
    match &q.hint {
        Some(Hint::Name(hinted)) => hinted == name,
        Some(Hint::Pattern(key)) => {
            let mut fields = key.iter();
            let first = fields.next().filter(|e| e.name() == "_id" && e.value().as_f64() == Some(1.0));
            first.is_some() && fields.next().is_none()
        }
        _ => false,
    }
}

impl Planner<'_> {
    /// The plan for a hint of the cluster's index.
    pub(super) fn hinted_cluster(&self) -> Result<Option<Solution>> {
        if !is_hinted(self.q, self.info) {
            return Ok(None);
        }
        let scan = match (&self.q.min, &self.q.max) {
            (None, None) => self.scan_of(Direction::Forward),
            (min, max) => self.min_max_scan(min.as_ref(), max.as_ref())?,
        };
        Ok(Some(self.scanned(scan)))
    }

    /// The direction in which the records themselves are in the wanted order.
    pub(super) fn cluster_order(&self) -> Option<Direction> {
        let [part] = &self.q.sort.as_ref()?.parts[..] else { return None };
        let by_id = part.path == "_id" && part.meta.is_none() && self.info.clustered.is_some();
        let ordered = by_id && Collation::same(&self.q.ctx.collation, &self.info.collation);
        ordered.then_some(if part.descending { Direction::Backward } else { Direction::Forward })
    }

    fn min_max_scan(&self, min: Option<&DocBuf>, max: Option<&DocBuf>) -> Result<CollScan> {
        let one_id = |d: &DocBuf| d.count() == 1 && d.elem("_id").is_some();
        if !min.into_iter().chain(max).all(one_id)
            || !Collation::same(&self.q.ctx.collation, &self.info.collation)
        {
            return Err(self.q.error(
                6_137_400,
                "The clustered index is not compatible with the values provided for min/max due to the query \
                 collation",
            ));
        }
        let by_id_down = |s: &crate::sort::SortPattern| {
            s.parts.len() == 1
                && s.parts[0].path == "_id"
                && s.spec.get("_id").and_then(|v| v.as_f64()) < Some(0.0)
        };
        if self.q.sort.as_deref().is_some_and(by_id_down) {
            return Err(Error::location(
                6_137_402,
                "min() / max() are only supported for forward collection scans on clustered collections",
            ));
        }
        let bound = |d: &DocBuf| d.get("_id").map(|v| RecordId::of_id(v, &self.info.collation));
        let (min, max) = (min.and_then(bound), max.and_then(bound));
        if let (Some(min), Some(max)) = (&min, &max)
            && min >= max
        {
            return Err(self.q.error(6_137_401, "max() must be greater than min()"));
        }
        let mut scan = self.scan_of(Direction::Forward);
        (scan.min, scan.max, scan.max_exclusive, scan.clustered) = (min, max, true, true);
        Ok(scan)
    }

    /// Narrows a scan of a clustered collection by conditions on `_id`; the filter still checks them.
    pub(super) fn cluster_bounds(&self, scan: &mut CollScan) {
        let traits = super::bounds::FieldTraits {
            multikey: false,
            sparse: false,
            hashed: false,
            collated: self.info.collation.is_some(),
            order: Collation::order(&self.info.collation),
            geo: None,
        };
        if !Collation::same(&self.q.ctx.collation, &self.info.collation) {
            return;
        }
        for p in self.predicates.iter().filter(|p| p.path == "_id" && p.group.is_none()) {
            let Some((list, _)) = super::bounds::bounds_of(p.node, traits) else { continue };
            let (Some(first), Some(last)) = (list.0.first(), list.0.last()) else {
                // Nothing meets it: a range that ends before it begins.
                (scan.min, scan.max) = (
                    Some(RecordId::of_id(Value::MaxKey, &None)),
                    Some(RecordId::of_id(Value::MinKey, &None)),
                );
                scan.clustered = true;
                return;
            };
            let low = RecordId::of_id(first.low.value(), &self.info.collation);
            let high = RecordId::of_id(last.high.value(), &self.info.collation);
            scan.min = Some(scan.min.take().map_or(low.clone(), |m| m.max(low)));
            scan.max = Some(scan.max.take().map_or(high.clone(), |m| m.min(high)));
            scan.clustered = true;
        }
    }
}
