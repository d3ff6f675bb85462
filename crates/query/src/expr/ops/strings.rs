//! Strings: `$concat`, case, length, sub-strings, search, `$split`, `$trim`, `$replaceOne`, `$replaceAll`.
//!
//! Two ways to count: bytes, and code points (`CP`).

use super::array::{exact_i32, search_range};
use crate::expr::{Call, Expr, Held, Nary, Op, ParseCtx, Scope, Val, named, parts, shown};
use crate::number::{Number, short_double};
use pando_base::{Error, HashSet, Result, Timestamp, patience};
use pando_bson::{ArrayBuilder, Value};
use std::borrow::Cow;

/// A value as text, as old string operators take it; code 16007 when it has none.
pub(super) fn coerced<'a>(v: &'a Val<'_>) -> Result<Cow<'a, str>> {
    Ok(match v.value() {
        None | Some(Value::Null | Value::Undefined) => Cow::Borrowed(""),
        Some(Value::String(s) | Value::Symbol(s) | Value::JavaScript(s)) => Cow::Borrowed(s),
        Some(Value::Double(d)) => Cow::Owned(double_text(d)),
        Some(Value::DateTime(ms)) => {
            Cow::Owned(date_text(ms).map_err(|e| e.context("failed while coercing date to string"))?)
        }
        Some(Value::Timestamp(t)) => Cow::Owned(timestamp_text(t)),
        Some(v @ (Value::Int32(_) | Value::Int64(_) | Value::Decimal128(_))) => Cow::Owned(v.to_string()),
        Some(v) => {
            return Err(Error::location(
                16007,
                format!("can't convert from BSON type {} to String", v.type_name()),
            ));
        }
    })
}

/// A double with six digits, as C++ streams write it.
pub(super) fn double_text(d: f64) -> String {
    short_double(d)
}

/// A date with a year of four digits; code 18537 for others.
pub(super) fn date_text(ms: i64) -> Result<String> {
    let year = crate::date::civil_of_ms(ms).year;
    if (0..=9999).contains(&year) {
        return Ok(crate::date::iso(ms));
    }
    Err(Error::location(
        18537,
        format!(
            "Could not convert date to string: date component was outside the supported range of 0-9999: {year}"
        ),
    ))
}

/// `Jan  1 00:00:01:2`: the time without its year, and the counter.
fn timestamp_text(t: Timestamp) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let c = crate::date::civil_of_ms(i64::from(t.secs()) * 1000);
    let month = MONTHS.get(c.month as usize - 1).copied().unwrap_or_default();
    format!("{month} {:2} {:02}:{:02}:{:02}:{}", c.day, c.hour, c.minute, c.second, t.inc())
}

pub(in crate::expr) fn concat<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    let (mut out, mut held) = (String::new(), Held::default());
    for arg in args {
        if arg.is_nullish() {
            return Ok(Val::NULL);
        }
        match arg.as_str() {
            Some(s) => {
                held.grow_to(out.len() + s.len(), s.len())?;
                out.push_str(s);
            }
            None => {
                return Err(Error::location(
                    16702,
                    format!("$concat only supports strings, not {}", arg.type_name()),
                ));
            }
        }
    }
    Ok(Val::Str(out))
}

pub(in crate::expr) fn to_lower<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    Ok(Val::Str(coerced(&args[0])?.to_ascii_lowercase()))
}
pub(in crate::expr) fn to_upper<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    Ok(Val::Str(coerced(&args[0])?.to_ascii_uppercase()))
}

pub(in crate::expr) fn strcasecmp<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    let (a, b) = (coerced(&args[0])?.to_ascii_uppercase(), coerced(&args[1])?.to_ascii_uppercase());
    Ok(Val::int(a.as_bytes().cmp(b.as_bytes()) as i32))
}

