use crate::testing::{World, ns};
use crate::{DropWhich, Uninterrupted};
use pando_bson::{Document, RawDoc, doc};

fn filled(name: &str) -> World {
    let w = World::new();
    w.insert(name, (0..50).map(|i| doc! { "_id": i, "a": i % 7, "b": [i, i + 1] }).collect());
    w
}

#[test]
fn an_index_over_documents_is_built_in_two_phases() {
    for w in [filled("db.c"), {
        let w = World::on_files("build");
        w.insert("db.c", (0..50).map(|i| doc! { "_id": i, "a": i % 7, "b": [i, i + 1] }).collect());
        w
    }] {
        let r = w.index("db.c", doc! { "key": { "a": 1 }, "name": "a_1" }).unwrap();
        assert_eq!((r.before, r.after), (1, 2));
        let mut expected: Vec<i64> = (0..50).collect();
        expected.sort_by_key(|i| (i % 7, *i));
        assert_eq!(w.ids_by_index("db.c", "a_1"), expected);
        let commands: Vec<String> = w
            .log()
            .into_iter()
            .filter(|(op, _)| op == "c")
            .map(|(_, o)| o.iter().next().map(|(k, _)| k.to_owned()).unwrap())
            .collect();
        assert_eq!(commands, ["create", "startIndexBuild", "commitIndexBuild"]);
        let again = w.index("db.c", doc! { "key": { "a": 1 }, "name": "a_1" }).unwrap();
        assert_eq!((again.after, again.note), (2, Some("all indexes already exist")));
    }
}

#[test]
fn writes_during_a_build_are_in_the_index_afterwards() {
    let w = filled("db.c");
    let spec = doc! { "key": { "a": 1 }, "name": "a_1" }.to_raw();
    let specs: [&RawDoc; 1] = [&spec];
    let target = ns("db.c");
    let build = w.catalog.create_indexes(&target, &specs, &Uninterrupted);
    let mut build = std::pin::pin!(build);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    // Registered now; its task has not run yet.
    assert!(std::future::Future::poll(build.as_mut(), &mut cx).is_pending());
    w.insert("db.c", vec![doc! { "_id": 100, "a": 100 }]);
    w.update("db.c", 0, doc! { "_id": 0, "a": 50 }).unwrap();
    w.delete("db.c", 1).unwrap();
    w.update("db.c", 100, doc! { "_id": 100, "a": -1 }).unwrap();
    w.run(build).unwrap();
    let ids = w.ids_by_index("db.c", "a_1");
    assert_eq!(ids.len(), 50);
    assert_eq!((ids[0], ids[49]), (100, 0));
    assert!(!ids.contains(&1));
}

#[test]
fn a_duplicate_that_goes_away_during_a_unique_build_does_no_harm() {
    let w = World::new();
    w.insert("db.c", vec![doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 1 }, doc! { "_id": 3, "a": 3 }]);
    let spec = doc! { "key": { "a": 1 }, "name": "a_1", "unique": true }.to_raw();
    let e = w.run(w.catalog.create_indexes(&ns("db.c"), &[&spec], &Uninterrupted)).unwrap_err();
    assert_eq!(e.code.0, 11000);
    assert!(e.message.starts_with("Index build failed: "), "{}", e.message);
    assert!(e.message.ends_with("index: a_1 dup key: { a: 1 }"), "{}", e.message);
    assert_eq!(
        Document::from(RawDoc::trusted(&e.extra)),
        doc! { "keyPattern": { "a": 1 }, "keyValue": { "a": 1 } }
    );
    assert_eq!(w.catalog.lookup(&ns("db.c")).unwrap().indexes.len(), 1);

    let target = ns("db.c");
    let specs: [&RawDoc; 1] = [&spec];
    let build = w.catalog.create_indexes(&target, &specs, &Uninterrupted);
    let mut build = std::pin::pin!(build);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(std::future::Future::poll(build.as_mut(), &mut cx).is_pending());
    w.update("db.c", 1, doc! { "_id": 1, "a": 2 }).unwrap();
    w.run(build).unwrap();
    assert_eq!(w.ids_by_index("db.c", "a_1"), [2, 1, 3]);
    let e = &w.try_insert("db.c", vec![doc! { "_id": 9, "a": 2 }]).errors[0].1;
    assert_eq!(e.code.0, 11000);
}

