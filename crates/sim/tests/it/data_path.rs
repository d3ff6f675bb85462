//! One node follows another: what the primary wrote is what the secondary holds.

#![allow(clippy::unwrap_used)]

use pando_bson::{DocBuf, Document, doc};
use pando_env::Env;
use pando_sim::client::Client;
use pando_sim::{FaultyDisk, NetOptions, Node, ProcessId, World};
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(200);

struct Pair {
    world: World,
    primary: Node,
    secondary: Node,
    env: Env,
    process: ProcessId,
}

fn pair(seed: u64) -> Pair {
    let world = World::new(seed, NetOptions::default());
    let mut primary = Node::new(&world, FaultyDisk::new(seed), false);
    let secondary = Node::member(&world, FaultyDisk::new(seed + 1), 27018);
    primary.boot();
    world.sim.run_for(Duration::from_millis(500));
    let process = world.sim.start_process();
    let env = world.env(process, Arc::new(FaultyDisk::new(seed)));
    Pair { world, primary, secondary, env, process }
}

impl Pair {
    /// The second member starts and joins, without a vote.
    fn join(&mut self) {
        self.secondary.boot();
        let (env, a, b) = (self.env.clone(), self.primary.addr(), self.secondary.addr());
        let joining = async move {
            let mut c = Client::connect(&env, &a).await.unwrap();
            env.clock.sleep(Duration::from_millis(50)).await;
            let members: Vec<pando_bson::Bson> = vec![
                doc! { "_id": 0, "host": a }.into(),
                doc! { "_id": 1, "host": b, "priority": 0, "votes": 0 }.into(),
            ];
            let mut config = doc! { "_id": "rs0", "version": 2 };
            config.push("members", members);
            let mut body = Document::new();
            body.push("replSetReconfig", config);
            body.push("$db", "admin");
            ok(&mut c, body).await;
        };
        self.world.sim.block_on(self.process, PATIENCE, joining).unwrap();
    }
}

async fn ok(c: &mut Client, body: Document) -> DocBuf {
    let reply = c.command(&body.to_raw()).await.unwrap();
    let ok = reply.get("ok").is_some_and(|v| v.is_truthy()) && reply.get("writeErrors").is_none();
    assert!(ok, "{:?}: {reply}", body.to_raw().to_string());
    reply
}

async fn hash(c: &mut Client, db: &str) -> String {
    let mut reply = doc! { "dbHash": 1, "$readPreference": { "mode": "secondaryPreferred" } };
    reply.push("$db", db);
    let reply = ok(c, reply).await;
    let part = |name: &str| reply.get(name).map(|v| format!("{v}")).unwrap_or_default();
    part("collections") + &part("uuids") + &part("md5")
}

async fn top(c: &mut Client) -> String {
    let ask = doc! { "find": "oplog.rs", "sort": { "$natural": -1 }, "limit": 1, "singleBatch": true,
    "$readPreference": { "mode": "secondaryPreferred" }, "$db": "local" };
    let reply = ok(c, ask).await;
    let first = reply.get_path("cursor.firstBatch").and_then(|v| v.as_array()).and_then(|a| a.first());
    first.unwrap().value().as_doc().unwrap().get("ts").map(|v| format!("{v}")).unwrap()
}

/// Waits until the secondary has applied what the primary's log holds, then compares.
async fn same(env: &Env, a: &mut Client, b: &mut Client, dbs: &[&str]) {
    let mut goal = top(a).await;
    loop {
        // Before it knows its configuration it answers with an error.
        let ask = doc! { "replSetGetStatus": 1, "$db": "admin" };
        let status = b.command(&ask.to_raw()).await.unwrap();
        let applied = status.get_path("optimes.appliedOpTime.ts").map(|v| format!("{v}"));
        if applied.is_some_and(|at| at == goal) {
            break;
        }
        // A no-op of an idle primary may have come meanwhile.
        goal = top(a).await;
        env.clock.sleep(Duration::from_millis(20)).await;
    }
    for db in dbs {
        assert_eq!(hash(a, db).await, hash(b, db).await, "{db}");
    }
}

