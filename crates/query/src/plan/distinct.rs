//! Plans for `distinct`, and for a `$group` that needs one document of each group, that step from value to value in an
//! index.
//!
//! The index must answer the whole filter, and hold the wanted field behind nothing but single values. With arrays
//! on the field all of it must be in bounds, because a document that matches by one element has its other
//! elements counted too.

use super::Query;
use super::access::{Access, accesses, whole_index};
use super::bound_field::BoundField;
use super::candidates::{Planner, Solution};
use super::firsts::{Firsts, Pick};
use super::node::{DistinctScan, Gives, PlanNode};
use super::order::order_of;
use crate::source::{CollectionInfo, Direction, FieldKind, IndexKind};
use std::sync::Arc;

/// A plan whose rows are documents with just `key`, at least one for each distinct value; `None` when no index
/// serves. Rows may repeat values.
pub fn distinct_plan(q: &Query, key: &str, info: &CollectionInfo) -> Option<PlanNode> {
    let p = Planner::new(q, info);
    let hinted = p.hinted_index().ok()?;
    let wanted = p.wanted(&p.predicates, p.conj.len());
    // Bounds keep strings out where the index has another collation. Without any, which of several equal strings stands for
    // them all is told by the collection's order.
    let by_bounds = q.ctx.collation.is_some() || !p.conj.is_empty();
    let mut best: Option<(usize, Access)> = None;
    for i in p.usable(hinted, q.matcher.root()) {
        let index = &info.indexes[i];
        let mut all = accesses(i, index, &wanted);
        if !by_bounds && index.wildcard.is_none() {
            all.push(whole_index(i, index, 0));
        }
        for a in all {
            let points = |f: &BoundField| f.intervals.all_points();
            if let Some(field) = serves(&a, key, index.collation.is_some(), &points)
                && best.as_ref().is_none_or(|(f, _)| field < *f)
            {
                best = Some((field, a));
            }
        }
    }
    let (field, access) = best?;
    let scan = p.index_scan(&access, Direction::Forward, true);
    let (scan, key) = (Arc::new(scan), key.to_owned());
    Some(PlanNode::DistinctScan(Arc::new(DistinctScan { scan, field, key, gives: Gives::Values })))
}

/// Some index has the field, and none that has it serves the filter: explain says that only the field is read.
pub fn reads_only(q: &Query, key: &str, info: &CollectionInfo) -> bool {
    let p = Planner::new(q, info);
    let wanted = p.wanted(&p.predicates, p.conj.len());
    let has = |i: &usize| info.indexes[*i].fields.iter().any(|f| f.path == key);
    let having: Vec<usize> = (0..info.indexes.len()).filter(has).collect();
    !having.is_empty() && having.iter().all(|i| accesses(*i, &info.indexes[*i], &wanted).is_empty())
}

/// The position of the wanted field, if stepping over its values gives all that are wanted.
/// `fixed` says which fields may stand before it.
fn serves(a: &Access, key: &str, collated: bool, fixed: &dyn Fn(&BoundField) -> bool) -> Option<usize> {
    if collated || a.done.iter().any(|d| !d) {
        return None;
    }
    let at = a.fields.iter().position(|f| f.name == key)?;
    let field = &a.fields[at];
    let ordered = matches!(field.kind, FieldKind::Ascending | FieldKind::Descending);
    let fixed = a.fields[..at].iter().all(fixed);
    let whole = field.multikey == 0
        || (field.intervals.is_everything()
            && a.fields.iter().all(|f| f.multikey == 0 || f.intervals.is_everything()));
    (ordered && fixed && whole).then_some(at)
}

impl Planner<'_> {
    /// A plan that visits one document per value of the path; `None` when no index gives the wanted ones.
    pub(super) fn firsts(&self, wanted: &Firsts, hinted: Option<usize>) -> Option<Solution> {
        let positional = |name: &str| name.bytes().all(|b| b.is_ascii_digit());
        if self.q.ctx.collation.is_some() || wanted.path.split('.').any(positional) {
            return None;
        }
        let all = self.wanted(&self.predicates, self.conj.len());
        let mut best: Option<((bool, usize), Access, Direction)> = None;
        for i in self.usable(hinted, self.q.matcher.root()) {
            let index = &self.info.indexes[i];
            let plain = index.kind == IndexKind::Btree && !index.sparse && index.collation.is_none();
            if !plain || index.multikey.is_multikey() {
                continue;
            }
            let whole = self.q.matcher.is_trivial().then(|| whole_index(i, index, self.conj.len()));
            for a in accesses(i, index, &all).into_iter().chain(whole) {
                let point = |f: &BoundField| f.intervals.is_single_point();
                let Some(at) = serves(&a, &wanted.path, false, &point) else { continue };
                let Some(dir) = self.visits(&a, at, wanted) else { continue };
                let rank = (!self.covers(&a), at);
                if best.as_ref().is_none_or(|(r, ..)| rank < *r) {
                    best = Some((rank, a, dir));
                }
            }
        }
        let ((_, field), access, dir) = best?;
        let mut solution = self.finish(self.rows_of(access, dir));
        solution.root.step_by_value(field, &wanted.path);
        Some(solution)
    }

    /// The direction in which the entry met first of each value is the wanted one.
    fn visits(&self, a: &Access, at: usize, wanted: &Firsts) -> Option<Direction> {
        let forward = match (&self.q.sort, wanted.pick) {
            (_, Pick::Any) => return Some(Direction::Forward),
            (Some(sort), _) if sort.parts.first()?.path == wanted.path => order_of(a, sort)?,
            (Some(_), _) => return None,
            // Entries of one key lie in the collection's order.
            (None, _) => (at + 1 == a.fields.len()).then_some(Direction::Forward)?,
        };
        Some(if wanted.pick == Pick::Last { forward.reverse() } else { forward })
    }
}

impl PlanNode {
    /// Turns the scan at the bottom into one of the different values of a field.
    fn step_by_value(&mut self, field: usize, key: &str) {
        match self {
            PlanNode::IxScan(scan) => {
                let scan = scan.clone();
                *self = PlanNode::DistinctScan(Arc::new(DistinctScan {
                    scan,
                    field,
                    key: key.to_owned(),
                    gives: Gives::Entries,
                }));
            }
            PlanNode::Fetch { input, .. }
            | PlanNode::Project { input, .. }
            | PlanNode::Reads { input, .. } => {
                input.step_by_value(field, key);
            }
            _ => {}
        }
    }
}
