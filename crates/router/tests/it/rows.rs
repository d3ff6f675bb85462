//! What the systems of a cluster promise, one by one, as a client of a router sees it.

#![allow(clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_command::roles::ClusterRole;
use pando_testserver::{Client, Cluster, Set, pause, run};

fn at<'a>(d: &'a Document, path: &str) -> Option<&'a Bson> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(a, b)| (a, Some(b)));
    let found = d.get(first)?;
    match rest {
        None => Some(found),
        Some(rest) => at(found.as_doc()?, rest),
    }
}
fn text<'a>(d: &'a Document, path: &str) -> &'a str {
    at(d, path).and_then(Bson::as_str).unwrap_or_default()
}
fn code(reply: &Document) -> i64 {
    at(reply, "code").and_then(Bson::as_i64).unwrap_or_default()
}
async fn admin(c: &mut Client, command: Document) -> Document {
    let mut command = command;
    command.push("$db", "admin");
    c.run(command).await
}
/// What profiling of a shard notes of the commands that are meant, behind them.
async fn profiled_by(shard: &mut Client, filter: Document) -> Document {
    loop {
        let mut find = doc! { "find": "system.profile", "$db": "test" };
        find.push("filter", filter.clone());
        if let Some(noted) = shard.all(find).await.pop() {
            return noted;
        }
        pause(5).await;
    }
}
async fn profiled(shard: &mut Client, comment: &str) -> Document {
    profiled_by(shard, doc! { "command.comment": comment }).await
}

/// SYS-014.
#[test]
fn clients_that_name_no_concern_go_by_what_is_set_for_the_cluster() {
    run(async {
        let cluster = Cluster::of(1, 2).await;
        let (mut c, mut shard) = (cluster.router(0).await, cluster.shard(0).await);
        c.ok(doc! { "insert": "c", "documents": [doc! { "_id": 1 }] }).await;
        shard.ok(doc! { "profile": 2, "$db": "test" }).await;
        let find = |comment: &str| doc! { "find": "c", "comment": comment };
        c.ok(find("before")).await;
        let noted = profiled(&mut shard, "before").await;
        assert_eq!(text(&noted, "command.readConcern.provenance"), "implicitDefault", "{noted:?}");
        let set = doc! { "setDefaultRWConcern": 1, "defaultReadConcern": doc! { "level": "majority" },
        "defaultWriteConcern": doc! { "w": 1, "wtimeout": 77 } };
        assert_eq!(code(&admin(&mut c, set).await), 0);
        c.ok(find("behind")).await;
        let noted = profiled(&mut shard, "behind").await;
        assert_eq!(text(&noted, "command.readConcern.level"), "majority");
        assert_eq!(text(&noted, "command.readConcern.provenance"), "customDefault");
        c.ok(doc! { "find": "c", "comment": "given", "readConcern": doc! { "level": "local" } }).await;
        assert_eq!(text(&profiled(&mut shard, "given").await, "command.readConcern.level"), "local");
        let insert = doc! { "insert": "c", "documents": [doc! { "_id": 2 }], "comment": "written" };
        c.ok(insert).await;
        let noted = profiled_by(&mut shard, doc! { "op": "insert" }).await;
        assert_eq!(at(&noted, "command.writeConcern.wtimeout").and_then(Bson::as_i64), Some(77), "{noted:?}");
        assert_eq!(text(&noted, "command.writeConcern.provenance"), "customDefault");
        // Shards keep none of their own.
        for command in ["getDefaultRWConcern", "setDefaultRWConcern"] {
            let mut asked = Document::new();
            asked.push(command, 1);
            asked.push("defaultWriteConcern", doc! { "w": 1 });
            assert_eq!(code(&admin(&mut shard, asked).await), 51301, "{command}");
        }
        cluster.shut_down().await;
    });
}

