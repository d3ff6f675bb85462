//! `renameCollection` of what lies on several shards (SYS-249).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::*;

fn rename(from: &str, to: &str, drop_target: bool) -> Document {
    doc! { "renameCollection": format!("test.{from}"), "to": format!("test.{to}"), "dropTarget": drop_target, "$db": "admin" }
}
async fn config(c: &mut Client, coll: &str) -> Vec<Document> {
    c.all(doc! { "find": coll, "$db": "config" }).await
}
async fn entry(c: &mut Client, name: &str) -> Option<Document> {
    let ns = format!("test.{name}");
    config(c, "collections").await.into_iter().find(|d| d.get("_id").and_then(Bson::as_str) == Some(&ns))
}
async fn names(c: &mut Client) -> Vec<String> {
    let listed = c.all(doc! { "listCollections": 1, "nameOnly": true }).await;
    let mut all: Vec<String> =
        listed.iter().filter_map(|d| d.get("name").and_then(Bson::as_str).map(str::to_owned)).collect();
    all.sort();
    all
}
/// Nothing is kept of a definition that is over, and everybody knows the same.
async fn nothing_is_left(cluster: &Cluster, c: &mut Client) {
    for n in 0..2 {
        let mut shard = cluster.shard(n).await;
        for kept in ["collection_critical_sections", "system.sharding_ddl_coordinators"] {
            assert_eq!(config(&mut shard, kept).await, [], "{kept} of shard {n}");
        }
    }
    let found = c.all(doc! { "checkMetadataConsistency": 1, "$db": "test" }).await;
    assert_eq!(found, []);
}

