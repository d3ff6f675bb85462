//! The specification of `$setWindowFields`, and the table of window functions.

use super::asked::{Asked, What};
use super::bounds::{Bound, Bounds};
use super::exp_moving_avg::Alpha;
use super::rank::Kind;
use super::{Output, WindowFields};
use crate::accumulator;
use crate::date::Unit;
use crate::expr::{Expr, FieldPath, ParseCtx, Val, optimize_error};
use crate::matcher::exact_i64;
use crate::names::PathSet;
use crate::number::Number;
use crate::sort::SortPattern;
use crate::stage::parsed::Compiled;
use pando_base::{Error, Result};
use pando_bson::compare::cmp_values;
use pando_bson::{Elem, RawDoc, Value};

/// One field of `output`.
struct Field<'a> {
    name: &'a str,
    function: Elem<'a>,
    window: Option<Elem<'a>>,
    sort: Option<&'a SortPattern>,
}

type Parse = fn(&Field<'_>, &mut ParseCtx<'_>) -> Result<Asked>;

/// Window functions that are no accumulators.
#[rustfmt::skip]
static TABLE: &[(&str, Parse)] = &[
    ("$covariancePop", |f, p| covariance(f, p, false)),
    ("$covarianceSamp", |f, p| covariance(f, p, true)),
    ("$denseRank", |f, _| rank(f, Kind::Dense)),
    ("$derivative", derivative),
    ("$documentNumber", |f, _| rank(f, Kind::Number)),
    ("$expMovingAvg", exp_moving_avg),
    ("$integral", integral),
    ("$linearFill", linear_fill),
    ("$locf", locf),
    ("$rank", |f, _| rank(f, Kind::Rank)),
    ("$shift", shift),
];

/// Names of the window functions that are no accumulators.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(name, _)| *name)
}

fn wrong(text: impl Into<String>) -> Error {
    Error::failed_to_parse(text.into())
}

fn wrong_type(field: &str, v: Value<'_>, wanted: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '$setWindowFields.{field}' is the wrong type '{}', expected type '{wanted}'",
        v.type_name()
    ))
}

pub(in crate::stage) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<WindowFields> {
    let Value::Document(spec) = e.value() else {
        return Err(wrong(format!(
            "the $setWindowFields stage specification must be an object, found {}",
            e.ty.name()
        )));
    };
    let (mut partition_by, mut sort, mut output) = (None, None, None);
    for f in spec {
        match (f.name(), f.value()) {
            ("partitionBy", v) => partition_by = Some(v),
            ("sortBy" | "output", Value::Null | Value::Undefined) => {}
            ("sortBy", Value::Document(d)) => sort = Some(d),
            ("sortBy", v) => return Err(wrong_type("sortBy", v, "object")),
            ("output", Value::Document(d)) => output = Some(d),
            ("output", v) => return Err(wrong_type("output", v, "object")),
            (other, _) => {
                let text = format!("BSON field '$setWindowFields.{other}' is an unknown field.");
                return Err(Error::location(40415, text));
            }
        }
    }
    let output = output.ok_or_else(|| {
        Error::location(40414, "BSON field '$setWindowFields.output' is missing but a required field")
    })?;
    let mut partition_by = partition_by.map(|v| p.parse(v)).transpose()?;
    let sort = sort.filter(|d| !d.is_empty()).map(SortPattern::parse).transpose()?;
    p.metas.extend(sort.iter().flat_map(SortPattern::metas));
    let functions = functions(output, sort.as_ref(), p)?;
    if let Some(e) = &mut partition_by {
        e.optimize(p.ctx).map_err(|e| optimize_error("partitionBy expression", e))?;
        if e.as_const().is_some_and(|v| v.as_array().is_some()) {
            return Err(Error::type_mismatch(
                "An expression used to partition cannot evaluate to value of type array",
            ));
        }
    }
    // Names are read as paths last, when the stage is made.
    let outputs = functions
        .into_iter()
        .map(|(name, f)| Ok(Output { path: FieldPath::parse(name)?, function: Compiled(f) }));
    let outputs = outputs.collect::<Result<Vec<_>>>()?;
    WindowFields::new(partition_by, sort, outputs)
}

