//! Reading option documents: numbers of any kind, and MongoDB's errors for fields that are missing, unknown or of
//! the wrong type.

use crate::Value;
use pando_base::{Error, ErrorCode};

/// A number of any kind as 64 bits: fractions cut, out-of-range values held at the ends, NaN is 0.
/// `None` when it is not a number.
pub fn safe_i64(v: &Value<'_>) -> Option<i64> {
    match v {
        Value::Int32(n) => Some(i64::from(*n)),
        Value::Int64(n) => Some(*n),
        // `as` saturates and maps NaN to 0.
        Value::Double(d) => Some(*d as i64),
        Value::Decimal128(d) => Some(decimal_to_i64(d)),
        _ => None,
    }
}

/// Truncates a decimal; only used for option values, so speed does not matter.
fn decimal_to_i64(d: &crate::Decimal128) -> i64 {
    let bits = u128::from_le_bytes(d.0);
    let negative = bits >> 127 == 1;
    if (bits >> 122) & 0x1F == 0x1F {
        return 0;
    }
    if (bits >> 122) & 0x1E == 0x1E {
        return if negative { i64::MIN } else { i64::MAX };
    }
    if d.is_zero() || (bits >> 125) & 3 == 3 {
        return 0;
    }
    let exponent = ((bits >> 113) & 0x3FFF) as i32 - 6176;
    let mut n = bits & ((1 << 113) - 1);
    for _ in 0..exponent.unsigned_abs().min(40) {
        n = if exponent < 0 { n / 10 } else { n.saturating_mul(10) };
    }
    let held = n.min(i64::MAX as u128) as i64;
    match (negative, n > i64::MAX as u128) {
        (false, _) => held,
        (true, false) => -held,
        (true, true) => i64::MIN,
    }
}

/// 40414: a required field is absent.
pub fn missing(struct_name: &str, field: &str) -> Error {
    Error::location(40414, format!("BSON field '{struct_name}.{field}' is missing but a required field"))
}

/// 40415: a field the command does not know.
pub fn unknown(struct_name: &str, field: &str) -> Error {
    Error::location(40415, format!("BSON field '{struct_name}.{field}' is an unknown field."))
}

/// 14: wrong type, with the list of expected ones in MongoDB's (unbalanced) quotes.
pub fn wrong_type(struct_name: &str, field: &str, found: &Value<'_>, expected: &[&str]) -> Error {
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
