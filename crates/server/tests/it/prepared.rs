//! Prepared transactions on a set of one member: who waits for them, how they are decided, what a restart leaves of them.

use pando_base::Timestamp;
use pando_bson::{Binary, Bson, Document, doc};
use pando_testserver::{Client, Running, World, pause, run, spawn};
use std::time::Duration;

fn session(n: u8) -> Bson {
    Bson::Document(doc! { "id": Bson::Binary(Binary { subtype: 4, bytes: vec![n; 16] }) })
}
fn within(mut command: Document, session_no: u8, number: i64, start: bool) -> Document {
    command.push("lsid", session(session_no));
    command.push("txnNumber", number);
    command.push("autocommit", false);
    if start {
        command.push("startTransaction", true);
    }
    command
}
fn set(id: i32, n: i32) -> Document {
    doc! { "update": "c", "updates": [{ "q": { "_id": id }, "u": { "$set": { "n": n } } }] }
}
fn prepare(session: u8) -> Document {
    within(doc! { "prepareTransaction": 1, "$db": "admin" }, session, 1, false)
}
fn commit(session: u8, at: Timestamp) -> Document {
    within(doc! { "commitTransaction": 1, "commitTimestamp": at, "$db": "admin" }, session, 1, false)
}
fn abort(session: u8) -> Document {
    within(doc! { "abortTransaction": 1, "$db": "admin" }, session, 1, false)
}
fn limited(mut command: Document) -> Document {
    command.push("maxTimeMS", 150);
    command
}
fn code(reply: &Document) -> i64 {
    reply.get("code").and_then(Bson::as_i64).unwrap_or(0)
}
fn text(reply: &Document) -> &str {
    reply.get("errmsg").and_then(Bson::as_str).unwrap_or_default()
}
fn prepared_at(reply: &Document) -> Timestamp {
    match reply.get("prepareTimestamp") {
        Some(Bson::Timestamp(at)) => *at,
        _ => panic!("not prepared: {reply:?}"),
    }
}
fn first(reply: &Document) -> Option<i64> {
    let batch = reply.get("cursor")?.as_doc()?.get("firstBatch")?.as_array()?;
    batch.first()?.as_doc()?.get("n")?.as_i64()
}
fn find(id: i32, concern: Document) -> Document {
    doc! { "find": "c", "filter": { "_id": id }, "readConcern": concern }
}
async fn log(c: &mut Client) -> Vec<Document> {
    let mut of_sessions = doc! { "find": "oplog.rs", "$db": "local", "batchSize": 100_000 };
    of_sessions.push("filter", doc! { "op": "c", "lsid": { "$exists": true } });
    c.all(of_sessions).await
}
async fn fill(c: &mut Client) {
    c.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "n": 1 }, { "_id": 2, "n": 2 }] }).await;
}
async fn world() -> (World, Running, Client, Client) {
    let world = World::new();
    let server = world.start_set().await;
    let (mut a, b) = (server.connect().await, server.connect().await);
    fill(&mut a).await;
    (world, server, a, b)
}

#[test]
fn a_prepared_transaction_is_committed_by_an_entry_of_its_own_at_its_commit_timestamp() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        a.ok(within(set(1, 10), 1, 1, true)).await;
        a.ok(within(doc! { "insert": "c", "documents": [{ "_id": 3, "n": 3 }] }, 1, 1, false)).await;
        let at = prepared_at(&a.ok(prepare(1)).await);
        assert_eq!(prepared_at(&a.ok(prepare(1)).await), at, "told again");
        b.ok(doc! { "insert": "other", "documents": [{ "_id": 1 }] }).await;
        assert_eq!(first(&b.run(find(1, doc! {})).await), Some(1));
        a.ok(commit(1, at)).await;
        a.ok(commit(1, at)).await;
        assert_eq!(first(&b.run(find(1, doc! {})).await), Some(10));
        let at_prepare = doc! { "level": "snapshot", "atClusterTime": at };
        assert_eq!(
            first(&b.run(find(1, at_prepare)).await),
            Some(10),
            "effects from the commit timestamp on"
        );
        let just_before = doc! { "level": "snapshot", "atClusterTime": Timestamp(at.0 - 1) };
        assert_eq!(first(&b.run(find(1, just_before)).await), Some(1));
        let log = log(&mut a).await;
        let [prepared, committed] = &log[..] else { panic!("{log:?}") };
        let o = |e: &Document| e.get("o").and_then(Bson::as_doc).cloned().unwrap();
        assert_eq!(o(prepared).get("prepare"), Some(&Bson::Boolean(true)));
        assert_eq!(o(prepared).get("applyOps").and_then(Bson::as_array).map(|ops| ops.len()), Some(2));
        assert_eq!(o(committed), doc! { "commitTransaction": 1, "commitTimestamp": at });
        let previous = committed.get("prevOpTime").and_then(|p| p.as_doc()?.get("ts").cloned());
        assert_eq!(previous, prepared.get("ts").cloned());
        server.shut_down().await;
    });
}