/// The functions of `output` with the names of their fields.
fn functions<'a>(
    output: &'a RawDoc,
    sort: Option<&SortPattern>,
    p: &mut ParseCtx<'_>,
) -> Result<Vec<(&'a str, Asked)>> {
    let mut functions = Vec::new();
    let mut seen = PathSet::default();
    for f in output {
        if seen.conflict(f.name()).is_some() {
            let text = "$setWindowFields 'output' specification contains two conflicting paths";
            return Err(Error::location(6_307_900, text));
        }
        seen.insert(f.name());
        functions.push((f.name(), field(f, sort, p)?));
    }
    Ok(functions)
}

fn field(e: Elem<'_>, sort: Option<&SortPattern>, p: &mut ParseCtx<'_>) -> Result<Asked> {
    let Value::Document(spec) = e.value() else {
        return Err(wrong(format!("The field '{}' must be an object", e.name())));
    };
    let first = spec.first().ok_or_else(|| wrong("Expected a $-prefixed window function"))?;
    let mut field = Field { name: first.name(), function: first, window: None, sort };
    if !field.name.starts_with('$') {
        return Err(wrong(format!("Expected a $-prefixed window function, {}", field.name)));
    }
    for f in spec.iter().skip(1) {
        match f.name() {
            "window" => field.window = Some(f),
            name if name.starts_with('$') => {
                return Err(wrong("Cannot specify two functions in window function spec"));
            }
            name => return Err(wrong(format!("Window function found an unknown argument: {name}"))),
        }
    }
    if let Some(named) = p.ctx.counts() {
        named.window_function(field.name);
    }
    match TABLE.iter().find(|(n, _)| *n == field.name) {
        Some((_, parse)) => parse(&field, p),
        None => accumulated(&field, p),
    }
}

fn accumulated(f: &Field<'_>, p: &mut ParseCtx<'_>) -> Result<Asked> {
    let value = f.function.value();
    match f.name {
        "$sum" | "$avg" => {
            let (input, average) = (p.parse(value)?, f.name == "$avg");
            return Ok(Asked::Of(input, What::Sum { average, bounds: bounds(f)? }));
        }
        "$min" | "$max" => {
            let (input, max) = (p.parse(value)?, f.name == "$max");
            return Ok(Asked::Of(input, What::MinMax { max, bounds: bounds(f)? }));
        }
        "$first" | "$last" => {
            let (input, last) = (p.parse(value)?, f.name == "$last");
            return Ok(Asked::Of(input, What::FirstLast { last, bounds: bounds(f)? }));
        }
        "$stdDevPop" | "$stdDevSamp" => {
            let input = p.parse(value)?;
            let bounds = bounds(f)?;
            if !bounds.only_grows() {
                let sample = f.name == "$stdDevSamp";
                return Ok(Asked::Of(input, What::StdDev { sample, bounds }));
            }
        }
        "$count" => {
            if !matches!(value, Value::Document(d) if d.is_empty()) {
                return Err(wrong("$count only accepts an empty object as input"));
            }
            let input = Expr::constant(Value::Int32(1));
            return Ok(Asked::Of(input, What::Sum { average: false, bounds: bounds(f)? }));
        }
        _ => {}
    }
    let spec = accumulator::parse_window(f.function, p)?;
    let spec = spec.ok_or_else(|| wrong(format!("Unrecognized window function, {}", f.name)))?;
    Ok(Asked::Accumulator(spec, bounds(f)?))
}

