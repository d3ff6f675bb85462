//! Collections of another set: all that they are survives, from one time on; nobody ever sees a part.

use crate::testing::{World, ns};
use crate::{Applying, IMPORT_MISSING, ImportOrder, Imported, Named, Uninterrupted};
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp, Uuid};
use pando_bson::{Document, ObjectId, RawDoc, doc};
use pando_oplog::EntryView;
use pando_storage::staging::Staging;
use pando_storage::{Ident, PinnedCheckpoint, ReadAt, is_foreign_wanted};
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};

const IMPORT: Uuid = Uuid([7; 16]);
const MERGE: Uuid = Uuid([8; 16]);
const ORDER: ImportOrder = ImportOrder { import: IMPORT, migration: MERGE, since: Timestamp(1) };

fn all(_: &Namespace) -> bool {
    true
}
fn of_tenants(ns: &Namespace) -> bool {
    ns.db().contains('_')
}

/// A member of a set that has done something before.
fn recipient() -> World {
    let w = World::new();
    w.insert("own.c", vec![doc! { "_id": 1 }]);
    w
}

fn now(w: &World) -> Timestamp {
    w.catalog.storage().last_committed()
}
fn stand_at_the_end(w: &World) {
    let storage = w.catalog.storage();
    storage.log().flush_once().unwrap();
    storage.set_stable(storage.last_committed());
    w.catalog.checkpoint().unwrap();
}

fn stage(pin: &PinnedCheckpoint, w: &World) -> Result<()> {
    let wanted = || pin.files().iter().enumerate().filter(|(_, f)| is_foreign_wanted(&f.path));
    let staging = Staging::begin_foreign(w.env.disk.clone(), wanted().map(|(_, f)| f.path.as_str()))?;
    for (n, f) in wanted() {
        staging.write(&f.path, 0, &pin.read(n, 0, usize::MAX)?)?;
        staging.end_file(&f.path, f.bytes)?;
    }
    let files: Vec<_> = wanted().map(|(_, f)| (f.path.clone(), f.bytes)).collect();
    staging.complete_foreign(&files)
}
fn take_in(pin: &PinnedCheckpoint, w: &World) -> Result<Imported> {
    stage(pin, w)?;
    w.catalog.take_in(&ORDER, &of_tenants, &mut || Ok(()))
}
fn publish(w: &World, taken: &Imported) -> Result<()> {
    for c in &taken.collections {
        w.run(w.catalog.import_collection(IMPORT, c.uuid))?;
    }
    Ok(())
}

const INDEXES: &str = "acme_db.indexes";
const NAMES: [&str; 6] = [
    INDEXES,
    "acme_db.capped",
    "acme_db.clustered",
    "acme_db.system.buckets.ts",
    "acme_db.system.views",
    "zeta_db.plain",
];

