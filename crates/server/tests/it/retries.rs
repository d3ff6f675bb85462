//! Retryable writes: a statement that was carried out is answered, not run again, also by the next process.

use pando_bson::{Binary, Bson, Document, doc};
use pando_testserver::{Client, Running, World, pause, run, spawn};

fn retryable(mut command: Document, session: u8, number: i64) -> Document {
    let id = Bson::Binary(Binary { subtype: 4, bytes: vec![session; 16] });
    command.push("lsid", doc! { "id": id });
    command.push("txnNumber", number);
    command.push("writeConcern", doc! { "w": "majority", "j": true });
    command
}

async fn restarted(world: &World, server: Running, cleanly: bool) -> (Running, Client) {
    if cleanly {
        server.shut_down().await;
    } else {
        server.abandon();
    }
    let server = world.start_set().await;
    let c = server.connect().await;
    (server, c)
}

/// A reply without what differs from one time to the next.
fn essence(mut reply: Document) -> Document {
    for name in ["opTime", "electionId", "$clusterTime", "operationTime", "retriedStmtIds", "retriedStmtId"] {
        reply.remove(name);
    }
    reply
}

fn commands() -> Vec<Document> {
    vec![
        doc! { "insert": "c", "documents": [{ "_id": "new" }, { "_id": "newer" }] },
        doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } }] },
        doc! { "update": "c", "updates": [{ "q": { "_id": "up" }, "u": { "$inc": { "n": 1 } }, "upsert": true }] },
        doc! { "delete": "c", "deletes": [{ "q": { "_id": 2 }, "limit": 1 }] },
        doc! { "findAndModify": "c", "query": { "_id": 3 }, "update": { "$inc": { "n": 1 } } },
        doc! { "findAndModify": "c", "query": { "_id": 3 }, "update": { "$inc": { "n": 1 } }, "new": true,
        "fields": { "_id": 0, "n": 1 } },
        doc! { "findAndModify": "c", "query": { "_id": 4 }, "remove": true },
        doc! { "findAndModify": "c", "query": { "_id": "fam" }, "update": { "$set": { "n": 7 } }, "upsert": true },
        doc! { "findAndModify": "c", "query": { "_id": "fam2" }, "update": { "$set": { "n": 7 } }, "upsert": true,
        "new": true },
    ]
}

async fn retried_after_a_restart(cleanly: bool) {
    let world = World::new();
    let server = world.start_set().await;
    let mut c = server.connect().await;
    let first: Vec<_> = (1..6).map(|i| Bson::Document(doc! { "_id": i, "n": 10 })).collect();
    c.ok(doc! { "insert": "c", "documents": Bson::Array(first) }).await;
    let mut replies = Vec::new();
    for (i, command) in commands().into_iter().enumerate() {
        replies.push(essence(c.ok(retryable(command, i as u8 + 1, 1)).await));
    }
    // Nothing of it has to be replayed, and old versions of documents may go.
    c.admin(doc! { "fsync": 1 }).await;
    c.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": 5 }, "limit": 1 }] }).await;
    c.admin(doc! { "fsync": 1 }).await;
    let before = c.all(doc! { "find": "c", "sort": { "_id": 1 } }).await;

    let (server, mut c) = restarted(&world, server, cleanly).await;
    for (i, command) in commands().into_iter().enumerate() {
        let shown = format!("{command:?}");
        let again = essence(c.ok(retryable(command, i as u8 + 1, 1)).await);
        assert_eq!(again, replies[i], "{shown}");
    }
    assert_eq!(c.all(doc! { "find": "c", "sort": { "_id": 1 } }).await, before);
    // A new number is a new write.
    c.ok(retryable(commands().remove(1), 2, 2)).await;
    assert_ne!(c.all(doc! { "find": "c", "sort": { "_id": 1 } }).await, before);
    let old = retryable(commands().remove(1), 2, 1);
    assert_eq!(c.err(old).await.0, 225);
    server.shut_down().await;
}

#[test]
fn a_retried_statement_runs_once_across_a_clean_restart() {
    run(retried_after_a_restart(true));
}

#[test]
fn a_retried_statement_runs_once_across_a_crash() {
    run(retried_after_a_restart(false));
}

#[test]
fn a_retried_statement_says_so_and_runs_once() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "n": 0 }] }).await;
        let update = || {
            retryable(
                doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } }] },
                1,
                1,
            )
        };
        assert!(!c.ok(update()).await.contains("retriedStmtIds"));
        assert!(c.ok(update()).await.contains("retriedStmtIds"));
        assert_eq!(c.all(doc! { "find": "c" }).await, [doc! { "_id": 1, "n": 1 }]);
        server.shut_down().await;
    });
}

