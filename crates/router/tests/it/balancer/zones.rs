//! Zones, as people tell them to a router (SYS-246).

use super::*;

fn range(min: impl Into<Bson>, max: impl Into<Bson>, zone: impl Into<Bson>) -> Document {
    let mut command = doc! { "updateZoneKeyRange": "test.c" };
    for (name, at) in [("min", min.into()), ("max", max.into())] {
        let mut bound = Document::new();
        bound.push("k", at);
        command.push(name, bound);
    }
    command.push("zone", zone);
    command.push("$db", "admin");
    command
}
fn of_shard(command: &str, shard: &str) -> Document {
    let mut all = Document::new();
    all.push(command, shard);
    all.push("zone", "east");
    all.push("$db", "admin");
    all
}

#[test]
fn zones_are_told_to_a_router_and_their_ranges_do_not_overlap() {
    run(async {
        let (cluster, mut c) = cluster().await;
        cluster.shard_collection("test.c", doc! { "k": 1 }).await;
        let refused = |(code, text): (i32, String), expected: i32, says: &str| {
            assert_eq!((code, &*text), (expected, says));
        };
        let unknown = c.err(of_shard("addShardToZone", "nobody")).await;
        refused(unknown, 70, "shard nobody does not exist");
        refused(c.err(range(0, 9, "east")).await, 177, "zone east does not exist");
        // Twice is once.
        for _ in 0..2 {
            c.ok(of_shard("addShardToZone", "s1")).await;
            c.ok(range(0, 9, "east")).await;
        }
        let overlap = "Zone range: { k: 5 } -->> { k: 19 }  on  east is overlapping with existing: { k: 0 } -->> { k: 9 }  on  east";
        refused(c.err(range(5, 19, "east")).await, 178, overlap);
        refused(c.err(range(5, 5, "east")).await, 9, "min: { k: 5 } should be less than max: { k: 5 }");
        c.ok(range(9, 19, "east")).await;
        let in_use = "cannot remove a shard from zone if a chunk range is associated with it";
        refused(c.err(of_shard("removeShardFromZone", "s1")).await, 163, in_use);
        let tags = c.all(doc! { "find": "tags", "$db": "config" }).await;
        assert_eq!(tags.len(), 2, "{tags:?}");
        let shards = c.all(doc! { "find": "shards", "sort": doc! { "_id": 1 }, "$db": "config" }).await;
        let zones = shards[1].get("tags").and_then(Bson::as_array).unwrap();
        assert_eq!(*zones, [Bson::from("east")]);
        for (min, max) in [(0, 9), (9, 19)] {
            c.ok(range(min, max, Bson::Null)).await;
        }
        c.ok(of_shard("removeShardFromZone", "s1")).await;
        assert!(c.all(doc! { "find": "tags", "$db": "config" }).await.is_empty());
        let unknown = c.err(of_shard("removeShardFromZone", "nobody")).await;
        refused(unknown, 70, "shard nobody does not exist");
        cluster.shut_down().await;
    });
}

#[test]
fn an_empty_collection_is_cut_at_hashes_within_its_zones_and_what_cannot_be_is_told() {
    run(async {
        let (cluster, mut c) = cluster().await;
        for (shard, zone) in [("s0", "east"), ("s1", "east"), ("s1", "west")] {
            c.ok(doc! { "addShardToZone": shard, "zone": zone, "$db": "admin" }).await;
        }
        let shard = |coll: &str, key: Document, option: (&str, Bson)| {
            let mut command = doc! { "shardCollection": format!("test.{coll}") };
            command.push("key", key);
            command.push(option.0, option.1);
            command.push("$db", "admin");
            command
        };
        let presplit = || ("presplitHashedZones", Bson::from(true));
        let compound = || doc! { "k": 1, "h": "hashed" };
        let refused = [
            (shard("a", doc! { "k": 1 }, ("numInitialChunks", 3.into())), 72),
            (shard("a", compound(), ("numInitialChunks", 3.into())), 72),
            (shard("a", doc! { "k": "hashed" }, ("numInitialChunks", 1e300.into())), 72),
            (shard("a", doc! { "k": 1 }, presplit()), 31387),
            (shard("a", doc! { "k": "hashed" }, presplit()), 31387),
        ];
        for (command, code) in refused {
            let (got, text) = c.err(command.clone()).await;
            assert_eq!(got, code, "{command:?}: {text}");
        }
        // Nothing is made before it is known that it can be.
        assert!(c.all(doc! { "listCollections": 1 }).await.is_empty());
        for (min, max, zone) in [(0, 9, "east"), (9, 19, "west")] {
            c.ok(range(min, max, zone)).await;
        }
        c.ok(shard("c", compound(), presplit())).await;
        let chunks = c.all(doc! { "find": "chunks", "sort": { "min": 1 }, "$db": "config" }).await;
        let owners: Vec<_> = chunks.iter().filter_map(|d| d.get("shard")?.as_str()).collect();
        assert_eq!(owners, ["s0", "s0", "s0", "s1", "s1", "s1"], "{chunks:?}");
        let mut insert = doc! { "insert": "c" };
        let docs = (0..200).map(|i| doc! { "_id": i, "k": i % 20, "h": i }.into());
        insert.push("documents", docs.collect::<Vec<Bson>>());
        c.ok(insert).await;
        assert_eq!(c.all(doc! { "find": "c" }).await.len(), 200);
        let there =
            cluster.shard(1).await.all(doc! { "find": "c", "filter": { "k": { "$lt": 9 } } }).await.len();
        assert!((5..86).contains(&there), "{there} of 90 lie on the second shard of their zone");
        // A collection that has documents begins as one chunk, and cannot be cut.
        c.ok(doc! { "insert": "full", "documents": [{ "_id": 1, "k": 1 }] }).await;
        let index = doc! { "key": { "k": "hashed" }, "name": "k_hashed" };
        c.ok(doc! { "createIndexes": "full", "indexes": [index] }).await;
        let (code, _) = c.err(shard("full", doc! { "k": "hashed" }, ("numInitialChunks", 3.into()))).await;
        assert_eq!(code, 72);
        cluster.shut_down().await;
    });
}
