use super::*;
use crate::key_set::changes;
use pando_bson::{Document, doc};

fn spec(key: Document, extra: Document) -> IndexSpec {
    let mut d = doc! { "v": 2, "key": key, "name": "x" };
    for (k, v) in extra {
        d.push(k, v);
    }
    IndexSpec::from_stored(&d.to_raw()).unwrap()
}

fn keys_of(s: &IndexSpec, document: Document) -> Result<(Vec<Vec<u8>>, Vec<u64>)> {
    let keygen = KeyGen::new(s)?;
    let (mut b, mut out) = (KeyBuilder::default(), KeySet::default());
    keygen.keys(&document.to_raw(), &mut b, &mut out)?;
    Ok((out.iter().map(|k| k.bytes.to_vec()).collect(), out.marks.clone()))
}

/// The same keys, built from the values they should have.
fn expect(s: &IndexSpec, rows: Vec<Document>) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = rows
        .iter()
        .map(|row| {
            let mut b = KeyBuilder::new(key_directions(s, None));
            for e in row.to_raw().iter() {
                b.append(e.value());
            }
            b.finish()
        })
        .collect();
    all.sort();
    all
}

#[test]
fn scalars_give_one_key_and_missing_is_null() {
    let s = spec(doc! { "a": 1, "b.c": -1 }, doc! {});
    let (keys, marks) = keys_of(&s, doc! { "a": 5, "b": { "c": "x" } }).unwrap();
    assert_eq!(keys, expect(&s, vec![doc! { "": 5, "": "x" }]));
    assert!(marks.is_empty());
    let (keys, _) = keys_of(&s, doc! { "b": 3 }).unwrap();
    assert_eq!(keys, expect(&s, vec![doc! { "": pando_bson::Bson::Null, "": pando_bson::Bson::Null }]));
}

#[test]
fn an_array_gives_a_key_per_distinct_element() {
    let s = spec(doc! { "a": 1, "b": 1 }, doc! {});
    let (keys, marks) = keys_of(&s, doc! { "a": [2, 1, 2], "b": 7 }).unwrap();
    assert_eq!(keys, expect(&s, vec![doc! { "": 1, "": 7 }, doc! { "": 2, "": 7 }]));
    assert_eq!(marks, [1, 0]);
}

#[test]
fn fields_below_one_array_stay_together() {
    let s = spec(doc! { "a.b": 1, "a.c": 1 }, doc! {});
    let d = doc! { "a": [{ "b": 1, "c": 2 }, { "b": 3 }, 9] };
    let (keys, marks) = keys_of(&s, d).unwrap();
    let null = pando_bson::Bson::Null;
    let rows = vec![
        doc! { "": 1, "": 2 },
        doc! { "": 3, "": null.clone() },
        doc! { "": null.clone(), "": null.clone() },
    ];
    assert_eq!(keys, expect(&s, rows));
    assert_eq!(marks, [1, 1]);
}

#[test]
fn parallel_arrays_are_refused() {
    let s = spec(doc! { "a": 1, "b.c": 1 }, doc! {});
    let e = keys_of(&s, doc! { "a": [1, 2], "b": { "c": [1] } }).unwrap_err();
    assert_eq!((e.code.0, &*e.message), (171, "cannot index parallel arrays [c] [a]"));
}

#[test]
fn empty_arrays_are_undefined_at_the_end_and_null_before_it() {
    let s = spec(doc! { "a": 1 }, doc! {});
    let (keys, _) = keys_of(&s, doc! { "a": [] }).unwrap();
    assert_eq!(keys, expect(&s, vec![doc! { "": pando_bson::Bson::Undefined }]));
    let s = spec(doc! { "a.b": 1 }, doc! {});
    let (keys, _) = keys_of(&s, doc! { "a": [] }).unwrap();
    assert_eq!(keys, expect(&s, vec![doc! { "": pando_bson::Bson::Null }]));
}

#[test]
fn a_position_in_the_path_picks_one_element() {
    let s = spec(doc! { "a.1.b": 1 }, doc! {});
    let (keys, _) = keys_of(&s, doc! { "a": [{ "b": 1 }, { "b": 2 }, { "b": 3 }] }).unwrap();
    assert_eq!(keys, expect(&s, vec![doc! { "": 2 }]));
    let s = spec(doc! { "a.0": 1 }, doc! {});
    let (keys, _) = keys_of(&s, doc! { "a": [[1, 2]] }).unwrap();
    assert_eq!(keys, expect(&s, vec![doc! { "": [1, 2] }]));
    let (keys, _) = keys_of(&s, doc! { "a": [[]] }).unwrap();
    assert_eq!(keys, expect(&s, vec![doc! { "": pando_bson::Bson::Undefined }]));
    let e = keys_of(&s, doc! { "a": [{ "0": 1 }] }).unwrap_err();
    assert_eq!(e.code.0, 16746);
}

