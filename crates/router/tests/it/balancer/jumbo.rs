//! Chunks that are too large to be moved (SYS-245). What 6.0.5 does was asked of a cluster of its servers.

use super::*;

fn moving(command: &str, coll: &str, to: &str) -> Document {
    let mut moving = Document::new();
    moving.push(command, format!("test.{coll}"));
    moving.push("toShard", to);
    moving.push("_waitForDelete", true);
    moving.push("$db", "admin");
    moving
}
fn by_key(command: &str, k: i64) -> Document {
    let mut command = moving(command, "j", "s1");
    command.push("find", doc! { "k": k });
    command
}
fn from_min(coll: &str, to: &str, min: impl Into<Bson>) -> Document {
    let mut command = moving("moveRange", coll, to);
    let mut bound = Document::new();
    bound.push("k", min);
    command.push("min", bound);
    command
}
fn upto(coll: &str, to: &str, max: impl Into<Bson>) -> Document {
    let mut command = moving("moveRange", coll, to);
    let mut bound = Document::new();
    bound.push("k", max);
    command.push("max", bound);
    command
}

#[test]
fn a_chunk_that_is_too_large_moves_only_when_somebody_forces_it() {
    run(async {
        let (cluster, mut c) = cluster().await;
        c.admin(doc! { "balancerStop": 1 }).await;
        forget_orphans_at_once(&cluster, 2).await;
        cluster.shard_collection("test.j", doc! { "k": 1 }).await;
        fill_with(&mut c, "j", &[5; 100]).await;
        let mut whole = from_min("j", "s1", Bson::MinKey);
        whole.push("max", doc! { "k": Bson::MaxKey });
        for command in [by_key("moveChunk", 5), whole.clone(), from_min("j", "s1", Bson::MinKey)] {
            let (code, text) = c.err(command).await;
            let expected = "Cannot move chunk: the maximum number of documents for a chunk is 62, the maximum chunk size is 1048576, \
                            average document size is 32805. Found 100 documents in chunk  ns: test.j { k: MinKey } -> { k: MaxKey }";
            assert_eq!((code, &*text), (153, expected));
        }
        assert!(!chunks(&mut c, "j").await[0].3, "only the balancer marks");
        let mut unforced = by_key("moveChunk", 5);
        unforced.push("forceJumbo", false);
        assert_eq!(c.err(unforced).await.0, 153);
        whole.push("forceJumbo", true);
        c.ok(whole).await;
        assert_eq!(counts(&cluster, 2, "j").await, [0, 100]);
        assert_eq!(everything(&mut c, "j").await, 100);
        // Nothing stays on a shard that goes, and nobody needs to say so.
        c.admin(doc! { "balancerStart": 1 }).await;
        until("the shard is gone", async || {
            let reply = c.run(doc! { "removeShard": "s1", "$db": "admin" }).await;
            reply.get("state").and_then(Bson::as_str) == Some("completed")
        })
        .await;
        assert_eq!(everything(&mut c, "j").await, 100);
        cluster.shut_down().await;
    });
}

#[test]
fn a_range_without_an_end_is_as_much_as_may_move_at_once() {
    run(async {
        let (cluster, mut c) = cluster().await;
        c.admin(doc! { "balancerStop": 1 }).await;
        forget_orphans_at_once(&cluster, 2).await;
        cluster.shard_collection("test.g", doc! { "k": 1 }).await;
        fill(&mut c, "g", 0..200).await;
        c.ok(from_min("g", "s1", Bson::MinKey)).await;
        c.ok(from_min("g", "s1", 100_i64)).await;
        // Said twice, it has been done.
        c.ok(from_min("g", "s1", 100_i64)).await;
        let of = |min: Bson, max: Bson, shard: &str| (min, max, shard.to_owned(), false);
        let at = Bson::Int64;
        let expected = [
            of(Bson::MinKey, at(30), "s1"),
            of(at(30), at(100), "s0"),
            of(at(100), at(130), "s1"),
            of(at(130), Bson::MaxKey, "s0"),
        ];
        assert_eq!(chunks(&mut c, "g").await, expected);
        assert_eq!(counts(&cluster, 2, "g").await, [140, 60]);
        // Not beyond its chunk.
        c.ok(from_min("g", "s1", 90_i64)).await;
        assert_eq!(chunks(&mut c, "g").await[2], of(at(90), at(100), "s1"));
        assert_eq!(everything(&mut c, "g").await, 200);
        cluster.shut_down().await;
    });
}

