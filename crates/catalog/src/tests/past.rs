//! Definitions as of a time.

use crate::testing::{World, ns};
use crate::{Named, Uninterrupted};
use pando_base::Timestamp;
use pando_bson::{RawDoc, doc};
use pando_query::source::{Direction, RecordScan};
use pando_storage::ReadAt;

/// The `_id`s that a read at `at` finds under a name; `None` where no collection was.
fn ids_at(w: &World, name: &str, at: Timestamp) -> Option<Vec<i64>> {
    let Some(Named::Collection(coll)) = w.catalog.named_at(&ns(name), at).unwrap() else { return None };
    let mut source = w.catalog.open_source(&coll, ReadAt::At(at)).unwrap();
    let mut rows = source.scan_records(RecordScan::all(Direction::Forward)).unwrap();
    let id = |doc: &[u8]| RawDoc::trusted(doc).get("_id").and_then(|v| v.as_i64()).unwrap();
    Some(std::iter::from_fn(|| rows.next().unwrap().map(|(_, doc)| id(&doc))).collect())
}

fn now(w: &World) -> Timestamp {
    w.catalog.storage().last_committed()
}

#[test]
fn a_read_of_the_past_finds_what_a_name_meant_then() {
    let w = World::new();
    let before = now(&w);
    w.insert("db.c", vec![doc! { "_id": 1, "a": [1, 2] }]);
    let first = now(&w);
    w.index("db.c", doc! { "key": { "a": 1 }, "name": "a" }).unwrap();
    let indexed = now(&w);
    w.run(w.catalog.rename_collection(&ns("db.c"), &ns("db.d"), false, &Uninterrupted)).unwrap();
    let renamed = now(&w);
    w.insert("db.c", vec![doc! { "_id": 2 }]);
    let again = now(&w);
    w.run(w.catalog.drop_collection(&ns("db.d"))).unwrap();
    w.run(w.catalog.drop_collection(&ns("db.c"))).unwrap();
    let dropped = now(&w);
    let seen = |at| (ids_at(&w, "db.c", at), ids_at(&w, "db.d", at));
    assert_eq!(seen(before), (None, None));
    assert_eq!(seen(first), (Some(vec![1]), None));
    assert_eq!(seen(renamed), (None, Some(vec![1])));
    assert_eq!(seen(again), (Some(vec![2]), Some(vec![1])));
    assert_eq!(seen(dropped), (None, None));
    let indexes_at = |at| match w.catalog.named_at(&ns("db.c"), at).unwrap() {
        Some(Named::Collection(c)) => {
            c.ready_indexes().iter().map(|i| i.name().to_owned()).collect::<Vec<_>>()
        }
        _ => Vec::new(),
    };
    assert_eq!(indexes_at(first), ["_id_"]);
    assert_eq!(indexes_at(indexed), ["_id_", "a"]);
    // What it knew of arrays then.
    let Some(Named::Collection(c)) = w.catalog.named_at(&ns("db.c"), indexed).unwrap() else { panic!() };
    assert!(c.index_info(1).unwrap().multikey.is_multikey());
}

#[test]
fn a_definition_that_has_not_changed_is_the_present_one() {
    let w = World::new();
    w.insert("db.c", vec![doc! { "_id": 1 }]);
    let then = now(&w);
    w.insert("db.other", vec![doc! { "_id": 1 }]);
    let present = w.catalog.lookup(&ns("db.c")).unwrap();
    let Some(Named::Collection(found)) = w.catalog.named_at(&ns("db.c"), then).unwrap() else { panic!() };
    assert!(std::sync::Arc::ptr_eq(&found, &present));
}
