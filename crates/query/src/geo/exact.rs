//! Which side of an edge a point is on, and whether edges cross, without rounding.
//!
//! The sign of a determinant is computed in doubles, and exactly where those cannot tell. Three points on one great
//! circle (meridians and the equator are full of them) are told apart as if each were moved a little, always the same
//! way: no three points are ever in line, and all answers agree with each other.

use super::distance::angle;
use s2::point::Point;
use std::cmp::Ordering;

/// Largest error of the determinant in doubles.
const DET_ERROR: f64 = 1.8274 * f64::EPSILON;

/// 1 when a, b, c turn left, -1 when right, 0 when two of them are the same.
pub(super) fn sign(a: &Point, b: &Point, c: &Point) -> i32 {
    let det = a.0.cross(&b.0).dot(&c.0);
    if det > DET_ERROR {
        return 1;
    }
    if det < -DET_ERROR {
        return -1;
    }
    if a == b || b == c || c == a {
        return 0;
    }
    let mut p = [coordinates(a), coordinates(b), coordinates(c)];
    let mut permutation = 1;
    for (i, j) in [(0, 1), (1, 2), (0, 1)] {
        if order(&p[i], &p[j]) == Ordering::Greater {
            p.swap(i, j);
            permutation = -permutation;
        }
    }
    let exact = determinant(&p);
    permutation * if exact != 0 { exact } else { perturbed(&p) }
}

fn coordinates(p: &Point) -> [f64; 3] {
    [p.0.x, p.0.y, p.0.z]
}

fn order(a: &[f64; 3], b: &[f64; 3]) -> Ordering {
    let each = a.iter().zip(b).map(|(x, y)| x.partial_cmp(y).unwrap_or(Ordering::Equal));
    each.fold(Ordering::Equal, Ordering::then)
}

/// A sum of doubles that is exact: no two of its terms overlap.
#[derive(Default)]
struct Sum(Vec<f64>);

impl Sum {
    fn add(&mut self, mut x: f64) {
        let mut terms = Vec::with_capacity(self.0.len() + 1);
        for &t in &self.0 {
            let total = x + t;
            let part = total - x;
            let lost = (x - (total - part)) + (t - part);
            if lost != 0.0 {
                terms.push(lost);
            }
            x = total;
        }
        if x != 0.0 {
            terms.push(x);
        }
        self.0 = terms;
    }
    fn add_product(&mut self, a: f64, b: f64) {
        let (high, low) = product(a, b);
        self.add(low);
        self.add(high);
    }
    /// Terms ascend in size, so the last one decides.
    fn sign(&self) -> i32 {
        self.0.last().map_or(0, |t| if *t > 0.0 { 1 } else { -1 })
    }
}

/// A product and what rounding took from it.
fn product(a: f64, b: f64) -> (f64, f64) {
    let high = a * b;
    (high, a.mul_add(b, -high))
}

fn determinant(p: &[[f64; 3]; 3]) -> i32 {
    let mut sum = Sum::default();
    for (i, j, k, plus) in
        [(0, 1, 2, 1.0), (1, 2, 0, 1.0), (2, 0, 1, 1.0), (0, 2, 1, -1.0), (1, 0, 2, -1.0), (2, 1, 0, -1.0)]
    {
        let (high, low) = product(p[0][i], p[1][j]);
        sum.add_product(low, plus * p[2][k]);
        sum.add_product(high, plus * p[2][k]);
    }
    sum.sign()
}

/// The sign of `a * d - b * c`.
fn minor(a: f64, b: f64, c: f64, d: f64) -> i32 {
    let mut sum = Sum::default();
    sum.add_product(a, d);
    sum.add_product(-b, c);
    sum.sign()
}

