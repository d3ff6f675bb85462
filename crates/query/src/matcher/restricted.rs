//! Filters in places where not every operator may stand: validators, projections.

use pando_base::{Error, Result};
use pando_bson::{RawDoc, Value};

/// Code 2 for `$text` and `$where`, 5626500 for geo operators that sort.
pub(super) fn check(filter: &RawDoc) -> Result<()> {
    for e in filter {
        match e.name() {
            name @ ("$text" | "$where") => {
                return Err(Error::bad_value(format!("{name} is not allowed in this context")));
            }
            "$and" | "$or" | "$nor" => {
                let Value::Array(members) = e.value() else { continue };
                members.iter().filter_map(|m| m.value().as_doc()).try_for_each(check)?;
            }
            name if name.starts_with('$') => {}
            _ => check_conditions(e.value())?,
        }
    }
    Ok(())
}

/// Refuses only what sorts by distance (a `$match`'s filter).
pub(crate) fn refuse_near(filter: &RawDoc) -> Result<()> {
    for e in filter {
        match (e.name(), e.value()) {
            ("$and" | "$or" | "$nor", Value::Array(members)) => {
                members.iter().filter_map(|m| m.value().as_doc()).try_for_each(refuse_near)?;
            }
            (name, v) if !name.starts_with('$') => check_conditions(v)?,
            _ => {}
        }
    }
    Ok(())
}

/// `{$op: ...}` of a field.
fn check_conditions(v: Value<'_>) -> Result<()> {
    let Value::Document(ops) = v else { return Ok(()) };
    for e in ops {
        match e.name() {
            "$near" | "$nearSphere" | "$geoNear" => {
                return Err(Error::location(
                    5_626_500,
                    "$geoNear, $near, and $nearSphere are not allowed in this context",
                ));
            }
            "$not" => check_conditions(e.value())?,
            "$elemMatch" => e.value().as_doc().map_or(Ok(()), check)?,
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
        let code = |d: pando_bson::Document| check(&d.to_raw()).map_err(|e| e.code.0);
        assert_eq!(code(doc! { "$or": [{ "a": 1 }, { "$where": "1" }] }), Err(2));
        assert_eq!(code(doc! { "a": { "$near": [1, 2] } }), Err(5_626_500));
        assert_eq!(code(doc! { "a": { "b": { "$near": 1 } }, "$expr": { "$where": 1 } }), Ok(()));
    }
}
