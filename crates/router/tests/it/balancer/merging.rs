//! Chunks become fewer: at a command, by and by, and where a collection is defragmented (SH-SPLIT-2, SH-BAL-7).

use super::*;

/// Nobody asks for what was before that.
async fn histories_are_short(cluster: &Cluster) {
    let mut config = cluster.config_server().await;
    config.ok(doc! { "setParameter": 1, "minSnapshotHistoryWindowInSeconds": 0, "$db": "admin" }).await;
    config.ok(doc! { "setParameter": 1, "transactionLifetimeLimitSeconds": 1, "$db": "admin" }).await;
}
async fn shard(c: &mut Client, coll: &str, points: &[i64]) {
    c.ok(doc! { "shardCollection": format!("test.{coll}"), "key": doc! { "k": 1 }, "$db": "admin" }).await;
    for k in points {
        let middle = doc! { "k": *k };
        c.ok(doc! { "split": format!("test.{coll}"), "middle": middle, "$db": "admin" }).await;
    }
}
async fn give(c: &mut Client, coll: &str, k: i64, to: &str) {
    let mut give = doc! { "moveChunk": format!("test.{coll}") };
    give.push("find", doc! { "k": k });
    give.push("to", to);
    c.admin(give).await;
}
fn merge_all(coll: &str, on: &str) -> Document {
    doc! { "mergeAllChunksOnShard": format!("test.{coll}"), "shard": on, "$db": "admin" }
}
async fn ends(c: &mut Client, coll: &str) -> Vec<Option<i64>> {
    chunks(c, coll).await.iter().skip(1).map(|chunk| chunk.0.as_i64()).collect()
}
fn some(of: &[i64]) -> Vec<Option<i64>> {
    of.iter().map(|k| Some(*k)).collect()
}

#[test]
fn neighbours_of_a_shard_become_one_when_nobody_needs_their_histories() {
    run(async {
        let (cluster, mut c) = cluster().await;
        c.admin(doc! { "balancerStop": 1 }).await;
        shard(&mut c, "c", &[10, 20, 30, 40, 50, 60]).await;
        give(&mut c, "c", 30, "s1").await;
        // All of it is younger than what snapshots may ask for.
        let reply = c.ok(merge_all("c", "s0")).await;
        assert_eq!(reply.get("numMergedChunks").and_then(Bson::as_i64), Some(0), "{reply:?}");
        histories_are_short(&cluster).await;
        pause(2_100).await;
        // At most two, then all of the shard, but not over the end of a zone nor together with what is marked.
        let mut two = merge_all("c", "s0");
        two.push("maxNumberOfChunksToMerge", 2);
        assert_eq!(c.ok(two).await.get("numMergedChunks").and_then(Bson::as_i64), Some(2));
        assert_eq!(ends(&mut c, "c").await, some(&[20, 30, 40, 50, 60]));
        c.admin(doc! { "addShardToZone": "s0", "zone": "z" }).await;
        let mut zone = doc! { "updateZoneKeyRange": "test.c", "zone": "z", "$db": "admin" };
        zone.push("min", doc! { "k": 50 });
        zone.push("max", doc! { "k": 60 });
        c.ok(zone).await;
        assert_eq!(c.ok(merge_all("c", "s0")).await.get("numMergedChunks").and_then(Bson::as_i64), Some(2));
        assert_eq!(ends(&mut c, "c").await, some(&[30, 40, 50, 60]));
        // What the changelog tells.
        let mut find = doc! { "find": "changelog", "$db": "config" };
        find.push("filter", doc! { "what": "autoMerge", "ns": "test.c" });
        let told = c.all(find).await;
        let n =
            |d: &Document| d.get("details").and_then(Bson::as_doc).and_then(|d| d.get("numChunks")?.as_i64());
        assert_eq!(told.iter().map(n).collect::<Vec<_>>(), some(&[2, 2]), "{told:?}");
        // Who cannot be served.
        let mut one = merge_all("c", "s0");
        one.push("maxNumberOfChunksToMerge", 1);
        assert_eq!(c.err(one).await.0, 51_024);
        assert_eq!(c.err(merge_all("c", "s9")).await.0, 70);
        assert_eq!(c.err(merge_all("unsharded", "s0")).await.0, 118);
        assert_eq!(c.err(doc! { "mergeAllChunksOnShard": "test.c", "$db": "admin" }).await.0, 40_414);
        assert_eq!(c.err(doc! { "mergeAllChunksOnShard": "test.c", "shard": 1, "$db": "admin" }).await.0, 14);
        cluster.shut_down().await;
    });
}

