//! Who reads while ranges move: everything that was there is found, once.

use super::*;
use pando_bson::Value;

fn cursor_id(reply: &Document) -> i64 {
    reply.to_raw().get_path("cursor.id").and_then(|v| v.as_i64()).unwrap()
}
fn batch(reply: &Document, name: &str) -> Vec<i64> {
    let raw = reply.to_raw();
    let Some(Value::Array(list)) = raw.get_path(&format!("cursor.{name}")) else { panic!("{reply:?}") };
    list.iter().filter_map(|e| e.value().as_doc()?.get("k")?.as_i64()).collect()
}

/// Also where the shard had everything when the cursor was opened.
#[test]
fn a_cursor_finds_everything_once_though_its_range_moves_away() {
    run(async {
        let (cluster, mut c) = cluster("c", 100).await;
        for (from, to, keep) in [(0, "s1", 50), (0, "s1", 0), (1, "s0", 0)] {
            let first = c.ok(doc! { "find": "c", "batchSize": 2 }).await;
            let (id, mut seen) = (cursor_id(&first), batch(&first, "firstBatch"));
            let mut shard = cluster.shard(from).await;
            let max = if keep > 0 { Bson::from(keep) } else { Bson::MaxKey };
            let min = if keep > 0 { Bson::MinKey } else { Bson::from(50) };
            let (min, max) = if to == "s0" { (Bson::MinKey, Bson::from(50)) } else { (min, max) };
            let mut away = move_range("c", to, min, max);
            away.set("waitForDelete", false);
            shard.ok(away).await;
            pause(500).await;
            let mut id = id;
            while id != 0 {
                let more = c.ok(doc! { "getMore": id, "collection": "c", "batchSize": 7 }).await;
                seen.extend(batch(&more, "nextBatch"));
                id = cursor_id(&more);
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..100).collect::<Vec<i64>>(), "to {to}");
        }
        assert_eq!(keys(&mut c, "c").await, (0..100).collect::<Vec<i64>>());
        cluster.shut_down().await;
    });
}

/// Documents that have moved since are nowhere at that time: that is told, not passed over.
#[test]
fn a_snapshot_from_before_a_move_is_refused() {
    run(async {
        let (cluster, mut c) = cluster("c", 100).await;
        let reply = c.ok(doc! { "find": "c", "limit": 1 }).await;
        let at = reply.get("operationTime").cloned().unwrap();
        let mut concern = doc! { "level": "snapshot" };
        concern.push("atClusterTime", at);
        let mut find = doc! { "find": "c" };
        find.push("readConcern", concern);
        assert_eq!(c.all(find.clone()).await.len(), 100);
        let mut shard = cluster.shard(0).await;
        shard.ok(move_range("c", "s1", 20, 60)).await;
        assert_eq!(c.err(find).await.0, 246);
        let mut now = doc! { "find": "c" };
        now.push("readConcern", doc! { "level": "snapshot" });
        assert_eq!(c.all(now).await.len(), 100);
        cluster.shut_down().await;
    });
}

/// Neither what has moved away and is not deleted yet, nor what is not committed.
#[test]
fn all_documents_are_counted_once_while_some_are_there_twice() {
    run(async {
        let (cluster, mut c) = cluster("c", 100).await;
        let mut shard = cluster.shard(0).await;
        shard.ok(doc! { "setParameter": 1, "orphanCleanupDelaySecs": 600, "$db": "admin" }).await;
        let mut away = move_range("c", "s1", 50, Bson::MaxKey);
        away.set("waitForDelete", false);
        shard.ok(away).await;
        assert_eq!(there(&cluster, 0, "c").await.len(), 100, "nothing is deleted yet");
        for query in [doc! {}, doc! { "k": { "$gte": 0 } }] {
            let counted = c.ok(doc! { "count": "c", "query": query }).await;
            assert_eq!(counted.get("n").and_then(Bson::as_i64), Some(100));
        }
        cluster.shut_down().await;
    });
}