fn length<'v>(args: &[Val<'v>], call: &Call<'_>, code: i32, count: fn(&str) -> usize) -> Result<Val<'v>> {
    match args[0].as_str() {
        Some(s) => Ok(Val::count(count(s))),
        None => Err(Error::location(
            code,
            format!("{} requires a string argument, found: {}", call.name, args[0].type_name()),
        )),
    }
}

pub(in crate::expr) fn str_len_bytes<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    length(args, call, 34473, str::len)
}
pub(in crate::expr) fn str_len_cp<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    length(args, call, 34471, |s| s.chars().count())
}

/// `$substr` is `$substrBytes` in messages too.
pub(in crate::expr) fn parse_substr(_: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let args = p.args("$substrBytes", v, 3, 3)?;
    Ok(Expr::Nary(Nary::new("$substrBytes", substr_bytes, args)))
}

fn whole(v: &Val<'_>, code: i32, what: &str) -> Result<i64> {
    let n = v.value().and_then(Number::of).ok_or_else(|| {
        Error::location(
            code,
            format!("$substrBytes:  {what} must be a numeric type (is BSON type {})", v.type_name()),
        )
    })?;
    n.truncate_i64().ok_or_else(|| {
        Error::location(31109, format!("Can't coerce out of range value {} to long", n.shown()))
    })
}

fn substr_bytes<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    let s = coerced(&args[0])?;
    let start = whole(&args[1], 16034, "starting index")?;
    let len = whole(&args[2], 16035, "length")?;
    let Ok(start_at) = usize::try_from(start) else {
        return Err(Error::location(
            50752,
            format!("$substrBytes:  starting index must be non-negative (got: {start})"),
        ));
    };
    if start_at >= s.len() {
        return Ok(Val::Str(String::new()));
    }
    // A negative length means: to the end.
    let end = usize::try_from(len).map_or(s.len(), |n| start_at.saturating_add(n).min(s.len()));
    if !s.is_char_boundary(start_at) {
        return Err(Error::location(
            28656,
            "$substrBytes:  Invalid range, starting index is a UTF-8 continuation byte.",
        ));
    }
    match s.get(start_at..end) {
        Some(part) => Ok(Val::string(part)),
        None => Err(Error::location(
            28657,
            "$substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character.",
        )),
    }
}

pub(in crate::expr) fn substr_cp<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    let s = coerced(&args[0])?;
    let index = |v: &Val<'_>, code: i32, what: &str| -> Result<i32> {
        if v.value().and_then(Number::of).is_none() {
            return Err(Error::location(
                code,
                format!("$substrCP: {what} must be a numeric type (is BSON type {})", v.type_name()),
            ));
        }
        exact_i32(v).ok_or_else(|| {
            Error::location(
                code + 1,
                format!("$substrCP: {what} cannot be represented as a 32-bit integral value: {}", shown(v)),
            )
        })
    };
    let start = index(&args[1], 34450, "starting index")?;
    let len = index(&args[2], 34452, "length")?;
    let len = usize::try_from(len)
        .map_err(|_| Error::location(34454, "$substrCP: length must be a nonnegative integer."))?;
    let start = usize::try_from(start)
        .map_err(|_| Error::location(34455, "$substrCP: the starting index must be nonnegative integer."))?;
    Ok(Val::Str(s.chars().skip(start).take(len).collect()))
}

/// The two strings of an `$indexOf…`; `None` when the first is nullish.
fn search_strings<'a>(args: &'a [Val<'_>], name: &str, code: i32) -> Result<Option<(&'a str, &'a str)>> {
    if args[0].is_nullish() {
        return Ok(None);
    }
    let string = |i: usize, code, which: &str| {
        args[i].as_str().ok_or_else(|| {
            Error::location(
                code,
                format!("{name} requires a string as the {which} argument, found: {}", args[i].type_name()),
            )
        })
    };
    Ok(Some((string(0, code, "first")?, string(1, code + 1, "second")?)))
}

