//! Hashed and text indexes whose keys an older version made in another way.

use crate::testing::{World, ns};
use crate::{Extent, Uninterrupted};
use pando_bson::hashed::hashed_key;
use pando_bson::{Bson, Decimal128, Document, RawDoc, Value, doc};
use pando_query::source::{Direction, IndexScan};
use pando_storage::{Ident, ReadAt};

fn decimal(s: &str) -> Decimal128 {
    s.parse().unwrap()
}

/// The keys of the index, one after the other.
fn keys(w: &World, name: &str) -> Vec<Vec<u8>> {
    let coll = w.catalog.lookup(&ns(name)).unwrap();
    let mut src = w.catalog.open_source(&coll, ReadAt::Latest).unwrap();
    let scan = IndexScan { index: 1, start: &[], end: &[], dir: Direction::Forward, after: None };
    let mut cursor = src.scan_index(scan).unwrap();
    std::iter::from_fn(|| cursor.next().unwrap().map(|e| e.key.to_vec())).collect()
}

/// The keys that lookups of these values go to.
fn wanted(values: &[Value<'_>]) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = values
        .iter()
        .map(|v| {
            let mut b = pando_bson::keystring::KeyBuilder::default();
            b.append(Value::Int64(hashed_key(*v)));
            b.finish()
        })
        .collect();
    all.sort();
    all
}

#[test]
fn keys_lie_where_lookups_go() {
    let w = World::new();
    w.index("db.c", doc! { "key": { "a": "hashed" }, "name": "h" }).unwrap();
    let values = [
        Value::Decimal128(decimal("1.7")),
        Value::Decimal128(decimal("-2.51")),
        Value::Double(9_223_372_036_854_775_808.0),
    ];
    w.insert("db.c", (0..3).map(|i| doc! { "_id": i as i32, "a": Bson::from(values[i]) }).collect());
    assert_eq!(keys(&w, "db.c"), wanted(&values));
}

/// Puts the index back to how an older version left it: one wrong key, and a row that tells no version.
fn make_old(w: &World, name: &str) {
    let coll = w.catalog.lookup(&ns(name)).unwrap();
    let mut unit = w.catalog.begin_write(&coll).unwrap();
    unit.stamp();
    let txn = w.catalog.storage().begin(ReadAt::Latest).unwrap();
    let row = txn.get(Ident::CATALOG, &coll.uuid.0).unwrap().unwrap();
    let mut row = Document::from(RawDoc::trusted(&row));
    let Some(Bson::Array(indexes)) = row.get("indexes").cloned() else { panic!("no indexes") };
    let old = indexes.into_iter().map(|i| match i {
        Bson::Document(d) => {
            let mut left = Document::new();
            d.into_fields()
                .into_iter()
                .filter(|(k, _)| k != "keysVersion")
                .for_each(|(k, v)| left.push(k, v));
            Bson::Document(left)
        }
        other => other,
    });
    row.set("indexes", Bson::Array(old.collect()));
    unit.txn.put(Ident::CATALOG, &coll.uuid.0, row.to_raw().as_bytes()).unwrap();
    let index = coll.index("h").unwrap();
    let mut cursor = txn
        .scan(
            index.ident,
            std::ops::Bound::Unbounded,
            std::ops::Bound::Unbounded,
            pando_storage::Dir::Forward,
        )
        .unwrap();
    let (key, value) = cursor.next().unwrap().unwrap();
    drop(cursor);
    let mut wrong = key.to_vec();
    wrong[3] ^= 1;
    unit.txn.delete(index.ident, &key).unwrap();
    unit.txn.put(index.ident, &wrong, &value).unwrap();
    if coll.replicated {
        unit.log_noop("as an older version left it").unwrap();
    }
    unit.commit().unwrap();
}

#[test]
fn an_index_with_keys_of_an_older_version_is_made_anew_at_the_start() {
    for (name, kind) in [("db.c", "hashed"), ("local.c", "hashed"), ("db.c", "text")] {
        let w = World::on_files("old-keys");
        w.index(name, doc! { "key": { "a": kind }, "name": "h" }).unwrap();
        let value = |i: i32| match kind {
            "text" => Bson::from(format!("word{i}\0behind")),
            _ => Bson::from(decimal(&format!("{i}.7"))),
        };
        w.insert(name, (0..20).map(|i| doc! { "_id": i, "a": value(i) }).collect());
        let right = keys(&w, name);
        make_old(&w, name);
        let storage = w.catalog.storage();
        storage.log().flush_once().unwrap();
        storage.set_stable(storage.log().last());
        w.catalog.checkpoint().unwrap();
        assert_ne!(keys(&w, name), right);
        let w = w.reopen();
        assert_eq!(keys(&w, name), right, "{name} {kind}");
        // Also with writes after the start, and at the next start, which finds nothing to do.
        w.insert(name, vec![doc! { "_id": 20, "a": value(20) }]);
        let w = w.reopen();
        assert_eq!(keys(&w, name).len(), 21, "one word of each");
        let report = w.run(w.catalog.validate(&ns(name), Extent::Latest, &Uninterrupted)).unwrap();
        assert!(report.is_valid(), "{:?}", report.errors);
    }
}

#[test]
fn keys_of_a_version_from_the_future_are_refused() {
    let w = World::new();
    w.index("db.c", doc! { "key": { "a": 1 }, "name": "h" }).unwrap();
    let coll = w.catalog.lookup(&ns("db.c")).unwrap();
    let row = crate::schema::durable::encode(&coll, [].iter());
    let mut row = Document::from(&*row);
    let Some(Bson::Array(mut indexes)) = row.get("indexes").cloned() else { panic!("no indexes") };
    let Some(Bson::Document(d)) = indexes.last_mut() else { panic!("no index") };
    d.set("keysVersion", 99);
    row.set("indexes", Bson::Array(indexes));
    let e = crate::schema::durable::decode(&row.to_raw(), 0).err().unwrap();
    assert!(e.message.contains("index h of db.c has keys of version 99"), "{}", e.message);
}
