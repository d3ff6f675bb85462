//! `moveChunk` and `moveRange`, as people send them to a router (SH-MIG-1).

use super::*;

fn bounds(min: impl Into<Bson>, max: impl Into<Bson>) -> Vec<Bson> {
    let end = |v: Bson| {
        let mut d = Document::new();
        d.push("k", v);
        Bson::from(d)
    };
    vec![end(min.into()), end(max.into())]
}

#[test]
fn chunks_move_when_a_router_is_asked_and_mistakes_are_told() {
    run(async {
        let (cluster, mut c) = cluster("c", 300).await;
        for at in [100, 200] {
            let mut split = doc! { "split": "test.c" };
            split.push("middle", doc! { "k": at });
            c.admin(split).await;
        }
        let mut by_find = doc! { "moveChunk": "test.c", "to": "s1", "_waitForDelete": true };
        by_find.push("find", doc! { "k": 150 });
        let reply = c.admin(by_find.clone()).await;
        assert_eq!(reply.get("ok").and_then(Bson::as_f64), Some(1.0), "{reply:?}");
        assert_eq!(there(&cluster, 1, "c").await, (100..200).collect::<Vec<i64>>());
        assert_eq!(there(&cluster, 0, "c").await.len(), 200);
        // It is there already.
        assert_eq!(c.admin(by_find).await.get("ok").and_then(Bson::as_f64), Some(1.0));
        let mut by_bounds = doc! { "moveChunk": "test.c", "to": "s1", "_waitForDelete": true };
        by_bounds.push("bounds", bounds(200, Bson::MaxKey));
        assert_eq!(c.admin(by_bounds).await.get("ok").and_then(Bson::as_f64), Some(1.0));
        let mut part = doc! { "moveRange": "test.c", "toShard": "s0", "waitForDelete": true };
        part.push("min", doc! { "k": 120 });
        part.push("max", doc! { "k": 130 });
        assert_eq!(c.admin(part).await.get("ok").and_then(Bson::as_f64), Some(1.0));
        assert_eq!(there(&cluster, 0, "c").await, (0..100).chain(120..130).collect::<Vec<i64>>());
        assert_eq!(keys(&mut c, "c").await, (0..300).collect::<Vec<i64>>());
        let wrong = async |c: &mut Client, mut command: Document| {
            command.push("$db", "admin");
            c.err(command).await.0
        };
        let mut unknown = doc! { "moveChunk": "test.c", "to": "s9" };
        unknown.push("find", doc! { "k": 1 });
        assert_eq!(wrong(&mut c, unknown).await, 70);
        let mut unsharded = doc! { "moveChunk": "test.no", "to": "s1" };
        unsharded.push("find", doc! { "k": 1 });
        assert_eq!(wrong(&mut c, unsharded).await, 118);
        let mut beyond = doc! { "moveRange": "test.c", "toShard": "s1" };
        beyond.push("min", doc! { "k": 50 });
        beyond.push("max", doc! { "k": 110 });
        assert_eq!(wrong(&mut c, beyond).await, 2);
        let mut typed = doc! { "moveRange": "test.c", "toShard": "s1", "max": 5 };
        typed.push("min", doc! { "k": 120 });
        assert_eq!(wrong(&mut c, typed).await, 14, "not taken for a range up to the chunk's end");
        cluster.shut_down().await;
    });
}

#[test]
fn a_range_moves_by_its_end_alone() {
    run(async {
        let (cluster, mut c) = cluster("c", 300).await;
        let mut split = doc! { "split": "test.c" };
        split.push("middle", doc! { "k": 100 });
        c.admin(split).await;
        let upto = |to: &str, max: Bson| {
            let mut command =
                doc! { "moveRange": "test.c", "toShard": to, "waitForDelete": true, "$db": "admin" };
            let mut bound = Document::new();
            bound.push("k", max);
            command.push("max", bound);
            command
        };
        // Where a chunk ends, all of that chunk; within one, what is below.
        c.ok(upto("s1", 100.into())).await;
        assert_eq!(there(&cluster, 1, "c").await, (0..100).collect::<Vec<i64>>());
        c.ok(upto("s1", 150.into())).await;
        assert_eq!(there(&cluster, 1, "c").await, (0..150).collect::<Vec<i64>>());
        assert_eq!(there(&cluster, 0, "c").await, (150..300).collect::<Vec<i64>>());
        c.ok(upto("s1", Bson::MaxKey)).await;
        assert_eq!(there(&cluster, 1, "c").await.len(), 300);
        c.ok(upto("s0", 150.into())).await;
        assert_eq!(there(&cluster, 0, "c").await, (100..150).collect::<Vec<i64>>());
        assert_eq!(keys(&mut c, "c").await, (0..300).collect::<Vec<i64>>());
        assert_eq!(c.err(upto("s1", Bson::MinKey)).await.0, 2, "nothing is below");
        let mut typed = upto("s1", 150.into());
        typed.set("max", 5);
        assert_eq!(c.err(typed).await.0, 14);
        let neither = doc! { "moveRange": "test.c", "toShard": "s1", "$db": "admin" };
        assert_eq!(c.err(neither).await.0, 72);
        let (_, text) = c.err(doc! { "moveChunk": "test.c", "to": "s1", "$db": "admin" }).await;
        assert!(text.starts_with("need to specify either a find query"), "{text}");
        cluster.shut_down().await;
    });
}

