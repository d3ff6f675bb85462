//! Typed command arguments: one walk over the body, one `match`, MongoDB's words for every mistake.
//!
//! ```ignore
//! for arg in req.args("insert") {
//!     match arg.name() {
//!         "ordered" => ordered = arg.bool()?,
//!         "documents" => {}
//!         _ => return Err(arg.unknown()),
//!     }
//! }
//! ```

use crate::generic_args::is_generic;
use crate::request::{duplicate, unknown, wrong_type};
use pando_base::{Error, Result};
pub use pando_bson::fields::{Names, safe_i64};
use pando_bson::shape::Shape;
use pando_bson::{Elem, RawDoc, Value};

/// The arguments that belong to the command itself.
#[derive(Clone)]
pub struct Args<'a> {
    struct_name: &'static str,
    rest: pando_bson::raw::Iter<'a>,
    /// Generic arguments whose types the command checks itself.
    also: &'static [&'static str],
}

impl<'a> Args<'a> {
    /// Skips the body's first element.
    pub fn new(struct_name: &'static str, body: &'a RawDoc) -> Args<'a> {
        let mut rest = body.iter();
        rest.next();
        Args { struct_name, rest, also: &[] }
    }
    /// For a sub-document (`updates.0`): nothing is skipped except generic names.
    pub fn of_doc(struct_name: &'static str, doc: &'a RawDoc) -> Args<'a> {
        Args { struct_name, rest: doc.iter(), also: &[] }
    }
    /// The same, with generic arguments of these names at their places.
    pub fn and(self, also: &'static [&'static str]) -> Args<'a> {
        Args { also, ..self }
    }
}

impl<'a> Iterator for Args<'a> {
    type Item = Arg<'a>;
    fn next(&mut self) -> Option<Arg<'a>> {
        loop {
            let elem = self.rest.next()?;
            if !is_generic(elem.name_bytes()) || self.also.contains(&elem.name()) {
                return Some(Arg { struct_name: self.struct_name, elem });
            }
        }
    }
}

/// One argument.
#[derive(Clone, Copy)]
pub struct Arg<'a> {
    pub(crate) struct_name: &'static str,
    elem: Elem<'a>,
}

pub(crate) const NUMBERS: &[&str] = &["long", "int", "decimal", "double"];
const BOOLISH: &[&str] = &["bool", "long", "int", "decimal", "double"];

