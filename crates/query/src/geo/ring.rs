//! Loops and polygons on the sphere.

use super::edge_index::EdgeIndex;
use super::exact::{Crossing, corner_holds_vertex, crossing, ordered, passes, sign};
use super::shape::Spot;
use pando_base::{HashMap, patience};
use s2::cell::Cell;
use s2::point::Point;
use std::f64::consts::PI;

/// Looking whether two small loops are near each other.
const PAIR_STEPS: usize = 4;

/// A closed chain of at least three points; inside is on the left.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    points: Vec<Point>,
    origin_inside: bool,
    /// A cap (axis, cosine of the angle) that holds the inside, if there is a small one.
    cap: Option<(Point, f64)>,
    /// An odd number of other loops is around it: its inside is not the polygon's.
    pub(super) hole: bool,
}

impl Ring {
    /// As wound.
    pub(super) fn new(points: Vec<Point>) -> Ring {
        let mut ring = Ring { points, origin_inside: false, cap: None, hole: false };
        let (a, b, c) = (ring.points[0], ring.points[1], ring.points[2]);
        let inside = corner_holds_vertex(&a, &b, &c);
        ring.origin_inside = inside != ring.contains(&b);
        ring
    }

    /// Turned round if it encloses more than a hemisphere.
    pub(super) fn normalized(points: Vec<Point>) -> Ring {
        let mut ring = Ring::new(points);
        if ring.area() > 2.0 * PI + 1e-14 {
            ring.points.reverse();
            ring = Ring::new(ring.points);
        }
        ring.cap = ring.small_cap();
        ring
    }

    /// A loop inside a cap that is smaller than a hemisphere, edges and all. (Its complement is the larger part.)
    fn small_cap(&self) -> Option<(Point, f64)> {
        let sum = self.points.iter().fold(s2::r3::vector::Vector::new(0.0, 0.0, 0.0), |s, p| s + p.0);
        if sum.norm() < 1e-3 {
            return None;
        }
        let axis = Point(sum.normalize());
        let cos = self.points.iter().map(|p| p.0.dot(&axis.0)).fold(1.0, f64::min);
        (cos > 0.1).then_some((axis, cos - 1e-9))
    }

    pub(super) fn vertex(&self, i: usize) -> &Point {
        &self.points[i % self.points.len()]
    }
    pub(super) fn edges(&self) -> impl Iterator<Item = (&Point, &Point)> {
        (0..self.points.len()).map(|i| (&self.points[i], self.vertex(i + 1)))
    }
    /// The neighbours of vertex `i`, so that the polygon's inside is on the left of (before, i, behind).
    fn around(&self, i: usize) -> (&Point, &Point) {
        let n = self.points.len();
        let (before, behind) = (&self.points[(i + n - 1) % n], self.vertex(i + 1));
        if self.hole { (behind, before) } else { (before, behind) }
    }

    /// Vertices and edges belong to one side or the other, so that adjacent loops share no point.
    pub(super) fn contains(&self, p: &Point) -> bool {
        if let Some((axis, cos)) = &self.cap
            && axis.0.dot(&p.0) < *cos
        {
            return false;
        }
        if patience::is_over(1 + self.points.len() / 4) {
            return false;
        }
        let origin = Point::origin();
        self.edges().fold(self.origin_inside, |inside, (a, b)| inside ^ passes(&origin, p, a, b))
    }

    /// `true` is certain: both lie in caps that do not meet.
    fn is_apart(&self, other: &Ring) -> bool {
        let (Some((a, x)), Some((b, y))) = (&self.cap, &other.cap) else { return false };
        let reach = |cos: f64| cos.clamp(-1.0, 1.0).acos();
        a.0.angle(&b.0).rad() > reach(*x) + reach(*y) + 1e-9
    }

    /// By the angles turned at the vertices.
    fn area(&self) -> f64 {
        let n = self.points.len();
        let turns: f64 =
            (0..n).map(|i| turn(&self.points[(i + n - 1) % n], &self.points[i], self.vertex(i + 1))).sum();
        2.0 * PI - turns
    }
    pub(super) fn is_normalized(&self) -> bool {
        self.area() <= 2.0 * PI + 1e-14
    }
}

/// How far one turns left at `b`.
fn turn(a: &Point, b: &Point, c: &Point) -> f64 {
    let angle = a.0.cross(&b.0).angle(&b.0.cross(&c.0)).rad();
    if sign(a, b, c) > 0 { angle } else { -angle }
}

/// Loops that do not cross: a point is inside of the polygon when it is inside of an odd number of them.
#[derive(Clone, Debug)]
pub struct Polygon {
    rings: Vec<Ring>,
}