#[test]
fn the_entry_of_a_find_and_modify_names_its_image_and_the_image_collection_shows_it() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "n": 0 }, { "_id": 2 }] }).await;
        let inc = doc! { "findAndModify": "c", "query": { "_id": 1 }, "update": { "$inc": { "n": 1 } } };
        let mut post = inc.clone();
        post.push("new", true);
        let replace = doc! { "findAndModify": "c", "query": { "_id": 1 }, "update": { "r": 1 }, "new": true };
        let remove = doc! { "findAndModify": "c", "query": { "_id": 2 }, "remove": true };
        let up = doc! { "findAndModify": "c", "query": { "_id": 9 }, "update": { "n": 1 }, "upsert": true };
        let plain = doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "r": 2 } }] };
        for (i, command) in [inc.clone(), post, replace, remove.clone(), up, plain].into_iter().enumerate() {
            c.ok(retryable(command, i as u8 + 1, 7)).await;
        }
        let log = doc! { "find": "oplog.rs", "filter": { "txnNumber": 7 }, "$db": "local" };
        let entries = c.all(log).await;
        let kinds: Vec<_> = entries.iter().map(|e| e.get("needsRetryImage").and_then(Bson::as_str)).collect();
        let (pre, post) = (Some("preImage"), Some("postImage"));
        assert_eq!(kinds, [pre, post, post, pre, None, None]);
        assert!(entries.iter().all(|e| !e.contains("image") && !e.contains("pre")));

        let images = doc! { "find": "image_collection", "sort": { "ts": 1 }, "$db": "config" };
        let images = c.all(images).await;
        let shown: Vec<_> = images.iter().map(|i| i.get("image").cloned().unwrap()).collect();
        let one = |n: i32| Bson::Document(doc! { "_id": 1, "n": n });
        let wanted = [one(0), one(2), doc! { "_id": 1, "r": 1 }.into(), doc! { "_id": 2 }.into()];
        assert_eq!(shown, wanted);
        let names: Vec<_> = images[0].iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["_id", "txnNum", "ts", "imageKind", "image", "invalidated"]);
        assert_eq!(images[0].get("ts"), entries[0].get("ts"));

        // Another statement under the same number is no retry.
        let other = |command: &Document, session: u8| retryable(command.clone(), session, 7);
        c.ok(other(&remove, 1)).await;
        for (command, session, code) in [(&inc, 4, 40_606), (&inc, 5, 40_608), (&inc, 6, 40_612)] {
            let (found, text) = c.err(other(command, session)).await;
            assert_eq!(found, code, "{text}");
        }
        server.shut_down().await;
    });
}

#[test]
fn a_retried_insert_into_a_time_series_is_stored_once() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "create": "ts", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        let at = |i: i64| Bson::DateTime(1_700_000_000_000 + i * 1000);
        let docs = |n: i64| -> Vec<Bson> {
            (0..n).map(|i| doc! { "_id": i, "t": at(i), "m": i % 2 }.into()).collect()
        };
        let insert = |n: i64, number: i64| {
            let mut command = doc! { "insert": "ts" };
            command.push("documents", docs(n));
            retryable(command, 1, number)
        };
        // Two new buckets, then the same ones grow.
        let first = essence(c.ok(insert(6, 1)).await);
        let again = c.ok(insert(6, 1)).await;
        assert_eq!(again.get("retriedStmtIds").and_then(|v| v.as_array().map(|a| a.len())), Some(6));
        assert_eq!(essence(again), first);
        c.ok(insert(4, 2)).await;
        let (server, mut c) = restarted(&world, server, false).await;
        assert_eq!(c.ok(insert(4, 2)).await.get("n"), Some(&Bson::Int32(4)));
        assert_eq!(c.all(doc! { "find": "ts" }).await.len(), 10);
        server.shut_down().await;
    });
}

async fn fill_the_log(c: &mut Client, rounds: usize) {
    let pad = "x".repeat(1000);
    for _ in 0..rounds {
        let docs: Vec<Bson> = (0..100).map(|_| Bson::Document(doc! { "pad": pad.clone() })).collect();
        c.ok(doc! { "insert": "other", "documents": Bson::Array(docs) }).await;
    }
}

