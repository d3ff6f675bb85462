//! `$abs`, `$ceil`, `$floor`, `$exp`, `$ln`, `$log`, `$log10`, `$pow`, `$sqrt`, `$round`, `$trunc`, and the 7.0
//! bit operators.

use crate::expr::{Call, Val, shown};
use crate::number::Number;
use pando_base::{Error, Result};
use pando_bson::decimal128::Rounding;
use pando_bson::{Decimal128, Value};

/// The only argument as a number; `None` when nullish, code 28765 when something else.
pub(super) fn one_number(args: &[Val<'_>], call: &Call<'_>) -> Result<Option<Number>> {
    if args[0].is_nullish() {
        return Ok(None);
    }
    match args[0].value().and_then(Number::of) {
        Some(n) => Ok(Some(n)),
        None => Err(Error::location(
            28765,
            format!("{} only supports numeric types, not {}", call.name, args[0].type_name()),
        )),
    }
}

pub(super) fn number(n: Number) -> Val<'static> {
    Val::Ref(n.value())
}

fn decimal(d: Decimal128) -> Val<'static> {
    Val::Ref(Value::Decimal128(d))
}

pub(in crate::expr) fn abs<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    Ok(match one_number(args, call)? {
        None => Val::NULL,
        Some(Number::Int(n)) => match n.checked_abs() {
            Some(n) => Val::int(n),
            None => Val::long(i64::from(n).abs()),
        },
        Some(Number::Long(n)) => match n.checked_abs() {
            Some(n) => Val::long(n),
            None => return Err(Error::location(28680, "can't take $abs of long long min")),
        },
        Some(Number::Double(d)) => Val::double(d.abs()),
        Some(Number::Decimal(d)) => decimal(d.abs()),
    })
}

fn whole<'v>(
    args: &[Val<'v>],
    call: &Call<'_>,
    double: fn(f64) -> f64,
    dec: fn(Decimal128) -> Decimal128,
) -> Result<Val<'v>> {
    Ok(match one_number(args, call)? {
        None => Val::NULL,
        Some(Number::Double(d)) => Val::double(double(d)),
        Some(Number::Decimal(d)) => decimal(dec(d)),
        Some(n) => number(n),
    })
}

pub(in crate::expr) fn ceil<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    whole(args, call, f64::ceil, |d| whole_decimal(d, Decimal128::ceil))
}
pub(in crate::expr) fn floor<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    whole(args, call, f64::floor, |d| whole_decimal(d, Decimal128::floor))
}

/// With its last digit in front of the point; NaN where 34 digits do not reach down to it.
fn whole_decimal(d: Decimal128, how: fn(Decimal128) -> Decimal128) -> Decimal128 {
    let ten_to_the_34 = Decimal128::from_i64(10).pow(Decimal128::from_i64(34));
    if d.is_finite() && d.abs().total_cmp(ten_to_the_34).is_lt() { how(d) } else { Decimal128::NAN }
}

pub(in crate::expr) fn exp<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    Ok(match one_number(args, call)? {
        None => Val::NULL,
        Some(Number::Decimal(d)) => decimal(d.exp()),
        Some(n) => Val::double(n.to_f64().exp()),
    })
}

/// Above zero, or NaN.
fn is_positive(n: Number) -> bool {
    match n {
        Number::Decimal(d) => d.is_nan() || d.signum() == Some(1),
        n => {
            let x = n.to_f64();
            x.is_nan() || x > 0.0
        }
    }
}

/// As messages show an argument that was taken as a double.
fn as_double(n: Number) -> String {
    match n {
        Number::Decimal(_) => n.shown(),
        n => Number::Double(n.to_f64()).shown(),
    }
}

fn logarithm<'v>(
    args: &[Val<'v>],
    call: &Call<'_>,
    code: i32,
    double: fn(f64) -> f64,
    dec: fn(Decimal128) -> Decimal128,
) -> Result<Val<'v>> {
    let Some(n) = one_number(args, call)? else { return Ok(Val::NULL) };
    if !is_positive(n) {
        return Err(Error::location(
            code,
            format!("{}'s argument must be a positive number, but is {}", call.name, as_double(n)),
        ));
    }
    Ok(match n {
        // A double, as MongoDB has it.
        Number::Decimal(d) if d.is_nan() => Val::double(f64::NAN),
        Number::Decimal(d) => decimal(dec(d)),
        n => Val::double(double(n.to_f64())),
    })
}

