//! Indexes of a time series: made on its buckets under other names, listed under the users' names.

use super::TimeSeries;
use super::meta_only::renamed;
use crate::stage::partial_filter;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};

const MIN: &str = "control.min.";
const MAX: &str = "control.max.";
const PARTIAL: &str = "partialFilterExpression";
/// What the user asked for, where that cannot be told from the specification over buckets.
const ORIGINAL: &str = "originalSpec";
const DATA: &str = "data.";
/// A `2dsphere` index over columns: a bucket has the keys of all its rows.
pub const BUCKET_2DSPHERE: &str = "2dsphere_bucket";

/// The key over buckets: a source as it is, a time or measurement by its least and greatest value.
pub fn key_on_buckets(series: &TimeSeries, key: &RawDoc) -> Result<DocBuf> {
    let mut b = DocBuilder::new();
    for e in key {
        if let Some(path) = renamed(series, e.name()) {
            b.raw(e.ty, &path, e.data());
            continue;
        }
        if e.value().as_str() == Some("2dsphere") && e.name() != series.time_field {
            b.str(&format!("{DATA}{}", e.name()), BUCKET_2DSPHERE);
            continue;
        }
        let ends = match crate::geo::parse::number(e.value()) {
            Some(n) if n >= 0.0 => [MIN, MAX],
            Some(_) => [MAX, MIN],
            None => {
                return Err(Error::new(
                    ErrorCode::CannotCreateIndex,
                    format!(
                        "BadValue: Invalid index spec for time-series collection: {key}. Indexes on measurement fields must \
                         be ascending or descending (numbers only), or '2dsphere': {e}"
                    ),
                ));
            }
        };
        for end in ends {
            b.raw(e.ty, &format!("{end}{}", e.name()), e.data());
        }
    }
    Ok(b.finish())
}

fn refuse(text: &'static str) -> Error {
    Error::new(ErrorCode::InvalidOptions, text)
}

/// A field that has to be an object, whatever kind of index is asked for. An array counts as one.
fn object<'a>(spec: &'a RawDoc, name: &str) -> Result<&'a RawDoc> {
    let missing = |name: &str| {
        let text = format!("invalid parameter: expected an object ({name})");
        Err(Error::location(10_065, text))
    };
    match spec.get(name) {
        Some(Value::Document(d) | Value::Array(d)) => Ok(d),
        Some(_) => missing(name),
        None => missing(""),
    }
}

fn key_of_spec(spec: &RawDoc) -> Result<&RawDoc> {
    let key = object(spec, "key")?;
    match key.is_empty() {
        true => {
            let text = "BadValue: Empty object is not a valid index spec";
            Err(Error::new(ErrorCode::CannotCreateIndex, text))
        }
        false => Ok(key),
    }
}

fn kind_of_field(e: Elem<'_>) -> Option<&str> {
    match e.value() {
        Value::String(kind) => Some(kind),
        _ if e.name() == "$**" || e.name().ends_with(".$**") => Some("wildcard"),
        _ => None,
    }
}

/// Kinds of indexes that time series have not, told field by field.
fn check_field(series: &TimeSeries, spec: &RawDoc, e: Elem<'_>) -> Result<()> {
    match e.name() {
        "unique" if e.value().is_truthy() => {
            Err(refuse("Unique indexes are not supported on time-series collections"))
        }
        "expireAfterSeconds" => Err(refuse("TTL indexes are not supported on time-series collections")),
        // Whether it is true or false.
        "sparse" => {
            let measured = |e: Elem<'_>| e.name() != series.time_field && renamed(series, e.name()).is_none();
            match key_of_spec(spec)?.iter().any(measured) {
                true => Err(refuse("Sparse indexes are not supported on time-series measurements")),
                false => Ok(()),
            }
        }
        // The first field that says a kind says that of the index.
        "key" => match key_of_spec(spec)?.iter().find_map(kind_of_field) == Some("text") {
            true => Err(refuse("Text indexes are not supported on time-series collections")),
            false => Ok(()),
        },
        PARTIAL => {
            object(spec, PARTIAL)?;
            match spec.elem("collation") {
                Some(_) => Err(Error::new(
                    ErrorCode::IndexOptionsConflict,
                    "On a time-series collection, partialFilterExpression and collation arguments are incompatible",
                )),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// An index specification over buckets. `collated`: the collection has a collation, which the index takes over.
pub fn index_on_buckets(series: &TimeSeries, spec: &RawDoc, collated: bool) -> Result<DocBuf> {
    let own = spec.get("collation").and_then(|c| c.as_doc()?.get("locale")?.as_str());
    let collated = own.map_or(collated, |locale| locale != "simple");
    let mut b = DocBuilder::with_capacity(spec.byte_len() + 64);
    for e in spec {
        check_field(series, spec, e)?;
        match e.name() {
            "key" => b.raw_doc("key", &key_on_buckets(series, object(spec, "key")?)?),
            PARTIAL => {
                b.raw_doc(PARTIAL, &partial_filter(series, object(spec, PARTIAL)?, collated)?);
                b.raw_doc(ORIGINAL, spec)
            }
            _ => b.elem(e),
        };
    }
    Ok(b.finish())
}

/// The specification as users know it; `None` when its key is none of theirs.
pub fn index_of_users(series: &TimeSeries, spec: &RawDoc) -> Option<DocBuf> {
    let mut b = DocBuilder::with_capacity(spec.byte_len());
    for e in spec {
        match (e.name(), e.value()) {
            ("key", Value::Document(key)) => b.raw_doc("key", &key_of_users(series, key)?),
            (ORIGINAL, _) => &mut b,
            (PARTIAL, v) => {
                let asked = spec.get(ORIGINAL).and_then(|d| d.as_doc()?.get(PARTIAL));
                b.value(PARTIAL, asked.unwrap_or(v))
            }
            _ => b.elem(e),
        };
    }
    Some(b.finish())
}

fn key_of_users(series: &TimeSeries, key: &RawDoc) -> Option<DocBuf> {
    let mut b = DocBuilder::new();
    let mut fields = key.iter();
    while let Some(e) = fields.next() {
        if let Some(rest) = e.name().strip_prefix("meta").filter(|r| r.is_empty() || r.starts_with('.')) {
            b.raw(e.ty, &format!("{}{rest}", series.meta_field.as_deref()?), e.data());
            continue;
        }
        if let (Some(name), Some(BUCKET_2DSPHERE)) = (e.name().strip_prefix(DATA), e.value().as_str()) {
            b.str(name, "2dsphere");
            continue;
        }
        let (name, other) = match e.name().strip_prefix(MIN) {
            Some(name) => (name, MAX),
            None => (e.name().strip_prefix(MAX)?, MIN),
        };
        let second = fields.next()?;
        if second.name().strip_prefix(other)? != name {
            return None;
        }
        b.raw(e.ty, name, e.data());
    }
    Some(b.finish())
}
