//! The `2d` index's division of a square into cells: a cell is where the bits of both coordinates, taken by turns,
//! begin alike.

use super::distance;
use super::shape::{Shape, Xy};
use pando_base::{Error, Result};

#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Bits of each coordinate that keys tell apart.
    bits: u32,
    min: f64,
    max: f64,
    scale: f64,
}

/// A square whose keys begin with the same `2 * level` bits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Square {
    prefix: u64,
    level: u32,
}

/// What a scan looks for on the plane.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'a> {
    Shape(&'a Shape),
    /// Between two distances of a place, in the coordinates' unit.
    Annulus {
        center: Xy,
        inner: f64,
        outer: f64,
    },
}

/// A side of a square in key units.
const SIDE: f64 = 4_294_967_296.0;

impl Grid {
    pub fn new(bits: i64, min: f64, max: f64) -> Result<Grid> {
        let refused = |text: String| Err(Error::new(pando_base::ErrorCode(72), text));
        let bits = match u32::try_from(bits) {
            Ok(n @ 1..=32) => n,
            _ => {
                return refused(format!(
                    "bits for hash must be > 0 and <= 32, but {bits} bits were specified"
                ));
            }
        };
        let scale = SIDE / (max - min);
        if !(min < max && scale.is_finite() && scale > 0.0) {
            return refused(format!(
                "region for hash must be valid and have positive area, but [{}, {}] was specified",
                super::parse::short(min),
                super::parse::short(max)
            ));
        }
        Ok(Grid { bits, min, max, scale })
    }
    pub fn holds(&self, p: Xy) -> bool {
        let within = |v: f64| v >= self.min && v <= self.max;
        within(p.x) && within(p.y)
    }
    /// `[min, max]` as messages show it.
    pub fn interval(&self) -> String {
        format!("[ {}, {} ]", super::parse::short(self.min), super::parse::short(self.max))
    }

    fn units(&self, v: f64) -> u64 {
        // Saturates at the far edge.
        u64::from(((v - self.min) * self.scale) as u32)
    }

    /// The key of a point inside the square.
    pub fn key(&self, p: Xy) -> i64 {
        let hash = spread(self.units(p.x)) << 1 | spread(self.units(p.y));
        ordered(hash & !low_bits(self.bits))
    }

    /// Keys that what is wanted can have: ascending, disjoint ranges, both ends included.
    pub(super) fn ranges(&self, wanted: Wanted<'_>, cells_max: usize) -> Vec<(i64, i64)> {
        let mut done: Vec<Square> = Vec::new();
        let mut open = std::collections::VecDeque::from([Square { prefix: 0, level: 0 }]);
        while let Some(square) = open.pop_front() {
            let (low, high) = self.corners(square);
            match place(wanted, low, high) {
                Place::Apart => {}
                Place::Inside => done.push(square),
                Place::Partly if square.level >= self.bits || done.len() + open.len() + 4 > cells_max => {
                    done.push(square);
                }
                Place::Partly => open.extend(square.children()),
            }
        }
        let mut ranges: Vec<(u64, u64)> =
            done.iter().map(|s| (s.prefix, s.prefix | low_bits(s.level))).collect();
        ranges.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if last.1.checked_add(1).is_none_or(|next| low <= next) => {
                    last.1 = last.1.max(high)
                }
                _ => merged.push((low, high)),
            }
        }
        merged.into_iter().map(|(a, b)| (ordered(a), ordered(b))).collect()
    }

    /// The square's corners, a little outside so that rounding loses no point.
    fn corners(&self, s: Square) -> (Xy, Xy) {
        let side = SIDE / (1u64 << s.level) as f64;
        let (x, y) = (gather(s.prefix >> 1) as f64, gather(s.prefix) as f64);
        let at = |units: f64| units / self.scale + self.min;
        (Xy { x: at(x - 1.0), y: at(y - 1.0) }, Xy { x: at(x + side + 1.0), y: at(y + side + 1.0) })
    }

    /// The side of a square at a level.
    pub(super) fn side(&self, level: u32) -> f64 {
        (self.max - self.min) / (1u64 << level.min(32)) as f64
    }
    /// Further than this apart no two points of the square are.
    pub(super) fn diameter(&self) -> f64 {
        (self.max - self.min) * 1.5
    }
}

