//! Arrays as values: `$arrayElemAt`, `$first`, `$last`, `$concatArrays`, `$in`, `$indexOfArray`, `$isArray`,
//! `$range`, `$reverseArray`, `$size`, `$slice`.

use super::set::ArraysExpected;
use crate::expr::{Call, Expr, Held, Nary, ParseCtx, Steps, Val, shown};
use crate::matcher::exact_i64;
use crate::number::Number;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{ArrayBuilder, RawDoc, Value};

/// A number with a whole 32-bit value.
pub(super) fn exact_i32(v: &Val<'_>) -> Option<i32> {
    v.value().and_then(exact_i64).and_then(|n| i32::try_from(n).ok())
}

fn is_number(v: &Val<'_>) -> bool {
    v.value().and_then(Number::of).is_some()
}

/// The element at a position, from the end when negative.
fn at<'v>(array: &Val<'v>, index: i64) -> Val<'v> {
    let Some(a) = array.as_array() else { return Val::Missing };
    let index = if index < 0 { a.count() as i64 + index } else { index };
    let Ok(index) = usize::try_from(index) else { return Val::Missing };
    match array {
        // Borrowed arrays outlive this call, so their elements may be borrowed too.
        Val::Ref(Value::Array(a)) => Val::option(a.iter().nth(index).map(|e| e.value())),
        _ => Val::option(a.iter().nth(index).map(|e| e.value())).into_owned(),
    }
}

pub(in crate::expr) fn array_elem_at<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    if args.iter().any(Val::is_nullish) {
        return Ok(Val::NULL);
    }
    let (array, index) = (&args[0], &args[1]);
    if array.as_array().is_none() {
        return Err(Error::location(
            28689,
            format!("$arrayElemAt's first argument must be an array, but is {}", array.type_name()),
        ));
    }
    if !is_number(index) {
        return Err(Error::location(
            28690,
            format!("$arrayElemAt's second argument must be a numeric value, but is {}", index.type_name()),
        ));
    }
    let Some(i) = exact_i32(index) else {
        return Err(Error::location(
            28691,
            format!(
                "$arrayElemAt's second argument must be representable as a 32-bit integer: {}",
                shown(index)
            ),
        ));
    };
    Ok(at(array, i.into()))
}

fn end<'v>(args: &[Val<'v>], call: &Call<'_>, index: i64) -> Result<Val<'v>> {
    if args[0].is_nullish() {
        return Ok(Val::NULL);
    }
    if args[0].as_array().is_none() {
        return Err(Error::location(
            28689,
            format!("{}'s argument must be an array, but is {}", call.name, args[0].type_name()),
        ));
    }
    Ok(at(&args[0], index))
}

pub(in crate::expr) fn first<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    end(args, call, 0)
}
pub(in crate::expr) fn last<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    end(args, call, -1)
}

pub(in crate::expr) fn concat_arrays<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    let (mut out, mut held) = (ArrayBuilder::new(), Held::default());
    for arg in args {
        if arg.is_nullish() {
            return Ok(Val::NULL);
        }
        let Some(a) = arg.as_array() else {
            return Err(Error::location(
                28664,
                format!("$concatArrays only supports arrays, not {}", arg.type_name()),
            ));
        };
        held.grow_to(out.byte_len() + a.byte_len(), a.byte_len())?;
        for e in a {
            out.raw(e.ty, e.data());
        }
    }
    Ok(Val::Array(out.finish()))
}

pub(in crate::expr) fn is_in<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    let Some(a) = args[1].as_array() else {
        return Err(Error::location(
            40081,
            format!("$in requires an array as a second argument, found: {}", args[1].type_name()),
        ));
    };
    let found = match args[0].value() {
        Some(v) => a.iter().any(|e| call.ctx.compare(e.value(), v).is_eq()),
        None => false,
    };
    Ok(Val::bool(found))
}

/// Start and end of an `$indexOf…`: whole, not negative.
pub(super) fn search_range(args: &[Val<'_>], name: &str) -> Result<(usize, Option<usize>)> {
    let bound = |v: &Val<'_>, which: &str| -> Result<usize> {
        let Some(n) = exact_i32(v) else {
            return Err(Error::location(
                40096,
                format!(
                    "{name}requires an integral {which} index, found a value of type: {}, with value: {}",
                    v.type_name(),
                    shown(v)
                ),
            ));
        };
        usize::try_from(n).map_err(|_| {
            Error::location(
                40097,
                format!("{name} requires a nonnegative {which} index, found: {}", shown(v)),
            )
        })
    };
    let start = args.get(2).map(|v| bound(v, "starting")).transpose()?.unwrap_or(0);
    let end = args.get(3).map(|v| bound(v, "ending")).transpose()?;
    Ok((start, end))
}

pub(in crate::expr) fn parse_index_of_array(
    name: &'static str,
    v: Value<'_>,
    p: &mut ParseCtx<'_>,
) -> Result<Expr> {
    let args = p.args(name, v, 2, 4)?;
    let wrong = |args: &[Expr]| {
        let v = args.first()?.as_const().filter(|v| !v.is_nullish() && v.as_array().is_none())?;
        let kind = v.type_name();
        Some(format!("First operand of $indexOfArray must be an array. First argument is of type: {kind}"))
    };
    let expr = Expr::Nary(Nary::new(name, index_of_array, args).stepwise(Steps::Numbers));
    Ok(ArraysExpected {
        code: 50809,
        wrong,
        folds_first: true,
        constants_first: false,
        last_known: None,
        expr,
    }
    .into())
}

