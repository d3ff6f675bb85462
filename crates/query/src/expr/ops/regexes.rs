//! `$regexMatch`, `$regexFind`, `$regexFindAll`.

use crate::ctx::QueryCtx;
use crate::expr::{Expr, Held, Op, ParseCtx, Scope, Val, named, parts};
use crate::regex::Regex;
use pando_base::{Error, Result};
use pando_bson::{ArrayBuilder, DocBuilder, ElementType, Value};

#[derive(Clone)]
struct RegexOp {
    name: &'static str,
    input: Expr,
    regex: Expr,
    options: Option<Expr>,
    /// When pattern and options are constant.
    compiled: Option<Regex>,
}

pub(in crate::expr) fn parse(name: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let [input, regex, options] = named(
        v,
        ["input", "regex", "options"],
        p,
        |v| {
            Error::location(
                51103,
                format!("{name} expects an object of named arguments but found: {}", v.type_name()),
            )
        },
        |other| Error::location(31024, format!("{name} found an unknown argument: {other}")),
    )?;
    let input = input.ok_or_else(|| Error::location(31022, format!("{name} requires 'input' parameter")))?;
    let regex = regex.ok_or_else(|| Error::location(31023, format!("{name} requires 'regex' parameter")))?;
    Ok(Expr::Op(Box::new(RegexOp { name, input, regex, options, compiled: None })))
}

impl RegexOp {
    /// `None` when the pattern is nullish.
    fn compile(&self, regex: &Val<'_>, options: Option<&Val<'_>>) -> Result<Option<Regex>> {
        let name = self.name;
        let fits = |v: Value<'_>| matches!(v.element_type(), ElementType::String | ElementType::Regex);
        if !regex.is_nullish() && !regex.value().is_some_and(fits) {
            return Err(Error::location(
                51105,
                format!("{name} needs 'regex' to be of type string or regex"),
            ));
        }
        let given = match options {
            Some(v) if !v.is_nullish() => Some(v.as_str().ok_or_else(|| {
                Error::location(51106, format!("{name} needs 'options' to be of type string"))
            })?),
            _ => None,
        };
        let (pattern, own) = match regex.value() {
            Some(Value::String(s)) => (s, ""),
            Some(Value::NotUtf8(_)) => {
                return Err(Error::location(51111, format!("Invalid Regex in {name}: invalid UTF-8 string")));
            }
            Some(Value::Regex { pattern, options }) => (pattern, options),
            _ => return Ok(None),
        };
        if given.is_some() && !own.is_empty() {
            return Err(Error::location(
                51107,
                format!("{name}: found regex option(s) specified in both 'regex' and 'option' fields"),
            ));
        }
        let options = given.unwrap_or(own);
        if pattern.contains('\0') {
            return Err(Error::location(
                51109,
                format!("{name}: regular expression cannot contain an embedded null byte"),
            ));
        }
        if options.contains('\0') {
            return Err(Error::location(
                51110,
                format!("{name}: regular expression options string cannot contain an embedded null byte"),
            ));
        }
        if let Some(bad) = options.chars().find(|c| !matches!(c, 'i' | 'm' | 's' | 'x' | 'u')) {
            return Err(Error::location(51108, format!("{name} invalid flag in regex options: {bad}")));
        }
        Regex::for_captures(pattern, options).map(Some).map_err(|e| {
            let why = e.message.rsplit("Regular expression is invalid: ").next().unwrap_or_default();
            Error::location(51111, format!("Invalid Regex in {name}: {why}"))
        })
    }

    fn run(&self, regex: &Regex, s: &str) -> Result<Val<'static>> {
        match self.name {
            "$regexMatch" => Ok(Val::bool(regex.captures_at(s, 0)?.is_some())),
            "$regexFind" => {
                let found = regex.captures_at(s, 0)?;
                Ok(found.map_or(Val::NULL, |groups| Val::Doc(found_doc(s, &groups, 0, 0).0.finish())))
            }
            _ => find_all(regex, s),
        }
    }
}

type Groups = [Option<(usize, usize)>];

/// `{match, idx, captures}`, and the match's position in code points. `counted` code points end at byte `from`.
fn found_doc(s: &str, groups: &Groups, from: usize, counted: usize) -> (DocBuilder, usize) {
    let (start, end) = groups.first().copied().flatten().unwrap_or_default();
    let index = counted + s[from..start].chars().count();
    let mut b = DocBuilder::new();
    b.str("match", &s[start..end]);
    b.value("idx", Value::Int32(i32::try_from(index).unwrap_or(i32::MAX)));
    b.array("captures", |a| {
        for group in groups.iter().skip(1) {
            match group {
                Some((start, end)) => a.str(&s[*start..*end]),
                None => a.value(Value::Null),
            };
        }
    });
    (b, index)
}

fn find_all(regex: &Regex, s: &str) -> Result<Val<'static>> {
    let (mut out, mut held) = (ArrayBuilder::new(), Held::default());
    let (mut at, mut counted_to, mut counted) = (0, 0, 0);
    while let Some(groups) = regex.captures_at(s, at)? {
        let Some((start, end)) = groups.first().copied().flatten() else { break };
        let (doc, index) = found_doc(s, &groups, counted_to, counted);
        (counted_to, counted) = (start, index);
        out.raw_doc(&doc.finish());
        held.grow_to(out.byte_len(), 0)?;
        // An empty match moves on by one character.
        at = match end > start {
            true => end,
            false => end + s[end..].chars().next().map_or(1, char::len_utf8),
        };
        // Nothing is looked for behind the last character.
        if at >= s.len() {
            break;
        }
    }
    Ok(Val::Array(out.finish()))
}

impl Op for RegexOp {
    fn name(&self) -> &'static str {
        self.name
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let nothing = || match self.name {
            "$regexMatch" => Val::bool(false),
            "$regexFind" => Val::NULL,
            _ => Val::array([]),
        };
        let input = self.input.eval(scope)?;
        // All are evaluated before the first one is looked at.
        let given = match &self.compiled {
            Some(_) => None,
            None => {
                let regex = self.regex.eval(scope)?;
                Some((regex, self.options.as_ref().map(|e| e.eval(scope)).transpose()?))
            }
        };
        let text = match input.value() {
            None | Some(Value::Null | Value::Undefined) => None,
            Some(Value::String(s)) => Some(Ok(s)),
            Some(v) if v.string_bytes().is_some() => Some(Err(Error::location(
                51156,
                format!(
                    "Error occurred while executing the regular expression in {}. Result code: -10",
                    self.name
                ),
            ))),
            Some(_) => {
                return Err(Error::location(
                    51104,
                    format!("{} needs 'input' to be of type string", self.name),
                ));
            }
        };
        let fresh;
        let regex = match (&self.compiled, given) {
            (Some(regex), _) => regex,
            (None, None) => return Ok(nothing()),
            (None, Some((regex, options))) => match self.compile(&regex, options.as_ref())? {
                Some(regex) => {
                    fresh = regex;
                    &fresh
                }
                None => return Ok(nothing()),
            },
        };
        match text {
            Some(s) => self.run(regex, s?),
            None => Ok(nothing()),
        }
    }
    parts!(input, regex, options);
    fn simplify(&mut self, _: &QueryCtx) -> Result<Option<Expr>> {
        let options = self.options.as_ref().map(Expr::as_const);
        if let (Some(regex), None | Some(Some(_))) = (self.regex.as_const(), options) {
            self.compiled = self.compile(regex, options.flatten())?;
        }
        Ok(None)
    }
}