#[test]
fn some_readers_see_what_was_before_and_others_wait_for_the_decision() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        a.ok(within(set(1, 10), 1, 1, true)).await;
        let at = prepared_at(&a.ok(prepare(1)).await);
        for level in ["local", "majority", "available"] {
            assert_eq!(first(&b.ok(find(1, doc! { "level": level })).await), Some(1), "{level}");
        }
        let waiting = [
            doc! { "level": "snapshot" },
            doc! { "level": "snapshot", "atClusterTime": at },
            doc! { "level": "linearizable" },
            doc! { "level": "local", "afterClusterTime": at },
            doc! { "level": "majority", "afterClusterTime": at },
        ];
        for concern in &waiting {
            assert_eq!(code(&b.run(limited(find(1, concern.clone()))).await), 50, "{concern:?}");
            assert_eq!(first(&b.ok(limited(find(2, concern.clone()))).await), Some(2), "another document");
        }
        let scan = doc! { "find": "c", "readConcern": { "level": "snapshot" } };
        assert_eq!(code(&b.run(limited(scan)).await), 50);
        let before = doc! { "level": "snapshot", "atClusterTime": Timestamp(at.0 - 1) };
        assert_eq!(first(&b.ok(find(1, before)).await), Some(1));
        // Writers wait, within transactions and outside of them; so do readers within one, whatever their level.
        assert_eq!(code(&b.run(limited(set(1, 5))).await), 50);
        assert_eq!(code(&b.run(limited(within(set(1, 5), 2, 1, true))).await), 50);
        let read = |n| limited(within(doc! { "find": "c", "filter": { "_id": 1 } }, 3, n, true));
        assert_eq!(code(&b.run(read(1)).await), 50);
        let mut waiters = Vec::new();
        for concern in waiting {
            let mut c = server.connect().await;
            waiters.push(spawn(async move { first(&c.ok(find(1, concern)).await) }));
        }
        let mut c = server.connect().await;
        let in_txn = spawn(async move {
            first(&c.ok(within(doc! { "find": "c", "filter": { "_id": 1 } }, 4, 1, true)).await)
        });
        let mut c = server.connect().await;
        let writer = spawn(async move { c.ok(set(1, 11)).await });
        pause(100).await;
        a.ok(commit(1, at)).await;
        for waiter in waiters {
            assert!(matches!(waiter.await.unwrap(), Some(10 | 11)));
        }
        assert_eq!(in_txn.await.unwrap(), Some(10));
        writer.await.unwrap();
        assert_eq!(first(&b.ok(find(1, doc! {})).await), Some(11));
        server.shut_down().await;
    });
}

