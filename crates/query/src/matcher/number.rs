//! Whole numbers in operator arguments, with MongoDB's complaints about anything else.

use pando_base::{Error, Result};
use pando_bson::{Decimal128, Elem, Value};

pub(crate) fn shown(e: Elem<'_>) -> String {
    e.to_string()
}

/// The value as an `i64` when it is one exactly.
pub(crate) fn exact_i64(v: Value<'_>) -> Option<i64> {
    match v {
        Value::Decimal128(d) => decimal_parts(d).and_then(|(n, exact)| exact.then_some(n)),
        Value::Double(d) if !(-9.223_372_036_854_775_808e18..9.223_372_036_854_775_808e18).contains(&d) => {
            None
        }
        other => other.as_i64(),
    }
}

/// A number cut to an integer, if that fits 64 bits.
pub(crate) fn truncated_i64(v: Value<'_>) -> Option<i64> {
    match v {
        Value::Decimal128(d) => decimal_parts(d).map(|(n, _)| n),
        Value::Double(d) if !(-9.223_372_036_854_775_808e18..9.223_372_036_854_775_808e18).contains(&d) => {
            None
        }
        Value::Double(d) => Some(d as i64),
        other => other.as_i64(),
    }
}

/// The integral part of a finite decimal that fits 64 bits, and whether nothing was cut off.
pub(crate) fn decimal_parts(d: Decimal128) -> Option<(i64, bool)> {
    if decimal_not_finite(d) {
        return None;
    }
    let bits = u128::from_le_bytes(d.0);
    if d.is_zero() {
        return Some((0, true));
    }
    let mut coefficient = bits & ((1 << 113) - 1);
    let mut exponent = (bits >> 113 & 0x3FFF) as i32 - 6176;
    let mut exact = true;
    while exponent < 0 && coefficient != 0 {
        exact &= coefficient.is_multiple_of(10);
        coefficient /= 10;
        exponent += 1;
    }
    while exponent > 0 {
        coefficient = coefficient.checked_mul(10).filter(|c| *c <= 1 << 63)?;
        exponent -= 1;
    }
    let magnitude = i128::try_from(coefficient).ok()?;
    let signed = if bits >> 127 == 1 { -magnitude } else { magnitude };
    Some((i64::try_from(signed).ok()?, exact))
}

pub(crate) fn decimal_not_finite(d: Decimal128) -> bool {
    u128::from_le_bytes(d.0) >> 123 & 0xF == 0xF
}

pub(crate) fn decimal_is_nan(d: Decimal128) -> bool {
    u128::from_le_bytes(d.0) >> 122 & 0x1F == 0x1F
}

/// A whole number that fits 64 bits; the message says what is wrong.
pub fn parse_i64(e: Elem<'_>) -> Result<i64, String> {
    let v = e.value();
    match v {
        Value::Int32(n) => Ok(n.into()),
        Value::Int64(n) => Ok(n),
        Value::Double(d) if d.is_nan() => Err(format!("Expected an integer, but found NaN in: {}", shown(e))),
        Value::Double(d) => {
            if !(-9.223_372_036_854_775_808e18..9.223_372_036_854_775_808e18).contains(&d) {
                Err(format!("Cannot represent as a 64-bit integer: {}", shown(e)))
            } else if d.fract() != 0.0 {
                Err(format!("Expected an integer: {}", shown(e)))
            } else {
                Ok(d as i64)
            }
        }
        Value::Decimal128(_) => {
            exact_i64(v).ok_or_else(|| format!("Cannot represent as a 64-bit integer: {}", shown(e)))
        }
        _ => Err(format!("Expected a number in: {}", shown(e))),
    }
}

/// A whole number that is not negative.
pub(crate) fn parse_non_negative(e: Elem<'_>) -> Result<i64, String> {
    match parse_i64(e)? {
        n if n < 0 => Err(format!("Expected a non-negative number in: {}", shown(e))),
        n => Ok(n),
    }
}

/// A bit position.
pub(crate) fn parse_position(e: Elem<'_>) -> Result<u32> {
    let fail = |m: String| Error::bad_value(format!("Failed to parse bit position. {m}"));
    let n = parse_non_negative(e).map_err(fail)?;
    i32::try_from(n).map(|n| n as u32).map_err(|_| fail(format!("Cannot represent {} in an int", shown(e))))
}
