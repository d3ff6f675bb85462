//! Trigonometry, in doubles; decimals are answered as decimals of the double's digits.

use super::math::one_number;
use crate::expr::{Call, Val};
use crate::number::Number;
use pando_base::{Error, Result};
use pando_bson::{Decimal128, Value};

/// Where a function is defined, and how messages write that.
struct Domain {
    low: f64,
    high: f64,
    low_open: bool,
    high_open: bool,
    text: &'static str,
}

const ALL: Domain =
    Domain { low: f64::NEG_INFINITY, high: f64::INFINITY, low_open: false, high_open: false, text: "" };
const FINITE: Domain = Domain { low_open: true, high_open: true, text: "(-inf,inf)", ..ALL };
const UNIT: Domain = Domain { low: -1.0, high: 1.0, text: "[-1,1]", ..ALL };
const FROM_ONE: Domain = Domain { low: 1.0, text: "[1,inf]", ..ALL };

impl Domain {
    fn contains(&self, x: f64) -> bool {
        let above = if self.low_open { x > self.low } else { x >= self.low };
        let below = if self.high_open { x < self.high } else { x <= self.high };
        x.is_nan() || above && below
    }
}

fn apply<'v>(args: &[Val<'v>], call: &Call<'_>, domain: &Domain, f: fn(f64) -> f64) -> Result<Val<'v>> {
    let Some(n) = one_number(args, call)? else { return Ok(Val::NULL) };
    let x = n.to_f64();
    if !domain.contains(x) {
        let shown = if n.is_decimal() { n.shown() } else { Number::Double(x).shown() };
        return Err(Error::location(
            50989,
            format!("cannot apply {} to {shown}, value must be in {}", call.name, domain.text),
        ));
    }
    Ok(result(n.is_decimal(), f(x)))
}

fn result(decimal: bool, x: f64) -> Val<'static> {
    if decimal { Val::Ref(Value::Decimal128(Decimal128::from_f64(x))) } else { Val::double(x) }
}

macro_rules! functions {
    ($($name:ident $domain:ident $f:expr;)*) => {
        $(pub(in crate::expr) fn $name<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
            apply(args, call, &$domain, $f)
        })*
    };
}
functions! {
    sin FINITE f64::sin;
    cos FINITE f64::cos;
    tan FINITE f64::tan;
    asin UNIT f64::asin;
    acos UNIT f64::acos;
    atan ALL f64::atan;
    sinh ALL f64::sinh;
    cosh ALL f64::cosh;
    tanh ALL f64::tanh;
    asinh ALL f64::asinh;
    acosh FROM_ONE f64::acosh;
    atanh UNIT f64::atanh;
    degrees_to_radians ALL |x| x * (std::f64::consts::PI / 180.0);
    radians_to_degrees ALL |x| x * (180.0 / std::f64::consts::PI);
}

pub(in crate::expr) fn atan2<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    if args.iter().any(Val::is_nullish) {
        return Ok(Val::NULL);
    }
    let number = |v: &Val<'_>| v.value().and_then(Number::of);
    match (number(&args[0]), number(&args[1])) {
        (Some(y), Some(x)) => Ok(result(y.is_decimal() || x.is_decimal(), y.to_f64().atan2(x.to_f64()))),
        (None, _) => Err(Error::location(
            51044,
            format!("$atan2 only supports numeric types, not {}", args[0].type_name()),
        )),
        _ => Err(Error::location(
            51045,
            format!("$atan2 only supports numeric types, not {}", args[1].type_name()),
        )),
    }
}
