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
        cluster.shut_down().await;
    });
}
