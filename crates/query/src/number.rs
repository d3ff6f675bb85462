//! Arithmetic over MongoDB's four number types, with its promotions.
//!
//! int with int is int and widens to long when it must; anything with a double is double; anything with a
//! decimal is decimal. What happens when a long overflows differs by caller: updates refuse, expressions
//! widen to double.

use pando_bson::{Decimal128, Value};

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
            Number::Decimal(d) => decimal::to_f64(d),
        }
    }
    /// Doubles keep 15 significant digits.
    pub fn to_decimal(self) -> Decimal128 {
        match self {
            Number::Int(n) => Decimal128::from_i64(n.into()),
            Number::Long(n) => Decimal128::from_i64(n),
            Number::Double(d) => decimal::from_f64(d),
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
        self.combine(other, i64::checked_add, |a, b| a + b, decimal::add)
    }
    pub fn checked_sub(self, other: Number) -> Option<Number> {
        self.combine(other, i64::checked_sub, |a, b| a - b, decimal::sub)
    }
    pub fn checked_mul(self, other: Number) -> Option<Number> {
        self.combine(other, i64::checked_mul, |a, b| a * b, decimal::mul)
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

/// Decimal arithmetic, as far as it is there: what is not gives NaN.
mod decimal {
    use pando_bson::Decimal128;

    pub(super) fn to_f64(_: Decimal128) -> f64 {
        f64::NAN
    }
    pub(super) fn from_f64(_: f64) -> Decimal128 {
        Decimal128::NAN
    }
    pub(super) fn add(_: Decimal128, _: Decimal128) -> Decimal128 {
        Decimal128::NAN
    }
    pub(super) fn sub(_: Decimal128, _: Decimal128) -> Decimal128 {
        Decimal128::NAN
    }
    pub(super) fn mul(_: Decimal128, _: Decimal128) -> Decimal128 {
        Decimal128::NAN
    }
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
