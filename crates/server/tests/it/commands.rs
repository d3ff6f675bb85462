//! Commands around the data: what is refused and how, versions, sessions, builds in progress.

use pando_access::{Missing, WriteAcquisition};
use pando_base::Namespace;
use pando_bson::{Binary, Bson, Document, doc};
use pando_command::OpCtx;
use pando_testserver::{Client, JoinHandle, Running, World, pause, run, spawn, yield_now};

fn docs(n: i32) -> Bson {
    Bson::Array((0..n).map(|i| Bson::Document(doc! { "_id": i, "a": i })).collect())
}

async fn refused(c: &mut Client, command: Document) -> i32 {
    c.err(command).await.0
}

#[test]
fn wrong_names_and_fields_get_mongodbs_codes() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        assert_eq!(refused(&mut c, doc! { "killCursors": "", "cursors": [5i64] }).await, 73);
        assert_eq!(refused(&mut c, doc! { "killCursors": 5, "cursors": [5i64] }).await, 2);
        assert_eq!(refused(&mut c, doc! { "collStats": 5 }).await, 73);
        // Told without a code.
        assert_eq!(refused(&mut c, doc! { "dbStats": 1, "scale": 0 }).await, 0);
        assert_eq!(refused(&mut c, doc! { "find": "c", "ntoreturn": 1 }).await, 5_746_102);
        assert_eq!(refused(&mut c, doc! { "find": "c", "ntoreturn": 1, "limit": 1 }).await, 2);
        assert_eq!(refused(&mut c, doc! { "createSearchIndexes": "c", "indexes": [] }).await, 115);
        assert_eq!(refused(&mut c, doc! { "reIndex": "c" }).await, 20);
        assert_eq!(refused(&mut c, doc! { "usersInfo": {} }).await, 2);
        server.shut_down().await;
    });
}

#[test]
fn the_stable_api_refuses_what_it_does_not_have() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let strict = |mut d: Document| {
            d.push("apiVersion", "1");
            d.push("apiStrict", true);
            d
        };
        assert_eq!(refused(&mut c, strict(doc! { "find": "c", "tailable": true })).await, 323);
        assert_eq!(refused(&mut c, strict(doc! { "distinct": "c", "key": "a" })).await, 323);
        assert_eq!(
            refused(&mut c, strict(doc! { "listIndexes": "c", "includeBuildUUIDs": true })).await,
            323
        );
        let stages = |stage: Document| doc! { "aggregate": "c", "pipeline": [stage], "cursor": {} };
        assert_eq!(refused(&mut c, strict(stages(doc! { "$indexStats": {} }))).await, 323);
        assert_eq!(refused(&mut c, strict(stages(doc! { "$collStats": { "latencyStats": {} } }))).await, 323);
        for field in ["size", "autoIndexId", "storageEngine"] {
            let mut create = doc! { "create": "c" };
            create.push(field, 1);
            assert_eq!(refused(&mut c, strict(create)).await, 323, "{field}");
        }
        c.ok(strict(doc! { "find": "c", "limit": 1, "singleBatch": true })).await;
        server.shut_down().await;
    });
}

#[test]
fn a_command_may_insist_on_the_collections_uuid() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        let listed = c.all(doc! { "listCollections": 1 }).await;
        let info = listed[0].get("info").and_then(Bson::as_doc).expect("info");
        let right = info.get("uuid").cloned().expect("a UUID");
        let wrong = Bson::Binary(Binary { subtype: 4, bytes: vec![9; 16] });
        let commands = [
            doc! { "find": "c" },
            doc! { "aggregate": "c", "pipeline": [], "cursor": {} },
            doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }] },
            doc! { "dropIndexes": "c", "index": "a" },
            doc! { "collMod": "c", "validationLevel": "off" },
            doc! { "insert": "c", "documents": [{ "_id": 2 }] },
            doc! { "update": "c", "updates": [{ "q": { "_id": 2 }, "u": { "$set": { "a": 1 } } }] },
            doc! { "delete": "c", "deletes": [{ "q": { "_id": 2 }, "limit": 1 }] },
            doc! { "drop": "c" },
        ];
        for command in commands {
            let with = |uuid: &Bson| {
                let mut d = command.clone();
                d.push("collectionUUID", uuid.clone());
                d
            };
            let reply = c.run(with(&wrong)).await;
            let error = match reply.get("writeErrors") {
                Some(Bson::Array(errors)) => errors[0].as_doc().cloned().expect("an error"),
                _ => reply,
            };
            assert_eq!(error.get("code").and_then(Bson::as_i64), Some(361), "{command:?} gave {error:?}");
            assert_eq!(error.get("expectedCollection").and_then(Bson::as_str), Some("c"));
            assert_eq!(error.get("actualCollection"), Some(&Bson::Null));
            let reply = c.ok(with(&right)).await;
            assert!(!reply.contains("writeErrors"), "{command:?} gave {reply:?}");
        }
        server.shut_down().await;
    });
}

