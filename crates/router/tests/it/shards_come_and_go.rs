//! Shards that come and go while definitions are under way (SYS-268).

#![allow(clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Cluster, STEP, pause, run, spawn};

async fn keys(c: &mut Client, coll: &str) -> Vec<i64> {
    let all = c.all(doc! { "find": coll, "sort": { "k": 1 } }).await;
    all.iter().filter_map(|d| d.get("k").and_then(Bson::as_i64)).collect()
}
async fn sections(c: &mut Client) -> usize {
    c.all(doc! { "find": "collection_critical_sections", "$db": "config" }).await.len()
}
async fn until_removed(c: &mut Client, shard: &str) {
    for _ in 0..200 {
        let reply = c.admin(doc! { "removeShard": shard }).await;
        if reply.get("state").and_then(Bson::as_str) == Some("completed") {
            return;
        }
        pause(20).await;
    }
    panic!("{shard} does not go");
}

/// It took part in a rename, went before anybody told it of the end, and comes back.
#[test]
fn a_shard_that_goes_in_the_middle_of_a_rename_comes_back_free() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
        c.admin(doc! { "balancerStop": 1 }).await;
        c.ok(doc! { "shardCollection": "test.c", "key": { "k": 1 }, "$db": "admin" }).await;
        let mut insert = doc! { "insert": "c" };
        insert.push("documents", (0..10).map(|i| Bson::from(doc! { "k": i })).collect::<Vec<_>>());
        c.ok(insert).await;
        let mut primary = cluster.shard(0).await;
        let mut other = cluster.shard(1).await;
        // It stands still as soon as the other shard has its sections.
        let port = cluster.router_port(0);
        let mut task = None;
        for n in 6..30 {
            let (from, to) = if n % 2 == 0 { ("c", "d") } else { ("d", "c") };
            let mut hang = doc! { "configureFailPoint": STEP };
            hang.push("mode", doc! { "skip": n });
            primary.admin(hang).await;
            let rename = doc! { "renameCollection": format!("test.{from}"), "to": format!("test.{to}"), "$db": "admin" };
            let sent = spawn(async move { Client::connect(port).await.run(rename).await });
            let mut is_in = false;
            for _ in 0..300 {
                is_in = sections(&mut other).await > 0;
                if is_in || sent.is_finished() {
                    break;
                }
                pause(5).await;
            }
            pause(50).await;
            if sections(&mut other).await > 0 && !sent.is_finished() {
                task = Some((sent, to));
                break;
            }
            primary.admin(doc! { "configureFailPoint": STEP, "mode": "off" }).await;
            sent.await.unwrap();
            assert!(!is_in || sections(&mut other).await == 0);
        }
        let (task, to) = task.expect("the other shard has sections at some step");
        until_removed(&mut c, "s1").await;
        primary.admin(doc! { "configureFailPoint": STEP, "mode": "off" }).await;
        let reply: Document = task.await.unwrap();
        assert_eq!(reply.get("ok").and_then(Bson::as_f64), Some(1.0), "{reply:?}");
        assert_eq!(keys(&mut c, to).await, (0..10).collect::<Vec<i64>>());
        assert_eq!(sections(&mut other).await, 2, "nobody has told it");
        let host = format!("s1/127.0.0.1:{}", cluster.shard_port(1));
        c.ok(doc! { "addShard": host, "$db": "admin" }).await;
        assert_eq!(sections(&mut other).await, 0);
        let mut part = doc! { "moveRange": format!("test.{to}"), "toShard": "s1" };
        part.push("min", doc! { "k": 5 });
        let reply = c.admin(part).await;
        assert_eq!(reply.get("ok").and_then(Bson::as_f64), Some(1.0), "{reply:?}");
        assert_eq!(keys(&mut c, to).await, (0..10).collect::<Vec<i64>>());
        assert_eq!(keys(&mut other, to).await, (5..10).collect::<Vec<i64>>());
        cluster.shut_down().await;
    });
}