/// One collection of each kind, with indexes of each kind, after some changes.
fn fill(w: &World) {
    w.insert(
        INDEXES,
        (0..40)
            .map(|i| {
                doc! {
                    "_id": i, "a": i % 7, "list": [i, i + 1], "u": format!("u{i}"), "s": { "deep": [i] },
                    "text": format!("word{} und noch mehr", i % 5), "at": pando_bson::Bson::DateTime(i64::from(i) * 1000),
                    "place": [f64::from(i), 1.0], "long": "y".repeat(if i == 3 { 3000 } else { 3 }),
                }
            })
            .collect(),
    );
    for spec in [
        doc! { "key": { "u": 1 }, "name": "unique", "unique": true },
        doc! { "key": { "missing": 1 }, "name": "sparse", "sparse": true },
        doc! { "key": { "a": -1, "list": 1 }, "name": "compound" },
        doc! { "key": { "at": 1 }, "name": "ttl", "expireAfterSeconds": 1000 },
        doc! { "key": { "text": "text" }, "name": "text" },
        doc! { "key": { "place": "2dsphere" }, "name": "place" },
        doc! { "key": { "u": "hashed" }, "name": "hashed" },
        doc! { "key": { "s.$**": 1 }, "name": "wild" },
        doc! { "key": { "a": 1 }, "name": "partial", "partialFilterExpression": { "a": { "$gt": 3 } } },
        doc! { "key": { "long": 1 }, "name": "hidden", "hidden": true },
        doc! { "key": { "u": 1 }, "name": "collation", "collation": { "locale": "de", "strength": 2 } },
    ] {
        w.index(INDEXES, spec).unwrap();
    }
    for i in (0..40).step_by(3) {
        w.delete(INDEXES, i).unwrap();
    }
    w.create("acme_db.capped", doc! { "capped": true, "size": 4096, "max": 5 }).unwrap();
    w.insert("acme_db.capped", (0..12).map(|i| doc! { "_id": 100 - i }).collect());
    w.create(
        "acme_db.clustered",
        doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": true, "name": "_id_" } },
    )
    .unwrap();
    w.insert("acme_db.clustered", (0..9).rev().map(|i| doc! { "_id": i, "v": "x" }).collect());
    w.create("acme_db.ts", doc! { "timeseries": { "timeField": "t", "metaField": "m" } }).unwrap();
    let t = pando_bson::Bson::DateTime(5000);
    let id = ObjectId([0, 0, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8]);
    w.insert(
        "acme_db.system.buckets.ts",
        vec![doc! {
            "_id": id, "control": { "version": 1, "min": { "t": t.clone() }, "max": { "t": t.clone() } }, "meta": 4,
            "data": { "t": { "0": t } }
        }],
    );
    w.create("acme_db.view", doc! { "viewOn": "indexes", "pipeline": [{ "$match": { "a": 1 } }] }).unwrap();
    w.create("zeta_db.plain", doc! { "validator": { "x": { "$exists": true } } }).unwrap();
    w.insert("zeta_db.plain", (0..3).map(|i| doc! { "_id": i, "x": 1 }).collect());
    w.insert("notours.c", vec![doc! { "_id": 1 }]);
}

struct Donor {
    w: World,
    pin: PinnedCheckpoint,
}

fn donor(w: World) -> Donor {
    fill(&w);
    stand_at_the_end(&w);
    let pin = w.catalog.storage().pin_checkpoint().unwrap();
    Donor { w, pin }
}

fn show(w: &World, name: &str) -> (Vec<Document>, Vec<Document>, Document, u64, u64) {
    let coll = w.catalog.lookup(&ns(name)).unwrap_or_else(|| panic!("no {name}"));
    let indexes = coll.index_docs(true).iter().map(|d| Document::from(&**d)).collect();
    let listed = Document::from(&*coll.list_doc(false));
    (w.docs(name), indexes, listed, coll.count(), coll.data_bytes())
}

/// The taking node has all that the donor had, and what it keeps beside it is right.
fn check_whole(w: &World, from: &World) {
    for name in NAMES {
        assert_eq!(show(w, name), show(from, name), "{name}");
        let index_keys = |w: &World| {
            let report = w.run(w.catalog.validate(&ns(name), crate::Extent::Latest, &Uninterrupted)).unwrap();
            assert!(report.is_valid(), "{name}: {:?}", report.errors);
            assert_eq!(report.fast_count, report.records, "{name}");
            report.keys_per_index
        };
        assert_eq!(index_keys(w), index_keys(from), "{name}");
    }
    for index in ["unique", "compound", "ttl", "collation"] {
        assert_eq!(w.ids_by_index(INDEXES, index), from.ids_by_index(INDEXES, index), "{index}");
    }
    let multikey = |w: &World| {
        let coll = w.catalog.lookup(&ns(INDEXES)).unwrap();
        coll.indexes.iter().map(|i| i.is_multikey()).collect::<Vec<_>>()
    };
    assert_eq!(multikey(w), multikey(from));
    for view in ["acme_db.view", "acme_db.ts"] {
        assert_eq!(w.catalog.lookup_view(&ns(view)), from.catalog.lookup_view(&ns(view)));
        assert!(w.catalog.lookup_view(&ns(view)).is_some(), "{view}");
    }
    assert!(w.catalog.lookup(&ns("notours.c")).is_none());
}
fn check_nothing(w: &World) {
    let snapshot = w.catalog.snapshot();
    assert!(!snapshot.has_database("acme_db") && !snapshot.has_database("zeta_db"));
}

