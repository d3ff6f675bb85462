//! Strings: `$concat`, case, length, sub-strings, search, `$split`, `$trim`, `$replaceOne`, `$replaceAll`.
//!
//! Two ways to count: bytes, and code points (`CP`). All work on bytes, which need not be UTF-8.

use super::array::{exact_i32, search_range};
use super::code_points;
use crate::expr::{Call, Expr, Held, Nary, Op, ParseCtx, Scope, Val, named, parts, shown};
use crate::number::{Number, short_double};
use memchr::memmem;
use pando_base::{Error, Result, Timestamp, patience};
use pando_bson::{ArrayBuilder, Texts, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;

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

/// The same as bytes, which need not be UTF-8.
fn coerced_bytes<'a>(v: &'a Val<'_>) -> Result<Cow<'a, [u8]>> {
    if let Some(Value::NotUtf8(odd)) = v.value()
        && let Texts::String(s) | Texts::Symbol(s) | Texts::JavaScript(s) = odd.texts()
    {
        return Ok(Cow::Borrowed(s));
    }
    Ok(match coerced(v)? {
        Cow::Borrowed(s) => Cow::Borrowed(s.as_bytes()),
        Cow::Owned(s) => Cow::Owned(s.into_bytes()),
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
    let (mut out, mut held) = (Vec::new(), Held::default());
    for arg in args {
        if arg.is_nullish() {
            return Ok(Val::NULL);
        }
        match arg.string_bytes() {
            Some(s) => {
                held.grow_to(out.len() + s.len(), s.len())?;
                out.extend_from_slice(s);
            }
            None => {
                return Err(Error::location(
                    16702,
                    format!("$concat only supports strings, not {}", arg.type_name()),
                ));
            }
        }
    }
    Ok(Val::string_of(out))
}

pub(in crate::expr) fn to_lower<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    Ok(Val::string_of(coerced_bytes(&args[0])?.to_ascii_lowercase()))
}
pub(in crate::expr) fn to_upper<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    Ok(Val::string_of(coerced_bytes(&args[0])?.to_ascii_uppercase()))
}

pub(in crate::expr) fn strcasecmp<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    let (a, b) =
        (coerced_bytes(&args[0])?.to_ascii_uppercase(), coerced_bytes(&args[1])?.to_ascii_uppercase());
    Ok(Val::int(a.cmp(&b) as i32))
}

fn length<'v>(args: &[Val<'v>], call: &Call<'_>, code: i32, count: fn(&[u8]) -> usize) -> Result<Val<'v>> {
    match args[0].string_bytes() {
        Some(s) => Ok(Val::count(count(s))),
        None => Err(Error::location(
            code,
            format!("{} requires a string argument, found: {}", call.name, args[0].type_name()),
        )),
    }
}

pub(in crate::expr) fn str_len_bytes<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    length(args, call, 34473, <[u8]>::len)
}
pub(in crate::expr) fn str_len_cp<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    length(args, call, 34471, |s| s.iter().filter(|b| !code_points::is_continuation(**b)).count())
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
    n.coerced_i64().ok_or_else(|| {
        Error::location(31109, format!("Can't coerce out of range value {} to long", n.shown()))
    })
}

fn substr_bytes<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    let s = coerced_bytes(&args[0])?;
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
    let splits = |at: usize| s.get(at).is_some_and(|b| code_points::is_continuation(*b));
    if splits(start_at) {
        return Err(Error::location(
            28656,
            "$substrBytes:  Invalid range, starting index is a UTF-8 continuation byte.",
        ));
    }
    if splits(end) {
        return Err(Error::location(
            28657,
            "$substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character.",
        ));
    }
    Ok(Val::string_of(s[start_at..end].to_vec()))
}

pub(in crate::expr) fn substr_cp<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    let s = coerced_bytes(&args[0])?;
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
    Ok(Val::string_of(code_points::part(&s, start, len)?.to_vec()))
}