#[test]
fn writes_wait_at_everything_undecided_that_they_look_at_and_at_nothing_else() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        // A scan looks at the first key behind its bounds, too: 9.
        let more: Vec<Bson> = [5, 6, 9].iter().map(|n| doc! { "_id": *n, "n": *n }.into()).collect();
        let mut insert = doc! { "insert": "c" };
        insert.push("documents", more);
        b.ok(insert).await;
        b.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "n": 1 }, "name": "n_1" }] }).await;
        a.ok(within(set(1, 10), 1, 1, true)).await;
        a.ok(within(doc! { "insert": "c", "documents": [{ "_id": 3, "n": 3 }] }, 1, 1, false)).await;
        a.ok(within(doc! { "delete": "c", "deletes": [{ "q": { "_id": 2 }, "limit": 1 }] }, 1, 1, false))
            .await;
        let at = prepared_at(&a.ok(prepare(1)).await);
        let update = |q: Document, multi: bool| doc! { "update": "c", "updates": [{ "q": q, "u": { "$inc": { "u": 1 } }, "multi": multi }] };
        let delete =
            |q: Document, limit: i32| doc! { "delete": "c", "deletes": [{ "q": q, "limit": limit }] };
        let waiting = [
            update(doc! { "_id": 3 }, false),
            update(doc! { "n": 1 }, false),
            update(doc! { "n": 3 }, false),
            update(doc! { "u": 7 }, false),
            update(doc! { "_id": 3 }, true),
            update(doc! { "u": 7 }, true),
            delete(doc! { "_id": 3 }, 1),
            delete(doc! { "u": 7 }, 0),
            doc! { "findAndModify": "c", "query": { "n": { "$lt": 5 } }, "remove": true },
            // The key may be free in a moment.
            doc! { "insert": "c", "documents": [{ "_id": 2, "n": 7 }] },
            doc! { "dbHash": 1 },
        ];
        for command in &waiting {
            let reply = b.run(limited(command.clone())).await;
            assert_eq!(code(&reply), 50, "{command:?}: {reply:?}");
        }
        for command in [update(doc! { "_id": 5 }, false), update(doc! { "n": { "$gte": 5, "$lt": 9 } }, true)]
        {
            b.ok(limited(command)).await;
        }
        let mut late = Vec::new();
        for command in [update(doc! { "_id": 3 }, false), update(doc! { "u": { "$exists": false } }, true)] {
            let mut c = server.connect().await;
            late.push(spawn(async move { c.ok(command).await.get("n").and_then(Bson::as_i64) }));
        }
        pause(100).await;
        a.ok(commit(1, at)).await;
        let mut n = Vec::new();
        for waiter in late {
            n.push(waiter.await.unwrap());
        }
        assert_eq!(n[0], Some(1), "the document came with the commit");
        // 1 and 9, and 3 unless it has its `u` already.
        assert!(matches!(n[1], Some(2 | 3)), "{n:?}");
        b.ok(doc! { "insert": "c", "documents": [{ "_id": 2, "n": 7 }] }).await;
        let u = doc! { "count": "c", "query": { "u": { "$exists": true } } };
        assert_eq!(b.ok(u).await.get("n").and_then(Bson::as_i64), Some(5));
        server.shut_down().await;
    });
}

#[test]
fn definition_changes_behind_one_end_when_their_time_is_up_or_they_are_killed() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        b.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "n": 1 }, "name": "n_1" }] }).await;
        a.ok(within(set(1, 10), 1, 1, true)).await;
        let at = prepared_at(&a.ok(prepare(1)).await);
        let changes = [
            doc! { "drop": "c" },
            doc! { "dropDatabase": 1 },
            doc! { "collMod": "c", "index": { "name": "n_1", "hidden": true } },
            doc! { "dropIndexes": "c", "index": "n_1" },
            doc! { "createIndexes": "c", "indexes": [{ "key": { "m": 1 }, "name": "m_1" }] },
            doc! { "convertToCapped": "c", "size": 100_000 },
            doc! { "renameCollection": "test.c", "to": "test.d", "$db": "admin" },
        ];
        for change in changes {
            let reply = b.run(limited(change.clone())).await;
            assert_eq!(code(&reply), 50, "{change:?}: {reply:?}");
        }
        let mut c = server.connect().await;
        let dropping = spawn(async move { c.run(doc! { "drop": "c" }).await });
        let mut c = server.connect().await;
        pause(100).await;
        // Behind the drop, which has the database's lock.
        let writing = spawn(async move { c.run(limited(set(2, 5))).await });
        assert_eq!(code(&writing.await.unwrap()), 50);
        let ops = b.admin(doc! { "currentOp": 1, "command.drop": "c" }).await;
        let op = ops.get("inprog").and_then(|v| v.as_array()?.first()?.as_doc()?.get("opid").cloned());
        b.admin(doc! { "killOp": 1, "op": op.expect("the drop is shown") }).await;
        assert_eq!(code(&dropping.await.unwrap()), 11601);
        a.ok(commit(1, at)).await;
        assert_eq!(first(&b.ok(find(1, doc! {})).await), Some(10));
        b.ok(doc! { "drop": "c" }).await;
        server.shut_down().await;
    });
}