/// More entries than the log holds, and checkpoints, so that its front goes, and with it the statement's entry.
async fn roll_the_log(c: &mut Client) {
    for _ in 0..4 {
        fill_the_log(c, 10).await;
        c.admin(doc! { "fsync": 1 }).await;
    }
    let entry =
        doc! { "find": "oplog.rs", "filter": { "op": "u", "o2._id": 1, "txnNumber": 1 }, "$db": "local" };
    assert!(c.all(entry).await.is_empty(), "the log tells it no more");
}

async fn start_with_a_short_log(world: &World) -> Running {
    world
        .start(|c| {
            c.repl_set = Some("rs".to_owned());
            c.auto_initiate = Some(format!("127.0.0.1:{}", c.port));
            c.storage.oplog_bytes_max = 1 << 20;
        })
        .await
}

fn inc(session: u8) -> Document {
    let update = doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } }] };
    retryable(update, session, 1)
}

/// The statement itself is no longer in the log: only what checkpoints keep tells of it.
#[test]
fn a_statement_is_known_after_a_crash_however_many_others_there_are() {
    run(async {
        let world = World::new();
        let server = start_with_a_short_log(&world).await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "n": 0 }] }).await;
        c.ok(inc(1)).await;
        // An upsert's statement remembers the `_id`: 15 MB of them.
        for session in 10..25u8 {
            let upserts: Vec<Bson> = (0..50)
                .map(|n| {
                    let id = format!("{session}-{n}-{}", "x".repeat(20_000));
                    Bson::Document(doc! { "q": { "_id": id }, "u": { "$set": { "n": 1 } }, "upsert": true })
                })
                .collect();
            c.ok(retryable(doc! { "update": "large", "updates": Bson::Array(upserts) }, session, 1)).await;
        }
        roll_the_log(&mut c).await;
        let (server, mut c) = {
            server.abandon();
            let server = start_with_a_short_log(&world).await;
            let c = server.connect().await;
            (server, c)
        };
        assert!(c.ok(inc(1)).await.contains("retriedStmtIds"));
        assert_eq!(c.all(doc! { "find": "c" }).await, [doc! { "_id": 1, "n": 1 }]);
        server.shut_down().await;
    });
}

/// Checkpoints wait for no session, and what a session in use did before is kept like the others'.
#[test]
fn a_statement_is_known_after_a_crash_while_another_session_was_busy() {
    run(async {
        let world = World::new();
        let server = start_with_a_short_log(&world).await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "n": 0 }] }).await;
        c.ok(inc(1)).await;
        fill_the_log(&mut c, 3).await;
        pando_testserver::pause(1200).await;
        // It waits for a transaction, and uses its session meanwhile.
        c.ok(doc! { "insert": "busy", "documents": [{ "_id": 1 }] }).await;
        let change =
            || doc! { "update": "busy", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } }] };
        let mut open = change();
        open.push("lsid", doc! { "id": Bson::Binary(Binary { subtype: 4, bytes: vec![8; 16] }) });
        open.push("txnNumber", 1i64);
        open.push("startTransaction", true);
        open.push("autocommit", false);
        server.connect().await.ok(open).await;
        let mut busy = server.connect().await;
        let waits = retryable(change(), 9, 1);
        pando_testserver::spawn(async move { busy.run(waits).await });
        pando_testserver::pause(300).await;
        roll_the_log(&mut c).await;
        server.abandon();
        let server = start_with_a_short_log(&world).await;
        let mut c = server.connect().await;
        assert!(c.ok(inc(1)).await.contains("retriedStmtIds"));
        assert_eq!(c.all(doc! { "find": "c" }).await, [doc! { "_id": 1, "n": 1 }]);
        server.shut_down().await;
    });
}

/// The same 16 bytes, of another user: another session.
fn of_user(mut command: Document, user: Option<u8>) -> Document {
    let bytes = |subtype, byte, n| Bson::Binary(Binary { subtype, bytes: vec![byte; n] });
    let mut lsid = doc! { "id": bytes(4, 77, 16) };
    if let Some(user) = user {
        lsid.push("uid", bytes(0, user, 32));
    }
    command.push("lsid", lsid);
    command
}

