//! The oplog stays within its size, and whoever reads it too slowly is told.

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, World, run};

const OPLOG_BYTES: u64 = 2 << 20;

async fn next(c: &mut Client, id: i64, size: i32) -> Document {
    c.run(doc! { "getMore": id, "collection": "oplog.rs", "batchSize": size, "maxTimeMS": 1, "$db": "local" })
        .await
}

fn entries(reply: &Document) -> Vec<&Document> {
    let batch = reply.get("cursor").and_then(Bson::as_doc).and_then(|c| c.get("nextBatch"));
    match batch {
        Some(Bson::Array(docs)) => docs.iter().filter_map(Bson::as_doc).collect(),
        _ => panic!("no batch: {reply:?}"),
    }
}

/// A tailing cursor that has read five entries.
async fn tail(c: &mut Client) -> i64 {
    let find =
        doc! { "find": "oplog.rs", "tailable": true, "awaitData": true, "batchSize": 5, "$db": "local" };
    let reply = c.ok(find).await;
    reply.get("cursor").and_then(Bson::as_doc).and_then(|c| c.get("id")).and_then(Bson::as_i64).unwrap_or(0)
}

#[test]
fn the_oplog_is_bounded_and_a_reader_that_falls_off_gets_capped_position_lost() {
    run(async {
        let world = World::new();
        let server = world
            .start(|c| {
                c.repl_set = Some("rs".to_owned());
                c.auto_initiate = Some(format!("127.0.0.1:{}", c.port));
                c.storage.oplog_bytes_max = OPLOG_BYTES;
            })
            .await;
        let mut c = server.connect().await;
        let (keeps, stands) = (tail(&mut c).await, tail(&mut c).await);
        let pad = "x".repeat(1000);
        let mut seen = 0;
        for round in 0..120 {
            let docs: Vec<Bson> = (0..100)
                .map(|i| Bson::Document(doc! { "_id": round * 100 + i, "pad": pad.clone() }))
                .collect();
            c.ok(doc! { "insert": "c", "documents": Bson::Array(docs) }).await;
            loop {
                let reply = next(&mut c, keeps, 1000).await;
                let found = entries(&reply);
                if found.is_empty() {
                    break;
                }
                seen += found.iter().filter(|e| e.get("op").and_then(Bson::as_str) == Some("i")).count();
            }
            if round % 10 == 9 {
                // What a checkpoint every minute does in the course of things.
                c.admin(doc! { "fsync": 1 }).await;
                let bytes = server.server.storage.log().bytes();
                assert!(bytes < OPLOG_BYTES * 3 / 2, "{bytes} bytes of log in round {round}");
            }
        }
        assert!(seen >= 12_000, "a reader that keeps up sees every insert: {seen}");
        // What it had fetched already may still come, in order; then it is told, rather than shown a gap.
        let (mut expected, mut lost) = (0, Document::new());
        for _ in 0..200 {
            lost = next(&mut c, stands, 5).await;
            if lost.get("cursor").is_none() {
                break;
            }
            for e in entries(&lost).iter().filter(|e| e.get("op").and_then(Bson::as_str) == Some("i")) {
                let id = e.get("o").and_then(Bson::as_doc).and_then(|o| o.get("_id")).and_then(Bson::as_i64);
                assert_eq!(id, Some(expected), "a gap");
                expected += 1;
            }
        }
        let code = lost.get("code").and_then(Bson::as_i64);
        assert_eq!(code, Some(136), "{:?} after {expected}", lost.get("errmsg"));
        let first = c.ok(doc! { "find": "oplog.rs", "limit": 1, "$db": "local" }).await;
        assert!(!format!("{first:?}").contains("initiating set"), "the oldest entries are gone");
        server.shut_down().await;
    });
}
