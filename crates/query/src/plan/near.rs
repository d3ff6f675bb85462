//! Plans for `$near`: an index on the place, searched in growing rings.

use super::access::near_access;
use super::candidates::{Planner, Rows, Solution};
use super::interval::IntervalList;
use super::key_bounds::KeyBounds;
use super::node::{GeoNear, IxScan, PlanNode};
use crate::collation::Collation;
use crate::geo::NearQuery;
use crate::matcher::{Node, Path, Pred};
use crate::source::{Direction, FieldKind};
use pando_base::{ErrorCode, Result};
use std::sync::Arc;

impl Planner<'_> {
    /// One plan for each index that can serve, if there is one.
    pub(super) fn near(
        &self,
        path: &Path,
        near: &Arc<NearQuery>,
        hinted: Option<usize>,
    ) -> Result<Vec<Solution>> {
        let wanted = self.wanted(&self.predicates, self.conj.len());
        let mut out = Vec::new();
        for i in self.usable(hinted, self.q.matcher.root()) {
            let index = &self.info.indexes[i];
            let Some(geo) = index.geo.as_ref().filter(|g| g.finds(near)) else { continue };
            let places = |f: &crate::source::IndexField| f.kind == FieldKind::Geo && f.path == path.dotted();
            let Some(place) = index.fields.iter().position(places) else { continue };
            let Some(mut access) = near_access(i, index, &wanted, place) else { continue };
            for (node, done) in self.conj.iter().zip(&mut access.done) {
                *done |= matches!(node, Node::Leaf(l) if matches!(l.pred, Pred::Near(_)));
            }
            access.fields[place].intervals = IntervalList::everything();
            let node = PlanNode::GeoNear(Arc::new(GeoNear {
                index: i,
                geo: geo.clone(),
                place,
                near: near.clone(),
                path: path.clone(),
                filter: self.key_filter(&access),
                collation: index.collation.clone(),
                fields: access.fields.clone(),
                output: self.q.near_output.clone(),
                tells: self.q.wants_nearness(),
            }));
            out.push(self.finish(Rows {
                node,
                filter: self.leftover(&access),
                sorted: self.q.sort.is_none(),
                access: None,
                dir: Direction::Forward,
                signature: format!("NEAR {}", index.name),
                lone: None,
            }));
        }
        if out.is_empty() {
            let code = ErrorCode::NoQueryExecutionPlans.0;
            return Err(self.q.error(code, "unable to find index for $geoNear query"));
        }
        Ok(out)
    }
}

impl GeoNear {
    pub(crate) fn is_sphere(&self) -> bool {
        matches!(*self.geo, crate::geo::GeoIndex::Sphere { .. })
    }
    /// The scan of what is between two distances.
    pub(crate) fn ring(&self, inner: f64, outer: f64) -> IxScan {
        let mut fields = self.fields.clone();
        fields[self.place].intervals = self.geo.annulus(&self.near, inner, outer);
        IxScan {
            index: self.index,
            dir: Direction::Forward,
            bounds: KeyBounds::new(&fields, Collation::order(&self.collation)),
            fields,
            filter: self.filter.clone(),
            dedup: false,
            keep_key: false,
            wild_path: None,
        }
    }
}
