//! What a document must look like before it is stored.

use crate::Catalog;
use pando_base::{Error, ErrorCode, Result, Timestamp, limits};
use pando_bson::{DocBuilder, Elem, ElementType, RawDoc, Value};
use std::borrow::Cow;

impl Catalog {
    /// The document as it will be inserted: `_id` first (made when absent), `Timestamp(0, 0)` at the top level
    /// replaced by the cluster time. Borrowed when nothing had to change.
    pub fn fix_for_insert<'d>(&self, doc: &'d RawDoc) -> Result<Cow<'d, RawDoc>> {
        check_size(doc)?;
        let mut id = None;
        let mut first = true;
        let mut id_first = false;
        let mut empty_ts = false;
        let mut dollar = false;
        for e in doc {
            if e.name_bytes() == b"_id" {
                if id.is_some() {
                    return Err(Error::bad_value("can't have multiple _id fields in one document"));
                }
                check_id(e)?;
                id = Some(e);
                id_first = first;
            } else if e.ty == ElementType::Timestamp && e.data() == [0; 8] {
                empty_ts = true;
            }
            dollar |= e.name_bytes().first() == Some(&b'$');
            first = false;
        }
        if dollar {
            self.0.dollar_inserts.inc();
        }
        if id_first && !empty_ts {
            return Ok(Cow::Borrowed(doc));
        }
        let mut b = DocBuilder::with_capacity(doc.byte_len() + 24);
        match id {
            Some(e) => b.elem(e),
            None => b.object_id("_id", self.0.oids.next(self.now_ms())),
        };
        for e in doc {
            if e.name_bytes() == b"_id" {
                continue;
            }
            match e.value() {
                Value::Timestamp(Timestamp::ZERO) => {
                    b.value(e.name_bytes(), Value::Timestamp(self.next_timestamp_value()))
                }
                _ => b.elem(e),
            };
        }
        let fixed = b.finish();
        check_size(&fixed)?;
        Ok(Cow::Owned(fixed))
    }
    /// Documents to insert that had a field whose name begins with a dollar.
    pub fn dollar_inserts(&self) -> u64 {
        self.0.dollar_inserts.get()
    }
    /// A cluster time never given out before, for `Timestamp(0, 0)` fields.
    pub fn next_timestamp_value(&self) -> Timestamp {
        self.storage().log().reserve_one().ts()
    }
}

fn check_size(doc: &RawDoc) -> Result<()> {
    if doc.byte_len() > limits::BSON_USER_BYTES_MAX {
        return Err(Error::bad_value(format!(
            "object to insert too large. size in bytes: {}, max size: {}",
            doc.byte_len(),
            limits::BSON_USER_BYTES_MAX
        )));
    }
    // A level of nesting takes at least seven bytes, so small documents cannot be too deep.
    if doc.byte_len() > limits::BSON_STORED_DEPTH_MAX * 7
        && has_elements_below(doc, limits::BSON_STORED_DEPTH_MAX)
    {
        return Err(Error::new(
            ErrorCode::Overflow,
            format!(
                "cannot insert document because it exceeds {} levels of nesting",
                limits::BSON_STORED_DEPTH_MAX
            ),
        ));
    }
    Ok(())
}

/// Whether anything stands more than `levels` deep; what is empty has no further level. (Input was bounded when it
/// came in.)
fn has_elements_below(doc: &RawDoc, levels: usize) -> bool {
    doc.iter().any(|e| match e.value() {
        _ if levels == 0 => true,
        Value::Document(d) | Value::Array(d) => has_elements_below(d, levels - 1),
        _ => false,
    })
}

/// Types and shapes an `_id` may not have.
pub fn check_id(e: Elem<'_>) -> Result<()> {
    let refused = match e.value() {
        Value::Array(_) => "array",
        _ if e.ty == ElementType::Regex => "regex",
        Value::Undefined => "undefined",
        Value::Document(d) => return check_id_document(d),
        _ => return Ok(()),
    };
    Err(Error::new(ErrorCode::InvalidIdField, format!("The '_id' value cannot be of type {refused}")))
}

fn check_id_document(d: &RawDoc) -> Result<()> {
    for e in d {
        if e.name_bytes().starts_with(b"$") && !matches!(e.name(), "$ref" | "$id" | "$db") {
            return Err(Error::new(
                ErrorCode::DollarPrefixedFieldName,
                format!(
                    "_id fields may not contain '$'-prefixed fields: {} is not valid for storage.",
                    e.shown_name()
                ),
            ));
        }
        if let Value::Document(inner) = e.value() {
            check_id_document(inner)?;
        }
    }
    Ok(())
}
