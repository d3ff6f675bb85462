//! The writes of users of a whole cluster are blocked: who is refused, who passes, and what goes on (SYS-265).

#![allow(clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Cluster, JoinHandle, pause, run, spawn};

const STEP: &str = "hangBeforeWorkflowAction";

fn admin(name: &str, first: impl Into<Bson>) -> Document {
    let mut command = Document::new();
    command.push(name, first.into());
    command.push("$db", "admin");
    command
}
fn with(mut command: Document, more: Document) -> Document {
    more.iter().for_each(|(name, v)| command.push(name, v.clone()));
    command
}
fn block(on: bool) -> Document {
    with(admin("setUserWriteBlockMode", 1), doc! { "global": on })
}
fn insert(coll: &str, k: i32) -> Document {
    doc! { "insert": coll, "documents": vec![Bson::from(doc! { "k": k })] }
}
/// The code of a command, or of its first mistake; 0 where all is well.
async fn code(c: &mut Client, command: Document) -> i64 {
    let reply = c.run(command).await;
    let code = |d: &Document| d.get("code").and_then(Bson::as_i64);
    let errors = reply.get("writeErrors").and_then(Bson::as_array).unwrap_or_default();
    let first = errors.first().and_then(Bson::as_doc).and_then(code);
    first.or(code(&reply)).unwrap_or(0)
}
async fn section(c: &mut Client) -> Vec<(bool, bool)> {
    let all = c.all(doc! { "find": "user_writes_critical_sections", "$db": "config" }).await;
    let is = |d: &Document, field: &str| d.get(field) == Some(&Bson::Boolean(true));
    all.iter().map(|d| (is(d, "blockNewUserShardedDDL"), is(d, "blockUserWrites"))).collect()
}
async fn ok(c: &mut Client, commands: Vec<Document>) {
    for command in commands {
        c.ok(command).await;
    }
}

/// Definitions of users: with them writes are refused whose blocking begins with definitions.
fn definitions() -> Vec<Document> {
    vec![
        with(admin("shardCollection", "test.n"), doc! { "key": { "k": 1 } }),
        doc! { "drop": "c" },
        doc! { "drop": "plain" },
        doc! { "dropDatabase": 1 },
        doc! { "collMod": "c", "validator": {} },
        with(admin("renameCollection", "test.c"), doc! { "to": "test.x" }),
        with(admin("renameCollection", "test.plain"), doc! { "to": "test.x" }),
        with(admin("refineCollectionShardKey", "test.c"), doc! { "key": { "k": 1, "l": 1 } }),
    ]
}
/// What is refused with the writes themselves.
fn writes() -> Vec<Document> {
    let index = doc! { "key": { "z": 1 }, "name": "z" };
    vec![
        insert("c", -1),
        insert("c", 1),
        insert("plain", 1),
        doc! { "delete": "c", "deletes": vec![Bson::from(doc! { "q": {}, "limit": 0 })] },
        doc! { "findAndModify": "c", "query": { "k": -5 }, "remove": true },
        doc! { "create": "n" },
        with(doc! { "createIndexes": "c" }, doc! { "indexes": vec![Bson::from(index)] }),
        doc! { "dropIndexes": "c", "index": "kl" },
    ]
}
/// A collection on two shards, of which each has a document, and one that is not sharded.
async fn collections(c: &mut Client) {
    let index = doc! { "key": { "k": 1, "l": 1 }, "name": "kl" };
    ok(
        c,
        vec![
            admin("balancerStop", 1),
            with(admin("enableSharding", "test"), doc! { "primaryShard": "s0" }),
            with(admin("shardCollection", "test.c"), doc! { "key": { "k": 1 } }),
            with(admin("split", "test.c"), doc! { "middle": { "k": 0 } }),
            with(
                admin("moveChunk", "test.c"),
                doc! { "find": { "k": 0 }, "to": "s1", "_waitForDelete": true },
            ),
            insert("c", -5),
            insert("c", 5),
            insert("plain", 5),
            with(doc! { "createIndexes": "c" }, doc! { "indexes": vec![Bson::from(index)] }),
        ],
    )
    .await;
}

