//! What shells and tools ask of a router besides documents.

#![allow(clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Cluster, pause, run, spawn};

fn aggregate(first: impl Into<Bson>, stages: Vec<Document>, db: &str) -> Document {
    let mut d = Document::new();
    d.push("aggregate", first);
    d.push("pipeline", stages.into_iter().map(Bson::from).collect::<Vec<_>>());
    d.push("cursor", doc! {});
    d.push("$db", db);
    d
}
fn text<'a>(d: &'a Document, name: &str) -> Option<&'a str> {
    d.get(name)?.as_str()
}
fn number(d: &Document, name: &str) -> i64 {
    d.get(name).and_then(Bson::as_i64).unwrap_or(-1)
}
async fn fill(c: &mut Client, coll: &str, n: i32) {
    let mut command = doc! { "insert": coll };
    command.push("documents", (0..n).map(|i| Bson::from(doc! { "_id": i, "g": i % 3 })).collect::<Vec<_>>());
    c.ok(command).await;
}

#[test]
fn routers_say_that_they_are_there() {
    run(async {
        let cluster = Cluster::of(1, 2).await;
        let mut c = cluster.router(0).await;
        let mut found = Vec::new();
        for _ in 0..100 {
            found = c.all(doc! { "find": "mongos", "$db": "config" }).await;
            if found.len() == 2 {
                break;
            }
            pause(50).await;
        }
        assert_eq!(found.len(), 2, "{found:?}");
        for router in &found {
            let names: Vec<&str> = router.iter().map(|(name, _)| name).collect();
            for name in ["_id", "advisoryHostFQDNs", "created", "mongoVersion", "ping", "up", "waiting"] {
                assert!(names.contains(&name), "{name}: {router:?}");
            }
        }
        cluster.shut_down().await;
    });
}

#[test]
fn operations_of_shards_are_shown_and_killed_by_the_shards_name() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        cluster.shard_collection("test.h", doc! { "_id": "hashed" }).await;
        fill(&mut c, "h", 10).await;
        let mut slow = cluster.router(0).await;
        for shard in 0..2 {
            let mut direct = cluster.shard(shard).await;
            let data = doc! { "failCommands": ["find"], "blockConnection": true, "blockTimeMS": 30000,
            "failInternalCommands": true };
            let mut command = doc! { "configureFailPoint": "failCommand", "mode": "alwaysOn" };
            command.push("data", data);
            direct.admin(command).await;
        }
        let waiting = spawn(async move { slow.run(doc! { "find": "h", "comment": "slow one" }).await });
        let filter = doc! { "command.find": "h" };
        let mut rows = Vec::new();
        for _ in 0..100 {
            let stages = vec![doc! { "$currentOp": {} }, doc! { "$match": filter.clone() }];
            rows = c.all(aggregate(1, stages, "admin")).await;
            if rows.len() == 2 {
                break;
            }
            pause(50).await;
        }
        let shards: Vec<_> = rows.iter().filter_map(|r| text(r, "shard")).collect();
        assert_eq!(rows.len(), 2, "{rows:?}");
        assert!(shards.contains(&"s0") && shards.contains(&"s1"), "{rows:?}");
        let of_router = aggregate(1, vec![doc! { "$currentOp": { "localOps": true } }], "admin");
        let of_router = c.all(of_router).await;
        assert!(of_router.iter().any(|r| text(r, "op") == Some("query")), "{of_router:?}");
        for row in &rows {
            let opid = text(row, "opid").unwrap();
            assert!(opid.starts_with(&format!("{}:", text(row, "shard").unwrap())), "{row:?}");
            assert!(row.contains("client_s") && !row.contains("client"), "{row:?}");
            // By its number, as it was shown.
            let one = c.admin(doc! { "currentOp": 1, "opid": opid }).await;
            assert_eq!(one.get("inprog").and_then(Bson::as_array).unwrap().len(), 1, "{one:?}");
            let killed = c.admin(doc! { "killOp": 1, "op": opid }).await;
            assert_eq!(text(&killed, "shard"), text(row, "shard"));
        }
        let reply = waiting.await.unwrap();
        assert_eq!(number(&reply, "code"), 11601, "{reply:?}");
        cluster.shut_down().await;
    });
}

