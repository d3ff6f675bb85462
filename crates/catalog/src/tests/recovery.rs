use crate::testing::{World, ns};
use crate::write::interrupt::Interrupt;
use crate::{Applying, CollectionOptions, DropWhich, Uninterrupted};
use pando_base::{Error, ErrorCode, OpTime};
use pando_bson::{RawDoc, doc};
use pando_oplog::EntryView;
use pando_storage::{Backend, Dir, IdentKind, Options, ReadAt};
use std::future::poll_fn;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;

/// An operation that somebody ends.
struct Until<'a>(&'a AtomicBool);

impl Interrupt for Until<'_> {
    fn check(&self) -> pando_base::Result<()> {
        match self.0.load(SeqCst) {
            true => Err(Error::new(ErrorCode::Interrupted, "operation was interrupted")),
            false => Ok(()),
        }
    }
}

#[test]
fn a_restart_without_checkpoint_replays_everything() {
    for w in [World::new(), World::on_files("replay")] {
        w.index("db.c", doc! { "key": { "a": 1 }, "name": "a_1" }).unwrap();
        w.insert("db.c", (0..20).map(|i| doc! { "_id": i, "a": -i }).collect());
        w.update("db.c", 3, doc! { "_id": 3, "a": 100 }).unwrap();
        w.delete("db.c", 4).unwrap();
        let (docs, by_a, log) = (w.docs("db.c"), w.ids_by_index("db.c", "a_1"), w.log());
        let uuid = w.catalog.lookup(&ns("db.c")).unwrap().uuid;
        let w = w.reopen();
        assert_eq!(w.docs("db.c"), docs);
        assert_eq!(w.ids_by_index("db.c", "a_1"), by_a);
        assert_eq!(w.log(), log);
        let coll = w.catalog.lookup(&ns("db.c")).unwrap();
        assert_eq!((coll.uuid, coll.count()), (uuid, 19));
        w.insert("db.c", vec![doc! { "_id": 99, "a": 0 }]);
        assert_eq!(w.ids("db.c").last(), Some(&99));
    }
}

#[test]
fn definition_changes_survive_a_restart() {
    let w = World::new();
    w.insert("db.a", vec![doc! { "_id": 1, "x": 1 }]);
    w.insert("db.b", vec![doc! { "_id": 2 }]);
    w.insert("db.gone", vec![doc! { "_id": 3 }]);
    w.index("db.a", doc! { "key": { "x": 1 }, "name": "x" }).unwrap();
    w.index("db.a", doc! { "key": { "y": 1 }, "name": "y" }).unwrap();
    w.run(w.catalog.rename_collection(&ns("db.a"), &ns("db.b"), true, &Uninterrupted)).unwrap();
    w.run(w.catalog.drop_collection(&ns("db.gone"))).unwrap();
    w.run(w.catalog.drop_indexes(&ns("db.b"), DropWhich::Name("y"))).unwrap();
    let body = doc! { "collMod": "b", "validator": { "z": 1 }, "validationLevel": "moderate" }.to_raw();
    w.run(w.catalog.coll_mod(&ns("db.b"), &body)).unwrap();
    let w = w.reopen();
    assert_eq!(w.ids("db.b"), [1]);
    assert!(w.catalog.lookup(&ns("db.a")).is_none() && w.catalog.lookup(&ns("db.gone")).is_none());
    let b = w.catalog.lookup(&ns("db.b")).unwrap();
    assert_eq!(b.indexes.iter().map(|i| i.name()).collect::<Vec<_>>(), ["_id_", "x"]);
    assert_eq!(b.options.validator, Some(doc! { "z": 1 }.to_raw()));
    assert_eq!(w.try_insert("db.b", vec![doc! { "_id": 7 }]).errors[0].1.code.0, 121);
}

#[test]
fn an_empty_collection_is_not_counted_as_the_one_that_had_its_uuid() {
    let w = World::new();
    w.insert("db.c", vec![doc! { "_id": 1 }]);
    let uuid = w.catalog.lookup(&ns("db.c")).unwrap().uuid;
    let storage = w.catalog.storage();
    storage.log().flush_once().unwrap();
    storage.set_stable(storage.last_committed());
    w.catalog.checkpoint().unwrap();
    let size_row = || {
        let key = [b"size/".as_slice(), &uuid.0].concat();
        storage.begin(ReadAt::Latest).unwrap().get(pando_storage::Ident::META, &key).unwrap()
    };
    let row = size_row().expect("the checkpoint has stored it");
    w.run(w.catalog.drop_collection(&ns("db.c"))).unwrap();
    // As a checkpoint does that was under way when the collection went.
    let mut unit = storage.begin_local().unwrap();
    unit.put(pando_storage::Ident::META, &[b"size/".as_slice(), &uuid.0].concat(), &row).unwrap();
    unit.commit().unwrap();
    w.run(w.catalog.create_as(&ns("db.c"), Default::default(), uuid)).unwrap();
    storage.log().flush_once().unwrap();
    storage.set_stable(storage.last_committed());
    w.catalog.checkpoint().unwrap();
    let w = w.reopen();
    assert_eq!(w.catalog.lookup(&ns("db.c")).unwrap().count(), 0);
}

