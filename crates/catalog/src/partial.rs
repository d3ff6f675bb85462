//! Which filters a partial index may have: those that the planner can prove to follow from a query.

use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{RawDoc, Value};

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
            ("$comment", _) => {}
            (name, v) if name.starts_with('$') => return Err(refuse(format_args!("{name} {v}"))),
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
    doc.first().is_some_and(|e| e.name().starts_with('$') && !matches!(e.name(), "$ref" | "$id" | "$db"))
}

fn check_operator(path: &str, op: &str, v: Value<'_>) -> Result<()> {
    match op {
        "$eq" | "$gt" | "$gte" | "$lt" | "$lte" | "$type" | "$in" | "$geoWithin" | "$within"
        | "$geoIntersects" => Ok(()),
        "$exists" if v.is_truthy() => Ok(()),
        "$exists" => Err(refuse(format_args!("$not\n    {path} exists"))),
        "$ne" => Err(refuse(format_args!("$not\n    {path} $eq {v}"))),
        "$regex" => Err(refuse(format_args!("{path} regex /{}/", v.as_str().unwrap_or_default()))),
        _ => Err(refuse(format_args!("{path} {op} {v}"))),
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
            doc! { "$expr": { "$eq": ["$a", 1] } },
        ] {
            assert_eq!(code(bad), 67);
        }
    }
}