impl Polygon {
    pub(super) fn new(mut rings: Vec<Ring>) -> Polygon {
        let holes: Vec<bool> = (0..rings.len())
            .map(|i| {
                let others = rings.iter().enumerate().filter(|(j, r)| *j != i && ring_contains(r, &rings[i]));
                others.count() % 2 == 1
            })
            .collect();
        rings.iter_mut().zip(holes).for_each(|(r, hole)| r.hole = hole);
        Polygon { rings }
    }
    pub(super) fn edges(&self) -> impl Iterator<Item = (&Point, &Point)> {
        self.rings.iter().flat_map(Ring::edges)
    }
    pub(super) fn edge_count(&self) -> usize {
        self.rings.iter().map(|r| r.points.len()).sum()
    }
    pub(super) fn contains_point(&self, p: &Point) -> bool {
        self.rings.iter().filter(|r| r.contains(p)).count() % 2 == 1
    }
    /// The point or the smallest cell around it touches the polygon.
    pub(super) fn meets_spot(&self, spot: &Spot) -> bool {
        if self.contains_point(&spot.point) {
            return true;
        }
        if !self.edges().any(|(a, b)| is_beside(a, b, spot)) {
            return false;
        }
        let cell = Ring::new(Cell::from(spot.leaf).vertices().to_vec());
        self.meets(&Polygon { rings: vec![cell] })
    }
    /// `false` is certain.
    pub(super) fn may_meet_cap(&self, axis: &Point, angle: f64) -> bool {
        let Some((own, cos)) = self.rings.first().and_then(|r| r.cap) else { return true };
        self.rings[0].hole || own.0.angle(&axis.0).rad() <= cos.clamp(-1.0, 1.0).acos() + angle + 1e-9
    }

    fn shares_vertex(&self, p: &Point) -> bool {
        !patience::is_over(1 + self.edge_count() / 16) && self.rings.iter().any(|r| r.points.contains(p))
    }

    pub(super) fn contains(&self, other: &Polygon) -> bool {
        if !self.may_meet(other) || self.crosses(other) || !self.wedges(other, wedge_contains) {
            return false;
        }
        let inside = |r: &Ring| match r.points.iter().find(|p| !self.shares_vertex(p)) {
            Some(p) => self.contains_point(p),
            None => true,
        };
        let outside = |r: &Ring| match r.points.iter().find(|p| !other.shares_vertex(p)) {
            Some(p) => !other.contains_point(p),
            None => true,
        };
        other.rings.iter().all(inside) && self.rings.iter().all(outside)
    }

    pub(super) fn meets(&self, other: &Polygon) -> bool {
        if !self.may_meet(other) {
            return false;
        }
        let apart =
            |a0: &Point, v: &Point, a2: &Point, b0: &Point, b2: &Point| !wedge_meets(a0, v, a2, b0, b2);
        if self.crosses(other) || !self.wedges(other, apart) {
            return true;
        }
        let has = |a: &Polygon, b: &Polygon| {
            b.rings
                .iter()
                .any(|r| r.points.iter().find(|p| !a.shares_vertex(p)).is_some_and(|p| a.contains_point(p)))
        };
        has(self, other) || has(other, self)
    }

    fn may_meet(&self, other: &Polygon) -> bool {
        match other.rings.first().and_then(|r| r.cap) {
            Some((axis, cos)) => self.may_meet_cap(&axis, cos.clamp(-1.0, 1.0).acos()),
            None => true,
        }
    }

    /// Some edges cross in their insides.
    fn crosses(&self, other: &Polygon) -> bool {
        let theirs: Vec<_> = other.edges().collect();
        if self.edge_count().saturating_mul(theirs.len()) <= ALL_PAIRS {
            return self
                .edges()
                .any(|(a, b)| theirs.iter().any(|(c, d)| crossing(a, b, c, d) == Crossing::Yes));
        }
        let index = EdgeIndex::new(theirs.iter().copied());
        let crosses =
            |a: &Point, b: &Point, j: usize| crossing(a, b, theirs[j].0, theirs[j].1) == Crossing::Yes;
        self.edges()
            .any(|(a, b)| patience::is_over(4) || index.near(a, b).into_iter().any(|j| crosses(a, b, j)))
    }

    /// Whether `test` holds of the two corners at every vertex that both have.
    fn wedges(&self, other: &Polygon, test: impl Fn(&Point, &Point, &Point, &Point, &Point) -> bool) -> bool {
        let shared = SharedVertices::new(other);
        for ring in &self.rings {
            for (i, v) in ring.points.iter().enumerate() {
                if patience::is_over(1) {
                    return false;
                }
                for (theirs, j) in shared.at(v) {
                    let ((a0, a2), (b0, b2)) = (ring.around(i), theirs.around(j));
                    if !test(a0, v, a2, b0, b2) {
                        return false;
                    }
                }
            }
        }
        true
    }
}