/// A clean end comes while the periodic one is taken.
#[test]
fn two_checkpoints_at_once_both_succeed_and_sizes_stay_exact() {
    let w = World::new();
    for round in 0..4 {
        w.insert("db.c", (0..50).map(|i| doc! { "_id": round * 50 + i }).collect());
        w.catalog.storage().log().flush_once().unwrap();
        w.catalog.storage().set_stable(w.catalog.storage().last_committed());
        let take = || (0..100).map(|_| w.catalog.checkpoint()).collect::<Vec<_>>();
        std::thread::scope(|threads| {
            let taking: Vec<_> = (0..4).map(|_| threads.spawn(take)).collect();
            assert!(taking.into_iter().flat_map(|one| one.join().unwrap()).all(|done| done.is_ok()));
        });
    }
    let w = w.reopen();
    assert_eq!(w.catalog.lookup(&ns("db.c")).unwrap().count(), 200);
}

#[test]
fn counts_are_exact_after_checkpoint_and_crash() {
    let w = World::new();
    w.insert("db.c", (0..10).map(|i| doc! { "_id": i }).collect());
    w.catalog.storage().log().flush_once().unwrap();
    w.catalog.storage().set_stable(w.catalog.storage().last_committed());
    w.catalog.checkpoint().unwrap();
    w.insert("db.c", (10..15).map(|i| doc! { "_id": i }).collect());
    w.delete("db.c", 0).unwrap();
    let bytes = w.catalog.lookup(&ns("db.c")).unwrap().data_bytes();
    w.catalog.storage().log().flush_once().unwrap();
    w.disk.as_ref().unwrap().crash();
    let w = w.reopen_as_is();
    let coll = w.catalog.lookup(&ns("db.c")).unwrap();
    assert_eq!((coll.count(), coll.data_bytes()), (14, bytes));
    assert_eq!(w.docs("db.c").len(), 14);
}

#[test]
fn an_unfinished_build_is_taken_up_again() {
    let w = World::new();
    w.insert("db.c", (0..30).map(|i| doc! { "_id": i, "a": 30 - i }).collect());
    let spec = doc! { "key": { "a": 1 }, "name": "a_1" }.to_raw();
    let ask_once = |w: &World| {
        let target = ns("db.c");
        let specs: [&pando_bson::RawDoc; 1] = [&spec];
        let build = w.catalog.create_indexes(&target, &specs, &Uninterrupted);
        let mut build = std::pin::pin!(build);
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(std::future::Future::poll(build.as_mut(), &mut cx).is_pending());
    };
    ask_once(&w);
    w.insert("db.c", vec![doc! { "_id": 50, "a": 0 }]);
    let w = w.reopen();
    assert_eq!(w.catalog.lookup(&ns("db.c")).unwrap().building_indexes().len(), 1);
    // Nobody is at work on it: whoever wants it too waits, and gives way meanwhile.
    ask_once(&w);
    w.insert("db.c", vec![doc! { "_id": 51, "a": 99 }]);
    assert_eq!(w.run(w.catalog.resume_builds()).unwrap(), 1);
    w.insert("db.c", vec![doc! { "_id": 52, "a": 98 }]);
    for _ in 0..10 {
        w.tasks.turn();
    }
    let ids = w.ids_by_index("db.c", "a_1");
    assert_eq!((ids.len(), ids[0], ids[32]), (33, 50, 51));
}

#[test]
fn a_rename_across_databases_copies_documents_and_indexes() {
    let w = World::new();
    w.insert("a.c", (0..5).map(|i| doc! { "_id": i, "x": -i }).collect());
    w.index("a.c", doc! { "key": { "x": 1 }, "name": "x" }).unwrap();
    w.run(w.catalog.rename_collection(&ns("a.c"), &ns("b.d"), false, &Uninterrupted)).unwrap();
    assert!(w.catalog.lookup(&ns("a.c")).is_none());
    assert_eq!(w.ids_by_index("b.d", "x"), [4, 3, 2, 1, 0]);
    let w = w.reopen();
    assert_eq!(w.ids("b.d"), [0, 1, 2, 3, 4]);
    w.run(w.catalog.drop_database("b")).unwrap();
    assert!(!w.catalog.snapshot().has_database("b"));
    let w = w.reopen();
    assert!(w.catalog.snapshot().databases().iter().all(|d| d == "local"));
}

