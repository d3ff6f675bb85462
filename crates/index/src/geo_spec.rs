//! What the specification of an index on places may say, and what it says when it says nothing.

use crate::spec::IndexSpec;
use crate::spec_check::integer;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuilder, Elem, RawDoc, Value};
use pando_query::geo::{GeoIndex, Grid, parse};
use pando_query::source::{FieldKind, IndexKind};

/// The version of new `2dsphere` indexes.
const VERSION: i32 = 3;
const VERSION_FIELD: &str = "2dsphereIndexVersion";

fn number(doc: &RawDoc, name: &str, default: f64) -> f64 {
    doc.get(name).and_then(parse::number).unwrap_or(default)
}

pub(crate) fn version(doc: &RawDoc) -> i64 {
    doc.get(VERSION_FIELD).and_then(|v| v.as_i64()).unwrap_or(1)
}

/// How the index divides its space; `None` for other kinds.
pub(crate) fn parameters(spec: &IndexSpec) -> Result<Option<GeoIndex>> {
    let doc = &spec.doc;
    match spec.kind {
        IndexKind::Geo2d => {
            let bits = number(doc, "bits", 26.0) as i64;
            Ok(Some(GeoIndex::Plane(Grid::new(bits, number(doc, "min", -180.0), number(doc, "max", 180.0))?)))
        }
        IndexKind::Geo2dSphere => {
            let coarsest = number(doc, "coarsestIndexedLevel", 0.0) as i64;
            let finest = number(doc, "finestIndexedLevel", 30.0) as i64;
            let refused = |code, text| Err(Error::location(code, text));
            if coarsest < 0 {
                return refused(16747, "coarsestIndexedLevel must be >= 0");
            }
            if finest > 30 {
                return refused(16748, "finestIndexedLevel must be <= 30");
            }
            if finest < coarsest {
                return refused(16749, "finestIndexedLevel must be >= coarsestIndexedLevel");
            }
            let level = |n: i64| u8::try_from(n).unwrap_or(30);
            Ok(Some(GeoIndex::Sphere { coarsest: level(coarsest), finest: level(finest) }))
        }
        _ => Ok(None),
    }
}

/// What only the index kind itself refuses.
pub(crate) fn check_kind(spec: &IndexSpec) -> Result<()> {
    parameters(spec)?;
    if spec.kind == IndexKind::Geo2dSphere {
        if let Some(v) = spec.doc.get(VERSION_FIELD)
            && v.as_i64().is_none()
        {
            return Err(Error::bad_value(format!(
                "Expected field \"{VERSION_FIELD}\" to have a value exactly representable as a 64-bit integer, but found \
                 {VERSION_FIELD}: {v}"
            )));
        }
        return Ok(());
    }
    let geo = spec.fields.iter().filter(|f| f.kind == FieldKind::Geo).count();
    if geo > 1 {
        return Err(Error::location(16800, "can't have 2 geo fields"));
    }
    if spec.fields.first().is_none_or(|f| f.kind != FieldKind::Geo) {
        return Err(Error::location(16801, "2d has to be first in index"));
    }
    Ok(())
}

/// Refuses a key pattern of two special kinds.
pub(crate) fn check_one_plugin(key: &RawDoc) -> Result<()> {
    let mut kinds = key.iter().filter_map(|e| match e.value() {
        Value::String(kind) => Some(kind),
        _ => None,
    });
    let first = kinds.next();
    if kinds.any(|k| Some(k) != first) {
        let text = "Can't use more than one index plugin for a single index.";
        return Err(Error::new(ErrorCode::CannotCreateIndex, text));
    }
    Ok(())
}

/// What is wrong before there is an index.
pub(crate) fn check(raw: &RawDoc, kind: IndexKind, collation: Option<&RawDoc>) -> Result<()> {
    let refused = |text: String| Err(Error::new(ErrorCode::CannotCreateIndex, text));
    match (kind, collation) {
        (IndexKind::Geo2d, Some(c)) => refused(format!("Index type '2d' does not support collation: {c}")),
        (IndexKind::Geo2dSphere, _) => match raw.get(VERSION_FIELD) {
            Some(v) if parse::number(v).is_some_and(|n| !(1.0..4.0).contains(&n)) => refused(format!(
                "unsupported geo index version {{ {VERSION_FIELD} : {VERSION_FIELD}: {v} }}, only versions: [1,2,3] are \
                 supported"
            )),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Adds an option in its stored form; false when it is not one of these.
pub(crate) fn put_option(e: Elem<'_>, kind: IndexKind, b: &mut DocBuilder) -> bool {
    let n = parse::number(e.value()).unwrap_or(0.0);
    match e.name() {
        "textIndexVersion" if kind == IndexKind::Text => return false,
        "textIndexVersion" | "bits" | "finestIndexedLevel" | "coarsestIndexedLevel" => {
            b.i32(e.name(), integer(e.value()).unwrap_or_default());
        }
        // What is no integer is refused where it counts.
        VERSION_FIELD if kind != IndexKind::Geo2dSphere || n.fract() == 0.0 => {
            b.i32(e.name(), integer(e.value()).unwrap_or_default());
        }
        "min" | "max" => {
            // What is no bound is refused where it counts.
            b.f64(e.name(), if kind == IndexKind::Geo2d { n } else { bound(e.value(), n) });
        }
        _ => return false,
    }
    true
}

/// What is kept of the bound `n`, as it was given.
fn bound(given: Value<'_>, n: f64) -> f64 {
    match given {
        _ if n.is_nan() => 0.0,
        // MongoDB takes the least positive number for the least of all.
        Value::Decimal128(_) => n.clamp(f64::MIN_POSITIVE, f64::MAX),
        _ => n,
    }
}

/// Adds the version that is meant when none is given.
pub(crate) fn put_default(raw: &RawDoc, kind: IndexKind, b: &mut DocBuilder) {
    if kind == IndexKind::Geo2dSphere && raw.elem(VERSION_FIELD).is_none() {
        b.i32(VERSION_FIELD, VERSION);
    }
}