impl<'a> Arg<'a> {
    #[inline]
    pub fn name(&self) -> &'a str {
        self.elem.name()
    }
    #[inline]
    pub fn elem(&self) -> Elem<'a> {
        self.elem
    }
    #[inline]
    pub fn value(&self) -> Value<'a> {
        self.elem.value()
    }
    /// Null, or undefined: counts as not given.
    #[inline]
    pub fn is_absent(&self) -> bool {
        matches!(self.value(), Value::Null | Value::Undefined)
    }
    /// 40413 when an argument of this name was there before, other than null: told of after what is wrong with its value.
    pub fn once(&self, before: &mut Names<'a>) -> Result<()> {
        match before.is_new(self.elem.name_bytes()) {
            true => Ok(()),
            false => Err(duplicate(self.struct_name, self.name())),
        }
    }
    /// Error when the value has not this shape.
    pub fn check(&self, shape: &Shape) -> Result<()> {
        shape.check(&format!("{}.{}", self.struct_name, self.name()), &self.value())
    }
    /// 40415.
    pub fn unknown(&self) -> Error {
        unknown(self.struct_name, self.name())
    }
    /// 14, naming the expected types.
    pub fn wrong_type(&self, expected: &[&str]) -> Error {
        wrong_type(self.struct_name, self.name(), &self.value(), expected)
    }
    /// A real boolean.
    pub fn bool(&self) -> Result<bool> {
        match self.value() {
            Value::Boolean(b) => Ok(b),
            _ => Err(self.wrong_type(&["bool"])),
        }
    }
    /// A boolean or a number (MongoDB's `safeBool`).
    pub fn boolish(&self) -> Result<bool> {
        match self.value() {
            Value::Boolean(b) => Ok(b),
            v if v.is_number() => Ok(v.is_truthy()),
            _ => Err(self.wrong_type(BOOLISH)),
        }
    }
    pub fn str(&self) -> Result<&'a str> {
        match self.value() {
            Value::String(s) => Ok(s),
            _ => Err(self.wrong_type(&["string"])),
        }
    }
    pub fn doc(&self) -> Result<&'a RawDoc> {
        match self.value() {
            Value::Document(d) => Ok(d),
            _ => Err(self.wrong_type(&["object"])),
        }
    }
    pub fn array(&self) -> Result<&'a RawDoc> {
        match self.value() {
            Value::Array(a) => Ok(a),
            _ => Err(self.wrong_type(&["array"])),
        }
    }
    /// Any number as [`safe_i64`] reads it.
    pub fn i64(&self) -> Result<i64> {
        safe_i64(&self.value()).ok_or_else(|| self.wrong_type(NUMBERS))
    }
    /// As [`Arg::i64`], held within 32 bits.
    pub fn i32(&self) -> Result<i32> {
        Ok(self.i64()?.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32)
    }
    /// A number of at least `min`, else 51024.
    pub fn i64_at_least(&self, min: i64) -> Result<i64> {
        let v = self.i64()?;
        if v < min {
            let text = format!("BSON field '{}' value must be >= {min}, actual value '{v}'", self.name());
            return Err(Error::location(51024, text));
        }
        Ok(v)
    }
    /// Exactly a 64-bit integer (cursor ids, transaction numbers).
    pub fn exact_i64(&self) -> Result<i64> {
        match self.value() {
            Value::Int64(n) => Ok(n),
            _ => Err(self.wrong_type(&["long"])),
        }
    }
    /// A 16-byte UUID of subtype 4.
    pub fn uuid(&self) -> Result<[u8; 16]> {
        match self.value() {
            Value::Binary { subtype: 4, bytes } => bytes.try_into().map_err(|_| {
                Error::new(
                    pando_base::ErrorCode::InvalidUUID,
                    "uuid must be a 16-byte binary field with UUID (4) subtype",
                )
            }),
            Value::Binary { subtype, .. } => Err(Error::type_mismatch(format!(
                "BSON field '{}.{}' is the wrong binData type '{}', expected type 'UUID'",
                self.struct_name,
                self.name(),
                bin_type_name(subtype)
            ))),
            _ => Err(self.wrong_type(&["binData"])),
        }
    }
}

pub use pando_bson::shape::subtype_name as bin_type_name;

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    fn first_error(d: pando_bson::Document, read: impl Fn(Arg<'_>) -> Result<()>) -> String {
        let raw = d.to_raw();
        let mut out = String::new();
        for arg in Args::new("insert", &raw) {
            if let Err(e) = read(arg) {
                out = format!("{} {}", e.code.0, e.message);
            }
        }
        out
    }

    #[test]
    fn mistakes_are_told_in_mongodb_words() {
        let d = doc! { "insert": "c", "ordered": "x", "$db": "t" };
        assert_eq!(
            first_error(d, |a| a.bool().map(drop)),
            "14 BSON field 'insert.ordered' is the wrong type 'string', expected type 'bool'"
        );
        let d = doc! { "insert": "c", "limit": "x" };
        assert_eq!(
            first_error(d, |a| a.i64().map(drop)),
            "14 BSON field 'insert.limit' is the wrong type 'string', expected types '[long, int, decimal, double']"
        );
        let d = doc! { "insert": "c", "limit": -1 };
        assert_eq!(
            first_error(d, |a| a.i64_at_least(0).map(drop)),
            "51024 BSON field 'limit' value must be >= 0, actual value '-1'"
        );
        let d = doc! { "insert": "c", "lsid": 1, "zz": -1, "comment": 3 };
        assert_eq!(first_error(d, |a| Err(a.unknown())), "40415 BSON field 'insert.zz' is an unknown field.");
    }

    #[test]
    fn numbers_of_any_kind_become_integers() {
        assert_eq!(safe_i64(&Value::Double(1.9)), Some(1));
        assert_eq!(safe_i64(&Value::Double(1e30)), Some(i64::MAX));
        assert_eq!(safe_i64(&Value::Double(f64::NAN)), Some(0));
        // 15 * 10^-1
        let d = (15u128 | (6175u128 << 113)).to_le_bytes();
        assert_eq!(safe_i64(&Value::Decimal128(pando_bson::Decimal128(d))), Some(2));
        // 5 * 10^-1
        let d = (5u128 | (6175u128 << 113)).to_le_bytes();
        assert_eq!(safe_i64(&Value::Decimal128(pando_bson::Decimal128(d))), Some(0));
        assert_eq!(safe_i64(&Value::String("1")), None);
    }
}
