use super::parse::geometry;
use super::{GeoIndex, GeoQuery, Grid, NearQuery, Shape, Xy};
use crate::ctx::{Random, SeededRandom};
use pando_bson::{Document, doc};

fn shape(d: Document) -> Shape {
    let raw = doc! { "g": d }.to_raw();
    geometry(raw.first().unwrap()).unwrap()
}

fn matches(query: Document, stored: Document) -> bool {
    let q = GeoQuery::parse(&query.to_raw()).unwrap();
    let raw = doc! { "g": stored }.to_raw();
    q.test(raw.first().as_ref())
}

fn square(lng: f64, lat: f64, side: f64) -> Document {
    let (east, north) = (lng + side, lat + side);
    doc! { "type": "Polygon", "coordinates": [[[lng, lat], [east, lat], [east, north], [lng, north], [lng, lat]]] }
}

fn point(lng: f64, lat: f64) -> Document {
    doc! { "type": "Point", "coordinates": [lng, lat] }
}

#[test]
fn points_on_edges_corners_and_poles_are_inside() {
    let within = |region: Document, p: Document| matches(doc! { "$geoWithin": { "$geometry": region } }, p);
    for (x, y) in [(0.0, 0.0), (5.0, 0.0), (2.5, 0.0), (0.0, 3.0), (5.0, 5.0), (1.0, 1.0)] {
        assert!(within(square(0.0, 0.0, 5.0), point(x, y)), "{x} {y}");
    }
    assert!(!within(square(0.0, 0.0, 5.0), point(5.001, 2.0)));
    assert!(!within(square(0.0, 0.0, 5.0), point(-1e-6, 2.0)));
    let polar =
        doc! { "type": "Polygon", "coordinates": [[[0, 80], [90, 80], [180, 80], [-90, 80], [0, 80]]] };
    assert!(within(polar.clone(), point(33.0, 90.0)));
    assert!(!within(polar, point(45.0, 70.0)));
    let dateline =
        doc! { "type": "Polygon", "coordinates": [[[170, -5], [-170, -5], [-170, 5], [170, 5], [170, -5]]] };
    assert!(within(dateline.clone(), point(180.0, 0.0)));
    assert!(!within(dateline, point(0.0, 0.0)));
}

#[test]
fn the_smaller_side_is_inside_unless_winding_counts() {
    let crs = doc! { "type": "name", "properties": { "name": "urn:x-mongodb:crs:strictwinding:EPSG:4326" } };
    let ring = |strict: bool| {
        let mut d = doc! { "type": "Polygon", "coordinates": [[[0, 0], [0, 5], [5, 5], [5, 0], [0, 0]]] };
        if strict {
            d.push("crs", crs.clone());
        }
        doc! { "$geoWithin": { "$geometry": d } }
    };
    assert!(matches(ring(false), point(1.0, 1.0)) && !matches(ring(false), point(50.0, 50.0)));
    assert!(!matches(ring(true), point(1.0, 1.0)) && matches(ring(true), point(50.0, 50.0)));
}

#[test]
fn polygons_contain_themselves_and_do_not_meet_across_a_shared_edge() {
    let within = |a: Document, b: Document| matches(doc! { "$geoWithin": { "$geometry": a } }, b);
    let meets = |a: Document, b: Document| matches(doc! { "$geoIntersects": { "$geometry": a } }, b);
    let (a, b) = (square(0.0, 0.0, 5.0), square(5.0, 0.0, 5.0));
    assert!(within(a.clone(), a.clone()) && meets(a.clone(), a.clone()));
    assert!(!within(a.clone(), b.clone()) && !meets(a.clone(), b));
    assert!(within(a.clone(), square(1.0, 1.0, 2.0)) && !within(square(1.0, 1.0, 2.0), a.clone()));
    let ring = doc! { "type": "Polygon", "coordinates": [
        [[0, 0], [5, 0], [5, 5], [0, 5], [0, 0]],
        [[1, 1], [4, 1], [4, 4], [1, 4], [1, 1]]
    ] };
    assert!(!meets(ring.clone(), square(2.0, 2.0, 1.0)) && !meets(square(2.0, 2.0, 1.0), ring.clone()));
    assert!(!within(ring.clone(), square(2.0, 2.0, 1.0)) && meets(ring, square(0.5, 0.5, 1.0)));
}

/// What an index finds is never less than what the condition accepts.
#[test]
fn keys_of_matches_lie_in_the_bounds() {
    let sphere = GeoIndex::Sphere { coarsest: 0, finest: 30 };
    let plane = GeoIndex::Plane(Grid::new(26, -180.0, 180.0).unwrap());
    let random = SeededRandom::new(7);
    let next = |from: f64, to: f64| from + (to - from) * random.next_f64();
    let mut found = 0;
    for round in 0..1500 {
        let size = [0.001, 1.0, 30.0][round % 3];
        let (x, y) = (next(-149.0, 149.0), next(-59.0, 59.0));
        let region = square(x, y, size);
        let (px, py) = (x + next(-0.5, 1.5) * size, y + next(-0.5, 1.5) * size);
        let stored = if round % 2 == 0 { point(px, py) } else { square(px, py, size * next(0.01, 0.5)) };
        let q = GeoQuery::parse(&doc! { "$geoIntersects": { "$geometry": region } }.to_raw()).unwrap();
        let raw = doc! { "g": stored.clone() }.to_raw();
        if q.test(raw.first().as_ref()) {
            found += 1;
            assert!(within(&sphere.bounds(&q).unwrap(), &sphere.keys(shape(stored))), "{round}");
        }
        let flat = doc! { "$geoWithin": { "$center": [[x, y], size] } }.to_raw();
        let q = GeoQuery::parse(&flat).unwrap();
        let raw = doc! { "g": [px, py] }.to_raw();
        if q.test(raw.first().as_ref()) {
            let GeoIndex::Plane(grid) = &plane else { unreachable!() };
            assert!(within(&plane.bounds(&q).unwrap(), &[grid.key(Xy { x: px, y: py })]), "{round}");
        }
    }
    assert!(found > 300, "{found}");
}

fn within(list: &crate::plan::interval::IntervalList, keys: &[i64]) -> bool {
    let ends = |i: &crate::plan::interval::Interval| (i.low.value().as_i64(), i.high.value().as_i64());
    keys.iter().any(|k| list.0.iter().any(|i| ends(i).0 <= Some(*k) && Some(*k) <= ends(i).1))
}

#[test]
fn near_gives_the_distance_to_the_nearest_place() {
    let near = |d: Document| NearQuery::parse(&d.to_raw()).unwrap();
    let q = near(doc! { "$near": { "$geometry": { "type": "Point", "coordinates": [0, 0] } } });
    let document =
        doc! { "a": [{ "p": [0, 10] }, { "p": { "type": "Point", "coordinates": [0, 1] } }] }.to_raw();
    let found = q.measure(&document, &crate::matcher::Path::new("a.p")).unwrap();
    assert!((found.distance - 1f64.to_radians() * 6_378_100.0).abs() < 1e-6, "{}", found.distance);
    let flat = near(doc! { "$near": [3, 4], "$maxDistance": 9 });
    let document = doc! { "p": { "x": 0, "y": 0 } }.to_raw();
    assert_eq!(flat.measure(&document, &crate::matcher::Path::new("p")).unwrap().distance, 5.0);
}