#[test]
fn a_sharded_collection_gets_another_name_on_every_shard() {
    run(async {
        let (mut cluster, mut c) = cluster("c", 300).await;
        let other = cluster.add_router().await;
        let mut old_view = cluster.router(other).await;
        assert_eq!(keys(&mut old_view, "c").await.len(), 300);
        c.ok(doc! { "addShardToZone": "s0", "zone": "z", "$db": "admin" }).await;
        let mut zone = doc! { "updateZoneKeyRange": "test.c", "zone": "z" };
        zone.push("min", doc! { "k": 0 });
        zone.push("max", doc! { "k": 50 });
        c.admin(zone).await;
        cluster.shard(0).await.ok(move_range("c", "s1", 100, 200)).await;
        let before = entry(&mut c, "c").await.unwrap();

        assert_eq!(c.err(rename("c", "c", false)).await.0, 20);
        assert_eq!(c.err(rename("none", "d", false)).await.0, 26);
        assert_eq!(c.err(rename("c", "system.profile", false)).await.0, 20);
        let mut elsewhere = rename("c", "d", false);
        elsewhere.remove("to");
        elsewhere.push("to", "other.d");
        let refused = (125, "Source and destination collections must be on the same database.".to_owned());
        assert_eq!(c.err(elsewhere).await, refused);
        let databases = config(&mut c, "databases").await;
        assert!(databases.iter().all(|d| d.get("_id").and_then(Bson::as_str) != Some("other")));
        insert(&mut c, "plain", vec![doc! { "_id": 1, "k": -1 }.into()]).await;
        assert_eq!(c.err(rename("c", "plain", false)).await, (48, "target namespace exists".to_owned()));
        cluster.shard_collection("test.e", doc! { "k": "hashed" }).await;
        insert(&mut c, "e", (0..20).map(|i| doc! { "_id": i, "k": -1 - i }.into()).collect()).await;
        let exists = "Sharded target collection test.e exists but dropTarget is not set";
        assert_eq!(c.err(rename("c", "e", false)).await, (48, exists.to_owned()));
        // What nobody could look up afterwards, what has zones of its own, and what is not what was to make room.
        let long = "y".repeat(231);
        assert_eq!(c.err(rename("c", &long, false)).await.0, 73);
        let mut zone = doc! { "updateZoneKeyRange": "test.zoned", "zone": "z" };
        zone.push("min", doc! { "k": 10 });
        zone.push("max", doc! { "k": 13 });
        c.admin(zone.clone()).await;
        assert_eq!(c.err(rename("c", "zoned", false)).await.0, 125);
        zone.set("zone", Bson::Null);
        c.admin(zone).await;
        let mut other_target = rename("c", "e", false);
        let not_it = Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![7; 16] });
        other_target.set("dropTarget", not_it);
        assert_eq!(c.err(other_target).await.0, 361);

        // A new name, with a router that does not know.
        c.ok(rename("c", "d", false)).await;
        let after = entry(&mut c, "d").await.unwrap();
        assert_eq!((after.get("uuid"), after.get("key")), (before.get("uuid"), before.get("key")));
        assert_ne!(after.get("timestamp"), before.get("timestamp"));
        assert!(entry(&mut c, "c").await.is_none());
        assert_eq!(config(&mut c, "tags").await[0].get("ns"), Some(&"test.d".into()));
        let all: Vec<i64> = (0..300).collect();
        for c in [&mut c, &mut old_view] {
            assert_eq!(keys(c, "d").await, all);
            assert!(keys(c, "c").await.is_empty());
        }
        assert_eq!((there(&cluster, 0, "d").await.len(), there(&cluster, 1, "d").await.len()), (200, 100));
        insert(&mut old_view, "d", vec![doc! { "_id": 900, "k": 150 }.into()]).await;
        assert_eq!(there(&cluster, 1, "d").await.len(), 101);
        // The old name is free.
        insert(&mut old_view, "c", vec![doc! { "_id": 1, "k": 150 }.into()]).await;
        assert_eq!(keys(&mut c, "c").await, [150]);
        nothing_is_left(&cluster, &mut c).await;

        // In the place of one that is sharded, of one that is not, and the other way round.
        c.ok(rename("d", "e", true)).await;
        assert_eq!(keys(&mut c, "e").await.len(), 301);
        c.ok(rename("e", "plain", true)).await;
        assert_eq!(keys(&mut old_view, "plain").await.len(), 301);
        assert_eq!(names(&mut c).await, ["c", "plain"]);
        nothing_is_left(&cluster, &mut c).await;
        // Its zones are not dropped unasked.
        assert_eq!(c.err(rename("c", "plain", true)).await.0, 125);
        let mut no_zone = doc! { "updateZoneKeyRange": "test.plain", "zone": Bson::Null };
        no_zone.push("min", doc! { "k": 0 });
        no_zone.push("max", doc! { "k": 50 });
        c.admin(no_zone).await;
        c.ok(rename("c", "plain", true)).await;
        assert_eq!(
            (keys(&mut old_view, "plain").await, names(&mut c).await),
            (vec![150], vec!["plain".to_owned()])
        );
        assert!(there(&cluster, 1, "plain").await.is_empty());
        assert!(config(&mut c, "chunks").await.iter().all(|d| d.get("uuid") != before.get("uuid")));
        nothing_is_left(&cluster, &mut c).await;
        cluster.shut_down().await;
    });
}

