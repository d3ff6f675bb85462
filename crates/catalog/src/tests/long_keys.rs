//! Keys and `_id`s of any length, in every kind of index.

use crate::testing::{World, ns};
use crate::{Extent, Uninterrupted, WriteOp, find_by_id};
use pando_base::Result;
use pando_bson::{RawDoc, doc};
use pando_query::source::{Direction, IndexScan};
use pando_storage::ReadAt;

/// Texts around what tables take, many of which begin like another one; in order.
fn texts() -> Vec<String> {
    let mut all = Vec::new();
    for n in [1, 40_000, 65_528, 65_529, 65_530, 70_000, 130_000, 1 << 20] {
        for end in ["", "a", "b", "\u{1}", "z"] {
            all.push(format!("{}{end}", "k".repeat(n)));
        }
    }
    all.sort();
    all.dedup();
    all
}

fn worlds(name: &str) -> [World; 2] {
    [World::new(), World::on_files(name)]
}

fn checkpoint(w: &World) {
    let storage = w.catalog.storage();
    storage.log().flush_once().unwrap();
    storage.set_stable(storage.log().last());
    w.catalog.checkpoint().unwrap();
}

fn check(w: &World, name: &str) {
    let report = w.run(w.catalog.validate(&ns(name), Extent::Latest, &Uninterrupted)).unwrap();
    assert!(report.is_valid(), "{:?} {:?}", report.errors, report.keys_per_index);
}

/// What the index leads to, in its order: the number of each document.
fn order(w: &World, name: &str, index: &str, dir: Direction) -> Vec<i64> {
    let coll = w.catalog.lookup(&ns(name)).unwrap();
    let at = coll.ready_indexes().iter().position(|i| i.name() == index).unwrap();
    let mut src = w.catalog.open_source(&coll, ReadAt::Latest).unwrap();
    let mut cursor = src.scan_index(IndexScan { index: at, start: &[], end: &[], dir, after: None }).unwrap();
    let mut rids = Vec::new();
    while let Some(e) = cursor.next().unwrap() {
        rids.push(e.rid);
    }
    let number = |rid| {
        let doc = src.fetch(rid).unwrap().unwrap();
        RawDoc::trusted(&doc).get("n").and_then(|v| v.as_i64()).unwrap()
    };
    rids.iter().map(number).collect()
}

fn found(w: &World, name: &str, id: &str) -> Option<i64> {
    let coll = w.catalog.lookup(&ns(name)).unwrap();
    let txn = w.catalog.storage().begin(ReadAt::Latest).unwrap();
    let (_, doc) = find_by_id(&txn, &coll, &doc! { "_id": id }.to_raw()).unwrap()?;
    RawDoc::trusted(&doc).get("n").and_then(|v| v.as_i64())
}

fn delete(w: &World, name: &str, id: &str) -> Result<()> {
    w.run(async {
        let coll = w.catalog.write_lock(&ns(name)).await?.unwrap();
        let mut unit = w.catalog.begin_write(&coll)?;
        let (rid, old) = find_by_id(unit.txn(), &coll, &doc! { "_id": id }.to_raw())?.unwrap();
        let old = RawDoc::trusted(&old).to_buf();
        unit.delete(&WriteOp::default(), &coll, &rid, &old, &[])?;
        unit.commit().map(drop)
    })
}

#[test]
fn ids_of_any_length_are_found_ordered_unique_and_deleted() {
    for clustered in [false, true] {
        for w in worlds(&format!("long-ids-{clustered}")) {
            if clustered {
                let index = doc! { "key": doc! { "_id": 1 }, "unique": true };
                w.create("db.c", doc! { "clusteredIndex": index }).unwrap();
                w.index("db.c", doc! { "key": { "n": 1 }, "name": "n", "unique": true }).unwrap();
            }
            let texts = texts();
            for (n, id) in texts.iter().enumerate().rev() {
                w.insert("db.c", vec![doc! { "_id": id.as_str(), "n": n as i64 }]);
            }
            let twice = w.try_insert("db.c", vec![doc! { "_id": texts[30].as_str(), "n": 1000 }]);
            let told = &twice.errors[0].1;
            assert_eq!(told.code.0, 11000);
            // The message shows a long value's first 150 bytes.
            let shown = format!("{{ _id: \"{}...\" }}", "k".repeat(150));
            assert!(told.message.ends_with(&shown), "{}", &told.message[..500.min(told.message.len())]);
            checkpoint(&w);
            let w = w.reopen();
            for (n, id) in texts.iter().enumerate() {
                assert_eq!(found(&w, "db.c", id), Some(n as i64));
                if n % 2 == 0 {
                    delete(&w, "db.c", id).unwrap();
                }
            }
            let twice = w.try_insert("db.c", vec![doc! { "_id": texts[31].as_str(), "n": 1000 }]);
            assert_eq!(twice.errors[0].1.code.0, 11000);
            let left: Vec<i64> = (0..texts.len() as i64).filter(|n| n % 2 == 1).collect();
            let index = if clustered { "n" } else { "_id_" };
            assert_eq!(order(&w, "db.c", index, Direction::Forward), left);
            checkpoint(&w);
            check(&w, "db.c");
            w.insert("db.c", vec![doc! { "_id": texts[30].as_str(), "n": 1000 }]);
            // From the log alone, too.
            let w = w.reopen();
            assert_eq!(found(&w, "db.c", &texts[30]), Some(1000));
            assert_eq!(found(&w, "db.c", &texts[28]), None);
            check(&w, "db.c");
        }
    }
}