#[test]
fn who_watches_is_told_which_failures_can_be_gone_on_behind() {
    run(async {
        let cluster = Cluster::of(1, 1).await;
        let mut c = cluster.router(0).await;
        c.ok(doc! { "create": "c" }).await;
        let opened = c.ok(aggregate("c", vec![doc! { "$changeStream": {} }], "test")).await;
        let id = opened.get("cursor").and_then(Bson::as_doc).unwrap().get("id").cloned().unwrap();
        let mut point =
            doc! { "configureFailPoint": "failGetMoreAfterCursorCheckout", "mode": { "times": 1 } };
        point.push("data", doc! { "errorCode": 6, "closeConnection": false });
        c.admin(point).await;
        let failed = c.run(doc! { "getMore": id.clone(), "collection": "c", "maxTimeMS": 100 }).await;
        assert_eq!(number(&failed, "code"), 6, "{failed:?}");
        assert!(format!("{failed:?}").contains("ResumableChangeStreamError"), "{failed:?}");
        let gone = c.err(doc! { "getMore": id, "collection": "c", "maxTimeMS": 100 }).await;
        assert_eq!(gone.0, 43, "{gone:?}");
        cluster.shut_down().await;
    });
}

#[test]
fn a_unique_index_of_a_sharded_collection_begins_with_its_key() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        cluster.shard_collection("test.r", doc! { "k": 1 }).await;
        let index = |key: Document, name: &str| {
            let index = doc! { "key": key, "name": name, "unique": true };
            let mut command = doc! { "createIndexes": "r" };
            command.push("indexes", vec![Bson::from(index)]);
            command
        };
        let (code, text) = c.err(index(doc! { "s": 1 }, "s")).await;
        assert_eq!(code, 67, "{text}");
        assert_eq!(text, "cannot create unique index over { s: 1 } with shard key pattern { k: 1 }");
        c.ok(index(doc! { "k": 1, "s": 1 }, "ks")).await;
        cluster.shut_down().await;
    });
}

#[test]
fn figures_say_which_shard_they_are_of() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        cluster.shard_collection("test.h", doc! { "_id": "hashed" }).await;
        fill(&mut c, "h", 100).await;
        fill(&mut c, "plain", 10).await;
        let stats = aggregate("h", vec![doc! { "$collStats": { "storageStats": {} } }], "test");
        let stats = c.all(stats).await;
        let shards: Vec<_> = stats.iter().filter_map(|s| text(s, "shard")).collect();
        assert_eq!(shards.len(), 2, "{stats:?}");
        let told = c.all(aggregate(1, vec![doc! { "$shardedDataDistribution": {} }], "admin")).await;
        let of_h: Vec<_> = told.iter().filter(|d| text(d, "ns") == Some("test.h")).collect();
        assert_eq!(of_h.len(), 1, "{told:?}");
        let parts = of_h[0].get("shards").and_then(Bson::as_array).unwrap();
        let owned: i64 = parts.iter().map(|p| number(p.as_doc().unwrap(), "numOwnedDocuments")).sum();
        assert_eq!((parts.len(), owned), (2, 100), "{told:?}");
        assert!(told.iter().all(|d| text(d, "ns") != Some("test.plain")));
        let wrong = aggregate("h", vec![doc! { "$shardedDataDistribution": {} }], "test");
        assert_eq!(c.err(wrong).await.0, 73);
        let list = c
            .admin(doc! { "listDatabases": 1, "filter": { "sizeOnDisk": { "$gte": 0 }, "name": "test" } })
            .await;
        let found = list.get("databases").and_then(Bson::as_array).unwrap();
        assert_eq!(found.len(), 1, "{list:?}");
        assert!(found[0].as_doc().unwrap().get("shards").is_some(), "{list:?}");
        cluster.shut_down().await;
    });
}

#[test]
fn what_shards_have_is_compared_with_what_the_config_servers_say() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
        cluster.shard_collection("test.h", doc! { "_id": "hashed" }).await;
        fill(&mut c, "h", 20).await;
        fill(&mut c, "plain", 3).await;
        let types = |rows: Vec<Document>| -> Vec<String> {
            rows.iter().map(|r| text(r, "type").unwrap().to_owned()).collect()
        };
        for db in ["test", "admin"] {
            let told = c.all(doc! { "checkMetadataConsistency": 1, "$db": db }).await;
            assert_eq!(told, [], "{db}");
        }
        let mut direct = cluster.shard(1).await;
        fill(&mut direct, "astray", 2).await;
        // Its index alone is not dropped.
        direct.ok(doc! { "drop": "h" }).await;
        direct.ok(doc! { "create": "h" }).await;
        let told = c.all(doc! { "checkMetadataConsistency": 1, "cursor": { "batchSize": 1 } }).await;
        let mut told = types(told);
        told.sort();
        assert_eq!(told, ["CollectionUUIDMismatch", "MisplacedCollection"]);
        assert_eq!(
            types(c.all(doc! { "checkMetadataConsistency": "astray" }).await),
            ["MisplacedCollection"]
        );
        assert_eq!(c.all(doc! { "checkMetadataConsistency": "plain" }).await, []);
        cluster.shut_down().await;
    });
}