/// What is not sharded lies on one shard: another database of that shard can have it.
#[test]
fn a_collection_that_is_not_sharded_gets_a_name_in_another_database() {
    run(async {
        let (mut cluster, mut c) = cluster("c", 10).await;
        let other = cluster.add_router().await;
        let mut old_view = cluster.router(other).await;
        let across = |from: &str, to: &str, drop_target: bool| doc! { "renameCollection": from, "to": to, "dropTarget": drop_target, "$db": "admin" };
        let of = async |c: &mut Client, db: &str, coll: &str| {
            let all = c.all(doc! { "find": coll, "sort": { "_id": 1 }, "$db": db }).await;
            all.iter().filter_map(|d| d.get("_id").and_then(Bson::as_i64)).collect::<Vec<i64>>()
        };
        let all: Vec<i64> = (0..50).collect();
        insert(&mut c, "plain", all.iter().map(|i| doc! { "_id": *i, "k": -*i }.into()).collect()).await;
        let mut index = doc! { "createIndexes": "plain" };
        index.push("indexes", vec![Bson::from(doc! { "key": doc! { "k": 1 }, "name": "k" })]);
        c.ok(index).await;
        assert_eq!(of(&mut old_view, "test", "plain").await, all);

        // The database comes into being where the other one is, and not for nothing.
        assert_eq!(c.err(across("test.none", "nowhere.n", false)).await.0, 26);
        assert_eq!(c.err(across("test.plain", "admin.n", false)).await.0, 20);
        c.ok(across("test.plain", "beside.d", false)).await;
        let databases = config(&mut c, "databases").await;
        let primary = |db: &str| {
            let entry = databases.iter().find(|d| d.get("_id").and_then(Bson::as_str) == Some(db));
            entry.and_then(|d| d.get("primary").and_then(Bson::as_str))
        };
        assert_eq!((primary("beside"), primary("nowhere")), (Some("s0"), None));
        for c in [&mut c, &mut old_view] {
            assert_eq!((of(c, "beside", "d").await, of(c, "test", "plain").await), (all.clone(), vec![]));
        }
        assert_eq!(c.all(doc! { "listIndexes": "d", "$db": "beside" }).await.len(), 2);
        assert_eq!(names(&mut c).await, ["c"], "no copy is left");
        assert_eq!(c.all(doc! { "listCollections": 1, "$db": "beside" }).await.len(), 1);
        nothing_is_left(&cluster, &mut c).await;

        // Back again; what is there makes room only if it may.
        insert(&mut old_view, "plain", vec![doc! { "_id": 77 }.into()]).await;
        let exists = (48, "target namespace exists".to_owned());
        assert_eq!(c.err(across("beside.d", "test.plain", false)).await, exists);
        c.ok(across("beside.d", "test.plain", true)).await;
        assert_eq!(of(&mut old_view, "test", "plain").await, all);
        assert!(of(&mut c, "beside", "d").await.is_empty());
        // Neither to a shard of its own, nor to the place of what is sharded.
        c.ok(doc! { "enableSharding": "far", "primaryShard": "s1", "$db": "admin" }).await;
        let refused = (125, "Source and destination collections must be on same shard".to_owned());
        assert_eq!(c.err(across("test.plain", "far.d", true)).await, refused);
        c.ok(doc! { "movePrimary": "beside", "to": "s1", "$db": "admin" }).await;
        assert_eq!(old_view.err(across("test.plain", "beside.d", true)).await, refused);
        c.ok(doc! { "movePrimary": "beside", "to": "s0", "$db": "admin" }).await;
        cluster.shard_collection("beside.s", doc! { "k": 1 }).await;
        assert_eq!(c.err(across("test.plain", "beside.s", true)).await.0, 125);
        assert_eq!(of(&mut old_view, "test", "plain").await, all);
        nothing_is_left(&cluster, &mut c).await;
        cluster.shut_down().await;
    });
}

#[test]
fn a_range_that_was_to_be_deleted_is_deleted_by_the_new_name() {
    run(async {
        let (cluster, mut c) = cluster("c", 300).await;
        let mut shard = cluster.shard(0).await;
        shard.ok(doc! { "setParameter": 1, "orphanCleanupDelaySecs": 2, "$db": "admin" }).await;
        let mut away = move_range("c", "s1", 100, 200);
        away.remove("waitForDelete");
        shard.ok(away).await;
        c.ok(rename("c", "d", false)).await;
        assert_eq!(there(&cluster, 0, "d").await.len(), 300, "nothing is deleted yet");
        for _ in 0..400 {
            if config(&mut shard, "rangeDeletions").await.is_empty() {
                break;
            }
            pause(20).await;
        }
        assert_eq!(there(&cluster, 0, "d").await.len(), 200);
        assert_eq!(keys(&mut c, "d").await, (0..300).collect::<Vec<i64>>());
        // A range of it moves by its new name.
        cluster.shard(1).await.ok(move_range("d", "s0", 150, 200)).await;
        assert_eq!(keys(&mut c, "d").await, (0..300).collect::<Vec<i64>>());
        cluster.shut_down().await;
    });
}

