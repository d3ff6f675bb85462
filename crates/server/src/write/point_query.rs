//! Filters that ask for one key of a unique index and for nothing else.
//!
//! An upsert that met a duplicate key tries again where the document in its way is the one that its filter asks for: another upsert
//! was faster. A filter that asks for more, or for something else, would not find that document next time either.

use pando_bson::compare::values_equal;
use pando_bson::{ElementType, RawDoc, Value};

/// Whether `filter` is a conjunction of equalities, one for each field of `key`, with the values of `key`.
pub(super) fn asks_for(filter: &RawDoc, key: &RawDoc) -> bool {
    let mut equalities = Vec::new();
    let is_point = add_equalities(filter, &mut equalities);
    is_point
        && equalities.len() == key.count()
        && key.iter().all(|k| {
            equalities.iter().any(|(path, want)| *path == k.name_bytes() && values_equal(*want, k.value()))
        })
}

/// False where there is anything else.
fn add_equalities<'f>(filter: &'f RawDoc, out: &mut Vec<(&'f [u8], Value<'f>)>) -> bool {
    filter.iter().all(|e| match e.name() {
        "$comment" => true,
        "$and" => {
            let all = e.value().as_array();
            all.is_some_and(|all| {
                all.iter().all(|c| c.value().as_doc().is_some_and(|c| add_equalities(c, out)))
            })
        }
        name if name.starts_with('$') => false,
        _ => {
            let equality = equal_to(e.value());
            out.extend(equality.map(|want| (e.name_bytes(), want)));
            equality.is_some()
        }
    })
}

/// What a condition on one field wants it to be.
fn equal_to(condition: Value<'_>) -> Option<Value<'_>> {
    match condition {
        Value::Document(d) => match d.first() {
            Some(op) if op.name() == "$eq" && d.count() == 1 => Some(op.value()),
            Some(op) if op.name().starts_with('$') => None,
            _ => Some(condition),
        },
        v if v.element_type() == ElementType::Regex => None,
        v => Some(v),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::{Document, doc};

    fn asks(filter: Document, key: Document) -> bool {
        asks_for(&filter.to_raw(), &key.to_raw())
    }

    #[test]
    fn equalities_of_all_fields_and_no_more() {
        assert!(asks(doc! { "_id": 5 }, doc! { "_id": 5.0 }));
        assert!(asks(doc! { "b": { "$eq": 2 }, "a": 1, "$comment": "x" }, doc! { "a": 1, "b": 2 }));
        assert!(asks(doc! { "$and": [{ "a": 1 }, { "b": 2 }] }, doc! { "a": 1, "b": 2 }));
        assert!(asks(doc! { "a": { "x": 1 } }, doc! { "a": { "x": 1 } }));
    }

    #[test]
    fn what_asks_for_more_or_something_else_does_not() {
        assert!(!asks(doc! { "_id": 5, "k": 999 }, doc! { "_id": 5 }));
        assert!(!asks(doc! { "_id": 5, "k": { "$gt": 1 } }, doc! { "_id": 5 }));
        assert!(!asks(doc! { "_id": 5, "$expr": true }, doc! { "_id": 5 }));
        assert!(!asks(doc! { "$or": [{ "a": 1 }] }, doc! { "a": 1 }));
        assert!(!asks(doc! { "a": { "$in": [1] } }, doc! { "a": 1 }));
        assert!(!asks(doc! { "a": 1 }, doc! { "a": 2 }));
        assert!(!asks(doc! { "a": 1 }, doc! { "a": 1, "b": 1 }));
        assert!(!asks(doc! {}, doc! { "a": 1 }));
    }
}
