//! Shapes of what clients send: which fields a document may have and of which types, with MongoDB's codes and words for
//! what does not fit.
//!
//! ```text
//!   not the type               14     BSON field 'owner.field' is the wrong type 'int', expected type 'bool'
//!   out of its range           51024  BSON field 'field' value must be >= 1, actual value '0'
//!   not one of the words       2      Enumeration value 'x' for field 'owner.field' is not a valid value.
//!   null where a list belongs  10065  invalid parameter: expected an object (field)
//!   a name that is not known   40415  BSON field 'owner.field.x' is an unknown field.
//!   a name that comes twice    40413  BSON field 'owner.field.x' is a duplicate field
//!   a name that is missing     40414  BSON field 'owner.field.x' is missing but a required field
//! ```
//! A null (or undefined) counts as not given, except for a list and where a field says otherwise. Paths do not count the
//! elements of lists, but for an element of the wrong type.
//!
//! The same tables tell those who draw commands at random what may stand where ([`Field::means`]).

use crate::fields::{duplicate, missing, safe_i64, unknown};
use crate::{RawDoc, Value};
use pando_base::{Error, ErrorCode, Result};

/// What a value must be.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    Any,
    Bool,
    /// A boolean or a number.
    SafeBool,
    /// A number of any type.
    Number,
    /// A number of any type that lies within bounds as an integer.
    Integer(Range),
    /// Exactly 32 bits.
    Int,
    /// Exactly 64 bits.
    Long,
    String,
    /// One of these words.
    Word(&'static [&'static str]),
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
    /// What its function takes. `like` shows what that may be, and nobody checks against it.
    Checked {
        like: &'static [Shape],
        check: fn(path: &str, v: &Value<'_>) -> Result<()>,
    },
}

/// Both ends included.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub min: i64,
    pub max: i64,
    /// Messages name the first number that is too large, not the last that fits.
    pub told_as_below: bool,
}

impl Range {
    pub const fn at_least(min: i64) -> Range {
        Range { min, max: i64::MAX, told_as_below: false }
    }
    pub const fn between(min: i64, max: i64) -> Range {
        Range { min, max, told_as_below: false }
    }
    /// Every number less than `end`.
    pub const fn below(end: i64) -> Range {
        Range { min: i64::MIN, max: end - 1, told_as_below: true }
    }
    fn check(self, path: &str, n: i64) -> Result<()> {
        let told = |sign: &str, bound: i64| {
            let field = last_of(path);
            let text = format!("BSON field '{field}' value must be {sign} {bound}, actual value '{n}'");
            Err(Error::location(51024, text))
        };
        match n {
            n if n < self.min => told(">=", self.min),
            n if n > self.max && self.told_as_below => told("<", self.max + 1),
            n if n > self.max => told("<=", self.max),
            _ => Ok(()),
        }
    }
}

/// What a null says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Null {
    /// Nothing: the field counts as not given.
    Absent,
    /// It is a value like others, and mostly of the wrong type.
    Value,
}

/// What a value stands for, as far as its shape does not tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Means {
    Itself,
    Filter,
    Sort,
    Projection,
    Pipeline,
    Collation,
    IndexKey,
    IndexName,
    IndexSpec,
    /// A collection by its name alone.
    Collection,
    /// `database.collection`.
    Namespace,
    /// The name of a field of documents.
    FieldName,
    /// A function's text.
    Script,
    /// Where a `mapReduce` puts its results.
    Output,
}

/// A field that a document may have.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: &'static str,
    pub shape: Shape,
    pub required: bool,
    pub null: Null,
    pub means: Means,
    /// Not for clients that ask for the Stable API alone.
    pub unstable: bool,
}

impl Field {
    pub const fn optional(name: &'static str, shape: Shape) -> Field {
        Field { name, shape, required: false, null: Null::Absent, means: Means::Itself, unstable: false }
    }
    pub const fn required(name: &'static str, shape: Shape) -> Field {
        Field { required: true, ..Field::optional(name, shape) }
    }
    pub const fn means(self, means: Means) -> Field {
        Field { means, ..self }
    }
    pub const fn null(self, null: Null) -> Field {
        Field { null, ..self }
    }
    pub const fn unstable(self, unstable: bool) -> Field {
        Field { unstable, ..self }
    }
    /// Error when `v`, which stands at `path`, may not. False: it counts as not given.
    pub fn admits(&self, path: &str, v: &Value<'_>) -> Result<bool> {
        match v {
            Value::Null | Value::Undefined if self.null == Null::Absent => {
                self.shape.check(path, v).map(|()| false)
            }
            _ => self.shape.judge(path, v).map(|()| true),
        }
    }
}

impl Shape {
    /// Error when `v`, which stands at `path`, has not this shape.
    pub fn check(&self, path: &str, v: &Value<'_>) -> Result<()> {
        match (self, v) {
            (Shape::List(_), Value::Null | Value::Undefined) => {
                let text = format!("invalid parameter: expected an object ({})", last_of(path));
                Err(Error::location(10065, text))
            }
            (_, Value::Null | Value::Undefined) => Ok(()),
            _ => self.judge(path, v),
        }
    }