/// The window of a field: everything when none is given.
fn bounds(f: &Field<'_>) -> Result<Bounds> {
    let Some(window) = f.window else { return Ok(Bounds::whole()) };
    let Value::Document(spec) = window.value() else { return Err(wrong("'window' field must be an object")) };
    let (documents, range, unit) = (spec.elem("documents"), spec.elem("range"), spec.elem("unit"));
    for e in spec {
        if !matches!(e.name(), "documents" | "range" | "unit") {
            return Err(wrong(
                "'window' field can only contain 'documents' as the only argument or 'range' with an optional 'unit' field",
            ));
        }
    }
    if documents.is_some() && range.is_some() {
        return Err(wrong("Window bounds can specify either 'documents' or 'unit', not both."));
    }
    if unit.is_some() && range.is_none() {
        return Err(wrong("Window bounds can only specify 'unit' with range-based bounds."));
    }
    let Some(list) = documents.or(range) else { return Ok(Bounds::whole()) };
    let (lower, upper) = ends(list, range.is_some(), unit.is_some())?;
    let unit = unit.map(|e| parse_unit(e.value())).transpose()?;
    let mut bounds = Bounds::new(lower, upper, range.is_some(), unit);
    match f.sort {
        None if !bounds.by_range && !bounds.is_whole() => {
            return Err(Error::location(5_339_901, "Document-based bounds require a sortBy"));
        }
        sort if bounds.by_range => {
            let Some([part]) = sort.map(|s| s.parts.as_slice()) else {
                return Err(Error::location(5_339_902, "Range-based bounds require sortBy a single field"));
            };
            bounds.sorted_upwards = !part.descending;
        }
        _ => {}
    }
    Ok(bounds)
}

fn ends(list: Elem<'_>, by_range: bool, has_unit: bool) -> Result<(Bound, Bound)> {
    let not_two = || wrong(format!("Window bounds must be a 2-element array: {list}"));
    let Value::Array(items) = list.value() else { return Err(not_two()) };
    let values: Vec<Value<'_>> = items.iter().map(|e| e.value()).collect();
    let [low, high] = *values else { return Err(not_two()) };
    let (lower, upper) = (bound(low, by_range, has_unit)?, bound(high, by_range, has_unit)?);
    let place = |b: Bound| match b {
        Bound::Current => Some(Value::Int32(0)),
        Bound::Unbounded => None,
        Bound::Documents(n) => Some(Value::Int64(n)),
        Bound::Range(n) => Some(n.value()),
    };
    if let (Some(a), Some(b)) = (place(lower), place(upper))
        && cmp_values(a, b).is_gt()
    {
        let shown = |b: Bound, v: Value<'_>| match b {
            Bound::Current => "0".to_owned(),
            Bound::Documents(n) => n.to_string(),
            Bound::Range(n @ Number::Double(_)) => n.shown(),
            _ => format!("{v:#}"),
        };
        return Err(Error::location(
            5_339_900,
            format!(
                "Lower bound must not exceed upper bound: [{}, {}]",
                shown(lower, low),
                shown(upper, high)
            ),
        ));
    }
    Ok((lower, upper))
}

fn bound(v: Value<'_>, by_range: bool, has_unit: bool) -> Result<Bound> {
    match v {
        Value::String("unbounded") => return Ok(Bound::Unbounded),
        Value::String("current") => return Ok(Bound::Current),
        _ => {}
    }
    let Some(n) = Number::of(v) else {
        return Err(wrong(match v {
            Value::String(_) => "Window bounds must be 'unbounded', 'current', or a number.",
            _ if by_range => "Range-based bounds expression must be a number",
            _ => "Numeric document-based bounds must be an integer",
        }));
    };
    match (by_range, exact_i64(v).filter(|n| i32::try_from(*n).is_ok())) {
        (false, Some(n)) => Ok(Bound::Documents(n)),
        (false, None) => Err(wrong("Numeric document-based bounds must be an integer")),
        (true, None) if has_unit => Err(wrong("With 'unit', range-based bounds must be an integer")),
        (true, _) => Ok(Bound::Range(n)),
    }
}

