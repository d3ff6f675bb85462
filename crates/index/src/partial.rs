//! Which filters a partial index may have: those that the planner can prove to follow from a query.

use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{DocBuilder, RawDoc, Value};
use pando_query::QueryCtx;
use pando_query::matcher::{Matcher, Place};
use pando_query::timeseries::{BUCKET_GEO, BUCKET_HOLDS};

/// Parses a filter statement by statement, so that the first mistake is told, and refuses what no index filter may hold at
/// all, wherever it stands (224).
pub(crate) fn check_form(filter: &RawDoc) -> Result<()> {
    check_statements(filter)?;
    Matcher::parse_in(Place::Document, filter, &QueryCtx::default()).map(drop)
}

fn check_statements(filter: &RawDoc) -> Result<()> {
    for e in filter {
        match (e.name(), e.value()) {
            (name @ ("$expr" | "$jsonSchema"), _) => {
                let text = format!("{name} is not allowed in this context");
                return Err(Error::new(ErrorCode::QueryFeatureNotAllowed, text));
            }
            ("$and" | "$or" | "$nor", Value::Array(branches))
                if !branches.is_empty() && branches.iter().all(|b| b.value().as_doc().is_some()) =>
            {
                branches.iter().filter_map(|b| b.value().as_doc()).try_for_each(check_statements)?;
            }
            _ => {
                let mut alone = DocBuilder::new();
                alone.elem(e);
                Matcher::parse_in(Place::Document, &alone.finish(), &QueryCtx::default())?;
            }
        }
    }
    Ok(())
}

/// Accepts equality, `$eq $gt $gte $lt $lte $in $type $exists: true`, `$geoWithin $geoIntersects`, `$and` and `$or`.
pub(crate) fn check(filter: &RawDoc) -> Result<()> {
    check_tree(filter, 0)
}

fn refuse(expression: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorCode::CannotCreateIndex,
        format!("Expression not supported in partial index: {expression}\n"),
    )
}

/// The condition as it is parsed.
fn refuse_filter(filter: &RawDoc) -> Error {
    match Matcher::parse(filter, &QueryCtx::default()) {
        Ok(m) => refuse(m.root().debug_tree().trim_end()),
        Err(e) => e,
    }
}

fn refuse_condition(path: &str, op: &str, v: Value<'_>) -> Error {
    let mut b = DocBuilder::new();
    b.doc(path, |d| {
        d.value(op, v);
    });
    refuse_filter(&b.finish())
}

/// Stands for equality, as an element of `$all`.
fn is_plain(v: Value<'_>) -> bool {
    match v {
        Value::Regex { .. } => false,
        Value::Document(d) => !is_operators(d),
        _ => true,
    }
}

fn check_tree(filter: &RawDoc, depth: usize) -> Result<()> {
    if depth > limits::PARTIAL_FILTER_DEPTH_MAX {
        return Err(Error::new(
            ErrorCode::CannotCreateIndex,
            "partialFilterExpression depth may not exceed 4",
        ));
    }
    for e in filter {
        match (e.name(), e.value()) {
            ("$and" | "$or", Value::Array(branches)) => {
                for branch in branches {
                    match branch.value() {
                        Value::Document(d) => check_tree(d, depth + 1)?,
                        v => {
                            return Err(Error::bad_value(format!(
                                "$or/$and/$nor entries need to be full objects, got {v}"
                            )));
                        }
                    }
                }
            }
            ("$comment" | BUCKET_HOLDS | BUCKET_GEO, _) => {}
            (name, _) if name.starts_with('$') => {
                let mut alone = DocBuilder::new();
                alone.elem(e);
                return Err(refuse_filter(&alone.finish()));
            }
            (path, Value::Document(ops)) if is_operators(ops) => {
                for op in ops {
                    check_operator(path, op.name(), op.value())?;
                }
            }
            (path, Value::Regex { pattern, options }) => {
                return Err(refuse(format_args!("{path} regex /{pattern}/{options}")));
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_operators(doc: &RawDoc) -> bool {
    doc.first()
        .is_some_and(|e| e.name_bytes().starts_with(b"$") && !matches!(e.name(), "$ref" | "$id" | "$db"))
}

fn check_operator(path: &str, op: &str, v: Value<'_>) -> Result<()> {
    match op {
        "$eq" | "$gt" | "$gte" | "$lt" | "$lte" | "$type" | "$in" | "$geoWithin" | "$within"
        | "$geoIntersects" => Ok(()),
        "$exists" if v.is_truthy() => Ok(()),
        "$exists" => Err(refuse(format_args!("$not\n    {path} exists"))),
        "$ne" => Err(refuse(format_args!("$not\n    {path} $eq {v}"))),
        "$regex" => Err(refuse(format_args!("{path} regex /{}/", v.as_str().unwrap_or_default()))),
        "$all" if matches!(v, Value::Array(list) if list.iter().all(|e| is_plain(e.value()))) => Ok(()),
        _ => Err(refuse_condition(path, op, v)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::{Document, doc};

    fn code(filter: Document) -> i32 {
        check(&filter.to_raw()).map_or_else(|e| e.code.0, |()| 0)
    }

    #[test]
    fn only_provable_filters_are_accepted() {
        for ok in [
            doc! { "a": 1, "b": { "$gt": 1, "$lte": 5 } },
            doc! { "$or": [{ "a": { "$gt": 1 } }, { "b": { "$exists": true } }] },
            doc! { "a": { "$in": [1, 2] }, "b": { "$type": "string" } },
            doc! { "a": { "x": 1 } },
        ] {
            assert_eq!(code(ok), 0);
        }
        for bad in [
            doc! { "a": { "$ne": 1 } },
            doc! { "a": { "$exists": false } },
            doc! { "a": { "$regex": "x" } },
            doc! { "a": { "$not": { "$gt": 1 } } },
            doc! { "$nor": [{ "a": 1 }] },
            doc! { "a": { "$elemMatch": { "$gt": 1 } } },
        ] {
            assert_eq!(code(bad), 67);
        }
        for refused in
            [doc! { "$expr": { "$eq": ["$a", 1] } }, doc! { "$or": [{ "$and": [{ "$jsonSchema": {} }] }] }]
        {
            assert_eq!(check_form(&refused.to_raw()).map_err(|e| e.code.0), Err(224));
        }
    }
}
