//! `$near` and `$nearSphere`: what is around a place, nearest first.

use super::distance::{self, EARTH_RADIUS_M};
use super::parse::{geometry, pair_with_distance, query_point};
use super::shape::{Crs, GeoPoint, Shape};
use crate::facts::{Facts, Nearness};
use crate::matcher::Path;
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, ElementType, RawDoc, Value};

#[derive(Clone, Debug)]
pub struct NearQuery {
    pub center: GeoPoint,
    /// Both included; metres on the sphere, radians where [`NearQuery::radians`] says so, else the plane's unit.
    pub min: f64,
    pub max: f64,
    /// Distances are those of the sphere.
    pub on_sphere: bool,
    /// The centre was given as a pair.
    pub from_pair: bool,
    pub radians: bool,
    /// `$nearSphere` with a pair, for messages.
    near_sphere: bool,
    /// As written.
    pub source: DocBuf,
}

/// How near a document is, and its nearest place.
#[derive(Clone, Copy, Debug)]
pub struct NearResult<'a> {
    /// In the query's unit.
    pub distance: f64,
    /// In the unit of searching: radians, or the plane's unit.
    pub(crate) reach: f64,
    pub place: Elem<'a>,
}

impl NearResult<'_> {
    /// For `$meta`.
    pub fn facts(&self) -> Box<Facts> {
        let mut place = DocBuilder::new();
        place.value("", self.place.value());
        let near = Some(Nearness { distance: self.distance, place: place.finish() });
        Box::new(Facts { near, ..Facts::default() })
    }
}

fn bad<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::bad_value(message.into()))
}

pub(crate) fn is_near(name: &str) -> bool {
    matches!(name, "$near" | "$nearSphere" | "$geoNear")
}

impl NearQuery {
    /// Parses the operators of a field, the first of which is one of [`is_near`].
    pub fn parse(ops: &RawDoc) -> Result<NearQuery> {
        let mut near = NearQuery {
            center: GeoPoint { at: super::Xy { x: 0.0, y: 0.0 }, crs: Crs::Flat },
            min: 0.0,
            max: f64::MAX,
            on_sphere: false,
            from_pair: false,
            radians: false,
            near_sphere: false,
            source: ops.to_buf(),
        };
        if !near.parse_legacy(ops)? {
            near.parse_geometry(ops)?;
        }
        near.from_pair = near.center.crs == Crs::Flat;
        near.on_sphere = !near.from_pair;
        if near.near_sphere {
            if !near.center.at.is_lng_lat() {
                return Err(Error::bad_value("Legacy point is out of bounds for spherical query"));
            }
            near.radians = near.from_pair;
            near.on_sphere = true;
        }
        Ok(near)
    }

    /// `{$near: [x, y], $maxDistance: d}`; false when it is not of this form.
    fn parse_legacy(&mut self, ops: &RawDoc) -> Result<bool> {
        let mut found = false;
        for e in ops {
            match e.name() {
                name if is_near(name) => {
                    let (Value::Document(obj) | Value::Array(obj)) = e.value() else { return Ok(false) };
                    if let Ok(center) = query_point(e) {
                        self.center = center;
                    } else if let Some((at, max)) = pair_with_distance(obj) {
                        self.center = GeoPoint { at, crs: Crs::Flat };
                        if max.is_nan() || max < 0.0 {
                            return Err(Error::location(18522, "max distance must be non-negative"));
                        }
                        self.max = max;
                    } else {
                        continue;
                    }
                    found = true;
                    self.near_sphere = name == "$nearSphere";
                }
                "$minDistance" => self.min = bound(e, [16893, 16894])?,
                "$maxDistance" => self.max = bound(e, [16895, 16896])?,
                "$uniqueDocs" => {}
                other => {
                    return Err(Error::location(
                        34413,
                        format!("invalid argument in geo near query: {other}"),
                    ));
                }
            }
        }
        Ok(found)
    }

    /// `{$near: {$geometry: {…}, $maxDistance: d}}`
    fn parse_geometry(&mut self, ops: &RawDoc) -> Result<()> {
        let mut members = ops.iter();
        let Some(e) = members.next() else { return bad("empty geo near query object") };
        if let Some(extra) = members.next() {
            return bad(format!(
                "geo near accepts just one argument when querying for a GeoJSON point. Extra field found: {}: {}",
                extra.name(),
                extra.value()
            ));
        }
        let (Value::Document(spec) | Value::Array(spec)) = e.value() else {
            return bad("geo near query argument is not an object");
        };
        let mut found = false;
        for e in spec {
            match e.name() {
                "$geometry" => {
                    let (Value::Document(obj) | Value::Array(obj)) = e.value() else { continue };
                    self.center = query_point(e).map_err(|why| {
                        let shown = e.value();
                        Error::bad_value(format!(
                            "invalid point in geo near query $geometry argument: {shown}  {}",
                            why.message
                        ))
                    })?;
                    if self.center.crs != Crs::Sphere {
                        return bad(format!("$near requires geojson point, given {obj}"));
                    }
                    found = true;
                }
                "$minDistance" => self.min = bound(e, [2, 2])?,
                "$maxDistance" => self.max = bound(e, [2, 2])?,
                other => return bad(format!("invalid argument in geo near query: {other}")),
            }
        }
        if !found {
            return bad("$geometry is required for geo near query");
        }
        Ok(())
    }

