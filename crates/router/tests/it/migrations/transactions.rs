//! Transactions that write into a range while it moves: each of them is there behind it as a whole, once, or not at all (SYS-221).

use super::histories::lsid;
use super::*;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

fn within(mut command: Document, session: u8, number: i64) -> Document {
    command.push("lsid", lsid(session));
    command.push("txnNumber", number);
    command.push("autocommit", false);
    command
}
fn is_ok(reply: &Document) -> bool {
    reply.get("ok").and_then(Bson::as_f64) == Some(1.0) && reply.get("writeErrors").is_none()
}
fn has_label(reply: &Document, label: &str) -> bool {
    let labels = reply.get("errorLabels").and_then(Bson::as_array);
    labels.is_some_and(|all| all.iter().any(|l| l.as_str() == Some(label)))
}
/// An increment, an insert and a delete of what the one before has inserted; whether it is committed.
async fn transaction(c: &mut Client, session: u8, number: i64, k: i64, committed: i64) -> bool {
    let id = |n: i64| i64::from(session) * 100_000 + n;
    let mut increment = doc! { "update": "c", "startTransaction": true };
    increment.push(
        "updates",
        vec![Bson::from(doc! { "q": doc! { "k": k }, "u": doc! { "$inc": doc! { "n": 1 } } })],
    );
    let mut insert = doc! { "insert": "c" };
    insert.push("documents", vec![Bson::from(doc! { "_id": id(committed + 1), "k": k })]);
    let mut delete = doc! { "delete": "c" };
    delete.push("deletes", vec![Bson::from(doc! { "q": doc! { "k": k, "_id": id(committed) }, "limit": 1 })]);
    for statement in [increment, insert, delete] {
        let reply = c.run(within(statement, session, number)).await;
        if !is_ok(&reply) {
            assert!(has_label(&reply, "TransientTransactionError"), "{reply:?}");
            let _ = c.run(within(doc! { "abortTransaction": 1, "$db": "admin" }, session, number)).await;
            return false;
        }
    }
    loop {
        let commit =
            doc! { "commitTransaction": 1, "$db": "admin", "writeConcern": doc! { "w": "majority" } };
        let reply = c.run(within(commit, session, number)).await;
        if is_ok(&reply) || has_label(&reply, "TransientTransactionError") {
            return is_ok(&reply);
        }
        assert!(has_label(&reply, "UnknownTransactionCommitResult"), "{reply:?}");
    }
}

#[test]
fn transactions_that_write_into_a_range_that_moves_are_there_behind_it_once() {
    run(async {
        let (cluster, mut c) = cluster("c", 100).await;
        let mut writers = Vec::new();
        let moved = Arc::new(AtomicUsize::new(0));
        for session in 1..=3_u8 {
            let (mut own, moved) = (cluster.router(0).await, Arc::clone(&moved));
            writers.push(spawn(async move {
                // All of a session write beside one document, in a range that moves.
                let (k, mut committed, mut number) = (20 + i64::from(session), 0, 0);
                while committed < 20 || moved.load(Relaxed) < 2 {
                    number += 1;
                    assert!(number < 2000, "only {committed} are committed of {number} transactions");
                    committed += i64::from(transaction(&mut own, session, number, k, committed).await);
                    pause(2).await;
                }
                (k, committed)
            }));
        }
        while writers.iter().any(|w| !w.is_finished()) {
            let (from, to) = if moved.load(Relaxed).is_multiple_of(2) { (0, "s1") } else { (1, "s0") };
            cluster.shard(from).await.ok(move_range("c", to, 10, 90)).await;
            moved.fetch_add(1, Relaxed);
            // A transaction that began before a range moved cannot go on behind it: some have to fit in between.
            pause(100).await;
        }
        for writer in writers {
            let (k, committed) = writer.await.unwrap();
            let all = c.all(doc! { "find": "c", "filter": { "k": k } }).await;
            let sum: i64 = all.iter().filter_map(|d| d.get("n").and_then(Bson::as_i64)).sum();
            // The document itself, and what the last one has inserted.
            assert_eq!((sum, all.len()), (committed, 2), "{all:?}");
        }
        assert_eq!(keys(&mut c, "c").await.len(), 103);
        cluster.shut_down().await;
    });
}