    /// As [`Shape::check`], where a null is a value like others.
    fn judge(&self, path: &str, v: &Value<'_>) -> Result<()> {
        let fits = match (self, v) {
            (Shape::Checked { check, .. }, _) => return check(path, v),
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
            (Shape::Integer(range), v) if v.is_number() => {
                return range.check(path, safe_i64(v).unwrap_or_default());
            }
            (Shape::Word(words), Value::String(word)) => {
                return match words.contains(word) {
                    true => Ok(()),
                    false => Err(Error::bad_value(format!(
                        "Enumeration value '{word}' for field '{path}' is not a valid value."
                    ))),
                };
            }
            (Shape::Uuid | Shape::Digest, Value::Binary { subtype, bytes }) => {
                return self.check_binary(path, *subtype, bytes);
            }
            (Shape::List(each), Value::Array(list)) => return check_list(each, path, list),
            (Shape::Fields(fields), Value::Document(doc)) => return check_fields(fields, path, doc),
            _ => false,
        };
        if fits { Ok(()) } else { Err(wrong_type_at(path, v, self.types())) }
    }

    /// The types it may have, as messages name them.
    fn types(&self) -> &'static [&'static str] {
        match self {
            Shape::Any | Shape::Checked { .. } => &["any"],
            Shape::Bool => &["bool"],
            Shape::SafeBool => &["bool", "long", "int", "decimal", "double"],
            Shape::Number | Shape::Integer(_) => &["long", "int", "decimal", "double"],
            Shape::Int => &["int"],
            Shape::Long => &["long"],
            Shape::String | Shape::Word(_) => &["string"],
            Shape::Date => &["date"],
            Shape::Timestamp => &["timestamp"],
            Shape::ObjectId => &["objectId"],
            Shape::Object | Shape::Fields(_) => &["object"],
            Shape::Uuid | Shape::Digest => &["binData"],
            Shape::List(_) => &["array"],
        }
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

/// What stands behind the last dot.
fn last_of(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// 14, in the words for one expected type or for several (whose quotes MongoDB does not close).
pub fn wrong_type_at(path: &str, v: &Value<'_>, expected: &[&str]) -> Error {
    if let (Value::NotUtf8(_), true) = (v, expected.contains(&"string")) {
        return not_utf8(path);
    }
    let found = v.type_name();
    let expected = match expected {
        [one] => format!("type '{one}'"),
        many => format!("types '[{}']", many.join(", ")),
    };
    Error::type_mismatch(format!("BSON field '{path}' is the wrong type '{found}', expected {expected}"))
}

/// A name or a word that is stored as it is said, but is looked for among what is UTF-8.
pub(crate) fn not_utf8(path: &str) -> Error {
    Error::bad_value(format!("BSON field '{path}' has to be UTF-8"))
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

/// Error when a document that stands at `path` has other fields than these, one of them twice, or lacks one.
pub fn check_fields(fields: &[Field], path: &str, doc: &RawDoc) -> Result<()> {
    let (mut seen, mut given) = (0u64, 0u64);
    for e in doc {
        let name = e.name();
        let Some(at) = fields.iter().position(|f| f.name == name) else { return Err(unknown(path, name)) };
        let (field, bit) = (&fields[at], 1 << at);
        if seen & bit != 0 {
            return Err(duplicate(path, name));
        }
        seen |= bit;
        if field.admits(&format!("{path}.{name}"), &e.value())? {
            given |= bit;
        }
    }
    match fields.iter().enumerate().find(|(at, f)| f.required && given & (1 << at) == 0) {
        None => Ok(()),
        Some((_, f)) => Err(missing(path, f.name)),
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

    #[test]
    fn ranges_words_and_repetitions_are_named() {
        const FORM: Shape = Shape::Fields(&[
            Field::optional("size", Shape::Integer(Range::between(1, 10))),
            Field::optional("max", Shape::Integer(Range::below(5))),
            Field::optional("level", Shape::Word(&["off", "on"])).null(Null::Value),
        ]);
        let said = |d: Document| {
            let raw = d.to_raw();
            FORM.check("c.f", &Value::Document(&raw))
                .map_or_else(|e| (e.code.0, e.message.to_string()), |()| (0, String::new()))
        };
        assert_eq!(said(doc! { "size": 10, "max": 4.9, "level": "on" }).0, 0);
        assert_eq!(
            said(doc! { "size": 0.5 }),
            (51024, "BSON field 'size' value must be >= 1, actual value '0'".into())
        );
        assert_eq!(said(doc! { "size": 11 }).1, "BSON field 'size' value must be <= 10, actual value '11'");
        assert_eq!(said(doc! { "max": 5 }).1, "BSON field 'max' value must be < 5, actual value '5'");
        let text = "Enumeration value 'x' for field 'c.f.level' is not a valid value.";
        assert_eq!(said(doc! { "level": "x" }), (2, text.into()));
        let text = "BSON field 'c.f.level' is the wrong type 'null', expected type 'string'";
        assert_eq!(said(doc! { "size": Bson::Null, "level": Bson::Null }), (14, text.into()));
        let mut twice = doc! { "size": 1 };
        twice.push("size", 2);
        assert_eq!(said(twice), (40413, "BSON field 'c.f.size' is a duplicate field".into()));
    }
}
