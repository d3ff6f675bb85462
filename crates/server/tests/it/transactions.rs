//! Multi-document transactions on a set of one member: atomic, isolated, in the log as one entry, gone when aborted.

use pando_bson::{Binary, Bson, Document, doc};
use pando_testserver::{Client, World, pause, run, spawn};

fn session(n: u8) -> Bson {
    Bson::Document(doc! { "id": Bson::Binary(Binary { subtype: 4, bytes: vec![n; 16] }) })
}
/// A statement of a transaction; the first when `start`.
fn within(mut command: Document, session_no: u8, number: i64, start: bool) -> Document {
    command.push("lsid", session(session_no));
    command.push("txnNumber", number);
    command.push("autocommit", false);
    if start {
        command.push("startTransaction", true);
    }
    command
}
fn insert(id: i32) -> Document {
    doc! { "insert": "c", "documents": [{ "_id": id, "x": id }] }
}
fn set(id: i32, n: i32) -> Document {
    doc! { "update": "c", "updates": [{ "q": { "_id": id }, "u": { "$set": { "n": n } } }] }
}
fn end(command: &str, session_no: u8, number: i64) -> Document {
    let mut d = Document::new();
    d.push(command, 1);
    d.push("$db", "admin");
    within(d, session_no, number, false)
}
fn code(reply: &Document) -> i64 {
    reply.get("code").and_then(Bson::as_i64).unwrap_or(0)
}
fn labels(reply: &Document) -> Vec<&str> {
    reply
        .get("errorLabels")
        .and_then(Bson::as_array)
        .map_or(Vec::new(), |l| l.iter().filter_map(Bson::as_str).collect())
}
async fn ids(c: &mut Client) -> Vec<i64> {
    let all = c.all(doc! { "find": "c", "sort": { "_id": 1 } }).await;
    all.iter().filter_map(|d| d.get("_id").and_then(Bson::as_i64)).collect()
}
async fn log(c: &mut Client) -> Vec<Document> {
    c.all(
        doc! { "find": "oplog.rs", "filter": { "op": { "$ne": "n" } }, "$db": "local", "batchSize": 100_000 },
    )
    .await
}
/// Some documents, and two connections.
async fn world() -> (World, pando_testserver::Running, Client, Client) {
    let world = World::new();
    let server = world.start_set().await;
    let (mut a, b) = (server.connect().await, server.connect().await);
    a.ok(doc! { "create": "c" }).await;
    a.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "x": 1 }, "name": "x_1" }] }).await;
    a.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "x": 1 }, { "_id": 2, "x": 2 }, { "_id": 3, "x": 3 }] })
        .await;
    (world, server, a, b)
}

#[test]
fn own_writes_are_seen_inside_and_by_others_only_after_the_commit() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        a.ok(within(insert(4), 1, 1, true)).await;
        a.ok(within(set(1, 7), 1, 1, false)).await;
        a.ok(within(doc! { "delete": "c", "deletes": [{ "q": { "x": 2 }, "limit": 1 }] }, 1, 1, false)).await;
        // By a scan, by the index, by `_id`, through an aggregation.
        let all = a.ok(within(doc! { "find": "c", "sort": { "_id": 1 } }, 1, 1, false)).await;
        let shown = format!("{all:?}");
        assert!(shown.contains("\"_id\": Int32(4)") || shown.contains("4"), "{shown}");
        let by_index =
            a.ok(within(doc! { "find": "c", "filter": { "x": { "$gte": 2 } } }, 1, 1, false)).await;
        let batch = by_index.get("cursor").and_then(|c| c.as_doc()?.get("firstBatch")?.as_array()).unwrap();
        assert_eq!(batch.len(), 2, "3 and 4, not 2: {by_index:?}");
        let n = doc! { "aggregate": "c", "pipeline": [{ "$match": { "n": 7 } }], "cursor": {} };
        let n = a.ok(within(n, 1, 1, false)).await;
        assert!(format!("{n:?}").contains('7'), "{n:?}");
        let values = a.ok(within(doc! { "distinct": "c", "key": "x" }, 1, 1, false)).await;
        assert_eq!(values.get("values").and_then(Bson::as_array).map(|v| v.len()), Some(3));
        assert_eq!(ids(&mut b).await, [1, 2, 3]);
        a.ok(end("commitTransaction", 1, 1)).await;
        assert_eq!(ids(&mut b).await, [1, 3, 4]);
        server.shut_down().await;
    });
}

