//! Arithmetic over MongoDB's four number types, with its promotions.
//!
//! int with int is int and widens to long when it must; anything with a double is double; anything with a
//! decimal is decimal. What happens when a long overflows differs by caller: updates refuse, expressions
//! widen to double.

use pando_bson::decimal128::Rounding;
use pando_bson::{Decimal128, Value};
use std::ops::{Add, Div, Mul, Rem, Sub};

#[derive(Clone, Copy, Debug)]
pub enum Number {
    Int(i32),
    Long(i64),
    Double(f64),
    Decimal(Decimal128),
}

impl Number {
    pub fn of(v: Value<'_>) -> Option<Number> {
        Some(match v {
            Value::Int32(n) => Number::Int(n),
            Value::Int64(n) => Number::Long(n),
            Value::Double(d) => Number::Double(d),
            Value::Decimal128(d) => Number::Decimal(d),
            _ => return None,
        })
    }
    pub fn value(self) -> Value<'static> {
        match self {
            Number::Int(n) => Value::Int32(n),
            Number::Long(n) => Value::Int64(n),
            Number::Double(d) => Value::Double(d),
            Number::Decimal(d) => Value::Decimal128(d),
        }
    }
    /// As the nearest double.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Int(n) => f64::from(n),
            Number::Long(n) => n as f64,
            Number::Double(d) => d,
            Number::Decimal(d) => d.to_f64(),
        }
    }
    /// Doubles keep 15 significant digits.
    pub fn to_decimal(self) -> Decimal128 {
        match self {
            Number::Int(n) => Decimal128::from_i64(n.into()),
            Number::Long(n) => Decimal128::from_i64(n),
            Number::Double(d) => Decimal128::from_f64(d),
            Number::Decimal(d) => d,
        }
    }
    fn integer(self) -> Option<i64> {
        match self {
            Number::Int(n) => Some(n.into()),
            Number::Long(n) => Some(n),
            _ => None,
        }
    }
    pub fn is_decimal(self) -> bool {
        matches!(self, Number::Decimal(_))
    }
    pub fn is_zero(self) -> bool {
        match self {
            Number::Int(n) => n == 0,
            Number::Long(n) => n == 0,
            Number::Double(d) => d == 0.0,
            Number::Decimal(d) => d.is_zero(),
        }
    }

    /// `None` when a long overflows.
    pub fn checked_add(self, other: Number) -> Option<Number> {
        self.combine(other, i64::checked_add, |a, b| a + b, |a, b| a + b)
    }
    pub fn checked_sub(self, other: Number) -> Option<Number> {
        self.combine(other, i64::checked_sub, |a, b| a - b, |a, b| a - b)
    }
    pub fn checked_mul(self, other: Number) -> Option<Number> {
        self.combine(other, i64::checked_mul, |a, b| a * b, |a, b| a * b)
    }

    /// Rounded to the nearest (a double's half away from zero, a decimal's to even); `None` when that is no 64-bit number.
    pub fn round_i64(self) -> Option<i64> {
        match self {
            Number::Double(d) => f64_to_i64(d.round()),
            Number::Decimal(d) => d.to_i64(Rounding::HalfEven),
            n => n.integer(),
        }
    }
    /// Cut to a whole number; `None` when that is no 64-bit number.
    pub fn truncate_i64(self) -> Option<i64> {
        match self {
            Number::Double(d) => f64_to_i64(d.trunc()),
            Number::Decimal(d) => d.to_i64(Rounding::TowardZero),
            n => n.integer(),
        }
    }
    /// A whole number as expressions take it: a double is cut, `None` when that does not fit. A decimal is rounded to even, and the
    /// least number there is when that does not fit.
    pub fn coerced_i64(self) -> Option<i64> {
        match self {
            Number::Decimal(d) => Some(d.to_i64(Rounding::HalfEven).unwrap_or(i64::MIN)),
            n => n.truncate_i64(),
        }
    }
    /// As aggregation messages show it: doubles with six digits.
    pub fn shown(self) -> String {
        match self {
            Number::Int(n) => n.to_string(),
            Number::Long(n) => n.to_string(),
            Number::Double(d) => short_double(d),
            Number::Decimal(d) => d.to_string(),
        }
    }

    fn combine(
        self,
        other: Number,
        integer: fn(i64, i64) -> Option<i64>,
        double: fn(f64, f64) -> f64,
        decimal: fn(Decimal128, Decimal128) -> Decimal128,
    ) -> Option<Number> {
        if let (Some(a), Some(b)) = (self.integer(), other.integer()) {
            let n = integer(a, b)?;
            let both_int = matches!((self, other), (Number::Int(_), Number::Int(_)));
            return Some(match i32::try_from(n) {
                Ok(small) if both_int => Number::Int(small),
                _ => Number::Long(n),
            });
        }
        if self.is_decimal() || other.is_decimal() {
            return Some(Number::Decimal(decimal(self.to_decimal(), other.to_decimal())));
        }
        Some(Number::Double(double(self.to_f64(), other.to_f64())))
    }
}

