//! The document that an upsert starts from: the equalities of its query.
//!
//! Taken are `{a: v}`, `$eq`, a one-valued `$in` or `$all`, members of `$and` and of an `$or` in which one alone can match.
//! A replacement takes only the `_id`.

use super::id_type_is_legal;
use super::path::cmp_names;
use crate::jsonschema::takes_no_document;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, ElementType, ObjectId, RawDoc, Value};

/// Path and value, sorted by path.
type Equalities<'a> = Vec<(&'a str, Elem<'a>)>;

/// The seed. Code 54 when two equalities meet on one path, 111 when a replacement's `_id` is only known in part.
pub(super) fn seed(filter: &RawDoc, only_id: bool) -> Result<DocBuf> {
    let mut found: Equalities<'_> = Vec::new();
    if is_never(filter) {
        // Of a filter that no document can match nothing is left, not even its `_id`.
        refuse_expr(filter)?;
    } else {
        collect(filter, only_id, &mut found)?;
    }
    found.sort_by(|a, b| a.0.cmp(b.0));
    if found.iter().any(|(path, _)| path.is_empty()) {
        return Err(Error::new(ErrorCode::IllegalOperation, "Cannot call setValue on the root object"));
    }
    if only_id && let Some((path, _)) = found.iter().find(|(path, _)| *path != "_id") {
        return Err(Error::new(
            ErrorCode::NotExactValueField,
            format!("field at '_id' must be exactly specified, field at sub-path '{path}'found"),
        ));
    }
    let mut b = DocBuilder::new();
    write(&mut b, &mut order_top(&found), 0);
    Ok(b.finish())
}

/// `_id` first, then by name as new fields are ordered.
fn order_top<'a>(found: &Equalities<'a>) -> Equalities<'a> {
    let mut out = found.clone();
    out.sort_by(|a, b| {
        let (x, y) = (first_part(a.0), first_part(b.0));
        (x != "_id").cmp(&(y != "_id")).then_with(|| cmp_paths(a.0, b.0))
    });
    out
}

fn first_part(path: &str) -> &str {
    path.split('.').next().unwrap_or(path)
}

fn cmp_paths(a: &str, b: &str) -> std::cmp::Ordering {
    let (mut x, mut y) = (a.split('.'), b.split('.'));
    loop {
        match (x.next(), y.next()) {
            (Some(p), Some(q)) => match cmp_names(p, q) {
                std::cmp::Ordering::Equal => {}
                o => return o,
            },
            (p, q) => return p.is_some().cmp(&q.is_some()),
        }
    }
}