/// Rows below no collection's or import's name.
fn unnamed(w: &World) -> usize {
    let mut named = w.catalog.named_idents();
    if let Some(taken) = w.catalog.imported(IMPORT).unwrap() {
        let rows = taken.collections.iter().flat_map(|c| w.catalog.idents_of_import(IMPORT, c.uuid).unwrap());
        named.extend(rows.collect::<Vec<Ident>>());
    }
    w.catalog.storage().drop_unnamed(|i| named.contains(&i)).unwrap()
}

fn every_kind_survives(from: World, w: World) {
    let donor = donor(from);
    w.insert("own.c", (0..5).map(|i| doc! { "_id": i }).collect());
    let taken = take_in(&donor.pin, &w).unwrap();
    assert_eq!(taken.at, donor.pin.at);
    assert_eq!(taken.collections.len(), NAMES.len());
    check_nothing(&w);
    let before = now(&w);
    publish(&w, &taken).unwrap();
    check_whole(&w, &donor.w);
    let commands = w.log().into_iter().filter(|(_, o)| o.contains("importCollection")).count();
    assert_eq!(commands, NAMES.len());
    assert!(matches!(w.catalog.named_at(&ns(INDEXES), before).unwrap(), None | Some(Named::View(_))));
    assert!(w.catalog.named_at(&ns(INDEXES), now(&w)).unwrap().is_some());
    // Asked again, nothing more happens.
    publish(&w, &taken).unwrap();
    assert_eq!(w.log().into_iter().filter(|(_, o)| o.contains("importCollection")).count(), NAMES.len());
    assert_eq!(w.catalog.take_in(&ORDER, &all, &mut || panic!("loaded again")).unwrap(), taken);
    // The same changes do the same on both.
    for w in [&w, &donor.w] {
        let twice = w.try_insert(INDEXES, vec![doc! { "_id": 1000, "u": "u1" }]);
        assert_eq!(twice.errors[0].1.code, ErrorCode::DuplicateKey);
        let twice = w.try_insert(INDEXES, vec![doc! { "_id": 1 }]);
        assert_eq!(twice.errors[0].1.code, ErrorCode::DuplicateKey);
        assert!(!w.try_insert("zeta_db.plain", vec![doc! { "_id": 99 }]).errors.is_empty());
        w.insert(INDEXES, vec![doc! { "_id": 500, "u": "new", "list": [7, 8, 9] }]);
        w.update(INDEXES, 2, doc! { "_id": 2, "u": "other", "text": "word9" }).unwrap();
        w.delete(INDEXES, 4).unwrap();
        w.insert("acme_db.capped", (0..3).map(|i| doc! { "_id": i }).collect());
        w.insert("acme_db.clustered", vec![doc! { "_id": 50 }]);
    }
    check_whole(&w, &donor.w);
    stand_at_the_end(&w);
    assert!(w.catalog.forget_import(IMPORT, now(&w)).unwrap());
    assert_eq!(w.catalog.imported(IMPORT).unwrap(), None);
    let w = w.reopen();
    check_whole(&w, &donor.w);
    w.catalog.storage().compact_all().unwrap();
    check_whole(&w, &donor.w);
    assert_eq!(w.ids("own.c").len(), 5);
}

#[test]
fn every_kind_of_collection_survives_in_memory() {
    every_kind_survives(World::drawing(99), World::new());
}
#[test]
fn every_kind_of_collection_survives_on_files() {
    every_kind_survives(World::on_files_drawing("import-from", 99), World::on_files("import-to"));
}

/// The entries of `from`'s log about other sets' collections, applied as a secondary does.
fn follow(from: &World, w: &World, change: impl Fn(&mut Document)) -> Result<()> {
    let mut cursor = from.catalog.storage().log().read(Bound::Unbounded, false);
    while let Some((_, entry)) = cursor.next().unwrap() {
        let entry = RawDoc::trusted(&entry);
        if entry.get_path("o.importCollection").is_none_or(|v| v.as_str().is_none()) {
            continue;
        }
        let mut changed = Document::from(entry);
        change(&mut changed);
        let changed = changed.to_raw();
        let e = EntryView::parse(&changed)?;
        w.catalog.apply_entry(&e, Applying::Steady)?;
        w.catalog.storage().log().publish(e.ts);
    }
    Ok(())
}