#[test]
fn a_start_without_majority_reads_refuses_what_is_prepared() {
    run(async {
        let (world, server, mut a, _) = world().await;
        a.ok(within(set(1, 10), 1, 1, true)).await;
        let at = prepared_at(&a.ok(prepare(1)).await);
        server.abandon();
        let refused = world
            .try_start_at(0, |c| {
                c.repl_set = Some("rs".to_owned());
                c.majority_reads = false;
            })
            .await;
        let error = refused.err().expect("nobody could decide it");
        assert_eq!(error.code.0, 51_146, "{error}");
        // Nothing is lost by the attempt.
        let server = world.start_set().await;
        let mut a = server.connect().await;
        a.ok(commit(1, at)).await;
        assert_eq!(first(&a.ok(find(1, doc! {})).await), Some(10));
        server.shut_down().await;
    });
}

#[test]
fn an_aborted_one_leaves_an_entry_and_nothing_else() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        a.ok(within(set(1, 10), 1, 1, true)).await;
        a.ok(prepare(1)).await;
        a.ok(abort(1)).await;
        assert_eq!(code(&a.run(abort(1)).await), 251);
        assert_eq!(first(&b.ok(find(1, doc! { "level": "snapshot" })).await), Some(1));
        b.ok(set(1, 5)).await;
        let log = log(&mut a).await;
        let last = log.last().and_then(|e| e.get("o")?.as_doc().cloned());
        assert_eq!(last, Some(doc! { "abortTransaction": 1 }));
        server.shut_down().await;
    });
}

#[test]
fn what_does_not_fit_a_prepared_transaction_is_refused_in_mongodbs_words() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        a.ok(within(set(1, 10), 1, 1, true)).await;
        let at = prepared_at(&a.ok(prepare(1)).await);
        let other = a.run(within(set(2, 1), 1, 1, false)).await;
        let only = "Cannot call any operation other than abort, prepare or commit on a prepared transaction";
        assert_eq!((code(&other), text(&other)), (267, only));
        assert!(format!("{other:?}").contains("TransientTransactionError"));
        let bare = a.run(within(doc! { "commitTransaction": 1, "$db": "admin" }, 1, 1, false)).await;
        let no_time = "commitTransaction must provide commitTimestamp to prepared transaction.";
        assert_eq!((code(&bare), text(&bare)), (72, no_time));
        let early = a.run(commit(1, Timestamp(at.0 - 1))).await;
        let too_early = "'commitTimestamp' must be greater than or equal to 'prepareTimestamp'";
        assert_eq!((code(&early), text(&early)), (72, too_early));
        assert_eq!(text(&a.run(commit(1, Timestamp(0))).await), "'commitTimestamp' cannot be null");
        // A newer number waits.
        assert_eq!(code(&b.run(limited(within(doc! { "find": "c" }, 1, 2, true))).await), 50);
        let mut retryable = limited(set(2, 1));
        retryable.push("lsid", session(1));
        retryable.push("txnNumber", 2i64);
        assert_eq!(code(&b.run(retryable).await), 50);
        a.ok(commit(1, at)).await;
        assert_eq!(code(&a.run(abort(1)).await), 256);
        assert_eq!(code(&a.run(prepare(1)).await), 256);
        a.ok(within(set(1, 10), 2, 1, true)).await;
        let unprepared = a.run(commit(2, at)).await;
        let not_prepared = "commitTransaction cannot provide commitTimestamp to unprepared transaction.";
        assert_eq!((code(&unprepared), text(&unprepared)), (72, not_prepared));
        let made = doc! { "insert": "new", "documents": [{ "_id": 1 }] };
        a.ok(within(made, 3, 1, true)).await;
        let created = a.run(prepare(3)).await;
        let no_new = "Cannot create new collections inside distributed transactions";
        assert_eq!((code(&created), text(&created)), (263, no_new));
        assert_eq!(code(&a.run(abort(3)).await), 251, "it ended with that");
        assert_eq!(code(&a.run(prepare(9)).await), 251);
        server.shut_down().await;
    });
}