fn parse_unit(v: Value<'_>) -> Result<Unit> {
    let Value::String(name) = v else {
        return Err(wrong(format!("'unit' must be a string, but got {}", v.type_name())));
    };
    Unit::parse(name).ok_or_else(|| wrong(format!("unknown time unit value: {name}")))
}

fn rank(f: &Field<'_>, kind: Kind) -> Result<Asked> {
    if f.window.is_some() {
        return Err(Error::location(5_371_601, "Rank style window functions take no other arguments"));
    }
    if !matches!(f.function.value(), Value::Document(d) if d.is_empty()) {
        return Err(Error::location(5_371_603, "(None) must be specified with '{}' as the value"));
    }
    one_sort_field(f, 5_371_602)?;
    Ok(Asked::Rank(kind))
}

fn one_sort_field(f: &Field<'_>, code: i32) -> Result<()> {
    match f.sort {
        Some(s) if s.parts.len() == 1 => Ok(()),
        _ => Err(Error::location(
            code,
            format!(
                "{} must be specified with a top level sortBy expression with exactly one element",
                f.name
            ),
        )),
    }
}

fn shift(f: &Field<'_>, p: &mut ParseCtx<'_>) -> Result<Asked> {
    let Value::Document(spec) = f.function.value() else {
        return Err(wrong("Argument to $shift must be an object"));
    };
    let (mut output, mut by, mut default) = (None, None, Val::NULL);
    for e in spec {
        match e.name() {
            "output" => output = Some(p.parse(e.value())?),
            "by" => {
                let n = exact_i64(e.value());
                let text = || wrong(format!("'$shift:by' field must be an integer, but found  {e}"));
                by = Some(n.filter(|n| i32::try_from(*n).is_ok()).ok_or_else(text)?);
            }
            "default" => {
                let mut e = p.parse(e.value())?;
                e.optimize(p.ctx)?;
                let v = e.as_const().cloned();
                default =
                    v.ok_or_else(|| wrong("'$shift:default' expression must yield a constant value."))?;
            }
            _ => return Err(wrong("Unknown argument in $shift")),
        }
    }
    let output = output.ok_or_else(|| wrong("$shift requires an 'output' expression."))?;
    let by = by.ok_or_else(|| wrong("$shift requires 'by' as an integer value."))?;
    if f.window.is_some() {
        return Err(wrong("$shift does not accept a 'window' field"));
    }
    if f.sort.is_none() {
        return Err(wrong("'$shift' requires a sortBy"));
    }
    Ok(Asked::Of(output, What::Shift { by, default }))
}

fn exp_moving_avg(f: &Field<'_>, p: &mut ParseCtx<'_>) -> Result<Asked> {
    let spec = match f.function.value() {
        Value::Document(spec) if f.window.is_none() => spec,
        _ => return Err(wrong("$expMovingAvg must have exactly one argument that is an object")),
    };
    let two = || {
        wrong(
            "$expMovingAvg sub object must have exactly two fields: An 'input' field, and either an 'N' field or an 'alpha' field",
        )
    };
    let (input, n, alpha) = (spec.elem("input"), spec.elem("N"), spec.elem("alpha"));
    let Some(input) = input.filter(|_| spec.count() == 2) else { return Err(two()) };
    if f.sort.is_none() {
        return Err(wrong("$expMovingAvg requires an explicit 'sortBy'"));
    }
    let input = p.parse(input.value())?;
    let alpha = match (n, alpha) {
        (Some(e), _) => {
            if Number::of(e.value()).is_none() {
                return Err(wrong(format!("'N' field must be an integer, but found type {}", e.ty.name())));
            }
            let n = exact_i64(e.value()).ok_or_else(|| {
                wrong(format!(
                    "'N' field must be an integer, but found  {e}. To use a non-integer, use the 'alpha' argument instead"
                ))
            })?;
            if n <= 0 {
                return Err(wrong(format!("'N' must be greater than zero. Got {n}")));
            }
            Alpha::Documents(n)
        }
        (None, Some(e)) => {
            let n = Number::of(e.value()).ok_or_else(|| wrong("'alpha' must be a number"))?;
            if !(n.to_f64() > 0.0 && n.to_f64() < 1.0) {
                return Err(wrong(format!("'alpha' must be between 0 and 1 (exclusive), found {e}")));
            }
            Alpha::Given(n)
        }
        (None, None) => return Err(two()),
    };
    Ok(Asked::Of(input, What::ExpMovingAvg(alpha)))
}

