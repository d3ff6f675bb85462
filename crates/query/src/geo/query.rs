//! `$geoWithin` and `$geoIntersects`.

use super::near::each_below;
use super::parse::{geometry, specifier};
use super::predicates::{contains, meets};
use super::shape::{Crs, Shape};
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GeoOp {
    Within,
    Intersects,
}

/// A region and what is asked about it.
#[derive(Clone, Debug)]
pub struct GeoQuery {
    pub op: GeoOp,
    pub shape: Shape,
    /// As written: `{$geoWithin: {…}}`.
    pub source: DocBuf,
    /// It is asked of a column of a time series' bucket: whether any row may match.
    pub rows: bool,
}

/// A condition on buckets.
pub const BUCKET_OPERATOR: &str = "$_internalBucketGeoWithin";

impl GeoQuery {
    /// Parses the operators of a field; the first one is this one, and there may be no other.
    pub fn parse(ops: &RawDoc) -> Result<GeoQuery> {
        let mut members = ops.iter();
        let Some(e) = members.next() else { return Err(Error::bad_value("can't parse an empty geo query")) };
        if let Some(extra) = members.next() {
            return Err(Error::bad_value(format!(
                "can't parse extra field: {}: {}",
                extra.name(),
                extra.value()
            )));
        }
        let op = if e.name() == "$geoIntersects" { GeoOp::Intersects } else { GeoOp::Within };
        let Value::Document(spec) = e.value() else {
            return Err(Error::bad_value("geometry must be an object"));
        };
        let mut shape = None;
        for e in spec.iter().filter(|e| e.name() != "$uniqueDocs") {
            shape = Some(specifier(e).unwrap_or_else(|| {
                Err(Error::bad_value(format!("unknown geo specifier: {}: {}", e.name(), e.value())))
            })?);
        }
        let Some(shape) = shape else {
            return Err(Error::bad_value("geo query doesn't have any geometry"));
        };
        let unsupported =
            |op: &str| Err(Error::bad_value(format!("{op} not supported with provided geometry: {ops}")));
        match op {
            GeoOp::Within if !shape.can_contain() => return unsupported("$within"),
            GeoOp::Intersects if !shape.fits_sphere() => return unsupported("$geoIntersect"),
            _ => {}
        }
        let mut source = DocBuilder::new();
        source.elem(e);
        Ok(GeoQuery { op, shape, source: source.finish(), rows: false })
    }

    /// Parses `{withinRegion: {…}, field: "loc"}`; gives the field, too.
    pub(crate) fn parse_of_bucket(e: Elem<'_>) -> Result<(String, GeoQuery)> {
        let spec = e.value().as_doc();
        let region = spec.and_then(|d| d.get("withinRegion")?.as_doc());
        let field = spec.and_then(|d| d.get("field")?.as_str());
        let (Some(region), Some(field)) = (region, field) else {
            let text = format!("{BUCKET_OPERATOR} requires both 'withinRegion' and 'field' field");
            return Err(Error::type_mismatch(text));
        };
        let mut ops = DocBuilder::new();
        ops.raw_doc("$geoWithin", region);
        let mut query = GeoQuery::parse(&ops.finish())?;
        // What is within meets, and the same is asked for `$geoIntersects` (which no circle meets).
        if query.shape.fits_sphere() && !matches!(query.shape, Shape::Cap { .. }) {
            query.op = GeoOp::Intersects;
        }
        let mut source = DocBuilder::new();
        source.elem(e);
        Ok((field.to_owned(), GeoQuery { source: source.finish(), rows: true, ..query }))
    }

    /// The plane's answer is wanted, not the sphere's.
    pub fn is_flat(&self) -> bool {
        self.shape.crs() == Crs::Flat && self.op == GeoOp::Within
    }

    /// Whether a stored value matches.
    pub(crate) fn test(&self, e: Option<&Elem<'_>>) -> bool {
        let Some(e) = e.filter(|e| matches!(e.value(), Value::Document(_) | Value::Array(_))) else {
            return false;
        };
        self.test_place(*e)
    }

    /// Whether a bucket may hold a measurement that matches; `path` begins with `data`.
    pub(crate) fn test_bucket(&self, bucket: &RawDoc, path: &str) -> bool {
        let mut parts = path.split('.').skip(1);
        let column = parts.next().and_then(|name| bucket.get("data")?.as_doc()?.elem(name));
        let rest: Vec<&str> = parts.collect();
        match column.map(|c| c.value()) {
            None => false,
            Some(Value::Document(rows)) => rows.iter().any(|row| {
                let mut any = false;
                each_below(row, &rest, &mut |e| {
                    let elements = e.value().as_array().into_iter().flatten();
                    any |= self.may_match(e) || elements.into_iter().any(|x| self.may_match(x));
                });
                any
            }),
            // A compressed one.
            Some(_) => true,
        }
    }

    /// Circles are also asked for by `$geoNear`, to which what lies across the edge is near.
    fn may_match(&self, e: Elem<'_>) -> bool {
        let across = |e| !matches!(geometry(e), Ok(Shape::Point(_)) | Err(_));
        self.test_place(e) || (matches!(self.shape, Shape::Cap { .. }) && across(e))
    }

    fn test_place(&self, e: Elem<'_>) -> bool {
        let Ok(stored) = geometry(e) else { return false };
        if stored.crs() == Crs::Strict {
            return false;
        }
        match self.op {
            GeoOp::Within => contains(&self.shape, &stored),
            GeoOp::Intersects => stored.fits_sphere() && meets(&self.shape, &stored),
        }
    }
}