/// Writes the equalities whose paths share their first `depth` bytes as one document.
fn write(b: &mut DocBuilder, group: &mut [(&str, Elem<'_>)], depth: usize) {
    let mut rest = group;
    while let Some((path, e)) = rest.first().copied() {
        let tail = &path[depth..];
        match tail.split_once('.') {
            None => {
                b.raw(e.ty, tail, e.data());
                rest = &mut rest[1..];
            }
            Some((head, _)) => {
                let prefix = &path[..depth + head.len() + 1];
                let n = rest.iter().take_while(|(p, _)| p.starts_with(prefix)).count();
                let (inner, after) = rest.split_at_mut(n);
                b.doc(head, |sub| write(sub, inner, prefix.len()));
                rest = after;
            }
        }
    }
}

fn collect<'a>(filter: &'a RawDoc, only_id: bool, found: &mut Equalities<'a>) -> Result<()> {
    for e in filter {
        match (e.name(), e.value()) {
            ("$and", Value::Array(members)) => {
                for m in members {
                    if let Value::Document(d) = m.value() {
                        collect(d, only_id, found)?;
                    }
                }
            }
            ("$or", Value::Array(members)) => {
                let mut possible = docs_of(members).filter(|d| !is_never(d));
                if let (Some(d), None) = (possible.next(), possible.next()) {
                    collect(d, only_id, found)?;
                }
            }
            ("$expr", _) => return Err(expr_refused()),
            (name, _) if name.starts_with('$') => {}
            (name, _) if only_id && first_part(name) != "_id" => {}
            (name, v) => field(name, e, v, found)?,
        }
    }
    Ok(())
}

fn expr_refused() -> Error {
    Error::new(ErrorCode::QueryFeatureNotAllowed, "$expr is not allowed in the query predicate for an upsert")
}

fn refuse_expr(filter: &RawDoc) -> Result<()> {
    for e in filter {
        match (e.name(), e.value()) {
            ("$and" | "$or" | "$nor", Value::Array(members)) => docs_of(members).try_for_each(refuse_expr)?,
            ("$expr", _) => return Err(expr_refused()),
            _ => {}
        }
    }
    Ok(())
}

fn docs_of(members: &RawDoc) -> impl Iterator<Item = &RawDoc> {
    members.iter().filter_map(|m| m.value().as_doc())
}

/// The filter says by itself that no document matches.
fn is_never(filter: &RawDoc) -> bool {
    filter.iter().any(|e| match (e.name(), e.value()) {
        ("$alwaysFalse", _) => true,
        ("$and", Value::Array(members)) => docs_of(members).any(is_never),
        ("$or", Value::Array(members)) => docs_of(members).all(is_never),
        ("$jsonSchema", Value::Document(schema)) => takes_no_document(schema),
        (name, Value::Document(condition)) if !name.starts_with('$') => condition
            .iter()
            .any(|op| op.name() == "$all" && matches!(op.value(), Value::Array(a) if a.is_empty())),
        _ => false,
    })
}

fn field<'a>(path: &'a str, e: Elem<'a>, v: Value<'a>, found: &mut Equalities<'a>) -> Result<()> {
    let condition = match v {
        Value::Document(d)
            if d.first().is_some_and(|f| f.name_bytes().starts_with(b"$") && !is_dbref(f.name())) =>
        {
            d
        }
        Value::Regex { .. } => return Ok(()),
        _ => return add(path, e, found),
    };
    for op in condition {
        match (op.name(), op.value()) {
            ("$eq", _) => add(path, op, found)?,
            ("$in", Value::Array(values)) if values.count() == 1 => {
                if let Some(one) = values.first().filter(|one| one.ty != ElementType::Regex) {
                    add(path, one, found)?;
                }
            }
            ("$all", Value::Array(values)) => {
                for one in values {
                    let operator = matches!(one.value(), Value::Document(d)
                        if d.first().is_some_and(|f| f.name_bytes().starts_with(b"$")));
                    if one.ty != ElementType::Regex && !operator {
                        add(path, one, found)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_dbref(name: &str) -> bool {
    matches!(name, "$ref" | "$id" | "$db")
}

fn add<'a>(path: &'a str, e: Elem<'a>, found: &mut Equalities<'a>) -> Result<()> {
    let not_single = |text: String| {
        Err(Error::new(ErrorCode::NotSingleValueField, format!("cannot infer query fields to set, {text}")))
    };
    for (other, _) in found.iter() {
        if *other == path {
            return not_single(format!("path '{path}' is matched twice"));
        }
        let (long, short) = if path.len() > other.len() { (path, *other) } else { (*other, path) };
        if long.strip_prefix(short).is_some_and(|rest| rest.starts_with('.')) {
            return not_single(format!("both paths '{long}' and '{short}' are matched"));
        }
    }
    found.push((path, e));
    Ok(())
}

/// Moves `_id` to the front, or puts a new one there.
pub(super) fn with_id_first(doc: DocBuf, new_id: impl FnOnce() -> ObjectId) -> DocBuf {
    if doc.first().is_some_and(|e| e.name() == "_id") {
        return doc;
    }
    let mut b = DocBuilder::with_capacity(doc.byte_len() + 18);
    match doc.elem("_id") {
        Some(id) => b.elem(id),
        None => b.object_id("_id", new_id()),
    };
    for e in &*doc {
        if e.name() != "_id" {
            b.elem(e);
        }
    }
    b.finish()
}

/// Code 52 for an `_id` with a field in it whose name is an operator's.
pub(super) fn check_id_names(e: Elem<'_>) -> Result<()> {
    let (Value::Document(inner) | Value::Array(inner)) = e.value() else { return Ok(()) };
    for e in inner {
        if e.name_bytes().starts_with(b"$") && !is_dbref(e.name()) {
            let text = format!(
                "_id fields may not contain '$'-prefixed fields: {} is not valid for storage.",
                e.shown_name()
            );
            return Err(Error::new(ErrorCode::DollarPrefixedFieldName, text));
        }
        check_id_names(e)?;
    }
    Ok(())
}

/// Code 53 for an `_id` that cannot be stored.
pub(super) fn check_id(doc: &RawDoc) -> Result<()> {
    match doc.elem("_id") {
        Some(id) if !id_type_is_legal(id.ty) => Err(Error::new(
            ErrorCode::InvalidIdField,
            format!("The '_id' value cannot be of type {}", id.ty.name()),
        )),
        _ => Ok(()),
    }
}