#[test]
fn a_command_that_is_not_built_is_refused_after_fail_points() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        assert_eq!(refused(&mut c, doc! { "dbCheck": "c" }).await, 115);
        assert_eq!(refused(&mut c, doc! { "nosuch": 1 }).await, 59);
        let admin = |mut d: Document| {
            d.push("$db", "admin");
            d
        };
        assert_eq!(refused(&mut c, admin(doc! { "_configsvrAddShard": 1 })).await, 20);
        assert_eq!(refused(&mut c, admin(doc! { "_shardsvrReshardCollection": 1 })).await, 193);
        assert_eq!(refused(&mut c, doc! { "_configsvrAddShard": 1 }).await, 13);
        let data = doc! { "failCommands": ["dbCheck"], "errorCode": 11 };
        c.admin(doc! { "configureFailPoint": "failCommand", "mode": { "times": 1 }, "data": data }).await;
        assert_eq!(refused(&mut c, doc! { "dbCheck": "c" }).await, 11);
        server.shut_down().await;
    });
}

#[test]
fn the_feature_compatibility_version_survives_a_restart() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let version = |d: &Document| {
            let v = d.get("featureCompatibilityVersion").and_then(Bson::as_doc);
            v.and_then(|v| v.get("version")).and_then(Bson::as_str).map(str::to_owned)
        };
        let get = || doc! { "getParameter": 1, "featureCompatibilityVersion": 1 };
        let set = |v: &str| doc! { "setFeatureCompatibilityVersion": v, "$db": "admin" };
        assert_eq!(version(&c.admin(get()).await).as_deref(), Some("7.0"));
        assert_eq!(refused(&mut c, set("6.0")).await, 7_369_100);
        assert_eq!(refused(&mut c, set("4.4")).await, 4_926_900);
        let mut confirmed = set("6.0");
        confirmed.push("confirm", true);
        c.ok(confirmed).await;
        // Nor can its document be made nonsense, or go.
        let by_id = doc! { "_id": "featureCompatibilityVersion" };
        let nonsense = doc! { "q": by_id.clone(), "u": { "$set": { "version": "3.0" } } };
        let update = doc! { "update": "system.version", "updates": [nonsense], "$db": "admin" };
        let delete =
            doc! { "delete": "system.version", "deletes": [{ "q": by_id, "limit": 1 }], "$db": "admin" };
        for (command, code) in [(update, 4_926_900), (delete, 40670)] {
            let reply = c.run(command).await;
            let errors = reply.get("writeErrors").and_then(Bson::as_array).expect("an error");
            let found = errors[0].as_doc().and_then(|e| e.get("code")?.as_i64());
            assert_eq!(found, Some(code), "{reply:?}");
        }
        server.shut_down().await;

        let server = world.start_set().await;
        let mut c = server.connect().await;
        assert_eq!(version(&c.admin(get()).await).as_deref(), Some("6.0"));
        server.shut_down().await;
    });
}