#[test]
fn a_transaction_reads_one_snapshot_from_its_first_statement() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        for (number, level) in [(1, "local"), (2, "majority"), (3, "snapshot")] {
            let mut first = doc! { "find": "c", "filter": { "_id": 1 } };
            first.push("readConcern", doc! { "level": level });
            a.ok(within(first, 1, number, true)).await;
            b.ok(set(1, number as i32 * 10)).await;
            b.ok(insert(100 + number as i32)).await;
            let later = a
                .ok(within(doc! { "find": "c", "filter": { "_id": { "$gte": 100 } } }, 1, number, false))
                .await;
            // The times beside it may have these digits, too.
            let shown = format!("{:?}", later.get("cursor"));
            assert!(!shown.contains(&format!("10{number}")), "{level}: {shown}");
            let again =
                a.ok(within(doc! { "find": "c", "filter": { "n": number * 10 } }, 1, number, false)).await;
            let batch = again.get("cursor").and_then(|c| c.as_doc()?.get("firstBatch")?.as_array()).unwrap();
            assert_eq!(batch.len(), 0, "{level}");
            a.ok(end("abortTransaction", 1, number)).await;
        }
        server.shut_down().await;
    });
}

#[test]
fn a_committed_transaction_is_one_entry_and_an_aborted_one_leaves_nothing() {
    run(async {
        let (_w, server, mut a, _b) = world().await;
        let before = log(&mut a).await.len();
        a.ok(within(insert(4), 1, 1, true)).await;
        a.ok(within(doc! { "insert": "new", "documents": [{ "_id": 1 }] }, 1, 1, false)).await;
        a.ok(end("abortTransaction", 1, 1)).await;
        assert_eq!(log(&mut a).await.len(), before);
        assert_eq!(ids(&mut a).await, [1, 2, 3]);

        a.ok(within(insert(4), 1, 2, true)).await;
        a.ok(within(set(1, 7), 1, 2, false)).await;
        a.ok(within(doc! { "insert": "new", "documents": [{ "_id": 1 }] }, 1, 2, false)).await;
        a.ok(end("commitTransaction", 1, 2)).await;
        let all = log(&mut a).await;
        assert_eq!(all.len(), before + 1);
        let entry = all.last().unwrap();
        let ops = entry.get("o").and_then(|o| o.as_doc()?.get("applyOps")?.as_array()).unwrap();
        let told: Vec<String> = ops
            .iter()
            .filter_map(|op| {
                let op = op.as_doc()?;
                assert!(op.get("rid").is_none(), "record ids are shown to nobody: {op:?}");
                Some(format!("{} {}", op.get("op")?.as_str()?, op.get("ns")?.as_str()?))
            })
            .collect();
        assert_eq!(told, ["i test.c", "u test.c", "c test.$cmd", "i test.new"]);
        let prev = entry.get("prevOpTime").and_then(|p| p.as_doc()?.get("t")?.as_i64());
        assert_eq!((prev, entry.get("txnNumber").and_then(Bson::as_i64)), (Some(-1), Some(2)));
        server.shut_down().await;
    });
}

#[test]
fn the_second_writer_of_a_document_conflicts_and_may_try_again() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        a.ok(within(set(1, 1), 1, 1, true)).await;
        let refused = b.run(within(set(1, 2), 2, 1, true)).await;
        assert_eq!((code(&refused), labels(&refused)), (112, vec!["TransientTransactionError"]));
        // Its transaction is over with it.
        let gone = b.run(end("commitTransaction", 2, 1)).await;
        assert_eq!((code(&gone), labels(&gone)), (251, vec!["TransientTransactionError"]));
        // A write outside waits for the transaction.
        let waiting = spawn(async move {
            b.ok(set(1, 3)).await;
            b
        });
        pause(100).await;
        assert!(!waiting.is_finished());
        a.ok(end("commitTransaction", 1, 1)).await;
        let mut b = waiting.await.unwrap();
        assert_eq!(b.all(doc! { "find": "c", "filter": { "n": 3 } }).await.len(), 1);
        // What changed after the snapshot conflicts too.
        a.ok(within(doc! { "find": "c" }, 1, 2, true)).await;
        b.ok(set(2, 5)).await;
        assert_eq!(code(&a.run(within(set(2, 6), 1, 2, false)).await), 112);
        server.shut_down().await;
    });
}