#[test]
fn a_secondary_needs_the_tables_before_the_entry() {
    let donor = donor(World::drawing(99));
    let primary = recipient();
    let taken = take_in(&donor.pin, &primary).unwrap();
    publish(&primary, &taken).unwrap();
    let same = |_: &mut Document| {};
    let second = recipient();
    let e = follow(&primary, &second, same).unwrap_err();
    assert_eq!(e.code, IMPORT_MISSING, "{e}");
    check_nothing(&second);
    take_in(&donor.pin, &second).unwrap();
    // Of another copy, or of one that is not the same.
    for (field, value) in [("numRecords", 1i64), ("dataSize", 5)] {
        let other = |e: &mut Document| {
            let mut o = e.get("o").and_then(|o| o.as_doc()).unwrap().clone();
            o.set(field, value);
            e.set("o", o);
        };
        assert_eq!(follow(&primary, &second, other).unwrap_err().code, IMPORT_MISSING);
    }
    check_nothing(&second);
    follow(&primary, &second, same).unwrap();
    check_whole(&second, &donor.w);
    // Record ids are the same on all members.
    let rids = |w: &World| {
        let coll = w.catalog.lookup(&ns(INDEXES)).unwrap();
        let txn = w.catalog.begin_read(ReadAt::Latest).unwrap();
        crate::read::source::first_records(&txn, &coll, 1000)
            .unwrap()
            .into_iter()
            .map(|(rid, _)| rid)
            .collect::<Vec<_>>()
    };
    assert_eq!(rids(&second), rids(&primary));
    follow(&primary, &second, same).unwrap();
    check_whole(&second, &donor.w);
}

#[test]
fn an_import_that_is_rolled_back_is_gone_and_may_come_again() {
    for past_stable in [false, true] {
        let donor = donor(World::drawing(99));
        let w = recipient();
        let taken = take_in(&donor.pin, &w).unwrap();
        stand_at_the_end(&w);
        let common = now(&w);
        for _ in 0..2 {
            publish(&w, &taken).unwrap();
            w.update(INDEXES, 1, doc! { "_id": 1, "u": "changed" }).unwrap();
            w.delete(INDEXES, 2).unwrap();
            w.insert("zeta_db.plain", vec![doc! { "_id": 70, "x": 1 }]);
            w.run(w.catalog.drop_collection(&ns("acme_db.capped"))).unwrap();
            w.catalog.storage().log().flush_once().unwrap();
            if past_stable {
                w.catalog.storage().checkpoint_past_stable().unwrap();
            }
            assert!(!w.catalog.forget_import(IMPORT, now(&w)).unwrap(), "the tables do not stand there");
            w.catalog.roll_back(common).unwrap();
            check_nothing(&w);
            assert_eq!(w.ids("own.c"), [1]);
        }
        publish(&w, &taken).unwrap();
        check_whole(&w, &donor.w);
        let w = w.reopen();
        check_whole(&w, &donor.w);
    }
}

#[test]
fn a_replay_makes_the_collections_again() {
    let donor = donor(World::drawing(99));
    let w = recipient();
    let taken = take_in(&donor.pin, &w).unwrap();
    let w = w.reopen();
    assert_eq!(w.catalog.imported(IMPORT).unwrap(), Some(taken.clone()));
    check_nothing(&w);
    publish(&w, &taken).unwrap();
    let w = w.reopen();
    check_whole(&w, &donor.w);
    // Between checkpoint and end of the log: counts are as of the end.
    stand_at_the_end(&w);
    w.insert("zeta_db.plain", vec![doc! { "_id": 70, "x": 1 }]);
    let bytes = w.catalog.lookup(&ns("zeta_db.plain")).unwrap().data_bytes();
    let w = w.reopen();
    let coll = w.catalog.lookup(&ns("zeta_db.plain")).unwrap();
    assert_eq!((coll.count(), coll.data_bytes()), (4, bytes));
    // Dropped while it is still named.
    w.run(w.catalog.drop_collection(&ns(INDEXES))).unwrap();
    let w = w.reopen();
    assert!(w.catalog.lookup(&ns(INDEXES)).is_none());
    stand_at_the_end(&w);
    assert!(w.catalog.forget_import(IMPORT, now(&w)).unwrap());
    let w = w.reopen();
    assert!(w.catalog.lookup(&ns(INDEXES)).is_none());
    assert_eq!(w.catalog.lookup(&ns("zeta_db.plain")).unwrap().count(), 4);
}