async fn crud(c: &mut Client, from: i32) {
    for i in from..from + 50 {
        let insert =
            doc! { "insert": "a", "documents": [{ "_id": i, "n": i, "tags": [i, i + 1] }], "$db": "d" };
        ok(c, insert).await;
    }
    let many: Vec<Document> = (0..40).map(|i| doc! { "_id": from * 100 + i, "k": i % 7 }).collect();
    let mut insert = doc! { "insert": "b" };
    insert.push("documents", many.into_iter().map(pando_bson::Bson::from).collect::<Vec<_>>());
    insert.push("$db", "d");
    ok(c, insert).await;
    let updates = doc! { "update": "a", "updates": [
    { "q": { "n": { "$lt": from + 30 } }, "u": { "$inc": { "x": 1 }, "$push": { "tags": 5 } }, "multi": true }],
    "$db": "d" };
    ok(c, updates).await;
    let deletes = doc! { "delete": "b", "deletes": [{ "q": { "k": 3 }, "limit": 0 }], "$db": "d" };
    ok(c, deletes).await;
}

async fn definitions(c: &mut Client) {
    ok(c, doc! { "createIndexes": "a", "indexes": [{ "key": { "tags": 1 }, "name": "t" }], "$db": "d" })
        .await;
    let unique = doc! { "createIndexes": "a", "indexes": [{ "key": { "n": 1 }, "name": "n", "unique": true }],
    "$db": "d" };
    ok(c, unique).await;
    ok(c, doc! { "create": "cap", "capped": true, "size": 4096, "$db": "d" }).await;
    for i in 0..60 {
        let filler = "x".repeat(100);
        ok(c, doc! { "insert": "cap", "documents": [{ "i": i, "s": filler }], "$db": "d" }).await;
    }
    ok(c, doc! { "collMod": "b", "validator": { "k": { "$exists": true } }, "$db": "d" }).await;
    ok(c, doc! { "create": "gone", "$db": "d" }).await;
    ok(c, doc! { "drop": "gone", "$db": "d" }).await;
    ok(c, doc! { "create": "old", "$db": "d" }).await;
    ok(c, doc! { "renameCollection": "d.old", "to": "e.new", "$db": "admin" }).await;
    ok(c, doc! { "insert": "x", "documents": [{ "_id": 1 }], "$db": "f" }).await;
    ok(c, doc! { "dropDatabase": 1, "$db": "f" }).await;
}

#[test]
fn a_secondary_holds_what_its_primary_wrote() {
    let mut p = pair(1);
    p.join();
    let (env, a, b) = (p.env.clone(), p.primary.addr(), p.secondary.addr());
    let work = async move {
        let mut a = Client::connect(&env, &a).await.unwrap();
        env.clock.sleep(Duration::from_millis(100)).await;
        let mut b = Client::connect(&env, &b).await.unwrap();
        crud(&mut a, 0).await;
        same(&env, &mut a, &mut b, &["d"]).await;
        definitions(&mut a).await;
        crud(&mut a, 1000).await;
        same(&env, &mut a, &mut b, &["d", "e", "f"]).await;
        let reply = ok(
            &mut b,
            doc! { "validate": "a", "full": true, "enforceFastCount": true, "$readPreference": { "mode": "nearest" }, "$db": "d" },
        )
        .await;
        assert_eq!(reply.get("valid").and_then(|v| v.as_bool()), Some(true), "{reply}");
    };
    let done = p.world.sim.block_on(p.process, PATIENCE, work);
    assert!(
        done.is_ok(),
        "{done:?} {:?} {:?}",
        p.secondary.exit(),
        p.world.log_lines().iter().rev().take(30).collect::<Vec<_>>()
    );
}

#[test]
fn an_idle_tail_waits_and_a_write_arrives_without_being_asked_for() {
    let p = pair(2);
    let (env, addr) = (p.env.clone(), p.primary.addr());
    let work = async move {
        let limit = Duration::from_secs(20);
        let mut c =
            pando_rpc::Connection::connect(&env, &addr, &pando_rpc::Options::default()).await.unwrap();
        let find = doc! { "find": "oplog.rs", "filter": { "ts": { "$gte": pando_base::Timestamp::new(0, 1) } },
        "tailable": true, "awaitData": true, "$db": "local" };
        let reply = c.call(&find.to_raw(), limit).await.unwrap();
        let id = reply.get_path("cursor.id").and_then(|v| v.as_i64()).unwrap();
        let more = doc! { "getMore": id, "collection": "oplog.rs", "maxTimeMS": 2000, "$replData": 1,
        "$oplogQueryData": 1, "$db": "local" };
        let mut tail = c.stream(&more.to_raw(), limit).await.unwrap();
        let started = env.clock.mono();
        for _ in 0..3 {
            let reply = tail.next(limit).await.unwrap();
            assert_eq!(reply.get_path("cursor.nextBatch").unwrap().as_array().unwrap().count(), 0);
            let m = pando_repl::data::Metadata::of(reply);
            assert!(m.repl.unwrap().is_primary && m.query.unwrap().rbid == 1);
            assert!(tail.is_open());
        }
        assert!(env.clock.mono() - started >= Duration::from_millis(5900), "it waited each time");
        let mut writer = Client::connect(&env, &addr).await.unwrap();
        ok(&mut writer, doc! { "insert": "a", "documents": [{ "_id": 1 }], "$db": "d" }).await;
        let written = env.clock.mono();
        let mut seen = 0;
        while seen < 2 {
            let reply = tail.next(limit).await.unwrap();
            seen += reply.get_path("cursor.nextBatch").unwrap().as_array().unwrap().count();
        }
        assert!(env.clock.mono() - written < Duration::from_millis(20), "create and insert came at once");
    };
    p.world.sim.block_on(p.process, PATIENCE, work).unwrap();
}