#[test]
fn chunks_become_fewer_by_and_by_unless_somebody_has_excepted_them() {
    run(async {
        let (cluster, mut c) = cluster().await;
        shard(&mut c, "kept", &[10, 20, 30]).await;
        shard(&mut c, "merged", &[10, 20, 30]).await;
        let mut except = doc! { "configureCollectionBalancing": "test.kept", "$db": "admin" };
        except.push("enableAutoMerger", false);
        c.ok(except).await;
        set(&mut c, "automerge", "enabled", false).await;
        histories_are_short(&cluster).await;
        let mut config = cluster.config_server().await;
        for (name, to) in [("autoMergerIntervalSecs", 1), ("autoMergerThrottlingMS", 0)] {
            let mut set = doc! { "setParameter": 1 };
            set.push(name, to);
            config.admin(set).await;
        }
        pause(4_000).await;
        assert_eq!(chunks(&mut c, "merged").await.len(), 4);
        set(&mut c, "automerge", "enabled", true).await;
        until("chunks were not merged", async || chunks(&mut c, "merged").await.len() == 1).await;
        assert_eq!(chunks(&mut c, "kept").await.len(), 4);
        // Whoever writes goes on where the chunk is now.
        fill(&mut c, "merged", 0..40).await;
        assert_eq!(everything(&mut c, "merged").await, 40);
        cluster.shut_down().await;
    });
}

#[test]
fn a_collection_in_pieces_has_few_chunks_when_it_has_been_defragmented() {
    run(async {
        let (cluster, mut c) = cluster().await;
        c.admin(doc! { "balancerStop": 1 }).await;
        forget_orphans_at_once(&cluster, 2).await;
        // Small pieces here and there, of 160 KB; one of more than a quarter of a chunk stays where it is.
        let points: Vec<i64> = (1..12).map(|n| n * 5).collect();
        shard(&mut c, "c", &points).await;
        let keys: Vec<i64> = (0..60).chain(std::iter::repeat_n(27, 8)).collect();
        fill_with(&mut c, "c", &keys).await;
        for k in [7, 17, 27, 37, 47, 57] {
            give(&mut c, "c", k, "s1").await;
        }
        let before = chunks(&mut c, "c").await;
        assert_eq!(before.len(), 12, "{before:?}");
        let mut wanted = doc! { "configureCollectionBalancing": "test.c", "$db": "admin" };
        wanted.push("defragmentCollection", true);
        c.ok(wanted).await;
        let status = c.admin(doc! { "balancerCollectionStatus": "test.c" }).await;
        assert_eq!(
            status.get("firstComplianceViolation").and_then(Bson::as_str),
            Some("defragmentingChunks")
        );
        let details = status.get("details").and_then(Bson::as_doc).unwrap();
        assert_eq!(details.get("currentPhase").and_then(Bson::as_str), Some("mergeAndMeasureChunks"));
        c.admin(doc! { "balancerStart": 1 }).await;
        until("it is defragmented", async || {
            let status = c.admin(doc! { "balancerCollectionStatus": "test.c" }).await;
            status.get("firstComplianceViolation").is_none()
        })
        .await;
        let after = chunks(&mut c, "c").await;
        // Small ones have gone to their neighbours, and the large one to nobody.
        assert!(after.len() <= 3, "{after:?}");
        let large = doc! { "find": "c", "filter": doc! { "k": 27 } };
        assert_eq!(cluster.shard(1).await.all(large).await.len(), 9, "{after:?}");
        assert_eq!(everything(&mut c, "c").await, 68);
        let entry =
            c.all(doc! { "find": "collections", "filter": doc! { "_id": "test.c" }, "$db": "config" }).await;
        assert!(
            entry[0].get("defragmentCollection").is_none() && entry[0].get("defragmentationPhase").is_none()
        );
        cluster.shut_down().await;
    });
}
