//! `$mod: [divisor, remainder]`, on numbers cut to integers.

use super::number::{decimal_not_finite, decimal_parts};
use pando_base::{Error, Result};
use pando_bson::{Elem, Value};

#[derive(Clone, Copy, Debug)]
pub struct Modulo {
    pub divisor: i64,
    pub remainder: i64,
}

/// The integral part, or why there is none.
fn truncated(v: Value<'_>) -> Result<i64, &'static str> {
    const NOT_FINITE: &str = "Unable to coerce NaN/Inf to integral type";
    const TOO_LARGE: &str = "Out of bounds coercing to integral value";
    match v {
        Value::Double(d) if !d.is_finite() => Err(NOT_FINITE),
        Value::Double(d) => {
            let d = d.trunc();
            if (-9.223_372_036_854_775_808e18..9.223_372_036_854_775_808e18).contains(&d) {
                Ok(d as i64)
            } else {
                Err(TOO_LARGE)
            }
        }
        Value::Decimal128(d) if decimal_not_finite(d) => Err(NOT_FINITE),
        Value::Decimal128(d) => decimal_parts(d).map(|(n, _)| n).ok_or(TOO_LARGE),
        other => other.as_i64().ok_or(NOT_FINITE),
    }
}

impl Modulo {
    pub(crate) fn parse(arg: Value<'_>) -> Result<Modulo> {
        let Value::Array(items) = arg else {
            return Err(Error::bad_value("malformed mod, needs to be an array"));
        };
        let mut items = items.iter().map(|e| e.value());
        let (d, r) = match (items.next(), items.next()) {
            (Some(d), Some(r)) => (d, r),
            (Some(d), None) if !d.is_number() => {
                return Err(Error::bad_value("malformed mod, divisor not a number"));
            }
            _ => return Err(Error::bad_value("malformed mod, not enough elements")),
        };
        if items.next().is_some() {
            return Err(Error::bad_value("malformed mod, too many elements"));
        }
        let number = |v: Value<'_>, what: &str| {
            if !v.is_number() {
                return Err(Error::bad_value(format!("malformed mod, {what} not a number")));
            }
            truncated(v).map_err(|why| {
                Error::bad_value(format!("malformed mod, {what} value is invalid :: caused by :: {why}"))
            })
        };
        let divisor = number(d, "divisor")?;
        let remainder = number(r, "remainder")?;
        if divisor == 0 {
            return Err(Error::bad_value("divisor cannot be 0"));
        }
        Ok(Modulo { divisor, remainder })
    }

    #[inline]
    pub(crate) fn test(&self, e: Option<&Elem<'_>>) -> bool {
        let Some(v) = e.map(|e| e.value()) else { return false };
        // wrapping: i64::MIN % -1 is 0.
        v.is_number() && truncated(v).is_ok_and(|n| n.wrapping_rem(self.divisor) == self.remainder)
    }
}
