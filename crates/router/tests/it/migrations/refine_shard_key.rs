//! `refineCollectionShardKey` (SYS-267): fields are added to a shard key while ranges have moved, and are to be deleted.

use super::*;

const TOO_FEW: &str = "Please create an index that starts with the proposed shard key before refining the shard key of the collection";

fn refine(coll: &str, key: Document) -> Document {
    doc! { "refineCollectionShardKey": format!("test.{coll}"), "key": key, "$db": "admin" }
}
fn index(coll: &str, key: Document, options: Document) -> Document {
    let mut spec = doc! { "key": key };
    options.iter().for_each(|(name, v)| spec.push(name, v.clone()));
    let mut command = doc! { "createIndexes": coll };
    command.push("indexes", vec![Bson::from(spec)]);
    command
}
async fn config(c: &mut Client, coll: &str, sort: &str) -> Vec<Document> {
    let mut by = Document::new();
    by.push(sort, 1);
    c.all(doc! { "find": coll, "sort": by, "$db": "config" }).await
}
async fn documents(c: &mut Client, filter: Document) -> usize {
    c.all(doc! { "find": "c", "filter": filter }).await.len()
}

#[test]
fn a_shard_key_gets_more_fields_and_everything_is_found_by_both() {
    run(async {
        let (cluster, mut c) = cluster("c", 300).await;
        let mut cluster = cluster;
        let other = cluster.add_router().await;
        let mut old_view = cluster.router(other).await;
        assert_eq!(documents(&mut old_view, doc! {}).await, 300);
        let mut zone = doc! { "updateZoneKeyRange": "test.c", "zone": "z" };
        zone.push("min", doc! { "k": 0 });
        zone.push("max", doc! { "k": 50 });
        c.ok(doc! { "addShardToZone": "s0", "zone": "z", "$db": "admin" }).await;
        c.admin(zone).await;
        cluster.shard(0).await.ok(move_range("c", "s1", 100, 200)).await;

        let longer = || doc! { "k": 1, "l": 1 };
        assert_eq!(c.err(refine("c", longer())).await, (72, TOO_FEW.to_owned()));
        c.ok(index("c", longer(), doc! { "name": "sparse", "sparse": true })).await;
        assert_eq!(c.err(refine("c", longer())).await, (72, TOO_FEW.to_owned()));
        c.ok(index("c", longer(), doc! { "name": "hidden", "hidden": true })).await;
        let (code, text) = c.err(refine("c", longer())).await;
        assert_eq!((code, text.as_str()), (72, "couldn't find valid index for shard key"));
        c.ok(doc! { "dropIndexes": "c", "index": "hidden" }).await;
        c.ok(index("c", doc! { "k": 1, "l": 1, "m": 1 }, doc! { "name": "serves" })).await;
        assert_eq!(c.err(refine("c", doc! { "l": 1 })).await.0, 72);
        assert_eq!(c.err(refine("none", longer())).await.0, 118);

        let before = (config(&mut c, "collections", "_id").await, config(&mut c, "chunks", "min").await);
        c.ok(refine("c", doc! { "k": 1 })).await;
        assert_eq!(config(&mut c, "chunks", "min").await, before.1, "it is so already");
        c.ok(refine("c", longer())).await;
        let after = (config(&mut c, "collections", "_id").await, config(&mut c, "chunks", "min").await);
        let of_c =
            |all: &[Document]| all.iter().find(|d| d.get("_id") == Some(&"test.c".into())).cloned().unwrap();
        let (was, is) = (of_c(&before.0), of_c(&after.0));
        assert_eq!((is.get("key"), is.get("uuid")), (Some(&longer().into()), was.get("uuid")));
        assert_ne!(is.get("lastmodEpoch"), was.get("lastmodEpoch"));
        let bounds =
            |all: &[Document]| -> Vec<Bson> { all.iter().filter_map(|d| d.get("min").cloned()).collect() };
        let fields = |b: &Bson| b.as_doc().map_or(0, |d| d.iter().count());
        assert!(bounds(&after.1).iter().filter(|b| fields(b) == 2).count() >= 3, "{:?}", bounds(&after.1));
        let zones = config(&mut c, "tags", "min").await;
        assert_eq!(zones[0].get("max"), Some(&doc! { "k": 50, "l": Bson::MinKey }.into()));
        c.ok(refine("c", longer())).await;
        assert_eq!(config(&mut c, "collections", "_id").await, after.0, "once more changes nothing");

        // A router that knows the old key, before and behind a cut by the new one.
        let many =
            |from: i64| (0..20).map(|i| doc! { "_id": from + i, "k": 150, "l": i, "n": 0 }.into()).collect();
        insert(&mut old_view, "c", many(1000)).await;
        let mut split = doc! { "split": "test.c" };
        split.push("middle", doc! { "k": 150, "l": 10 });
        let reply = c.admin(split).await;
        assert_eq!(reply.get("ok").and_then(Bson::as_f64), Some(1.0), "{reply:?}");
        let mut part = doc! { "moveRange": "test.c", "toShard": "s0", "waitForDelete": true };
        part.push("min", doc! { "k": 150, "l": 10 });
        let reply = c.admin(part).await;
        assert_eq!(reply.get("ok").and_then(Bson::as_f64), Some(1.0), "{reply:?}");
        insert(&mut old_view, "c", many(2000)).await;
        for c in [&mut c, &mut old_view] {
            assert_eq!(documents(c, doc! {}).await, 340);
            assert_eq!(documents(c, doc! { "k": 150 }).await, 41);
            assert_eq!(documents(c, doc! { "k": 150, "l": 10 }).await, 2);
        }
        let moved = there(&cluster, 0, "c").await.iter().filter(|k| **k == 150).count();
        assert_eq!(moved, 20, "those from (150, 10) on");
        cluster.shut_down().await;
    });
}

#[test]
fn what_was_to_be_deleted_before_a_key_got_longer_is_deleted() {
    run(async {
        let (cluster, mut c) = cluster("c", 300).await;
        let mut shard = cluster.shard(0).await;
        shard.ok(doc! { "setParameter": 1, "orphanCleanupDelaySecs": 2, "$db": "admin" }).await;
        let mut away = move_range("c", "s1", 100, 200);
        away.remove("waitForDelete");
        shard.ok(away).await;
        c.ok(index("c", doc! { "k": 1, "l": 1 }, doc! { "name": "serves" })).await;
        c.ok(refine("c", doc! { "k": 1, "l": 1 })).await;
        assert_eq!(there(&cluster, 0, "c").await.len(), 300, "nothing is deleted yet");
        c.ok(doc! { "dropIndexes": "c", "index": "k_1" }).await;
        // What comes back is not deleted by what was to be deleted before: it comes behind that.
        let mut back = doc! { "moveRange": "test.c", "toShard": "s0", "waitForDelete": true };
        back.push("min", doc! { "k": 120, "l": Bson::MinKey });
        back.push("max", doc! { "k": 130, "l": Bson::MinKey });
        let reply = c.admin(back).await;
        assert_eq!(reply.get("ok").and_then(Bson::as_f64), Some(1.0), "{reply:?}");
        let kept: Vec<i64> = (0..100).chain(120..130).chain(200..300).collect();
        assert_eq!(there(&cluster, 0, "c").await, kept);
        assert_eq!(keys(&mut c, "c").await, (0..300).collect::<Vec<i64>>());
        cluster.shut_down().await;
    });
}
