//! `$convert` and its short forms `$toInt`, `$toString`, ...

use super::date_parts::date_ms;
use super::strings::{coerced, date_text};
use crate::date::parse_free;
use crate::expr::{Expr, Op, ParseCtx, Scope, Val, parts};
use crate::number::{Number, short_double};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::decimal128::Rounding;
use pando_bson::{Decimal128, ElementType, ObjectId, Value};

#[derive(Clone)]
struct Convert {
    name: &'static str,
    input: Expr,
    to: Expr,
    on_error: Option<Expr>,
    on_null: Option<Expr>,
}

pub(in crate::expr) fn parse_convert(name: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let Value::Document(arguments) = v else {
        let found = v.type_name();
        let text = format!("$convert expects an object of named arguments but found: {found}");
        return Err(Error::failed_to_parse(text));
    };
    let [mut input, mut to, mut on_error, mut on_null] = [const { None }; 4];
    // In the order in which they stand; what is missing comes behind them.
    for e in arguments {
        let slot = match e.name() {
            "input" => &mut input,
            "to" => &mut to,
            "onError" => &mut on_error,
            "onNull" => &mut on_null,
            other => {
                let text = format!("$convert found an unknown argument: {other}");
                return Err(Error::failed_to_parse(text));
            }
        };
        *slot = Some(p.parse(e.value())?);
    }
    let missing = |what: &str| Error::failed_to_parse(format!("Missing '{what}' parameter to $convert"));
    let input = input.ok_or_else(|| missing("input"))?;
    let to = to.ok_or_else(|| missing("to"))?;
    Ok(Expr::Op(Box::new(Convert { name, input, to, on_error, on_null })))
}

/// What `$toInt` and its kin convert to.
pub(in crate::expr) fn short_target(name: &str) -> Option<&'static str> {
    Some(match name {
        "$toBool" => "bool",
        "$toDate" => "date",
        "$toDecimal" => "decimal",
        "$toDouble" => "double",
        "$toInt" => "int",
        "$toLong" => "long",
        "$toObjectId" => "objectId",
        "$toString" => "string",
        _ => return None,
    })
}

pub(in crate::expr) fn parse_short(name: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    // What is wrong with arguments is told before how many there are.
    let args = p.args(name, v, 0, usize::MAX)?;
    let [input] = <[Expr; 1]>::try_from(args).map_err(|args| {
        let text = format!("{name} requires a single argument, got {}", args.len());
        Error::location(50723, text)
    })?;
    let to = Expr::Const(Val::string(short_target(name).unwrap_or("string")));
    Ok(Expr::Op(Box::new(Convert { name, input, to, on_error: None, on_null: None })))
}

/// What `to` asks for: a type, or the odd name "missing" (as a number 0) that nothing converts to.
#[derive(Clone)]
enum Target {
    Type(ElementType),
    Missing,
}

fn target(v: &Val<'_>) -> Result<Target> {
    match v.value() {
        Some(Value::String("missing")) => Ok(Target::Missing),
        Some(Value::NotUtf8(_)) if v.string_bytes().is_some() => {
            Err(Error::bad_value(format!("Unknown type name: {}", v.as_word().unwrap_or_default())))
        }
        Some(Value::String(name)) => match ElementType::named(name) {
            Some(ty) => Ok(Target::Type(ty)),
            None => Err(Error::bad_value(format!("Unknown type name: {name}"))),
        },
        Some(n) if n.is_number() => {
            let code = crate::matcher::exact_i64(n).ok_or_else(|| {
                Error::failed_to_parse("In $convert, numeric 'to' argument is not an integer")
            })?;
            // MinKey is −1 here and 255 as a type byte.
            let byte = i8::try_from(code).ok().filter(|n| *n >= -1).map(|n| n as u8);
            match byte.and_then(ElementType::from_byte) {
                None if code == 0 => Ok(Target::Missing),
                Some(ty) => Ok(Target::Type(ty)),
                None => Err(Error::failed_to_parse(format!(
                    "In $convert, numeric value for 'to' does not correspond to a BSON type: {code}"
                ))),
            }
        }
        _ => Err(Error::failed_to_parse(format!(
            "$convert's 'to' argument must be a string or number, but is {}",
            v.type_name()
        ))),
    }
}

fn failure(text: impl Into<String>) -> Error {
    Error::new(ErrorCode::ConversionFailure, text.into())
}