/// Nobody has documents to fetch of a collection that was not published then; and its tables may have lost rows.
#[test]
fn a_rollback_that_fetches_documents_forgets_what_was_not_published() {
    for published_before in [false, true] {
        let donor = donor(World::drawing(99));
        let w = recipient();
        let taken = take_in(&donor.pin, &w).unwrap();
        if published_before {
            publish(&w, &taken).unwrap();
        }
        stand_at_the_end(&w);
        let common = now(&w);
        publish(&w, &taken).unwrap();
        if published_before {
            w.insert("own.c", vec![doc! { "_id": 2 }]);
        } else {
            w.update(INDEXES, 1, doc! { "_id": 1, "u": "changed" }).unwrap();
        }
        // What must go is in the tables, and no history of it.
        stand_at_the_end(&w);
        w.catalog.storage().set_oldest(now(&w));
        w.catalog.storage().compact_all().unwrap();
        let mut file = crate::FetchedFile::create(&*w.env.disk).unwrap();
        let own = w.catalog.lookup(&ns("own.c")).unwrap().uuid;
        file.add(own, doc! { "_id": 2 }.to_raw().as_bytes(), None).unwrap();
        file.finish(&*w.env.disk).unwrap();
        w.catalog.roll_back_fetched(common, pando_base::OpTime::new(common, 1)).unwrap();
        assert!(w.catalog.reach_min_valid().unwrap());
        assert_eq!(w.ids("own.c"), [1]);
        assert_eq!(unnamed(&w), 0);
        if published_before {
            check_whole(&w, &donor.w);
            assert_eq!(w.catalog.imported(IMPORT).unwrap(), Some(taken));
            continue;
        }
        check_nothing(&w);
        assert_eq!(w.catalog.imported(IMPORT).unwrap(), None);
        assert_eq!(publish(&w, &taken).unwrap_err().code, IMPORT_MISSING);
        let taken = take_in(&donor.pin, &w).unwrap();
        publish(&w, &taken).unwrap();
        check_whole(&w, &donor.w);
        check_whole(&w.reopen(), &donor.w);
    }
}

/// Starts and rollbacks drop rows that nobody names, and compactions take them away: those of an import are named.
#[test]
fn tables_that_wait_for_their_entry_are_kept() {
    for rolls_back in [false, true] {
        let donor = donor(World::drawing(99));
        let mut w = recipient();
        let taken = take_in(&donor.pin, &w).unwrap();
        stand_at_the_end(&w);
        let common = now(&w);
        w.insert("own.c", vec![doc! { "_id": 2 }]);
        if rolls_back {
            w.catalog.storage().log().flush_once().unwrap();
            w.catalog.roll_back(common).unwrap();
        } else {
            w = w.reopen();
        }
        w.insert("own.c", vec![doc! { "_id": 3 }]);
        // Twice: what nobody can read any more is dead behind the second one.
        for _ in 0..2 {
            stand_at_the_end(&w);
            w.catalog.storage().set_oldest(now(&w));
            w.insert("own.d", vec![doc! {}]);
        }
        w.catalog.storage().compact_all().unwrap();
        publish(&w, &taken).unwrap();
        check_whole(&w, &donor.w);
    }
}

/// Nothing else than another member's copy can help then.
#[test]
fn a_start_without_the_tables_gives_the_data_up() {
    let donor = donor(World::drawing(99));
    let w = recipient();
    let taken = take_in(&donor.pin, &w).unwrap();
    publish(&w, &taken).unwrap();
    w.insert("own.c", vec![doc! { "_id": 2 }]);
    let last = now(&w);
    w.catalog.forget_imports().unwrap();
    let w = w.reopen();
    assert!(w.catalog.is_copying() && w.catalog.is_copy_unfinished().unwrap());
    assert_eq!(w.catalog.promised().unwrap().ts, last);
    check_nothing(&w);
    assert!(w.catalog.lookup(&ns("own.c")).is_none());
    let w = w.reopen();
    assert!(w.catalog.is_copying());
}