#[test]
fn a_higher_number_aborts_the_open_transaction_and_a_lower_one_is_too_old() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        a.ok(within(insert(10), 1, 5, true)).await;
        a.ok(within(insert(11), 1, 6, true)).await;
        assert_eq!(code(&a.run(end("commitTransaction", 1, 5)).await), 225);
        a.ok(end("commitTransaction", 1, 6)).await;
        assert_eq!(ids(&mut b).await, [1, 2, 3, 11]);
        // A retryable write is a higher number as well.
        a.ok(within(insert(12), 1, 7, true)).await;
        let mut write = insert(13);
        write.push("lsid", session(1));
        write.push("txnNumber", 8i64);
        a.ok(write).await;
        assert_eq!(ids(&mut b).await, [1, 2, 3, 11, 13]);
        assert_eq!(code(&a.run(within(insert(14), 1, 7, true)).await), 225);
        server.shut_down().await;
    });
}

#[test]
fn operations_of_one_session_take_turns_and_those_of_others_do_not() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        let mut c = server.connect().await;
        a.ok(within(insert(4), 1, 1, true)).await;
        // A statement that waits inside the server holds its session.
        a.admin(doc! { "configureFailPoint": "failCommand", "mode": "off" }).await;
        a.admin(doc! { "fsync": 1, "lock": true }).await;
        let writing = spawn(async move {
            a.ok(within(insert(5), 1, 1, false)).await;
            a
        });
        pause(200).await;
        let waiting = spawn(async move {
            b.ok(within(doc! { "find": "c" }, 1, 1, false)).await;
        });
        // Another session reads meanwhile.
        c.ok(within(doc! { "find": "c" }, 2, 1, true)).await;
        pause(100).await;
        assert!(!writing.is_finished() && !waiting.is_finished());
        c.admin(doc! { "fsyncUnlock": 1 }).await;
        let mut a = writing.await.unwrap();
        waiting.await.unwrap();
        a.ok(end("commitTransaction", 1, 1)).await;
        assert_eq!(ids(&mut a).await, [1, 2, 3, 4, 5]);
        server.shut_down().await;
    });
}

#[test]
fn commits_and_aborts_can_be_told_again() {
    run(async {
        let (_w, server, mut a, _b) = world().await;
        a.ok(within(insert(4), 1, 1, true)).await;
        a.ok(end("commitTransaction", 1, 1)).await;
        let entries = log(&mut a).await.len();
        a.ok(end("commitTransaction", 1, 1)).await;
        assert_eq!(log(&mut a).await.len(), entries);
        assert_eq!(code(&a.run(end("abortTransaction", 1, 1)).await), 256);
        assert_eq!(code(&a.run(within(insert(5), 1, 1, false)).await), 256);
        a.ok(within(insert(5), 1, 2, true)).await;
        a.ok(end("abortTransaction", 1, 2)).await;
        let again = a.run(end("abortTransaction", 1, 2)).await;
        assert_eq!((code(&again), labels(&again)), (251, vec!["TransientTransactionError"]));
        server.shut_down().await;
    });
}

async fn committed_before_a_restart(cleanly: bool) {
    let (world, server, mut a, _b) = world().await;
    a.ok(within(insert(4), 1, 1, true)).await;
    let made = doc! { "createIndexes": "made", "indexes": [{ "key": { "l": 1 }, "name": "l_1" }] };
    a.ok(within(made, 1, 1, false)).await;
    let one = doc! { "insert": "made", "documents": [{ "_id": 1, "l": [1, 2] }, { "_id": 2, "l": 3 }] };
    a.ok(within(one, 1, 1, false)).await;
    let two = doc! { "update": "made", "updates": [{ "q": { "_id": 1 }, "u": { "$push": { "l": 4 } } }] };
    a.ok(within(two, 1, 1, false)).await;
    a.ok(within(doc! { "delete": "made", "deletes": [{ "q": { "_id": 2 }, "limit": 1 }] }, 1, 1, false))
        .await;
    let mut commit = end("commitTransaction", 1, 1);
    commit.push("writeConcern", doc! { "w": "majority", "j": true });
    a.ok(commit).await;
    // Open when the process ends.
    a.ok(within(insert(5), 2, 1, true)).await;
    if cleanly {
        server.shut_down().await
    } else {
        server.abandon()
    }
    let server = world.start_set().await;
    let mut a = server.connect().await;
    assert_eq!(ids(&mut a).await, [1, 2, 3, 4]);
    let rows = a.all(doc! { "find": "made", "filter": { "l": 4 }, "hint": "l_1" }).await;
    assert_eq!(rows, [doc! { "_id": 1, "l": [1, 2, 4] }]);
    let checked = a.ok(doc! { "validate": "made", "full": true, "enforceFastCount": true }).await;
    assert_eq!(checked.get("valid"), Some(&Bson::Boolean(true)), "{checked:?}");
    assert_eq!(a.ok(doc! { "count": "made" }).await.get("n").and_then(Bson::as_i64), Some(1));
    // The new process knows the commit, and nothing of the other one.
    a.ok(end("commitTransaction", 1, 1)).await;
    assert_eq!(code(&a.run(end("commitTransaction", 2, 1)).await), 251);
    server.shut_down().await;
}