#[test]
fn a_session_is_its_whole_id() {
    run(async {
        let world = World::new();
        let mut server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "n": 0 }] }).await;
        let users = [None, Some(1), Some(2)];
        let inc = |user| {
            let command = doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } }],
            "txnNumber": 1i64, "writeConcern": { "w": "majority", "j": true } };
            of_user(command, user)
        };
        for user in users {
            c.ok(inc(user)).await;
        }
        // In the table, from the log, and from what a checkpoint kept.
        for cleanly in [None, Some(false), Some(true)] {
            if let Some(cleanly) = cleanly {
                (server, c) = restarted(&world, server, cleanly).await;
            }
            for user in users {
                let again = c.ok(inc(user)).await;
                assert!(again.contains("retriedStmtIds"), "{user:?}: {again:?}");
            }
            assert_eq!(c.all(doc! { "find": "c" }).await, [doc! { "_id": 1, "n": 3 }]);
        }
        let shown = c.all(doc! { "find": "transactions", "$db": "config" }).await;
        assert_eq!(shown.len(), 3, "{shown:?}");
        // A cursor of one is not the other's, and ends with its own session only.
        let sessions = |user| {
            let d = of_user(Document::new(), user);
            d.get("lsid").cloned().unwrap()
        };
        let open = c.ok(of_user(doc! { "find": "c", "batchSize": 0 }, Some(1))).await;
        let id = open.get("cursor").and_then(Bson::as_doc).and_then(|d| d.get("id")).and_then(Bson::as_i64);
        let more = doc! { "getMore": id.unwrap(), "collection": "c", "batchSize": 0 };
        assert_eq!(c.err(of_user(more.clone(), Some(2))).await.0, 50738);
        c.admin(doc! { "killSessions": Bson::Array(vec![sessions(Some(2)), sessions(None)]) }).await;
        c.admin(doc! { "endSessions": Bson::Array(vec![sessions(Some(2))]) }).await;
        // Transactions of one number.
        for user in users {
            let command = doc! { "insert": "c", "documents": [{ "n": 9 }], "txnNumber": 5i64, "autocommit": false,
            "startTransaction": true };
            c.ok(of_user(command, user)).await;
        }
        let commit = doc! { "commitTransaction": 1, "txnNumber": 5i64, "autocommit": false };
        let abort = doc! { "abortTransaction": 1, "txnNumber": 5i64, "autocommit": false };
        c.admin(of_user(commit.clone(), None)).await;
        c.admin(of_user(abort, Some(1))).await;
        c.admin(of_user(commit, Some(2))).await;
        assert_eq!(c.all(doc! { "find": "c", "filter": { "n": 9 } }).await.len(), 2);
        assert_eq!(c.all(of_user(more, Some(1))).await.len(), 3);
        server.shut_down().await;
    });
}

/// The entry that tells what to return lies behind one that is still being written: the retry waits for it.
#[test]
fn a_retry_waits_for_units_that_began_before_its_first_try() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "n": 5 }] }).await;
        let hole = server.server.storage.log().reserve(1);
        let mut command = retryable(
            doc! { "findAndModify": "c", "query": { "_id": 1 }, "update": { "$inc": { "n": 1 } } },
            3,
            1,
        );
        command.set("writeConcern", doc! { "w": 1 });
        let first = c.ok(command.clone()).await;
        let again = spawn(async move { c.ok(command).await });
        pause(100).await;
        drop(hole);
        assert_eq!(essence(again.await.expect("an answer")), essence(first));
        server.shut_down().await;
    });
}

/// A delete was carried out under the number of the statement: an update that says it is its retry is another one.
#[test]
fn an_update_is_no_retry_of_a_delete() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }] }).await;
        let delete = doc! { "q": { "_id": 1 }, "limit": 1 };
        c.ok(retryable(doc! { "delete": "c", "deletes": [delete] }, 1, 1)).await;
        let update = doc! { "q": { "_id": 2 }, "u": { "$set": { "n": 1 } } };
        let (code, text) = c.err(retryable(doc! { "update": "c", "updates": [update.clone()] }, 1, 1)).await;
        assert_eq!(code, 40638);
        let begins = "update retry request is not compatible with previous write in the transaction of type: d, oplogTs: ";
        assert!(text.starts_with(begins), "{text}");
        // The other way round it is taken for the retry, as by MongoDB.
        c.ok(retryable(doc! { "update": "c", "updates": [update] }, 1, 2)).await;
        let delete = doc! { "q": { "_id": 2 }, "limit": 1 };
        let again = c.ok(retryable(doc! { "delete": "c", "deletes": [delete] }, 1, 2)).await;
        assert!(again.contains("retriedStmtIds"));
        assert_eq!(c.all(doc! { "find": "c" }).await.len(), 1);
        server.shut_down().await;
    });
}