/// What happens on a shard that is added is seen by whoever watches already: the stream is opened anew behind what it has given.
#[test]
fn a_change_stream_misses_nothing_of_a_shard_that_is_added_and_nothing_goes_to_one_that_leaves() {
    run(async {
        let mut cluster = Cluster::of(1, 1).await;
        let mut c = cluster.router(0).await;
        c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
        c.admin(doc! { "balancerStop": 1 }).await;
        cluster.shard_collection("test.c", doc! { "k": 1 }).await;
        let open = |resume: Option<Bson>| {
            let mut spec = Document::new();
            resume.into_iter().for_each(|token| spec.push("resumeAfter", token));
            let mut stage = Document::new();
            stage.push("$changeStream", spec);
            let mut open = doc! { "aggregate": "c", "cursor": {}, "$db": "test" };
            open.push("pipeline", vec![Bson::from(stage)]);
            open
        };
        let cursor = |reply: &Document, batch: &str| {
            let cursor = reply.get("cursor").and_then(Bson::as_doc).unwrap();
            let events = cursor.get(batch).and_then(Bson::as_array).unwrap();
            let key = |e: &Bson| e.as_doc()?.get("documentKey")?.as_doc()?.get("k")?.as_i64();
            let keys: Vec<i64> = events.iter().filter_map(key).collect();
            (
                cursor.get("id").and_then(Bson::as_i64).unwrap(),
                keys,
                cursor.get("postBatchResumeToken").cloned(),
            )
        };
        let (id, _, token) = cursor(&c.ok(open(None)).await, "firstBatch");
        let one = cluster.start_shard(None).await;
        c.ok(doc! { "addShard": cluster.shard_host(one), "$db": "admin" }).await;
        let mut away = doc! { "moveRange": "test.c", "toShard": "s1", "$db": "admin" };
        away.push("min", doc! { "k": 100 });
        c.ok(away).await;
        for k in [100, 1, 101, 2] {
            let mut insert = doc! { "insert": "c", "$db": "test" };
            insert.push("documents", vec![Bson::from(doc! { "k": k })]);
            c.ok(insert).await;
        }
        let mut more = doc! { "getMore": id, "collection": "c", "maxTimeMS": 1000, "$db": "test" };
        let failed = c.run(more.clone()).await;
        assert_eq!(failed.get("code").and_then(Bson::as_i64), Some(234), "{failed:?}");
        assert!(format!("{failed:?}").contains("ResumableChangeStreamError"), "{failed:?}");
        let (id, mut seen, _) = cursor(&c.ok(open(token)).await, "firstBatch");
        more.remove("getMore");
        for _ in 0..20 {
            let mut again = doc! { "getMore": id };
            more.iter().for_each(|(name, v)| again.push(name, v.clone()));
            seen.extend(cursor(&c.ok(again).await, "nextBatch").1);
            if seen.len() == 4 {
                break;
            }
        }
        assert_eq!(seen, [100, 1, 101, 2]);
        // As 6.0.5 says it.
        c.admin(doc! { "removeShard": "s1" }).await;
        let mut more = doc! { "moveRange": "test.c", "toShard": "s1", "$db": "admin" };
        more.push("min", doc! { "k": 1 });
        assert_eq!(c.err(more).await, (70, "Shard s1 is currently draining".to_owned()));
        let primary = doc! { "movePrimary": "test", "to": "s1", "$db": "admin" };
        assert_eq!(c.err(primary).await, (70, "Requested primary shard s1 is draining".to_owned()));
        cluster.shut_down().await;
    });
}

/// A shard comes while a rename stands before one of its steps, and has asked all the others: nothing of it is missing there.
#[test]
fn a_shard_that_is_added_amid_a_rename_finds_everything_in_order() {
    run(async {
        let mut cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
        c.admin(doc! { "balancerStop": 1 }).await;
        cluster.shard_collection("test.c", doc! { "k": 1 }).await;
        let mut insert = doc! { "insert": "c" };
        insert.push("documents", (0..10).map(|i| Bson::from(doc! { "k": i })).collect::<Vec<_>>());
        c.ok(insert).await;
        let mut hung = 0;
        for (round, step) in [1, 3, 5, 7, 9, 11].into_iter().enumerate() {
            let (from, to) = if round % 2 == 0 { ("c", "d") } else { ("d", "c") };
            let mut primary = cluster.shard(0).await;
            let mut hang = doc! { "configureFailPoint": STEP };
            hang.push("mode", doc! { "skip": step });
            primary.admin(hang).await;
            let port = cluster.router_port(0);
            let rename = doc! { "renameCollection": format!("test.{from}"), "to": format!("test.{to}"), "$db": "admin" };
            let rename = spawn(async move { Client::connect(port).await.run(rename).await });
            pause(200).await;
            hung += usize::from(!rename.is_finished());
            let new = cluster.start_shard(None).await;
            let add = doc! { "addShard": cluster.shard_host(new), "$db": "admin" };
            let add = spawn(async move { Client::connect(port).await.run(add).await });
            pause(200).await;
            primary.admin(doc! { "configureFailPoint": STEP, "mode": "off" }).await;
            for reply in [rename.await.unwrap(), add.await.unwrap()] {
                assert_eq!(reply.get("ok").and_then(Bson::as_f64), Some(1.0), "step {step}: {reply:?}");
            }
            let mut part = doc! { "moveRange": format!("test.{to}"), "toShard": format!("s{new}") };
            part.push("min", doc! { "k": 5 });
            let reply = c.admin(part).await;
            assert_eq!(reply.get("ok").and_then(Bson::as_f64), Some(1.0), "step {step}: {reply:?}");
            assert_eq!(keys(&mut c, to).await, (0..10).collect::<Vec<i64>>());
            assert_eq!(keys(&mut cluster.shard(new).await, to).await, (5..10).collect::<Vec<i64>>());
            assert_eq!(keys(&mut c, from).await, [0; 0]);
            assert_eq!(sections(&mut cluster.shard(new).await).await, 0);
            let check = doc! { "checkMetadataConsistency": 1, "cursor": {}, "$db": "test" };
            assert_eq!(c.all(check).await, [], "step {step}");
        }
        assert!(hung > 3, "a rename of {hung} steps");
        cluster.shut_down().await;
    });
}