pub(in crate::expr) fn ln<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    logarithm(args, call, 28766, f64::ln, Decimal128::ln)
}
pub(in crate::expr) fn log10<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    logarithm(args, call, 28761, f64::log10, Decimal128::log10)
}

pub(in crate::expr) fn log<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    if args.iter().any(Val::is_nullish) {
        return Ok(Val::NULL);
    }
    let numeric = |v: &Val<'_>, code, which: &str| {
        v.value().and_then(Number::of).ok_or_else(|| {
            Error::location(code, format!("$log's {which} must be numeric, not {}", v.type_name()))
        })
    };
    let x = numeric(&args[0], 28756, "argument")?;
    let base = numeric(&args[1], 28757, "base")?;
    // Decimals that have a logarithm are taken as they are, and all others are looked at as doubles.
    if (x.is_decimal() || base.is_decimal())
        && let Some(d) = decimal_log(x.to_decimal(), base.to_decimal())
    {
        return Ok(decimal(d));
    }
    if !is_positive(Number::Double(x.to_f64())) {
        return Err(Error::location(
            28758,
            format!(
                "$log's argument must be a positive number, but is {}",
                Number::Double(x.to_f64()).shown()
            ),
        ));
    }
    if !is_positive(Number::Double(base.to_f64())) || base.to_f64() == 1.0 {
        return Err(Error::location(
            28759,
            format!(
                "$log's base must be a positive number not equal to 1, but is {}",
                Number::Double(base.to_f64()).shown()
            ),
        ));
    }
    Ok(Val::double(x.to_f64().ln() / base.to_f64().ln()))
}

/// `None` when either is not of the kind that has one.
fn decimal_log(x: Decimal128, base: Decimal128) -> Option<Decimal128> {
    let is_base = |n: i64| base.total_cmp(Decimal128::from_i64(n)).is_eq();
    if [x, base].iter().any(|d| d.is_nan() || d.signum() != Some(1)) || is_base(1) {
        return None;
    }
    // To another base MongoDB divides by the base itself, and so it is here.
    Some(match () {
        () if is_base(2) => x.log2(),
        () if is_base(10) => x.log10(),
        () => x.ln() / base,
    })
}

pub(in crate::expr) fn pow<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    if args.iter().any(Val::is_nullish) {
        return Ok(Val::NULL);
    }
    let numeric = |v: &Val<'_>, code, which: &str| {
        v.value().and_then(Number::of).ok_or_else(|| {
            Error::location(code, format!("$pow's {which} must be numeric, not {}", v.type_name()))
        })
    };
    let base = numeric(&args[0], 28762, "base")?;
    let exponent = numeric(&args[1], 28763, "exponent")?;
    let negative = match exponent {
        Number::Decimal(d) => d.signum() == Some(-1) || d.is_nan() && d.is_sign_negative(),
        n => n.to_f64() < 0.0,
    };
    if base.is_zero() && negative {
        return Err(Error::location(28764, "$pow cannot take a base of 0 and a negative exponent"));
    }
    if base.is_decimal() || exponent.is_decimal() {
        return Ok(decimal(base.to_decimal().pow(exponent.to_decimal())));
    }
    let float = || Val::double(base.to_f64().powf(exponent.to_f64()));
    let both_int = matches!((base, exponent), (Number::Int(_), Number::Int(_)));
    let (b, e) = match (base, exponent) {
        (Number::Double(_), _) | (_, Number::Double(_)) => return Ok(float()),
        (b, e) => (b.truncate_i64().unwrap_or(0), e.truncate_i64().unwrap_or(0)),
    };
    let exact = match (b, e) {
        (1, _) => Some(1),
        (-1, e) => Some(if e % 2 == 0 { 1 } else { -1 }),
        (_, e) if e < 0 => None,
        (b, e) => u32::try_from(e).ok().and_then(|e| b.checked_pow(e)),
    };
    Ok(match exact {
        None => float(),
        Some(n) => match i32::try_from(n) {
            Ok(n) if both_int => Val::int(n),
            _ => Val::long(n),
        },
    })
}

pub(in crate::expr) fn sqrt<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    let Some(n) = one_number(args, call)? else { return Ok(Val::NULL) };
    let negative = match n {
        Number::Decimal(d) => d.signum() == Some(-1),
        n => n.to_f64() < 0.0,
    };
    if negative {
        return Err(Error::location(28714, "$sqrt's argument must be greater than or equal to 0"));
    }
    Ok(match n {
        Number::Decimal(d) => decimal(d.sqrt()),
        n => Val::double(n.to_f64().sqrt()),
    })
}