#[test]
fn what_is_written_while_a_collection_is_renamed_is_there_once() {
    run(async {
        let (mut cluster, mut c) = cluster("c", 100).await;
        cluster.shard(0).await.ok(move_range("c", "s1", 50, 1000)).await;
        let other = cluster.add_router().await;
        let (over, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut writers = Vec::new();
        for w in 0..4_i64 {
            let mut own = cluster.router(if w % 2 == 0 { 0 } else { other }).await;
            let (over, count) = (Arc::clone(&over), Arc::clone(&count));
            writers.push(spawn(async move {
                let mut done = Vec::new();
                while !over.load(Relaxed) {
                    let id = 1000 + w * 100_000 + done.len() as i64;
                    insert(&mut own, "c", vec![doc! { "_id": id, "k": id % 100, "n": 0 }.into()]).await;
                    done.push(id);
                    count.fetch_add(1, Relaxed);
                }
                done
            }));
        }
        for to in ["d0", "d1", "d2"] {
            // The name is another collection's each time: the first is sharded, the others are what writers have
            // made, for of eight writes four at least began behind the rename before.
            let before = count.load(Relaxed);
            while count.load(Relaxed) < before + 8 {
                pause(5).await;
            }
            c.ok(rename("c", to, false)).await;
        }
        over.store(true, Relaxed);
        let mut written: Vec<i64> = (0..100).collect();
        for writer in writers {
            written.extend(writer.await.unwrap());
        }
        let mut found = Vec::new();
        for coll in ["c", "d0", "d1", "d2"] {
            let all = c.all(doc! { "find": coll }).await;
            found.extend(all.iter().filter_map(|d| d.get("_id").and_then(Bson::as_i64)));
        }
        written.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, written);
        nothing_is_left(&cluster, &mut c).await;
        cluster.shut_down().await;
    });
}

/// One shard's part would be less than what there was.
#[test]
fn a_snapshot_from_before_a_rename_or_a_drop_is_refused() {
    run(async {
        let (cluster, mut c) = cluster("c", 100).await;
        cluster.shard(0).await.ok(move_range("c", "s1", 50, 100)).await;
        let mut later = doc! { "insert": "c" };
        later.push("documents", vec![Bson::from(doc! { "_id": 900, "k": 10 })]);
        later.push("writeConcern", doc! { "w": "majority" });
        let at = c.ok(later).await.get("operationTime").unwrap().clone();
        let as_of = |coll: &str| {
            let mut find = doc! { "find": coll };
            find.push("readConcern", doc! { "level": "snapshot", "atClusterTime": at.clone() });
            find
        };
        assert_eq!(c.all(as_of("c")).await.len(), 101);
        c.ok(rename("c", "d", false)).await;
        assert_eq!(c.err(as_of("c")).await.0, 246);
        c.ok(doc! { "drop": "d" }).await;
        assert_eq!(c.err(as_of("c")).await.0, 246);
        cluster.shut_down().await;
    });
}

/// Nobody drops such a collection by its name, but it may get another one; whatever is refused leaves both names free.
#[test]
fn a_collection_that_nobody_may_drop_gets_a_name_in_another_database() {
    run(async {
        let (cluster, mut c) = cluster("c", 10).await;
        c.ok(doc! { "enableSharding": "beside", "primaryShard": "s0", "$db": "admin" }).await;
        let script = || vec![doc! { "_id": "f", "value": 1 }.into()];
        let rename = |from: &str, to: &str| doc! { "renameCollection": from, "to": to, "dropTarget": true, "$db": "admin" };
        let kept = |ns: &str| (20, format!("can't drop system collection {ns}"));
        insert(&mut c, "system.js", script()).await;
        assert_eq!(c.err(doc! { "drop": "system.js" }).await, kept("test.system.js"));
        insert(&mut c, "plain", script()).await;
        for to in ["test.system.js", "beside.system.js"] {
            c.ok(doc! { "insert": "system.js", "documents": vec![Bson::from(doc! { "x": 1 })], "$db": to.split('.').next().unwrap() }).await;
            assert_eq!(c.err(rename("test.plain", to)).await, kept(to));
        }
        c.ok(rename("test.system.js", "beside.scripts")).await;
        assert_eq!(names(&mut c).await, ["c", "plain"]);
        let found = c.all(doc! { "find": "scripts", "$db": "beside" }).await;
        assert_eq!(found.len(), 2, "{found:?}");
        nothing_is_left(&cluster, &mut c).await;
        c.ok(doc! { "dropDatabase": 1, "$db": "beside" }).await;
        cluster.shut_down().await;
    });
}
