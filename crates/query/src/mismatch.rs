//! Why a document does not match a filter: the `details` of a failed validation (code 121).
//!
//! Works on the filter as written, clause by clause, because that is what `specifiedAs` shows.

use crate::ctx::QueryCtx;
use crate::expr::Expr;
use crate::jsonschema::Schema;
use crate::matcher::{ArrayAtEnd, Matcher, Path, walk};
use pando_base::{Result, limits};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, Elem, ElementType, RawDoc, Value};
use std::collections::BTreeSet;

/// The details of the refusal; an error only if the filter itself does not parse.
pub fn details(filter: &RawDoc, doc: &RawDoc, ctx: &QueryCtx) -> Result<DocBuf> {
    let mut out = DocBuilder::new();
    explain(filter, doc, ctx, false, 0, &mut out)?;
    Ok(out.finish())
}

fn one(e: Elem<'_>) -> DocBuf {
    let mut b = DocBuilder::new();
    b.elem(e);
    b.finish()
}

/// Each predicate as a filter of its own.
fn clauses(filter: &RawDoc) -> Vec<DocBuf> {
    let mut out = Vec::new();
    for e in filter {
        match e.value() {
            Value::Document(ops)
                if !e.name_bytes().starts_with(b"$")
                    && ops.count() > 1
                    && ops.iter().all(|o| o.name_bytes().starts_with(b"$") && o.name() != "$options") =>
            {
                for op in ops {
                    let mut b = DocBuilder::new();
                    b.doc(e.name_bytes(), |b| {
                        b.elem(op);
                    });
                    out.push(b.finish());
                }
            }
            _ => out.push(one(e)),
        }
    }
    out
}

/// `inverted`: the filter matches though it should not.
fn explain(
    filter: &RawDoc,
    doc: &RawDoc,
    ctx: &QueryCtx,
    inverted: bool,
    depth: usize,
    out: &mut DocBuilder,
) -> Result<()> {
    let clauses = clauses(filter);
    if depth > limits::BSON_DEPTH_MAX {
        return Ok(());
    }
    match clauses.as_slice() {
        [] => Ok(()),
        [clause] => match clause.first() {
            Some(e) => explain_clause(e, clause, doc, ctx, inverted, depth, out),
            None => Ok(()),
        },
        many => {
            out.str("operatorName", "$and");
            list(many, doc, ctx, inverted, depth, out)
        }
    }
}

fn list(
    all: &[DocBuf],
    doc: &RawDoc,
    ctx: &QueryCtx,
    inverted: bool,
    depth: usize,
    out: &mut DocBuilder,
) -> Result<()> {
    let mut entries = ArrayBuilder::new();
    for (i, clause) in all.iter().enumerate() {
        if Matcher::parse(clause, ctx)?.matches(doc)? != inverted {
            continue;
        }
        let mut inner = DocBuilder::new();
        explain(clause, doc, ctx, inverted, depth + 1, &mut inner)?;
        let inner = inner.finish();
        entries.doc(|b| {
            b.i32("index", i as i32).raw_doc("details", &inner);
        });
    }
    let name = if inverted { "clausesSatisfied" } else { "clausesNotSatisfied" };
    out.raw_array(name, &entries.finish());
    Ok(())
}

fn explain_clause(
    e: Elem<'_>,
    clause: &RawDoc,
    doc: &RawDoc,
    ctx: &QueryCtx,
    inverted: bool,
    depth: usize,
    out: &mut DocBuilder,
) -> Result<()> {
    match (e.name(), e.value()) {
        (name @ ("$and" | "$or" | "$nor"), Value::Array(items)) => {
            let subs: Vec<DocBuf> =
                items.iter().filter_map(|i| i.value().as_doc().map(|d| d.to_buf())).collect();
            out.str("operatorName", name);
            list(&subs, doc, ctx, inverted != (name == "$nor"), depth, out)
        }
        ("$jsonSchema", Value::Document(schema)) => {
            let schema = Schema::parse(schema, ctx)?;
            if inverted {
                out.str("operatorName", "$jsonSchema").raw_doc("specifiedAs", clause);
                out.str("reason", "schema matched");
            } else {
                schema.explain(doc, out);
            }
            Ok(())
        }
        ("$expr", v) => {
            out.str("operatorName", "$expr").raw_doc("specifiedAs", clause);
            out.str("reason", if inverted { "expression did match" } else { "expression did not match" });
            Expr::parse(v, ctx)?.eval_doc(doc, ctx)?.put_to(out, "expressionResult");
            Ok(())
        }
        (name, _) if name.starts_with('$') => {
            out.str("operatorName", name).raw_doc("specifiedAs", clause);
            Ok(())
        }
        (path, Value::Document(ops)) if ops.first().is_some_and(|o| o.name() == "$not") => {
            let mut inner = DocBuilder::new();
            if let Some(not) = ops.first() {
                inner.raw(not.ty, path, not.data());
            }
            let inner = inner.finish();
            let mut deeper = DocBuilder::new();
            explain(&inner, doc, ctx, !inverted, depth + 1, &mut deeper)?;
            out.str("operatorName", "$not").raw_doc("details", &deeper.finish());
            Ok(())
        }
        (path, v) => {
            predicate(path, v, clause, doc, inverted, out);
            Ok(())
        }
    }
}

