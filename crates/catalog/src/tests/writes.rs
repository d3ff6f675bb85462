use crate::testing::{World, ns};
use crate::{SessionRef, WriteOp};
use pando_base::{Error, ErrorCode, OpTime, Result};
use pando_bson::{Document, RawDoc, doc};
use pando_storage::ReadAt;

#[test]
fn an_insert_creates_the_collection_and_leaves_its_entries() {
    for w in [World::new(), World::on_files("insert")] {
        w.insert("db.c", vec![doc! { "_id": 1, "a": 1 }, doc! { "a": 2, "_id": 2 }]);
        assert_eq!(w.docs("db.c"), [doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 2 }]);
        let ops: Vec<String> = w.log().into_iter().map(|(op, _)| op).collect();
        assert_eq!(ops, ["c", "i", "i"]);
        assert_eq!(w.catalog.lookup(&ns("db.c")).unwrap().count(), 2);
    }
}

#[test]
fn a_document_without_id_gets_an_object_id_in_front() {
    let w = World::new();
    w.insert("db.c", vec![doc! { "a": 1 }]);
    let docs = w.docs("db.c");
    assert_eq!(docs[0].iter().next().map(|(k, _)| k.to_owned()), Some("_id".to_owned()));
}

#[test]
fn a_duplicate_id_is_reported_for_its_document_only() {
    let w = World::new();
    let done = w.try_insert("db.c", vec![doc! { "_id": 1 }, doc! { "_id": 1 }, doc! { "_id": 2 }]);
    assert_eq!((done.n, done.errors.len()), (1, 1));
    let (at, e) = &done.errors[0];
    assert_eq!((*at, e.code), (1, ErrorCode::DuplicateKey));
    assert_eq!(&*e.message, "E11000 duplicate key error collection: db.c index: _id_ dup key: { _id: 1 }");
    let extra = Document::from(RawDoc::trusted(&e.extra));
    assert_eq!(extra, doc! { "keyPattern": { "_id": 1 }, "keyValue": { "_id": 1 } });
    assert_eq!(w.ids("db.c"), [1]);
}

#[test]
fn each_document_of_a_bulk_insert_has_its_own_timestamp() {
    let w = World::new();
    w.insert("db.c", (0..5).map(|i| doc! { "_id": i }).collect());
    let last = w.catalog.storage().last_committed();
    for back in 0..5u64 {
        let at = ReadAt::At(pando_base::Timestamp(last.0 - back));
        assert_eq!(w.docs_at("db.c", at).len(), 5 - back as usize);
    }
}

#[test]
fn updates_and_deletes_move_index_entries_along() {
    for w in [World::new(), World::on_files("update")] {
        let text = "a text that makes a difference smaller than the whole document";
        w.insert("db.c", (0..4).map(|i| doc! { "_id": i, "a": i, "t": text }).collect());
        w.index("db.c", doc! { "key": { "a": 1 }, "name": "a_1" }).unwrap();
        assert_eq!(w.ids_by_index("db.c", "a_1"), [0, 1, 2, 3]);
        w.update("db.c", 0, doc! { "_id": 0, "a": 9, "t": text }).unwrap();
        w.delete("db.c", 2).unwrap();
        assert_eq!(w.ids_by_index("db.c", "a_1"), [1, 3, 0]);
        assert_eq!(w.catalog.lookup(&ns("db.c")).unwrap().count(), 3);
        let (op, o) = w.log().into_iter().rev().nth(1).unwrap();
        assert_eq!((op.as_str(), o), ("u", doc! { "$v": 2, "diff": { "u": { "a": 9 } } }));
    }
}

#[test]
fn a_capped_collection_drops_its_oldest_and_logs_it() {
    let w = World::new();
    w.create("db.cap", doc! { "capped": true, "size": 1000, "max": 2 }).unwrap();
    for i in 0..5 {
        w.insert("db.cap", vec![doc! { "_id": i }]);
    }
    assert_eq!(w.ids("db.cap"), [3, 4]);
    let deletes = w.log().into_iter().filter(|(op, _)| op == "d").count();
    assert_eq!(deletes, 3);
    // By bytes: documents of about 200 bytes in 1024.
    w.create("db.cap2", doc! { "capped": true, "size": 1000 }).unwrap();
    let text = "x".repeat(180);
    w.insert("db.cap2", (0..20).map(|i| doc! { "_id": i, "t": text.as_str() }).collect());
    let coll = w.catalog.lookup(&ns("db.cap2")).unwrap();
    assert!(coll.data_bytes() <= 1024 && coll.count() == 5, "{} {}", coll.data_bytes(), coll.count());
    assert_eq!(w.ids("db.cap2"), [15, 16, 17, 18, 19]);
}