#[test]
fn a_router_counts_its_commands_and_its_open_cursors() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        cluster.shard_collection("test.c", doc! { "_id": "hashed" }).await;
        fill(&mut c, "c", 20).await;
        c.ok(doc! { "find": "c", "batchSize": 2 }).await;
        let status = c.admin(doc! { "serverStatus": 1 }).await;
        let at = |path: &[&str]| {
            let found =
                path.iter().try_fold(Bson::from(status.clone()), |d, name| d.as_doc()?.get(name).cloned());
            found.and_then(|n| n.as_i64()).unwrap_or(-1)
        };
        assert_eq!(at(&["metrics", "cursor", "open", "total"]), 1, "{status:?}");
        assert_eq!(at(&["metrics", "cursor", "totalOpened"]), 1, "{status:?}");
        assert_eq!(at(&["metrics", "commands", "find", "total"]), 1, "{status:?}");
        cluster.shut_down().await;
    });
}

#[test]
fn parts_of_a_router_say_as_much_as_they_are_told_to() {
    run(async {
        let cluster = Cluster::of(1, 1).await;
        let mut c = cluster.router(0).await;
        let mut set = doc! { "setParameter": 1 };
        set.push("logComponentVerbosity", doc! { "query": { "verbosity": 2 } });
        c.admin(set).await;
        let told = c.admin(doc! { "getParameter": 1, "logComponentVerbosity": 1 }).await;
        let tree = told.get("logComponentVerbosity").and_then(Bson::as_doc).unwrap();
        assert!(tree.get("query").and_then(Bson::as_doc).is_some(), "{told:?}");
        assert_eq!(number(&c.admin(doc! { "setParameter": 1, "logLevel": 0 }).await, "was"), 0);
        let mut wrong = doc! { "setParameter": 1, "$db": "admin" };
        wrong.push("logComponentVerbosity", doc! { "nothing": 1 });
        assert_eq!(c.err(wrong).await.0, 2);
        cluster.shut_down().await;
    });
}

#[test]
fn a_router_forces_shards_to_disk_and_keeps_no_profile() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        let done = c.admin(doc! { "fsync": 1 }).await;
        assert_eq!(done.get("all").and_then(Bson::as_doc).unwrap().len(), 2, "{done:?}");
        assert_eq!(
            c.err(doc! { "fsync": 1, "lock": true, "$db": "admin" }).await.1,
            "can't do lock through mongos"
        );
        assert_eq!(number(&c.ok(doc! { "profile": 0, "slowms": 250 }).await, "slowms"), 100);
        let asked = c.ok(doc! { "profile": -1 }).await;
        assert_eq!((number(&asked, "was"), number(&asked, "slowms")), (0, 250));
        assert_eq!(c.err(doc! { "profile": 1 }).await.0, 2);
        fill(&mut c, "c", 3).await;
        c.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "g": 1 }, "name": "g", "sparse": true }] })
            .await;
        let api = doc! { "version": "1", "strict": true, "deprecationErrors": false };
        let mut validate = doc! { "validateDBMetadata": 1 };
        validate.push("apiParameters", api);
        let told = c.ok(validate).await;
        assert_eq!(told.get("apiVersionErrors").and_then(Bson::as_array).unwrap().len(), 1, "{told:?}");
        cluster.shut_down().await;
    });
}

