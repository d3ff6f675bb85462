//! Text indexes: the specification in the form that is stored.
//!
//! `{a: "text", b: 1}` is stored as `{_fts: "text", _ftsx: 1, b: 1}` with `weights: {a: 1}`.

use crate::spec_check::integer;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};
use pando_query::text::{Language, SCORE_FIELD, TERM_FIELD};
use std::collections::BTreeMap;

const WILDCARD: &str = "$**";
const WEIGHT_END: i32 = 100_000;
const VERSION: i32 = 3;

fn refuse(text: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorCode::CannotCreateIndex, text)
}

/// The stored form of a specification that has passed the general checks.
pub(crate) fn stored(doc: &RawDoc) -> Result<DocBuf> {
    let sub = |name: &str| doc.get(name).and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
    // A text names the wildcard, or nothing.
    let everything = doc.get("weights").and_then(|v| v.as_str()) == Some(WILDCARD);
    if !everything && doc.get("weights").is_some_and(|v| v.as_doc().is_none()) {
        return Err(refuse("text index option 'weights' must be an object"));
    }
    if let Some(collation) = doc.get("collation") {
        return Err(refuse(format!("Index type 'text' does not support collation: {collation}")));
    }
    let mut weights = BTreeMap::new();
    let key = stored_key(sub("key"), &mut weights)?;
    if everything {
        weights.insert(WILDCARD.to_owned(), 1);
    }
    for e in sub("weights") {
        weights.insert(e.name().to_owned(), weight(e.value())?);
    }
    if weights.is_empty() {
        return Err(refuse("text index option 'weights' must specify fields or the wildcard"));
    }
    weights.keys().filter(|path| *path != WILDCARD).try_for_each(|path| check_path(path))?;
    let mut b = DocBuilder::with_capacity(doc.byte_len() + 128);
    for e in doc {
        match e.name() {
            "key" => {
                b.raw_doc("key", &key);
            }
            "weights" => {}
            "textIndexVersion" => {
                b.i32("textIndexVersion", version(e.value())?);
            }
            // Only the first version takes it.
            "default_language" if e.value().as_str() == Some("") => {}
            _ => {
                b.elem(e);
            }
        }
    }
    b.doc("weights", |w| {
        for (path, n) in &weights {
            w.i32(path, *n);
        }
    });
    let is_first = doc.get("textIndexVersion").is_some_and(|v| matches!(version(v), Ok(1)));
    let text = |name: &str| doc.get(name).and_then(|v| v.as_str());
    match text("default_language") {
        None => {
            b.str("default_language", "english");
        }
        Some("") if is_first => {
            b.str("default_language", "english");
        }
        Some(name) if is_first || Language::of_name(name).is_some() => {}
        Some(_) => return Err(refuse("default_language is not valid")),
    }
    match text("language_override") {
        None => {
            b.str("language_override", "language");
        }
        Some(name) if !name.is_empty() && !name.starts_with('$') && !name.contains('.') => {}
        Some(_) => return Err(refuse("language_override is not valid")),
    }
    if doc.get("textIndexVersion").is_none() {
        b.i32("textIndexVersion", VERSION);
    }
    Ok(b.finish())
}

/// `_fts: "text"` and `_ftsx: 1` of a text index in its stored form.
pub(crate) fn is_stored_field(e: Elem<'_>) -> bool {
    match e.name() {
        "_fts" => e.value().as_str() == Some("text"),
        _ => e.value().as_f64() == Some(1.0),
    }
}

/// The text fields become `_fts` and `_ftsx`, and weights of 1.
fn stored_key(key: &RawDoc, weights: &mut BTreeMap<String, i32>) -> Result<DocBuf> {
    if key.elem(TERM_FIELD).is_some() {
        return Ok(key.to_buf());
    }
    let mut b = DocBuilder::new();
    let (mut met, mut ended) = (false, false);
    for e in key {
        let is_text = e.value().as_str() == Some("text");
        if is_text && ended {
            return Err(refuse("'text' fields in index must all be adjacent"));
        }
        if is_text {
            if !met {
                b.str(TERM_FIELD, "text").i32(SCORE_FIELD, 1);
            }
            met = true;
            weights.insert(e.name().to_owned(), 1);
        } else {
            ended = met;
            b.elem(e);
        }
    }
    Ok(b.finish())
}

fn weight(v: Value<'_>) -> Result<i32> {
    let n = match v {
        Value::Decimal128(d) => d.to_string().parse().ok(),
        v => v.as_f64(),
    };
    let Some(n) = n else { return Err(refuse("weight for text index needs numeric type")) };
    let whole = n as i32;
    if whole <= 0 || whole >= WEIGHT_END {
        return Err(refuse(format!(
            "text index weight must be in the exclusive interval (0,{WEIGHT_END}) but found: {whole}"
        )));
    }
    Ok(whole)
}

fn check_path(path: &str) -> Result<()> {
    if path.is_empty() {
        return Err(refuse("weight cannot be on an empty field"));
    }
    for part in path.split('.') {
        if part.is_empty() {
            return Err(refuse("weight cannot have empty path component"));
        }
        if part.starts_with('$') {
            return Err(refuse("weight cannot have path component with $ prefix"));
        }
    }
    Ok(())
}

fn version(v: Value<'_>) -> Result<i32> {
    match integer(v) {
        Some(n @ 1..=3) => Ok(n),
        n => Err(refuse(format!("bad textIndexVersion: {}", n.unwrap_or_default()))),
    }
}