/// The recipient has to delete what it owned before: the migration takes as long as that.
#[test]
fn one_range_at_a_time_moves_to_or_from_a_shard_and_the_same_is_joined() {
    run(async {
        let (cluster, _) = cluster("c", 300).await;
        let mut donor = cluster.shard(0).await;
        let mut recipient = cluster.shard(1).await;
        donor.ok(move_range("c", "s1", 100, 200)).await;
        recipient.ok(doc! { "setParameter": 1, "orphanCleanupDelaySecs": 3, "$db": "admin" }).await;
        let mut back = move_range("c", "s0", 100, 200);
        back.set("waitForDelete", false);
        recipient.ok(back).await;
        let slow = spawn(async move { donor.run(move_range("c", "s1", 100, 200)).await });
        pause(500).await;
        let mut other = cluster.shard(0).await;
        assert_eq!(other.err(move_range("c", "s1", 0, 50)).await.0, 117, "the donor gives");
        assert_eq!(recipient.err(move_range("c", "s0", 150, 160)).await.0, 117, "the recipient receives");
        let joined = other.run(move_range("c", "s1", 100, 200)).await;
        let first = slow.await.unwrap();
        for reply in [first, joined] {
            assert_eq!(reply.get("ok").and_then(Bson::as_f64), Some(1.0), "{reply:?}");
        }
        assert_eq!(there(&cluster, 1, "c").await, (100..200).collect::<Vec<i64>>());
        // Who leaves its beginning to the donor joins who has done so, wherever it would begin by now.
        let mut back = move_range("c", "s0", 100, 200);
        back.set("waitForDelete", false);
        recipient.ok(back).await;
        let mut open = move_range("c", "s1", 100, 200);
        open.remove("min");
        open.set("maxChunkSizeBytes", 4000);
        let again = open.clone();
        let mut donor = cluster.shard(0).await;
        let slow = spawn(async move { donor.run(open).await });
        pause(500).await;
        let mut grown: Vec<Bson> = Vec::new();
        (0..300).for_each(|i| grown.push(doc! { "_id": 1000 + i, "k": 199, "n": 0 }.into()));
        insert(&mut cluster.router(0).await, "c", grown).await;
        for reply in [other.run(again).await, slow.await.unwrap()] {
            assert_eq!(reply.get("ok").and_then(Bson::as_f64), Some(1.0), "{reply:?}");
        }
        cluster.shut_down().await;
    });
}

/// Indexes have the collation that they have on the donor, whatever the collection's is; what is clustered has no index to go by.
#[test]
fn collections_with_a_collation_and_clustered_ones_move() {
    run(async {
        let (cluster, mut c) = cluster("c", 1).await;
        let mut create = doc! { "create": "l" };
        create.push("collation", doc! { "locale": "en", "strength": 2 });
        c.ok(create).await;
        let mut shard = doc! { "shardCollection": "test.l" };
        shard.push("key", doc! { "k": 1 });
        shard.push("collation", doc! { "locale": "simple" });
        c.admin(shard).await;
        let mut create = doc! { "create": "by" };
        create.push("clusteredIndex", doc! { "key": doc! { "_id": 1 }, "unique": true });
        c.ok(create).await;
        cluster.shard_collection("test.by", doc! { "_id": 1 }).await;
        for coll in ["l", "by"] {
            insert(&mut c, coll, (0..100).map(|i| doc! { "_id": i, "k": i }.into()).collect()).await;
            let mut away =
                doc! { "moveRange": format!("test.{coll}"), "toShard": "s1", "waitForDelete": true };
            let key = if coll == "l" { "k" } else { "_id" };
            for (name, at) in [("min", 20), ("max", 60)] {
                let mut bound = Document::new();
                bound.push(key, at);
                away.push(name, bound);
            }
            c.admin(away).await;
            assert_eq!(there(&cluster, 1, coll).await, (20..60).collect::<Vec<i64>>(), "{coll}");
            assert_eq!(there(&cluster, 0, coll).await.len(), 60, "{coll}");
            assert_eq!(keys(&mut c, coll).await, (0..100).collect::<Vec<i64>>(), "{coll}");
        }
        let all = cluster.shard(1).await.all(doc! { "listIndexes": "l" }).await;
        let of =
            |name: &str| all.iter().find(|d| d.get("name").and_then(Bson::as_str) == Some(name)).cloned();
        assert!(of("k_1").is_some_and(|d| d.get("collation").is_none()), "{all:?}");
        assert!(of("_id_").is_some_and(|d| d.get("collation").is_some()), "{all:?}");
        cluster.shut_down().await;
    });
}