#[test]
fn users_of_a_cluster_are_refused_while_their_writes_are_blocked_and_some_pass() {
    run(async {
        let mut cluster = Cluster::with_logins(2, 1).await;
        let mut root = cluster.router(0).await;
        collections(&mut root).await;
        let roles = ["readWriteAnyDatabase", "dbAdminAnyDatabase", "clusterManager"];
        let role = |name: &&str| Bson::from(doc! { "role": *name, "db": "admin" });
        let mut create = doc! { "createUser": "ann", "pwd": "pw" };
        create.push("roles", roles.iter().map(role).collect::<Vec<_>>());
        root.admin(create).await;
        let port = cluster.router_port(0);
        let ann = async || {
            let mut c = Client::connect(port).await;
            c.log_in("admin", "ann", "pw").await;
            c
        };
        assert_eq!(code(&mut ann().await, block(true)).await, 13);
        root.ok(block(true)).await;
        for restarted in [false, true] {
            if restarted {
                cluster.restart_shard(0).await;
                cluster.restart_shard(1).await;
                cluster.restart_config_server().await;
                root = cluster.router(0).await;
                root.ok(doc! { "find": "c" }).await;
                root.ok(doc! { "find": "c", "filter": { "k": 5 } }).await;
            }
            let mut c = ann().await;
            for command in writes().into_iter().chain(definitions()) {
                assert_eq!(code(&mut c, command.clone()).await, 371, "{command:?}");
            }
            assert_eq!(c.all(doc! { "find": "c" }).await.len(), 2);
        }
        // Who may, does; and what shards do among each other goes on, whoever asks for it.
        let mut c = ann().await;
        ok(
            &mut c,
            vec![
                with(admin("split", "test.c"), doc! { "middle": { "k": 9 } }),
                with(admin("moveChunk", "test.c"), doc! { "find": { "k": 5 }, "to": "s0" }),
                with(admin("movePrimary", "test"), doc! { "to": "s1" }),
            ],
        )
        .await;
        ok(
            &mut root,
            vec![
                insert("c", -1),
                insert("plain", 1),
                with(admin("shardCollection", "test.n"), doc! { "key": { "k": 1 } }),
                with(admin("renameCollection", "test.c"), doc! { "to": "test.x" }),
                doc! { "collMod": "x", "validator": {} },
                doc! { "dropIndexes": "x", "index": "kl" },
                doc! { "drop": "n" },
            ],
        )
        .await;
        assert_eq!(root.all(doc! { "find": "x" }).await.len(), 3);
        root.ok(block(false)).await;
        let mut c = ann().await;
        ok(
            &mut c,
            vec![insert("x", 3), insert("plain", 3), doc! { "drop": "x" }, doc! { "dropDatabase": 1 }],
        )
        .await;
        cluster.shut_down().await;
    });
}

/// Until a command is done, or its workflow stands still on the node behind `c`.
async fn hangs(
    c: &mut Client,
    task: &JoinHandle<Document>,
    is_there: impl AsyncFn(&mut Client) -> bool,
) -> bool {
    for _ in 0..2000 {
        if is_there(c).await {
            return true;
        }
        if task.is_finished() {
            return false;
        }
        pause(5).await;
    }
    panic!("neither");
}
fn fail_point(mode: impl Into<Bson>) -> Document {
    let mut hang = doc! { "configureFailPoint": STEP };
    hang.push("mode", mode.into());
    hang
}
fn sent(cluster: &Cluster, command: Document) -> JoinHandle<Document> {
    let port = cluster.router_port(0);
    spawn(async move { Client::connect(port).await.run(command).await })
}

