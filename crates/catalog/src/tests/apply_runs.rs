//! Entries that share a unit on a member that follows.

use crate::Applying;
use crate::apply::entry::apply_to;
use crate::testing::{World, ns};
use crate::write::array_marks::Marks;
use pando_base::Timestamp;
use pando_bson::{DocBuf, RawDoc, doc};
use pando_oplog::EntryView;
use std::ops::Bound;

fn entries_after(w: &World, at: Timestamp) -> Vec<DocBuf> {
    let mut log = w.catalog.storage().log().read(Bound::Excluded(at), false);
    std::iter::from_fn(|| log.next().unwrap()).map(|(_, e)| RawDoc::trusted(&e).to_buf()).collect()
}
fn views(entries: &[DocBuf]) -> Vec<EntryView<'_>> {
    entries.iter().map(|e| EntryView::parse(e).unwrap()).collect()
}

#[test]
fn inserts_share_a_unit_and_fall_back_to_one_by_one_where_one_of_them_fails() {
    let (a, b) = (World::new(), World::new());
    b.catalog.gate().close();
    a.create("db.c", doc! {}).unwrap();
    let created = entries_after(&a, Timestamp::ZERO);
    for e in views(&created) {
        b.catalog.apply_entry(&e, Applying::Steady).unwrap();
        b.catalog.storage().log().publish(e.ts);
    }
    let from = a.catalog.storage().log().last();
    a.insert("db.c", (0..6).map(|i| doc! { "_id": i }).collect());
    let entries = entries_after(&a, from);
    let entries = views(&entries);
    let counts = |b: &World| (b.catalog.applied().units.get(), b.catalog.applied().split.get());
    b.catalog.apply_run(&entries[..3], Applying::Steady, &Marks::default()).unwrap();
    assert_eq!(counts(&b), (1, 0), "three inserts, one unit");
    // Another worker holds the key of the fifth.
    let coll = b.catalog.lookup(&ns("db.c")).unwrap();
    let mut other = b.catalog.begin_applied(entries[4].ts).unwrap();
    apply_to(&mut other, &coll, &entries[4], Applying::Steady, i64::MAX).unwrap();
    let (catalog, rest) = (b.catalog.clone(), &entries[3..]);
    std::thread::scope(|s| {
        let worker = s.spawn(move || catalog.apply_run(rest, Applying::Steady, &Marks::default()));
        while counts(&b).1 == 0 {
            std::thread::yield_now();
        }
        drop(other);
        worker.join().unwrap().unwrap();
    });
    assert_eq!(counts(&b), (2, 1));
    b.catalog.storage().log().publish(entries[5].ts);
    assert_eq!(b.ids("db.c"), [0, 1, 2, 3, 4, 5]);
}