pub(in crate::expr) fn index_of_bytes<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    let Some((s, wanted)) = search_strings(args, call.name, 40091)? else { return Ok(Val::NULL) };
    let (start, end) = search_range(args, call.name)?;
    let end = end.unwrap_or(s.len()).min(s.len());
    if start > end {
        return Ok(Val::int(-1));
    }
    if wanted.is_empty() {
        return Ok(Val::count(start));
    }
    // What is looked for begins and ends with whole characters.
    let first = (start..=end).find(|at| s.is_char_boundary(*at)).unwrap_or(end);
    let last = (first..=end).rev().find(|at| s.is_char_boundary(*at)).unwrap_or(first);
    let found = s.get(first..last).and_then(|window| window.find(wanted));
    Ok(found.map_or(Val::int(-1), |at| Val::count(first + at)))
}

pub(in crate::expr) fn index_of_cp<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    let Some((s, wanted)) = search_strings(args, call.name, 40093)? else { return Ok(Val::NULL) };
    let (start, end) = search_range(args, call.name)?;
    // Byte offset of each code point, and of the end.
    let offsets: Vec<usize> = s.char_indices().map(|(at, _)| at).chain([s.len()]).collect();
    let points = offsets.len() - 1;
    let end = end.unwrap_or(points).min(points);
    if start > end {
        return Ok(Val::int(-1));
    }
    let found = s[offsets[start]..offsets[end]].find(wanted);
    Ok(found.map_or(Val::int(-1), |at| {
        let at = offsets[start] + at;
        Val::count(offsets.partition_point(|o| *o < at))
    }))
}

pub(in crate::expr) fn split<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    if args.iter().any(Val::is_nullish) {
        return Ok(Val::NULL);
    }
    let string = |i: usize, code, which: &str| {
        args[i].as_str().ok_or_else(|| {
            Error::location(
                code,
                format!(
                    "$split requires an expression that evaluates to a string as a {which} argument, found: {}",
                    args[i].type_name()
                ),
            )
        })
    };
    let s = string(0, 40085, "first")?;
    let separator = string(1, 40086, "second")?;
    if separator.is_empty() {
        return Err(Error::location(40087, "$split requires a non-empty separator"));
    }
    let mut out = ArrayBuilder::new();
    for part in s.split(separator) {
        out.str(part);
    }
    Ok(Val::Array(out.finish()))
}

#[derive(Clone)]
struct Trim {
    name: &'static str,
    input: Expr,
    chars: Option<Expr>,
}

pub(in crate::expr) fn parse_trim(name: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let [input, chars] = named(
        v,
        ["input", "chars"],
        |v| {
            Error::location(
                50696,
                format!("{name} only supports an object as an argument, found {}", v.type_name()),
            )
        },
        |other| Error::location(50694, format!("{name} found an unknown argument: {other}")),
    )?;
    let input = input.ok_or_else(|| Error::location(50695, format!("{name} requires an 'input' field")))?;
    let input = p.parse(input)?;
    let chars = chars.map(|c| p.parse(c)).transpose()?;
    Ok(Expr::Op(Box::new(Trim { name, input, chars })))
}

/// What goes when no characters are given.
fn is_space(c: char) -> bool {
    matches!(c, '\0' | ' ' | '\t'..='\r' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}')
}

impl Trim {
    fn trim<'s>(&self, s: &'s str, goes: impl Fn(char) -> bool) -> &'s str {
        match self.name {
            "$ltrim" => s.trim_start_matches(goes),
            "$rtrim" => s.trim_end_matches(goes),
            _ => s.trim_matches(goes),
        }
    }
}

