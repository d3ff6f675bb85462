//! Filters in places where not every operator may stand: projections, `$pull`, array filters, `$match`, upserts.

use pando_base::{Error, ErrorCode, Result};
use pando_bson::{RawDoc, Value};

/// Code 2 for `$text` and `$where`, 5626500 for geo operators that sort, 224 for `$jsonSchema` where it may not stand either.
pub(super) fn check(filter: &RawDoc, schemas: bool) -> Result<()> {
    for e in filter {
        match e.name() {
            name @ ("$text" | "$where") => return Err(not_here(name)),
            "$jsonSchema" if !schemas => return Err(no_schema()),
            "$and" | "$or" | "$nor" => {
                let Value::Array(members) = e.value() else { continue };
                members.iter().filter_map(|m| m.value().as_doc()).try_for_each(|d| check(d, schemas))?;
            }
            name if name.starts_with('$') => {}
            _ => check_elements(e.value(), |d| check_nested(d, schemas))?,
        }
    }
    Ok(())
}

/// The same inside an `$elemMatch`, where the parser has words of its own for `$text`.
fn check_nested(filter: &RawDoc, schemas: bool) -> Result<()> {
    for e in filter {
        match e.name() {
            "$where" => return Err(not_here("$where")),
            "$jsonSchema" if !schemas => return Err(no_schema()),
            "$and" | "$or" | "$nor" => {
                let Value::Array(members) = e.value() else { continue };
                members
                    .iter()
                    .filter_map(|m| m.value().as_doc())
                    .try_for_each(|d| check_nested(d, schemas))?;
            }
            name if sorts(name) => return Err(no_near()),
            name if name.starts_with('$') => {}
            _ => {
                e.value().as_doc().map_or(Ok(()), refuse_sorting)?;
                check_elements(e.value(), |d| check_nested(d, schemas))?;
            }
        }
    }
    Ok(())
}

/// Refuses what sorts by distance: asked of a filter that was parsed already.
pub(crate) fn refuse_near(filter: &RawDoc) -> Result<()> {
    for e in filter {
        match (e.name(), e.value()) {
            ("$and" | "$or" | "$nor", Value::Array(members)) => {
                members.iter().filter_map(|m| m.value().as_doc()).try_for_each(refuse_near)?;
            }
            (name, Value::Document(ops)) if !name.starts_with('$') => refuse_sorting(ops)?,
            _ => {}
        }
    }
    Ok(())
}

fn refuse_sorting(ops: &RawDoc) -> Result<()> {
    for e in ops {
        match (e.name(), e.value()) {
            (name, _) if sorts(name) => return Err(no_near()),
            ("$not", Value::Document(ops)) => refuse_sorting(ops)?,
            _ => {}
        }
    }
    Ok(())
}

/// What the parser has other words for, in a `$match`'s filter: scripts and sorting inside an `$elemMatch`.
pub(crate) fn check_match(filter: &RawDoc) -> Result<()> {
    for e in filter {
        match (e.name(), e.value()) {
            ("$and" | "$or" | "$nor", Value::Array(members)) => {
                members.iter().filter_map(|m| m.value().as_doc()).try_for_each(check_match)?;
            }
            (name, v) if !name.starts_with('$') => check_elements(v, |d| check_nested(d, true))?,
            _ => {}
        }
    }
    Ok(())
}

/// An upsert makes a document of its filter, which `$expr` says nothing about.
pub fn refuse_expr_in_upsert(filter: &RawDoc) -> Result<()> {
    for e in filter {
        match (e.name(), e.value()) {
            ("$expr", _) => {
                return Err(Error::new(
                    ErrorCode::QueryFeatureNotAllowed,
                    "$expr is not allowed in the query predicate for an upsert",
                ));
            }
            ("$and" | "$or" | "$nor", Value::Array(members)) => {
                members.iter().filter_map(|m| m.value().as_doc()).try_for_each(refuse_expr_in_upsert)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn sorts(name: &str) -> bool {
    matches!(name, "$near" | "$nearSphere" | "$geoNear")
}

fn not_here(name: &str) -> Error {
    Error::bad_value(format!("{name} is not allowed in this context"))
}

fn no_schema() -> Error {
    Error::new(ErrorCode::QueryFeatureNotAllowed, "$jsonSchema is not allowed in this context")
}

fn no_near() -> Error {
    Error::location(5_626_500, "$geoNear, $near, and $nearSphere are not allowed in this context")
}

/// `{$op: ...}` of a field; `nested` is asked about documents of an `$elemMatch`.
fn check_elements(v: Value<'_>, nested: impl Fn(&RawDoc) -> Result<()> + Copy) -> Result<()> {
    let Value::Document(ops) = v else { return Ok(()) };
    for e in ops {
        match e.name() {
            "$not" => check_elements(e.value(), nested)?,
            "$elemMatch" => e.value().as_doc().map_or(Ok(()), nested)?,
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    #[test]
    fn operators_are_found_where_they_can_stand_and_names_in_values_are_not() {
        let code = |d: pando_bson::Document| check(&d.to_raw(), false).map_err(|e| e.code.0);
        assert_eq!(code(doc! { "$or": [{ "a": 1 }, { "$where": "1" }] }), Err(2));
        assert_eq!(code(doc! { "a": { "$near": [1, 2] } }), Ok(()));
        let near = refuse_near(&doc! { "$or": [{ "a": { "$near": [1, 2] } }] }.to_raw());
        assert_eq!(near.map_err(|e| e.code.0), Err(5_626_500));
        assert_eq!(code(doc! { "a": { "$elemMatch": { "$or": [{ "$jsonSchema": {} }] } } }), Err(224));
        assert_eq!(code(doc! { "a": { "$elemMatch": { "$near": [1, 2] } } }), Err(5_626_500));
        assert_eq!(code(doc! { "a": { "$elemMatch": { "$text": {} } } }), Ok(()));
        assert_eq!(code(doc! { "a": { "b": { "$near": 1 } }, "$expr": { "$where": 1 } }), Ok(()));
    }
}