#[test]
fn a_clustered_collection_is_ordered_by_id() {
    let w = World::new();
    let clustered = doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": true } };
    w.create("db.cl", clustered).unwrap();
    w.insert("db.cl", [5, 1, 3].map(|i| doc! { "_id": i, "a": -i }).to_vec());
    assert_eq!(w.ids("db.cl"), [1, 3, 5]);
    let e = &w.try_insert("db.cl", vec![doc! { "_id": 3 }]).errors[0].1;
    assert_eq!(&*e.message, "E11000 duplicate key error collection: db.cl index: _id_ dup key: { _id: 3 }");
    w.index("db.cl", doc! { "key": { "a": 1 }, "name": "a" }).unwrap();
    w.update("db.cl", 5, doc! { "_id": 5, "a": 7 }).unwrap();
    assert_eq!(w.ids_by_index("db.cl", "a"), [3, 1, 5]);
}

#[test]
fn a_validator_refuses_or_warns() {
    let w = World::new();
    w.create("db.v", doc! { "validator": { "a": { "$gt": 5 } } }).unwrap();
    let e = &w.try_insert("db.v", vec![doc! { "_id": 1, "a": 1 }]).errors[0].1;
    assert_eq!((e.code.0, &*e.message), (121, "Document failed validation"));
    w.insert("db.v", vec![doc! { "_id": 1, "a": 6 }]);
    assert_eq!(w.update("db.v", 1, doc! { "_id": 1, "a": 2 }).unwrap_err().code.0, 121);
    w.create("db.w", doc! { "validator": { "a": { "$gt": 5 } }, "validationAction": "warn" }).unwrap();
    w.insert("db.w", vec![doc! { "_id": 1, "a": 1 }]);
}

#[test]
fn local_collections_leave_no_entries() {
    let w = World::new();
    w.insert("local.x", vec![doc! { "_id": 1 }]);
    assert_eq!(w.docs("local.x").len(), 1);
    assert!(w.log().is_empty());
}

#[test]
fn the_oplog_reads_like_a_collection() {
    let w = World::new();
    w.insert("db.c", vec![doc! { "_id": 1 }]);
    let entries = w.docs("local.oplog.rs");
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1].get("ns").and_then(|v| v.as_str()), Some("db.c"));
}

#[test]
fn database_names_may_not_differ_in_case_only() {
    let w = World::new();
    w.insert("db.c", vec![doc! { "_id": 1 }]);
    let e = w.create("DB.c", doc! {}).unwrap_err();
    assert_eq!(e.code.0, 13297);
}

#[test]
fn views_resolve_to_their_collection_and_cycles_are_refused() {
    let w = World::new();
    w.insert("db.c", vec![doc! { "_id": 1 }]);
    w.create("db.v1", doc! { "viewOn": "c", "pipeline": [{ "$match": { "a": 1 } }] }).unwrap();
    w.create("db.v2", doc! { "viewOn": "v1", "pipeline": [{ "$limit": 3 }] }).unwrap();
    let r = w.catalog.snapshot().resolve_view(&ns("db.v2")).unwrap().unwrap();
    assert_eq!((r.ns.coll(), r.pipeline.count()), ("c", 2));
    let stages: Vec<String> =
        r.pipeline.iter().map(|e| e.value().as_doc().unwrap().first().unwrap().name().to_owned()).collect();
    assert_eq!(stages, ["$match", "$limit"]);
    assert_eq!(w.create("db.v3", doc! { "viewOn": "v3" }).unwrap_err().code.0, 5);
    assert_eq!(w.create("db.v1", doc! { "viewOn": "c" }).unwrap_err().code.0, 48);
    let w = w.reopen();
    assert!(w.catalog.lookup_view(&ns("db.v2")).is_some());
    w.run(w.catalog.drop_collection(&ns("db.v2"))).unwrap();
    assert!(w.catalog.lookup_view(&ns("db.v2")).is_none());
    w.run(w.catalog.drop_database("db")).unwrap();
    assert!(w.catalog.lookup_view(&ns("db.v1")).is_none());
    assert!(!w.catalog.snapshot().has_database("db"));
}

#[test]
fn views_upon_each_other_have_one_collation() {
    let w = World::new();
    let (fr, en) = (doc! { "locale": "fr" }, doc! { "locale": "en" });
    let view =
        |on: &str, collation: &pando_bson::Document| doc! { "viewOn": on, "collation": collation.clone() };
    let joins =
        |name: &str| doc! { "viewOn": "c", "pipeline": [{ "$facet": { "a": [{ "$unionWith": name }] } }] };
    let refused = |name: &str, options| {
        let e = w.create(name, options).unwrap_err();
        assert_eq!(e.code.0, 167);
        e.message.to_string()
    };
    w.create("db.c", doc! { "collation": en.clone() }).unwrap();
    w.create("db.fr", view("c", &fr)).unwrap();
    assert_eq!(
        refused("db.v", doc! { "viewOn": "fr" }),
        "View db.v has conflicting collation with view db.fr"
    );
    assert_eq!(refused("db.v", joins("fr")), "View db.v has conflicting collation with view db.fr");
    refused("db.v", view("fr", &en));
    w.create("db.v", view("fr", &doc! { "locale": "fr", "strength": 3 })).unwrap();

    // Also with a view that was there before what it stands on.
    w.create("db.above", view("later", &fr)).unwrap();
    let text = "View db.later has a collation that does not match the collation of view db.above";
    assert_eq!(refused("db.later", view("c", &en)), text);
    assert_eq!(refused("db.later", doc! { "timeseries": { "timeField": "t" } }), text);
    w.create("db.later", view("c", &fr)).unwrap();
}

