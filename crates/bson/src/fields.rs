//! Reading option documents: numbers of any kind, and MongoDB's errors for fields that are missing, unknown or of
//! the wrong type.

use crate::decimal128::Rounding;
use crate::{RawDoc, Value};
use pando_base::{Error, ErrorCode};
use std::collections::BTreeSet;

/// A number of any kind as 64 bits: fractions of doubles cut, those of decimals rounded (halves to the even
/// neighbour), out-of-range values held at the ends, NaN is 0.
/// `None` when it is not a number.
pub fn safe_i64(v: &Value<'_>) -> Option<i64> {
    match v {
        Value::Int32(n) => Some(i64::from(*n)),
        Value::Int64(n) => Some(*n),
        // `as` saturates and maps NaN to 0.
        Value::Double(d) => Some(*d as i64),
        Value::Decimal128(d) => Some(d.to_i64_saturating(Rounding::HalfEven)),
        _ => None,
    }
}

/// 40414: a required field is absent.
pub fn missing(struct_name: &str, field: &str) -> Error {
    Error::location(40414, format!("BSON field '{struct_name}.{field}' is missing but a required field"))
}

/// 40415: a field the command does not know.
pub fn unknown(struct_name: &str, field: &str) -> Error {
    if field.is_empty() {
        return Error::location(40415, format!("BSON field '{struct_name}' is an unknown field."));
    }
    Error::location(40415, format!("BSON field '{struct_name}.{field}' is an unknown field."))
}

/// 40413: a field that occurs twice.
pub fn duplicate(struct_name: &str, field: &str) -> Error {
    Error::location(40413, format!("BSON field '{struct_name}.{field}' is a duplicate field"))
}

/// Names of one document's fields, met one after the other.
#[derive(Default)]
pub struct Names<'a> {
    /// Of 64 places those that a name has fallen into: only then are names compared.
    taken: u64,
    few: [&'a [u8]; FEW],
    n: usize,
    /// All of them, where they are many. No hashes: a client chooses them.
    many: BTreeSet<&'a [u8]>,
}

/// Most documents have few fields: those are compared where they lie.
const FEW: usize = 16;

impl<'a> Names<'a> {
    /// Whether the name was not there before.
    pub fn is_new(&mut self, name: &'a [u8]) -> bool {
        if self.n == FEW {
            if self.many.is_empty() {
                self.many.extend(self.few);
            }
            return self.many.insert(name);
        }
        let place = 1 << place_of(name);
        if self.taken & place != 0 && self.few[..self.n].contains(&name) {
            return false;
        }
        self.taken |= place;
        self.few[self.n] = name;
        self.n += 1;
        true
    }
}

fn place_of(name: &[u8]) -> u8 {
    let at = |i: Option<&u8>| i.copied().unwrap_or_default();
    let (first, last) = (at(name.first()), at(name.last()));
    (first.wrapping_mul(7) ^ last.wrapping_mul(31) ^ at(name.get(name.len() / 2)) ^ name.len() as u8) & 63
}

/// The first name of a document that was there before.
pub fn doubled(doc: &RawDoc) -> Option<&str> {
    let mut names = Names::default();
    doc.iter().find(|e| !names.is_new(e.name_bytes())).map(|e| e.name())
}

/// 14: wrong type, with the list of expected ones in MongoDB's (unbalanced) quotes.
pub fn wrong_type(struct_name: &str, field: &str, found: &Value<'_>, expected: &[&str]) -> Error {
    if let (Value::NotUtf8(_), true) = (found, expected.contains(&"string")) {
        return crate::shape::not_utf8(&format!("{struct_name}.{field}"));
    }
    let found = found.type_name();
    let text = match expected {
        [one] => {
            format!("BSON field '{struct_name}.{field}' is the wrong type '{found}', expected type '{one}'")
        }
        many => format!(
            "BSON field '{struct_name}.{field}' is the wrong type '{found}', expected types '[{}']",
            many.join(", ")
        ),
    };
    Error::new(ErrorCode::TypeMismatch, text)
}
