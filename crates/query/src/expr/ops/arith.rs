//! `$add`, `$subtract`, `$multiply`, `$divide`, `$mod`.
//!
//! Integers that overflow 64 bits become doubles. Dates add and subtract milliseconds.

use crate::accumulator::sum::Total;
use crate::expr::{Call, Val};
use crate::number::Number;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::Value;

pub(in crate::expr) fn add<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    let mut sum = Total::default();
    let mut date: Option<i64> = None;
    for arg in args {
        match arg.value() {
            None | Some(Value::Null | Value::Undefined) => return Ok(Val::NULL),
            Some(Value::DateTime(ms)) => {
                if date.is_some() {
                    return Err(Error::location(16612, "only one date allowed in an $add expression"));
                }
                date = Some(ms);
            }
            Some(v) => match Number::of(v) {
                Some(n) => sum.add(n),
                None => {
                    return Err(Error::location(
                        16554,
                        format!("$add only supports numeric or date types, not {}", v.type_name()),
                    ));
                }
            },
        }
    }
    match date {
        None => Ok(Val::Ref(sum.number().value())),
        Some(ms) => {
            let overflow = || Error::new(ErrorCode::Overflow, "date overflow in $add");
            sum.add(Number::Long(ms));
            Ok(Val::date(sum.milliseconds().ok_or_else(overflow)?))
        }
    }
}

pub(in crate::expr) fn subtract<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    if args.iter().any(Val::is_nullish) {
        return Ok(Val::NULL);
    }
    let (a, b) = (&args[0], &args[1]);
    match (a.value(), b.value()) {
        (Some(Value::DateTime(x)), Some(Value::DateTime(y))) => match x.checked_sub(y) {
            Some(ms) => Ok(Val::long(ms)),
            None => Err(Error::new(ErrorCode::Overflow, "date overflow in $subtract")),
        },
        (Some(Value::DateTime(x)), Some(v)) if v.is_number() => {
            let failed = |text: String| Error::new(ErrorCode::DurationOverflow, text);
            let offset = to_long(v)?.checked_neg();
            let offset = offset.ok_or_else(|| failed("Cannot negate the minimum duration".into()))?;
            let overflow =
                || failed(format!("Overflow while adding {offset}ms to {}ms", x.wrapping_add(offset)));
            Ok(Val::date(x.checked_add(offset).ok_or_else(overflow)?))
        }
        (Some(x), Some(y)) => match (Number::of(x), Number::of(y)) {
            (Some(x), Some(y)) => Ok(Val::Ref((x - y).value())),
            _ => {
                Err(Error::type_mismatch(format!("can't $subtract {} from {}", y.type_name(), x.type_name())))
            }
        },
        _ => Ok(Val::NULL),
    }
}

/// A number as milliseconds; code 31109 when it does not fit.
fn to_long(v: Value<'_>) -> Result<i64> {
    let n = Number::of(v).unwrap_or(Number::Int(0));
    n.coerced_i64().ok_or_else(|| {
        Error::location(31109, format!("Can't coerce out of range value {} to long", n.shown()))
    })
}

pub(in crate::expr) fn multiply<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    let mut product = Number::Int(1);
    let mut null = false;
    for arg in args {
        match arg.value() {
            None | Some(Value::Null | Value::Undefined) => null = true,
            Some(v) => match Number::of(v) {
                Some(n) => product = product * n,
                None => {
                    return Err(Error::type_mismatch(format!(
                        "$multiply only supports numeric types, not {}",
                        v.type_name()
                    )));
                }
            },
        }
        if null {
            return Ok(Val::NULL);
        }
    }
    Ok(Val::Ref(product.value()))
}

/// Both arguments as numbers; `None` when one is nullish.
fn two_numbers(
    args: &[Val<'_>],
    not_numbers: impl FnOnce(String) -> Error,
) -> Result<Option<(Number, Number)>> {
    let (Some(a), Some(b)) = (args[0].value(), args[1].value()) else { return Ok(None) };
    match (Number::of(a), Number::of(b)) {
        (Some(x), Some(y)) => Ok(Some((x, y))),
        _ if args.iter().any(Val::is_nullish) => Ok(None),
        _ => Err(not_numbers(format!(
            "only supports numeric types, not {} and {}",
            a.type_name(),
            b.type_name()
        ))),
    }
}

pub(in crate::expr) fn divide<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    let Some((a, b)) = two_numbers(args, |text| Error::type_mismatch(format!("$divide {text}")))? else {
        return Ok(Val::NULL);
    };
    if b.is_zero() {
        return Err(Error::bad_value("can't $divide by zero"));
    }
    Ok(Val::Ref((a / b).value()))
}

pub(in crate::expr) fn modulo<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    let Some((a, b)) = two_numbers(args, |text| Error::location(16611, format!("$mod {text}")))? else {
        return Ok(Val::NULL);
    };
    if b.is_zero() {
        let code = if a.is_decimal() || b.is_decimal() { 5_733_415 } else { 16610 };
        return Err(Error::location(code, "can't $mod by zero"));
    }
    Ok(Val::Ref((a % b).value()))
}