#[test]
fn local_sessions_are_listed_with_their_last_use() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let session = c.ok(doc! { "startSession": 1 }).await;
        let id = session.get("id").cloned().expect("a session has an id");
        let rows =
            c.all(doc! { "aggregate": 1, "pipeline": [{ "$listLocalSessions": {} }], "cursor": {} }).await;
        let ids: Vec<_> = rows.iter().filter_map(|r| r.get("_id")?.as_doc()?.get("id").cloned()).collect();
        assert!(ids.contains(id.as_doc().and_then(|d| d.get("id")).expect("an inner id")), "{rows:?}");
        assert!(rows.iter().all(|r| matches!(r.get("lastUse"), Some(Bson::DateTime(_)))));
        let on_collection =
            doc! { "aggregate": "c", "pipeline": [{ "$listLocalSessions": {} }], "cursor": {} };
        assert_eq!(refused(&mut c, on_collection).await, 73);
        server.shut_down().await;
    });
}

/// Starts a build of `{a: 1}` on `coll` and keeps it from finishing as long as the returned guard lives.
async fn held_build(server: &Running, coll: &'static str) -> (WriteAcquisition, JoinHandle<Document>) {
    let ns = Namespace::unchecked("test", coll);
    for _ in 0..20 {
        let mut c = server.connect().await;
        let building = spawn(async move {
            c.ok(doc! { "createIndexes": coll, "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] }).await
        });
        while server.server.access.maintenance().running_builds().is_empty() && !building.is_finished() {
            yield_now().await;
        }
        let ctx = OpCtx::internal(server.server.instance.internal_client("holder"), "holder", "test");
        if let Some(guard) = server.server.access.write(&ctx, &ns, Missing::Nothing).await.expect("a lock")
            && !server.server.access.maintenance().running_builds().is_empty()
        {
            return (guard, building);
        }
        // The build was faster: once more.
        building.await.expect("the build ends");
        server.connect().await.ok(doc! { "dropIndexes": coll, "index": "a_1" }).await;
    }
    panic!("the build always ends before it can be held");
}

#[test]
fn a_build_in_progress_shows_in_current_op_and_in_the_list_of_indexes() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": docs(4000) }).await;
        let (guard, building) = held_build(&server, "c").await;
        let ops = c.admin(doc! { "currentOp": 1, "desc": "IndexBuildsCoordinator" }).await;
        let Some(Bson::Array(ops)) = ops.get("inprog") else { panic!("no inprog") };
        let op = ops.first().and_then(Bson::as_doc).expect("the build's row");
        assert_eq!(op.get("ns").and_then(Bson::as_str), Some("test.c"));
        assert!(op.get("msg").and_then(Bson::as_str).is_some_and(|m| m.starts_with("Index Build: ")));
        assert!(op.get("progress").and_then(Bson::as_doc).is_some_and(|p| p.contains("total")));

        let plain = c.all(doc! { "listIndexes": "c" }).await;
        assert_eq!(plain[1].get("name").and_then(Bson::as_str), Some("a_1"));
        let rows = c.all(doc! { "listIndexes": "c", "includeBuildUUIDs": true }).await;
        assert!(rows[0].contains("name") && rows[1].contains("buildUUID") && rows[1].contains("spec"));
        let rows = c.all(doc! { "listIndexes": "c", "includeIndexBuildInfo": true }).await;
        assert!(rows[0].contains("spec") && !rows[0].contains("indexBuildInfo"));
        assert!(
            rows[1].get("indexBuildInfo").and_then(Bson::as_doc).is_some_and(|d| d.contains("buildUUID"))
        );
        let both = doc! { "listIndexes": "c", "includeBuildUUIDs": true, "includeIndexBuildInfo": true };
        assert_eq!(refused(&mut c, both).await, 72);

        drop(guard);
        building.await.expect("the build ends");
        let rows = c.all(doc! { "listIndexes": "c", "includeBuildUUIDs": true }).await;
        assert!(rows[1].contains("name") && !rows[1].contains("buildUUID"));
        server.shut_down().await;
    });
}

