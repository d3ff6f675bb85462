//! `checkMetadataConsistency`: each thing that does not fit together is planted, and it alone is found.

#![allow(clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Cluster, pause, run, spawn};

/// A cluster of two shards whose balancer leaves everything where it is; the databases' primary shard is the first one.
async fn cluster() -> (Cluster, Client) {
    let cluster = Cluster::of(2, 1).await;
    let mut c = cluster.router(0).await;
    c.admin(doc! { "balancerStop": 1 }).await;
    for db in ["test", "hidden"] {
        c.ok(doc! { "enableSharding": db, "primaryShard": "s0", "$db": "admin" }).await;
    }
    (cluster, c)
}
/// A collection with the chunks up to 0, up to 10, and behind, all of them on the first shard.
async fn three_chunks(cluster: &Cluster, ns: &str) {
    cluster.shard_collection(ns, doc! { "k": 1 }).await;
    for at in [0, 10] {
        let split = doc! { "split": ns, "middle": { "k": at }, "$db": "admin" };
        cluster.router(0).await.ok(split).await;
    }
}
/// The same, and the last chunk is on the second shard.
async fn two_owners(cluster: &Cluster, ns: &str) {
    three_chunks(cluster, ns).await;
    let moved = doc! { "moveChunk": ns, "find": { "k": 20 }, "to": "s1", "$db": "admin" };
    cluster.router(0).await.ok(moved).await;
}
fn listed(mut command: Document, name: &str, one: Document) -> Document {
    command.push(name, vec![Bson::from(one)]);
    command
}
fn of_field(name: &str, v: impl Into<Bson>) -> Document {
    let mut d = Document::new();
    d.push(name, v);
    d
}
async fn uuid(cluster: &Cluster, ns: &str) -> Bson {
    let find = doc! { "find": "collections", "filter": { "_id": ns }, "$db": "config" };
    let found = cluster.config_server().await.all(find).await;
    found[0].get("uuid").cloned().unwrap()
}
/// Changes documents of the config servers past everybody.
async fn update(cluster: &Cluster, coll: &str, q: Document, set: Document) {
    let mut one = of_field("q", q);
    one.push("u", of_field("$set", set));
    let command = listed(doc! { "update": coll, "$db": "config" }, "updates", one);
    let reply = cluster.config_server().await.ok(command).await;
    assert_eq!(reply.get("nModified").and_then(Bson::as_i64), Some(1), "{reply:?}");
}
async fn delete(cluster: &Cluster, coll: &str, q: Document) {
    let mut one = of_field("q", q);
    one.push("limit", 0);
    let command = listed(doc! { "delete": coll, "$db": "config" }, "deletes", one);
    let reply = cluster.config_server().await.ok(command).await;
    assert!(reply.get("n").and_then(Bson::as_i64) > Some(0), "{reply:?}");
}
async fn insert(c: &mut Client, db: &str, coll: &str, one: Document) {
    let mut command = listed(doc! { "insert": coll }, "documents", one);
    command.push("$db", db);
    c.ok(command).await;
}
/// The query for one chunk of a collection.
async fn chunk(cluster: &Cluster, ns: &str, min: impl Into<Bson>) -> Document {
    let mut q = of_field("uuid", uuid(cluster, ns).await);
    q.push("min", of_field("k", min));
    q
}
fn zone(ns: &str, tag: &str, min: Document, max: Document) -> Document {
    let mut id = of_field("ns", ns);
    id.push("min", min.clone());
    let mut d = of_field("_id", id);
    d.push("ns", ns);
    d.push("min", min);
    d.push("max", max);
    d.push("tag", tag);
    d
}
/// The types of what is found.
async fn found(c: &mut Client, what: impl Into<Bson>, db: &str) -> Vec<String> {
    let mut command = of_field("checkMetadataConsistency", what);
    command.push("$db", db);
    let all = c.all(command).await;
    let mut types: Vec<String> =
        all.iter().map(|d| d.get("type").unwrap().as_str().unwrap().to_owned()).collect();
    types.sort();
    types
}
/// The only thing that is found of a collection of `test`, and its details without the name.
async fn details(c: &mut Client, coll: &str) -> (String, Document) {
    let all = c.all(doc! { "checkMetadataConsistency": coll, "checkIndexes": true }).await;
    assert_eq!(all.len(), 1, "{coll}: {all:?}");
    let mut details = all[0].get("details").unwrap().as_doc().unwrap().clone();
    assert_eq!(details.remove("namespace"), Some(format!("test.{coll}").into()));
    (all[0].get("type").unwrap().as_str().unwrap().to_owned(), details)
}
fn names(details: &Document) -> Vec<&str> {
    details.iter().map(|(name, _)| name).collect()
}

