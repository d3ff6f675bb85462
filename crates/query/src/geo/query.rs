//! `$geoWithin` and `$geoIntersects`.

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
}

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
        Ok(GeoQuery { op, shape, source: source.finish() })
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
        let Ok(stored) = geometry(*e) else { return false };
        if stored.crs() == Crs::Strict {
            return false;
        }
        match self.op {
            GeoOp::Within => contains(&self.shape, &stored),
            GeoOp::Intersects => stored.fits_sphere() && meets(&self.shape, &stored),
        }
    }
}
