//! What a geometry is once it is parsed.

use super::flat::FlatPolygon;
use super::ring::Polygon;
use s2::cellid::CellID;
use s2::latlng::LatLng;
use s2::point::Point;

/// A point of the plane; `x` is the longitude where it is one of the earth.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Xy {
    pub x: f64,
    pub y: f64,
}

impl Xy {
    /// The place on the sphere, if these are degrees of one.
    pub fn on_sphere(self) -> Option<Point> {
        self.is_lng_lat().then(|| Point::from(LatLng::from_degrees(self.y, self.x)))
    }
    pub fn is_lng_lat(self) -> bool {
        self.x.abs() <= 180.0 && self.y.abs() <= 90.0
    }
}

/// Which surface coordinates belong to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crs {
    Flat,
    Sphere,
    /// The sphere, and a polygon's inside is on the left of its edges, however large.
    Strict,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GeoPoint {
    pub at: Xy,
    /// A coordinate pair is flat, a GeoJSON point is on the sphere; either may be used as the other.
    pub crs: Crs,
}

/// A point on the sphere, with the smallest cell around it, which stands for its extent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) point: Point,
    pub(super) leaf: CellID,
}

impl Spot {
    pub(super) fn new(point: Point) -> Spot {
        Spot { leaf: CellID::from(&point), point }
    }
}

impl GeoPoint {
    pub(super) fn spot(&self) -> Option<Spot> {
        self.at.on_sphere().map(Spot::new)
    }
}

/// At least two points, each different from the one before.
pub(super) type Line = Vec<Point>;

#[derive(Clone, Debug)]
pub enum Shape {
    Point(GeoPoint),
    Line(Line),
    Polygon(Polygon),
    /// One loop whose winding says which side is inside.
    BigPolygon(Polygon),
    MultiPoint(Vec<GeoPoint>),
    MultiLine(Vec<Line>),
    MultiPolygon(Vec<Polygon>),
    Collection(Vec<Shape>),
    Box {
        low: Xy,
        high: Xy,
    },
    FlatPolygon(FlatPolygon),
    Circle {
        center: Xy,
        radius: f64,
    },
    /// Everything within an angle (radians) of a place.
    Cap {
        center: Xy,
        radius: f64,
    },
}

impl Shape {
    pub fn crs(&self) -> Crs {
        match self {
            Shape::Point(p) => p.crs,
            Shape::BigPolygon(_) => Crs::Strict,
            Shape::Box { .. } | Shape::FlatPolygon(_) | Shape::Circle { .. } => Crs::Flat,
            _ => Crs::Sphere,
        }
    }
    /// Whether it can be used on the sphere.
    pub fn fits_sphere(&self) -> bool {
        match self {
            Shape::Point(p) => p.at.is_lng_lat(),
            other => other.crs() != Crs::Flat,
        }
    }
    /// Whether other things can be inside of it.
    pub fn can_contain(&self) -> bool {
        match self {
            Shape::Point(_) | Shape::Line(_) | Shape::MultiPoint(_) | Shape::MultiLine(_) => false,
            Shape::Collection(parts) => parts.iter().any(Shape::can_contain),
            _ => true,
        }
    }
    /// The simple shapes it is made of.
    pub(super) fn for_each_part(&self, f: &mut dyn FnMut(Part<'_>) -> bool) -> bool {
        match self {
            Shape::Point(p) => p.spot().is_none_or(|s| f(Part::Spot(s))),
            Shape::Line(l) => f(Part::Line(l)),
            Shape::Polygon(p) | Shape::BigPolygon(p) => f(Part::Polygon(p)),
            Shape::MultiPoint(all) => all.iter().filter_map(GeoPoint::spot).all(|s| f(Part::Spot(s))),
            Shape::MultiLine(all) => all.iter().all(|l| f(Part::Line(l))),
            Shape::MultiPolygon(all) => all.iter().all(|p| f(Part::Polygon(p))),
            Shape::Collection(all) => all.iter().all(|s| s.for_each_part(f)),
            Shape::Cap { center, radius } => {
                center.on_sphere().is_none_or(|c| f(Part::Cap { center: c, radius: *radius }))
            }
            Shape::Box { .. } | Shape::FlatPolygon(_) | Shape::Circle { .. } => true,
        }
    }
}

/// One simple shape on the sphere.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    Spot(Spot),
    Line(&'a [Point]),
    Polygon(&'a Polygon),
    Cap { center: Point, radius: f64 },
}