/// Nobody knows how far an earlier attempt came: what it has left goes, and the UUID is the new copy's.
#[test]
fn a_copy_for_another_database_is_made_anew_where_a_part_of_it_is_left() {
    let w = World::new();
    w.insert("a.c", (0..5).map(|i| doc! { "_id": i }).collect());
    let uuid = w.catalog.new_uuid();
    let temp = CollectionOptions { temp: true, ..CollectionOptions::default() };
    w.run(w.catalog.create_as(&ns("b.tmpabcde.renameCollection"), temp, uuid)).unwrap();
    w.insert("b.tmpabcde.renameCollection", vec![doc! { "_id": 3 }]);
    let (from, to) = (ns("a.c"), ns("b.d"));
    let copy = || w.catalog.copy_to_database(&from, &to, uuid, false, &Uninterrupted);
    w.run(copy()).unwrap();
    assert!(w.run(copy()).is_err(), "what is done is not undone");
    let w = w.reopen();
    assert!(w.catalog.lookup(&ns("b.tmpabcde.renameCollection")).is_none());
    assert_eq!(w.catalog.lookup(&ns("b.d")).map(|c| (c.uuid, c.options.temp)), Some((uuid, false)));
    assert_eq!((w.ids("a.c"), w.ids("b.d")), (vec![0, 1, 2, 3, 4], vec![0, 1, 2, 3, 4]));
}

/// Copies are larger than what may wait for a majority: they wait for room, and whoever gives that up leaves nothing behind.
#[test]
fn a_copy_of_more_than_memory_holds_waits_for_room() {
    let small = Options { backend: Backend::Mem, memtable_bytes: 256 << 10, ..Options::default() };
    let w = World::new().reopen_with(small);
    let make_room = || {
        let storage = w.catalog.storage();
        storage.log().flush_once().unwrap();
        storage.set_stable(storage.last_committed());
        w.catalog.checkpoint().unwrap();
    };
    let pad = "x".repeat(1000);
    for first in (0..6000).step_by(200) {
        w.insert("a.c", (first..first + 200).map(|i| doc! { "_id": i, "pad": pad.clone() }).collect());
        make_room();
    }
    let copies =
        |w: &World| w.catalog.snapshot().all_collections().filter(|c| c.ns.coll().starts_with("tmp")).count();
    let (a, b) = (ns("a.c"), ns("b.c"));
    for gives_up in [true, false] {
        let stop = AtomicBool::new(false);
        let interrupt = Until(&stop);
        let renames = [true, false].map(|capped| {
            let (catalog, a, b, interrupt) = (&w.catalog, &a, &b, &interrupt);
            let done: Pin<Box<dyn Future<Output = pando_base::Result<OpTime>> + '_>> = match capped {
                true => Box::pin(catalog.convert_to_capped(a, 100 << 20, interrupt)),
                false => Box::pin(catalog.rename_collection(a, b, false, interrupt)),
            };
            done
        });
        for mut copy in renames {
            stop.store(false, SeqCst);
            let mut polls = 0;
            let done = w.run(poll_fn(|cx| {
                polls += 1;
                match copy.as_mut().poll(cx) {
                    Poll::Pending if polls % 100 == 0 => {
                        assert!(!w.catalog.storage().has_room(), "it waits for something else");
                        stop.store(gives_up, SeqCst);
                        make_room();
                        Poll::Pending
                    }
                    polled => polled,
                }
            }));
            assert_eq!(done.is_err(), gives_up, "{done:?}");
            assert!(polls >= 100 && copies(&w) == 0);
        }
    }
    assert_eq!((w.ids("a.c").len(), w.ids("b.c").len()), (0, 6000));
}

