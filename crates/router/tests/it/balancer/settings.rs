//! Settings of all collections and of single ones, and how soon the balancer goes by them (SYS-242, SYS-243).

use super::*;

async fn configure(c: &mut Client, coll: &str, field: &str, to: impl Into<Bson>) {
    let mut command = doc! { "configureCollectionBalancing": format!("test.{coll}"), "$db": "admin" };
    command.push(field, to);
    c.ok(command).await;
}

#[test]
fn settings_of_one_collection_and_of_all_change_the_next_round() {
    run(async {
        let (cluster, mut c) = cluster().await;
        forget_orphans_at_once(&cluster, 2).await;
        set(&mut c, "chunksize", "value", 128).await;
        for coll in ["a", "b"] {
            cluster.shard_collection(&format!("test.{coll}"), doc! { "k": 1 }).await;
            fill(&mut c, coll, 0..200).await;
        }
        rounds(&mut c, 2).await;
        for coll in ["a", "b"] {
            assert_eq!(counts(&cluster, 2, coll).await, [200, 0], "{coll}: little for chunks of 128 MB");
        }
        configure(&mut c, "a", "chunkSize", 1).await;
        rounds(&mut c, 1).await;
        assert!(chunks(&mut c, "a").await.len() > 1, "a smaller size is one for the next round");
        assert_eq!(counts(&cluster, 2, "b").await, [200, 0], "it is one of another collection");
        // A shard moves one range in a round: those of the other collection come first.
        until("the one is evened out", async || counts(&cluster, 2, "a").await[1] >= 60).await;
        // As `sh.disableBalancing` and `sh.enableBalancing` have it.
        change(&mut c, "collections", "test.b", "$set", doc! { "noBalance": true }).await;
        set(&mut c, "chunksize", "value", 1).await;
        rounds(&mut c, 2).await;
        assert_eq!(counts(&cluster, 2, "b").await, [200, 0], "excepted from balancing");
        change(&mut c, "collections", "test.b", "$unset", doc! { "noBalance": 1 }).await;
        rounds(&mut c, 1).await;
        assert!(counts(&cluster, 2, "b").await[1] > 0, "everybody's size, and excepted no more");
        until("the other is evened out", async || counts(&cluster, 2, "b").await[1] >= 60).await;
        for coll in ["a", "b"] {
            assert_eq!(everything(&mut c, coll).await, 200, "{coll}");
        }
        cluster.shut_down().await;
    });
}

/// 6.0.5 has no automatic splitter any more: `autosplit` and `enableAutoSplitter` are kept, and nobody goes by them.
#[test]
fn chunks_are_cut_when_they_move_and_not_when_they_grow() {
    run(async {
        let (cluster, mut c) = cluster().await;
        c.admin(doc! { "balancerStop": 1 }).await;
        forget_orphans_at_once(&cluster, 2).await;
        cluster.shard_collection("test.c", doc! { "k": 1 }).await;
        set(&mut c, "autosplit", "enabled", true).await;
        configure(&mut c, "c", "enableAutoSplitter", true).await;
        let entries = c.all(doc! { "find": "collections", "$db": "config" }).await;
        let entry = entries.iter().find(|d| d.get("_id").and_then(Bson::as_str) == Some("test.c")).unwrap();
        assert_eq!(entry.get("noAutoSplit"), Some(&Bson::Boolean(false)), "{entry:?}");
        fill(&mut c, "c", 0..200).await;
        rounds(&mut c, 2).await;
        assert_eq!(chunks(&mut c, "c").await.len(), 1, "six times the size of a chunk");
        // Nor is it by the mode of old versions that did only that.
        set(&mut c, "balancer", "mode", "autoSplitOnly").await;
        set(&mut c, "balancer", "stopped", false).await;
        rounds(&mut c, 2).await;
        assert_eq!(chunks(&mut c, "c").await.len(), 1);
        configure(&mut c, "c", "enableAutoSplitter", false).await;
        set(&mut c, "autosplit", "enabled", false).await;
        set(&mut c, "balancer", "mode", "full").await;
        until("pieces move", async || counts(&cluster, 2, "c").await[1] >= 60).await;
        let first = chunks(&mut c, "c").await.swap_remove(0);
        assert_eq!(first, (Bson::MinKey, Bson::Int64(30), "s1".to_owned(), false), "a chunk's worth");
        assert_eq!(everything(&mut c, "c").await, 200);
        cluster.shut_down().await;
    });
}