#[test]
fn a_committed_transaction_survives_a_clean_restart_whole_and_an_open_one_does_not() {
    run(committed_before_a_restart(true));
}

#[test]
fn a_committed_transaction_survives_a_crash_whole_and_an_open_one_does_not() {
    run(committed_before_a_restart(false));
}

#[test]
fn a_large_transaction_is_a_chain_of_entries_and_survives_a_crash() {
    run(async {
        let (world, server, mut a, mut b) = world().await;
        let pad = "x".repeat(6 << 20);
        for id in 0..7 {
            let insert = doc! { "insert": "big", "documents": [{ "_id": id, "pad": pad.clone() }] };
            a.ok(within(insert, 1, 1, id == 0)).await;
        }
        assert_eq!(b.all(doc! { "find": "big" }).await.len(), 0);
        let mut commit = end("commitTransaction", 1, 1);
        commit.push("writeConcern", doc! { "w": "majority", "j": true });
        a.ok(commit).await;
        let filter = doc! { "o.applyOps": { "$exists": true } };
        let project =
            doc! { "partial": "$o.partialTxn", "count": "$o.count", "prev": "$prevOpTime.ts", "ts": 1 };
        let chain = doc! { "aggregate": "oplog.rs", "$db": "local", "cursor": {},
        "pipeline": [{ "$match": filter }, { "$project": project }] };
        let chain = a.all(chain).await;
        assert_eq!(chain.len(), 4, "create and two, two, two, one: {chain:?}");
        for (i, part) in chain.iter().enumerate() {
            let last = i + 1 == chain.len();
            assert_eq!(part.get("partial").is_some(), !last);
            assert_eq!(part.get("count").and_then(Bson::as_i64), last.then_some(8));
            if i > 0 {
                assert_eq!(part.get("prev"), chain[i - 1].get("ts"));
            }
        }
        server.abandon();
        let server = world.start_set().await;
        let mut a = server.connect().await;
        assert_eq!(a.ok(doc! { "count": "big" }).await.get("n").and_then(Bson::as_i64), Some(7));
        a.ok(end("commitTransaction", 1, 1)).await;
        server.shut_down().await;
    });
}

#[test]
fn a_definition_change_waits_for_transactions_that_use_the_collection() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        a.ok(within(doc! { "find": "c" }, 1, 1, true)).await;
        let dropping = spawn(async move {
            b.ok(doc! { "drop": "c" }).await;
            b
        });
        pause(100).await;
        assert!(!dropping.is_finished());
        // Others do not wait behind it in a transaction.
        let mut c = server.connect().await;
        let late = c.run(within(doc! { "find": "c" }, 2, 1, true)).await;
        assert_eq!((code(&late), labels(&late)), (24, vec!["TransientTransactionError"]), "{late:?}");
        a.ok(within(insert(4), 1, 1, false)).await;
        a.ok(end("commitTransaction", 1, 1)).await;
        let mut b = dropping.await.unwrap();
        assert_eq!(ids(&mut b).await, Vec::<i64>::new());
        server.shut_down().await;
    });
}

#[test]
fn a_transaction_that_is_open_too_long_ends() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        a.admin(doc! { "setParameter": 1, "transactionLifetimeLimitSeconds": 1 }).await;
        a.ok(within(set(1, 9), 1, 1, true)).await;
        // The other writer gets the document when the limit is over, long before its own.
        let mut waits = set(1, 8);
        waits.push("maxTimeMS", 60_000);
        b.ok(waits).await;
        let gone = a.run(end("commitTransaction", 1, 1)).await;
        assert_eq!((code(&gone), labels(&gone)), (251, vec!["TransientTransactionError"]));
        assert_eq!(b.all(doc! { "find": "c", "filter": { "n": 8 } }).await.len(), 1);
        server.shut_down().await;
    });
}