#[test]
fn a_member_without_indexes_takes_in_the_one_on_id() {
    let donor = donor(World::drawing(99));
    let primary = recipient();
    let taken = take_in(&donor.pin, &primary).unwrap();
    publish(&primary, &taken).unwrap();
    let w = recipient();
    w.catalog.set_makes_indexes(false).unwrap();
    take_in(&donor.pin, &w).unwrap();
    follow(&primary, &w, |_| {}).unwrap();
    let names = |w: &World| {
        w.catalog
            .lookup(&ns(INDEXES))
            .unwrap()
            .indexes
            .iter()
            .map(|i| i.name().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&w), ["_id_"]);
    assert_eq!(names(&primary).len(), 12);
    assert_eq!(w.docs(INDEXES), donor.w.docs(INDEXES));
    let report = w.run(w.catalog.validate(&ns(INDEXES), crate::Extent::Latest, &Uninterrupted)).unwrap();
    assert!(report.is_valid(), "{:?}", report.errors);
}

#[test]
fn what_is_in_the_way_or_not_ready_is_refused() {
    let donor = donor(World::drawing(99));
    let w = recipient();
    w.insert("zeta_db.plain", vec![doc! { "_id": 1 }]);
    assert_eq!(take_in(&donor.pin, &w).unwrap_err().code, ErrorCode::NamespaceExists);
    assert_eq!(w.catalog.imported(IMPORT).unwrap(), None);
    // Somebody takes the name between the two.
    let w = recipient();
    let taken = take_in(&donor.pin, &w).unwrap();
    w.insert("zeta_db.plain", vec![doc! { "_id": 1 }]);
    assert_eq!(publish(&w, &taken).unwrap_err().code, ErrorCode::NamespaceExists);
    assert_eq!(w.ids("zeta_db.plain"), [1]);
    assert_eq!(
        w.run(w.catalog.import_collection(Uuid([9; 16]), taken.collections[0].uuid)).unwrap_err().code,
        IMPORT_MISSING
    );
    // An index that is being built there.
    let from = World::drawing(99);
    from.insert("acme_db.c", (0..30).map(|i| doc! { "_id": i, "a": i }).collect());
    let spec = doc! { "key": { "a": 1 }, "name": "a_1" }.to_raw();
    let specs: [&RawDoc; 1] = [&spec];
    let target = ns("acme_db.c");
    let mut build = Box::pin(from.catalog.create_indexes(&target, &specs, &Uninterrupted));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(std::future::Future::poll(build.as_mut(), &mut cx).is_pending());
    stand_at_the_end(&from);
    let pin = from.catalog.storage().pin_checkpoint().unwrap();
    let e = take_in(&pin, &recipient()).unwrap_err();
    assert_eq!(e.code, ErrorCode::IndexBuildAborted, "{e}");
}

/// The word that an earlier attempt, or another merge, is over may come late.
#[test]
fn what_was_taken_in_later_or_for_another_merge_is_not_forgotten() {
    let donor = donor(World::drawing(99));
    let w = recipient();
    let (before, since) = (now(&w), Timestamp(now(&w).0 + 1));
    stage(&donor.pin, &w).unwrap();
    let order = ImportOrder { since, ..ORDER };
    let taken = w.catalog.take_in(&order, &of_tenants, &mut || Ok(())).unwrap();
    let none: [Uuid; 0] = [];
    for upto in [before, since] {
        assert_eq!(w.catalog.imports_before(None, upto).unwrap(), none, "it came later");
    }
    let later = Timestamp(since.0 + 1);
    assert_eq!(w.catalog.imports_before(Some(Uuid([9; 16])), later).unwrap(), none, "of another merge");
    assert_eq!(w.catalog.imports_before(Some(MERGE), later).unwrap(), [IMPORT]);
    assert_eq!(w.catalog.imports_before(None, later).unwrap(), [IMPORT]);
    let w = w.reopen();
    assert_eq!(w.catalog.imports_before(None, since).unwrap(), none);
    publish(&w, &taken).unwrap();
    check_whole(&w, &donor.w);
}

