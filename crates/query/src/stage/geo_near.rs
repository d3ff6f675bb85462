//! `$geoNear`: what is near a place, nearest first, with the distance added. It becomes the find plan below the pipeline.

use super::needs::Needs;
use super::parsed::Parsed;
use super::running::{Running, Start};
use crate::ctx::QueryCtx;
use crate::expr::{FieldPath, ParseCtx, Val};
use crate::matcher::{Matcher, Place};
use crate::plan::{NearOutput, Query};
use crate::source::{CollectionInfo, FieldKind, IndexKind};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};
use std::sync::Arc;

/// A `$geoNear` on its way into a query.
#[derive(Clone, Debug, PartialEq)]
pub struct NearPart {
    /// `{$near: <place>, $maxDistance: …}`
    pub(super) near: DocBuf,
    /// The path of the place, if it is given.
    pub(super) key: Option<String>,
    pub(super) query: DocBuf,
    /// `None` when a stage behind adds it.
    pub(super) output: Option<Arc<NearOutput>>,
}

pub(super) fn misplaced() -> Error {
    Error::location(40603, "$geoNear is only valid as the first stage in an optimized pipeline")
}

/// Options that there were, with what is said of them now.
const GONE: [(&str, i32, &str); 3] = [
    ("limit", 50858, "$geoNear no longer supports the 'limit' parameter. Use a $limit stage instead."),
    ("num", 50857, "$geoNear no longer supports the 'num' parameter. Use a $limit stage instead."),
    ("start", 50856, "$geoNear no longer supports the 'start' argument."),
];

pub(super) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<NearPart> {
    let (Value::Document(spec) | Value::Array(spec)) = e.value() else {
        return Err(Error::location(10065, "invalid parameter: expected an object ($geoNear)"));
    };
    for (name, code, text) in GONE {
        if spec.elem(name).is_some() {
            return Err(Error::location(code, text));
        }
    }
    let spherical = spec.get("spherical").is_some_and(|v| v.is_truthy());
    let Some(place) = spec.get("near") else {
        return Err(Error::location(5_860_400, "$geoNear requires a 'near' argument"));
    };
    let distance_field =
        field(spec, "distanceField", 16606, "requires a 'distanceField' option as a String")?;
    if distance_field.is_none() && !p.forwarded {
        return Err(Error::location(16606, "$geoNear requires a 'distanceField' option as a String"));
    }
    let multiplier = number(spec, "distanceMultiplier")?.unwrap_or(1.0);
    let place_field = field(spec, "includeLocs", 16607, "requires that 'includeLocs' option is a String")?;
    let query = match spec.get("query") {
        None => DocBuf::new(),
        // What it says is looked at when it is known where to look for the place.
        Some(Value::Document(d)) => d.to_buf(),
        Some(_) => return Err(Error::type_mismatch("query must be an object")),
    };
    let key = match spec.get("key") {
        None => None,
        Some(Value::String("")) => {
            return Err(Error::bad_value("$geoNear parameter 'key' cannot be the empty string"));
        }
        Some(Value::String(key)) => Some(FieldPath::parse(key)?.dotted()),
        Some(v) => {
            return Err(Error::type_mismatch(format!(
                "$geoNear parameter 'key' must be of type string but found type: {}",
                v.type_name()
            )));
        }
    };
    let near = near_doc(place, spherical, spec, p.ctx)?;
    let output =
        distance_field.map(|distance_field| Arc::new(NearOutput { distance_field, multiplier, place_field }));
    Ok(NearPart { near, key, query, output })
}

fn field(spec: &RawDoc, name: &str, code: i32, text: &str) -> Result<Option<String>> {
    match spec.get(name) {
        None => Ok(None),
        Some(Value::String(path)) => {
            FieldPath::parse(path)?;
            Ok(Some(path.to_owned()))
        }
        Some(_) => Err(Error::location(code, format!("$geoNear {text}"))),
    }
}

fn number(spec: &RawDoc, name: &str) -> Result<Option<f64>> {
    let Some(v) = spec.get(name) else { return Ok(None) };
    let n = match v {
        Value::Decimal128(_) => v.to_string().parse().ok(),
        v if v.is_number() => v.as_f64(),
        _ => None,
    };
    match n {
        None => Err(Error::type_mismatch(format!("{name} must be a number"))),
        Some(n) if n >= 0.0 => Ok(Some(n)),
        Some(_) => Err(Error::bad_value(format!("{name} must be nonnegative"))),
    }
}