fn index_of_array<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    if args[0].is_nullish() {
        return Ok(Val::NULL);
    }
    let Some(a) = args[0].as_array() else {
        return Err(Error::location(
            40090,
            format!("$indexOfArray requires an array as a first argument, found: {}", args[0].type_name()),
        ));
    };
    let (start, end) = search_range(args, call.name)?;
    let Some(wanted) = args[1].value() else { return Ok(Val::int(-1)) };
    let found = a
        .iter()
        .enumerate()
        .take(end.unwrap_or(usize::MAX))
        .skip(start)
        .find(|(_, e)| call.ctx.compare(e.value(), wanted).is_eq());
    Ok(found.map_or(Val::int(-1), |(i, _)| Val::count(i)))
}

pub(in crate::expr) fn is_array<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    Ok(Val::bool(args[0].as_array().is_some()))
}

pub(in crate::expr) fn range<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    let whole = |v: &Val<'_>, code: i32, which: &str, article: &str| -> Result<i64> {
        if !is_number(v) {
            return Err(Error::location(
                code,
                format!("$range requires a numeric {which} value, found value of type: {}", v.type_name()),
            ));
        }
        exact_i32(v).map(i64::from).ok_or_else(|| {
            Error::location(
                code + 1,
                format!(
                    "$range requires {article} {which} value that can be represented as a 32-bit integer, found value: {}",
                    shown(v)
                ),
            )
        })
    };
    let start = whole(&args[0], 34443, "starting", "a")?;
    let stop = whole(&args[1], 34445, "ending", "an")?;
    let step = args.get(2).map(|v| whole(v, 34447, "step", "a")).transpose()?.unwrap_or(1);
    if step == 0 {
        return Err(Error::location(34449, "$range requires a non-zero step value"));
    }
    let length = if (step > 0) == (stop > start) { (stop - start).abs() / step.abs() } else { 0 };
    // As MongoDB counts: so much for the array, and for each value.
    let (bytes, max) = (40 + 16 * length as usize, call.ctx.memory.range);
    if bytes > max {
        return Err(Error::new(
            ErrorCode::ExceededMemoryLimit,
            format!(
                "$range would use too much memory ({bytes} bytes) and cannot spill to disk. Memory limit: {max} bytes"
            ),
        ));
    }
    let (mut out, mut held) = (ArrayBuilder::new(), Held::default());
    let mut n = start;
    while if step > 0 { n < stop } else { n > stop } {
        held.grow_to(out.byte_len(), 0)?;
        // Both ends are 32-bit, so everything between is.
        out.value(Value::Int32(n as i32));
        n += step;
    }
    Ok(Val::Array(out.finish()))
}

pub(in crate::expr) fn reverse_array<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    if args[0].is_nullish() {
        return Ok(Val::NULL);
    }
    let Some(a) = args[0].as_array() else {
        return Err(Error::location(
            34435,
            format!(
                "The argument to {} must be an array, but was of type: {}",
                call.name,
                args[0].type_name()
            ),
        ));
    };
    let elements: Vec<_> = a.iter().collect();
    let mut out = ArrayBuilder::new();
    for e in elements.into_iter().rev() {
        out.raw(e.ty, e.data());
    }
    Ok(Val::Array(out.finish()))
}

pub(in crate::expr) fn size<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    match args[0].as_array() {
        Some(a) => Ok(Val::count(a.count())),
        None => Err(Error::location(
            17124,
            format!("The argument to $size must be an array, but was of type: {}", args[0].type_name()),
        )),
    }
}

fn sub_array(a: &RawDoc, start: usize, len: usize) -> Val<'static> {
    let mut out = ArrayBuilder::new();
    for e in a.iter().skip(start).take(len) {
        out.raw(e.ty, e.data());
    }
    Val::Array(out.finish())
}

pub(in crate::expr) fn slice<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    if args[..2].iter().any(Val::is_nullish) {
        return Ok(Val::NULL);
    }
    let Some(a) = args[0].as_array() else {
        return Err(Error::location(
            28724,
            format!("First argument to $slice must be an array, but is of type: {}", args[0].type_name()),
        ));
    };
    let whole = |v: &Val<'_>, code: i32, which: &str| -> Result<i64> {
        if !is_number(v) {
            return Err(Error::location(
                code,
                format!(
                    "{which} argument to $slice must be a numeric value, but is of type: {}",
                    v.type_name()
                ),
            ));
        }
        exact_i32(v).map(i64::from).ok_or_else(|| {
            Error::location(
                code + 1,
                format!("{which} argument to $slice can't be represented as a 32-bit integer: {}", shown(v)),
            )
        })
    };
    let second = whole(&args[1], 28725, "Second")?;
    let len = a.count() as i64;
    let Some(third) = args.get(2) else {
        let n = second.unsigned_abs() as usize;
        return Ok(if second >= 0 {
            sub_array(a, 0, n)
        } else {
            sub_array(a, (len + second).max(0) as usize, n)
        });
    };
    if third.is_nullish() {
        return Ok(Val::NULL);
    }
    let n = whole(third, 28727, "Third")?;
    if n <= 0 {
        return Err(Error::location(
            28729,
            format!("Third argument to $slice must be positive: {}", shown(third)),
        ));
    }
    let start = if second < 0 { (len + second).max(0) } else { second };
    Ok(sub_array(a, start as usize, n as usize))
}
