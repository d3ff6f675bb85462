//! Sessions and transactions of clients of a router.

#![allow(clippy::unwrap_used)]

use pando_bson::{Binary, Bson, Document, doc};
use pando_testserver::{Client, Cluster, pause, run, spawn};

fn lsid(n: u8) -> Document {
    let mut d = doc! {};
    d.push("id", Bson::Binary(Binary { subtype: 4, bytes: vec![n; 16] }));
    d
}
/// A statement of the transaction `number` of a session.
fn within(mut command: Document, session: u8, number: i64, first: bool) -> Document {
    command.push("lsid", lsid(session));
    command.push("txnNumber", number);
    command.push("autocommit", false);
    if first {
        command.push("startTransaction", true);
    }
    command
}
fn insert(coll: &str, doc: Document) -> Document {
    let mut command = doc! { "insert": coll };
    command.push("documents", vec![Bson::from(doc)]);
    command
}
fn commit(session: u8, number: i64, token: Option<Bson>) -> Document {
    let mut command = within(doc! { "commitTransaction": 1, "$db": "admin" }, session, number, false);
    if let Some(token) = token {
        command.push("recoveryToken", token);
    }
    command
}
fn recovery_shard(reply: &Document) -> Option<&str> {
    reply.get("recoveryToken")?.as_doc()?.get("recoveryShardId")?.as_str()
}
async fn ids(c: &mut Client, coll: &str) -> Vec<Bson> {
    let found = c.all(doc! { "find": coll, "sort": { "_id": 1 } }).await;
    found.iter().filter_map(|d| d.get("_id").cloned()).collect()
}

#[test]
fn another_router_learns_what_became_of_a_transaction() {
    run(async {
        let cluster = Cluster::of(2, 2).await;
        let (mut here, mut there) = (cluster.router(0).await, cluster.router(1).await);
        here.ok(doc! { "enableSharding": "test", "primaryShard": "s1", "$db": "admin" }).await;
        here.ok(doc! { "create": "c" }).await;
        // Who has only read can begin anew.
        let read = here.ok(within(doc! { "find": "c" }, 1, 1, true)).await;
        assert!(read.contains("recoveryToken") && recovery_shard(&read).is_none(), "{read:?}");
        let empty = read.get("recoveryToken").cloned();
        let (code, text) = there.err(commit(1, 1, empty)).await;
        assert_eq!(code, 251, "{text}");
        let written = here.ok(within(insert("c", doc! { "_id": 1 }), 1, 1, false)).await;
        assert_eq!(recovery_shard(&written), Some("s1"), "{written:?}");
        let token = written.get("recoveryToken").cloned();
        here.ok(commit(1, 1, token.clone())).await;
        for _ in 0..2 {
            there.ok(commit(1, 1, token.clone())).await;
        }
        assert_eq!(there.err(commit(1, 1, None)).await.0, 50940);
        // One that nobody has committed is over once somebody asks.
        let open = here.ok(within(insert("c", doc! { "_id": 2 }), 1, 2, true)).await;
        let token = open.get("recoveryToken").cloned();
        let reply = there.run(commit(1, 2, token.clone())).await;
        assert_eq!(reply.get("code").and_then(Bson::as_i64), Some(251), "{reply:?}");
        assert!(format!("{reply:?}").contains("TransientTransactionError"), "{reply:?}");
        assert_eq!(here.err(commit(1, 2, token)).await.0, 251);
        assert_eq!(ids(&mut here, "c").await, [Bson::Int32(1)]);
        cluster.shut_down().await;
    });
}

#[test]
fn a_collection_that_a_transaction_makes_does_not_outlive_its_database() {
    run(async {
        let cluster = Cluster::of(2, 2).await;
        let (mut c, mut other) = (cluster.router(0).await, cluster.router(1).await);
        let in_db = |mut command: Document| {
            command.push("$db", "gone");
            command
        };
        c.ok(doc! { "enableSharding": "gone", "primaryShard": "s0", "$db": "admin" }).await;
        c.ok(in_db(within(insert("made", doc! { "_id": 1 }), 1, 1, true))).await;
        // Nobody sees what it has made: the drop does not wait for it.
        other.ok(in_db(doc! { "dropDatabase": 1 })).await;
        other.ok(doc! { "enableSharding": "gone", "primaryShard": "s1", "$db": "admin" }).await;
        let reply = c.run(commit(1, 1, None)).await;
        assert_eq!(reply.get("code").and_then(Bson::as_i64), Some(112), "{reply:?}");
        assert!(format!("{reply:?}").contains("TransientTransactionError"), "{reply:?}");
        c.ok(in_db(within(insert("made", doc! { "_id": 2 }), 1, 2, true))).await;
        c.ok(commit(1, 2, None)).await;
        let found = other.all(in_db(doc! { "find": "made" })).await;
        assert_eq!(found, [doc! { "_id": 2 }]);
        let mut shard = cluster.shard(0).await;
        let listed = shard.ok(in_db(doc! { "listCollections": 1 })).await;
        assert!(!format!("{listed:?}").contains("made"), "{listed:?}");
        cluster.shut_down().await;
    });
}