/// Where a polygon's vertices are in its loops.
enum SharedVertices<'p> {
    Few(&'p Polygon),
    /// By the place: loop and number, in order.
    Many(HashMap<[u64; 3], Vec<(usize, usize)>>, &'p Polygon),
}

impl<'p> SharedVertices<'p> {
    fn new(p: &'p Polygon) -> SharedVertices<'p> {
        if p.edge_count() <= VERTICES_LISTED {
            return SharedVertices::Few(p);
        }
        let mut all: HashMap<[u64; 3], Vec<(usize, usize)>> = HashMap::default();
        for (r, ring) in p.rings.iter().enumerate() {
            for (i, v) in ring.points.iter().enumerate() {
                all.entry(bits(v)).or_default().push((r, i));
            }
        }
        SharedVertices::Many(all, p)
    }
    /// The loops that have this vertex, and where first.
    fn at(&self, v: &Point) -> Vec<(&'p Ring, usize)> {
        match self {
            SharedVertices::Few(p) => {
                let first = |r: &'p Ring| Some((r, r.points.iter().position(|q| q == v)?));
                p.rings.iter().filter_map(first).collect()
            }
            SharedVertices::Many(all, p) => {
                let mut found: Vec<(usize, usize)> = all.get(&bits(v)).cloned().unwrap_or_default();
                found.dedup_by_key(|(r, _)| *r);
                found.into_iter().map(|(r, i)| (&p.rings[r], i)).collect()
            }
        }
    }
}

/// Equal for equal points.
pub(super) fn bits(p: &Point) -> [u64; 3] {
    [p.0.x, p.0.y, p.0.z].map(|c| (c + 0.0).to_bits())
}

/// So few vertices are compared one by one.
const VERTICES_LISTED: usize = 64;

/// So few pairs of edges are looked at faster than an index is made.
const ALL_PAIRS: usize = 4096;

/// The corner (a0, v, a2) takes in the corner (b0, v, b2).
fn wedge_contains(a0: &Point, v: &Point, a2: &Point, b0: &Point, b2: &Point) -> bool {
    ordered(a2, b2, b0, v) && ordered(b0, a0, a2, v)
}

fn wedge_meets(a0: &Point, v: &Point, a2: &Point, b0: &Point, b2: &Point) -> bool {
    !(ordered(a0, b2, b0, v) && ordered(b0, a2, a0, v))
}

/// Whether one loop is inside of another one; their edges may meet in vertices.
pub(super) fn ring_contains(outer: &Ring, inner: &Ring) -> bool {
    if patience::is_over(PAIR_STEPS) || outer.is_apart(inner) {
        return false;
    }
    if patience::is_over((outer.points.len() + inner.points.len()) / 4) {
        return false;
    }
    let lone = |r: &Ring| Polygon { rings: vec![Ring { hole: false, ..r.clone() }] };
    lone(outer).contains(&lone(inner))
}

/// Whether two loops' edges cross, in their insides or at a vertex.
pub(super) fn rings_cross(a: &Ring, b: &Ring) -> bool {
    if patience::is_over(PAIR_STEPS) || a.is_apart(b) {
        return false;
    }
    if patience::is_over((a.points.len() + b.points.len()) / 4) {
        return false;
    }
    let lone = |r: &Ring| Polygon { rings: vec![Ring { hole: false, ..r.clone() }] };
    let (x, y) = (lone(a), lone(b));
    x.crosses(&y) || (x.meets(&y) && !x.contains(&y) && !y.contains(&x))
}

/// Further from an edge than this (radians), a point's smallest cell cannot touch it.
const LEAF_REACH: f64 = 1e-8;

fn is_beside(a: &Point, b: &Point, spot: &Spot) -> bool {
    let normal = a.0.cross(&b.0);
    normal.dot(&spot.point.0).abs() <= LEAF_REACH * normal.norm() || normal.norm() <= 1e-12
}

/// The edge touches the smallest cell around the point.
pub(super) fn edge_meets_spot(a: &Point, b: &Point, spot: &Spot) -> bool {
    if !is_beside(a, b, spot) {
        return false;
    }
    let cell = Cell::from(spot.leaf);
    if in_cell(&cell, a) || in_cell(&cell, b) {
        return true;
    }
    let corners = cell.vertices();
    (0..4).any(|i| crossing(a, b, &corners[i], &corners[(i + 1) % 4]) != Crossing::No)
}

/// Whether the point's place on the cell's side of the cube is between the cell's ends.
fn in_cell(cell: &Cell, p: &Point) -> bool {
    let (x, y, z) = (p.0.x, p.0.y, p.0.z);
    let (depth, u, v) = match cell.face() {
        0 => (x, y / x, z / x),
        1 => (y, -x / y, z / y),
        2 => (z, -x / z, -y / z),
        3 => (-x, z / x, y / x),
        4 => (-y, z / y, -x / y),
        _ => (-z, -y / z, -x / z),
    };
    let ends = cell.bound_uv();
    depth > 0.0 && ends.x.lo <= u && u <= ends.x.hi && ends.y.lo <= v && v <= ends.y.hi
}