#[test]
fn open_transactions_hold_a_part_of_the_cache_at_most() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        let bytes = async |c: &mut Client| {
            let status = c.admin(doc! { "serverStatus": 1 }).await;
            let of = |section: &str| status.get(section).and_then(Bson::as_doc).unwrap().clone();
            let operation = of("metrics").get("operation").and_then(Bson::as_doc).unwrap().clone();
            let too_large =
                operation.get("transactionTooLargeForCacheErrors").and_then(Bson::as_i64).unwrap();
            (of("transactions").get("currentOpenBytes").and_then(Bson::as_i64).unwrap(), too_large)
        };
        let cache = server.server.storage.memory_limit() as f64;
        let part = f64::from(5 << 20) / cache;
        a.admin(doc! { "setParameter": 1, "transactionTooLargeForCacheThreshold": part }).await;
        // Each document is held twice: as a row and as the log will tell it.
        let megabyte =
            |id: i32| doc! { "insert": "c", "documents": [{ "_id": id, "s": "x".repeat(1 << 20) }] };
        a.ok(within(megabyte(100), 1, 1, true)).await;
        assert!(bytes(&mut a).await.0 > 2 << 20);
        b.ok(within(set(1, 9), 2, 1, true)).await;
        b.ok(within(megabyte(200), 2, 1, false)).await;
        let full = b.run(within(megabyte(201), 2, 1, false)).await;
        assert_eq!((code(&full), labels(&full)), (112, vec!["TransientTransactionError"]), "{full:?}");
        // Tried again when there is room, it turns out to be too large for itself.
        b.ok(within(megabyte(200), 2, 2, true)).await;
        a.ok(end("commitTransaction", 1, 1)).await;
        b.ok(within(megabyte(201), 2, 2, false)).await;
        let large = b.run(within(megabyte(202), 2, 2, false)).await;
        let errors = large.get("writeErrors").and_then(Bson::as_array).expect("it is this write's error");
        assert_eq!(errors[0].as_doc().map(code), Some(388), "{large:?}");
        assert!(labels(&large).is_empty(), "it is no use to try again");
        assert_eq!(bytes(&mut a).await, (0, 1));
        assert_eq!(code(&b.run(end("commitTransaction", 2, 2)).await), 251);
        // Reading needs nothing, whatever others hold.
        a.ok(within(megabyte(300), 1, 2, true)).await;
        b.ok(within(doc! { "find": "c", "filter": { "_id": 1 } }, 2, 3, true)).await;
        b.ok(end("commitTransaction", 2, 3)).await;
        server.shut_down().await;
    });
}

#[test]
fn transactions_of_one_set_work_without_majority_reads() {
    run(async {
        let world = World::new();
        let start = |port: Option<u16>| {
            let world = &world;
            async move {
                let change = |c: &mut pando_server::Config| {
                    c.repl_set = Some("rs".to_owned());
                    c.auto_initiate = Some(format!("127.0.0.1:{}", c.port));
                    c.majority_reads = false;
                };
                match port {
                    Some(port) => world.start_at(port, change).await,
                    None => world.start(change).await,
                }
            }
        };
        let server = start(None).await;
        let (mut a, mut b) = (server.connect().await, server.connect().await);
        a.ok(insert(1)).await;
        let mut first = within(doc! { "find": "c" }, 1, 1, true);
        first.push("readConcern", doc! { "level": "snapshot" });
        assert_eq!(a.all(first).await.len(), 1);
        b.ok(insert(2)).await;
        assert_eq!(a.all(within(doc! { "find": "c" }, 1, 1, false)).await.len(), 1, "one snapshot");
        a.ok(within(insert(3), 1, 1, false)).await;
        assert_eq!(ids(&mut b).await, [1, 2], "seen inside only");
        let mut commit = end("commitTransaction", 1, 1);
        commit.push("writeConcern", doc! { "w": "majority", "j": true });
        a.ok(commit).await;
        assert_eq!(ids(&mut b).await, [1, 2, 3]);
        a.ok(within(insert(4), 1, 2, true)).await;
        assert_eq!(code(&a.run(end("prepareTransaction", 1, 2)).await), 148);
        server.abandon();
        let server = start(None).await;
        assert_eq!(ids(&mut server.connect().await).await, [1, 2, 3]);
        server.shut_down().await;
    });
}

