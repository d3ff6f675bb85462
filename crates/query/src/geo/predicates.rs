//! What lies within what, and what meets what.

use super::distance;
use super::edge_index::EdgeIndex;
use super::exact::{Crossing, crossing, meeting, vertex_crossing};
use super::flat;
use super::ring::{Polygon, edge_meets_spot};
use super::shape::{Part, Shape, Spot, Xy};
use pando_base::patience;
use s2::point::Point;
use std::f64::consts::PI;

/// Whether all of `inner` lies in `outer`, boundaries included. Flat regions hold points only.
pub(super) fn contains(outer: &Shape, inner: &Shape) -> bool {
    match outer {
        Shape::Box { .. } | Shape::FlatPolygon(_) | Shape::Circle { .. } => match inner {
            Shape::Point(p) => flat_contains(outer, p.at),
            _ => false,
        },
        _ => {
            let held = |part: Part<'_>| {
                let mut held = false;
                outer.for_each_part(&mut |region| {
                    held = patience::is_over(1) || part_contains(region, part);
                    !held
                });
                held
            };
            inner.fits_sphere() && inner.for_each_part(&mut |part| held(part))
        }
    }
}

fn flat_contains(outer: &Shape, p: Xy) -> bool {
    match outer {
        Shape::Box { low, high } => flat::in_box(*low, *high, p),
        Shape::FlatPolygon(polygon) => polygon.contains(p),
        Shape::Circle { center, radius } => flat::distance(*center, p) <= *radius,
        _ => false,
    }
}

fn part_contains(region: Part<'_>, part: Part<'_>) -> bool {
    match (region, part) {
        (Part::Polygon(p), Part::Spot(spot)) => p.meets_spot(&spot),
        (Part::Polygon(p), Part::Line(line)) => holds_line(p, line),
        (Part::Polygon(p), Part::Polygon(q)) => p.contains(q),
        (Part::Cap { center, radius }, Part::Spot(spot)) => cap_meets_spot(&center, radius, &spot),
        (Part::Cap { center, radius }, Part::Line(line)) => furthest(&center, edges(line)) <= radius,
        (Part::Cap { center, radius }, Part::Polygon(p)) => {
            radius >= PI || !p.contains_point(&opposite(&center)) && furthest(&center, p.edges()) <= radius
        }
        _ => false,
    }
}

fn opposite(p: &Point) -> Point {
    Point(p.0 * -1.0)
}

/// The angle to the place of some edges that is furthest away: nearest to the other side of the world.
fn furthest<'a>(from: &Point, edges: impl Iterator<Item = (&'a Point, &'a Point)>) -> f64 {
    PI - distance::nearest(&opposite(from), edges)
}

fn cap_meets_spot(center: &Point, radius: f64, spot: &Spot) -> bool {
    let d = distance::angle(center, &spot.point);
    if (d - radius).abs() > 1e-8 {
        return d < radius;
    }
    // The point's smallest cell may reach into the cap.
    let corners = s2::cell::Cell::from(spot.leaf).vertices();
    let edge = |i: usize| distance::to_edge(center, &corners[i], &corners[(i + 1) % 4]);
    d <= radius || (0..4).any(|i| edge(i) <= radius)
}

/// Whether both have a point in common.
pub(super) fn meets(a: &Shape, b: &Shape) -> bool {
    let mut met = false;
    a.for_each_part(&mut |p| {
        b.for_each_part(&mut |q| {
            met = patience::is_over(1) || parts_meet(p, q);
            !met
        });
        !met
    });
    met
}

fn parts_meet(a: Part<'_>, b: Part<'_>) -> bool {
    match (a, b) {
        (Part::Spot(p), Part::Spot(q)) => p.leaf == q.leaf,
        (Part::Spot(spot), Part::Line(l)) | (Part::Line(l), Part::Spot(spot)) => line_meets_spot(l, &spot),
        (Part::Spot(spot), Part::Polygon(p)) | (Part::Polygon(p), Part::Spot(spot)) => p.meets_spot(&spot),
        (Part::Line(l), Part::Line(m)) => lines_meet(l, m),
        (Part::Line(l), Part::Polygon(p)) | (Part::Polygon(p), Part::Line(l)) => line_meets_polygon(l, p),
        (Part::Polygon(p), Part::Polygon(q)) => p.meets(q),
        // MongoDB answers this way for circles.
        (Part::Cap { .. }, _) | (_, Part::Cap { .. }) => false,
    }
}

fn edges(line: &[Point]) -> impl Iterator<Item = (&Point, &Point)> {
    line.windows(2).map(|w| (&w[0], &w[1]))
}

fn touch(a: &Point, b: &Point, c: &Point, d: &Point) -> bool {
    crossing(a, b, c, d) != Crossing::No
}

/// So many pairs of edges are worth an index.
const ALL_PAIRS: usize = 4096;

fn lines_meet(l: &[Point], m: &[Point]) -> bool {
    if l.len().saturating_mul(m.len()) <= ALL_PAIRS {
        return edges(l).any(|(a, b)| edges(m).any(|(c, d)| touch(a, b, c, d)));
    }
    let index = EdgeIndex::new(edges(m));
    edges(l).any(|(a, b)| {
        patience::is_over(4) || index.near(a, b).into_iter().any(|j| touch(a, b, &m[j], &m[j + 1]))
    })
}

fn line_meets_spot(line: &[Point], spot: &Spot) -> bool {
    patience::is_over(1 + line.len() / 8) || edges(line).any(|(a, b)| edge_meets_spot(a, b, spot))
}

fn line_meets_polygon(line: &[Point], p: &Polygon) -> bool {
    edges(line).any(|(a, b)| inside_share(p, a, b) * distance::angle(a, b) > LINE_TOUCH)
}

/// A line that is in a polygon for less than this (radians) only touches it.
const LINE_TOUCH: f64 = 1e-14;

/// What of an edge may lie outside without counting (radians).
const LINE_TOLERANCE: f64 = 1.8e-12;

/// Whether a line runs in a polygon from end to end.
fn holds_line(p: &Polygon, line: &[Point]) -> bool {
    edges(line).all(|(a, b)| {
        let length = distance::angle(a, b);
        (1.0 - inside_share(p, a, b)) * length <= LINE_TOLERANCE
    })
}

/// How much of the edge lies in the polygon: its crossings with the boundary divide it into stretches that are in and
/// out by turns. An edge of the boundary is inside when it runs the same way, as the polygon is on its left.
fn inside_share(p: &Polygon, a: &Point, b: &Point) -> f64 {
    let length = distance::angle(a, b);
    let mut at = Vec::new();
    if patience::is_over(1 + p.edge_count() / 4) {
        return 0.0;
    }
    for (c, d) in p.edges() {
        match crossing(a, b, c, d) {
            Crossing::No => {}
            Crossing::Yes => at.push(distance::angle(a, &meeting(a, b, c, d)) / length),
            Crossing::Vertex if vertex_crossing(a, b, c, d) => {
                at.push(if a == c || a == d { 0.0 } else { 1.0 });
            }
            Crossing::Vertex => {}
        }
    }
    if p.contains_point(a) {
        at.push(0.0);
    }
    if at.len() % 2 == 1 {
        at.push(1.0);
    }
    at.sort_by(f64::total_cmp);
    at.chunks(2).map(|w| w[1] - w[0]).sum()
}
