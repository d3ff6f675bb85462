//! Shapes of what clients send: which fields a document may have and of which types, with MongoDB's codes and words for
//! what does not fit.
//!
//! ```text
//!   not the type               14     BSON field 'owner.field' is the wrong type 'int', expected type 'bool'
//!   null where a list belongs  10065  invalid parameter: expected an object (field)
//!   a name that is not known   40415  BSON field 'owner.field.x' is an unknown field.
//!   a name that is missing     40414  BSON field 'owner.field.x' is missing but a required field
//! ```
//! A null (or undefined) counts as not given, except for a list. Paths do not count the elements of lists, but for an
//! element of the wrong type.

use crate::{RawDoc, Value};
use pando_base::{Error, ErrorCode, Result};

/// What a value must be.
#[derive(Debug)]
pub enum Shape {
    Any,
    Bool,
    /// A boolean or a number.
    SafeBool,
    /// A number of any type.
    Number,
    /// Exactly 32 bits.
    Int,
    /// Exactly 64 bits.
    Long,
    String,
    Date,
    Timestamp,
    ObjectId,
    Object,
    /// Binary of subtype 4.
    Uuid,
    /// Binary of subtype 0 and 32 bytes.
    Digest,
    List(&'static Shape),
    Fields(&'static [Field]),
}

/// A field that a document may have.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub shape: Shape,
    pub required: bool,
}

impl Field {
    pub const fn optional(name: &'static str, shape: Shape) -> Field {
        Field { name, shape, required: false }
    }
    pub const fn required(name: &'static str, shape: Shape) -> Field {
        Field { name, shape, required: true }
    }
}

impl Shape {
    /// Error when `v`, which stands at `path`, has not this shape.
    pub fn check(&self, path: &str, v: &Value<'_>) -> Result<()> {
        if matches!(v, Value::Null | Value::Undefined) {
            return match self {
                Shape::List(_) => {
                    let field = path.rsplit('.').next().unwrap_or(path);
                    Err(Error::location(10065, format!("invalid parameter: expected an object ({field})")))
                }
                _ => Ok(()),
            };
        }
        let fits = match (self, v) {
            (Shape::Any, _)
            | (Shape::Bool | Shape::SafeBool, Value::Boolean(_))
            | (Shape::Int, Value::Int32(_))
            | (Shape::Long, Value::Int64(_))
            | (Shape::String, Value::String(_))
            | (Shape::Date, Value::DateTime(_))
            | (Shape::Timestamp, Value::Timestamp(_))
            | (Shape::ObjectId, Value::ObjectId(_))
            | (Shape::Object, Value::Document(_)) => true,
            (Shape::SafeBool | Shape::Number, v) => v.is_number(),
            (Shape::Uuid | Shape::Digest, Value::Binary { subtype, bytes }) => {
                return self.check_binary(path, *subtype, bytes);
            }
            (Shape::List(each), Value::Array(list)) => return check_list(each, path, list),
            (Shape::Fields(fields), Value::Document(doc)) => return check_fields(fields, path, doc),
            _ => false,
        };
        if fits { Ok(()) } else { Err(self.wrong_type(path, v)) }
    }

    fn wrong_type(&self, path: &str, v: &Value<'_>) -> Error {
        let expected = match self {
            Shape::Any => "any type",
            Shape::Bool => "type 'bool'",
            Shape::SafeBool => "types '[bool, long, int, decimal, double']",
            Shape::Number => "types '[long, int, decimal, double']",
            Shape::Int => "type 'int'",
            Shape::Long => "type 'long'",
            Shape::String => "type 'string'",
            Shape::Date => "type 'date'",
            Shape::Timestamp => "type 'timestamp'",
            Shape::ObjectId => "type 'objectId'",
            Shape::Object | Shape::Fields(_) => "type 'object'",
            Shape::Uuid | Shape::Digest => "type 'binData'",
            Shape::List(_) => "type 'array'",
        };
        let found = v.type_name();
        Error::type_mismatch(format!("BSON field '{path}' is the wrong type '{found}', expected {expected}"))
    }

