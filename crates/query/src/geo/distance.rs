//! How far apart things are: angles on the sphere, lengths on the plane.

use super::flat;
use super::shape::{Part, Shape, Xy};
use s2::point::Point;

/// The radius that MongoDB turns angles into metres with.
pub const EARTH_RADIUS_M: f64 = 6378.1 * 1000.0;

/// The angle between two places.
pub(super) fn angle(a: &Point, b: &Point) -> f64 {
    a.0.cross(&b.0).norm().atan2(a.0.dot(&b.0))
}

/// The angle to the nearest place of an edge.
pub(super) fn to_edge(p: &Point, a: &Point, b: &Point) -> f64 {
    angle(p, &project(p, a, b))
}

/// The place of an edge that is nearest to `p`.
fn project(p: &Point, a: &Point, b: &Point) -> Point {
    let normal = (b.0 + a.0).cross(&(b.0 - a.0));
    let size = normal.norm2();
    if size > 0.0 {
        let foot = p.0 - normal * (p.0.dot(&normal) / size);
        // The great circle's nearest place is on the edge when it is ahead of one end and behind the other.
        if normal.cross(&a.0).dot(&foot) > 0.0 && b.0.cross(&normal).dot(&foot) > 0.0 && foot.norm2() > 0.0 {
            return Point(foot.normalize());
        }
    }
    if (p.0 - a.0).norm2() <= (p.0 - b.0).norm2() { *a } else { *b }
}

/// The angle from a place to the nearest one of a shape; `None` when it is not of the sphere.
pub(super) fn to_shape(from: &Point, shape: &Shape) -> Option<f64> {
    if !shape.fits_sphere() {
        return None;
    }
    let mut best: Option<f64> = None;
    shape.for_each_part(&mut |part| {
        let d = match part {
            Part::Spot(s) => angle(from, &s.point),
            Part::Line(l) => nearest(from, l.windows(2).map(|w| (&w[0], &w[1]))),
            Part::Polygon(p) if p.contains_point(from) => 0.0,
            Part::Polygon(p) => nearest(from, p.edges()),
            Part::Cap { .. } => return true,
        };
        best = Some(best.map_or(d, |b: f64| b.min(d)));
        true
    });
    best
}

/// The angle to the nearest place of some edges.
pub(super) fn nearest<'a>(from: &Point, edges: impl Iterator<Item = (&'a Point, &'a Point)>) -> f64 {
    edges.map(|(a, b)| to_edge(from, a, b)).fold(f64::INFINITY, f64::min)
}

pub(super) fn flat(a: Xy, b: Xy) -> f64 {
    flat::distance(a, b)
}
