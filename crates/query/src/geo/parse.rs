//! GeoJSON objects, coordinate pairs and the older shapes of queries.

// Points come from clients, who must not be able to choose keys that collide.
#![allow(clippy::disallowed_types)]

use super::edge_index::EdgeIndex;
use super::exact::{Crossing, crossing};
use super::flat::FlatPolygon;
use super::ring::{Polygon, Ring, bits, ring_contains, rings_cross};
use super::shape::{Crs, GeoPoint, Line, Shape, Xy};
use pando_base::{Error, Result, patience};
use pando_bson::{Elem, ElementType, RawDoc, Value};
use s2::latlng::LatLng;
use s2::point::Point;
use std::collections::HashMap;

fn bad<T>(message: impl Into<std::borrow::Cow<'static, str>>) -> Result<T> {
    Err(Error::bad_value(message.into().into_owned()))
}

/// A number as C++ streams print it: six significant digits.
pub(crate) fn short(n: f64) -> String {
    if n == 0.0 {
        return if n.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    if n.is_nan() {
        return "nan".into();
    }
    if n.is_infinite() {
        return if n > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let text = format!("{n:.5e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |s: &str| match s.contains('.') {
        true => s.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => s.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        let places = usize::try_from(5 - exponent).unwrap_or(0);
        return trim(&format!("{n:.places$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(digits), exponent.abs())
}

fn as_object(v: Value<'_>) -> Option<&RawDoc> {
    match v {
        Value::Document(d) | Value::Array(d) => Some(d),
        _ => None,
    }
}

fn coordinate(e: Option<Elem<'_>>) -> Option<f64> {
    number(e?.value())
}

/// Any number as a double.
pub fn number(v: Value<'_>) -> Option<f64> {
    match v {
        Value::Decimal128(_) => v.to_string().parse().ok(),
        v if v.is_number() => v.as_f64(),
        _ => None,
    }
}

/// The first two members of an array or an object.
pub(crate) fn pair(v: Option<Value<'_>>, more: bool) -> Result<Xy> {
    let Some(obj) = v.and_then(as_object) else { return bad("Point must be an array or object") };
    let mut members = obj.iter();
    let (Some(x), Some(y)) = (coordinate(members.next()), coordinate(members.next())) else {
        return bad("Point must only contain numeric elements");
    };
    if !more && members.next().is_some() {
        return bad("Point must only contain two numeric elements");
    }
    if !x.is_finite() || !y.is_finite() {
        return bad("Point coordinates must be finite numbers");
    }
    Ok(Xy { x, y })
}

/// `[x, y, distance]` or the same as an object.
pub(crate) fn pair_with_distance(obj: &RawDoc) -> Option<(Xy, f64)> {
    let mut members = obj.iter();
    let (x, y) = (coordinate(members.next())?, coordinate(members.next())?);
    let distance = coordinate(members.next())?;
    members.next().is_none().then_some((Xy { x, y }, distance))
}

fn lng_lat(p: Xy) -> Result<Xy> {
    if p.is_lng_lat() {
        return Ok(p);
    }
    bad(format!("longitude/latitude is out of bounds, lng: {} lat: {}", short(p.x), short(p.y)))
}

fn on_sphere(p: Xy) -> Point {
    Point::from(LatLng::from_degrees(p.y, p.x))
}

fn crs_of(obj: &RawDoc) -> Result<Crs> {
    let Some(e) = obj.elem("crs") else { return Ok(Crs::Sphere) };
    let Value::Document(crs) = e.value() else { return bad("GeoJSON CRS must be an object") };
    if crs.get("type").and_then(|v| v.as_str()) != Some("name") {
        return bad("GeoJSON CRS must have field \"type\": \"name\"");
    }
    let Some(Value::Document(properties)) = crs.get("properties") else {
        return bad("CRS must have field \"properties\" which is an object");
    };
    let Some(Value::String(name)) = properties.get("name") else {
        return bad("In CRS, \"properties.name\" must be a string");
    };
    match name {
        "urn:ogc:def:crs:OGC:1.3:CRS84" | "EPSG:4326" => Ok(Crs::Sphere),
        "urn:x-mongodb:crs:strictwinding:EPSG:4326" => Ok(Crs::Strict),
        other => bad(format!("Unknown CRS name: {other}")),
    }
}

fn plain_crs(obj: &RawDoc) -> Result<()> {
    match crs_of(obj)? {
        Crs::Strict => bad("Strict winding order is only supported by polygon"),
        _ => Ok(()),
    }
}

/// Whether it is a pair rather than GeoJSON.
fn is_pair(v: Value<'_>, obj: &RawDoc) -> bool {
    matches!(v, Value::Array(_)) || obj.first().is_some_and(|e| e.value().is_number())
}

/// A stored geometry, or the one of `$geometry`.
pub fn geometry(e: Elem<'_>) -> Result<Shape> {
    let v = e.value();
    let Some(obj) = as_object(v) else {
        return bad(format!("geo element must be an array or object: {}: {v}", e.name()));
    };
    if is_pair(v, obj) {
        return Ok(Shape::Point(GeoPoint { at: pair(Some(v), true)?, crs: Crs::Flat }));
    }
    geo_json(obj)
}

/// The centre of a query for what is near.
pub(crate) fn query_point(e: Elem<'_>) -> Result<GeoPoint> {
    let v = e.value();
    let Some(obj) = as_object(v) else { return bad("Geo query point must be an array or object") };
    if is_pair(v, obj) {
        return Ok(GeoPoint { at: pair(Some(v), false)?, crs: Crs::Flat });
    }
    point(obj)
}

fn point(obj: &RawDoc) -> Result<GeoPoint> {
    plain_crs(obj)?;
    Ok(GeoPoint { at: lng_lat(pair(obj.get("coordinates"), true)?)?, crs: Crs::Sphere })
}

fn geo_json(obj: &RawDoc) -> Result<Shape> {
    let unknown = || bad(format!("unknown GeoJSON type: {obj}"));
    let Some(Value::String(name)) = obj.get("type") else { return unknown() };
    if name == "GeometryCollection" {
        return collection(obj);
    }
    match simple(name, obj) {
        Some(shape) => shape,
        None => unknown(),
    }
}

fn simple(name: &str, obj: &RawDoc) -> Option<Result<Shape>> {
    let coordinates = obj.elem("coordinates");
    Some(match name {
        "Point" => point(obj).map(Shape::Point),
        "LineString" => plain_crs(obj).and_then(|()| line(coordinates)).map(Shape::Line),
        "Polygon" => match crs_of(obj) {
            Ok(Crs::Strict) => big_polygon(coordinates).map(Shape::BigPolygon),
            Ok(_) => polygon(coordinates).map(Shape::Polygon),
            Err(e) => Err(e),
        },
        "MultiPoint" => plain_crs(obj).and_then(|()| multi_point(coordinates)),
        "MultiLineString" => {
            plain_crs(obj).and_then(|()| multi(coordinates, "MultiLineString", line)).map(Shape::MultiLine)
        }
        "MultiPolygon" => {
            plain_crs(obj).and_then(|()| multi(coordinates, "MultiPolygon", polygon)).map(Shape::MultiPolygon)
        }
        _ => return None,
    })
}

fn collection(obj: &RawDoc) -> Result<Shape> {
    let Some(Value::Array(items)) = obj.get("geometries") else {
        return bad("GeometryCollection geometries must be an array");
    };
    if items.is_empty() {
        return bad("GeometryCollection geometries must have at least 1 element");
    }
    let mut parts = Vec::new();
    for (i, e) in items.iter().enumerate() {
        let Value::Document(inner) = e.value() else {
            return bad(format!("Element {i} of \"geometries\" is not an object"));
        };
        let name = inner.get("type").and_then(|v| v.as_str()).unwrap_or_default();
        if name == "GeometryCollection" {
            return bad(format!("GeometryCollections cannot be nested: {inner}"));
        }
        match simple(name, inner) {
            Some(shape) => parts.push(shape?),
            None => return bad(format!("Unknown GeoJSON type: {inner}")),
        }
    }
    Ok(Shape::Collection(parts))
}

fn positions(v: Option<Elem<'_>>) -> Result<Vec<Xy>> {
    let Some(Value::Array(items)) = v.map(|e| e.value()) else {
        return bad("GeoJSON coordinates must be an array of coordinates");
    };
    let each = |e: Elem<'_>| {
        if e.ty != ElementType::Array {
            return bad("GeoJSON coordinates must be an array");
        }
        patience::spend(1)?;
        lng_lat(pair(Some(e.value()), true)?)
    };
    items.iter().map(each).collect()
}

fn points_of(v: Option<Elem<'_>>) -> Result<Vec<Point>> {
    Ok(positions(v)?.into_iter().map(on_sphere).collect())
}

fn text(e: Option<Elem<'_>>) -> String {
    e.map_or_else(String::new, |e| e.value().to_string())
}

fn line(e: Option<Elem<'_>>) -> Result<Line> {
    let mut points = points_of(e)?;
    points.dedup();
    if points.len() < 2 {
        return bad(format!("GeoJSON LineString must have at least 2 vertices: {}", text(e)));
    }
    if points.windows(2).any(|w| w[0].0 == w[1].0 * -1.0) {
        return bad(format!("GeoJSON LineString is not valid: {}", text(e)));
    }
    Ok(points)
}

/// The points of a closed loop, the last one left out.
fn closed(e: Option<Elem<'_>>) -> Result<Vec<Point>> {
    let mut points = points_of(e)?;
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return bad(format!("Loop has no vertices: {}", text(e)));
    };
    if first != last {
        return bad(format!("Loop is not closed: {}", text(e)));
    }
    points.dedup();
    if points.len() < 4 {
        return bad(format!("Loop must have at least 3 different vertices: {}", text(e)));
    }
    points.pop();
    Ok(points)
}

/// What is wrong with a loop's points.
fn loop_fault(points: &[Point]) -> Option<String> {
    let n = points.len();
    let mut seen = HashMap::new();
    for (j, p) in points.iter().enumerate() {
        if let Some(i) = seen.insert(bits(p), j) {
            return Some(format!("Duplicate vertices: {i} and {j}"));
        }
    }
    let at = |i: usize| &points[i % n];
    let index = EdgeIndex::new((0..n).map(|i| (at(i), at(i + 1))));
    for i in 0..n {
        if patience::is_over(4) {
            return None;
        }
        for j in index.near(at(i), at(i + 1)) {
            if j < i + 2 || (i == 0 && j == n - 1) {
                continue;
            }
            if crossing(at(i), at(i + 1), at(j), at(j + 1)) != Crossing::No {
                let place = |p: &Point| {
                    let ll = LatLng::from(p);
                    format!("[{:.7}, {:.7}]", ll.lat.deg(), ll.lng.deg())
                };
                return Some(format!(
                    "Edges {i} and {j} cross. Edge locations in degrees: {}-{} and {}-{}",
                    place(at(i)),
                    place(at(i + 1)),
                    place(at(j)),
                    place(at(j + 1))
                ));
            }
        }
    }
    None
}

fn polygon(e: Option<Elem<'_>>) -> Result<Polygon> {
    let Some(Value::Array(items)) = e.map(|e| e.value()) else {
        return bad("Polygon coordinates must be an array");
    };
    let mut rings: Vec<Ring> = Vec::new();
    for item in items {
        let points = closed(Some(item))?;
        if let Some(fault) = loop_fault(&points) {
            return bad(format!("Loop is not valid: {} {fault}", item.value()));
        }
        let ring = Ring::normalized(points);
        if let Some(shell) = rings.first()
            && !ring_contains(shell, &ring)
        {
            return bad(format!(
                "Secondary loops not contained by first exterior loop - secondary loops must be holes: {} first loop: {}",
                item.value(),
                text(items.first())
            ));
        }
        rings.push(ring);
    }
    if rings.is_empty() {
        return bad("Polygon has no loops.");
    }
    if let Some(fault) = rings_fault(&rings) {
        return bad(format!("Polygon isn't valid: {fault} {}", text(e)));
    }
    let holes = &rings[1..];
    let inside = |i: usize| holes.iter().enumerate().any(|(j, h)| i != j && ring_contains(h, &holes[i]));
    if (0..holes.len()).any(inside) {
        return bad(format!("Polygon interior loops cannot be nested: {}", text(e)));
    }
    Ok(Polygon::new(rings))
}

/// What is wrong with loops that are right by themselves.
fn rings_fault(rings: &[Ring]) -> Option<String> {
    if rings.len() < 2 {
        return None;
    }
    let mut edges: HashMap<[[u64; 3]; 2], (usize, usize)> = HashMap::new();
    for (i, ring) in rings.iter().enumerate() {
        for (k, (a, b)) in ring.edges().enumerate() {
            let mut ends = [bits(a), bits(b)];
            ends.sort_unstable();
            if let Some((loop_, edge)) = edges.insert(ends, (i, k)) {
                return Some(format!("Duplicate edge: loop {i}, edge {k} and loop {loop_}, edge {edge}"));
            }
        }
    }
    for (i, ring) in rings.iter().enumerate() {
        if !ring.is_normalized() {
            return Some(format!("Loop {i} encloses more than half the sphere"));
        }
        for (j, other) in rings.iter().enumerate().skip(i + 1) {
            if rings_cross(ring, other) {
                return Some(format!("Loop {i} crosses loop {j}"));
            }
        }
    }
    None
}

fn big_polygon(e: Option<Elem<'_>>) -> Result<Polygon> {
    let Some(Value::Array(items)) = e.map(|e| e.value()) else {
        return bad("Coordinates of polygon must be an array");
    };
    if items.count() != 1 {
        return bad(format!("Only one simple loop is allowed in a big polygon: {}", text(e)));
    }
    let points = closed(items.first())?;
    if let Some(fault) = loop_fault(&points) {
        return bad(format!("Loop is not valid: {} {fault}", text(e)));
    }
    Ok(Polygon::new(vec![Ring::new(points)]))
}

fn multi_point(e: Option<Elem<'_>>) -> Result<Shape> {
    let all = positions(e)?;
    if all.is_empty() {
        return bad("MultiPoint coordinates must have at least 1 element");
    }
    Ok(Shape::MultiPoint(all.into_iter().map(|at| GeoPoint { at, crs: Crs::Sphere }).collect()))
}

fn multi<T>(e: Option<Elem<'_>>, name: &str, one: fn(Option<Elem<'_>>) -> Result<T>) -> Result<Vec<T>> {
    let Some(Value::Array(items)) = e.map(|e| e.value()) else {
        return bad(format!("{name} coordinates must be an array"));
    };
    if items.is_empty() {
        return bad(format!("{name} coordinates must have at least 1 element"));
    }
    items.iter().map(|e| one(Some(e))).collect()
}

/// `$box: …` and its likes; `None` when the name or its value is none of them.
pub(super) fn specifier(e: Elem<'_>) -> Option<Result<Shape>> {
    let obj = as_object(e.value())?;
    Some(match e.name() {
        "$box" => flat_box(obj),
        "$center" => circle(obj).map(|(center, radius)| Shape::Circle { center, radius }),
        "$centerSphere" => cap(obj),
        "$polygon" => flat_polygon(obj),
        "$geometry" => geometry(e),
        _ => return None,
    })
}

fn flat_box(obj: &RawDoc) -> Result<Shape> {
    let mut members = obj.iter();
    let mut corner = || pair(members.next().map(|e| e.value()), false);
    let (a, b) = (corner()?, corner()?);
    Ok(Shape::Box {
        low: Xy { x: a.x.min(b.x), y: a.y.min(b.y) },
        high: Xy { x: a.x.max(b.x), y: a.y.max(b.y) },
    })
}

fn circle(obj: &RawDoc) -> Result<(Xy, f64)> {
    let mut members = obj.iter();
    let center = pair(members.next().map(|e| e.value()), false)?;
    let radius = radius(members.next())?;
    no_more(members.next())?;
    Ok((center, radius))
}

fn radius(e: Option<Elem<'_>>) -> Result<f64> {
    match coordinate(e) {
        Some(r) if r >= 0.0 => Ok(r),
        _ => bad("radius must be a non-negative number"),
    }
}

fn no_more(e: Option<Elem<'_>>) -> Result<()> {
    match e {
        Some(_) => bad("Only 2 fields allowed for circular region"),
        None => Ok(()),
    }
}

fn cap(obj: &RawDoc) -> Result<Shape> {
    let mut members = obj.iter();
    let center = lng_lat(pair(members.next().map(|e| e.value()), false)?)?;
    let radius = radius(members.next())?;
    no_more(members.next())?;
    Ok(Shape::Cap { center, radius })
}

fn flat_polygon(obj: &RawDoc) -> Result<Shape> {
    let points = obj.iter().map(|e| pair(Some(e.value()), false)).collect::<Result<Vec<Xy>>>()?;
    if points.len() < 3 {
        return bad("Polygon must have at least 3 points");
    }
    Ok(Shape::FlatPolygon(FlatPolygon { points }))
}