/// The two strings of an `$indexOf…`; `None` when the first is nullish.
fn search_strings<'a>(args: &'a [Val<'_>], name: &str, code: i32) -> Result<Option<(&'a [u8], &'a [u8])>> {
    if args[0].is_nullish() {
        return Ok(None);
    }
    let string = |i: usize, code, which: &str| {
        args[i].string_bytes().ok_or_else(|| {
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
    let found = memmem::find(&s[start..end], wanted);
    Ok(found.map_or(Val::int(-1), |at| Val::count(start + at)))
}

pub(in crate::expr) fn index_of_cp<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    let Some((s, wanted)) = search_strings(args, call.name, 40093)? else { return Ok(Val::NULL) };
    let (start, end) = search_range(args, call.name)?;
    // Byte offset of each code point, and of the end.
    let offsets = code_points::offsets(s)?;
    let points = offsets.len() - 1;
    let end = end.unwrap_or(points).min(points);
    if start > end {
        return Ok(Val::int(-1));
    }
    let window = &s[..offsets[end]];
    let mut from = offsets[start];
    // It is looked for where code points begin.
    while let Some(at) = memmem::find(&window[from..], wanted) {
        match offsets.binary_search(&(from + at)) {
            Ok(point) => return Ok(Val::count(point)),
            Err(_) => from += at + 1,
        }
    }
    Ok(Val::int(-1))
}

pub(in crate::expr) fn split<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    if args.iter().any(Val::is_nullish) {
        return Ok(Val::NULL);
    }
    let string = |i: usize, code, which: &str| {
        args[i].string_bytes().ok_or_else(|| {
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
    let mut done = 0;
    for at in memmem::find_iter(s, separator) {
        out.string_bytes(&s[done..at]);
        done = at + separator.len();
    }
    out.string_bytes(&s[done..]);
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
        p,
        |v| {
            Error::location(
                50696,
                format!("{name} only supports an object as an argument, found {}", v.type_name()),
            )
        },
        |other| Error::location(50694, format!("{name} found an unknown argument: {other}")),
    )?;
    let input = input.ok_or_else(|| Error::location(50695, format!("{name} requires an 'input' field")))?;
    Ok(Expr::Op(Box::new(Trim { name, input, chars })))
}

/// What goes when no characters are given.
const SPACES: &str = "\0 \t\n\u{b}\u{c}\r\u{a0}\u{1680}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2007}\
                      \u{2008}\u{2009}\u{200a}";

impl Trim {
    /// `s` without the code points of `set` at its ends.
    fn trim(&self, s: &[u8], set: &[u8]) -> Result<Val<'static>> {
        let points = code_points::set(self.name, set)?;
        let lengths: BTreeSet<usize> = points.iter().map(|p| p.len()).collect();
        let mut rest = s;
        if self.name != "$rtrim" {
            let begins =
                |s: &[u8]| lengths.iter().copied().find(|n| s.get(..*n).is_some_and(|p| points.contains(p)));
            while let Some(n) = begins(rest) {
                rest = &rest[n..];
            }
        }
        if self.name != "$ltrim" {
            let ends = |s: &[u8]| {
                let tail = |n: usize| s.len().checked_sub(n).map(|at| &s[at..]);
                lengths.iter().copied().find(|n| tail(*n).is_some_and(|p| points.contains(p)))
            };
            while let Some(n) = ends(rest) {
                rest = &rest[..rest.len() - n];
            }
        }
        Ok(Val::string_of(rest.to_vec()))
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
        let Some(s) = input.string_bytes() else {
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
        let Some(chars) = &self.chars else { return self.trim(s, SPACES.as_bytes()) };
        let chars = chars.eval(scope)?;
        if chars.is_nullish() {
            return Ok(Val::NULL);
        }
        let Some(set) = chars.string_bytes() else {
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
        self.trim(s, set)
    }
    parts!(input, chars);
    fn folds(&self) -> bool {
        true
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
        p,
        |v| {
            Error::location(
                51751,
                format!("{name} requires an object as an argument, found: {}", v.type_name()),
            )
        },
        |other| Error::location(51750, format!("{name} found an unknown argument: {other}")),
    )?;
    let field = |given: Option<Expr>, code, what: &str| {
        given.ok_or_else(|| Error::location(code, format!("{name} requires '{what}' to be specified")))
    };
    let input = field(input, 51749, "input")?;
    let find = field(find, 51748, "find")?;
    let replacement = field(replacement, 51747, "replacement")?;
    Ok(Expr::Op(Box::new(Replace { name, all: name == "$replaceAll", input, find, replacement })))
}

/// The first so many places where `find` stands, changed.
fn replaced(s: &[u8], find: &[u8], new: &[u8], places: usize) -> Result<Vec<u8>> {
    let (mut out, mut held, mut done) = (Vec::new(), Held::default(), 0);
    for at in memmem::find_iter(s, find).take(places) {
        held.grow_to(out.len() + (at - done) + new.len(), at - done + new.len())?;
        out.extend_from_slice(&s[done..at]);
        out.extend_from_slice(new);
        done = at + find.len();
    }
    held.grow_to(out.len() + s.len() - done, s.len() - done)?;
    out.extend_from_slice(&s[done..]);
    Ok(out)
}

impl Op for Replace {
    fn name(&self) -> &'static str {
        self.name
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let check = |v: &Val<'_>, code, what: &str| {
            if !v.is_nullish() && v.string_bytes().is_none() {
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
        match (input.string_bytes(), find.string_bytes(), replacement.string_bytes()) {
            (Some(s), Some(find), Some(new)) => {
                replaced(s, find, new, if self.all { usize::MAX } else { 1 }).map(Val::string_of)
            }
            _ => Ok(Val::NULL),
        }
    }
    parts!(input, find, replacement);
}
