use crate::testing::{World, ns};
use crate::{Extent, Uninterrupted};
use pando_bson::{Bson, Document, doc};
use pando_storage::ReadAt;

#[test]
fn the_ttl_sweeper_deletes_by_the_earliest_date_only() {
    let w = World::new();
    w.index("db.c", doc! { "key": { "t": 1 }, "name": "t", "expireAfterSeconds": 10 }).unwrap();
    let at = |s: i64| Bson::DateTime(s * 1000);
    w.insert(
        "db.c",
        vec![
            doc! { "_id": 1, "t": at(100) },
            doc! { "_id": 2, "t": at(200) },
            doc! { "_id": 3, "t": [at(500), at(90)] },
            doc! { "_id": 4, "t": 5 },
            doc! { "_id": 5 },
        ],
    );
    let n = w.run(w.catalog.ttl_pass(110_000, &Uninterrupted)).unwrap();
    assert_eq!((n, w.ids("db.c")), (2, vec![2, 4, 5]));
    w.index("db.d", doc! { "key": { "t": -1 }, "name": "t", "expireAfterSeconds": 0 }).unwrap();
    w.insert("db.d", (0..250).map(|i| doc! { "_id": i, "t": at(i64::from(i)) }).collect());
    assert_eq!(w.run(w.catalog.ttl_pass(199_000, &Uninterrupted)).unwrap(), 200);
    assert_eq!(w.ids("db.d").first(), Some(&200));
    assert_eq!(w.log().iter().filter(|(op, _)| op == "d").count(), 202);
}

#[test]
fn validate_finds_missing_and_extra_entries() {
    let w = World::new();
    w.index("db.c", doc! { "key": { "a": 1 }, "name": "a_1" }).unwrap();
    w.insert("db.c", (0..5).map(|i| doc! { "_id": i, "a": i }).collect());
    let check = || w.run(w.catalog.validate(&ns("db.c"), Extent::Counted, &Uninterrupted)).unwrap();
    let good = check();
    assert!(good.is_valid());
    assert_eq!(good.keys_per_index, [("_id_".to_owned(), 5), ("a_1".to_owned(), 5)]);
    // Behind the catalog's back: one entry moves.
    let coll = w.catalog.lookup(&ns("db.c")).unwrap();
    let ident = coll.index("a_1").unwrap().ident;
    let mut txn = w.catalog.storage().begin(ReadAt::Latest).unwrap();
    let entry = |value: i32| {
        let mut key = pando_bson::keystring::key_of(pando_bson::Value::Int32(value));
        pando_bson::keystring::append_record_id(&mut key, 1);
        key
    };
    let (key, wrong) = (entry(0), entry(77));
    assert!(txn.exists(ident, &key).unwrap());
    txn.delete(ident, &key).unwrap();
    txn.put(ident, &wrong, b"").unwrap();
    let slot = w.catalog.storage().log().reserve_one();
    txn.log_entry(slot, &doc! { "op": "n" }.to_raw());
    txn.commit().unwrap();
    let bad = check();
    assert_eq!((bad.is_valid(), bad.missing_entries, bad.extra_entries), (false, 1, 1));
}

#[test]
fn equal_data_hashes_alike_whatever_the_order_of_insertion() {
    let w = World::new();
    w.insert("x.c", (0..9).map(|i| doc! { "_id": i, "a": 1 }).collect());
    w.insert("y.c", (0..9).rev().map(|i| doc! { "_id": i, "a": 1 }).collect());
    let hash = |db: &str| w.run(w.catalog.db_hash(db, &[], ReadAt::Latest, &Uninterrupted)).unwrap();
    assert_eq!(hash("x").md5, hash("y").md5);
    w.update("y.c", 3, doc! { "_id": 3, "a": 2 }).unwrap();
    assert_ne!(hash("x").md5, hash("y").md5);
    assert_eq!(hash("x").collections[0].0, "c");
}

#[test]
fn a_hundred_and_eighty_levels_are_stored_and_one_more_is_refused() {
    let w = World::new();
    let nested_around = |core: Document, levels: usize| {
        let mut d = core;
        for _ in 0..levels {
            let mut outer = doc! {};
            outer.push("a", d);
            d = outer;
        }
        d
    };
    let refused = |d: Document| w.try_insert("db.c", vec![d]).errors.first().map(|(_, e)| e.code.0);
    // What is empty has no further level.
    assert_eq!(refused(nested_around(doc! {}, 180)), None);
    assert_eq!(refused(nested_around(doc! { "x": 1 }, 179)), None);
    assert_eq!(refused(nested_around(doc! {}, 181)), Some(15));
    assert_eq!(refused(nested_around(doc! { "x": 1 }, 180)), Some(15));
}

#[test]
fn a_collection_made_capped_keeps_its_newest_documents() {
    let w = World::new();
    let text = "x".repeat(100);
    w.insert("db.c", (0..50).map(|i| doc! { "_id": i, "t": text.as_str() }).collect());
    w.index("db.c", doc! { "key": { "t": 1 }, "name": "t" }).unwrap();
    w.run(w.catalog.clone_as_capped(&ns("db.c"), &ns("db.d"), 1000, &Uninterrupted)).unwrap();
    assert_eq!(w.ids("db.d"), (42..50).collect::<Vec<i64>>());
    w.run(w.catalog.convert_to_capped(&ns("db.c"), 2000, &Uninterrupted)).unwrap();
    assert_eq!(w.ids("db.c"), (34..50).collect::<Vec<i64>>());
    let w = w.reopen();
    let c = w.catalog.lookup(&ns("db.c")).unwrap();
    assert_eq!((c.indexes.len(), c.options.capped.map(|c| c.size), c.count()), (1, Some(2048), 16));
    w.insert("db.c", vec![doc! { "_id": 50, "t": text.as_str() }]);
    assert_eq!(w.ids("db.c"), (35..51).collect::<Vec<i64>>());
}

/// A wrong count is an error for whoever asks for it; what another check found sets it right, whatever came meanwhile.
#[test]
fn validate_mends_a_wrong_count() {
    let w = World::new();
    w.insert("db.c", vec![doc! { "_id": 1 }, doc! { "_id": 2 }]);
    let coll = w.catalog.lookup(&ns("db.c")).unwrap();
    let check = |extent| w.run(w.catalog.validate(&ns("db.c"), extent, &Uninterrupted)).unwrap();
    coll.shared.sizes.mend(-5);
    for _ in 0..2 {
        assert_eq!((check(Extent::Counted).errors.len(), coll.count()), (1, 0));
    }
    let found = check(Extent::Latest);
    assert!(found.errors.is_empty());
    w.insert("db.c", vec![doc! { "_id": 4 }]);
    w.catalog.mend_count(&found);
    assert_eq!((check(Extent::Counted).errors.len(), coll.count()), (0, 3));
    w.insert("db.c", vec![doc! { "_id": 3 }]);
    assert_eq!(coll.count(), 4);
}