/// A shard that refuses a write for what its sender knows must be heard, whatever the client wants to hear.
#[test]
fn writes_that_nobody_waits_for_are_carried_out() {
    run(async {
        let cluster = Cluster::of(2, 2).await;
        let (mut c, mut other) = (cluster.router(0).await, cluster.router(1).await);
        let with = |mut command: Document, name: &str, statements: Vec<Document>| {
            command.push(name, statements.into_iter().map(Bson::from).collect::<Vec<_>>());
            command.push("writeConcern", doc! { "w": 0 });
            command
        };
        let insert = |id: i32| with(doc! { "insert": "c" }, "documents", vec![doc! { "_id": id }]);
        // Into a database that is not there yet, and past a router that knows it as it was.
        let told = c.ok(insert(1)).await;
        assert_eq!(number(&told, "n"), 0, "{told:?}");
        assert_eq!(number(&other.ok(doc! { "count": "c" }).await, "n"), 1);
        c.ok(doc! { "drop": "c" }).await;
        cluster.shard_collection("test.c", doc! { "_id": "hashed" }).await;
        for id in 0..20 {
            other.ok(insert(id)).await;
        }
        let all = doc! { "q": {}, "u": { "$set": { "x": 1 } }, "multi": true };
        c.ok(with(doc! { "update": "c" }, "updates", vec![all])).await;
        c.ok(with(doc! { "delete": "c" }, "deletes", vec![doc! { "q": { "_id": 3 }, "limit": 1 }])).await;
        assert_eq!(number(&other.ok(doc! { "count": "c", "query": { "x": 1 } }).await, "n"), 19);
        cluster.shut_down().await;
    });
}

/// A client fills a message to its limit, and the router has to say more to a shard than the client did.
#[test]
fn a_command_as_large_as_a_message_can_be_reaches_the_shards() {
    run(async {
        let cluster = Cluster::of(1, 1).await;
        let mut c = cluster.router(0).await;
        let large = |id: i32, n: usize| doc! { "_id": id, "l": "s".repeat(n) };
        let mut docs = vec![large(1, 16_000_000), large(2, 16_000_000), large(3, 15_990_000)];
        let free = 47_999_800 - docs.iter().map(|d| d.to_raw().byte_len()).sum::<usize>();
        docs.extend((4..).map(|i| doc! { "_id": i }).take(free / doc! { "_id": 4 }.to_raw().byte_len()));
        let n = docs.len() as i64;
        let done = c.run_with_sequence(doc! { "insert": "c" }, "documents", &docs).await;
        assert_eq!(number(&done, "n"), n, "{done:?}");
        assert_eq!(number(&c.ok(doc! { "count": "c" }).await, "n"), n);
        cluster.shut_down().await;
    });
}

#[test]
fn explanations_say_who_explains() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        cluster.shard_collection("test.h", doc! { "_id": "hashed" }).await;
        fill(&mut c, "h", 20).await;
        c.ok(doc! { "create": "v", "viewOn": "plain", "pipeline": [{ "$match": { "g": 1 } }, { "$unwind": "$x" }] }).await;
        let group = vec![doc! { "$group": { "_id": "$g" } }];
        for verbosity in ["queryPlanner", "executionStats", "allPlansExecution"] {
            for (inner, stage) in [
                (doc! { "find": "h" }, "SHARD_MERGE"),
                (doc! { "find": "h", "filter": { "_id": 3 } }, "SINGLE_SHARD"),
                (doc! { "find": "plain" }, "SINGLE_SHARD"),
                (doc! { "find": "h", "sort": { "g": 1 } }, "SHARD_MERGE_SORT"),
                (doc! { "count": "h" }, "SHARD_MERGE"),
            ] {
                let reply = c.ok(doc! { "explain": inner, "verbosity": verbosity }).await;
                let planner = reply.get("queryPlanner").and_then(Bson::as_doc).unwrap();
                let plan = planner.get("winningPlan").and_then(Bson::as_doc).unwrap();
                assert_eq!(text(plan, "stage"), Some(stage), "{reply:?}");
                assert!(reply.contains("serverParameters") && reply.contains("command"), "{reply:?}");
                assert_eq!(reply.contains("executionStats"), verbosity != "queryPlanner");
            }
            let mut pipeline = doc! { "explain": aggregate("h", group.clone(), "test") };
            pipeline.push("verbosity", verbosity);
            let reply = c.ok(pipeline).await;
            let shards = reply.get("shards").and_then(Bson::as_doc).unwrap();
            assert_eq!(shards.len(), 2, "{reply:?}");
            for (_, shard) in shards.iter() {
                assert!(shard.as_doc().unwrap().contains("host"), "{reply:?}");
            }
            assert!(reply.contains("serverInfo") && reply.contains("command"), "{reply:?}");
        }
        let view = c.ok(doc! { "explain": { "find": "v" } }).await;
        assert!(view.contains("stages") || view.contains("queryPlanner"), "{view:?}");
        cluster.shut_down().await;
    });
}