#[test]
fn a_drop_stops_a_running_build() {
    let w = filled("db.c");
    let spec = doc! { "key": { "a": 1 }, "name": "a_1" }.to_raw();
    let specs: [&RawDoc; 1] = [&spec];
    let target = ns("db.c");
    let build = w.catalog.create_indexes(&target, &specs, &Uninterrupted);
    let mut build = std::pin::pin!(build);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(std::future::Future::poll(build.as_mut(), &mut cx).is_pending());
    w.run(w.catalog.drop_collection(&target)).unwrap();
    let e = w.run(build).unwrap_err();
    assert_eq!(e.code.0, 276);
    assert!(w.catalog.lookup(&target).is_none());
}

#[test]
fn unique_indexes_refuse_second_keys_and_count_missing_as_null() {
    let w = World::new();
    w.index("db.c", doc! { "key": { "a": 1, "b.c": -1 }, "name": "foo", "unique": true }).unwrap();
    w.insert("db.c", vec![doc! { "_id": 1, "a": 1 }]);
    let e = w.try_insert("db.c", vec![doc! { "_id": 2, "a": 1 }]).errors.remove(0).1;
    assert_eq!(
        &*e.message,
        "E11000 duplicate key error collection: db.c index: foo dup key: { a: 1, b.c: null }"
    );
    w.insert("db.c", vec![doc! { "_id": 3, "a": [5, 5, 6] }]);
    let e = w.try_insert("db.c", vec![doc! { "_id": 4, "a": [7, 6] }]).errors.remove(0).1;
    assert_eq!(
        &*e.message,
        "E11000 duplicate key error collection: db.c index: foo dup key: { a: 6, b.c: null }"
    );
    assert_eq!(w.update("db.c", 1, doc! { "_id": 1, "a": 5 }).unwrap_err().code.0, 11000);
    // The same key of the same document is no duplicate.
    w.update("db.c", 1, doc! { "_id": 1, "a": 1, "z": 1 }).unwrap();
}

#[test]
fn partial_and_sparse_indexes_hold_only_their_documents() {
    let w = World::new();
    let partial = doc! { "key": { "a": 1 }, "name": "p", "partialFilterExpression": { "b": { "$gt": 5 } } };
    w.index("db.c", partial).unwrap();
    w.index("db.c", doc! { "key": { "s": 1 }, "name": "s", "sparse": true }).unwrap();
    w.insert("db.c", (0..10).map(|i| doc! { "_id": i, "a": -i, "b": i }).collect());
    assert_eq!(w.ids_by_index("db.c", "p"), [9, 8, 7, 6]);
    assert!(w.ids_by_index("db.c", "s").is_empty());
    w.update("db.c", 9, doc! { "_id": 9, "a": -9, "b": 0, "s": 1 }).unwrap();
    assert_eq!(w.ids_by_index("db.c", "p"), [8, 7, 6]);
    assert_eq!(w.ids_by_index("db.c", "s"), [9]);
}

#[test]
fn array_paths_are_known_at_once_and_after_a_restart() {
    let w = World::new();
    w.index("db.c", doc! { "key": { "a": 1, "b.c": 1 }, "name": "ab" }).unwrap();
    w.insert("db.c", vec![doc! { "_id": 1, "a": 1 }]);
    let multikey = |w: &World| {
        let c = w.catalog.lookup(&ns("db.c")).unwrap();
        let m = &c.info.indexes[1].multikey;
        (m.is_multikey(), m.field(0), m.field(1))
    };
    assert_eq!(multikey(&w), (false, 0, 0));
    w.insert("db.c", vec![doc! { "_id": 2, "b": [{ "c": 1 }] }]);
    assert_eq!(multikey(&w), (true, 0, 1));
    w.catalog.storage().set_stable(w.catalog.storage().last_committed());
    w.catalog.checkpoint().unwrap();
    let w = w.reopen();
    assert_eq!(multikey(&w), (true, 0, 1));
}