#[test]
fn nothing_but_its_decision_ends_one() {
    run(async {
        let world = World::new();
        let server = world
            .start(|c| {
                c.repl_set = Some("rs".to_owned());
                c.auto_initiate = Some(format!("127.0.0.1:{}", c.port));
                c.params.set_at_startup("transactionLifetimeLimitSeconds", "1").unwrap();
            })
            .await;
        let mut a = server.connect().await;
        fill(&mut a).await;
        a.ok(within(set(1, 10), 1, 1, true)).await;
        let at = prepared_at(&a.ok(prepare(1)).await);
        let shown = |d: &Document, name: &str| {
            d.get("transactions").and_then(|t| t.as_doc()?.get(name)?.as_i64()).unwrap_or(-1)
        };
        let status = a.admin(doc! { "serverStatus": 1 }).await;
        assert_eq!((shown(&status, "currentPrepared"), shown(&status, "totalPrepared")), (1, 1));
        assert_eq!((shown(&status, "currentOpen"), shown(&status, "currentInactive")), (1, 1));
        let ops = a.admin(doc! { "currentOp": 1, "transaction": { "$exists": true } }).await;
        assert!(format!("{ops:?}").contains("inactive transaction"), "{ops:?}");
        a.ok(doc! { "killSessions": [session(1)], "$db": "admin" }).await;
        a.ok(doc! { "killAllSessions": [], "$db": "admin" }).await;
        tokio_sleep(Duration::from_millis(2_500)).await;
        server.server.sessions.retryable.reap(Duration::from_secs(1 << 30), Duration::ZERO);
        let mut c = server.connect().await;
        c.ok(commit(1, at)).await;
        assert_eq!(first(&c.ok(find(1, doc! {})).await), Some(10));
        let status = a.admin(doc! { "serverStatus": 1 }).await;
        assert_eq!((shown(&status, "currentPrepared"), shown(&status, "totalPreparedThenCommitted")), (0, 1));
        server.shut_down().await;
    });
}
async fn tokio_sleep(d: Duration) {
    pause(d.as_millis() as u64).await;
}

#[test]
fn a_restart_finds_it_prepared_and_it_is_decided_afterwards() {
    run(async {
        for clean in [false, true] {
            let (world, server, mut a, _) = world().await;
            a.ok(within(set(1, 10), 1, 1, true)).await;
            a.ok(within(doc! { "insert": "c", "documents": [{ "_id": 3, "n": 3 }] }, 1, 1, false)).await;
            let at = prepared_at(&a.ok(prepare(1)).await);
            // One that is decided before the crash, and one that is aborted.
            a.ok(within(set(2, 20), 2, 1, true)).await;
            let decided = prepared_at(&a.ok(prepare(2)).await);
            a.ok(commit(2, decided)).await;
            a.ok(within(doc! { "insert": "c", "documents": [{ "_id": 4 }] }, 3, 1, true)).await;
            a.ok(prepare(3)).await;
            a.ok(abort(3)).await;
            a.ok(doc! { "insert": "last", "documents": [{ "_id": 1 }], "writeConcern": { "j": true } }).await;
            match clean {
                true => server.shut_down().await,
                false => server.abandon(),
            }
            let server = world.start_set().await;
            let mut a = server.connect().await;
            assert_eq!(first(&a.ok(find(1, doc! {})).await), Some(1));
            assert_eq!(first(&a.ok(find(2, doc! {})).await), Some(20));
            assert_eq!(code(&a.run(limited(find(1, doc! { "level": "snapshot" }))).await), 50);
            assert_eq!(code(&a.run(limited(set(1, 5))).await), 50);
            assert_eq!(code(&a.run(within(set(2, 1), 1, 1, false)).await), 267);
            let mut c = server.connect().await;
            let index = doc! { "createIndexes": "c", "indexes": [{ "key": { "n": 1 }, "name": "n_1" }] };
            let definition = spawn(async move { c.ok(index).await });
            pause(100).await;
            assert!(!definition.is_finished(), "definitions stand still");
            assert_eq!(prepared_at(&a.ok(prepare(1)).await), at);
            a.ok(commit(1, at)).await;
            definition.await.unwrap();
            assert_eq!(first(&a.ok(find(1, doc! {})).await), Some(10));
            let n = a.ok(doc! { "count": "c" }).await;
            assert_eq!(n.get("n").and_then(Bson::as_i64), Some(3));
            let valid = a.ok(doc! { "validate": "c" }).await;
            assert_eq!(valid.get("valid"), Some(&Bson::Boolean(true)), "{valid:?}");
            server.shut_down().await;
        }
    });
}