/// Decimal places that `$round` and `$trunc` accept.
const PLACES: std::ops::RangeInclusive<i64> = -20..=100;

fn to_places<'v>(args: &[Val<'v>], call: &Call<'_>, how: Rounding) -> Result<Val<'v>> {
    if args[0].is_nullish() {
        return Ok(Val::NULL);
    }
    let Some(n) = args[0].value().and_then(Number::of) else {
        return Err(Error::location(
            51081,
            format!("{} only supports numeric types, not {}", call.name, args[0].type_name()),
        ));
    };
    let places = match args.get(1) {
        None => 0,
        Some(p) if p.is_nullish() => return Ok(Val::NULL),
        Some(p) => {
            let Some(number) = p.value().and_then(Number::of) else {
                return Err(Error::location(
                    16004,
                    format!("can't convert from BSON type {} to long", p.type_name()),
                ));
            };
            if let (Number::Double(_), None) = (number, number.truncate_i64()) {
                return Err(Error::location(
                    31109,
                    format!("Can't coerce out of range value {} to long", number.shown()),
                ));
            }
            let exact = p.value().and_then(crate::matcher::exact_i64);
            let Some(exact) = exact.filter(|n| i32::try_from(*n).is_ok()) else {
                return Err(Error::location(
                    51082,
                    format!("precision argument to  {} must be a integral value", call.name),
                ));
            };
            if !PLACES.contains(&exact) {
                return Err(Error::location(
                    51083,
                    format!(
                        "cannot apply {} with precision value {exact} value must be in [-20, 100]",
                        call.name
                    ),
                ));
            }
            exact as i32
        }
    };
    Ok(match n {
        Number::Decimal(d) => decimal(if d.is_finite() { d.round_to(places, how) } else { d }),
        Number::Double(x) if !x.is_finite() => Val::double(x),
        Number::Double(x) if places == 0 => Val::double(match how {
            Rounding::TowardZero => x.trunc(),
            _ => x.round_ties_even(),
        }),
        Number::Double(x) => Val::double(Decimal128::from_f64_precise(x).round_to(places, how).to_f64()),
        n if places >= 0 => number(n),
        n => {
            let rounded = n.to_decimal().round_to(places, how);
            match (n, rounded.to_i64(Rounding::TowardZero)) {
                (Number::Int(_), Some(r)) => i32::try_from(r).map_or(Val::long(r), Val::int),
                (_, Some(r)) => Val::long(r),
                (_, None) => Val::double(rounded.to_f64()),
            }
        }
    })
}

pub(in crate::expr) fn round<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    to_places(args, call, Rounding::HalfEven)
}
pub(in crate::expr) fn trunc<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    to_places(args, call, Rounding::TowardZero)
}

fn bits<'v>(args: &[Val<'v>], call: &Call<'_>, start: i64, fold: fn(i64, i64) -> i64) -> Result<Val<'v>> {
    let (mut acc, mut long) = (start, false);
    for arg in args {
        match arg.value() {
            None | Some(Value::Null | Value::Undefined) => return Ok(Val::NULL),
            Some(Value::Int32(n)) => acc = fold(acc, n.into()),
            Some(Value::Int64(n)) => {
                acc = fold(acc, n);
                long = true;
            }
            Some(_) => {
                return Err(Error::type_mismatch(format!(
                    "{} only supports int and long operands.",
                    call.name
                )));
            }
        }
    }
    Ok(if long { Val::long(acc) } else { Val::int(acc as i32) })
}

pub(in crate::expr) fn bit_and<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    bits(args, call, -1, |a, b| a & b)
}
pub(in crate::expr) fn bit_or<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    bits(args, call, 0, |a, b| a | b)
}
pub(in crate::expr) fn bit_xor<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    bits(args, call, 0, |a, b| a ^ b)
}
pub(in crate::expr) fn bit_not<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    Ok(match one_number(args, call)? {
        None => Val::NULL,
        Some(Number::Int(n)) => Val::int(!n),
        Some(Number::Long(n)) => Val::long(!n),
        Some(n) => {
            return Err(Error::location(
                28765,
                format!("$bitNot only supports int and long, not: {}.", shown(&number(n))),
            ));
        }
    })
}