/// One operator on one path.
fn predicate(path: &str, v: Value<'_>, clause: &RawDoc, doc: &RawDoc, inverted: bool, out: &mut DocBuilder) {
    let op = match v {
        Value::Document(ops) => ops.first().filter(|o| o.name_bytes().starts_with(b"$")),
        _ => None,
    };
    let name = match (op, v) {
        (Some(o), _) => o.name(),
        (None, Value::Regex { .. }) => "$regex",
        _ => "$eq",
    };
    out.str("operatorName", name).raw_doc("specifiedAs", clause);
    let expands = !matches!(name, "$size" | "$elemMatch" | "$all" | "$exists");
    let found =
        Considered::collect(doc, path, if expands { ArrayAtEnd::Elements } else { ArrayAtEnd::Whole });
    if name == "$exists" {
        out.str("reason", if found.any { "path does exist" } else { "path does not exist" });
        return;
    }
    if !found.any {
        out.str("reason", "field was missing");
        return;
    }
    if !inverted && found.append_wrong_type(name, out) {
        found.append_values(out);
        return;
    }
    if matches!(name, "$geoWithin" | "$within" | "$geoIntersects") {
        out.str("reason", place_reason(doc, path, name, inverted));
        found.append_values(out);
        return;
    }
    let negative = matches!(name, "$ne" | "$nin");
    let reason = match (name, inverted != negative) {
        ("$in" | "$nin", false) => "no matching value found in array",
        ("$in" | "$nin", true) => "matching value found in array",
        ("$type", false) => "type did not match",
        ("$type", true) => "type did match",
        ("$regex", false) => "regular expression did not match",
        ("$regex", true) => "regular expression did match",
        ("$size", false) => "array length was not equal to given size",
        ("$size", true) => "array length was equal to given size",
        ("$elemMatch", false) => "array did not satisfy the child predicate",
        ("$elemMatch", true) => "array did satisfy the child predicate",
        ("$all", false) => "array did not contain all specified values",
        ("$all", true) => "array did contain all specified values",
        ("$mod", false) => "$mod did not evaluate to expected remainder",
        ("$mod", true) => "$mod did evaluate to expected remainder",
        (bits, false) if bits.starts_with("$bits") => "bitwise operator failed to match",
        (bits, true) if bits.starts_with("$bits") => "bitwise operator matched successfully",
        (_, false) => "comparison failed",
        (_, true) => "comparison succeeded",
    };
    out.str("reason", reason);
    found.append_values(out);
    if name == "$type" {
        found.append_types(out);
    }
}

fn place_reason(doc: &RawDoc, path: &str, name: &str, inverted: bool) -> &'static str {
    let is_place = |e: Option<&Elem<'_>>| e.is_some_and(|e| crate::geo::parse::geometry(*e).is_ok());
    match (name, inverted) {
        _ if !crate::matcher::any_at(doc, &Path::new(path), &mut |e| is_place(e)) => {
            "could not find a valid geometry at the given path"
        }
        ("$geoIntersects", false) => {
            "none of the considered geometries intersected the expression’s geometry"
        }
        ("$geoIntersects", true) => {
            "at least one of considered geometries intersected the expression’s geometry"
        }
        (_, false) => "none of the considered geometries were contained within the expression’s geometry",
        (_, true) => "at least one of considered geometries was contained within the expression’s geometry",
    }
}

/// What a predicate looked at.
struct Considered<'d> {
    values: Vec<Elem<'d>>,
    /// The path leads somewhere.
    any: bool,
}