#[test]
fn a_view_that_is_the_twentieth_of_a_chain_may_be_defined_and_not_read() {
    let w = World::new();
    w.create("db.c", doc! {}).unwrap();
    let mut below = "c".to_owned();
    for i in 0..20 {
        let name = format!("y{i}");
        w.create(&format!("db.{name}"), doc! { "viewOn": below }).unwrap();
        below = name;
    }
    let too_long = |options| {
        let e = w.create("db.more", options).unwrap_err();
        let text = "View depth limit exceeded; maximum depth is 20";
        assert_eq!((e.code.0, &*e.message), (165, text));
    };
    too_long(doc! { "viewOn": "y19" });
    too_long(doc! { "viewOn": "c", "pipeline": [{ "$unionWith": "y19" }] });
    w.create("db.k", doc! { "viewOn": "nothing" }).unwrap();
    let change = doc! { "collMod": "y0", "viewOn": "k", "pipeline": [] }.to_raw();
    let e = w.run(w.catalog.coll_mod(&ns("db.y0"), &change)).err().unwrap();
    assert_eq!(e.code.0, 165, "as long with those above it");

    let read =
        |name: &str| w.catalog.snapshot().resolve_view(&ns(name)).map(|r| r.unwrap().ns.coll().to_owned());
    assert_eq!(read("db.y18").unwrap(), "c");
    let e = read("db.y19").unwrap_err();
    let text = "View depth too deep or view cycle detected; maximum depth is 20";
    assert_eq!((e.code.0, &*e.message), (165, text));
}

#[test]
fn a_time_series_does_not_take_over_a_collection_that_only_has_the_name_of_its_buckets() {
    let w = World::new();
    let series = |field: &str| doc! { "timeseries": { "timeField": field } };
    w.create("db.system.buckets.z", doc! {}).unwrap();
    let e = w.create("db.z", series("t")).unwrap_err();
    assert_eq!(e.code.0, 48);
    let start = "Bucket Collection already exists. NS: db.system.buckets.z. UUID: ";
    assert!(e.message.starts_with(start), "{}", e.message);
    assert!(w.catalog.lookup_view(&ns("db.z")).is_none());

    // What is left of a `create` that failed half-way is completed by the same command, and by no other.
    let other = doc! { "viewOn": "y", "collation": { "locale": "fr" } };
    w.create("db.above", other).unwrap();
    assert_eq!(w.create("db.y", series("t")).unwrap_err().code.0, 167);
    w.run(w.catalog.drop_collection(&ns("db.above"))).unwrap();
    assert_eq!(w.create("db.y", series("u")).unwrap_err().code.0, 48);
    w.create("db.y", series("t")).unwrap();
}

/// Interrupts whoever asks for the fourth time.
struct FourthTime(std::sync::atomic::AtomicU32);

impl crate::Interrupt for FourthTime {
    fn check(&self) -> Result<()> {
        match self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            3.. => Err(Error::new(ErrorCode::Interrupted, "operation was interrupted")),
            _ => Ok(()),
        }
    }
}

/// What a retry is told was done must have been: each statement with the entry of its own unit, and none that was not tried.
#[test]
fn a_retryable_insert_tells_which_unit_did_what() {
    let w = World::new();
    let raw: Vec<_> = (0..4000).map(|i| pando_bson::doc! { "_id": i }.to_raw()).collect();
    let refs: Vec<&RawDoc> = raw.iter().map(|d| &**d).collect();
    let ids: Vec<i32> = (0..4000).collect();
    let lsid = pando_bson::doc! { "id": 1 }.to_raw();
    let session = SessionRef { lsid: &lsid, txn_number: 1, prev: OpTime::NULL };
    let op = WriteOp { session: Some(session), ..WriteOp::default() };
    let interrupt = FourthTime(0.into());
    let done = w.run(async {
        let coll = w.catalog.write_lock_or_create(&ns("db.c")).await.unwrap();
        w.catalog.insert_many(&op, &coll, &refs, &ids, false, &interrupt).await
    });
    assert_eq!((done.n, done.errors.len()), (1500, 1));
    let told: Vec<_> = done.of_session.iter().map(|(docs, _)| docs.clone()).collect();
    assert_eq!(told, [0..500, 500..1000, 1000..1500]);
    assert!(done.of_session.is_sorted_by(|a, b| a.1 < b.1), "{:?}", done.of_session);
    assert_eq!(done.of_session[2].1, done.last);
}
