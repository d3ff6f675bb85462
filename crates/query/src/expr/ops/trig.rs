//! Trigonometry: doubles as the C library has them, decimals with 34 digits.

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
    fn contains_decimal(&self, x: Decimal128) -> bool {
        let side = |end: f64| x.total_cmp(Decimal128::from_f64_precise(end));
        let (from_low, to_high) = (side(self.low), side(self.high));
        let above = if self.low_open { from_low.is_gt() } else { from_low.is_ge() };
        let below = if self.high_open { to_high.is_lt() } else { to_high.is_le() };
        x.is_nan() || above && below
    }
}

fn apply<'v>(
    args: &[Val<'v>],
    call: &Call<'_>,
    domain: &Domain,
    f: fn(f64) -> f64,
    decimal: fn(Decimal128) -> Decimal128,
) -> Result<Val<'v>> {
    let Some(n) = one_number(args, call)? else { return Ok(Val::NULL) };
    // The ends of the domains are exact in doubles, so a decimal is looked at in its own type.
    let x = n.to_f64();
    let inside = match n {
        Number::Decimal(d) => domain.contains_decimal(d),
        _ => domain.contains(x),
    };
    if !inside {
        let shown = if n.is_decimal() { n.shown() } else { Number::Double(x).shown() };
        return Err(Error::location(
            50989,
            format!("cannot apply {} to {shown}, value must be in {}", call.name, domain.text),
        ));
    }
    Ok(match n {
        Number::Decimal(d) => Val::Ref(Value::Decimal128(decimal(d))),
        _ => Val::double(f(x)),
    })
}

macro_rules! functions {
    ($($name:ident $domain:ident $f:expr, $decimal:ident;)*) => {
        $(pub(in crate::expr) fn $name<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
            apply(args, call, &$domain, $f, Decimal128::$decimal)
        })*
    };
}
functions! {
    sin FINITE f64::sin, sin;
    cos FINITE f64::cos, cos;
    tan FINITE f64::tan, tan;
    asin UNIT f64::asin, asin;
    acos UNIT f64::acos, acos;
    atan ALL f64::atan, atan;
    sinh ALL f64::sinh, sinh;
    cosh ALL f64::cosh, cosh;
    tanh ALL f64::tanh, tanh;
    asinh ALL double_asinh, asinh;
    acosh FROM_ONE double_acosh, acosh;
    atanh UNIT f64::atanh, atanh;
    degrees_to_radians ALL |x| x * (std::f64::consts::PI / 180.0), to_radians;
    radians_to_degrees ALL |x| x * (180.0 / std::f64::consts::PI), to_degrees;
}

/// From here on 1 is nothing beside x².
const LARGE: f64 = (1u64 << 28) as f64;

/// As C libraries compute it: nothing overflows, and no digits are lost near zero.
fn double_asinh(x: f64) -> f64 {
    let size = x.abs();
    let out = if !size.is_finite() || size < 1.0 / LARGE {
        return x;
    } else if size > LARGE {
        size.ln() + std::f64::consts::LN_2
    } else if size > 2.0 {
        (2.0 * size + 1.0 / ((x * x + 1.0).sqrt() + size)).ln()
    } else {
        (size + x * x / (1.0 + (1.0 + x * x).sqrt())).ln_1p()
    };
    out.copysign(x)
}

/// The same for x ≥ 1.
fn double_acosh(x: f64) -> f64 {
    if x >= LARGE {
        x.ln() + std::f64::consts::LN_2
    } else if x > 2.0 {
        (2.0 * x - 1.0 / (x + (x * x - 1.0).sqrt())).ln()
    } else {
        let beyond = x - 1.0;
        (beyond + (2.0 * beyond + beyond * beyond).sqrt()).ln_1p()
    }
}

pub(in crate::expr) fn atan2<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    if args[0].is_nullish() {
        return Ok(Val::NULL);
    }
    let number = |v: &Val<'_>| v.value().and_then(Number::of);
    match (number(&args[0]), number(&args[1])) {
        (Some(_), None) if args[1].is_nullish() => Ok(Val::NULL),
        (Some(y), Some(x)) if y.is_decimal() || x.is_decimal() => {
            Ok(Val::Ref(Value::Decimal128(y.to_decimal().atan2(x.to_decimal()))))
        }
        (Some(y), Some(x)) => Ok(Val::double(y.to_f64().atan2(x.to_f64()))),
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
