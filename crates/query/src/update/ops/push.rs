//! `$push` with `$each`, `$position`, `$slice` and `$sort`.

use crate::matcher::exact_i64 as integral;
use crate::update::modifier::{Apply, Arg, ArrayOut, Effect, Modifier, Stored, id_text, value_depth};
use crate::update::path::Path;
use pando_base::{Error, Result, patience};
use pando_bson::{Elem, ElementType, RawDoc, Value};
use std::cmp::Ordering;

#[derive(Debug, Default)]
struct Push {
    values: Vec<Stored>,
    position: Option<i64>,
    slice: Option<i64>,
    sort: Option<Sort>,
}

#[derive(Debug)]
enum Sort {
    /// Whole elements.
    Whole { descending: bool },
    /// Sub-document fields, dotted.
    Fields(Vec<(String, bool)>),
}

pub(super) fn parse(arg: &Arg<'_>) -> Result<Box<dyn Modifier>> {
    let spec = match arg.elem.value() {
        Value::Document(d) if d.elem("$each").is_some() => d,
        _ => return Ok(Box::new(Push { values: vec![Stored::of(arg.elem)], ..Push::default() })),
    };
    let mut push = Push::default();
    for e in spec {
        match e.name() {
            "$each" => {
                let Value::Array(items) = e.value() else {
                    return Err(Error::bad_value(format!(
                        "The argument to $each in $push must be an array but it was of type: {}",
                        e.ty.name()
                    )));
                };
                push.values = items.iter().map(Stored::of).collect();
            }
            "$slice" => {
                push.slice = Some(integral(e.value()).ok_or_else(|| {
                    Error::bad_value(format!(
                        "The value for $slice must be an integer value but was given type: {}",
                        e.ty.name()
                    ))
                })?);
            }
            "$position" => {
                push.position = Some(integral(e.value()).ok_or_else(|| {
                    Error::bad_value(format!(
                        "The value for $position must be an integer value, not of type: {}",
                        e.ty.name()
                    ))
                })?);
            }
            "$sort" => push.sort = Some(parse_sort(e)?),
            other => return Err(Error::bad_value(format!("Unrecognized clause in $push: {other}"))),
        }
    }
    Ok(Box::new(push))
}

/// `Some(true)` for descending.
fn direction(v: Value<'_>) -> Option<bool> {
    match integral(v) {
        Some(1) => Some(false),
        Some(-1) => Some(true),
        _ => None,
    }
}

fn parse_sort(e: Elem<'_>) -> Result<Sort> {
    match e.value() {
        Value::Document(fields) => {
            if fields.is_empty() {
                return Err(Error::bad_value("The sort pattern is empty when it should be a set of fields."));
            }
            let mut out = Vec::new();
            for f in fields {
                let Some(descending) = direction(f.value()) else {
                    return Err(Error::bad_value("The sort element value must be either 1 or -1"));
                };
                let path = f.path()?;
                if path.is_empty() {
                    return Err(Error::bad_value("The sort field cannot be empty"));
                }
                if path.split('.').any(str::is_empty) {
                    return Err(Error::bad_value(format!(
                        "The sort field is a dotted field but has an empty part: {path}"
                    )));
                }
                out.push((path.to_owned(), descending));
            }
            Ok(Sort::Fields(out))
        }
        v if v.is_number() => match direction(v) {
            Some(descending) => Ok(Sort::Whole { descending }),
            None => Err(Error::bad_value("The $sort element value must be either 1 or -1")),
        },
        _ => Err(Error::bad_value(
            "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields",
        )),
    }
}

/// The value at a dotted path, positions in arrays included; null when there is none.
fn at_path<'d>(v: Value<'d>, path: &str) -> Value<'d> {
    let mut at = v;
    for part in path.split('.') {
        let doc: &'d RawDoc = match at {
            Value::Document(d) | Value::Array(d) => d,
            _ => return Value::Null,
        };
        match doc.get(part) {
            Some(v) => at = v,
            None => return Value::Null,
        }
    }
    at
}

impl Sort {
    fn compare(&self, cx: &Apply<'_>, a: Elem<'_>, b: Elem<'_>) -> Ordering {
        let directed = |o: Ordering, descending: bool| if descending { o.reverse() } else { o };
        match self {
            Sort::Whole { descending } => directed(cx.compare(a.value(), b.value()), *descending),
            Sort::Fields(fields) => fields
                .iter()
                .map(|(path, descending)| {
                    directed(cx.compare(at_path(a.value(), path), at_path(b.value(), path)), *descending)
                })
                .find(|o| o.is_ne())
                .unwrap_or(Ordering::Equal),
        }
    }
}

impl Push {
    /// Where the new elements go in an array of `len`, and whether that counts as the plain end.
    fn place(&self, len: usize) -> (usize, bool) {
        match self.position {
            None => (len, true),
            Some(p) if p < 0 => (len.saturating_sub(p.unsigned_abs() as usize), false),
            Some(p) => ((p as usize).min(len), p as usize > len),
        }
    }

    /// The result's elements. The flag says that they are the old ones followed by all new ones.
    fn result<'e>(&'e self, cx: &Apply<'_>, old: &'e RawDoc) -> Result<(Vec<Elem<'e>>, bool)> {
        let mut all: Vec<Elem<'e>> = old.iter().collect();
        let (at, at_end) = self.place(all.len());
        all.splice(at..at, self.values.iter().map(Stored::elem));
        let mut appended = at_end && !old.is_empty();
        if let Some(sort) = &self.sort {
            patience::sort_by(&mut all, patience::COMPARE_STEPS, |a, b| sort.compare(cx, *a, *b))?;
            appended = false;
        }
        if let Some(slice) = self.slice {
            let keep = usize::try_from(slice.unsigned_abs()).unwrap_or(usize::MAX);
            if keep < all.len() {
                appended = false;
                if slice >= 0 {
                    all.truncate(keep);
                } else {
                    all.drain(..all.len() - keep);
                }
            }
        }
        Ok((all, appended))
    }
}

impl Modifier for Push {
    fn makes_array(&self) -> bool {
        !self.values.is_empty()
    }
    fn update(&self, cx: &Apply<'_>, old: Elem<'_>, path: &Path<'_>, out: &mut Vec<u8>) -> Result<Effect> {
        let Value::Array(array) = old.value() else {
            return Err(Error::bad_value(format!(
                "The field '{path}' must be an array but is of type {} in document {}",
                old.ty.name(),
                id_text(cx.root)
            )));
        };
        let (result, appended) = self.result(cx, array)?;
        let old_len = array.count();
        // A sort counts as a change even when it moves nothing.
        if self.values.is_empty() && result.len() == old_len && (self.sort.is_none() || old_len == 0) {
            return Ok(Effect::Same);
        }
        let mut written = ArrayOut::begin(out);
        let mut elements = Vec::new();
        for (i, e) in result.into_iter().enumerate() {
            let span = written.elem(e);
            if appended && i >= old_len {
                elements.push(span);
            }
        }
        written.end();
        Ok(if appended {
            Effect::Appended { first: old_len, elements }
        } else {
            Effect::Set(ElementType::Array)
        })
    }
    fn create(&self, cx: &Apply<'_>, out: &mut Vec<u8>) -> Result<Option<ElementType>> {
        let (result, _) = self.result(cx, RawDoc::empty())?;
        let mut written = ArrayOut::begin(out);
        for e in result {
            written.elem(e);
        }
        written.end();
        Ok(Some(ElementType::Array))
    }
    fn depth(&self) -> usize {
        1 + self.values.iter().map(|v| value_depth(v.value())).max().unwrap_or(0)
    }
}