/// One is under way when blocking begins: it is waited for, and it ends; meanwhile none begins, and writes go on.
#[test]
fn definitions_are_drained_before_writes_are_blocked_and_come_back_after_them() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        collections(&mut c).await;
        let mut primary = cluster.shard(0).await;
        primary.admin(fail_point(doc! { "skip": 4 })).await;
        let dropped = sent(&cluster, doc! { "drop": "c", "$db": "test" });
        let is_begun = async |c: &mut Client| {
            let find = doc! { "find": "system.sharding_ddl_coordinators", "$db": "config" };
            !c.all(find).await.is_empty()
        };
        assert!(hangs(&mut primary, &dropped, is_begun).await);
        let blocked = sent(&cluster, block(true));
        let is_prepared = async |c: &mut Client| section(c).await == [(true, false)];
        assert!(hangs(&mut primary, &blocked, is_prepared).await);
        pause(200).await;
        assert!(!blocked.is_finished() && !dropped.is_finished());
        assert_eq!(section(&mut cluster.shard(1).await).await, [(true, false)]);
        assert_eq!(section(&mut cluster.config_server().await).await, []);
        ok(&mut c, vec![insert("plain", 6), doc! { "create": "new" }]).await;
        assert_eq!(code(&mut c, doc! { "drop": "plain" }).await, 371);
        let rename = with(admin("renameCollection", "test.plain"), doc! { "to": "test.x" });
        assert_eq!(code(&mut c, rename).await, 371);
        primary.admin(fail_point("off")).await;
        for task in [dropped, blocked] {
            let reply = task.await.unwrap();
            assert_eq!(reply.get("ok").and_then(Bson::as_f64), Some(1.0), "{reply:?}");
        }
        assert_eq!(code(&mut c, insert("plain", 7)).await, 371);
        // Between the phases of letting in: writes go, definitions do not.
        let mut config = cluster.config_server().await;
        config.admin(fail_point(doc! { "skip": 7 })).await;
        let let_in = sent(&cluster, block(false));
        let is_half = async |c: &mut Client| section(c).await == [(true, false)];
        assert!(hangs(&mut config, &let_in, is_half).await);
        ok(&mut c, vec![insert("plain", 8)]).await;
        assert_eq!(code(&mut c, doc! { "drop": "plain" }).await, 371);
        assert!(!let_in.is_finished());
        config.admin(fail_point("off")).await;
        let_in.await.unwrap();
        ok(&mut c, vec![doc! { "drop": "plain" }]).await;
        cluster.shut_down().await;
    });
}

/// Nobody logs in, so nobody's client passes: migrations do, by what shards say.
#[test]
fn shards_that_come_are_blocked_too_and_documents_move_meanwhile() {
    run(async {
        let mut cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        collections(&mut c).await;
        c.ok(block(true)).await;
        let i = cluster.start_shard(None).await;
        let mut new = cluster.shard(i).await;
        c.ok(admin("addShard", cluster.shard_host(i))).await;
        assert_eq!(section(&mut new).await, [(true, true)]);
        ok(
            &mut c,
            vec![
                with(admin("moveRange", "test.c"), doc! { "min": { "k": 0 }, "toShard": "s2" }),
                with(admin("movePrimary", "test"), doc! { "to": "s2" }),
            ],
        )
        .await;
        assert_eq!(code(&mut c, insert("c", 7)).await, 371);
        assert_eq!(code(&mut c, insert("plain", 7)).await, 371);
        assert_eq!(new.all(doc! { "find": "plain" }).await.len(), 1);
        assert_eq!(c.all(doc! { "find": "c" }).await.len(), 2);
        let passes = with(insert("c", 7), doc! { "mayBypassWriteBlocking": true });
        assert_eq!(code(&mut c, passes).await, 0);
        // One that goes stays as it is, and is what the cluster is when it comes back.
        ok(
            &mut c,
            vec![
                with(admin("moveRange", "test.c"), doc! { "min": { "k": 0 }, "toShard": "s0" }),
                with(admin("movePrimary", "test"), doc! { "to": "s0" }),
            ],
        )
        .await;
        for _ in 0..200 {
            let reply = c.admin(admin("removeShard", "s2")).await;
            if reply.get("state").and_then(Bson::as_str) == Some("completed") {
                break;
            }
            pause(20).await;
        }
        c.ok(block(false)).await;
        assert_eq!(section(&mut new).await, [(true, true)]);
        assert_eq!(section(&mut cluster.config_server().await).await, []);
        for i in 0..2 {
            assert_eq!(section(&mut cluster.shard(i).await).await, []);
        }
        // What has moved away is not there as a database of another shard's.
        new.ok(with(doc! { "dropDatabase": 1 }, doc! { "mayBypassWriteBlocking": true })).await;
        c.ok(admin("addShard", cluster.shard_host(i))).await;
        assert_eq!(section(&mut new).await, []);
        ok(&mut c, vec![insert("c", 9), insert("plain", 9)]).await;
        cluster.shut_down().await;
    });
}