const NO_ON_ERROR: &str = "in $convert with no onError value";

impl Op for Convert {
    fn name(&self) -> &'static str {
        self.name
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let to = self.to.eval(scope)?;
        let input = self.input.eval(scope)?;
        let target = if to.is_nullish() { None } else { Some(target(&to)?) };
        if input.is_nullish() {
            return self.on_null.as_ref().map_or(Ok(Val::NULL), |e| e.eval(scope));
        }
        let Some(target) = target else { return Ok(Val::NULL) };
        let result = match target {
            Target::Type(ty) => convert(input, ty),
            Target::Missing => Err(failure(format!(
                "Unsupported conversion from {} to missing {NO_ON_ERROR}",
                input.type_name()
            ))),
        };
        match (result, &self.on_error) {
            (Err(e), Some(fallback)) if e.code == ErrorCode::ConversionFailure => fallback.eval(scope),
            (result, _) => result,
        }
    }
    parts!(input, to, on_error, on_null);
    fn folds(&self) -> bool {
        true
    }
}

fn convert<'s>(input: Val<'s>, ty: ElementType) -> Result<Val<'s>> {
    let Some(v) = input.value() else { return Ok(Val::NULL) };
    let from = v.element_type();
    if from == ty && !matches!(ty, ElementType::Document | ElementType::Array) {
        return Ok(input);
    }
    let unsupported =
        || failure(format!("Unsupported conversion from {} to {} {NO_ON_ERROR}", from.name(), ty.name()));
    if ty != ElementType::Boolean
        && let Value::NotUtf8(_) = v
        && let Some(s) = v.string_bytes()
    {
        // What is not UTF-8 is no number, date or id; the message shows U+FFFD for it.
        return convert(Val::string(String::from_utf8_lossy(s)), ty).map(Val::into_owned);
    }
    let n = Number::of(v);
    Ok(match (ty, v, n) {
        (ElementType::Boolean, _, _) => Val::bool(v.is_truthy()),
        (ElementType::Int32, Value::Boolean(b), _) => Val::int(b.into()),
        (ElementType::Int32, _, Some(n)) => {
            let overflow = || overflow(n);
            Val::int(i32::try_from(whole(n)?).map_err(|_| overflow())?)
        }
        (ElementType::Int32, Value::String(s), _) => Val::int(integer(s)?),
        (ElementType::Int64, Value::Boolean(b), _) => Val::long(b.into()),
        (ElementType::Int64, Value::DateTime(ms), _) => Val::long(ms),
        (ElementType::Int64, _, Some(n)) => Val::long(whole(n)?),
        (ElementType::Int64, Value::String(s), _) => Val::long(integer(s)?),
        (ElementType::Double, Value::Boolean(b), _) => Val::double(f64::from(u8::from(b))),
        (ElementType::Double, Value::DateTime(ms), _) => Val::double(ms as f64),
        (ElementType::Double, _, Some(n)) => {
            let d = n.to_f64();
            // Too large, or smaller than any double with all its bits.
            let lost = d.is_infinite() || d.abs() < f64::MIN_POSITIVE;
            if lost && matches!(n, Number::Decimal(d) if d.is_finite() && !d.is_zero()) {
                return Err(overflow(n));
            }
            Val::double(d)
        }
        (ElementType::Double, Value::String(s), _) => Val::double(double(s)?),
        (ElementType::Decimal128, Value::Boolean(b), _) => decimal(Decimal128::from_i64(b.into())),
        (ElementType::Decimal128, Value::DateTime(ms), _) => decimal(Decimal128::from_i64(ms)),
        (ElementType::Decimal128, _, Some(n)) => decimal(n.to_decimal()),
        (ElementType::Decimal128, Value::String(s), _) => decimal(decimal_text(s)?),
        (ElementType::DateTime, Value::Int32(_), _) => return Err(unsupported()),
        (ElementType::DateTime, _, Some(n)) => Val::date(whole(n)?),
        (ElementType::DateTime, Value::String(s), _) => Val::date(parse_free(s, None)?),
        (ElementType::DateTime, _, _) => Val::date(date_ms(&input).ok_or_else(unsupported)?),
        (ElementType::ObjectId, Value::String(s), _) => object_id(s)?,
        (ElementType::String, Value::Boolean(b), _) => Val::string(b.to_string()),
        (ElementType::String, Value::ObjectId(o), _) => Val::string(o.to_hex()),
        (ElementType::String, Value::Double(d), _) if !d.is_finite() => Val::string(match d {
            d if d.is_nan() => "NaN",
            d if d > 0.0 => "Infinity",
            _ => "-Infinity",
        }),
        (ElementType::String, Value::DateTime(ms), _) => Val::Str(date_text(ms)?),
        (ElementType::String, _, Some(_)) => Val::Str(coerced(&input)?.into_owned()),
        _ => return Err(unsupported()),
    })
}

