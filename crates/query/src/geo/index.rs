//! Cells as index keys: which keys a shape has, and which ranges of keys a question is about.

use super::cover::{Area, cover};
use super::grid::{Grid, Wanted};
use super::near::NearQuery;
use super::query::{GeoOp, GeoQuery};
use super::shape::{Shape, Xy};
use crate::plan::interval::{Interval, IntervalList};
use pando_base::limits::{GEO_INDEX_CELLS_MAX, GEO_QUERY_CELLS_MAX};
use pando_bson::Value;
use s2::cellid::CellID;
use s2::point::Point;

/// How the fields on places of one index are divided into cells.
#[derive(Clone, Debug, PartialEq)]
pub enum GeoIndex {
    /// `2d`
    Plane(Grid),
    /// `2dsphere`: coarsest and finest level of cells.
    Sphere { coarsest: u8, finest: u8 },
}

impl GeoIndex {
    /// The keys of a shape on the sphere.
    pub fn keys(&self, shape: Shape) -> Vec<i64> {
        let GeoIndex::Sphere { coarsest, finest } = self else { return Vec::new() };
        if let Shape::Point(p) = &shape {
            let leaf = p.spot().map(|s| s.leaf.parent(u64::from(*finest)));
            return leaf.map(key).into_iter().collect();
        }
        cover(Area::Shape(shape), (*coarsest, *finest), GEO_INDEX_CELLS_MAX).into_iter().map(key).collect()
    }

    /// Where matches can be; `None` when the index cannot tell.
    pub fn bounds(&self, q: &GeoQuery) -> Option<IntervalList> {
        match self {
            GeoIndex::Plane(grid) => {
                let serves = q.op == GeoOp::Within && (q.is_flat() || matches!(q.shape, Shape::Cap { .. }));
                serves.then(|| list(grid.ranges(Wanted::Shape(&q.shape), GEO_QUERY_CELLS_MAX)))
            }
            GeoIndex::Sphere { .. } => (!q.is_flat())
                .then(|| around(cover(Area::Shape(q.shape.clone()), (0, 30), GEO_QUERY_CELLS_MAX))),
        }
    }

    /// Whether the index can find what is near by this query.
    pub fn finds(&self, near: &NearQuery) -> bool {
        match self {
            GeoIndex::Plane(_) => near.from_pair,
            GeoIndex::Sphere { .. } => near.on_sphere,
        }
    }

    /// Where everything is that is between two distances (radians, or units of the plane).
    pub(crate) fn annulus(&self, near: &NearQuery, inner: f64, outer: f64) -> IntervalList {
        match (self, near.on_sphere) {
            (GeoIndex::Plane(grid), false) => {
                let wanted = Wanted::Annulus { center: near.center.at, inner, outer };
                list(grid.ranges(wanted, GEO_QUERY_CELLS_MAX))
            }
            (GeoIndex::Plane(grid), true) => {
                let cap = Shape::Cap { center: near.center.at, radius: outer };
                list(grid.ranges(Wanted::Shape(&cap), GEO_QUERY_CELLS_MAX))
            }
            (GeoIndex::Sphere { .. }, _) => {
                let area = Area::Annulus { center: sphere(near.center.at), inner, outer };
                around(cover(area, (0, 30), GEO_QUERY_CELLS_MAX))
            }
        }
    }

    /// How wide the first ring of a search is: a few metres, a few cells.
    pub(crate) fn first_ring(&self, on_sphere: bool) -> f64 {
        match self {
            GeoIndex::Plane(grid) => {
                let side = grid.side(20);
                if on_sphere { side.to_radians() } else { side }
            }
            GeoIndex::Sphere { .. } => 1e-6,
        }
    }

    /// Nothing is further away.
    pub(crate) fn furthest(&self, on_sphere: bool) -> f64 {
        match self {
            GeoIndex::Plane(grid) if !on_sphere => grid.diameter(),
            _ => std::f64::consts::PI,
        }
    }
}

fn sphere(at: Xy) -> Point {
    Point::from(s2::latlng::LatLng::from_degrees(at.y, at.x))
}

fn key(id: CellID) -> i64 {
    id.0 as i64
}

fn interval(low: i64, high: i64) -> Interval {
    Interval::new(Value::Int64(low).into(), true, Value::Int64(high).into(), true)
}

fn list(ranges: Vec<(i64, i64)>) -> IntervalList {
    IntervalList(ranges.into_iter().map(|(low, high)| interval(low, high)).collect())
}

/// Cells with all they hold, and the larger cells they are in: a large thing has only large cells.
fn around(cells: Vec<CellID>) -> IntervalList {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for id in cells {
        ranges.push((key(id.range_min()), key(id.range_max())));
        ranges.extend((0..id.level()).map(|level| key(id.parent(level))).map(|k| (k, k)));
    }
    ranges.sort_unstable();
    let mut merged: Vec<(i64, i64)> = Vec::new();
    for (low, high) in ranges {
        match merged.last_mut() {
            Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
            _ => merged.push((low, high)),
        }
    }
    list(merged)
}