    /// As in messages of the planner.
    pub(crate) fn debug_text(&self, path: &str) -> String {
        format!(
            "GEONEAR  field={path} maxdist={} isNearSphere={}",
            super::parse::short(self.max),
            u8::from(self.near_sphere)
        )
    }

    /// Whether it is neither too near nor too far.
    pub(crate) fn accepts(&self, found: &NearResult<'_>) -> bool {
        if self.radians {
            let metres = found.reach * EARTH_RADIUS_M;
            return metres >= self.min * EARTH_RADIUS_M && metres <= self.max * EARTH_RADIUS_M;
        }
        found.distance >= self.min && found.distance <= self.max
    }

    /// A distance of the query in the unit of searching.
    pub(crate) fn reach(&self, distance: f64) -> f64 {
        if self.on_sphere && !self.radians { distance / EARTH_RADIUS_M } else { distance }
    }

    /// The nearest of the places that a document has under the path.
    pub fn measure<'a>(&self, doc: &'a RawDoc, path: &Path) -> Option<NearResult<'a>> {
        let mut best: Option<NearResult<'a>> = None;
        let parts: Vec<&str> = path.components().collect();
        each_place(doc, &parts, &mut |e| {
            let Ok(shape) = geometry(e) else {
                if e.ty == ElementType::Array {
                    RawDoc::trusted(e.data()).iter().for_each(|x| {
                        if let Ok(shape) = geometry(x) {
                            self.compare(&shape, x, &mut best);
                        }
                    });
                }
                return;
            };
            self.compare(&shape, e, &mut best);
        });
        best
    }

    fn compare<'a>(&self, shape: &Shape, place: Elem<'a>, best: &mut Option<NearResult<'a>>) {
        if shape.crs() == Crs::Strict {
            return;
        }
        let found = if self.on_sphere {
            self.center.at.on_sphere().and_then(|from| distance::to_shape(&from, shape)).map(|angle| {
                let metres = angle * EARTH_RADIUS_M;
                (if self.radians { metres / EARTH_RADIUS_M } else { metres }, angle)
            })
        } else {
            match shape {
                Shape::Point(p) => {
                    let d = distance::flat(p.at, self.center.at);
                    Some((d, d))
                }
                _ => None,
            }
        };
        if let Some((distance, reach)) = found
            && best.is_none_or(|b| distance < b.distance)
        {
            *best = Some(NearResult { distance, reach, place });
        }
    }
}

/// A distance; the codes are for "not a number" and "negative".
fn bound(e: Elem<'_>, codes: [i32; 2]) -> Result<f64> {
    let v = e.value();
    let n = match v {
        Value::Decimal128(_) => v.to_string().parse().unwrap_or(f64::NAN),
        v if v.is_number() => v.as_f64().unwrap_or(f64::NAN),
        _ => return Err(Error::location(codes[0], format!("{} must be a number", e.name()))),
    };
    if n >= 0.0 {
        return Ok(n);
    }
    Err(Error::location(codes[1], format!("{} must be non-negative", e.name())))
}

/// The values a path leads to, through arrays on the way but not into one at its end.
pub fn each_place<'a>(doc: &'a RawDoc, parts: &[&str], f: &mut dyn FnMut(Elem<'a>)) {
    let Some((first, rest)) = parts.split_first() else { return };
    let Some(e) = doc.elem(first) else { return };
    each_below(e, rest, f);
}

/// The values that the rest of a path leads to.
pub fn each_below<'a>(e: Elem<'a>, rest: &[&str], f: &mut dyn FnMut(Elem<'a>)) {
    if rest.is_empty() {
        return f(e);
    }
    match e.ty {
        ElementType::Document => each_place(RawDoc::trusted(e.data()), rest, f),
        ElementType::Array => {
            let items = RawDoc::trusted(e.data());
            if !rest[0].is_empty()
                && rest[0].bytes().all(|b| b.is_ascii_digit())
                && let Some(x) = items.elem(rest[0])
            {
                each_below(x, &rest[1..], f);
            }
            for x in items.iter().filter(|x| x.ty == ElementType::Document) {
                each_place(RawDoc::trusted(x.data()), rest, f);
            }
        }
        _ => {}
    }
}