/// The mirror: as much as may move at once below the end that is named.
#[test]
fn a_range_without_a_beginning_is_as_much_as_may_move_at_once() {
    run(async {
        let (cluster, mut c) = cluster().await;
        c.admin(doc! { "balancerStop": 1 }).await;
        forget_orphans_at_once(&cluster, 2).await;
        cluster.shard_collection("test.u", doc! { "k": 1 }).await;
        fill(&mut c, "u", 0..200).await;
        c.ok(upto("u", "s1", Bson::MaxKey)).await;
        c.ok(upto("u", "s1", 100_i64)).await;
        // Said twice, it has been done.
        c.ok(upto("u", "s1", 100_i64)).await;
        let of = |min: Bson, max: Bson, shard: &str| (min, max, shard.to_owned(), false);
        let at = Bson::Int64;
        let expected = [
            of(Bson::MinKey, at(70), "s0"),
            of(at(70), at(100), "s1"),
            of(at(100), at(170), "s0"),
            of(at(170), Bson::MaxKey, "s1"),
        ];
        assert_eq!(chunks(&mut c, "u").await, expected);
        assert_eq!(counts(&cluster, 2, "u").await, [140, 60]);
        // Not beyond its chunk.
        c.ok(upto("u", "s1", 110_i64)).await;
        assert_eq!(chunks(&mut c, "u").await[2], of(at(100), at(110), "s1"));
        assert_eq!(everything(&mut c, "u").await, 200);
        // What has one key stays together, also where it is more than that.
        cluster.shard_collection("test.same", doc! { "k": 1 }).await;
        let keys: Vec<i64> = (0..40).chain(std::iter::repeat_n(50, 40)).collect();
        fill_with(&mut c, "same", &keys).await;
        c.ok(upto("same", "s1", Bson::MaxKey)).await;
        assert_eq!(chunks(&mut c, "same").await[1], of(at(50), Bson::MaxKey, "s1"));
        assert_eq!(counts(&cluster, 2, "same").await, [40, 40]);
        cluster.shut_down().await;
    });
}

#[test]
fn the_balancer_splits_what_is_too_large_or_marks_it() {
    run(async {
        let (cluster, mut c) = cluster().await;
        c.admin(doc! { "balancerStop": 1 }).await;
        forget_orphans_at_once(&cluster, 2).await;
        cluster.shard_collection("test.m", doc! { "k": 1 }).await;
        // One key is more than may move, and all others lie behind it.
        let keys: Vec<i64> = std::iter::repeat_n(5, 150).chain(10..110).collect();
        fill_with(&mut c, "m", &keys).await;
        c.admin(doc! { "balancerStart": 1 }).await;
        let heavy = (Bson::MinKey, Bson::Int64(10), "s0".to_owned(), true);
        until("what cannot be split is marked", async || chunks(&mut c, "m").await[0] == heavy).await;
        until("the rest is evened out", async || counts(&cluster, 2, "m").await[1] >= 70).await;
        rounds(&mut c, 3).await;
        assert_eq!(chunks(&mut c, "m").await[0], heavy);
        assert_eq!(everything(&mut c, "m").await, 250);
        let mut told = doc! { "find": "actionlog", "$db": "config" };
        told.push("filter", doc! { "what": "balancer.round", "details.chunksMoved": { "$gte": 1 } });
        assert!(!c.all(told).await.is_empty());
        cluster.shut_down().await;
    });
}

/// The mark, and not the size, keeps it from being tried again: who takes the mark away has it tried.
#[test]
fn what_is_marked_is_passed_over_until_the_mark_is_taken_away() {
    run(async {
        let (cluster, mut c) = cluster().await;
        c.admin(doc! { "balancerStop": 1 }).await;
        forget_orphans_at_once(&cluster, 2).await;
        cluster.shard_collection("test.z", doc! { "k": 1 }).await;
        fill_with(&mut c, "z", &[5; 80]).await;
        c.admin(doc! { "addShardToZone": "s1", "zone": "east" }).await;
        let mut range = doc! { "updateZoneKeyRange": "test.z", "zone": "east" };
        range.push("min", doc! { "k": 0 });
        range.push("max", doc! { "k": 9 });
        c.admin(range).await;
        let violation = async |c: &mut Client| {
            let status = c.run(doc! { "balancerCollectionStatus": "test.z", "$db": "admin" }).await;
            status.get("firstComplianceViolation").and_then(Bson::as_str).map(str::to_owned)
        };
        assert_eq!(violation(&mut c).await.as_deref(), Some("zoneViolation"), "a chunk is to be cut");
        c.admin(doc! { "balancerStart": 1 }).await;
        let heavy =
            async |c: &mut Client| chunks(c, "z").await.into_iter().find(|chunk| chunk.0 == Bson::Int32(0));
        let marked = Some((Bson::Int32(0), Bson::Int32(9), "s0".to_owned(), true));
        until("it is marked", async || heavy(&mut c).await == marked).await;
        assert_eq!(violation(&mut c).await.as_deref(), Some("zoneViolation"));
        // Whoever wants such chunks to be moved has not said so of this one.
        set(&mut c, "balancer", "attemptToBalanceJumboChunks", true).await;
        rounds(&mut c, 3).await;
        assert_eq!(heavy(&mut c).await, marked);
        let mut clear = doc! { "clearJumboFlag": "test.z", "$db": "admin" };
        clear.push("find", doc! { "k": 5 });
        c.ok(clear).await;
        let there = Some((Bson::Int32(0), Bson::Int32(9), "s1".to_owned(), false));
        until("it is where it belongs", async || heavy(&mut c).await == there).await;
        assert_eq!(counts(&cluster, 2, "z").await[1], 80);
        assert_eq!(everything(&mut c, "z").await, 80);
        cluster.shut_down().await;
    });
}
