//! One node follows another: what the primary wrote is what the secondary holds.

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
    let source = primary.addr();
    let secondary = Node::follower(&world, FaultyDisk::new(seed + 1), 27018, source);
    primary.boot();
    world.sim.run_for(Duration::from_millis(500));
    let process = world.sim.start_process();
    let env = world.env(process, Arc::new(FaultyDisk::new(seed)));
    Pair { world, primary, secondary, env, process }
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
    let goal = top(a).await;
    loop {
        let status = ok(b, doc! { "replSetGetStatus": 1, "$db": "admin" }).await;
        let applied = status.get_path("optimes.appliedOpTime.ts").map(|v| format!("{v}"));
        if applied == Some(goal.clone()) {
            break;
        }
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
    p.secondary.boot();
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
        let reply = ok(&mut b, doc! { "validate": "a", "full": true, "$db": "d" }).await;
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
