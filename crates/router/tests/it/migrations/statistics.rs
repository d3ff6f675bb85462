//! What routers and shards count of refreshes and migrations, and that a refresh behind a move reads what has changed and no more
//! (SYS-198, SYS-199).

use super::*;

async fn status(c: &mut Client) -> Document {
    c.ok(doc! { "serverStatus": 1, "$db": "admin" }).await
}
fn number(d: &Document, path: &str) -> i64 {
    let mut at = Some(Bson::from(d.clone()));
    for name in path.split('.') {
        at = at.and_then(|d| d.as_doc()?.get(name).cloned());
    }
    at.as_ref().and_then(Bson::as_i64).unwrap_or_else(|| panic!("no {path}"))
}
const CACHE: &str = "shardingStatistics.catalogCache";

#[test]
fn a_refresh_behind_a_move_reads_what_has_changed_and_no_more() {
    run(async {
        let (mut cluster, mut c) = cluster("c", 1).await;
        c.admin(doc! { "balancerStop": 1 }).await;
        let hashed = doc! { "shardCollection": "test.h", "key": { "k": "hashed" }, "numInitialChunks": 1000 };
        c.admin(hashed).await;
        let config = |name: &str| format!("{CACHE}.{name}");
        // A router that has not seen any of it reads all of it once.
        let fresh = cluster.add_router().await;
        let mut other = cluster.router(fresh).await;
        other.ok(doc! { "find": "h", "filter": { "k": 1 } }).await;
        let before = status(&mut other).await;
        let full = number(&before, &config("countFullRefreshesStarted"));
        assert!(full >= 1);
        // Nothing is asked as long as nobody says that it is old.
        let mut servers = cluster.config_server().await;
        let reads = async |servers: &mut Client| number(&status(servers).await, "metrics.document.returned");
        let known = status(&mut other).await;
        for k in 0..50 {
            other.ok(doc! { "find": "h", "filter": { "k": k } }).await;
        }
        let same = status(&mut other).await;
        for name in ["countFullRefreshesStarted", "countIncrementalRefreshesStarted"] {
            assert_eq!(number(&same, &config(name)), number(&known, &config(name)), "{name}");
        }
        c.ok(doc! { "find": "h" }).await;
        let returned = reads(&mut servers).await;
        let inner = doc! { "min.k": doc! { "$type": "long" }, "max.k": doc! { "$type": "long" } };
        let chunks = c.all(doc! { "find": "chunks", "filter": inner, "limit": 1, "$db": "config" }).await;
        let moved = &chunks[0];
        let to = if moved.get("shard").and_then(Bson::as_str) == Some("s0") { "s1" } else { "s0" };
        let mut away = doc! { "moveRange": "test.h", "toShard": to };
        for bound in ["min", "max"] {
            away.push(bound, moved.get(bound).cloned().unwrap());
        }
        away.push("$db", "admin");
        c.ok(away).await;
        // It finds out by being sent away.
        for k in 0..200 {
            other.ok(doc! { "find": "h", "filter": { "k": k } }).await;
        }
        other.ok(doc! { "find": "h" }).await;
        let after = status(&mut other).await;
        assert_eq!(number(&after, &config("countFullRefreshesStarted")), full);
        assert_eq!(
            number(&after, &config("countIncrementalRefreshesStarted")),
            number(&same, &config("countIncrementalRefreshesStarted")) + 1
        );
        assert!(number(&after, &config("countStaleConfigErrors")) >= 1);
        assert!(number(&after, &config("totalRefreshWaitTimeMicros")) > 0);
        assert_eq!(number(&after, &config("numActiveIncrementalRefreshes")), 0);
        // All nodes together, at every step of the move, have read a few chunks out of a thousand.
        let read = reads(&mut servers).await - returned;
        assert!(read < 100, "{read} documents were read of the config servers for one move");
        cluster.shut_down().await;
    });
}