#[test]
fn clean_up_orphaned_returns_when_nothing_of_others_is_left() {
    run(async {
        let (cluster, mut c) = cluster("c", 300).await;
        let mut donor = cluster.shard(0).await;
        donor.ok(doc! { "setParameter": 1, "orphanCleanupDelaySecs": 1, "$db": "admin" }).await;
        let mut away = move_range("c", "s1", 100, 200);
        away.set("waitForDelete", false);
        donor.ok(away).await;
        assert_eq!(there(&cluster, 0, "c").await.len(), 300);
        let hurry = doc! { "cleanupOrphaned": "test.c", "maxTimeMS": 50, "$db": "admin" };
        assert_eq!(donor.err(hurry).await.0, 50);
        donor.ok(doc! { "cleanupOrphaned": "test.c", "$db": "admin" }).await;
        assert_eq!(there(&cluster, 0, "c").await.len(), 200);
        donor.ok(doc! { "cleanupOrphaned": "test.other", "$db": "admin" }).await;
        assert_eq!(keys(&mut c, "c").await.len(), 300);
        cluster.shut_down().await;
    });
}

/// SYS-263: nothing begins to move, and what moves is not committed.
#[test]
fn chunks_stay_where_they_are_while_migrations_are_not_allowed() {
    run(async {
        let (cluster, mut c) = cluster("c", 100).await;
        let set = |allow: Bson| {
            let mut command = doc! { "setAllowMigrations": "test.c" };
            command.push("allowMigrations", allow);
            command.push("$db", "admin");
            command
        };
        assert_eq!(c.err(set(Bson::Int32(1))).await.0, 14);
        assert_eq!(c.err(doc! { "setAllowMigrations": "test.c", "$db": "admin" }).await.0, 40414);
        let none = doc! { "setAllowMigrations": "test.none", "allowMigrations": false, "$db": "admin" };
        assert_eq!(c.err(none).await.0, 118);
        // A range goes there and back all the time.
        let port = cluster.router_port(0);
        let mover = spawn(async move {
            let (mut c, mut done) = (Client::connect(port).await, 0);
            for n in 0..40 {
                let reply = c.run(move_range_by_router(if n % 2 == 0 { "s1" } else { "s0" })).await;
                done += i64::from(reply.get("ok").and_then(Bson::as_f64) == Some(1.0));
                pause(10).await;
            }
            done
        });
        pause(300).await;
        c.ok(set(false.into())).await;
        c.ok(set(false.into())).await;
        // A migration that is given up raises the version of its chunk.
        let before = owners(&mut c).await;
        let moved = mover.await.unwrap();
        assert!((1..40).contains(&moved), "{moved} moves");
        assert_eq!(owners(&mut c).await, before, "nothing moves behind it");
        let owner = before.last().unwrap();
        let other = if owner == "s0" { "s1" } else { "s0" };
        let refused = c.err(move_range_by_router(other)).await;
        assert_eq!(refused.0, 117, "{refused:?}");
        assert_eq!(keys(&mut c, "c").await.len(), 100);
        c.ok(set(true.into())).await;
        c.ok(move_range_by_router(other)).await;
        assert_eq!(keys(&mut c, "c").await.len(), 100);
        cluster.shut_down().await;
    });
}
async fn owners(c: &mut Client) -> Vec<String> {
    let chunks = c.all(doc! { "find": "chunks", "sort": { "min": 1 }, "$db": "config" }).await;
    chunks.iter().filter_map(|d| d.get("shard").and_then(Bson::as_str).map(str::to_owned)).collect()
}
fn move_range_by_router(to: &str) -> Document {
    let mut command = doc! { "moveRange": "test.c", "toShard": to, "$db": "admin" };
    command.push("min", doc! { "k": 50 });
    command
}

/// A migration keeps and sends its bounds several times over.
#[test]
fn nothing_is_cut_or_moved_at_a_key_that_is_too_large() {
    run(async {
        let (cluster, mut c) = cluster("c", 10).await;
        let large = |letter: &str| doc! { "k": letter.repeat(3 << 20) };
        c.ok(doc! { "addShardToZone": "s1", "zone": "z", "$db": "admin" }).await;
        let mut zone = doc! { "updateZoneKeyRange": "test.c", "zone": "z", "$db": "admin" };
        zone.push("min", large("x"));
        zone.push("max", large("y"));
        let mut split = doc! { "split": "test.c", "$db": "admin" };
        split.push("middle", large("y"));
        let mut away = doc! { "moveRange": "test.c", "toShard": "s1", "$db": "admin" };
        away.push("min", large("y"));
        for command in [zone, split, away] {
            let (code, text) = c.err(command).await;
            assert_eq!(code, 10334, "{}", &text[..200.min(text.len())]);
        }
        // What it cannot be cut at may be a key, and the shard is free for others.
        let mut insert = doc! { "insert": "c" };
        insert.push("documents", vec![Bson::from(large("y"))]);
        c.ok(insert).await;
        c.ok(doc! { "moveRange": "test.c", "toShard": "s1", "min": { "k": 5 }, "$db": "admin" }).await;
        assert_eq!(c.all(doc! { "find": "c" }).await.len(), 11);
        cluster.shut_down().await;
    });
}