#[test]
fn no_more_builds_run_at_once_than_the_parameter_says() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.admin(doc! { "setParameter": 1, "maxNumActiveUserIndexBuilds": 1 }).await;
        c.ok(doc! { "insert": "one", "documents": docs(4000) }).await;
        c.ok(doc! { "insert": "two", "documents": docs(5) }).await;
        let (guard, first) = held_build(&server, "one").await;
        let mut c2 = server.connect().await;
        let second = spawn(async move {
            c2.ok(doc! { "createIndexes": "two", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] }).await
        });
        pause(300).await;
        assert_eq!(server.server.access.maintenance().running_builds().len(), 1);
        assert!(!second.is_finished());
        // An index on an empty collection is no build.
        c.ok(doc! { "createIndexes": "empty", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] }).await;
        drop(guard);
        first.await.expect("the first build ends");
        second.await.expect("the second build ends");
        server.shut_down().await;
    });
}

#[test]
fn re_index_and_compact_keep_the_data_of_a_standalone_server() {
    run(async {
        let world = World::new();
        let server = world.start_standalone().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": docs(50) }).await;
        c.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] }).await;
        let r = c.ok(doc! { "reIndex": "c" }).await;
        assert_eq!((r.get("nIndexesWas"), r.get("nIndexes")), (Some(&Bson::Int32(2)), Some(&Bson::Int32(2))));
        assert!(c.ok(doc! { "compact": "c" }).await.contains("bytesFreed"));
        assert_eq!(refused(&mut c, doc! { "compact": "nope" }).await, 26);
        assert_eq!(
            c.all(doc! { "find": "c", "filter": { "a": 7 }, "hint": "a_1" }).await,
            [doc! { "_id": 7, "a": 7 }]
        );
        assert_eq!(c.ok(doc! { "validate": "c" }).await.get("valid"), Some(&Bson::Boolean(true)));
        server.shut_down().await;
    });
}

#[test]
fn bulk_write_answers_each_operation_and_sums_up() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let bulk = |ops: Vec<Document>, ordered: bool| {
            let ops: Vec<Bson> = ops.into_iter().map(Bson::Document).collect();
            doc! { "bulkWrite": 1, "ops": Bson::Array(ops), "ordered": ordered, "$db": "admin",
            "nsInfo": [{ "ns": "test.a" }, { "ns": "test.b" }] }
        };
        let r = c
            .ok(bulk(
                vec![
                    doc! { "insert": 0, "document": { "_id": 1, "x": 1 } },
                    doc! { "insert": 1, "document": { "_id": 1 } },
                    doc! { "update": 0, "filter": { "_id": 1 }, "updateMods": { "$inc": { "x": 1 } } },
                    doc! { "update": 0, "filter": { "_id": 2 }, "updateMods": { "$set": { "x": 9 } }, "upsert": true },
                    doc! { "delete": 1, "filter": {}, "multi": true },
                ],
                true,
            ))
            .await;
        let count = |r: &Document, name: &str| r.get(name).and_then(Bson::as_i64).unwrap();
        let sums = ["nErrors", "nInserted", "nMatched", "nModified", "nUpserted", "nDeleted"];
        assert_eq!(sums.map(|s| count(&r, s)), [0, 2, 1, 1, 1, 1]);
        let again = vec![
            doc! { "insert": 0, "document": { "_id": 1 } },
            doc! { "insert": 0, "document": { "_id": 3 } },
        ];
        let r = c.ok(bulk(again.clone(), true)).await;
        assert_eq!((count(&r, "nErrors"), count(&r, "nInserted")), (1, 0));
        let r = c.ok(bulk(again, false)).await;
        assert_eq!((count(&r, "nErrors"), count(&r, "nInserted")), (1, 1));
        assert_eq!(refused(&mut c, bulk(vec![doc! { "insert": 2, "document": {} }], true)).await, 2);
        server.shut_down().await;
    });
}