#[test]
fn a_replay_of_more_than_memory_holds_comes_to_its_end_with_all_indexes() {
    let w = World::new();
    let pad = "x".repeat(1000);
    w.insert("db.c", (0..600).map(|i| doc! { "_id": i, "a": -i, "pad": pad.clone() }).collect());
    w.index("db.c", doc! { "key": { "a": 1 }, "name": "a", "unique": true }).unwrap();
    w.index("db.c", doc! { "key": { "pad": 1, "a": 1 }, "name": "long" }).unwrap();
    w.insert("db.c", (600..900).map(|i| doc! { "_id": i, "a": -i, "pad": pad.clone() }).collect());
    w.catalog.storage().log().flush_once().unwrap();
    // Rows of 64 KiB may wait; commits of half a megabyte would be refused.
    let small = || Options { backend: Backend::Mem, memtable_bytes: 64 << 10, ..Options::default() };
    let mut w = w.reopen_with(small());
    for _ in 0..2 {
        let recovered = w.catalog.storage().recovery_ts();
        assert!(!recovered.is_zero(), "the replay itself has brought rows to the tables");
        assert!(w.catalog.lookup(&ns("db.c")).unwrap().building_indexes().is_empty());
        for index in ["a", "long"] {
            let ids = w.ids_by_index("db.c", index);
            assert_eq!((ids.len(), ids[0], ids[899]), (900, 899, 0));
        }
        w = w.reopen_with(small());
    }
    let duplicate = w.try_insert("db.c", vec![doc! { "_id": 1000, "a": -5 }]);
    assert_eq!(duplicate.errors[0].1.code, ErrorCode::DuplicateKey);
}

#[test]
fn rows_of_a_build_that_a_crash_left_without_a_name_are_dropped() {
    let w = World::new();
    w.insert("db.c", (0..30).map(|i| doc! { "_id": i, "a": i }).collect());
    let storage = w.catalog.storage().clone();
    let orphan = storage.create_ident(IdentKind::Index).unwrap();
    let mut load = storage.bulk(orphan, storage.log().last()).unwrap();
    load.push(b"x", b"1").unwrap();
    load.finish().unwrap();
    drop(storage);
    let w = w.reopen();
    let storage = w.catalog.storage();
    storage.set_stable(storage.log().last());
    storage.set_oldest(storage.stable());
    w.catalog.checkpoint().unwrap();
    storage.compact_all().unwrap();
    let txn = storage.begin(ReadAt::Latest).unwrap();
    let mut rows = txn.scan(orphan, Bound::Unbounded, Bound::Unbounded, Dir::Forward).unwrap();
    assert!(rows.next().unwrap().is_none());
    assert_eq!(w.docs("db.c").len(), 30);
}

#[test]
fn a_follower_makes_a_large_index_in_bulk() {
    let (a, b) = (World::new(), World::new());
    // More than a load keeps in memory.
    let long = "x".repeat(300);
    a.insert("db.c", (0..1500).map(|i| doc! { "_id": i, "a": [i, format!("{long}{i}")] }).collect());
    a.index("db.c", doc! { "key": { "a": 1 }, "name": "a" }).unwrap();
    let mut log = a.catalog.storage().log().read(Bound::Unbounded, false);
    while let Some((_, entry)) = log.next().unwrap() {
        let view = EntryView::parse(RawDoc::trusted(&entry)).unwrap();
        b.catalog.apply_entry(&view, Applying::Steady).unwrap();
        b.catalog.storage().log().publish(view.ts);
    }
    let coll = b.catalog.lookup(&ns("db.c")).unwrap();
    assert!(coll.index("a").unwrap().is_ready());
    assert!(coll.index("a").unwrap().state.seen.is_multikey(), "known from the scan");
    assert_eq!(b.ids_by_index("db.c", "a"), a.ids_by_index("db.c", "a"));
    let in_tables = b.catalog.storage().stats().indexes.bytes;
    assert!(in_tables > 1500, "{in_tables} bytes of index tables without a checkpoint");
}

