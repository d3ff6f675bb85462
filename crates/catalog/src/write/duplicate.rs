//! What a duplicate key looks like to the client: code 11000 with the key's pattern and values.

use crate::schema::collection::{Collection, Index};
use pando_base::{Error, ErrorCode};
use pando_bson::keystring::KeyReader;
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_index::Key;
use pando_query::source::IndexKind;

/// The values of a key, under the names of the key pattern.
pub(crate) fn key_values(index: &Index, key: Key<'_>) -> DocBuf {
    let mut values = KeyReader::new(key.bytes, index.keys.directions(), key.type_bits);
    let mut b = DocBuilder::new();
    for f in &index.spec.fields {
        if index.spec.kind == IndexKind::Wildcard && f.path.ends_with("$**") {
            let _ = values.next_into(&mut b, "$_path");
        }
        // Keys made here can be read back; a damaged one only shortens the message.
        if !values.next_into(&mut b, &f.path).unwrap_or(false) {
            break;
        }
    }
    b.finish()
}

pub(crate) fn duplicate_clustered(coll: &Collection, doc: &RawDoc) -> Error {
    let mut value = DocBuilder::new();
    if let Some(id) = doc.elem("_id") {
        value.elem(id);
    }
    let mut pattern = DocBuilder::new();
    pattern.i32("_id", 1);
    let name = coll.options.clustered.as_ref().map_or("_id_", |c| &c.name);
    build_duplicate(coll, name, &pattern.finish(), &value.finish(), None)
}

/// Code 11000 in MongoDB's words, with `keyPattern` and `keyValue` beside it.
pub(crate) fn duplicate_error(coll: &Collection, index: &Index, values: &RawDoc) -> Error {
    build_duplicate(coll, &index.spec.name, &index.spec.key, values, index.spec.collation.as_deref())
}

fn build_duplicate(
    coll: &Collection,
    name: &str,
    pattern: &RawDoc,
    values: &RawDoc,
    collation: Option<&RawDoc>,
) -> Error {
    // Of long strings the beginning.
    let mut shown = format!("{values:#}");
    let mut extra = DocBuilder::new();
    extra.raw_doc("keyPattern", pattern);
    let text = collation.map_or_else(String::new, |c| format!(" collation: {c}"));
    let (hex, flags) = hex_values(values, collation.is_some());
    if collation.is_some() || flags.contains(&true) {
        shown = hex_text(&hex, &flags);
        extra.raw_doc("keyValue", &hex);
        extra.array("hexEncoded", |a| {
            for f in flags {
                a.value(Value::Boolean(f));
            }
        });
    } else {
        extra.raw_doc("keyValue", values);
    }
    if let Some(c) = collation {
        extra.raw_doc("collation", c);
    }
    let message =
        format!("E11000 duplicate key error collection: {} index: {name}{text} dup key: {shown}", coll.ns);
    Error::new(ErrorCode::DuplicateKey, message).with_extra(extra.finish().into_bytes())
}

/// Strings of a collated key are sort keys, and those of another may be no UTF-8: shown in hex.
fn hex_values(values: &RawDoc, collated: bool) -> (DocBuf, Vec<bool>) {
    let mut b = DocBuilder::new();
    let mut flags = Vec::new();
    for e in values {
        match e.value().string_bytes().filter(|s| collated || std::str::from_utf8(s).is_err()) {
            Some(s) => {
                let hex: String = s.iter().map(|b| format!("{b:02x}")).collect();
                b.str(e.name_bytes(), &hex);
                flags.push(true);
            }
            None => {
                b.elem(e);
                flags.push(false);
            }
        }
    }
    (b.finish(), flags)
}

fn hex_text(values: &RawDoc, flags: &[bool]) -> String {
    let mut parts = Vec::new();
    for (e, is_hex) in values.iter().zip(flags) {
        match e.value() {
            Value::String(s) if *is_hex => parts.push(format!("{}: \"0x{s}\"", e.shown_name())),
            v => parts.push(format!("{}: {v:#}", e.shown_name())),
        }
    }
    format!("{{ {} }}", parts.join(", "))
}