impl Square {
    fn children(self) -> impl Iterator<Item = Square> {
        let level = self.level + 1;
        (0..4u64).map(move |i| Square { prefix: self.prefix | i << (64 - 2 * level), level })
    }
}

/// All bits behind the first `2 * level`.
fn low_bits(level: u32) -> u64 {
    u64::MAX.checked_shr(2 * level).unwrap_or(0)
}

/// Unsigned order as signed numbers.
fn ordered(hash: u64) -> i64 {
    (hash ^ 1 << 63) as i64
}

/// The low 32 bits to the even positions.
fn spread(v: u64) -> u64 {
    let mut v = v & 0xFFFF_FFFF;
    for (shift, mask) in [
        (16, 0x0000_FFFF_0000_FFFF),
        (8, 0x00FF_00FF_00FF_00FF),
        (4, 0x0F0F_0F0F_0F0F_0F0F),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ] {
        v = (v | v << shift) & mask;
    }
    v
}

/// The other way round.
fn gather(v: u64) -> u64 {
    let mut v = v & 0x5555_5555_5555_5555;
    for (shift, mask) in [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0F0F_0F0F_0F0F_0F0F),
        (4, 0x00FF_00FF_00FF_00FF),
        (8, 0x0000_FFFF_0000_FFFF),
        (16, 0x0000_0000_FFFF_FFFF),
    ] {
        v = (v | v >> shift) & mask;
    }
    v
}

enum Place {
    Apart,
    Partly,
    Inside,
}

fn place(wanted: Wanted<'_>, low: Xy, high: Xy) -> Place {
    let overlaps = |a: Xy, b: Xy| a.x <= high.x && b.x >= low.x && a.y <= high.y && b.y >= low.y;
    let within = |a: Xy, b: Xy| a.x <= low.x && high.x <= b.x && a.y <= low.y && high.y <= b.y;
    let by_bounds = |a: Xy, b: Xy, exact: bool| match (overlaps(a, b), exact && within(a, b)) {
        (false, _) => Place::Apart,
        (true, true) => Place::Inside,
        (true, false) => Place::Partly,
    };
    match wanted {
        Wanted::Shape(Shape::Box { low: a, high: b }) => by_bounds(*a, *b, true),
        Wanted::Shape(Shape::FlatPolygon(p)) => {
            let (a, b) = p.bounds();
            by_bounds(a, b, false)
        }
        Wanted::Shape(Shape::Circle { center, radius }) => ring(*center, 0.0, *radius, low, high),
        Wanted::Shape(Shape::Cap { center, radius }) => {
            let (a, b) = cap_bounds(*center, *radius);
            by_bounds(a, b, false)
        }
        Wanted::Shape(_) => Place::Partly,
        Wanted::Annulus { center, inner, outer } => ring(center, inner, outer, low, high),
    }
}

fn ring(center: Xy, inner: f64, outer: f64, low: Xy, high: Xy) -> Place {
    let nearest = Xy { x: center.x.clamp(low.x, high.x), y: center.y.clamp(low.y, high.y) };
    let end = |c: f64, a: f64, b: f64| if (c - a).abs() > (c - b).abs() { a } else { b };
    let furthest = Xy { x: end(center.x, low.x, high.x), y: end(center.y, low.y, high.y) };
    let (near, far) = (distance::flat(center, nearest), distance::flat(center, furthest));
    if near > outer || far < inner {
        Place::Apart
    } else if far <= outer && near >= inner {
        Place::Inside
    } else {
        Place::Partly
    }
}

/// The degrees that a cap can reach; all longitudes when it touches a pole or the date line.
pub(super) fn cap_bounds(center: Xy, radius: f64) -> (Xy, Xy) {
    let degrees = radius.to_degrees() + 1e-6;
    let (south, north) = (center.y - degrees, center.y + degrees);
    let mut wide = 360.0;
    if south > -90.0 && north < 90.0 {
        let ratio = degrees.to_radians().sin() / center.y.to_radians().cos();
        if ratio < 1.0 {
            wide = ratio.asin().to_degrees() + 1e-6;
        }
    }
    let (west, east) = (center.x - wide, center.x + wide);
    if west < -180.0 || east > 180.0 {
        return (Xy { x: -360.0, y: south }, Xy { x: 360.0, y: north });
    }
    (Xy { x: west, y: south }, Xy { x: east, y: north })
}