/// Longs that overflow become doubles.
macro_rules! widening {
    ($($trait:ident $method:ident $checked:ident $op:tt;)*) => {
        $(impl $trait for Number {
            type Output = Number;
            fn $method(self, other: Number) -> Number {
                self.$checked(other).unwrap_or_else(|| Number::Double(self.to_f64() $op other.to_f64()))
            }
        })*
    };
}
widening! {
    Add add checked_add +;
    Sub sub checked_sub -;
    Mul mul checked_mul *;
}

/// Always a double or a decimal. The caller has looked for zero.
impl Div for Number {
    type Output = Number;
    fn div(self, other: Number) -> Number {
        if self.is_decimal() || other.is_decimal() {
            return Number::Decimal(self.to_decimal() / other.to_decimal());
        }
        Number::Double(self.to_f64() / other.to_f64())
    }
}

/// The remainder with the sign of the dividend. The caller has looked for zero.
impl Rem for Number {
    type Output = Number;
    fn rem(self, other: Number) -> Number {
        if self.is_decimal() || other.is_decimal() {
            return Number::Decimal(self.to_decimal() % other.to_decimal());
        }
        match (self.integer(), other.integer()) {
            (Some(a), Some(b)) => {
                // i64::MIN % -1 is 0, though the division overflows.
                let n = a.checked_rem(b).unwrap_or(0);
                match (self, other) {
                    (Number::Int(_), Number::Int(_)) => Number::Int(n as i32),
                    _ => Number::Long(n),
                }
            }
            _ => Number::Double(self.to_f64() % other.to_f64()),
        }
    }
}

fn f64_to_i64(d: f64) -> Option<i64> {
    // 2^63 itself is the first double that does not fit.
    const LIMIT: f64 = (1u64 << 63) as f64;
    (-LIMIT..LIMIT).contains(&d).then_some(d as i64)
}

/// C's `%g`: six significant digits.
pub fn short_double(d: f64) -> String {
    if d.is_nan() {
        return "nan".to_owned();
    }
    if d.is_infinite() {
        return if d > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if d == 0.0 {
        return if d.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let scientific = format!("{d:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |s: &str| {
        if s.contains('.') { s.trim_end_matches('0').trim_end_matches('.').to_owned() } else { s.to_owned() }
    };
    if (-4..6).contains(&exponent) {
        return trim(&format!("{d:.*}", (5 - exponent).max(0) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ints_widen_to_long_and_longs_overflow() {
        assert!(matches!(Number::Int(1).checked_add(Number::Int(2)), Some(Number::Int(3))));
        assert!(matches!(
            Number::Int(i32::MAX).checked_add(Number::Int(1)),
            Some(Number::Long(2_147_483_648))
        ));
        assert!(matches!(Number::Long(1).checked_add(Number::Int(1)), Some(Number::Long(2))));
        assert!(Number::Long(i64::MAX).checked_add(Number::Int(1)).is_none());
        assert!(Number::Long(1 << 62).checked_mul(Number::Int(4)).is_none());
    }

    #[test]
    fn a_double_makes_a_double() {
        let n = Number::Int(1).checked_add(Number::Double(1.5));
        assert!(matches!(n, Some(Number::Double(d)) if d == 2.5));
    }
}
