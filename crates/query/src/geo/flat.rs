//! The plane: polygons without curvature, and distances in the coordinates' own unit.

use super::shape::Xy;
use pando_base::patience;

#[derive(Clone, PartialEq, Debug)]
pub struct FlatPolygon {
    pub(super) points: Vec<Xy>,
}

impl FlatPolygon {
    /// Corners and edges along the axes are inside; of other edges those on the right are.
    pub(super) fn contains(&self, p: Xy) -> bool {
        if patience::is_over(1 + self.points.len() / 8) {
            return false;
        }
        let mut inside = false;
        let mut from = self.points[self.points.len() - 1];
        for &to in &self.points {
            let (low, high) = (from.y.min(to.y), from.y.max(to.y));
            let (left, right) = (from.x.min(to.x), from.x.max(to.x));
            let aligned = from.x == to.x || from.y == to.y;
            if p == to || aligned && left <= p.x && p.x <= right && low <= p.y && p.y <= high {
                return true;
            }
            if p.y > low && p.y <= high && p.x <= right {
                let crossing = (p.y - from.y) * (to.x - from.x) / (to.y - from.y) + from.x;
                if from.x == to.x || p.x <= crossing {
                    inside = !inside;
                }
            }
            from = to;
        }
        inside
    }

    pub(super) fn bounds(&self) -> (Xy, Xy) {
        let mut low = self.points[0];
        let mut high = low;
        for p in &self.points {
            low = Xy { x: low.x.min(p.x), y: low.y.min(p.y) };
            high = Xy { x: high.x.max(p.x), y: high.y.max(p.y) };
        }
        (low, high)
    }
}

pub(super) fn in_box(low: Xy, high: Xy, p: Xy) -> bool {
    low.x <= p.x && p.x <= high.x && low.y <= p.y && p.y <= high.y
}

pub(super) fn distance(a: Xy, b: Xy) -> f64 {
    let (x, y) = (a.x - b.x, a.y - b.y);
    // Exact where it can be.
    if x == 0.0 {
        return y.abs();
    }
    if y == 0.0 {
        return x.abs();
    }
    (x * x + y * y).sqrt()
}