#[test]
fn a_member_that_is_still_copying_serves_no_reads() {
    let mut p = pair(3);
    let (env, a, b) = (p.env.clone(), p.primary.addr(), p.secondary.addr());
    let (env2, a2) = (env.clone(), a.clone());
    let fill = async move {
        let mut a = Client::connect(&env2, &a2).await.unwrap();
        for i in 0..20 {
            crud(&mut a, i * 50).await;
        }
    };
    p.world.sim.block_on(p.process, PATIENCE, fill).unwrap();
    p.join();
    let work = async move {
        let mut b = loop {
            match Client::connect(&env, &b).await {
                Ok(c) => break c,
                Err(_) => env.clock.sleep(Duration::from_millis(1)).await,
            }
        };
        let mut refused = 0;
        loop {
            let status = b.command(&doc! { "replSetGetStatus": 1, "$db": "admin" }.to_raw()).await.unwrap();
            let state = status.get("myState").and_then(|v| v.as_i64());
            if state == Some(2) {
                break;
            }
            env.clock.sleep(Duration::from_millis(1)).await;
            let find = doc! { "find": "a", "$readPreference": { "mode": "nearest" }, "$db": "d" }.to_raw();
            let reply = b.command(&find).await.unwrap();
            if state == Some(5) && reply.get("code").and_then(|v| v.as_i64()) == Some(13436) {
                refused += 1;
            }
        }
        assert!(refused > 0);
        let mut a = Client::connect(&env, &a).await.unwrap();
        same(&env, &mut a, &mut b, &["d"]).await;
    };
    let done = p.world.sim.block_on(p.process, Duration::from_secs(20), work);
    let log = p.world.log_lines();
    assert!(done.is_ok(), "{done:?} {:#?}", log.iter().rev().take(40).collect::<Vec<_>>());
}

#[test]
fn a_primary_that_lost_entries_copies_them_back_before_it_takes_writes() {
    let mut p = pair(4);
    p.join();
    let (env, a, b) = (p.env.clone(), p.primary.addr(), p.secondary.addr());
    let (env2, a2, b2) = (env.clone(), a.clone(), b.clone());
    let before = async move {
        let mut a = Client::connect(&env2, &a2).await.unwrap();
        let mut b = Client::connect(&env2, &b2).await.unwrap();
        same(&env2, &mut a, &mut b, &["d"]).await;
        let unsynced = doc! { "insert": "a", "documents": [{ "_id": 1 }],
        "writeConcern": { "w": 1, "j": false }, "$db": "d" };
        ok(&mut a, unsynced).await;
        env2.clock.sleep(Duration::from_millis(5)).await;
    };
    p.world.sim.block_on(p.process, PATIENCE, before).unwrap();
    p.primary.lose_power();
    p.primary.boot();
    p.world.sim.run_for(Duration::from_secs(20));
    let after = async move {
        let mut a = Client::connect(&env, &a).await.unwrap();
        let mut b = Client::connect(&env, &b).await.unwrap();
        same(&env, &mut a, &mut b, &["d"]).await;
        assert_eq!(
            ok(&mut a, doc! { "count": "a", "$db": "d" }).await.get("n").and_then(|v| v.as_i64()),
            Some(1)
        );
    };
    let done = p.world.sim.block_on(p.process, PATIENCE, after);
    let log = p.world.log_lines();
    assert!(done.is_ok(), "{done:?} {:#?}", log.iter().rev().take(40).collect::<Vec<_>>());
}
