//! Field paths: `$a.b` of a document, through arrays.

use super::value::Val;
use pando_base::limits::BSON_DEPTH_MAX;
use pando_base::{Error, ErrorCode, Result, patience};
use pando_bson::{ArrayBuilder, RawDoc, Value};

/// A dotted path; empty means the whole value.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FieldPath {
    parts: Box<[Box<str>]>,
}

/// Names in a path may not be empty (15998), start with `$` except those of a DBRef (16410) or hold a NUL (16411).
pub(super) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::location(15998, "FieldPath field names may not be empty strings."));
    }
    if name.starts_with('$') && !matches!(name, "$id" | "$ref" | "$db") {
        return Err(Error::location(
            16410,
            "FieldPath field names may not start with '$'. Consider using $getField or $setField.",
        ));
    }
    if name.contains('\0') {
        return Err(Error::location(
            16411,
            "FieldPath field names may not contain '\0'. Consider using $getField or $setField.",
        ));
    }
    Ok(())
}

impl FieldPath {
    /// The whole value.
    pub fn whole() -> FieldPath {
        FieldPath::default()
    }
    pub fn parse(path: &str) -> Result<FieldPath> {
        if path.is_empty() {
            return Err(Error::location(40352, "FieldPath cannot be constructed with empty string"));
        }
        if path.ends_with('.') {
            return Err(Error::location(40353, "FieldPath must not end with a '.'."));
        }
        let mut parts = Vec::new();
        for name in path.split('.') {
            check_name(name)?;
            parts.push(name.into());
        }
        if parts.len() > BSON_DEPTH_MAX {
            return Err(Error::new(ErrorCode::Overflow, "FieldPath is too long"));
        }
        Ok(FieldPath { parts: parts.into() })
    }
    pub fn parts(&self) -> &[Box<str>] {
        &self.parts
    }
    pub fn is_whole(&self) -> bool {
        self.parts.is_empty()
    }
    /// `rest` below this path, if it is the name of a field of the document: deeper paths see arrays otherwise.
    pub(crate) fn renamed(&self, rest: Option<&str>) -> Option<String> {
        let [name] = &self.parts[..] else { return None };
        Some(rest.map_or_else(|| name.to_string(), |rest| format!("{name}.{rest}")))
    }
    pub fn dotted(&self) -> String {
        self.parts.join(".")
    }

    /// The value at this path of a document.
    #[inline]
    pub fn of_doc<'d>(&self, doc: &'d RawDoc) -> Val<'d> {
        match &*self.parts {
            [] => Val::Ref(Value::Document(doc)),
            [name] => Val::option(doc.get(name)),
            parts => walk(parts, doc),
        }
    }
    /// The value at this path of any value: arrays are mapped, scalars have no fields.
    pub fn of_value<'d>(&self, v: Option<Value<'d>>) -> Val<'d> {
        if self.parts.is_empty() {
            return Val::option(v);
        }
        match v {
            Some(Value::Document(d)) => walk(&self.parts, d),
            Some(Value::Array(a)) => map_array(&self.parts, a),
            _ => Val::Missing,
        }
    }
}

fn walk<'d>(parts: &[Box<str>], mut doc: &'d RawDoc) -> Val<'d> {
    let Some((last, inner)) = parts.split_last() else { return Val::Ref(Value::Document(doc)) };
    for (i, name) in inner.iter().enumerate() {
        match doc.get(name) {
            Some(Value::Document(d)) => doc = d,
            Some(Value::Array(a)) => return map_array(&parts[i + 1..], a),
            _ => return Val::Missing,
        }
    }
    Val::option(doc.get(last))
}

/// The path of each sub-document directly in the array; other elements, and arrays in it, give nothing. Ends early when
/// the operation is over, which whoever asked for it finds out.
fn map_array(parts: &[Box<str>], array: &RawDoc) -> Val<'static> {
    let mut out = ArrayBuilder::new();
    for e in array {
        if patience::is_over(1) {
            break;
        }
        if let Value::Document(d) = e.value() {
            let v = walk(parts, d);
            if let Some(v) = v.value() {
                out.value(v);
            }
        }
    }
    Val::Array(out.finish())
}
