//! Regions of the sphere as cells: few of them, together no smaller than the region.

use super::distance;
use super::exact::{Crossing, crossing};
use super::ring::Polygon;
use super::shape::{Part, Shape};
use pando_base::patience;
use s2::cap::Cap;
use s2::cell::Cell;
use s2::cellid::CellID;
use s2::point::Point;
use s2::region::{Region, RegionCoverer};

/// What cells are wanted of.
pub(super) enum Area {
    Shape(Shape),
    /// Between two angles of a place.
    Annulus {
        center: Point,
        inner: f64,
        outer: f64,
    },
}

/// A region is looked for a little further than it reaches, so that rounding loses nothing.
const SLACK: f64 = 1e-8;

/// Cells between two levels that cover the area.
pub(super) fn cover(area: Area, levels: (u8, u8), cells_max: usize) -> Vec<CellID> {
    let coverer =
        RegionCoverer { min_level: levels.0, max_level: levels.1, level_mod: 1, max_cells: cells_max };
    coverer.covering(&area).0
}

impl Region for Area {
    fn cap_bound(&self) -> Cap {
        Cap::full()
    }
    fn contains_cell(&self, cell: &Cell) -> bool {
        let frame = Frame::new(cell);
        match self {
            Area::Shape(shape) => {
                let mut inside = false;
                shape.for_each_part(&mut |part| {
                    inside = frame.is_inside(part);
                    !inside
                });
                inside
            }
            Area::Annulus { center, inner, outer } => {
                frame.within_cap(center, *outer) && !frame.meets_cap(center, inner - SLACK)
            }
        }
    }
    fn intersects_cell(&self, cell: &Cell) -> bool {
        let frame = Frame::new(cell);
        match self {
            Area::Shape(shape) => {
                let mut meets = false;
                shape.for_each_part(&mut |part| {
                    meets = frame.meets(part);
                    !meets
                });
                meets
            }
            Area::Annulus { center, inner, outer } => {
                frame.meets_cap(center, outer + SLACK) && !frame.within_cap(center, inner - SLACK)
            }
        }
    }
    fn cell_union_bound(&self) -> Vec<CellID> {
        (0..6).map(CellID::from_face).collect()
    }
}

/// A cell with its corners.
struct Frame {
    id: CellID,
    corners: [Point; 4],
    middle: Point,
    /// Angle from the middle to the furthest corner.
    reach: f64,
    /// The same through the sphere.
    chord: f64,
}

/// Edges up to this long (through the sphere) bend so little that the ends say where they can be.
const SHORT_EDGE: f64 = 0.05;

/// What looking at all edges takes.
fn steps(part: Part<'_>) -> usize {
    match part {
        Part::Line(l) => 4 + l.len() / 4,
        // Angles to its cap are looked at first.
        Part::Polygon(p) => 16 + p.edge_count() / 4,
        Part::Spot(_) | Part::Cap { .. } => 1,
    }
}

impl Frame {
    fn new(cell: &Cell) -> Frame {
        let id = CellID::from(cell);
        let corners = cell.vertices();
        let middle = Point(cell.center().0.normalize());
        let reach = corners.iter().map(|c| distance::angle(&middle, c)).fold(0.0, f64::max) + SLACK;
        let chord = corners.iter().map(|c| (c.0 - middle.0).norm()).fold(0.0, f64::max);
        Frame { id, corners, middle, reach, chord }
    }
    fn holds(&self, p: &Point) -> bool {
        self.id.contains(&CellID::from(p))
    }
    fn sides(&self) -> impl Iterator<Item = (&Point, &Point)> {
        (0..4).map(|i| (&self.corners[i], &self.corners[(i + 1) % 4]))
    }
    /// The edge begins in the cell or crosses its boundary.
    fn touches(&self, a: &Point, b: &Point) -> bool {
        self.may_reach(a, b) && (self.holds(a) || self.crossed_by(a, b))
    }
    /// `false` is certain: the edge stays out of the cap around the cell.
    fn may_reach(&self, a: &Point, b: &Point) -> bool {
        let (to_a, length) = ((a.0 - self.middle.0).norm(), (a.0 - b.0).norm());
        // No point of a short edge is further from its beginning than its end is, arcs and rounding allowed for.
        length > SHORT_EDGE || to_a <= self.chord + 1.001 * length + SLACK
    }
    fn crossed_by(&self, a: &Point, b: &Point) -> bool {
        self.sides().any(|(c, d)| crossing(a, b, c, d) != Crossing::No)
    }

    fn meets(&self, part: Part<'_>) -> bool {
        if patience::is_over(steps(part)) {
            return false;
        }
        match part {
            Part::Spot(s) => self.id.contains(&s.leaf),
            Part::Line(l) => {
                l.windows(2).any(|w| self.touches(&w[0], &w[1])) || l.last().is_some_and(|p| self.holds(p))
            }
            Part::Polygon(p) => self.meets_polygon(p),
            Part::Cap { center, radius } => self.meets_cap(&center, radius + SLACK),
        }
    }

    fn meets_polygon(&self, p: &Polygon) -> bool {
        p.may_meet_cap(&self.middle, self.reach)
            && (p.edges().any(|(a, b)| self.touches(a, b)) || p.contains_point(&self.corners[0]))
    }

    fn is_inside(&self, part: Part<'_>) -> bool {
        if patience::is_over(steps(part)) {
            return false;
        }
        match part {
            Part::Spot(s) => s.leaf == self.id,
            Part::Line(_) => false,
            Part::Polygon(p) => {
                // No boundary runs through it: where one corner is, all of it is.
                p.may_meet_cap(&self.middle, self.reach)
                    && !p.edges().any(|(a, b)| self.touches(a, b))
                    && p.contains_point(&self.corners[0])
            }
            Part::Cap { center, radius } => self.within_cap(&center, radius),
        }
    }

    fn meets_cap(&self, center: &Point, radius: f64) -> bool {
        radius >= 0.0
            && (self.holds(center) || self.sides().any(|(a, b)| distance::to_edge(center, a, b) <= radius))
    }

    /// The other side of the world's cap does not reach here.
    fn within_cap(&self, center: &Point, radius: f64) -> bool {
        let opposite = Point(center.0 * -1.0);
        radius > 0.0 && !self.meets_cap(&opposite, std::f64::consts::PI - radius)
    }
}
