//! Drops in two phases (R-DROP-1): out of sight at once, off the disk when no rollback can reach the drop.
use crate::observer::{Defined, OpObserver};
use crate::schema::options::CollectionOptions;
use crate::testing::{World, ns};
use crate::write::unit::WriteUnit;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::doc;
use pando_storage::Backend;

fn filled(w: &World) {
    let pad = "x".repeat(500);
    w.index("db.c", doc! { "key": { "a": 1 }, "name": "a" }).unwrap();
    w.insert("db.c", (0..300).map(|i| doc! { "_id": i, "a": -i, "pad": pad.clone() }).collect());
    stable_now(w);
}

/// Everything so far is committed by a majority and in the tables.
fn stable_now(w: &World) {
    let storage = w.catalog.storage();
    storage.log().flush_once().unwrap();
    storage.set_stable(storage.last_committed());
    storage.set_oldest(storage.last_committed());
    w.catalog.checkpoint().unwrap();
}

fn table_bytes(w: &World) -> u64 {
    let s = w.catalog.storage().stats();
    s.records.bytes + s.indexes.bytes + s.history.bytes
}

#[test]
fn a_drop_keeps_its_rows_until_a_majority_has_it_and_can_be_rolled_back_before() {
    for after_restart in [false, true] {
        let mut w = World::on_files(&format!("drop-{after_restart}"));
        filled(&w);
        let common = w.catalog.storage().last_committed();
        let before = (w.docs("db.c"), w.ids_by_index("db.c", "a"));
        w.run(w.catalog.drop_collection(&ns("db.c"))).unwrap();
        // Checkpoints and compactions come and go; the drop is not committed.
        w.insert("db.other", vec![doc! { "_id": 1 }]);
        w.catalog.storage().log().flush_once().unwrap();
        w.catalog.checkpoint().unwrap();
        w.catalog.storage().compact_all().unwrap();
        if after_restart {
            w = w.reopen();
        }
        assert!(w.catalog.lookup(&ns("db.c")).is_none());
        assert!(w.catalog.storage().stats().drop_pending >= 3, "records and two indexes");
        assert!(table_bytes(&w) > 150_000, "{}", table_bytes(&w));
        w.catalog.roll_back(common).unwrap();
        assert_eq!((w.docs("db.c"), w.ids_by_index("db.c", "a")), before);
        assert_eq!(w.catalog.lookup(&ns("db.c")).unwrap().count(), 300);
        assert_eq!(
            w.catalog.storage().stats().drop_pending,
            0,
            "the collection is not to be dropped any more"
        );
    }
}

#[test]
fn the_rows_of_a_committed_drop_leave_the_disk() {
    let w = World::on_files("reaped");
    filled(&w);
    w.run(w.catalog.drop_collection(&ns("db.c"))).unwrap();
    stable_now(&w);
    w.catalog.storage().compact_all().unwrap();
    assert_eq!(w.catalog.storage().stats().drop_pending, 0);
    assert!(table_bytes(&w) < 20_000, "{}", table_bytes(&w));
    let w = w.reopen_with(pando_storage::Options { backend: Backend::Lsm, ..Default::default() });
    assert!(w.catalog.lookup(&ns("db.c")).is_none());
}

#[test]
fn nothing_is_created_that_may_not_be_by_the_time_of_its_lock() {
    let w = World::new();
    let may = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let asked = may.clone();
    let judge = move |ns: &Namespace| match asked.load(std::sync::atomic::Ordering::Relaxed) {
        true => Ok(()),
        false => Err(Error::new(ErrorCode::StaleDbVersion, format!("not {ns}"))),
    };
    let permitted = w.catalog.permitted_by(crate::Permit::new(judge));
    let create = |name: &str| w.run(permitted.create(&ns(name), Default::default()));
    create("db.a").unwrap();
    may.store(false, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(create("db.b").unwrap_err().code, ErrorCode::StaleDbVersion);
    let implicit = w.run(permitted.write_lock_or_create(&ns("db.c"))).map(drop);
    assert_eq!(implicit.unwrap_err().code, ErrorCode::StaleDbVersion);
    w.run(permitted.write_lock_or_create(&ns("db.a"))).unwrap();
    w.create("db.b", doc! {}).unwrap();
}

#[test]
fn nothing_can_be_created_in_a_database_that_is_being_dropped() {
    let w = World::new();
    w.insert("db.a", vec![doc! { "_id": 1 }]);
    w.insert("other.b", vec![doc! { "_id": 1 }]);
    let dropping = w.run(w.catalog.begin_drop_database("db")).unwrap();
    assert_eq!(w.run(dropping.collections()).unwrap().0, 1);
    let refused = w.create("db.z", doc! {}).unwrap_err();
    assert_eq!(refused.code, ErrorCode::DatabaseDropPending);
    assert_eq!(
        refused.message,
        "Cannot create collection db.z - database is in the process of being dropped."
    );
    let view = w.create("db.v", doc! { "viewOn": "a", "pipeline": [] }).unwrap_err();
    assert_eq!(
        view.message,
        "Cannot create collection db.system.views - database is in the process of being dropped."
    );
    let again = w.run(w.catalog.drop_database("db")).unwrap_err();
    assert_eq!(again.message, "The database is currently being dropped. Database: db");
    let index = w.index("db.x", doc! { "key": { "a": 1 }, "name": "a" }).unwrap_err();
    assert_eq!(index.code, ErrorCode::DatabaseDropPending);
    let (from, to) = (ns("other.b"), ns("db.b"));
    let moved = w.run(w.catalog.rename_collection(&from, &to, false, &crate::Uninterrupted)).unwrap_err();
    assert_eq!(moved.code, ErrorCode::DatabaseDropPending);
    w.run(dropping.finish()).unwrap();
    w.create("db.z", doc! {}).unwrap();
    // A drop that is given up leaves a database that can be used.
    let dropping = w.run(w.catalog.begin_drop_database("db")).unwrap();
    w.run(dropping.collections()).unwrap();
    drop(dropping);
    w.create("db.z", doc! {}).unwrap();
}

/// Lets nobody drop anything of one database.
struct Keeps(&'static str);

impl OpObserver for Keeps {
    fn defined(&self, _: &mut WriteUnit, event: &Defined<'_>) -> Result<()> {
        match event {
            Defined::Dropped { coll } if coll.ns.db() == self.0 => {
                Err(Error::new(ErrorCode::TenantMigrationConflict, "it waits for a decision"))
            }
            _ => Ok(()),
        }
    }
}

#[test]
fn a_temporary_collection_that_cannot_go_keeps_none_of_the_others() {
    let w = World::new();
    for name in ["a.tmp", "b.tmp", "c.tmp"] {
        let options = CollectionOptions { temp: true, ..CollectionOptions::default() };
        w.run(w.catalog.create_collection(&ns(name), options)).unwrap();
    }
    w.catalog.add_observer(std::sync::Arc::new(Keeps("a")));
    let told = w.run(w.catalog.drop_temp_collections()).unwrap_err();
    assert_eq!(told.code, ErrorCode::TenantMigrationConflict);
    let there = |name: &str| w.catalog.lookup(&ns(name)).is_some();
    assert!(there("a.tmp") && !there("b.tmp") && !there("c.tmp"));
}