/// SYS-197, SYS-248, SYS-270.
#[test]
fn what_is_not_sharded_lies_on_one_shard_and_lists_show_everything_once() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        for (db, shard) in [("one", "s0"), ("two", "s1")] {
            admin(&mut c, doc! { "enableSharding": db, "primaryShard": shard }).await;
            let options = doc! { "create": "c", "capped": true, "size": 4096, "max": 3, "$db": db };
            c.ok(options).await;
            c.ok(doc! { "insert": "d", "documents": [doc! { "a": 1 }], "$db": db }).await;
            let index = doc! { "key": doc! { "a": 1 }, "name": "a", "sparse": true };
            c.ok(doc! { "createIndexes": "d", "indexes": [index], "$db": db }).await;
        }
        admin(&mut c, doc! { "shardCollection": "one.s", "key": doc! { "_id": "hashed" } }).await;
        for i in 0..2 {
            let mut shard = cluster.shard(i).await;
            for (db, owner) in [("one", 0), ("two", 1)] {
                let names = |found: Vec<Document>| -> Vec<String> {
                    let mut names: Vec<String> = found.iter().map(|d| text(d, "name").to_owned()).collect();
                    names.sort();
                    names
                };
                let found = names(shard.all(doc! { "listCollections": 1, "$db": db }).await);
                let expected: &[&str] = match (db, i == owner) {
                    ("one", true) => &["c", "d", "s"],
                    ("one", false) => &["s"],
                    (_, true) => &["c", "d"],
                    (_, false) => &[],
                };
                assert_eq!(found, expected, "{db} on s{i}");
            }
        }
        let listed = c.all(doc! { "listCollections": 1, "filter": doc! { "name": "c" }, "$db": "two" }).await;
        assert_eq!(listed.len(), 1);
        assert_eq!(at(&listed[0], "options.max").and_then(Bson::as_i64), Some(3), "{listed:?}");
        let listed = c.all(doc! { "listCollections": 1, "nameOnly": true, "$db": "one" }).await;
        assert_eq!(listed.len(), 3, "{listed:?}");
        let indexes = c.all(doc! { "listIndexes": "d", "$db": "two" }).await;
        assert_eq!(indexes.iter().map(|d| text(d, "name")).collect::<Vec<_>>(), ["_id_", "a"]);
        let reply = admin(&mut c, doc! { "listDatabases": 1 }).await;
        let databases = at(&reply, "databases").and_then(Bson::as_array).unwrap();
        let names: Vec<&str> = databases.iter().map(|d| text(d.as_doc().unwrap(), "name")).collect();
        assert_eq!(names, ["admin", "config", "one", "two"], "{reply:?}");
        let one = databases[2].as_doc().unwrap();
        let sizes = at(one, "shards").and_then(Bson::as_doc).unwrap();
        let sum: i64 = sizes.iter().filter_map(|(_, size)| size.as_i64()).sum();
        assert_eq!((sizes.len(), at(one, "sizeOnDisk").and_then(Bson::as_i64)), (2, Some(sum)));
        cluster.shut_down().await;
    });
}

/// SYS-247.
#[test]
fn an_index_is_made_where_the_collection_has_parts_and_nowhere_else() {
    run(async {
        let cluster = Cluster::of(3, 1).await;
        let mut c = cluster.router(0).await;
        admin(&mut c, doc! { "enableSharding": "test", "primaryShard": "s0" }).await;
        for (shard, zone, min, max) in
            [("s1", "low", Bson::MinKey, Bson::Int32(0)), ("s2", "high", Bson::Int32(0), Bson::MaxKey)]
        {
            admin(&mut c, doc! { "addShardToZone": shard, "zone": zone }).await;
            let mut range = doc! { "updateZoneKeyRange": "test.c" };
            range.push("min", doc! { "k": min });
            range.push("max", doc! { "k": max });
            range.push("zone", zone);
            admin(&mut c, range).await;
        }
        assert_eq!(
            code(&admin(&mut c, doc! { "shardCollection": "test.c", "key": doc! { "k": 1 } }).await),
            0
        );
        let index = doc! { "key": doc! { "a": 1 }, "name": "a" };
        let made = c.ok(doc! { "createIndexes": "c", "indexes": [index] }).await;
        let raw: Vec<&str> =
            at(&made, "raw").and_then(Bson::as_doc).unwrap().iter().map(|(name, _)| name).collect();
        assert_eq!(raw.len(), 2, "{made:?}");
        for (i, expected) in [(0, 0), (1, 1), (2, 1)] {
            let mut shard = cluster.shard(i).await;
            let reply = shard.run(doc! { "listIndexes": "c", "$db": "test" }).await;
            let found = at(&reply, "cursor.firstBatch").and_then(Bson::as_array).unwrap_or_default();
            let named = found.iter().filter(|d| text(d.as_doc().unwrap(), "name") == "a").count();
            assert_eq!(named, expected, "s{i}: {reply:?}");
        }
        cluster.shut_down().await;
    });
}