#[test]
fn a_write_that_names_the_id_may_be_retried_whatever_else_it_asks_for() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        cluster.shard_collection("test.h", doc! { "k": "hashed" }).await;
        let docs: Vec<Bson> = (0..20).map(|i| doc! { "_id": i, "k": i, "n": 0 }.into()).collect();
        c.ok(doc! { "insert": "h", "documents": docs }).await;
        let retryable = |mut command: Document, number: i64| {
            command.push("lsid", lsid(3));
            command.push("txnNumber", number);
            command
        };
        let update = |q: Document, upsert: bool| {
            let one = doc! { "q": q, "u": { "$inc": { "n": 1 } }, "upsert": upsert };
            doc! { "update": "h", "updates": vec![Bson::from(one)] }
        };
        for (number, q) in
            [(1, doc! { "_id": 7, "k": { "$gte": 0 } }), (2, doc! { "z": Bson::Null, "_id": 7 })]
        {
            for _ in 0..2 {
                let reply = c.ok(retryable(update(q.clone(), false), number)).await;
                assert_eq!(reply.get("n").and_then(Bson::as_i64), Some(1), "{reply:?}");
            }
        }
        assert_eq!(
            c.all(doc! { "find": "h", "filter": { "_id": 7 } }).await,
            [doc! { "_id": 7, "k": 7, "n": 2 }]
        );
        let deletes = vec![Bson::from(doc! { "q": { "_id": 7, "no": 1 }, "limit": 1 })];
        let reply = c.ok(retryable(doc! { "delete": "h", "deletes": deletes }, 3)).await;
        assert_eq!(reply.get("n").and_then(Bson::as_i64), Some(0), "{reply:?}");
        let reply = c.ok(retryable(update(doc! { "_id": 99 }, true), 4)).await;
        assert!(format!("{reply:?}").contains("could not extract exact shard key"), "{reply:?}");
        cluster.shut_down().await;
    });
}

#[test]
fn a_transaction_that_writes_on_one_shard_may_read_on_all() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        cluster.shard_collection("test.h", doc! { "_id": "hashed" }).await;
        let docs: Vec<Bson> = (0..40).map(|i| doc! { "_id": i }.into()).collect();
        let mut many = doc! { "insert": "h" };
        many.push("documents", docs);
        c.ok(many).await;
        let found = c.ok(within(doc! { "find": "h" }, 1, 1, true)).await;
        let batch = found.get("cursor").and_then(Bson::as_doc).unwrap().get("firstBatch").unwrap();
        assert_eq!(batch.as_array().unwrap().len(), 40);
        let update = doc! { "q": { "_id": 7 }, "u": { "$set": { "x": 1 } } };
        let mut command = doc! { "update": "h" };
        command.push("updates", vec![Bson::from(update)]);
        c.ok(within(command, 1, 1, false)).await;
        c.ok(commit(1, 1, None)).await;
        assert_eq!(c.all(doc! { "find": "h", "filter": { "x": 1 } }).await.len(), 1);
        // Whoever only reads commits, too.
        c.ok(within(doc! { "find": "h" }, 1, 2, true)).await;
        c.ok(commit(1, 2, None)).await;
        cluster.shut_down().await;
    });
}

/// What a router knew of the database was old, so its first statement was refused and went out once more under the same number.
#[test]
fn a_transaction_begins_anew_where_its_first_statement_was_refused() {
    run(async {
        let cluster = Cluster::of(2, 2).await;
        let (mut c, mut other) = (cluster.router(0).await, cluster.router(1).await);
        c.ok(doc! { "create": "c" }).await;
        assert_eq!(ids(&mut other, "c").await, []);
        for (i, key) in [doc! { "_id": 1 }, doc! { "_id": "hashed" }].into_iter().enumerate() {
            c.ok(doc! { "drop": "c" }).await;
            cluster.shard_collection("test.c", key).await;
            let number = i as i64 + 1;
            other.ok(within(insert("c", doc! { "_id": i as i32 }), 1, number, true)).await;
            other.ok(commit(1, number, None)).await;
            assert_eq!(ids(&mut c, "c").await, [Bson::Int32(i as i32)]);
        }
        c.ok(doc! { "dropDatabase": 1 }).await;
        c.ok(doc! { "create": "c" }).await;
        other.ok(within(insert("c", doc! { "_id": 9 }), 1, 9, true)).await;
        other.ok(commit(1, 9, None)).await;
        cluster.shut_down().await;
    });
}