    fn check_binary(&self, path: &str, subtype: u8, bytes: &[u8]) -> Result<()> {
        let (wanted, name) = if matches!(self, Shape::Uuid) { (4, "UUID") } else { (0, "general") };
        if subtype != wanted {
            return Err(Error::type_mismatch(format!(
                "BSON field '{path}' is the wrong binData type '{}', expected type '{name}'",
                subtype_name(subtype)
            )));
        }
        match self {
            Shape::Uuid if bytes.len() != 16 => Err(Error::new(
                ErrorCode::InvalidUUID,
                "uuid must be a 16-byte binary field with UUID (4) subtype",
            )),
            Shape::Digest if bytes.len() != 32 => Err(Error::new(
                ErrorCode::UnsupportedFormat,
                format!("Unsupported SHA256Block hash length: {}", bytes.len()),
            )),
            _ => Ok(()),
        }
    }
}

fn check_list(each: &Shape, path: &str, list: &RawDoc) -> Result<()> {
    for e in list {
        match (each, e.value()) {
            (Shape::Fields(fields), Value::Document(doc)) => check_fields(fields, path, doc)?,
            // The place is spelled out for what does not fit alone: lists are long.
            (_, v) if each.check("", &v).is_ok() => {}
            (_, v) => each.check(&format!("{path}.{}", e.name()), &v)?,
        }
    }
    Ok(())
}

/// Error when a document that stands at `path` has other fields than these, or lacks one.
pub fn check_fields(fields: &[Field], path: &str, doc: &RawDoc) -> Result<()> {
    for e in doc {
        let name = e.name();
        let inner = if name.is_empty() { path.to_owned() } else { format!("{path}.{name}") };
        match fields.iter().find(|f| f.name == name) {
            Some(f) => f.shape.check(&inner, &e.value())?,
            None => return Err(Error::location(40415, format!("BSON field '{inner}' is an unknown field."))),
        }
    }
    let given = |f: &Field| doc.get(f.name).is_some_and(|v| !matches!(v, Value::Null | Value::Undefined));
    match fields.iter().find(|f| f.required && !given(f)) {
        None => Ok(()),
        Some(f) => Err(Error::location(
            40414,
            format!("BSON field '{path}.{}' is missing but a required field", f.name),
        )),
    }
}

/// How messages call a subtype of binary data.
pub fn subtype_name(subtype: u8) -> &'static str {
    match subtype {
        0 => "general",
        1 => "function",
        2 => "byteArray(deprecated)",
        3 => "UUID(deprecated)",
        4 => "UUID",
        5 => "MD5",
        6 => "encrypt",
        7 => "bucket",
        128.. => "Custom",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Binary, Bson, Document, doc};

    const INNER: &[Field] = &[
        Field::required("id", Shape::Uuid),
        Field::optional("uid", Shape::Digest),
        Field::optional("n", Shape::Long),
    ];
    const OUTER: Shape = Shape::List(&Shape::Fields(INNER));

    fn said(v: Bson) -> (i32, String) {
        let mut d = Document::new();
        d.push("v", v);
        let raw = d.to_raw();
        match OUTER.check("cmd.list", &raw.get("v").unwrap()) {
            Ok(()) => (0, String::new()),
            Err(e) => (e.code.0, e.message.to_string()),
        }
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_place() {
        let uuid = || Bson::Binary(Binary { subtype: 4, bytes: vec![7; 16] });
        let list = |d: Document| Bson::Array(vec![Bson::Document(d)]);
        let with = |name: &str, v: Bson| {
            let mut d = doc! { "id": uuid() };
            d.push(name, v);
            said(list(d))
        };
        assert_eq!(said(Bson::Null), (10065, "invalid parameter: expected an object (list)".to_owned()));
        assert_eq!(
            said(Bson::Int32(5)).1,
            "BSON field 'cmd.list' is the wrong type 'int', expected type 'array'"
        );
        assert_eq!(
            said(Bson::Array(vec![Bson::Int32(1)])).1,
            "BSON field 'cmd.list.0' is the wrong type 'int', expected type 'object'"
        );
        assert_eq!(said(Bson::Array(vec![Bson::Null])).0, 0);
        assert_eq!(
            said(list(doc! {})),
            (40414, "BSON field 'cmd.list.id' is missing but a required field".to_owned())
        );
        assert_eq!(said(list(doc! { "id": Bson::Null })).0, 40414);
        assert_eq!(with("x", Bson::Int32(1)).1, "BSON field 'cmd.list.x' is an unknown field.");
        assert_eq!(
            with("uid", uuid()).1,
            "BSON field 'cmd.list.uid' is the wrong binData type 'UUID', expected type 'general'"
        );
        let short = Bson::Binary(Binary { subtype: 0, bytes: vec![7; 3] });
        assert_eq!(with("uid", short), (12, "Unsupported SHA256Block hash length: 3".to_owned()));
        assert_eq!(with("n", Bson::Int32(1)).0, 14);
        assert_eq!(with("n", Bson::Int64(1)).0, 0);
        assert_eq!(with("uid", Bson::Null).0, 0);
    }
}