#[test]
fn nothing_is_found_where_everything_fits_together() {
    run(async {
        let (cluster, mut c) = cluster().await;
        two_owners(&cluster, "test.ranged").await;
        cluster.shard_collection("test.hashed", doc! { "h": "hashed" }).await;
        cluster.shard_collection("test.compound", doc! { "k": 1, "h": "hashed" }).await;
        c.ok(doc! { "addShardToZone": "s0", "zone": "z", "$db": "admin" }).await;
        for (min, max) in [(0, 5), (7, 9)] {
            let range = doc! { "updateZoneKeyRange": "test.ranged", "min": { "k": min }, "max": { "k": max }, "zone": "z", "$db": "admin" };
            c.ok(range).await;
        }
        insert(&mut c, "test", "plain", doc! { "_id": 1 }).await;
        insert(&mut c, "other", "plain", doc! { "_id": 1 }).await;
        c.ok(doc! { "create": "view", "viewOn": "hashed", "pipeline": Bson::Array(Vec::new()) }).await;
        c.ok(doc! { "create": "series", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        let index = doc! { "key": { "x": 1 }, "name": "x", "expireAfterSeconds": 100 };
        c.ok(listed(doc! { "createIndexes": "ranged" }, "indexes", index)).await;
        c.admin(doc! { "refreshLogicalSessionCacheNow": 1 }).await;
        for db in ["test", "other", "config", "admin", "nowhere"] {
            let command =
                doc! { "checkMetadataConsistency": 1, "checkIndexes": true, "cursor": doc! {}, "$db": db };
            assert_eq!(c.all(command).await, [], "{db}");
        }
        for coll in ["ranged", "hashed", "plain", "view", "series", "nothing"] {
            assert_eq!(
                c.all(doc! { "checkMetadataConsistency": coll, "checkIndexes": true }).await,
                [],
                "{coll}"
            );
        }
        // Both shards have known the name as one that is sharded, and as one that is not.
        two_owners(&cluster, "test.again").await;
        c.ok(doc! { "drop": "again" }).await;
        insert(&mut c, "test", "again", doc! { "_id": 1, "k": 20 }).await;
        for shard in ["s1", "s0"] {
            c.ok(doc! { "movePrimary": "test", "to": shard, "$db": "admin" }).await;
            assert_eq!(c.all(doc! { "find": "again" }).await.len(), 1);
        }
        c.ok(listed(doc! { "createIndexes": "again" }, "indexes", doc! { "key": { "k": 1 }, "name": "k" }))
            .await;
        two_owners(&cluster, "test.again").await;
        assert_eq!(c.all(doc! { "checkMetadataConsistency": 1, "checkIndexes": true }).await, []);
        // A shard that has given away all that it owned keeps what it has, and is told of no more indexes.
        two_owners(&cluster, "test.given").await;
        for k in [-5, 5] {
            c.ok(doc! { "moveChunk": "test.given", "find": { "k": k }, "to": "s1", "$db": "admin" }).await;
        }
        c.ok(listed(doc! { "createIndexes": "given" }, "indexes", doc! { "key": { "y": 1 }, "name": "y" }))
            .await;
        let indexes = doc! { "listIndexes": "given" };
        assert_eq!(cluster.shard(0).await.all(indexes.clone()).await.len(), 2);
        assert_eq!(cluster.shard(1).await.all(indexes).await.len(), 3);
        assert_eq!(c.all(doc! { "checkMetadataConsistency": "given", "checkIndexes": true }).await, []);
        cluster.shut_down().await;
    });
}

/// Makes one collection for each kind of what config servers keep wrongly, named after it.
async fn plant_in_catalog(cluster: &Cluster) {
    for coll in ["gap", "overlap", "no_min", "no_max", "no_table", "bad_chunk", "zones", "bad_zone"] {
        three_chunks(cluster, &format!("test.{coll}")).await;
    }
    delete(cluster, "chunks", chunk(cluster, "test.gap", 0).await).await;
    let overlap = chunk(cluster, "test.overlap", 0).await;
    update(cluster, "chunks", overlap, doc! { "min": { "k": -5 } }).await;
    delete(cluster, "chunks", chunk(cluster, "test.no_min", Bson::MinKey).await).await;
    delete(cluster, "chunks", chunk(cluster, "test.no_max", 10).await).await;
    delete(cluster, "chunks", of_field("uuid", uuid(cluster, "test.no_table").await)).await;
    let bad = chunk(cluster, "test.bad_chunk", 0).await;
    update(cluster, "chunks", bad, doc! { "min": { "y": 0 } }).await;
    let mut config = cluster.config_server().await;
    for (tag, min, max) in [("a", 0, 5), ("b", 4, 9)] {
        let one = zone("test.zones", tag, doc! { "k": min }, doc! { "k": max });
        insert(&mut config, "config", "tags", one).await;
    }
    let bad = zone("test.bad_zone", "a", doc! { "y": 0 }, doc! { "k": 5 });
    insert(&mut config, "config", "tags", bad).await;
    cluster.shard_collection("hidden.c", doc! { "k": 1 }).await;
    delete(cluster, "databases", doc! { "_id": "hidden" }).await;
}

const OF_CATALOG: [(&str, &str); 8] = [
    ("gap", "RoutingTableRangeGap"),
    ("overlap", "RoutingTableRangeOverlap"),
    ("no_min", "RoutingTableMissingMinKey"),
    ("no_max", "RoutingTableMissingMaxKey"),
    ("no_table", "MissingRoutingTable"),
    ("bad_chunk", "CorruptedChunkShardKey"),
    ("zones", "ZonesRangeOverlap"),
    ("bad_zone", "CorruptedZoneShardKey"),
];

#[test]
fn what_the_config_servers_keep_wrongly_is_found() {
    run(async {
        let (cluster, mut c) = cluster().await;
        plant_in_catalog(&cluster).await;
        for (coll, kind) in OF_CATALOG {
            let (told, mut more) = details(&mut c, coll).await;
            assert_eq!(told, kind);
            let ns = format!("test.{coll}");
            assert_eq!(more.remove("collectionUUID"), Some(uuid(&cluster, &ns).await), "{coll}");
            let expected: &[&str] = match coll {
                "gap" | "overlap" => &["chunkA", "chunkB"],
                "no_min" => &["minKeyObj", "globalMin"],
                "no_max" => &["maxKeyObj", "globalMax"],
                "no_table" => &[],
                "bad_chunk" => &["chunk", "shardKeyPattern"],
                "zones" => &["zoneA", "zoneB"],
                _ => &["zone", "shardKeyPattern"],
            };
            assert_eq!(names(&more), expected, "{coll}");
        }
        let gap = details(&mut c, "gap").await.1;
        let end = |name: &str, field: &str| gap.get(name).unwrap().as_doc().unwrap().get(field).cloned();
        assert_eq!(
            (end("chunkA", "max"), end("chunkB", "min")),
            (Some(doc! { "k": 0 }.into()), Some(doc! { "k": 10 }.into()))
        );
        // A database, one that nobody finds, all of them.
        let mut all: Vec<&str> = OF_CATALOG.iter().map(|(_, kind)| *kind).collect();
        all.sort();
        assert_eq!(found(&mut c, 1, "test").await, all);
        for what in [Bson::from(1), Bson::from("c")] {
            assert_eq!(found(&mut c, what, "hidden").await, ["HiddenShardedCollection"]);
        }
        all.push("HiddenShardedCollection");
        all.sort();
        assert_eq!(found(&mut c, 1, "admin").await, all);
        // `config` is there without being registered.
        let mut of_config = doc! { "_id": "config.c", "key": { "_id": 1 } };
        of_config.push("uuid", uuid(&cluster, "test.no_table").await);
        insert(&mut cluster.config_server().await, "config", "collections", of_config).await;
        assert_eq!(found(&mut c, 1, "config").await, ["MissingRoutingTable"]);
        cluster.shut_down().await;
    });
}

/// A collection is sharded without its shard, which has answered for it as it was.
async fn plant_unknown(cluster: &Cluster, c: &mut Client) {
    insert(c, "test", "unknown", doc! { "_id": 1 }).await;
    assert_eq!(c.all(doc! { "find": "unknown" }).await.len(), 1);
    let listed = doc! { "listCollections": 1, "filter": { "name": "unknown" } };
    let listed = cluster.shard(0).await.all(listed).await;
    let uuid = listed[0].get("info").unwrap().as_doc().unwrap().get("uuid").cloned().unwrap();
    let mut config = cluster.config_server().await;
    let like = doc! { "find": "collections", "filter": { "_id": "test.uuid" }, "$db": "config" };
    let mut entry = config.all(like).await.remove(0);
    let mut like = of_field("find", "chunks");
    like.push("filter", of_field("uuid", entry.get("uuid").cloned().unwrap()));
    like.push("$db", "config");
    let mut chunk = config.all(like).await.remove(0);
    for d in [&mut entry, &mut chunk] {
        ["_id", "key", "uuid", "min", "max"].iter().for_each(|name| _ = d.remove(name));
        d.push("uuid", uuid.clone());
    }
    entry.push("_id", "test.unknown");
    entry.push("key", doc! { "_id": 1 });
    chunk.push("min", of_field("_id", Bson::MinKey));
    chunk.push("max", of_field("_id", Bson::MaxKey));
    insert(&mut config, "config", "chunks", chunk).await;
    insert(&mut config, "config", "collections", entry).await;
}

#[test]
fn what_shards_have_wrongly_is_found() {
    run(async {
        let (cluster, mut c) = cluster().await;
        for coll in ["lost", "index"] {
            two_owners(&cluster, &format!("test.{coll}")).await;
        }
        for coll in ["uuid", "no_index"] {
            cluster.shard_collection(&format!("test.{coll}"), doc! { "k": 1 }).await;
        }
        let mut s1 = cluster.shard(1).await;
        s1.ok(doc! { "drop": "lost" }).await;
        s1.ok(doc! { "create": "uuid" }).await;
        s1.ok(doc! { "create": "astray" }).await;
        for (mut shard, after) in [(cluster.shard(0).await, 600), (cluster.shard(1).await, 3600)] {
            let index = doc! { "key": { "t": 1 }, "name": "t", "expireAfterSeconds": after };
            shard.ok(listed(doc! { "createIndexes": "index" }, "indexes", index)).await;
        }
        // The key is another one, which nobody has made an index of.
        update(&cluster, "collections", doc! { "_id": "test.no_index" }, doc! { "key": { "z": 1 } }).await;
        let mut bounds = of_field("min", of_field("z", Bson::MinKey));
        bounds.push("max", of_field("z", Bson::MaxKey));
        update(&cluster, "chunks", of_field("uuid", uuid(&cluster, "test.no_index").await), bounds).await;

        plant_unknown(&cluster, &mut c).await;
        let of_shard = async |c: &mut Client, coll: &str, kind: &str, shard: &str, fields: &[&str]| {
            let (told, more) = details(c, coll).await;
            assert_eq!((told.as_str(), names(&more)), (kind, fields.to_vec()));
            assert_eq!(more.get("shard").and_then(Bson::as_str), Some(shard), "{more:?}");
            more
        };
        of_shard(&mut c, "astray", "MisplacedCollection", "s1", &["shard", "localUUID"]).await;
        let lost = of_shard(&mut c, "lost", "MissingLocalCollection", "s1", &["uuid", "shard"]).await;
        assert_eq!(lost.get("uuid"), Some(&uuid(&cluster, "test.lost").await));
        let other =
            of_shard(&mut c, "uuid", "CollectionUUIDMismatch", "s1", &["shard", "localUUID", "uuid"]).await;
        assert_eq!(other.get("uuid"), Some(&uuid(&cluster, "test.uuid").await));
        let none = of_shard(&mut c, "no_index", "MissingShardKeyIndex", "s0", &["shard", "shardKey"]).await;
        assert_eq!(none.get("shardKey"), Some(&doc! { "z": 1 }.into()));
        let kind = "ShardThinksCollectionIsUnsharded";
        of_shard(&mut c, "unknown", kind, "s0", &["collectionUUID", "shard"]).await;
        let (told, more) = details(&mut c, "index").await;
        assert_eq!(told, "InconsistentIndex");
        let info = format!("{:?}", more.get("info").unwrap().as_doc().unwrap());
        for part in
            ["missingFromShards", "inconsistentProperties", "expireAfterSeconds", "600", "3600", "indexName"]
        {
            assert!(info.contains(part), "{part}: {info}");
        }
        // Indexes are compared where that is asked for.
        assert_eq!(found(&mut c, "index", "test").await, [""; 0]);
        let all = [
            "CollectionUUIDMismatch",
            "MisplacedCollection",
            "MissingLocalCollection",
            "MissingShardKeyIndex",
            "ShardThinksCollectionIsUnsharded",
        ];
        for db in ["test", "admin"] {
            assert_eq!(found(&mut c, 1, db).await, all, "{db}");
        }
        cluster.shut_down().await;
    });
}

#[test]
fn what_is_being_changed_is_waited_for_and_not_told() {
    run(async {
        let (cluster, mut c) = cluster().await;
        let mut s1 = cluster.shard(1).await;
        for coll in ["astray", "moving"] {
            s1.ok(doc! { "create": coll }).await;
        }
        // What a definition keeps of itself while it is under way.
        let mut s0 = cluster.shard(0).await;
        let id = doc! { "namespace": "test.moving", "operationType": "dropCollection" };
        insert(&mut s0, "config", "system.sharding_ddl_coordinators", of_field("_id", id)).await;
        assert_eq!(found(&mut c, "astray", "test").await, ["MisplacedCollection"]);
        let late = doc! { "checkMetadataConsistency": "moving", "maxTimeMS": 1500 };
        assert_eq!(c.err(late).await.0, 50);
        let mut other = cluster.router(0).await;
        let waits = spawn(async move { found(&mut other, 1, "test").await });
        pause(700).await;
        s1.ok(doc! { "drop": "moving" }).await;
        assert_eq!(waits.await.unwrap(), ["MisplacedCollection"]);
        cluster.shut_down().await;
    });
}

#[test]
fn arguments_of_a_check_have_their_types() {
    run(async {
        let (cluster, mut c) = cluster().await;
        let mut s1 = cluster.shard(1).await;
        for coll in ["a", "b", "c"] {
            s1.ok(doc! { "create": coll }).await;
        }
        for (name, v, code) in [
            ("checkIndex", Bson::from(true), 40415),
            ("checkIndexes", Bson::from(1), 14),
            ("cursor", Bson::from(1), 14),
            ("cursor", doc! { "batchSize": "1" }.into(), 14),
            ("cursor", doc! { "batchSize": -1 }.into(), 51024),
            ("cursor", doc! { "size": 1 }.into(), 40415),
        ] {
            let mut command = doc! { "checkMetadataConsistency": 1 };
            command.push(name, v);
            let (told, text) = c.err(command).await;
            assert_eq!(told, code, "{text}");
        }
        for (what, code) in [(Bson::from(2), 9), (doc! {}.into(), 14), ("".into(), 73)] {
            assert_eq!(c.err(of_field("checkMetadataConsistency", what)).await.0, code);
        }
        let two = doc! { "checkMetadataConsistency": 1.0, "checkIndexes": Bson::Null, "cursor": { "batchSize": 2 } };
        let reply = c.ok(two.clone()).await;
        let cursor = reply.get("cursor").unwrap().as_doc().unwrap();
        assert_eq!(cursor.get("firstBatch").unwrap().as_array().unwrap().len(), 2);
        assert_eq!(cursor.get("ns").and_then(Bson::as_str), Some("test.$cmd.aggregate"));
        assert_eq!(c.all(two).await.len(), 3);
        cluster.shut_down().await;
    });
}