#[test]
fn a_rollback_leaves_what_was_there_at_the_common_point() {
    for w in [World::new(), World::on_files("rollback")] {
        w.index("db.c", doc! { "key": { "a": 1 }, "name": "a_1" }).unwrap();
        w.insert("db.c", (0..20).map(|i| doc! { "_id": i, "a": -i }).collect());
        let storage = w.catalog.storage();
        storage.log().flush_once().unwrap();
        storage.set_stable(storage.last_committed());
        w.catalog.checkpoint().unwrap();
        // Above stable and kept.
        w.update("db.c", 3, doc! { "_id": 3, "a": 100 }).unwrap();
        w.delete("db.c", 4).unwrap();
        w.insert("db.kept", vec![doc! { "_id": 1 }]);
        let common = storage.last_committed();
        let before = (w.docs("db.c"), w.ids_by_index("db.c", "a_1"), w.log(), w.ids("db.kept"));
        // Undone.
        w.update("db.c", 3, doc! { "_id": 3, "a": 200 }).unwrap();
        w.insert("db.c", vec![doc! { "_id": 4, "a": 4 }, doc! { "_id": 99, "a": 99 }]);
        w.insert("db.new", vec![doc! { "_id": 1 }]);
        w.index("db.c", doc! { "key": { "b": 1 }, "name": "b_1" }).unwrap();
        w.run(w.catalog.drop_collection(&ns("db.kept"))).unwrap();
        storage.log().flush_once().unwrap();

        w.catalog.roll_back(common).unwrap();
        let after = |w: &World| (w.docs("db.c"), w.ids_by_index("db.c", "a_1"), w.log(), w.ids("db.kept"));
        assert_eq!(after(&w), before);
        assert!(w.catalog.lookup(&ns("db.new")).is_none());
        let coll = w.catalog.lookup(&ns("db.c")).unwrap();
        assert_eq!((coll.count(), coll.index("b_1").is_none()), (19, true));
        // Life goes on, and a restart finds the same.
        w.insert("db.c", vec![doc! { "_id": 7000, "a": 1 }]);
        let now = after(&w);
        let w = w.reopen();
        assert_eq!(after(&w), now);
    }
}

#[test]
fn a_collection_whose_drop_is_rolled_back_keeps_its_size_and_its_documents() {
    let w = World::new();
    w.insert("db.c", (0..20).map(|i| doc! { "_id": i }).collect());
    let storage = w.catalog.storage();
    storage.log().flush_once().unwrap();
    storage.set_stable(storage.last_committed());
    w.catalog.checkpoint().unwrap();
    w.insert("db.c", vec![doc! { "_id": 20 }]);
    let common = storage.last_committed();
    w.run(w.catalog.drop_collection(&ns("db.c"))).unwrap();
    storage.log().flush_once().unwrap();
    // The drop is noted on disk, for when the stable timestamp has passed it.
    w.insert("db.other", vec![doc! { "_id": 1 }]);
    storage.set_stable(common);
    w.catalog.checkpoint().unwrap();
    w.catalog.roll_back(common).unwrap();
    assert_eq!(w.catalog.lookup(&ns("db.c")).unwrap().count(), 21);
    // It is not carried out later, not even after a restart.
    let w = w.reopen();
    w.insert("db.other", (0..9).map(|i| doc! { "_id": i }).collect());
    let storage = w.catalog.storage();
    storage.log().flush_once().unwrap();
    storage.set_stable(storage.last_committed());
    storage.set_oldest(storage.last_committed());
    w.catalog.checkpoint().unwrap();
    storage.compact_all().unwrap();
    assert_eq!(w.ids("db.c").len(), 21);
}

#[test]
fn a_node_that_gives_its_data_up_is_empty_and_remembers_what_it_promised() {
    for w in [World::new(), World::on_files("given-up")] {
        w.index("db.c", doc! { "key": { "a": 1 }, "name": "a_1" }).unwrap();
        w.insert("db.c", (0..200).map(|i| doc! { "_id": i, "a": -i }).collect());
        let storage = w.catalog.storage();
        storage.log().flush_once().unwrap();
        storage.set_stable(storage.last_committed());
        w.catalog.checkpoint().unwrap();
        w.update("db.c", 3, doc! { "_id": 3, "a": 100 }).unwrap();
        w.insert("db.other", vec![doc! { "_id": 1 }]);
        storage.log().flush_once().unwrap();
        let promised = pando_base::OpTime::new(storage.last_committed(), 1);
        w.catalog.give_up_data(promised).unwrap();
        let is_empty = |w: &World| {
            let storage = w.catalog.storage();
            assert!(w.catalog.lookup(&ns("db.c")).is_none() && w.catalog.lookup(&ns("db.other")).is_none());
            assert!(w.log().is_empty() && storage.stable().is_zero() && storage.recovery_ts().is_zero());
            assert_eq!(w.catalog.promised().unwrap(), promised);
            assert!(w.catalog.is_copy_unfinished().unwrap());
        };
        is_empty(&w);
        // The marker says what to do, whenever the process ends.
        let w = w.reopen();
        is_empty(&w);
        w.catalog.mark_copy(false).unwrap();
        w.insert("db.c", vec![doc! { "_id": 3, "a": 1 }, doc! { "_id": 500, "a": 2 }]);
        let w = w.reopen();
        assert_eq!(w.ids("db.c"), [3, 500]);
        assert_eq!(w.catalog.promised().unwrap(), promised);
    }
}