#[test]
fn the_status_tells_how_often_locks_were_taken_and_who_waits() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        let figure = async |c: &mut Client, path: &[&str]| {
            let mut at = Bson::Document(c.admin(doc! { "serverStatus": 1 }).await);
            for name in path {
                at = at.as_doc().and_then(|d| d.get(name)).cloned().unwrap_or(Bson::Int32(0));
            }
            at.as_i64().unwrap()
        };
        let writers = ["locks", "Collection", "acquireCount", "w"];
        let before = figure(&mut b, &writers).await;
        for n in 0..10 {
            a.ok(set(1, n)).await;
        }
        let taken = figure(&mut b, &writers).await - before;
        assert!((10..20).contains(&taken), "{taken}");
        a.ok(within(set(1, 9), 1, 1, true)).await;
        let mut c = server.connect().await;
        let waiting = spawn(async move { c.ok(doc! { "drop": "c" }).await });
        while figure(&mut b, &["globalLock", "currentQueue", "writers"]).await == 0 {
            pause(5).await;
        }
        a.ok(end("abortTransaction", 1, 1)).await;
        waiting.await.unwrap();
        assert!(figure(&mut b, &["locks", "Collection", "acquireWaitCount", "W"]).await >= 1);
        assert!(figure(&mut b, &["locks", "Database", "acquireCount", "W"]).await >= 1);
        assert!(figure(&mut b, &writers).await >= before + 10, "kept when the collection is gone");
        assert_eq!(figure(&mut b, &["globalLock", "currentQueue", "writers"]).await, 0);
        server.shut_down().await;
    });
}

#[test]
fn killed_sessions_lose_their_transaction_and_the_figures_tell() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        let figures = async |c: &mut Client| {
            let status = c.admin(doc! { "serverStatus": 1 }).await;
            let t = status.get("transactions").and_then(Bson::as_doc).unwrap().clone();
            ["currentOpen", "totalStarted", "totalAborted", "totalCommitted"]
                .map(|n| t.get(n).and_then(Bson::as_i64).unwrap())
        };
        a.ok(within(set(1, 9), 1, 1, true)).await;
        assert_eq!(figures(&mut b).await, [1, 1, 0, 0]);
        let shown = doc! { "aggregate": 1, "$db": "admin", "cursor": {},
        "pipeline": [{ "$currentOp": {} }, { "$match": { "transaction.parameters.txnNumber": 1 } }] };
        let shown = b.all(shown).await;
        assert_eq!(shown.len(), 1);
        assert_eq!(shown[0].get("desc").and_then(Bson::as_str), Some("inactive transaction"));
        b.ok(doc! { "killSessions": [session(1)] }).await;
        assert_eq!(code(&a.run(within(set(1, 9), 1, 1, false)).await), 251);
        assert_eq!(figures(&mut b).await, [0, 1, 1, 0]);
        b.ok(set(1, 1)).await;
        a.ok(within(set(2, 9), 1, 2, true)).await;
        a.ok(end("commitTransaction", 1, 2)).await;
        assert_eq!(figures(&mut b).await, [0, 2, 1, 1]);
        server.shut_down().await;
    });
}

#[test]
fn statements_that_lack_a_part_are_refused() {
    run(async {
        let (_w, server, mut a, _b) = world().await;
        let cases = [
            (doc! { "find": "c", "txnNumber": 1i64 }, 72),
            (doc! { "find": "c", "lsid": session(1), "txnNumber": 1i64 }, 50768),
            (doc! { "find": "c", "lsid": session(1), "autocommit": false }, 72),
            (doc! { "find": "c", "lsid": session(1), "txnNumber": 1i64, "startTransaction": true }, 72),
            (within(doc! { "find": "c" }, 1, 1, false), 251),
            (within(doc! { "count": "c" }, 1, 1, true), 263),
            (within(doc! { "find": "c", "$db": "local" }, 1, 1, true), 263),
            (within(doc! { "insert": "c", "documents": [{}], "writeConcern": { "w": 1 } }, 1, 1, true), 72),
            (within(doc! { "find": "c", "readConcern": { "level": "linearizable" } }, 1, 1, true), 72),
        ];
        for (command, expected) in cases {
            let shown = format!("{command:?}");
            assert_eq!(code(&a.run(command).await), expected, "{shown}");
        }
        a.ok(within(doc! { "find": "c" }, 1, 1, true)).await;
        let later = within(doc! { "find": "c", "readConcern": { "level": "local" } }, 1, 1, false);
        assert_eq!(code(&a.run(later).await), 72);
        a.ok(within(doc! { "find": "c" }, 1, 1, false)).await;
        server.shut_down().await;
        let world = World::new();
        let alone = world.start_standalone().await;
        let mut c = alone.connect().await;
        assert_eq!(code(&c.run(within(doc! { "find": "c" }, 1, 1, true)).await), 20);
        alone.shut_down().await;
    });
}