impl<'d> Considered<'d> {
    fn collect(doc: &'d RawDoc, path: &str, leaf: ArrayAtEnd) -> Considered<'d> {
        let path = Path::new(path);
        let (mut values, mut any): (Vec<Elem<'d>>, bool) = (Vec::new(), false);
        walk(doc.elem(path.first()), path.rest(), leaf, &mut |(e, position)| {
            let Some(e) = e else { return false };
            any = true;
            let own = e.data().as_ptr_range();
            // An array whose elements were looked at is not looked at itself.
            let holds_last = || values.last().is_some_and(|v| own.contains(&v.data().as_ptr()));
            let empty = || position.is_none() && RawDoc::trusted(e.data()).is_empty();
            let opened =
                leaf == ArrayAtEnd::Elements && e.ty == ElementType::Array && (holds_last() || empty());
            if !opened {
                values.push(e);
            }
            false
        });
        Considered { values, any }
    }

    /// "type did not match" when the operator has no use for any of the values.
    fn append_wrong_type(&self, op: &str, out: &mut DocBuilder) -> bool {
        let expected: &[&str] = match op {
            "$regex" => &["regex", "string", "symbol"],
            "$mod" => &["decimal", "double", "int", "long"],
            "$size" | "$elemMatch" => &["array"],
            bits if bits.starts_with("$bits") => &["binData", "decimal", "double", "int", "long"],
            _ => return false,
        };
        if self.values.iter().any(|v| expected.contains(&v.ty.name())) {
            return false;
        }
        out.str("reason", "type did not match");
        self.append_types(out);
        append_one_or_many(out, "expectedType", expected);
        true
    }

    fn append_types(&self, out: &mut DocBuilder) {
        let types: BTreeSet<&str> = self.values.iter().map(|v| v.ty.name()).collect();
        append_one_or_many(out, "consideredType", &types.into_iter().collect::<Vec<_>>());
    }

    fn append_values(&self, out: &mut DocBuilder) {
        match self.values[..] {
            [one] => {
                out.raw(one.ty, "consideredValue", one.data());
            }
            _ => {
                out.array("consideredValues", |a| {
                    for v in &self.values {
                        a.value(v.value());
                    }
                });
            }
        }
    }
}

/// `name: one` or `names: [...]`; nothing for none.
fn append_one_or_many(out: &mut DocBuilder, name: &str, types: &[&str]) {
    match types {
        [] => {}
        [one] => {
            out.str(name, one);
        }
        many => {
            out.array(&format!("{name}s"), |a| {
                for t in many {
                    a.str(t);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::{Document, doc};

    fn why(filter: Document) -> Document {
        let subject = doc! { "a": 5, "s": "hello" }.to_raw();
        Document::from(&*details(&filter.to_raw(), &subject, &QueryCtx::default()).unwrap())
    }

    #[test]
    fn one_failed_comparison_is_told_with_its_value() {
        assert_eq!(
            why(doc! { "a": { "$gt": 9 } }),
            doc! {
                "operatorName": "$gt", "specifiedAs": { "a": { "$gt": 9 } },
                "reason": "comparison failed", "consideredValue": 5
            }
        );
        assert_eq!(
            why(doc! { "zz": 9 }),
            doc! { "operatorName": "$eq", "specifiedAs": { "zz": 9 }, "reason": "field was missing" }
        );
    }

    #[test]
    fn only_the_failed_clauses_of_a_conjunction_are_listed() {
        let out = why(doc! { "a": 5, "s": "x" });
        assert_eq!(out.get("operatorName").unwrap().as_str(), Some("$and"));
        let clauses = out.get("clausesNotSatisfied").unwrap().as_array().unwrap();
        assert_eq!(clauses.len(), 1);
        assert_eq!(clauses[0].as_doc().unwrap().get("index").unwrap().as_i64(), Some(1));
    }

    #[test]
    fn arrays_are_considered_element_by_element_and_useless_types_are_told() {
        let why = |filter: Document, subject: Document| {
            Document::from(&*details(&filter.to_raw(), &subject.to_raw(), &QueryCtx::default()).unwrap())
        };
        let out = why(doc! { "b.c": { "$gt": 5 } }, doc! { "b": [{ "c": [1, 2] }, { "c": 3 }] });
        assert_eq!(out.get("consideredValues"), doc! { "v": [1, 2, 3] }.get("v"));
        let out = why(doc! { "b": { "$size": 2 } }, doc! { "b": [1] });
        assert_eq!(out.get("consideredValue"), doc! { "v": [1] }.get("v"));
        let out = why(doc! { "b": { "$mod": [2, 0] } }, doc! { "b": ["s", true] });
        assert_eq!(out.get("reason").unwrap().as_str(), Some("type did not match"));
        assert_eq!(out.get("consideredTypes"), doc! { "v": ["bool", "string"] }.get("v"));
    }

    #[test]
    fn negations_tell_what_succeeded() {
        let out = why(doc! { "a": { "$not": { "$gt": 1 } } });
        let inner = out.get("details").unwrap().as_doc().unwrap();
        assert_eq!(inner.get("reason").unwrap().as_str(), Some("comparison succeeded"));
        let out = why(doc! { "$nor": [{ "a": 5 }] });
        assert!(out.get("clausesSatisfied").is_some());
    }
}