/// SYS-015.
#[test]
fn a_set_whose_writes_wait_for_nobody_is_no_shard_until_the_cluster_says_what_they_wait_for() {
    run(async {
        let cluster = Cluster::of(1, 1).await;
        let mut c = cluster.router(0).await;
        let members = [doc! {}, doc! { "priority": 0 }, doc! { "arbiterOnly": true }];
        let set = Set::configured_as(&members, |c| c.cluster_role = Some(ClusterRole::Shard)).await;
        let add = doc! { "addShard": format!("rs/{}", set.host(0)), "name": "s1" };
        let refused = admin(&mut c, add.clone()).await;
        assert_eq!(code(&refused), 96, "{refused:?}");
        assert!(text(&refused, "errmsg").contains("implicit default write concern"), "{refused:?}");
        let default = doc! { "setDefaultRWConcern": 1, "defaultWriteConcern": doc! { "w": 1 } };
        assert_eq!(code(&admin(&mut c, default).await), 0);
        let added = admin(&mut c, add).await;
        assert_eq!(text(&added, "shardAdded"), "s1", "{added:?}");
        set.shut_down().await;
        cluster.shut_down().await;
    });
}

/// SYS-193, SYS-195, SYS-253.
#[test]
fn a_router_that_begins_from_nothing_goes_on_where_another_one_was() {
    run(async {
        let mut cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        admin(&mut c, doc! { "shardCollection": "test.c", "key": doc! { "_id": "hashed" } }).await;
        let documents: Vec<Bson> = (0..100).map(|i| doc! { "_id": i }.into()).collect();
        let mut insert = doc! { "insert": "c" };
        insert.push("documents", documents);
        c.ok(insert).await;
        let next = cluster.add_router().await;
        let mut c = cluster.router(next).await;
        assert_eq!(c.all(doc! { "find": "c" }).await.len(), 100);
        let update = doc! { "q": doc! { "_id": 7 }, "u": doc! { "$set": doc! { "a": 1 } } };
        let reply = c.ok(doc! { "update": "c", "updates": [update] }).await;
        assert_eq!(at(&reply, "nModified").and_then(Bson::as_i64), Some(1));
        let spelled = c.run(doc! { "insert": "c", "documents": [doc! { "_id": 1 }], "$db": "Test" }).await;
        assert_eq!(code(&spelled), 13297, "{spelled:?}");
        cluster.shut_down().await;
    });
}

/// SYS-216.
#[test]
fn a_router_that_begins_before_its_config_servers_serves_once_they_are_there() {
    run(async {
        let mut cluster = Cluster::of(1, 1).await;
        let mut c = cluster.router(0).await;
        admin(&mut c, doc! { "shardCollection": "test.c", "key": doc! { "_id": 1 } }).await;
        c.ok(doc! { "insert": "c", "documents": [doc! { "_id": 1 }] }).await;
        let next = cluster.add_router_before_config_server().await;
        let mut c = cluster.router(next).await;
        assert_eq!(c.all(doc! { "find": "c" }).await.len(), 1);
        c.ok(doc! { "insert": "c", "documents": [doc! { "_id": 2 }] }).await;
        cluster.shut_down().await;
    });
}

/// SYS-196, SYS-217.
#[test]
fn config_servers_hold_nothing_in_parts_and_a_shard_belongs_to_one_cluster() {
    run(async {
        let (cluster, other) = (Cluster::of(1, 1).await, Cluster::of(1, 1).await);
        let mut c = cluster.router(0).await;
        for ns in ["config.c", "admin.c", "local.c"] {
            let refused = admin(&mut c, doc! { "shardCollection": ns, "key": doc! { "_id": 1 } }).await;
            assert_eq!(code(&refused), 20, "{ns}: {refused:?}");
        }
        let host = format!("s0/127.0.0.1:{}", other.shard_port(0));
        let refused = admin(&mut c, doc! { "addShard": host, "name": "taken" }).await;
        assert_eq!(code(&refused), 20, "{refused:?}");
        let config = format!("c/127.0.0.1:{}", other.config_port());
        let refused = admin(&mut c, doc! { "addShard": config, "name": "config server" }).await;
        assert_ne!(code(&refused), 0, "{refused:?}");
        let listed = admin(&mut c, doc! { "listShards": 1 }).await;
        assert_eq!(at(&listed, "shards").and_then(Bson::as_array).map(|s| s.len()), Some(1), "{listed:?}");
        cluster.shut_down().await;
        other.shut_down().await;
    });
}

