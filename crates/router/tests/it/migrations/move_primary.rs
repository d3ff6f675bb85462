//! `movePrimary` (SYS-235): what is not sharded goes to another shard, while clients read and write.

use super::*;

fn move_primary(db: &str, to: &str) -> Document {
    doc! { "movePrimary": db, "to": to, "$db": "admin" }
}
async fn two_shards() -> (Cluster, Client) {
    let cluster = Cluster::of(2, 1).await;
    let mut c = cluster.router(0).await;
    c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
    (cluster, c)
}
/// Names of what a shard has of the database, whoever owns it.
async fn names(c: &mut Client) -> Vec<String> {
    let all = c.all(doc! { "listCollections": 1 }).await;
    let mut names: Vec<String> =
        all.iter().filter_map(|d| d.get("name").and_then(Bson::as_str).map(str::to_owned)).collect();
    names.sort();
    names
}
async fn count(c: &mut Client, coll: &str) -> usize {
    c.all(doc! { "find": coll }).await.len()
}

#[test]
fn everything_that_is_not_sharded_goes_to_the_other_shard() {
    run(async {
        let (cluster, mut c) = two_shards().await;
        insert(&mut c, "a", (0..3000).map(|i| doc! { "_id": i, "x": i % 7 }.into()).collect()).await;
        let mut index = doc! { "createIndexes": "a" };
        index.push("indexes", vec![Bson::from(doc! { "key": doc! { "x": 1 }, "name": "by x" })]);
        c.ok(index).await;
        c.ok(doc! { "create": "capped", "capped": true, "size": 4096, "max": 5 }).await;
        // In this order, and the first two fall out.
        for i in [9, 8, 7, 1, 5, 3, 4] {
            insert(&mut c, "capped", vec![doc! { "_id": i }.into()]).await;
        }
        c.ok(doc! { "create": "v", "viewOn": "a", "pipeline": Bson::from(vec![Bson::from(doc! { "$match": doc! { "x": 3 } })]) })
            .await;
        c.ok(doc! { "create": "times", "timeseries": doc! { "timeField": "t" } }).await;
        insert(
            &mut c,
            "times",
            (0..10).map(|i| doc! { "t": Bson::DateTime(i * 1000), "n": i }.into()).collect(),
        )
        .await;
        c.ok(doc! { "create": "empty", "collation": doc! { "locale": "de" } }).await;
        cluster.shard_collection("test.s", doc! { "k": 1 }).await;
        insert(&mut c, "s", (0..10).map(|i| doc! { "_id": i, "k": i }.into()).collect()).await;
        let before = names(&mut c).await;

        let wrong = async |c: &mut Client, db: &str, to: &str| c.err(move_primary(db, to)).await;
        assert_eq!(wrong(&mut c, "test", "s9").await, (70, "Shard s9 not found".to_owned()));
        assert_eq!(
            wrong(&mut c, "test", "").await,
            (72, "you have to specify where you want to move it".to_owned())
        );
        assert_eq!(wrong(&mut c, "none", "s1").await.0, 26);
        assert_eq!(c.err(doc! { "movePrimary": "test", "to": 5, "$db": "admin" }).await.0, 14);
        c.ok(move_primary("test", "s0")).await;
        // What a shard keeps of itself is nobody's to clean, or to fill.
        let mut shard = cluster.shard(1).await;
        for db in ["admin", "config", "local"] {
            let at = pando_base::Timestamp::new(u32::MAX, 1);
            let fence = doc! { "_shardsvrFenceDatabase": 1, "clean": true, "timestamp": at, "$db": db };
            assert_eq!(shard.err(fence).await.0, 20);
            let take = doc! { "_shardsvrTakeMovedDocuments": "c", "timestamp": at, "$db": db };
            assert_eq!(shard.err(take).await.0, 20);
        }

        c.ok(move_primary("test", "s1")).await;
        let entry =
            c.all(doc! { "find": "databases", "filter": doc! { "_id": "test" }, "$db": "config" }).await;
        assert_eq!(entry[0].get("primary"), Some(&"s1".into()));
        assert_eq!(names(&mut c).await, before);
        assert_eq!((count(&mut c, "a").await, count(&mut c, "times").await), (3000, 10));
        assert_eq!((count(&mut c, "v").await, count(&mut c, "s").await), (3000 / 7 + 1, 10));
        let order: Vec<i64> = c
            .all(doc! { "find": "capped" })
            .await
            .iter()
            .filter_map(|d| d.get("_id").and_then(Bson::as_i64))
            .collect();
        assert_eq!(order, [7, 1, 5, 3, 4]);
        let indexes = c.all(doc! { "listIndexes": "a" }).await;
        assert_eq!(indexes.len(), 2);
        assert_eq!(names(&mut cluster.shard(0).await).await, ["s"], "what is sharded stays");
        // Written where it is now.
        insert(&mut c, "a", vec![doc! { "_id": 5000 }.into()]).await;
        insert(&mut c, "new", vec![doc! { "_id": 1 }.into()]).await;
        assert_eq!(count(&mut cluster.shard(1).await, "a").await, 3001);
        assert_eq!(count(&mut cluster.shard(1).await, "new").await, 1);
        // And back.
        c.ok(move_primary("test", "s0")).await;
        assert_eq!((count(&mut c, "a").await, count(&mut c, "new").await), (3001, 1));
        assert!(!names(&mut cluster.shard(1).await).await.contains(&"a".to_owned()));
        let happened = c.all(
            doc! { "find": "changelog", "filter": doc! { "what": "movePrimary.commit" }, "$db": "config" },
        );
        assert_eq!(happened.await.len(), 2);
        cluster.shut_down().await;
    });
}