#[test]
fn sessions_that_are_killed_are_killed_on_all_shards() {
    run(async {
        let cluster = Cluster::of(2, 2).await;
        let (mut c, mut other) = (cluster.router(0).await, cluster.router(1).await);
        cluster.shard_collection("test.h", doc! { "_id": "hashed" }).await;
        let one = |session: u8| {
            let mut d = doc! { "killSessions": [] };
            d.set("killSessions", vec![Bson::from(lsid(session))]);
            d
        };
        let all = doc! { "killAllSessions": [] };
        let pattern = doc! { "killAllSessionsByPattern": [] };
        for (n, kill) in [one(1), all, pattern].into_iter().enumerate() {
            let number = n as i64 + 1;
            c.ok(within(insert("h", doc! { "_id": 5 }), 1, number, true)).await;
            // The lock that it holds is in the way of others.
            let mut held = insert("h", doc! { "_id": 5 });
            held.push("maxTimeMS", 300);
            assert_eq!(other.run(held.clone()).await.get("n").and_then(Bson::as_i64), None, "{n}");
            other.ok(kill).await;
            other.ok(insert("h", doc! { "_id": 5 })).await;
            let mut delete = doc! { "delete": "h" };
            delete.push("deletes", vec![Bson::from(doc! { "q": { "_id": 5 }, "limit": 1 })]);
            other.ok(delete).await;
            assert_eq!(c.err(commit(1, number, None)).await.0, 251);
        }
        cluster.shut_down().await;
    });
}

#[test]
fn a_router_knows_the_sessions_of_its_clients_and_tells_shards_of_their_ends() {
    run(async {
        let cluster = Cluster::of(1, 1).await;
        let mut c = cluster.router(0).await;
        let list = || {
            let mut d = doc! { "aggregate": 1 };
            d.push("pipeline", vec![Bson::from(doc! { "$listLocalSessions": { "allUsers": true } })]);
            d.push("cursor", doc! {});
            d
        };
        let mut write = insert("c", doc! { "_id": 1 });
        write.push("lsid", lsid(9));
        c.ok(write).await;
        let id = Some(Bson::Binary(Binary { subtype: 4, bytes: vec![9; 16] }));
        let has = |rows: &[Document]| {
            rows.iter().any(|r| r.get("_id").and_then(Bson::as_doc).and_then(|d| d.get("id").cloned()) == id)
        };
        for db in ["admin", "test", "nowhere"] {
            let mut list = list();
            list.push("$db", db);
            assert!(has(&c.all(list).await), "{db}");
        }
        let mut shard = cluster.shard(0).await;
        assert!(has(&shard.all(list()).await));
        let mut end = doc! { "endSessions": [] };
        end.set("endSessions", vec![Bson::from(lsid(9))]);
        c.ok(end).await;
        assert!(!has(&c.all(list()).await));
        c.admin(doc! { "refreshLogicalSessionCacheNow": 1 }).await;
        assert!(!has(&shard.all(list()).await));
        pause(1).await;
        cluster.shut_down().await;
    });
}

/// Whoever changes who owns what waits for those who came in before, and they do not wait for it for ever.
#[test]
fn what_a_transaction_has_written_while_its_collection_becomes_sharded_is_seen_or_was_never_committed() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
        for (n, goes_on) in [(1, false), (2, true)] {
            let coll = format!("c{n}");
            let mut index = doc! { "createIndexes": coll.clone() };
            let key = doc! { "key": doc! { "k": "hashed" }, "name": "k_hashed" };
            index.push("indexes", vec![Bson::from(key)]);
            c.ok(index).await;
            let mut write = doc! { "insert": coll.clone() };
            let docs: Vec<Bson> = (0..20).map(|i| doc! { "_id": i, "k": i }.into()).collect();
            write.push("documents", docs);
            c.ok(within(write, n, 1, true)).await;
            let mut other = cluster.router(0).await;
            let ns = format!("test.{coll}");
            let sharding = spawn(async move {
                let shard = doc! { "shardCollection": ns, "key": doc! { "k": "hashed" }, "$db": "admin" };
                other.ok(shard).await;
            });
            pause(700).await;
            let mut expected = 20;
            if goes_on {
                let more = c.run(within(insert(&coll, doc! { "_id": 20, "k": 20 }), n, 1, false)).await;
                match more.get("code").and_then(Bson::as_i64) {
                    None => expected += 1,
                    Some(_) => expected = 0,
                }
            }
            if expected > 0 {
                c.ok(commit(n, 1, None)).await;
            }
            sharding.await.unwrap();
            let all: Vec<Bson> = (0..expected).map(Bson::from).collect();
            assert_eq!(ids(&mut c, &coll).await, all, "{coll}");
        }
        cluster.shut_down().await;
    });
}