/// SYS-207 to SYS-210.
#[test]
fn reads_go_where_they_are_preferred_and_writes_find_the_next_primary() {
    run(async {
        let cluster = Cluster::of(1, 1).await;
        let members = [
            doc! { "tags": doc! { "dc": "a" } },
            doc! { "tags": doc! { "dc": "b" } },
            doc! {
                "tags": doc! { "dc": "c" }, "priority": 0
            },
        ];
        let set = Set::configured_as(&members, |c| c.cluster_role = Some(ClusterRole::Shard)).await;
        let mut c = cluster.router(0).await;
        admin(&mut c, doc! { "addShard": format!("rs/{}", set.host(0)), "name": "s1" }).await;
        admin(&mut c, doc! { "enableSharding": "test", "primaryShard": "s1" }).await;
        // A member that lags behind does not know yet that it belongs to a shard.
        let mut insert = doc! { "insert": "c", "documents": [doc! { "_id": 1 }] };
        insert.push("writeConcern", doc! { "w": 3 });
        c.ok(insert).await;
        let primary = set.primary().await;
        let asked = async |c: &mut Client, preference: Document| {
            let mut explain = doc! { "explain": doc! { "find": "c" }, "$db": "test" };
            explain.push("$readPreference", preference);
            let reply = c.run(explain).await;
            let plan = at(&reply, "queryPlanner.winningPlan.shards").and_then(Bson::as_array);
            let server = plan.and_then(|s| at(s.first()?.as_doc()?, "serverInfo.port")?.as_i64());
            let ends = |i: &usize| set.host(*i).ends_with(&format!(":{}", server.unwrap_or_default()));
            (0..3).find(ends).unwrap_or_else(|| panic!("{reply:?}"))
        };
        assert_eq!(asked(&mut c, doc! { "mode": "primary" }).await, primary);
        assert_eq!(asked(&mut c, doc! { "mode": "primaryPreferred" }).await, primary);
        assert_ne!(asked(&mut c, doc! { "mode": "secondary" }).await, primary);
        assert_ne!(asked(&mut c, doc! { "mode": "secondaryPreferred" }).await, primary);
        for (tag, member) in [("a", 0), ("b", 1), ("c", 2)] {
            let nearest = doc! { "mode": "nearest", "tags": [doc! { "dc": "none" }, doc! { "dc": tag }] };
            assert_eq!(asked(&mut c, nearest).await, member, "{tag}");
        }
        let none = doc! { "mode": "secondary", "tags": [doc! { "dc": "none" }] };
        let mut find = doc! { "find": "c", "maxTimeMS": 700 };
        find.push("$readPreference", none);
        let refused = c.run(find).await;
        assert!([50, 133].contains(&code(&refused)), "{refused:?}");
        // Whoever steps down says so, and the next write goes to who follows.
        set.connect(primary).await.run(doc! { "replSetStepDown": 60, "force": true, "$db": "admin" }).await;
        let next = set.primary().await;
        assert_ne!(next, primary);
        let mut insert = doc! { "insert": "c", "documents": [doc! { "_id": 2 }] };
        insert
            .push("lsid", doc! { "id": Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![7; 16] }) });
        insert.push("txnNumber", Bson::Int64(1));
        let reply = c.run(insert).await;
        assert_eq!(at(&reply, "n").and_then(Bson::as_i64), Some(1), "{reply:?}");
        assert_eq!(asked(&mut c, doc! { "mode": "primary" }).await, next);
        set.shut_down().await;
        cluster.shut_down().await;
    });
}

#[test]
fn what_a_transaction_makes_is_known_to_its_next_statements() {
    run(async {
        let cluster = Cluster::of(1, 1).await;
        let mut c = cluster.router(0).await;
        for number in 1..3_i64 {
            // The second time it was there before, and is dropped.
            let _ = c.run(doc! { "drop": "c", "$db": "test" }).await;
            let within = |mut body: Document| {
                let id = pando_bson::Binary { subtype: 4, bytes: vec![5; 16] };
                body.push("lsid", doc! { "id": Bson::Binary(id) });
                body.push("txnNumber", number);
                body.push("autocommit", false);
                body
            };
            let mut create = within(doc! { "create": "c" });
            create.push("startTransaction", true);
            c.ok(create).await;
            let index = doc! { "key": doc! { "a": 1 }, "name": "a" };
            c.ok(within(doc! { "createIndexes": "c", "indexes": [index] })).await;
            c.ok(within(doc! { "insert": "c", "documents": [doc! { "_id": 1 }] })).await;
            let mut commit = within(doc! { "commitTransaction": 1 });
            commit.push("$db", "admin");
            c.ok(commit).await;
            assert_eq!(c.all(doc! { "find": "c" }).await.len(), 1);
        }
        cluster.shut_down().await;
    });
}