#[test]
fn shards_count_what_migrations_have_done() {
    run(async {
        let (cluster, mut c) = cluster("c", 100).await;
        let (mut donor, mut recipient) = (cluster.shard(0).await, cluster.shard(1).await);
        donor.ok(move_range("c", "s1", 30, 50)).await;
        let of = |name: &str| format!("shardingStatistics.{name}");
        let (gave, got) = (status(&mut donor).await, status(&mut recipient).await);
        for (name, n) in [
            ("countDonorMoveChunkStarted", 1),
            ("countDonorMoveChunkCommitted", 1),
            ("countDonorMoveChunkAborted", 0),
            ("countDocsClonedOnDonor", 20),
            ("countRecipientMoveChunkStarted", 0),
            ("countDocsDeletedByRangeDeleter", 20),
        ] {
            assert_eq!(number(&gave, &of(name)), n, "{name}");
        }
        let times = [
            "totalDonorMoveChunkTimeMillis",
            "totalDonorChunkCloneTimeMillis",
            "totalCriticalSectionTimeMillis",
        ];
        let [all, clone, section] = times.map(|name| number(&gave, &of(name)));
        let commit = number(&gave, &of("totalCriticalSectionCommitTimeMillis"));
        assert!(clone > 0 && commit > 0 && clone + commit <= all + 2 && commit <= section + 1, "{gave:?}");
        for (name, n) in [
            ("countRecipientMoveChunkStarted", 1),
            ("countDocsClonedOnRecipient", 20),
            ("countDonorMoveChunkStarted", 0),
        ] {
            assert_eq!(number(&got, &of(name)), n, "{name}");
        }
        let bytes = number(&got, &of("countBytesClonedOnRecipient"));
        assert!(bytes > 20 * 20 && bytes == number(&gave, &of("countBytesClonedOnDonor")), "{bytes}");
        // A range that stays: its chunk is another's.
        let refused = donor.run(move_range("c", "s1", 30, 50)).await;
        assert_eq!(refused.get("ok").and_then(Bson::as_f64), Some(0.0));
        assert_eq!(
            number(&status(&mut donor).await, &of("countDonorMoveChunkStarted")),
            1,
            "it has not begun"
        );
        let told = status(&mut donor).await;
        let config =
            told.get("sharding").and_then(|d| d.as_doc()?.get("configsvrConnectionString")?.as_str());
        assert_eq!(config, Some(format!("c/127.0.0.1:{}", cluster.config_port()).as_str()));
        let none = cluster.config_server().await.ok(doc! { "serverStatus": 1, "$db": "admin" }).await;
        assert!(none.get("shardingStatistics").is_none());
        c.ok(doc! { "find": "c" }).await;
        cluster.shut_down().await;
    });
}

async fn distribution(c: &mut Client) -> Vec<(String, i64, i64)> {
    let mut all = doc! { "aggregate": 1, "cursor": {}, "$db": "admin" };
    all.push("pipeline", vec![Bson::from(doc! { "$shardedDataDistribution": {} })]);
    let reply = c.ok(all).await;
    let batch = reply
        .get("cursor")
        .and_then(|d| d.as_doc()?.get("firstBatch")?.as_array().map(<[Bson]>::to_vec))
        .unwrap();
    let of_c =
        batch.iter().filter_map(Bson::as_doc).find(|d| d.get("ns").and_then(Bson::as_str) == Some("test.c"));
    let shards = of_c.and_then(|d| d.get("shards")?.as_array().map(<[Bson]>::to_vec)).unwrap();
    let mut told: Vec<_> = shards
        .iter()
        .filter_map(Bson::as_doc)
        .map(|d| {
            let name = d.get("shardName").and_then(Bson::as_str).unwrap().to_owned();
            (name, number(d, "numOwnedDocuments"), number(d, "numOrphanedDocs"))
        })
        .collect();
    told.sort();
    told
}

#[test]
fn what_waits_to_be_deleted_is_told_as_orphans() {
    run(async {
        let (cluster, mut c) = cluster("c", 100).await;
        let mut donor = cluster.shard(0).await;
        donor.ok(doc! { "setParameter": 1, "orphanCleanupDelaySecs": 600, "$db": "admin" }).await;
        let mut away = move_range("c", "s1", 60, Bson::MaxKey);
        away.set("waitForDelete", false);
        donor.ok(away).await;
        let told = distribution(&mut c).await;
        assert_eq!(told, [("s0".to_owned(), 60, 40), ("s1".to_owned(), 40, 0)]);
        let stats = donor.ok(doc! { "collStats": "c" }).await;
        assert_eq!((number(&stats, "count"), number(&stats, "numOrphanDocs")), (100, 40));
        cluster.shut_down().await;
    });
}