/// What `$derivative` and `$integral` are asked: `input`, the `unit` in milliseconds, and the window, which is read before
/// them.
fn over_time(f: &Field<'_>, p: &mut ParseCtx<'_>) -> Result<(Expr, Option<i64>, Bounds)> {
    let name = f.name;
    match f.sort.map(|s| s.parts.len()) {
        Some(1) => {}
        None => return Err(wrong(format!("{name} requires a sortBy"))),
        Some(_) => return Err(wrong(format!("{name} requires a non-compound sortBy"))),
    }
    let bounds = bounds(f)?;
    let Value::Document(spec) = f.function.value() else {
        let text = format!("{name} expects an object, but got a {}: {}", f.function.ty.name(), f.function);
        return Err(wrong(text));
    };
    let (mut input, mut unit_ms) = (None, None);
    for e in spec {
        match (e.name(), e.value()) {
            ("input", v) => input = Some(p.parse(v)?),
            ("unit", v) if v.as_str().is_none() => {
                return Err(wrong(format!("unit' must be a string, but got {}", v.type_name())));
            }
            ("unit", v) => {
                let ms = match parse_unit(v)? {
                    Unit::Millisecond => 1,
                    Unit::Second => 1000,
                    Unit::Minute => 60_000,
                    Unit::Hour => 3_600_000,
                    Unit::Day => 86_400_000,
                    Unit::Week => 604_800_000,
                    _ => return Err(Error::location(5_490_710, "unit must be 'week' or smaller")),
                };
                unit_ms = Some(ms);
            }
            (other, _) => return Err(wrong(format!("{name} got unexpected argument: {other}"))),
        }
    }
    let input = input.ok_or_else(|| wrong(format!("{name} requires an 'input' expression")))?;
    Ok((input, unit_ms, bounds))
}

fn derivative(f: &Field<'_>, p: &mut ParseCtx<'_>) -> Result<Asked> {
    let (input, unit_ms, bounds) = over_time(f, p)?;
    if f.window.is_none() {
        return Err(wrong("$derivative requires explicit window bounds"));
    }
    Ok(Asked::Of(input, What::Derivative { unit_ms, bounds }))
}

fn integral(f: &Field<'_>, p: &mut ParseCtx<'_>) -> Result<Asked> {
    let (input, unit_ms, bounds) = over_time(f, p)?;
    Ok(Asked::Of(input, What::Integral { unit_ms, bounds }))
}

fn covariance(f: &Field<'_>, p: &mut ParseCtx<'_>, sample: bool) -> Result<Asked> {
    let input = p.parse(f.function.value())?;
    Ok(Asked::Of(input, What::Covariance { sample, bounds: bounds(f)? }))
}

fn no_window(f: &Field<'_>) -> Result<()> {
    match f.window {
        Some(_) => Err(wrong(format!("'window' field is not allowed in {}", f.name))),
        None => Ok(()),
    }
}

fn linear_fill(f: &Field<'_>, p: &mut ParseCtx<'_>) -> Result<Asked> {
    let input = p.parse(f.function.value())?;
    no_window(f)?;
    one_sort_field(f, 605_001)?;
    Ok(Asked::Of(input, What::LinearFill))
}

fn locf(f: &Field<'_>, p: &mut ParseCtx<'_>) -> Result<Asked> {
    let input = p.parse(f.function.value())?;
    no_window(f)?;
    Ok(Asked::Of(input, What::Locf))
}
