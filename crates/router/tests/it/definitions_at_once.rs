//! Definitions of the same names at the same time, through two routers: one comes after the other, and what is left fits together
//! (SYS-260).

#![allow(clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Cluster, pause, run, spawn};

/// What may be told to whoever comes second: it exists already, is gone, is sharded now, is another one, or was changed meanwhile.
const MAY_BE_TOLD: &[i64] = &[
    10,  // CannotCreateCollection
    20,  // IllegalOperation: what is sharded and what is not do not take each other's place
    23,  // AlreadyInitialized: sharded by another key
    26,  // NamespaceNotFound
    27,  // IndexNotFound
    48,  // NamespaceExists
    117, // ConflictingOperationInProgress
    118, // NamespaceNotSharded
    215, // DatabaseDropPending
];

fn definition(n: usize) -> Document {
    match n % 11 {
        0 => doc! { "create": "a", "$db": "at_once" },
        1 => doc! { "shardCollection": "at_once.a", "key": { "k": 1 }, "$db": "admin" },
        2 => doc! { "renameCollection": "at_once.a", "to": "at_once.b", "$db": "admin" },
        3 => doc! { "renameCollection": "at_once.b", "to": "at_once.a", "dropTarget": true, "$db": "admin" },
        4 => doc! { "drop": "a", "$db": "at_once" },
        5 => doc! { "collMod": "a", "validationLevel": "moderate", "$db": "at_once" },
        6 => {
            let index = doc! { "key": { "x": 1 }, "name": "x_1" };
            doc! { "createIndexes": "a", "indexes": [index], "$db": "at_once" }
        }
        7 => doc! { "dropIndexes": "a", "index": "x_1", "$db": "at_once" },
        8 => doc! { "shardCollection": "at_once.b", "key": { "k": "hashed" }, "$db": "admin" },
        9 => doc! { "dropDatabase": 1, "$db": "at_once" },
        _ => doc! { "drop": "b", "$db": "at_once" },
    }
}

#[test]
fn definitions_of_the_same_names_at_once_come_one_after_the_other() {
    run(async {
        let cluster = Cluster::of(2, 2).await;
        let mut tasks = Vec::new();
        for client in 0..4_usize {
            let mut c = cluster.router(client % 2).await;
            tasks.push(spawn(async move {
                let (mut made, mut told) = (0, std::collections::BTreeMap::<i64, usize>::new());
                for turn in 0..40_usize {
                    let definition = definition(turn * 7 + client * 3 + turn / 11);
                    let reply = c.run(definition.clone()).await;
                    match reply.get("ok").and_then(Bson::as_f64) {
                        Some(1.0) => made += 1,
                        _ => {
                            let code = reply.get("code").and_then(Bson::as_i64).unwrap_or_default();
                            assert!(MAY_BE_TOLD.contains(&code), "{definition:?}: {reply:?}");
                            *told.entry(code).or_default() += 1;
                        }
                    }
                }
                (made, told)
            }));
        }
        let mut all_made = 0;
        for task in tasks {
            let (made, told) = task.await.unwrap();
            println!("{made} made; refused by code: {told:?}");
            all_made += made;
        }
        assert!(all_made > 40, "{all_made} are made");
        let mut c = cluster.router(0).await;
        let coordinators = doc! { "find": "system.sharding_ddl_coordinators", "$db": "config" };
        let sections = doc! { "find": "collection_critical_sections", "$db": "config" };
        for n in 0..2 {
            for left in [&coordinators, &sections] {
                for _ in 0..200 {
                    if cluster.shard(n).await.all(left.clone()).await.is_empty() {
                        break;
                    }
                    pause(20).await;
                }
                assert!(cluster.shard(n).await.all(left.clone()).await.is_empty(), "{left:?}");
            }
        }
        let wrong = c.all(doc! { "checkMetadataConsistency": 1, "$db": "at_once" }).await;
        assert!(wrong.is_empty(), "{wrong:?}");
        // Each name can be taken and given up as if nothing had been.
        for coll in ["a", "b"] {
            c.ok(doc! { "drop": coll, "$db": "at_once" }).await;
            let key =
                doc! { "shardCollection": format!("at_once.{coll}"), "key": { "z": 1 }, "$db": "admin" };
            c.ok(key).await;
        }
        cluster.shut_down().await;
    });
}
