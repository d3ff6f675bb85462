//! A plan for `distinct` that steps from value to value in an index.
//!
//! The index must answer the whole filter, and hold the wanted field behind nothing but single values. With arrays
//! on the field all of it must be in bounds, because a document that matches by one element has its other
//! elements counted too.

use super::Query;
use super::access::{Access, accesses, whole_index};
use super::candidates::Planner;
use super::node::{DistinctScan, PlanNode};
use crate::source::{CollectionInfo, Direction, FieldKind};
use std::sync::Arc;

/// A plan whose rows are documents with just `key`, at least one for each distinct value; `None` when no index
/// serves. Rows may repeat values.
pub fn distinct_plan(q: &Query, key: &str, info: &CollectionInfo) -> Option<PlanNode> {
    let p = Planner::new(q, info);
    let hinted = p.hinted_index().ok()?;
    let wanted = p.wanted(&p.predicates, p.conj.len());
    let mut best: Option<(usize, Access)> = None;
    for i in p.usable(hinted, q.matcher.root()) {
        let index = &info.indexes[i];
        let mut all = accesses(i, index, &wanted);
        if p.conj.is_empty() && index.wildcard.is_none() {
            all.push(whole_index(i, index, 0));
        }
        for a in all {
            if let Some(field) = serves(&a, key, index.collation.is_some())
                && best.as_ref().is_none_or(|(f, _)| field < *f)
            {
                best = Some((field, a));
            }
        }
    }
    let (field, access) = best?;
    let scan = p.index_scan(&access, Direction::Forward, true);
    Some(PlanNode::DistinctScan(Arc::new(DistinctScan { scan, field, key: key.to_owned() })))
}

/// The position of the wanted field, if stepping over its values gives all that are wanted.
fn serves(a: &Access, key: &str, collated: bool) -> Option<usize> {
    if collated || a.done.iter().any(|d| !d) {
        return None;
    }
    let at = a.fields.iter().position(|f| f.name == key)?;
    let field = &a.fields[at];
    let ordered = matches!(field.kind, FieldKind::Ascending | FieldKind::Descending);
    let fixed = a.fields[..at].iter().all(|f| f.intervals.is_single_point());
    let whole = field.multikey == 0
        || (field.intervals.is_everything()
            && a.fields.iter().all(|f| f.multikey == 0 || f.intervals.is_everything()));
    (ordered && fixed && whole).then_some(at)
}