#[test]
fn what_is_written_while_a_database_moves_is_where_it_goes() {
    run(async {
        let (cluster, mut c) = two_shards().await;
        insert(&mut c, "a", (0..2000).map(|i| doc! { "_id": i, "n": 0 }.into()).collect()).await;
        let mut writers = Vec::new();
        for w in 0..3_i64 {
            let mut own = cluster.router(0).await;
            writers.push(spawn(async move {
                let session = doc! { "id": Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![w as u8 + 1; 16] }) };
                for i in 0..200_i64 {
                    let mut update = doc! { "update": "a", "lsid": session.clone(), "txnNumber": i };
                    let inc = doc! { "q": doc! { "_id": (i * 7 + w) % 2000 }, "u": doc! { "$inc": doc! { "n": 1 } } };
                    update.push("updates", vec![Bson::from(inc)]);
                    own.ok(update.clone()).await;
                    // Sent again, wherever the database is by then, it is not carried out again.
                    own.ok(update).await;
                    let id = 10_000 + w * 1000 + i;
                    insert(&mut own, "a", vec![doc! { "_id": id, "n": 0 }.into()]).await;
                    // Collections come into being all the time.
                    insert(&mut own, &format!("made{}", i % 20), vec![doc! { "_id": id }.into()]).await;
                    if i % 2 == 0 {
                        let mut delete = doc! { "delete": "a" };
                        delete.push("deletes", vec![Bson::from(doc! { "q": doc! { "_id": id }, "limit": 1 })]);
                        own.ok(delete).await;
                    }
                }
            }));
        }
        let mut moves = 0;
        for to in ["s1", "s0", "s1", "s0", "s1"] {
            pause(30).await;
            c.ok(move_primary("test", to)).await;
            moves += 1;
        }
        for writer in writers {
            writer.await.unwrap();
        }
        let all = c.all(doc! { "find": "a" }).await;
        let sum: i64 = all.iter().filter_map(|d| d.get("n").and_then(Bson::as_i64)).sum();
        assert_eq!((moves, all.len(), sum), (5, 2000 + 3 * 100, 600));
        let mut made = 0;
        for i in 0..20 {
            made += count(&mut c, &format!("made{i}")).await;
        }
        assert_eq!(made, 600);
        assert!(names(&mut cluster.shard(0).await).await.is_empty());
        cluster.shut_down().await;
    });
}

#[test]
fn whoever_waits_for_a_move_goes_on_where_the_database_is() {
    run(async {
        let (cluster, mut c) = two_shards().await;
        for (round, to) in ["s1", "s0", "s1", "s0"].into_iter().enumerate() {
            insert(&mut c, "a", (0..500).map(|i| doc! { "_id": i, "k": i }.into()).collect()).await;
            let mut mover = cluster.router(0).await;
            let moving = spawn(async move {
                mover.ok(move_primary("test", to)).await;
            });
            pause(10).await;
            if round % 2 == 0 {
                c.ok(doc! { "shardCollection": "test.b", "key": doc! { "k": 1 }, "$db": "admin" }).await;
                moving.await.unwrap();
                insert(&mut c, "b", vec![doc! { "_id": 1, "k": 1 }.into()]).await;
                assert_eq!((count(&mut c, "a").await, count(&mut c, "b").await), (500, 1));
                c.ok(doc! { "drop": "a" }).await;
            } else {
                c.ok(doc! { "dropDatabase": 1 }).await;
                moving.await.unwrap();
                let entry = doc! { "find": "databases", "filter": doc! { "_id": "test" }, "$db": "config" };
                assert!(c.all(entry).await.is_empty(), "its entry goes with it");
                for n in 0..2 {
                    assert!(names(&mut cluster.shard(n).await).await.is_empty());
                }
                c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
            }
        }
        cluster.shut_down().await;
    });
}