#[test]
fn what_is_called_off_leaves_nothing() {
    let donor = donor(World::drawing(99));
    // Never published, then forgotten: its rows go.
    let w = recipient();
    take_in(&donor.pin, &w).unwrap();
    w.insert("own.c", vec![doc! { "_id": 2 }]);
    stand_at_the_end(&w);
    assert!(w.catalog.forget_import(IMPORT, now(&w)).unwrap());
    assert_eq!(unnamed(&w), 0, "all are dropped already");
    // Given up in the middle, and while a rollback looks for rows without a name.
    let w = recipient();
    stage(&donor.pin, &w).unwrap();
    let looks = AtomicUsize::new(0);
    let e = w.catalog.take_in(&ORDER, &of_tenants, &mut || {
        w.catalog.drop_unnamed_rows()?;
        if looks.fetch_add(1, Ordering::Relaxed) < 5 {
            Ok(())
        } else {
            Err(Error::new(ErrorCode::Interrupted, "enough"))
        }
    });
    assert!(e.is_err());
    assert_eq!(w.catalog.imported(IMPORT).unwrap(), None);
    assert_eq!(unnamed(&w), 0, "all are dropped already");
    let taken = w.catalog.take_in(&ORDER, &of_tenants, &mut || w.catalog.drop_unnamed_rows()).unwrap();
    publish(&w, &taken).unwrap();
    check_whole(&w, &donor.w);
    // This node's data is given up meanwhile.
    let w = recipient();
    stage(&donor.pin, &w).unwrap();
    let looks = AtomicUsize::new(0);
    let e = w.catalog.take_in(&ORDER, &of_tenants, &mut || match looks.fetch_add(1, Ordering::Relaxed) {
        5 => w.catalog.give_up_data(pando_base::OpTime::NULL),
        _ => Ok(()),
    });
    assert!(e.unwrap_err().message.contains("given up"));
    assert_eq!(w.catalog.imported(IMPORT).unwrap(), None);
}

/// The power fails, or a disk does, at any moment from the first staged byte to the last name forgotten: each collection is
/// there as a whole or not at all, and nothing is left below no name.
#[test]
fn whoever_dies_has_each_collection_as_a_whole_or_not_at_all() {
    let donor = donor(World::drawing(99));
    let (mut nothing, mut named, mut some, mut whole) = (0, 0, 0, 0);
    for seed in 0..150u64 {
        let w = recipient();
        stand_at_the_end(&w);
        let disk = w.disk.clone().unwrap();
        match seed % 3 {
            0 => disk.lose_sync_in(seed / 3),
            1 => disk.fail_sync_in(seed / 3),
            _ => disk.fail_write_in(seed * 2),
        }
        let steps = || -> Result<()> {
            let taken = take_in(&donor.pin, &w)?;
            for c in &taken.collections {
                w.run(w.catalog.import_collection(IMPORT, c.uuid))?;
                w.catalog.storage().log().flush_once()?;
            }
            w.catalog.storage().set_stable(now(&w));
            w.catalog.checkpoint()?;
            w.catalog.forget_import(IMPORT, now(&w)).map(drop)
        };
        let done = steps().is_ok();
        if seed % 2 == 0 {
            disk.crash()
        } else {
            disk.kill()
        }
        disk.mend();
        let w = w.reopen_as_is();
        assert!(!w.catalog.is_copying(), "seed {seed}: the log speaks of tables that were never durable");
        assert_eq!(w.ids("own.c"), [1], "seed {seed}");
        assert!(!disk.paths().iter().any(|p| p.starts_with("foreign/")), "seed {seed}");
        assert_eq!(unnamed(&w), 0, "seed {seed}");
        let here: Vec<&str> = NAMES.into_iter().filter(|n| w.catalog.lookup(&ns(n)).is_some()).collect();
        for name in &here {
            assert_eq!(show(&w, name), show(&donor.w, name), "seed {seed}: {name}");
        }
        assert!(!done || here.len() == NAMES.len(), "seed {seed}");
        let taken = w.catalog.imported(IMPORT).unwrap();
        match here.len() {
            0 if taken.is_none() => nothing += 1,
            0 => named += 1,
            6 => whole += 1,
            _ => some += 1,
        }
        // From whatever it has it comes to the end.
        let taken = match taken {
            Some(taken) => taken,
            None if here.is_empty() => take_in(&donor.pin, &w).unwrap(),
            None => continue,
        };
        publish(&w, &taken).unwrap();
        check_whole(&w, &donor.w);
        check_whole(&w.reopen(), &donor.w);
    }
    assert!(nothing > 10 && named > 0 && some > 5 && whole > 5, "{nothing} {named} {some} {whole}");
}