impl Op for Trim {
    fn name(&self) -> &'static str {
        self.name
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let input = self.input.eval(scope)?;
        if input.is_nullish() {
            return Ok(Val::NULL);
        }
        let Some(s) = input.as_str() else {
            return Err(Error::location(
                50699,
                format!(
                    "{} requires its input to be a string, got {} (of type {}) instead.",
                    self.name,
                    shown(&input),
                    input.type_name()
                ),
            ));
        };
        let Some(chars) = &self.chars else { return Ok(Val::string(self.trim(s, is_space))) };
        let chars = chars.eval(scope)?;
        if chars.is_nullish() {
            return Ok(Val::NULL);
        }
        let Some(set) = chars.as_str() else {
            return Err(Error::location(
                50700,
                format!(
                    "{} requires 'chars' to be a string, got {} (of type {}) instead.",
                    self.name,
                    shown(&chars),
                    chars.type_name()
                ),
            ));
        };
        patience::spend(set.len())?;
        let set: HashSet<char> = set.chars().collect();
        Ok(Val::string(self.trim(s, |c| set.contains(&c))))
    }
    parts!(input, chars);
    fn folds(&self) -> bool {
        true
    }
    fn simplify(&mut self, ctx: &crate::ctx::QueryCtx) -> Result<Option<Expr>> {
        // Constant characters are checked ahead of any document.
        if let Some(v) = self.chars.as_ref().and_then(Expr::as_const)
            && !v.is_nullish()
            && v.as_str().is_none()
            && self.input.as_const().is_none()
        {
            let probe = Trim {
                name: self.name,
                input: Expr::Const(Val::string("")),
                chars: Some(Expr::Const(v.clone())),
            };
            probe.eval(&Scope::new(pando_bson::RawDoc::empty(), ctx))?;
        }
        Ok(None)
    }
}

#[derive(Clone)]
struct Replace {
    name: &'static str,
    all: bool,
    input: Expr,
    find: Expr,
    replacement: Expr,
}

pub(in crate::expr) fn parse_replace(name: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let [input, find, replacement] = named(
        v,
        ["input", "find", "replacement"],
        |v| {
            Error::location(
                51751,
                format!("{name} requires an object as an argument, found: {}", v.type_name()),
            )
        },
        |other| Error::location(51750, format!("{name} found an unknown argument: {other}")),
    )?;
    let mut field = |v: Option<Value<'_>>, code, what: &str| {
        let v =
            v.ok_or_else(|| Error::location(code, format!("{name} requires '{what}' to be specified")))?;
        p.parse(v)
    };
    let input = field(input, 51749, "input")?;
    let find = field(find, 51748, "find")?;
    let replacement = field(replacement, 51747, "replacement")?;
    Ok(Expr::Op(Box::new(Replace { name, all: name == "$replaceAll", input, find, replacement })))
}

/// The first so many places where `find` stands, changed.
fn replaced(s: &str, find: &str, new: &str, places: usize) -> Result<String> {
    let (mut out, mut held, mut done) = (String::new(), Held::default(), 0);
    for (at, part) in s.match_indices(find).take(places) {
        held.grow_to(out.len() + (at - done) + new.len(), at - done + new.len())?;
        out.push_str(&s[done..at]);
        out.push_str(new);
        done = at + part.len();
    }
    held.grow_to(out.len() + s.len() - done, s.len() - done)?;
    out.push_str(&s[done..]);
    Ok(out)
}

impl Op for Replace {
    fn name(&self) -> &'static str {
        self.name
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let check = |v: &Val<'_>, code, what: &str| {
            if !v.is_nullish() && v.as_str().is_none() {
                return Err(Error::location(
                    code,
                    format!("{} requires that '{what}' be a string, found: {}", self.name, shown(v)),
                ));
            }
            Ok(())
        };
        // All are evaluated before the first one is looked at.
        let (input, find, replacement) =
            (self.input.eval(scope)?, self.find.eval(scope)?, self.replacement.eval(scope)?);
        check(&input, 51746, "input")?;
        check(&find, 51745, "find")?;
        check(&replacement, 51744, "replacement")?;
        match (input.as_str(), find.as_str(), replacement.as_str()) {
            (Some(s), Some(find), Some(new)) => {
                replaced(s, find, new, if self.all { usize::MAX } else { 1 }).map(Val::Str)
            }
            _ => Ok(Val::NULL),
        }
    }
    parts!(input, find, replacement);
}
