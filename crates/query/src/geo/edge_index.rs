//! Which of many edges may touch another one, without looking at all of them.
//!
//! Along one axis every edge takes an interval. Edges are kept by the length of theirs, each class in the order of where
//! they begin, so that those which reach into an interval lie together.

use pando_base::patience;
use s2::point::Point;

/// Room for rounding.
const SLACK: f64 = 1e-14;

pub(super) struct EdgeIndex {
    axis: usize,
    /// By length, doubling from class to class: the longest interval, and (beginning, number) of each edge.
    classes: Vec<(f64, Vec<(f64, usize)>)>,
    boxes: Vec<[(f64, f64); 3]>,
}

fn coordinates(p: &Point) -> [f64; 3] {
    [p.0.x, p.0.y, p.0.z]
}

/// What an arc takes along each axis: it leaves its chord by no more than its height.
fn bounds(a: &Point, b: &Point) -> [(f64, f64); 3] {
    let half = (a.0 - b.0).norm() / 2.0;
    let height = 1.0 - (1.0 - (half * half).min(1.0)).sqrt() + SLACK;
    let (a, b) = (coordinates(a), coordinates(b));
    std::array::from_fn(|i| (a[i].min(b[i]) - height, a[i].max(b[i]) + height))
}

fn overlap(a: &[(f64, f64); 3], b: &[(f64, f64); 3]) -> bool {
    (0..3).all(|i| a[i].0 <= b[i].1 && b[i].0 <= a[i].1)
}

impl EdgeIndex {
    pub(super) fn new<'p>(edges: impl Iterator<Item = (&'p Point, &'p Point)>) -> EdgeIndex {
        let boxes: Vec<_> = edges.map(|(a, b)| bounds(a, b)).collect();
        // Across the edges' direction fewer of them overlap.
        let spread = |axis: usize| boxes.iter().map(|b| b[axis].1 - b[axis].0).sum::<f64>();
        let axis = (0..3).min_by(|a, b| spread(*a).total_cmp(&spread(*b))).unwrap_or(0);
        let mut classes: Vec<(f64, Vec<(f64, usize)>)> = Vec::new();
        let class_of = |length: f64| (-length.max(SLACK).log2()).floor().max(0.0) as usize;
        for (i, b) in boxes.iter().enumerate() {
            let (lo, hi) = b[axis];
            let class = class_of(hi - lo);
            if classes.len() <= class {
                classes.resize_with(class + 1, Default::default);
            }
            let (longest, members) = &mut classes[class];
            *longest = longest.max(hi - lo);
            members.push((lo, i));
        }
        classes.retain(|(_, members)| !members.is_empty());
        for (_, members) in &mut classes {
            members.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        }
        EdgeIndex { axis, classes, boxes }
    }

    /// The numbers of the edges that may touch this one, in order.
    pub(super) fn near(&self, a: &Point, b: &Point) -> Vec<usize> {
        let mine = bounds(a, b);
        let (lo, hi) = mine[self.axis];
        let mut out = Vec::new();
        for (longest, members) in &self.classes {
            let from = members.partition_point(|(start, _)| *start < lo - longest);
            let reached = members[from..].iter().take_while(|(start, _)| *start <= hi);
            let before = out.len();
            out.extend(reached.map(|(_, i)| *i).filter(|i| overlap(&self.boxes[*i], &mine)));
            if patience::is_over(1 + (out.len() - before)) {
                break;
            }
        }
        out.sort_unstable();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geo::exact::{Crossing, crossing};
    use s2::latlng::LatLng;

    #[test]
    fn every_edge_that_crosses_is_among_those_near() {
        let mut seed = 1u64;
        let mut next = |max: f64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 11) as f64 / (1u64 << 53) as f64 * max
        };
        for size in [0.1, 20.0, 170.0] {
            let points: Vec<Point> = (0..200)
                .map(|_| LatLng::from_degrees(next(size) - size / 2.0, next(size) - size / 2.0))
                .map(Point::from)
                .collect();
            let edges: Vec<_> = points.chunks_exact(2).map(|p| (&p[0], &p[1])).collect();
            let index = EdgeIndex::new(edges.iter().copied());
            for (a, b) in &edges {
                let near = index.near(a, b);
                let crossed =
                    (0..edges.len()).filter(|i| crossing(a, b, edges[*i].0, edges[*i].1) != Crossing::No);
                assert!(crossed.into_iter().all(|i| near.contains(&i)), "{size}");
            }
        }
    }
}