/// The sign when the smallest point is moved most and each coordinate by less than the one before (simulation of
/// simplicity, Edelsbrunner and Mücke): the first of these terms that is not zero.
fn perturbed(p: &[[f64; 3]; 3]) -> i32 {
    let [a, b, c] = p;
    let of = |x: f64| if x > 0.0 { 1 } else { -i32::from(x < 0.0) };
    let terms: [&dyn Fn() -> i32; 12] = [
        &|| minor(b[0], b[1], c[0], c[1]),
        &|| minor(b[2], b[0], c[2], c[0]),
        &|| minor(b[1], b[2], c[1], c[2]),
        &|| minor(c[0], c[1], a[0], a[1]),
        &|| of(c[0]),
        &|| of(-c[1]),
        &|| minor(c[2], c[0], a[2], a[0]),
        &|| of(c[2]),
        &|| minor(a[0], a[1], b[0], b[1]),
        &|| of(-b[0]),
        &|| of(b[1]),
        &|| of(a[0]),
    ];
    terms.iter().map(|t| t()).find(|s| *s != 0).unwrap_or(1)
}

/// Whether a, b, c are met in this order when turning left around `o`.
pub(super) fn ordered(a: &Point, b: &Point, c: &Point, o: &Point) -> bool {
    let left = [sign(b, o, a) >= 0, sign(c, o, b) >= 0, sign(a, o, c) > 0];
    left.iter().filter(|l| **l).count() >= 2
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Crossing {
    No,
    /// They share a vertex.
    Vertex,
    Yes,
}

pub(super) fn crossing(a: &Point, b: &Point, c: &Point, d: &Point) -> Crossing {
    if a == c || a == d || b == c || b == d {
        return Crossing::Vertex;
    }
    let side = sign(a, b, d);
    if side == 0 || sign(a, b, c) != -side || sign(c, d, b) != -side || sign(c, d, a) != side {
        return Crossing::No;
    }
    Crossing::Yes
}

/// For edges that share a vertex: whether one passes the other in the sense that counting crossings tells inside from
/// outside. Around a vertex edges count from a direction that is the same for all.
pub(super) fn vertex_crossing(a: &Point, b: &Point, c: &Point, d: &Point) -> bool {
    if a == b || c == d {
        return false;
    }
    if a == c {
        return b == d || ordered(&a.ortho(), d, b, a);
    }
    if b == d {
        return ordered(&b.ortho(), c, a, b);
    }
    if a == d {
        return b == c || ordered(&a.ortho(), c, b, a);
    }
    b == c && ordered(&b.ortho(), d, a, b)
}

/// The same for edges that may or may not share a vertex.
pub(super) fn passes(a: &Point, b: &Point, c: &Point, d: &Point) -> bool {
    match crossing(a, b, c, d) {
        Crossing::No => false,
        Crossing::Yes => true,
        Crossing::Vertex => vertex_crossing(a, b, c, d),
    }
}

/// Whether the corner (a, b, c) of a loop has its vertex inside.
pub(super) fn corner_holds_vertex(a: &Point, b: &Point, c: &Point) -> bool {
    ordered(&b.ortho(), a, c, b)
}

/// Where two edges that cross meet. On one great circle that is the end of one that lies on the other.
pub(super) fn meeting(a: &Point, b: &Point, c: &Point, d: &Point) -> Point {
    let normal = |p: &Point, q: &Point| (q.0 - p.0).cross(&(q.0 + p.0)).normalize();
    let mut at = normal(a, b).cross(&normal(c, d));
    if at.dot(&(a.0 + b.0 + c.0 + d.0)) < 0.0 {
        at = at * -1.0;
    }
    let at = Point(at.normalize());
    let between = |p: &Point, from: &Point, to: &Point| {
        let whole = angle(from, to) + 1e-15;
        angle(from, p) <= whole && angle(p, to) <= whole
    };
    if at.0.norm2() > 0.5 && between(&at, a, b) && between(&at, c, d) {
        return at;
    }
    let mut best: Option<(f64, Point)> = None;
    for (p, from, to) in [(a, c, d), (b, c, d), (c, a, b), (d, a, b)] {
        let away = (p.0 - at.0).norm2();
        if between(p, from, to) && best.is_none_or(|(least, _)| away < least) {
            best = Some((away, *p));
        }
    }
    best.map_or(at, |(_, p)| p)
}