/// What a router says of versions is taken by shards only; it was dropped in silence.
#[test]
fn versions_of_databases_and_chunks_are_refused_by_a_server_that_is_no_shard() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": docs(1) }).await;
        let t = pando_base::Timestamp::new(5, 1);
        let chunk = doc! { "e": pando_bson::ObjectId([6; 12]), "t": t, "v": t };
        let of_db = doc! { "timestamp": t, "lastMod": 1 };
        for command in [
            doc! { "insert": "c", "documents": [{ "_id": 7 }] },
            doc! { "update": "c", "updates": [{ "q": {}, "u": { "$set": { "b": 1 } } }] },
            doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] },
            doc! { "findAndModify": "c", "query": {}, "remove": true },
            doc! { "find": "c" },
            doc! { "aggregate": "c", "pipeline": [{ "$out": "d" }], "cursor": {} },
            doc! { "count": "c" },
            doc! { "distinct": "c", "key": "_id" },
            doc! { "create": "d" },
            doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }] },
            doc! { "drop": "c" },
            doc! { "getMore": 5i64, "collection": "c" },
            doc! { "listCollections": 1 },
            doc! { "ping": 1 },
            doc! { "hello": 1 },
        ] {
            for (name, version) in [("shardVersion", &chunk), ("databaseVersion", &of_db)] {
                let mut command = command.clone();
                command.push(name, version.clone());
                assert_eq!(refused(&mut c, command.clone()).await, 193, "{command:?}");
            }
        }
        let there = c.all(doc! { "find": "c" }).await;
        assert_eq!(there, [doc! { "_id": 0, "a": 0 }], "nothing was done");
        assert_eq!(c.all(doc! { "listCollections": 1 }).await.len(), 1);
        assert_eq!(c.all(doc! { "listIndexes": "c" }).await.len(), 1);
        server.shut_down().await;
    });
}

/// As a real server does; what stands behind it is not lost.
#[test]
fn a_null_between_statements_is_passed_over() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let list = |docs: Vec<Document>| {
            let mut list: Vec<Bson> = docs.into_iter().map(Bson::from).collect();
            list.insert(1, Bson::Null);
            Bson::Array(list)
        };
        let n = |reply: &Document| reply.get("n").and_then(Bson::as_i64);
        let docs = || list(vec![doc! { "_id": 1 }, doc! { "_id": 2 }]);
        let done = c.ok(doc! { "insert": "nulls", "documents": docs() }).await;
        assert_eq!(n(&done), Some(2));
        let set = |id: i32| doc! { "q": doc! { "_id": id }, "u": doc! { "$set": doc! { "x": 1 } } };
        let done = c.ok(doc! { "update": "nulls", "updates": list(vec![set(1), set(2)]) }).await;
        assert_eq!(n(&done), Some(2));
        let gone = |id: i32| doc! { "q": doc! { "_id": id }, "limit": 1 };
        let done = c.ok(doc! { "delete": "nulls", "deletes": list(vec![gone(1), gone(2)]) }).await;
        assert_eq!(n(&done), Some(2));
        server.shut_down().await;
    });
}

/// An upsert by `_id` and a version is how clients lock optimistically: it meets the document, and is told so at once.
#[test]
fn an_upsert_whose_filter_asks_for_more_than_the_key_in_its_way_fails() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "a", "documents": [{ "_id": 5, "k": 5, "e": "x" }] }).await;
        c.ok(doc! { "createIndexes": "a", "indexes": [{ "key": { "e": 1 }, "name": "e", "unique": true }] })
            .await;
        for filter in [
            doc! { "_id": 5, "k": 999 },
            doc! { "_id": 6, "e": "x", "k": { "$gt": 100 } },
            doc! { "e": "x", "k": 7 },
        ] {
            let mut one = doc! { "q": filter.clone(), "upsert": true };
            one.push("u", doc! { "$set": { "v": 1 } });
            let mut update = doc! { "update": "a" };
            update.push("updates", vec![Bson::Document(one)]);
            let reply = c.ok(update).await;
            let errors = reply.get("writeErrors").and_then(Bson::as_array).unwrap();
            assert_eq!(errors[0].as_doc().unwrap().get("code"), Some(&Bson::Int32(11000)), "{filter:?}");
            let mut modify = doc! { "findAndModify": "a", "upsert": true };
            modify.push("query", filter.clone());
            modify.push("update", doc! { "$set": { "v": 2 } });
            assert_eq!(c.err(modify).await.0, 11000, "{filter:?}");
        }
    });
}