fn decimal(d: Decimal128) -> Val<'static> {
    Val::Ref(Value::Decimal128(d))
}

fn overflow(n: Number) -> Error {
    // Integers are not shown, though the colon is.
    let shown = match n {
        Number::Int(_) | Number::Long(_) => String::new(),
        Number::Double(d) => short_double(d),
        Number::Decimal(d) => d.to_string(),
    };
    failure(format!("Conversion would overflow target type {NO_ON_ERROR}: {shown}"))
}

/// Cut to 64 bits.
fn whole(n: Number) -> Result<i64> {
    let (nan, infinite) = match n {
        Number::Double(d) => (d.is_nan(), d.is_infinite()),
        Number::Decimal(d) => (d.is_nan(), d.is_infinite()),
        _ => (false, false),
    };
    if nan || infinite {
        let what = if nan { "NaN" } else { "infinity" };
        return Err(failure(format!("Attempt to convert {what} value to integer type {NO_ON_ERROR}")));
    }
    n.truncate_i64().ok_or_else(|| overflow(n))
}

fn bad_number(s: &str, why: &str) -> Error {
    if s.starts_with("0x") || s.starts_with("0X") {
        return failure(format!("Illegal hexadecimal input {NO_ON_ERROR}: {s}"));
    }
    failure(format!("Failed to parse number '{s}' {NO_ON_ERROR}: {why}"))
}

fn integer<N: TryFrom<i128>>(s: &str) -> Result<N> {
    let digits = s.strip_prefix(['+', '-']).unwrap_or(s);
    if digits.is_empty() {
        return Err(bad_number(s, "No digits"));
    }
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad_number(s, "Did not consume whole string."));
    }
    let n = s.parse::<i128>().ok().and_then(|n| N::try_from(n).ok());
    n.ok_or_else(|| bad_number(s, "Overflow"))
}

fn double(s: &str) -> Result<f64> {
    if s.is_empty() {
        return Err(bad_number(s, "Empty string"));
    }
    if s.starts_with(char::is_whitespace) {
        return Err(bad_number(s, "Leading whitespace"));
    }
    if s.starts_with("0x") || s.starts_with("0X") {
        return Err(bad_number(s, ""));
    }
    match s.parse::<f64>() {
        Ok(d) if d.is_infinite() && s.bytes().any(|b| b.is_ascii_digit()) => {
            Err(bad_number(s, "Out of range"))
        }
        Ok(d) => Ok(d),
        Err(_) => {
            let digits = s.strip_prefix(['+', '-']).unwrap_or(s).starts_with(|c: char| c.is_ascii_digit());
            Err(bad_number(
                s,
                if digits { "Did not consume whole string." } else { "Did not consume any digits" },
            ))
        }
    }
}

fn decimal_text(s: &str) -> Result<Decimal128> {
    if s.is_empty() {
        return Err(bad_number(s, "Empty string"));
    }
    match Decimal128::parse(s, Rounding::HalfEven) {
        Some((d, flags)) if !flags.overflow => Ok(d),
        Some(_) => Err(failure(format!("Conversion would overflow target type {NO_ON_ERROR}: {s}"))),
        None => Err(bad_number(s, "Failed to parse string to decimal")),
    }
}

fn object_id(s: &str) -> Result<Val<'static>> {
    let why = if s.len() != 24 {
        format!("Invalid string length for parsing to OID, expected 24 but found {}", s.len())
    } else {
        match ObjectId::from_hex(s) {
            Some(o) => return Ok(Val::Ref(Value::ObjectId(o))),
            None => {
                let bad = s.chars().find(|c| !c.is_ascii_hexdigit()).unwrap_or('?');
                format!("Invalid character found in hex string: '{bad}'")
            }
        }
    };
    Err(failure(format!("Failed to parse objectId '{s}' {NO_ON_ERROR}: {why}")))
}