#[test]
fn what_a_transaction_cannot_do_is_refused_and_leaves_nothing() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        let of = |pipeline: Vec<Bson>| {
            let mut c = doc! { "aggregate": "c", "cursor": {} };
            c.push("pipeline", pipeline);
            c
        };
        let union = || -> Bson { doc! { "$unionWith": "d" }.into() };
        let within_stages = [
            union(),
            doc! { "$facet": { "r": [{ "$unionWith": "d" }] } }.into(),
            doc! { "$lookup": { "from": "d", "pipeline": [{ "$unionWith": "c" }], "as": "r" } }.into(),
        ];
        let explained = doc! { "aggregate": "c", "pipeline": [], "explain": true };
        let series = doc! { "create": "s", "timeseries": { "timeField": "t" } };
        let commands = within_stages.into_iter().map(|stage| of(vec![stage])).chain([explained, series]);
        for (number, command) in (1..).zip(commands) {
            let shown = format!("{command:?}");
            assert_eq!(code(&a.run(within(command, 1, number, true)).await), 263, "{shown}");
        }
        assert_eq!(b.all(doc! { "listCollections": 1, "filter": { "name": "s" } }).await.len(), 0);
        b.ok(of(vec![union()])).await;
        server.shut_down().await;
    });
}

#[test]
fn definitions_may_be_made_in_a_transaction_and_conflict_with_others_of_their_name() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        a.ok(within(doc! { "create": "made" }, 1, 1, true)).await;
        let index = doc! { "createIndexes": "made", "indexes": [{ "key": { "u": 1 }, "name": "u_1", "unique": true }] };
        a.ok(within(index, 1, 1, false)).await;
        let twice = doc! { "insert": "made", "documents": [{ "_id": 1, "u": 1 }] };
        a.ok(within(twice, 1, 1, false)).await;
        let listed = b.all(doc! { "listCollections": 1, "filter": { "name": "made" } }).await;
        assert_eq!(listed.len(), 0);
        a.ok(end("commitTransaction", 1, 1)).await;
        let dup = b.run(doc! { "insert": "made", "documents": [{ "_id": 2, "u": 1 }] }).await;
        assert!(format!("{dup:?}").contains("E11000"), "{dup:?}");
        // Both make the same name: the second commit conflicts.
        a.ok(within(doc! { "create": "again" }, 1, 2, true)).await;
        b.ok(doc! { "create": "again" }).await;
        let refused = a.run(end("commitTransaction", 1, 2)).await;
        assert_eq!((code(&refused), labels(&refused)), (112, vec!["TransientTransactionError"]));
        let more = doc! { "createIndexes": "c", "indexes": [{ "key": { "y": 1 }, "name": "y_1" }] };
        assert_eq!(code(&a.run(within(more, 1, 3, true)).await), 263);
        server.shut_down().await;
    });
}

#[test]
fn the_table_of_transactions_matches_the_last_entry_of_each_session() {
    run(async {
        let (world, server, mut a, _b) = world().await;
        a.ok(within(insert(4), 1, 3, true)).await;
        a.ok(end("commitTransaction", 1, 3)).await;
        let mut write = insert(5);
        write.push("lsid", session(2));
        write.push("txnNumber", 8i64);
        a.ok(write).await;
        a.ok(within(insert(6), 3, 1, true)).await;
        a.ok(end("abortTransaction", 3, 1)).await;
        a.ok(within(doc! { "find": "c" }, 4, 1, true)).await;
        a.ok(end("commitTransaction", 4, 1)).await;
        let expected = async |a: &mut Client| {
            let records = doc! { "find": "transactions", "sort": { "txnNum": 1 }, "$db": "config" };
            let records = a.all(records).await;
            let entries = log(a).await;
            assert_eq!(records.len(), 2, "aborted and read-only ones leave none: {records:?}");
            for (record, (number, state)) in records.iter().zip([(3, Some("committed")), (8, None)]) {
                assert_eq!(record.get("txnNum").and_then(Bson::as_i64), Some(number));
                assert_eq!(record.get("state").and_then(Bson::as_str), state);
                let of = |e: &&Document| e.get("txnNumber").and_then(Bson::as_i64) == Some(number);
                let entry = entries.iter().rev().find(of).unwrap();
                let at = record.get("lastWriteOpTime").and_then(Bson::as_doc).unwrap();
                assert_eq!((at.get("ts"), at.get("t")), (entry.get("ts"), entry.get("t")));
                assert_eq!(record.get("lastWriteDate"), entry.get("wall"));
                assert_eq!(record.get("_id"), entry.get("lsid"));
            }
        };
        expected(&mut a).await;
        let only = doc! { "aggregate": "transactions", "$db": "config", "cursor": {},
        "pipeline": [{ "$match": { "state": "committed" } }, { "$count": "n" }] };
        assert_eq!(a.all(only).await, [doc! { "n": 1 }]);
        server.shut_down().await;
        let server = world.start_set().await;
        expected(&mut server.connect().await).await;
        server.shut_down().await;
    });
}