#[test]
fn a_snapshot_from_before_a_database_moved_is_refused() {
    run(async {
        let (cluster, mut c) = two_shards().await;
        let mut insert = doc! { "insert": "a", "writeConcern": doc! { "w": "majority" } };
        insert.push("documents", (0..5).map(|i| doc! { "_id": i }.into()).collect::<Vec<Bson>>());
        c.ok(insert).await;
        let reply = c.ok(doc! { "find": "a", "readConcern": doc! { "level": "snapshot" } }).await;
        let then =
            reply.get("cursor").and_then(Bson::as_doc).and_then(|d| d.get("atClusterTime")).unwrap().clone();
        let at_then = || {
            let level = doc! { "level": "snapshot", "atClusterTime": then.clone() };
            doc! { "find": "a", "readConcern": level }
        };
        assert_eq!(c.all(at_then()).await.len(), 5);
        c.ok(move_primary("test", "s1")).await;
        assert_eq!(c.err(at_then()).await.0, 246, "not nothing");
        // Also in a transaction, of what is here by now and was made later than that time.
        let mut begin = at_then();
        begin
            .push("lsid", doc! { "id": Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![3; 16] }) });
        begin.push("txnNumber", 1_i64);
        begin.push("autocommit", false);
        begin.push("startTransaction", true);
        let refused = c.err(begin).await.0;
        assert!(matches!(refused, 246 | 272), "{refused}");
        assert_eq!(c.all(doc! { "find": "a", "readConcern": doc! { "level": "snapshot" } }).await.len(), 5);
        cluster.shut_down().await;
    });
}

#[test]
fn what_a_session_has_done_by_the_thousand_moves_as_well() {
    run(async {
        let (cluster, mut c) = two_shards().await;
        let session = doc! { "id": Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![9; 16] }) };
        let mut many = doc! { "insert": "a", "lsid": session, "txnNumber": 1_i64 };
        many.push("documents", (0..5000).map(|i| doc! { "_id": i }.into()).collect::<Vec<Bson>>());
        c.ok(many.clone()).await;
        c.ok(move_primary("test", "s1")).await;
        // Sent again, all of it was done.
        let again = c.ok(many).await;
        assert_eq!(again.get("n").and_then(Bson::as_i64), Some(5000));
        assert_eq!(count(&mut c, "a").await, 5000);
        cluster.shut_down().await;
    });
}

/// Lists, and what is said of the whole, go by where the database is now.
#[test]
fn a_router_with_an_old_view_lists_what_there_is() {
    run(async {
        let (mut cluster, mut c) = cluster("c", 10).await;
        insert(&mut c, "x", vec![doc! { "_id": 1 }.into()]).await;
        let other = cluster.add_router().await;
        let mut old_view = cluster.router(other).await;
        assert_eq!(old_view.all(doc! { "find": "x" }).await.len(), 1);
        c.ok(doc! { "movePrimary": "test", "to": "s1", "$db": "admin" }).await;
        insert(&mut c, "y", vec![doc! { "_id": 1 }.into()]).await;
        assert_eq!(old_view.all(doc! { "checkMetadataConsistency": 1, "$db": "test" }).await, []);
        c.ok(doc! { "movePrimary": "test", "to": "s0", "$db": "admin" }).await;
        let listed = old_view.all(doc! { "listCollections": 1, "nameOnly": true }).await;
        let mut names: Vec<&str> =
            listed.iter().filter_map(|d| d.get("name").and_then(Bson::as_str)).collect();
        names.sort_unstable();
        assert_eq!(names, ["c", "x", "y"]);
        cluster.shut_down().await;
    });
}