#[test]
fn a_large_one_is_a_chain_that_ends_with_its_prepare_entry_and_survives_a_restart() {
    run(async {
        let (world, server, mut a, _) = world().await;
        let pad = "x".repeat(6 << 20);
        for id in 10..16 {
            let big = doc! { "insert": "c", "documents": [{ "_id": id, "pad": pad.clone() }] };
            a.ok(within(big, 1, 1, id == 10)).await;
        }
        let at = prepared_at(&a.ok(prepare(1)).await);
        let shape = |e: &Document| {
            let o = e.get("o").and_then(Bson::as_doc).unwrap();
            (o.get("partialTxn").is_some(), o.get("prepare").is_some(), o.get("count").and_then(Bson::as_i64))
        };
        let entries: Vec<_> = log(&mut a).await.iter().map(shape).collect();
        let part = (true, false, None);
        assert_eq!(entries, [part, part, (false, true, Some(6))]);
        let table = doc! { "find": "transactions", "$db": "config" };
        let table = a.all(table).await;
        let start = table[0].get("startOpTime").and_then(|t| t.as_doc()?.get("ts").cloned());
        assert!(matches!(start, Some(Bson::Timestamp(ts)) if ts < at), "{table:?}");
        server.abandon();
        let server = world.start_set().await;
        let mut a = server.connect().await;
        a.ok(commit(1, at)).await;
        let n = a.ok(doc! { "count": "c" }).await;
        assert_eq!(n.get("n").and_then(Bson::as_i64), Some(8));
        server.shut_down().await;
    });
}

#[test]
fn a_stream_shows_its_events_where_it_is_committed() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        let watch = doc! { "aggregate": "c", "pipeline": [{ "$changeStream": {} }], "cursor": {} };
        let opened = b.ok(watch).await;
        let id = opened.get("cursor").and_then(|c| c.as_doc()?.get("id")?.as_i64()).unwrap();
        a.ok(within(set(1, 10), 1, 1, true)).await;
        let at = prepared_at(&a.ok(prepare(1)).await);
        a.ok(set(2, 21)).await;
        a.ok(commit(1, at)).await;
        let mut seen = Vec::new();
        for _ in 0..50 {
            let more = doc! { "getMore": id, "collection": "c", "maxTimeMS": 100 };
            let more = b.ok(more).await;
            let batch = more
                .get("cursor")
                .and_then(|c| c.as_doc()?.get("nextBatch")?.as_array().map(<[Bson]>::to_vec));
            for event in batch.unwrap_or_default() {
                let key = event.as_doc().and_then(|e| e.get("documentKey")?.as_doc()?.get("_id")?.as_i64());
                seen.extend(key);
            }
            if seen.len() == 2 {
                break;
            }
        }
        assert_eq!(seen, [2, 1]);
        server.shut_down().await;
    });
}