#[test]
fn a_transaction_may_read_at_a_time_that_is_over() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        let written = b.ok(set(1, 1)).await;
        let at = written.get("operationTime").cloned().unwrap();
        b.ok(set(1, 2)).await;
        b.ok(insert(4)).await;
        let mut first = doc! { "find": "c", "sort": { "_id": 1 } };
        first.push("readConcern", doc! { "level": "snapshot", "atClusterTime": at.clone() });
        let seen = a.ok(within(first, 1, 1, true)).await;
        let batch = seen.get("cursor").and_then(|c| c.as_doc()?.get("firstBatch")?.as_array()).unwrap();
        assert_eq!((batch.len(), batch[0].clone()), (3, Bson::Document(doc! { "_id": 1, "x": 1, "n": 1 })));
        // What has changed since cannot be written.
        assert_eq!(code(&a.run(within(set(1, 3), 1, 1, false)).await), 112);
        let future = doc! { "level": "snapshot", "atClusterTime": Bson::Timestamp(pando_base::Timestamp::new(u32::MAX - 1, 1)) };
        let mut first = doc! { "find": "c" };
        first.push("readConcern", future);
        assert_eq!(code(&a.run(within(first, 1, 2, true)).await), 72);
        let mut first = doc! { "find": "c" };
        first.push(
            "readConcern",
            doc! { "level": "snapshot", "atClusterTime": Bson::Timestamp(pando_base::Timestamp::new(1, 1)) },
        );
        let old = a.run(within(first, 1, 3, true)).await;
        // The collection is younger.
        assert_eq!((code(&old), labels(&old)), (246, vec!["TransientTransactionError"]));
        server.shut_down().await;
    });
}

#[test]
fn stages_that_read_other_collections_read_the_transactions_own_writes() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        b.ok(doc! { "insert": "d", "documents": [{ "_id": 1, "y": 1 }] }).await;
        a.ok(within(doc! { "find": "c" }, 1, 1, true)).await;
        b.ok(doc! { "insert": "d", "documents": [{ "_id": 2, "y": 1 }] }).await;
        a.ok(within(doc! { "insert": "d", "documents": [{ "_id": 3, "y": 1 }] }, 1, 1, false)).await;
        let lookup = doc! { "from": "d", "localField": "x", "foreignField": "y", "as": "found" };
        let joined = doc! { "aggregate": "c", "cursor": {},
        "pipeline": [{ "$match": { "_id": 1 } }, { "$lookup": lookup }] };
        let joined = a.ok(within(joined, 1, 1, false)).await;
        let rows = joined.get("cursor").and_then(|c| c.as_doc()?.get("firstBatch")?.as_array()).unwrap();
        let found = rows[0].as_doc().and_then(|d| d.get("found")?.as_array()).unwrap();
        let ids: Vec<_> = found.iter().filter_map(|d| d.as_doc()?.get("_id")?.as_i64()).collect();
        assert_eq!(ids, [1, 3]);
        server.shut_down().await;
    });
}

#[test]
fn a_commit_waits_as_long_as_writes_are_locked_out() {
    run(async {
        let (_w, server, mut a, mut b) = world().await;
        a.ok(within(insert(4), 1, 1, true)).await;
        b.admin(doc! { "fsync": 1, "lock": true }).await;
        let committing = spawn(async move {
            a.ok(end("commitTransaction", 1, 1)).await;
        });
        pause(150).await;
        assert!(!committing.is_finished());
        assert_eq!(ids(&mut b).await, [1, 2, 3]);
        b.admin(doc! { "fsyncUnlock": 1 }).await;
        committing.await.unwrap();
        assert_eq!(ids(&mut b).await, [1, 2, 3, 4]);
        server.shut_down().await;
    });
}
