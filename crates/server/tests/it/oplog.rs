//! The oplog as a collection: bounded from the front, and without what is this node's own business.

use pando_bson::{Binary, Bson, Document, doc};
use pando_testserver::{Client, Running, World, run};
use std::time::Duration;

const OPLOG_BYTES: u64 = 2 << 20;

async fn small_oplog(world: &World, retention: Duration) -> Running {
    world
        .start(|c| {
            c.repl_set = Some("rs".to_owned());
            c.auto_initiate = Some(format!("127.0.0.1:{}", c.port));
            c.storage.oplog_bytes_max = OPLOG_BYTES;
            c.oplog_min_retention = retention;
        })
        .await
}

fn entries(filter: Document) -> Document {
    doc! { "find": "oplog.rs", "filter": filter, "projection": { "ts": 1, "o._id": 1, "ns": 1 }, "$db": "local" }
}

/// Writes several times the oplog's size; returns how many documents that were.
async fn fill(c: &mut Client) -> i32 {
    let pad = Bson::Binary(Binary { subtype: 0, bytes: vec![5; 64 << 10] });
    let n = (OPLOG_BYTES * 8 / (64 << 10)) as i32;
    for i in 0..n {
        c.ok(doc! { "insert": "c", "documents": [{ "_id": i, "pad": pad.clone() }] }).await;
        if i % 100 == 99 {
            c.admin(doc! { "fsync": 1 }).await;
        }
    }
    c.admin(doc! { "fsync": 1 }).await;
    n
}

#[test]
fn a_full_oplog_loses_its_oldest_entries_only() {
    run(async {
        let world = World::new();
        let server = small_oplog(&world, Duration::ZERO).await;
        let mut c = server.connect().await;
        let n = fill(&mut c).await;
        let left = c.all(entries(doc! { "ns": "test.c", "op": "i" })).await;
        let ids: Vec<i64> = left.iter().filter_map(|e| e.get("o")?.as_doc()?.get("_id")?.as_i64()).collect();
        assert!(ids.len() < n as usize / 2, "{} of {n} entries are still there", ids.len());
        // The newest, without a gap.
        let first = i64::from(n) - ids.len() as i64;
        assert!(ids.iter().copied().eq(first..i64::from(n)), "{ids:?}");
        assert!(left.iter().all(|e| !e.contains("_id")));
        assert_eq!(c.ok(doc! { "count": "c" }).await.get("n"), Some(&Bson::Int32(n)));
        server.shut_down().await;
    });
}

#[test]
fn young_entries_stay_whatever_the_oplogs_size() {
    run(async {
        let world = World::new();
        let server = small_oplog(&world, Duration::from_secs(3600)).await;
        let mut c = server.connect().await;
        let n = fill(&mut c).await;
        assert_eq!(c.all(entries(doc! { "ns": "test.c", "op": "i" })).await.len(), n as usize);
        server.shut_down().await;
    });
}

#[test]
fn writes_to_local_are_nobody_elses_business() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "notes", "documents": [{ "_id": 1 }], "$db": "local" }).await;
        c.ok(doc! { "createIndexes": "notes", "indexes": [{ "key": { "a": 1 }, "name": "a" }], "$db": "local" })
            .await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        assert!(c.all(entries(doc! { "ns": { "$regex": "^local" } })).await.is_empty());
        assert_eq!(c.all(entries(doc! { "ns": "test.c" })).await.len(), 1);
        server.shut_down().await;
        let server = world.start_set().await;
        let mut c = server.connect().await;
        assert_eq!(c.all(doc! { "find": "notes", "$db": "local" }).await, [doc! { "_id": 1 }]);
        server.shut_down().await;
    });
}