#[test]
fn nested_arrays_are_indexed_whole() {
    let s = spec(doc! { "a": 1 }, doc! {});
    let (keys, _) = keys_of(&s, doc! { "a": [[1, 2], 3] }).unwrap();
    assert_eq!(keys, expect(&s, vec![doc! { "": [1, 2] }, doc! { "": 3 }]));
}

#[test]
fn sparse_indexes_skip_documents_without_any_field() {
    let s = spec(doc! { "a": 1, "b": 1 }, doc! { "sparse": true });
    assert!(keys_of(&s, doc! { "c": 1 }).unwrap().0.is_empty());
    assert_eq!(keys_of(&s, doc! { "b": 1 }).unwrap().0.len(), 1);
}

#[test]
fn wildcard_keys_are_paths_with_leaves() {
    let s = spec(doc! { "$**": 1 }, doc! {});
    let d = doc! { "_id": 1, "a": { "b": 2, "e": {} }, "c": [3, { "d": 4 }, [5]], "z": [] };
    let (keys, _) = keys_of(&s, d).unwrap();
    let undefined = pando_bson::Bson::Undefined;
    let rows = vec![
        doc! { "": "a.b", "": 2 },
        doc! { "": "a.e", "": {} },
        doc! { "": "c", "": 3 },
        doc! { "": "c.d", "": 4 },
        doc! { "": "c", "": [5] },
        doc! { "": "z", "": undefined },
    ];
    assert_eq!(keys, expect(&s, rows));
}

#[test]
fn a_wildcard_prefix_and_projection_limit_the_paths() {
    let s = spec(doc! { "a.$**": 1 }, doc! {});
    let (keys, _) = keys_of(&s, doc! { "a": { "b": 1 }, "ab": 2 }).unwrap();
    assert_eq!(keys, expect(&s, vec![doc! { "": "a.b", "": 1 }]));
    let s = spec(doc! { "$**": 1 }, doc! { "wildcardProjection": { "a.b": 0 } });
    let (keys, _) = keys_of(&s, doc! { "a": { "b": 1, "c": 2 }, "_id": 1 }).unwrap();
    assert_eq!(keys, expect(&s, vec![doc! { "": "a.c", "": 2 }]));
}

#[test]
fn hashed_keys_refuse_arrays() {
    let s = spec(doc! { "a": "hashed" }, doc! {});
    assert_eq!(keys_of(&s, doc! { "a": [1] }).unwrap_err().code.0, 16766);
    assert_eq!(keys_of(&s, doc! { "a": 1 }).unwrap().0, keys_of(&s, doc! { "a": 1.7 }).unwrap().0);
}

#[test]
fn a_long_value_beside_a_long_array_ends_with_an_error_and_not_with_the_memory() {
    let s = spec(doc! { "a": 1, "b": 1 }, doc! {});
    let elements: Vec<pando_bson::Bson> = (0..100_000).map(|i| i.into()).collect();
    let d = doc! { "a": pando_bson::Bson::Array(elements), "b": "x".repeat(1 << 20) };
    assert_eq!(keys_of(&s, d).unwrap_err().code, ErrorCode::TransactionTooLargeForCache);
    let d = doc! { "a": [1, 2, 3], "b": "x".repeat(8 << 20) };
    assert_eq!(keys_of(&s, d).unwrap().0.len(), 3);
}

#[test]
fn an_update_touches_only_the_keys_that_differ() {
    let s = spec(doc! { "a": 1 }, doc! {});
    let keygen = KeyGen::new(&s).unwrap();
    let mut b = KeyBuilder::default();
    let (mut old, mut new) = (KeySet::default(), KeySet::default());
    keygen.keys(&doc! { "a": [1, 2, 3] }.to_raw(), &mut b, &mut old).unwrap();
    keygen.keys(&doc! { "a": [2, 3, 4] }.to_raw(), &mut b, &mut new).unwrap();
    let (removed, added) = changes(&old, &new);
    assert_eq!((removed.len(), added.len()), (1, 1));
    assert!(removed[0].bytes < added[0].bytes);
}