#[test]
fn every_kind_of_index_takes_keys_of_any_length_in_their_order() {
    for w in worlds("long-keys") {
        let texts = texts();
        let document = |n: usize| {
            let (text, other) = (texts[n].as_str(), texts[texts.len() - 1 - n].as_str());
            doc! { "_id": n as i64, "n": n as i64, "a": text, "m": [text, "short"], "d": doc! { "e": other } }
        };
        let specs = [
            doc! { "key": { "a": 1 }, "name": "a", "unique": true },
            doc! { "key": { "a": -1, "n": 1 }, "name": "down" },
            doc! { "key": { "m": 1 }, "name": "many" },
            doc! { "key": { "d": 1 }, "name": "objects" },
            doc! { "key": { "a": "hashed" }, "name": "hash" },
            doc! { "key": { "$**": 1 }, "name": "wild" },
            doc! { "key": { "a": 1 }, "name": "en", "collation": doc! { "locale": "en" } },
        ];
        // Half of the documents before the indexes are built, the rest afterwards.
        let half = texts.len() / 2;
        w.insert("db.c", (0..half).map(document).collect());
        checkpoint(&w);
        for spec in &specs {
            w.index("db.c", spec.clone()).unwrap();
        }
        w.insert("db.c", (half..texts.len()).rev().map(document).collect());
        let twice =
            w.try_insert("db.c", vec![doc! { "_id": 1000, "n": 1000, "a": texts[texts.len() - 1].as_str() }]);
        assert_eq!(twice.errors[0].1.code.0, 11000);
        checkpoint(&w);
        let all: Vec<i64> = (0..texts.len() as i64).collect();
        let back: Vec<i64> = all.iter().rev().copied().collect();
        let looked = |w: &World| {
            assert_eq!(order(w, "db.c", "a", Direction::Forward), all);
            assert_eq!(order(w, "db.c", "a", Direction::Backward), back);
            assert_eq!(order(w, "db.c", "down", Direction::Forward), back);
            assert_eq!(order(w, "db.c", "objects", Direction::Forward), back);
            assert_eq!(order(w, "db.c", "many", Direction::Forward).len(), 2 * texts.len());
            check(w, "db.c");
        };
        looked(&w);
        let w = w.reopen();
        looked(&w);
        for n in 0..texts.len() as i32 {
            w.delete("db.c", n).unwrap();
        }
        checkpoint(&w);
        check(&w, "db.c");
        assert!(order(&w, "db.c", "wild", Direction::Forward).is_empty());
    }
}

#[test]
fn a_key_that_is_there_twice_ends_the_build_of_a_unique_index_however_long_it_is() {
    let w = World::on_files("long-twice");
    for text in ["k".repeat(70_000), "k".repeat(1 << 20)] {
        let twice = |n: i32| doc! { "_id": n, "a": text.as_str() };
        w.insert("db.c", vec![twice(1), doc! { "_id": 2, "a": format!("{text}a") }, twice(3)]);
        let built = w.index("db.c", doc! { "key": { "a": 1 }, "name": "a", "unique": true });
        assert_eq!(built.unwrap_err().code.0, 11000);
        w.delete("db.c", 3).unwrap();
        w.index("db.c", doc! { "key": { "a": 1 }, "name": "a", "unique": true }).unwrap();
        w.run(w.catalog.drop_collection(&ns("db.c"))).unwrap();
    }
}