#[test]
fn indexes_are_dropped_by_name_key_and_all() {
    let w = World::new();
    for (n, key) in
        [("a", doc! { "a": 1 }), ("b", doc! { "b": 1 }), ("c", doc! { "c": 1 }), ("d", doc! { "d": 1 })]
    {
        w.index("db.c", doc! { "key": key, "name": n }).unwrap();
    }
    let target = ns("db.c");
    let drop = |which: DropWhich<'_>| w.run(w.catalog.drop_indexes(&target, which));
    assert_eq!(drop(DropWhich::Name("zz")).unwrap_err().code.0, 27);
    assert_eq!(drop(DropWhich::Name("_id_")).unwrap_err().code.0, 72);
    assert_eq!(drop(DropWhich::Name("a")).unwrap().were, 5);
    assert_eq!(drop(DropWhich::Key(&doc! { "b": 1.0 }.to_raw())).unwrap().were, 4);
    let all = drop(DropWhich::All).unwrap();
    assert_eq!((all.were, all.msg), (3, Some("non-_id indexes dropped for collection")));
    assert_eq!(w.catalog.lookup(&target).unwrap().indexes.len(), 1);
}

#[test]
fn specifications_are_refused_with_mongodbs_codes() {
    let w = World::new();
    w.insert("db.c", vec![doc! { "_id": 1, "a": 1 }]);
    w.index("db.c", doc! { "key": { "a": 1 }, "name": "a_1" }).unwrap();
    let cases = [
        (doc! { "key": { "a": 1 }, "name": "other" }, 85),
        (doc! { "key": { "a": -1 }, "name": "a_1" }, 86),
        (doc! { "key": { "a": 1 }, "name": "a_1", "expireAfterSeconds": 5 }, 85),
        (doc! { "key": {}, "name": "x" }, 67),
        (doc! { "key": { "b": 0 }, "name": "x" }, 67),
        (doc! { "key": { "b": "foo" }, "name": "x" }, 67),
        (doc! { "key": { "b": true }, "name": "x" }, 67),
        (doc! { "key": { "a..b": 1 }, "name": "x" }, 67),
        (doc! { "key": { "$a": 1 }, "name": "x" }, 67),
        (doc! { "key": { "b": 1 }, "name": "" }, 67),
        (doc! { "key": { "b": 1 } }, 9),
        (doc! { "name": "b" }, 9),
        (doc! { "key": { "b": 1 }, "name": "*" }, 2),
        (doc! { "key": { "b": 1 }, "name": 5 }, 14),
        (doc! { "key": { "b": 1 }, "name": "b", "foo": 1 }, 197),
        (doc! { "key": { "b": 1 }, "name": "b", "v": 0 }, 67),
        (doc! { "key": { "b": 1 }, "name": "b", "expireAfterSeconds": -1 }, 67),
        (doc! { "key": { "b": 1, "c": 1 }, "name": "b", "expireAfterSeconds": 1 }, 67),
        (doc! { "key": { "_id": -1 }, "name": "_id_" }, 2),
        (doc! { "key": { "_id": 1 }, "name": "_id_", "sparse": true }, 197),
        (doc! { "key": { "b": "hashed", "c": "hashed" }, "name": "b" }, 31303),
        (doc! { "key": { "b": "hashed" }, "name": "b", "unique": true }, 16764),
        (doc! { "key": { "$**": 1 }, "name": "b", "unique": true }, 67),
        (doc! { "key": { "b": 1 }, "name": "b", "wildcardProjection": { "a": 1 } }, 2),
        (doc! { "key": { "b": 1 }, "name": "b", "partialFilterExpression": { "a": { "$ne": 1 } } }, 67),
        (doc! { "key": { "b": 1 }, "name": "b", "partialFilterExpression": { "a": 1 }, "sparse": true }, 67),
    ];
    for (spec, code) in cases {
        let text = format!("{spec:?}");
        assert_eq!(w.index("db.c", spec).unwrap_err().code.0, code, "{text}");
    }
    let mut many = Document::new();
    (0..33).for_each(|i| many.push(format!("x{i}"), 1));
    assert_eq!(w.index("db.c", doc! { "key": many, "name": "b" }).unwrap_err().code.0, 13103);
    let e = w.index("db.nn", doc! { "key": { "b": "hashed" }, "name": "b", "unique": true }).unwrap_err();
    assert_eq!((e.code.0, w.catalog.lookup(&ns("db.nn")).is_none()), (16764, true));
}