/// The stage's options as the operator of a query.
fn near_doc(place: Value<'_>, spherical: bool, spec: &RawDoc, ctx: &QueryCtx) -> Result<DocBuf> {
    let mut expr = ParseCtx::new(ctx).parse(place)?;
    if !ctx.vars.defines {
        expr.optimize(ctx)?;
        if expr.as_const().is_none() {
            return Err(Error::location(5_860_402, "$geoNear requires a constant near argument"));
        }
    }
    let place = match expr.as_const() {
        Some(place) => place.borrowed(),
        None => Val::Missing,
    };
    let mut b = DocBuilder::new();
    place.put_to(&mut b, if spherical { "$nearSphere" } else { "$near" });
    for name in ["minDistance", "maxDistance"] {
        if let Some(n) = number(spec, name)? {
            b.f64(&format!("${name}"), n);
        }
    }
    // What the place says is looked at when it is known where to look for it.
    Ok(b.finish())
}

impl NearPart {
    /// As it is written; without `distanceField` when a stage behind adds it.
    pub(super) fn text(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.doc("$geoNear", |d| {
            for e in &*self.near {
                match e.name() {
                    "$near" | "$nearSphere" => {
                        d.doc("near", |d| {
                            d.value("$const", e.value());
                        });
                        d.bool("spherical", e.name() == "$nearSphere");
                    }
                    name => {
                        d.value(name.trim_start_matches('$'), e.value());
                    }
                }
            }
            if let Some(key) = &self.key {
                d.str("key", key);
            }
            d.raw_doc("query", &self.query);
            if let Some(output) = &self.output {
                d.str("distanceField", &output.distance_field);
                d.f64("distanceMultiplier", output.multiplier);
                if let Some(place) = &output.place_field {
                    d.str("includeLocs", place);
                }
            }
        });
        b.finish()
    }
    pub(super) fn into_query(self, ns: &str, info: &CollectionInfo, ctx: &QueryCtx) -> Result<Query> {
        let key = match self.key {
            Some(key) => key,
            None => only_place(ns, info)?,
        };
        if !matches!(self.near.first().map(|e| e.value()), Some(Value::Document(_) | Value::Array(_))) {
            return Err(Error::location(
                5_860_401,
                "$geoNear requires near argument to be a GeoJSON object or a legacy point(array)",
            ));
        }
        Matcher::parse_in(Place::BesideNear, &self.query, ctx)?;
        let mut filter = DocBuilder::new();
        filter.array("$and", |a| {
            a.raw_doc(&self.query);
            a.doc(|d| {
                d.raw_doc(&key, &self.near);
            });
        });
        let matcher = Matcher::parse(&filter.finish(), ctx)?;
        let mut query = Query::new(ns, Arc::new(matcher), ctx.clone());
        query.near_output = self.output;
        Ok(query)
    }
}

/// The field of the only index on places: `2d` counts first.
fn only_place(ns: &str, info: &CollectionInfo) -> Result<String> {
    let refused = |text: String| Err(Error::new(ErrorCode::IndexNotFound, text));
    for (kind, name) in [(IndexKind::Geo2d, "2d"), (IndexKind::Geo2dSphere, "2dsphere")] {
        let mut found = info.indexes.iter().filter(|i| i.kind == kind && !i.hidden);
        let Some(one) = found.next() else { continue };
        if found.next().is_some() {
            return refused(format!(
                "There is more than one {name} index on {ns}; unsure which to use for $geoNear"
            ));
        }
        if let Some(f) = one.fields.iter().find(|f| f.kind == FieldKind::Geo) {
            return Ok(f.path.clone());
        }
    }
    refused("$geoNear requires a 2d or 2dsphere index, but none were found".to_owned())
}

/// Why a collection that is not there cannot be searched.
pub(super) fn no_collection(ns: &str) -> Error {
    Error::new(
        ErrorCode::NamespaceNotFound,
        format!("$geoNear requires a geo index to run, but {ns} does not exist"),
    )
}

impl Parsed for NearPart {
    fn start(self, _: &mut Start<'_>) -> Result<Box<dyn Running>> {
        Err(misplaced())
    }
    fn needs(&self, needs: &mut Needs) {
        needs.whole();
    }
}