/// Whoever copies a collection under a name for the time being may have been ended in the middle.
#[test]
fn a_temporary_collection_moves_as_well() {
    run(async {
        let (cluster, mut c) = two_shards().await;
        insert(&mut c, "a", vec![doc! { "_id": 1 }.into()]).await;
        let create = doc! { "op": "c", "ns": "test.$cmd", "o": { "create": "tmp.a", "temp": true } };
        let made = cluster.shard(0).await.admin(doc! { "applyOps": vec![Bson::from(create)] }).await;
        assert_eq!(made.get("ok").and_then(Bson::as_f64), Some(1.0), "{made:?}");
        insert(&mut cluster.shard(0).await, "tmp.a", vec![doc! { "_id": 7 }.into()]).await;
        c.ok(move_primary("test", "s1")).await;
        let listed = c.all(doc! { "listCollections": 1, "filter": { "name": "tmp.a" } }).await;
        let options = listed[0].get("options").and_then(Bson::as_doc);
        assert_eq!(options.and_then(|o| o.get("temp")), Some(&Bson::Boolean(true)), "{listed:?}");
        assert_eq!((count(&mut c, "a").await, count(&mut c, "tmp.a").await), (1, 1));
        cluster.shut_down().await;
    });
}

/// Its collections have other UUIDs there, and whoever names one has asked for it before.
#[test]
fn a_rename_finds_its_collection_wherever_the_database_moves_meanwhile() {
    run(async {
        let (mut cluster, mut c) = two_shards().await;
        insert(&mut c, "a", (0..10).map(|i| doc! { "_id": i }.into()).collect()).await;
        let other = cluster.add_router().await;
        let mut mover = cluster.router(other).await;
        let moving = spawn(async move {
            for round in 0..8 {
                mover.ok(move_primary("test", if round % 2 == 0 { "s1" } else { "s0" })).await;
                // Where it never stays, nobody finds it.
                pause(300).await;
            }
        });
        let mut renamed = 0;
        while !moving.is_finished() {
            let (from, to) = if renamed % 2 == 0 { ("test.a", "test.b") } else { ("test.b", "test.a") };
            c.ok(doc! { "renameCollection": from, "to": to, "$db": "admin" }).await;
            renamed += 1;
        }
        moving.await.unwrap();
        assert!(renamed > 5, "{renamed} only");
        assert_eq!(count(&mut c, if renamed % 2 == 0 { "a" } else { "b" }).await, 10);
        cluster.shut_down().await;
    });
}

/// Nobody who makes an index waits for a move, and has it wherever the database is then.
#[test]
fn an_index_that_is_made_while_a_database_moves_is_where_it_goes() {
    run(async {
        let (mut cluster, mut c) = two_shards().await;
        // Copying the one in the middle takes longer than an index of the others.
        let small = ["a", "z"];
        for coll in small {
            insert(&mut c, coll, (0..20).map(|i| doc! { "_id": i }.into()).collect()).await;
        }
        for n in 0..8 {
            let pad = || "x".repeat(1000);
            let docs = (0..1000).map(|i| doc! { "_id": n * 1000 + i, "pad": pad() }.into()).collect();
            insert(&mut c, "m", docs).await;
        }
        let other = cluster.add_router().await;
        let (mut made, mut meanwhile) = (1, 0);
        for round in 0..8 {
            let mut mover = cluster.router(other).await;
            let to = if round % 2 == 0 { "s1" } else { "s0" };
            let moving = spawn(async move {
                // One that is being made at the last moment has it asked for again.
                while mover.run(move_primary("test", to)).await.get("ok").and_then(Bson::as_f64) != Some(1.0)
                {
                    pause(10).await;
                }
            });
            for _ in 0..4 {
                let name = format!("f{made}");
                for coll in small {
                    let mut key = Document::new();
                    key.push(name.clone(), 1);
                    let index = Bson::from(doc! { "key": key, "name": name.clone() });
                    c.ok(doc! { "createIndexes": coll, "indexes": vec![index] }).await;
                }
                made += 1;
                meanwhile += u32::from(!moving.is_finished());
                pause(30).await;
            }
            moving.await.unwrap();
            for coll in small {
                let listed = c.all(doc! { "listIndexes": coll, "cursor": { "batchSize": 100 } }).await;
                assert_eq!(listed.len(), made, "{coll} in round {round}");
            }
        }
        assert!(meanwhile > 5, "{meanwhile} only were made amid a move");
        cluster.shut_down().await;
    });
}