#[test]
fn the_65th_index_is_refused() {
    let w = World::new();
    for i in 0..63 {
        w.index("db.c", doc! { "key": { "a": 1, "b": i + 1 }, "name": format!("n{i}") }).unwrap_or_default();
        let mut key = Document::new();
        key.push(format!("f{i}"), 1);
        let _ = w.index("db.d", doc! { "key": key, "name": format!("n{i}") });
    }
    let e = w.index("db.d", doc! { "key": { "z": 1 }, "name": "z" }).unwrap_err();
    assert_eq!(e.code.0, 67);
    assert_eq!(&*e.message, "add index fails, too many indexes for db.d key:{ z: 1 }");
}

#[test]
fn a_prepared_index_becomes_unique_once_its_duplicates_are_gone() {
    let w = World::new();
    w.index("db.h", doc! { "key": { "a": 1 }, "name": "a_1" }).unwrap();
    w.insert("db.h", vec![doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 1 }, doc! { "_id": 4, "a": 2 }]);
    let target = ns("db.h");
    let modify = |index: Document| {
        let body = doc! { "collMod": "h", "index": index }.to_raw();
        w.run(w.catalog.coll_mod(&target, &body))
    };
    assert_eq!(modify(doc! { "name": "a_1", "unique": true }).unwrap_err().code.0, 72);
    let r = modify(doc! { "name": "a_1", "prepareUnique": true }).unwrap();
    assert_eq!(Document::from(&*r.reply), doc! { "prepareUnique_old": false, "prepareUnique_new": true });
    assert_eq!(w.try_insert("db.h", vec![doc! { "_id": 9, "a": 2 }]).errors[0].1.code.0, 11000);
    let e = modify(doc! { "name": "a_1", "unique": true }).unwrap_err();
    assert_eq!(e.code.0, 359);
    assert_eq!(Document::from(RawDoc::trusted(&e.extra)), doc! { "violations": [{ "ids": [1, 2] }] });
    w.delete("db.h", 2).unwrap();
    let r = modify(doc! { "keyPattern": { "a": 1 }, "unique": true }).unwrap();
    assert_eq!(Document::from(&*r.reply), doc! { "unique_new": true });
    let w = w.reopen();
    assert_eq!(w.try_insert("db.h", vec![doc! { "_id": 9, "a": 2 }]).errors[0].1.code.0, 11000);
}

#[test]
fn wildcard_and_hashed_indexes_follow_their_documents() {
    let w = World::new();
    w.index("db.c", doc! { "key": { "$**": 1 }, "name": "w" }).unwrap();
    w.index("db.c", doc! { "key": { "h": "hashed" }, "name": "h" }).unwrap();
    w.insert("db.c", vec![doc! { "_id": 1, "a": { "b": [1, 2] } }, doc! { "_id": 2, "z": 1, "h": 3 }]);
    assert_eq!(w.ids_by_index("db.c", "w"), [1, 1, 2, 2]);
    assert_eq!(w.ids_by_index("db.c", "h").len(), 2);
    let coll = w.catalog.lookup(&ns("db.c")).unwrap();
    let paths = coll.info.indexes[1].wildcard.as_ref().unwrap().multikey_paths.read().unwrap().clone();
    assert!(paths.contains("a.b") && paths.len() == 1);
    assert_eq!(w.try_insert("db.c", vec![doc! { "_id": 3, "h": [1] }]).errors[0].1.code.0, 16766);
    w.delete("db.c", 2).unwrap();
    assert_eq!(w.ids_by_index("db.c", "w"), [1, 1]);
}
