//! Logins and privileges on clusters: who comes in at a router, what it may do, and how routers hear of changes.

#![allow(clippy::unwrap_used)]

mod audit;

use pando_auth::{Mechanism, Password, scram};
use pando_bson::{Binary, Bson, Document, doc};
use pando_command::privilege::Privileges;
use pando_command::{COMMANDS, Roles};
use pando_env::Clock;
use pando_env_tokio::RealClock;
use pando_testserver::{Client, Cluster, ROOT, run};

const UNAUTHORIZED: i32 = 13;

/// A login to its end: the last reply, or code and words of the one that failed.
async fn log_in(
    c: &mut Client,
    mechanism: Mechanism,
    (db, user, password): (&str, &str, &str),
    speculative: bool,
) -> Result<Document, (i32, String)> {
    let binary = |bytes: Vec<u8>| Bson::Binary(Binary { subtype: 0, bytes });
    let payload = |reply: &Document| match reply.get("payload") {
        Some(Bson::Binary(b)) => b.bytes.clone(),
        other => panic!("no payload: {other:?}"),
    };
    let (mut mine, first) = scram::Client::start(mechanism, user, Password::new(password), &[7; 18]);
    let start = doc! { "saslStart": 1, "mechanism": mechanism.name(), "payload": binary(first),
    "options": doc! { "skipEmptyExchange": true } };
    let mut answer = match speculative {
        true => {
            let mut start = start;
            start.push("db", db);
            let hello = c.ok(doc! { "hello": 1, "speculativeAuthenticate": start, "$db": "admin" }).await;
            match hello.get("speculativeAuthenticate") {
                Some(Bson::Document(d)) => d.clone(),
                other => panic!("not looked at: {other:?}"),
            }
        }
        false => {
            let mut start = start;
            start.push("$db", db);
            c.run(start).await
        }
    };
    for _ in 0..2 {
        if answer.get("ok").is_some_and(|v| !v.is_truthy()) {
            let code = answer.get("code").and_then(Bson::as_i64).unwrap_or(0) as i32;
            return Err((code, answer.get("errmsg").and_then(Bson::as_str).unwrap().to_owned()));
        }
        if answer.get("done").is_some_and(Bson::is_truthy) {
            mine.verify(&payload(&answer)).unwrap();
            return Ok(answer);
        }
        let proof = mine.prove(&payload(&answer)).unwrap();
        answer =
            c.run(doc! { "saslContinue": 1, "conversationId": 1, "payload": binary(proof), "$db": db }).await;
    }
    mine.verify(&payload(&answer)).unwrap();
    Ok(answer)
}

async fn with_user(cluster: &Cluster, router: usize, user: &str, roles: Vec<Bson>) -> Client {
    let mut root = cluster.router(router).await;
    let mut create = doc! { "createUser": user, "pwd": "pw" };
    create.push("roles", roles);
    root.admin(create).await;
    let mut c = cluster.stranger(router).await;
    c.log_in("admin", user, "pw").await;
    c
}
fn role(name: &str, db: &str) -> Bson {
    doc! { "role": name, "db": db }.into()
}
fn insert(coll: &str) -> Document {
    doc! { "insert": coll, "documents": vec![Bson::from(doc! { "a": 1 })] }
}

#[test]
fn users_of_the_config_servers_log_in_at_a_router_by_each_mechanism() {
    run(async {
        let cluster = Cluster::with_logins(1, 1).await;
        let mut root = cluster.router(0).await;
        root.ok(
            doc! { "createUser": "ann", "pwd": "pw", "roles": vec![role("read", "test")], "$db": "test" },
        )
        .await;
        for mechanism in Mechanism::ALL {
            for speculative in [false, true] {
                let mut c = cluster.stranger(0).await;
                log_in(&mut c, mechanism, ("test", "ann", "pw"), speculative).await.unwrap();
                let status = c.ok(doc! { "connectionStatus": 1, "showPrivileges": true }).await;
                let info = status.get("authInfo").and_then(Bson::as_doc).unwrap();
                let users = info.get("authenticatedUsers").and_then(Bson::as_array).unwrap();
                assert_eq!(users, [Bson::from(doc! { "user": "ann", "db": "test" })]);
                let roles = info.get("authenticatedUserRoles").and_then(Bson::as_array).unwrap();
                assert_eq!(roles, [role("read", "test")]);
                assert!(
                    !info.get("authenticatedUserPrivileges").and_then(Bson::as_array).unwrap().is_empty()
                );
                c.ok(doc! { "logout": 1 }).await;
                assert_eq!(c.err(doc! { "find": "x" }).await.0, UNAUTHORIZED);
            }
        }
        let mut c = cluster.stranger(0).await;
        let failed = (18, "Authentication failed.".to_owned());
        for wrong in [("test", "ann", "wrong"), ("test", "nobody", "pw"), ("admin", "ann", "pw")] {
            assert_eq!(log_in(&mut c, Mechanism::ScramSha256, wrong, false).await.unwrap_err(), failed);
        }
        let hello = c.ok(doc! { "hello": 1, "saslSupportedMechs": "test.ann", "$db": "admin" }).await;
        let listed = hello.get("saslSupportedMechs").and_then(Bson::as_array).unwrap();
        assert_eq!(listed, [Bson::from("SCRAM-SHA-1"), Bson::from("SCRAM-SHA-256")]);
        cluster.shut_down().await;
    });
}

#[test]
fn without_a_login_no_command_of_the_table_runs_that_needs_one() {
    run(async {
        let cluster = Cluster::with_logins(1, 1).await;
        let mut c = cluster.stranger(0).await;
        c.db = "admin".to_owned();
        let of_routers = COMMANDS.iter().filter(|row| row.roles.any(Roles::R));
        let mut n = 0;
        for row in of_routers.filter(|row| row.privileges != Privileges::Open) {
            let mut command = Document::new();
            command.push(row.name, 1);
            let (code, text) = c.err(command).await;
            assert_eq!(code, UNAUTHORIZED, "{} {text}", row.name);
            assert_eq!(text, format!("command {} requires authentication", row.name));
            n += 1;
        }
        assert!(n > 100, "{n}");
        cluster.shut_down().await;
    });
}

#[test]
fn the_first_user_is_created_without_a_login_and_nobody_else() {
    run(async {
        // `with_logins` has created it so.
        let cluster = Cluster::with_logins(1, 2).await;
        for router in 0..2 {
            let mut c = cluster.stranger(router).await;
            let again = doc! { "createUser": "eve", "pwd": "x", "roles": vec![role("root", "admin")], "$db": "admin" };
            assert_eq!(c.err(again).await.0, UNAUTHORIZED);
        }
        cluster.shut_down().await;
    });
}

#[test]
fn a_user_may_do_what_its_roles_allow_and_shards_do_it_for_the_router() {
    run(async {
        let cluster = Cluster::with_logins(2, 1).await;
        let mut root = cluster.router(0).await;
        root.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
        root.ok(doc! { "shardCollection": "test.x", "key": doc! { "_id": "hashed" }, "$db": "admin" }).await;
        for coll in ["x", "plain"] {
            root.ok(insert(coll)).await;
        }
        let mut other = insert("y");
        other.push("$db", "other");
        root.ok(other.clone()).await;

        let mut reads = with_user(&cluster, 0, "reads", vec![role("read", "test")]).await;
        for coll in ["x", "plain"] {
            assert_eq!(reads.all(doc! { "find": coll }).await.len(), 1, "{coll}");
            let (code, text) = reads.err(insert(coll)).await;
            assert_eq!(code, UNAUTHORIZED);
            assert!(text.starts_with("not authorized on test to execute command { insert:"), "{text}");
            assert_eq!(reads.err(doc! { "drop": coll }).await.0, UNAUTHORIZED);
        }
        assert_eq!(reads.err(doc! { "find": "y", "$db": "other" }).await.0, UNAUTHORIZED);
        // A stage that reads, or writes, elsewhere.
        let union = doc! { "$unionWith": doc! { "coll": "x" } };
        let out = doc! { "$out": "z" };
        for (stage, may) in [(union, true), (out, false)] {
            let mut aggregate = doc! { "aggregate": "plain" };
            aggregate.push("pipeline", vec![Bson::from(stage)]);
            aggregate.push("cursor", doc! {});
            match may {
                true => assert_eq!(reads.all(aggregate).await.len(), 2),
                false => assert_eq!(reads.err(aggregate).await.0, UNAUTHORIZED),
            }
        }
        for command in [
            doc! { "shardCollection": "test.n", "key": doc! { "_id": 1 } },
            doc! { "split": "test.x", "middle": doc! { "_id": 0i64 } },
            doc! { "addShard": "s/h" },
            doc! { "addShardToZone": "s0", "zone": "z" },
            doc! { "enableSharding": "n" },
            doc! { "usersInfo": 1 },
            doc! { "balancerStop": 1 },
            doc! { "getShardMap": 1 },
        ] {
            let mut command = command;
            command.push("$db", "admin");
            assert_eq!(reads.err(command.clone()).await.0, UNAUTHORIZED, "{command:?}");
        }
        reads.ok(doc! { "usersInfo": "reads", "$db": "admin" }).await;

        let mut manages = with_user(&cluster, 0, "manages", vec![role("clusterManager", "admin")]).await;
        manages.ok(doc! { "addShardToZone": "s0", "zone": "z", "$db": "admin" }).await;
        manages.ok(doc! { "shardCollection": "test.n", "key": doc! { "_id": 1 }, "$db": "admin" }).await;
        assert_eq!(manages.err(doc! { "find": "x" }).await.0, UNAUTHORIZED);

        let mut writes = with_user(&cluster, 0, "writes", vec![role("readWrite", "other")]).await;
        writes.ok(other).await;
        assert_eq!(writes.err(insert("x")).await.0, UNAUTHORIZED);
        cluster.shut_down().await;
    });
}

#[test]
fn lists_show_what_somebody_may_see() {
    run(async {
        let cluster = Cluster::with_logins(2, 1).await;
        let mut root = cluster.router(0).await;
        for db in ["test", "other"] {
            for coll in ["a", "b"] {
                let mut command = insert(coll);
                command.push("$db", db);
                root.ok(command).await;
            }
        }
        let of_a = doc! { "resource": doc! { "db": "test", "collection": "a" }, "actions": vec![Bson::from("find")] };
        root.admin(
            doc! { "createRole": "a", "privileges": vec![Bson::from(of_a)], "roles": Vec::<Bson>::new() },
        )
        .await;
        let mut c = with_user(&cluster, 0, "ann", vec![role("a", "admin")]).await;
        let names = |reply: &Document, field: &str| -> Vec<String> {
            let all = reply.get(field).and_then(Bson::as_array).unwrap().iter();
            all.map(|d| d.as_doc().unwrap().get("name").and_then(Bson::as_str).unwrap().to_owned()).collect()
        };
        let databases = c.admin(doc! { "listDatabases": 1, "nameOnly": true }).await;
        assert_eq!(names(&databases, "databases"), ["test"]);
        let all = doc! { "listDatabases": 1, "authorizedDatabases": false, "$db": "admin" };
        assert_eq!(c.err(all).await.0, UNAUTHORIZED);
        assert_eq!(c.err(doc! { "listCollections": 1 }).await.0, UNAUTHORIZED);
        let own = doc! { "listCollections": 1, "nameOnly": true, "authorizedCollections": true };
        let shown: Vec<_> = c.all(own.clone()).await;
        assert_eq!(shown.len(), 1);
        assert_eq!(shown[0].get("name").and_then(Bson::as_str), Some("a"));
        assert_eq!(root.all(own).await.len(), 2);
        let databases = root.admin(doc! { "listDatabases": 1, "nameOnly": true }).await;
        assert_eq!(names(&databases, "databases"), ["admin", "config", "other", "test"]);
        cluster.shut_down().await;
    });
}

#[test]
fn cursors_sessions_and_operations_are_their_users() {
    run(async {
        let cluster = Cluster::with_logins(1, 1).await;
        let mut root = cluster.router(0).await;
        let docs: Vec<Bson> = (0..20).map(|i| doc! { "_id": i }.into()).collect();
        root.ok(doc! { "insert": "x", "documents": docs }).await;
        let mut ann = with_user(&cluster, 0, "ann", vec![role("read", "test")]).await;
        let mut eve = with_user(&cluster, 0, "eve", vec![role("read", "test")]).await;
        let id =
            |reply: &Document| reply.get("cursor").and_then(Bson::as_doc).unwrap().get("id").unwrap().clone();
        let open = ann.ok(doc! { "find": "x", "batchSize": 2 }).await;
        let cursor = id(&open);
        let more = doc! { "getMore": cursor.clone(), "collection": "x", "batchSize": 2 };
        let kill = doc! { "killCursors": "x", "cursors": vec![cursor] };
        for command in [&more, &kill] {
            assert_eq!(eve.err(command.clone()).await.0, UNAUTHORIZED);
        }
        ann.ok(more.clone()).await;
        // The grant is taken back, and with it what was begun by it.
        root.admin(doc! { "revokeRolesFromUser": "ann", "roles": vec![role("read", "test")] }).await;
        let (code, text) = ann.err(more).await;
        assert!(code == UNAUTHORIZED && text.starts_with("not authorized for getMore"), "{text}");
        ann.ok(kill).await;

        // Somebody else's operations and sessions.
        let all = doc! { "currentOp": 1, "$db": "admin" };
        assert_eq!(eve.err(all).await.0, UNAUTHORIZED);
        let sleeping = Bson::Binary(Binary { subtype: 4, bytes: vec![5; 16] });
        let mut sleeps = cluster.router(0).await;
        let slow = doc! { "find": "x", "filter": doc! { "$expr": doc! { "$eq": vec![Bson::from(1), Bson::from(1)] } },
        "batchSize": 2, "lsid": doc! { "id": sleeping } };
        sleeps.ok(slow).await;
        let own = eve.ok(doc! { "currentOp": 1, "$ownOps": true, "$all": true, "$db": "admin" }).await;
        let rows = own.get("inprog").and_then(Bson::as_array).unwrap();
        let root_digest = pando_auth::UserName::new(ROOT.0, "admin").digest().to_vec();
        for row in rows {
            let uid = row.as_doc().unwrap().get("lsid").and_then(Bson::as_doc).and_then(|d| d.get("uid"));
            assert_ne!(uid, Some(&Bson::Binary(Binary { subtype: 0, bytes: root_digest.clone() })));
        }
        for command in [
            doc! { "killOp": 1, "op": "s0:1", "$db": "admin" },
            doc! { "killAllSessions": Vec::<Bson>::new() },
        ] {
            assert_eq!(eve.err(command).await.0, UNAUTHORIZED);
        }
        let of_root = doc! { "id": Bson::Binary(Binary { subtype: 4, bytes: vec![5; 16] }),
        "uid": Bson::Binary(Binary { subtype: 0, bytes: root_digest }) };
        let theirs = doc! { "killSessions": vec![Bson::from(of_root.clone())] };
        assert_eq!(eve.err(theirs).await.0, UNAUTHORIZED);
        assert_eq!(eve.err(doc! { "find": "x", "lsid": of_root }).await.0, UNAUTHORIZED);
        // Two users may have sessions of one number: what one kills is its own.
        let open = doc! { "find": "x", "batchSize": 2, "lsid": doc! { "id": Bson::Binary(Binary { subtype: 4, bytes: vec![6; 16] }) } };
        let of_root = id(&root.ok(open.clone()).await);
        let of_eve = id(&eve.ok(open).await);
        eve.ok(doc! { "killSessions": Vec::<Bson>::new() }).await;
        let lsid = doc! { "id": Bson::Binary(Binary { subtype: 4, bytes: vec![6; 16] }) };
        let more = |cursor: Bson| doc! { "getMore": cursor, "collection": "x", "lsid": lsid.clone() };
        assert_eq!(eve.err(more(of_eve)).await.0, 43);
        root.ok(more(of_root)).await;
        cluster.shut_down().await;
    });
}

#[test]
fn what_one_router_is_told_of_users_others_learn() {
    run(async {
        let cluster = Cluster::with_logins(1, 2).await;
        let mut ann = with_user(&cluster, 0, "ann", vec![role("read", "test")]).await;
        let mut elsewhere = cluster.stranger(1).await;
        elsewhere.log_in("admin", "ann", "pw").await;
        elsewhere.ok(doc! { "find": "x" }).await;
        // This router knows at once, the other one when it asks again.
        let mut root = cluster.router(0).await;
        root.admin(doc! { "grantRolesToUser": "ann", "roles": vec![role("readWrite", "test")] }).await;
        ann.ok(insert("x")).await;
        assert_eq!(elsewhere.err(insert("x")).await.0, UNAUTHORIZED);
        cluster.look_for_changes(1).await;
        elsewhere.ok(insert("x")).await;
        root.admin(doc! { "dropUser": "ann" }).await;
        let (code, text) = ann.err(doc! { "find": "x" }).await;
        assert_eq!((code, text.as_str()), (UNAUTHORIZED, "command find requires authentication"));
        elsewhere.ok(doc! { "find": "x" }).await;
        elsewhere.ok(doc! { "connectionStatus": 1 }).await;
        let mut at_the_other = cluster.router(1).await;
        at_the_other.admin(doc! { "invalidateUserCache": 1 }).await;
        assert_eq!(elsewhere.err(doc! { "find": "x" }).await.0, UNAUTHORIZED);
        // Another one of the same name is somebody else.
        let mut again = with_user(&cluster, 0, "ann", vec![role("read", "test")]).await;
        again.ok(doc! { "find": "x" }).await;
        assert_eq!(ann.err(doc! { "find": "x" }).await.0, UNAUTHORIZED);
        cluster.shut_down().await;
    });
}

#[test]
fn users_are_written_by_a_majority_and_by_nothing_else() {
    run(async {
        let cluster = Cluster::with_logins(1, 1).await;
        let mut root = cluster.router(0).await;
        root.db = "admin".to_owned();
        let create = |name: &str, w: Bson| doc! { "createUser": name, "pwd": "x", "roles": Vec::<Bson>::new(), "writeConcern": doc! { "w": w } };
        root.ok(create("a", Bson::from(1))).await;
        root.ok(create("b", Bson::from("majority"))).await;
        let (code, text) = root.err(create("c", Bson::from(2))).await;
        assert!(code == 72 && text.contains("may only use w:1 or w:majority"), "{code} {text}");
        assert_eq!(root.err(create("a", Bson::from(1))).await.0, 51003);
        root.ok(
            doc! { "createRole": "r", "privileges": Vec::<Bson>::new(), "roles": vec![role("read", "test")] },
        )
        .await;
        root.ok(doc! { "updateUser": "a", "roles": vec![role("r", "admin")] }).await;
        root.ok(doc! { "updateRole": "r", "roles": vec![role("readWrite", "test")] }).await;
        let roles = root.ok(doc! { "rolesInfo": "r" }).await;
        assert_eq!(roles.get("roles").and_then(Bson::as_array).unwrap().len(), 1);
        let users = root.ok(doc! { "usersInfo": 1 }).await;
        assert_eq!(users.get("users").and_then(Bson::as_array).unwrap().len(), 3);
        let mut a = cluster.stranger(0).await;
        a.log_in("admin", "a", "x").await;
        a.ok(insert("x")).await;
        root.ok(doc! { "dropRole": "r" }).await;
        assert_eq!(a.err(insert("x")).await.0, UNAUTHORIZED);
        // Its own password is everybody's to change, once it may.
        let n = root.ok(doc! { "dropAllUsersFromDatabase": 1, "$db": "nothing" }).await;
        assert_eq!(n.get("n").and_then(Bson::as_i64), Some(0));
        cluster.shut_down().await;
    });
}

#[test]
fn commands_between_nodes_are_for_nodes() {
    run(async {
        let cluster = Cluster::with_logins(1, 1).await;
        let mut root = cluster.router(0).await;
        // A user of the shard itself, who may nearly everything.
        let mut direct = cluster.shard(0).await;
        let roles: Vec<Bson> = ["root", "clusterAdmin"].iter().map(|r| role(r, "admin")).collect();
        direct.admin(doc! { "createUser": "local", "pwd": "pw", "roles": roles }).await;
        direct.log_in("admin", "local", "pw").await;
        for command in [
            doc! { "_shardsvrDropCollection": "x", "$db": "test" },
            doc! { "_addShard": 1, "shardIdentity": doc! {}, "$db": "admin" },
            doc! { "_flushRoutingTableCacheUpdates": "test.x", "$db": "admin" },
            doc! { "mergeChunks": "test.x", "$db": "admin" },
            doc! { "prepareTransaction": 1, "$db": "admin" },
        ] {
            assert_eq!(direct.err(command.clone()).await.0, UNAUTHORIZED, "{command:?}");
        }
        // Users of the cluster are none of the shard's.
        let mut direct = cluster.shard(0).await;
        let started = log_in(&mut direct, Mechanism::ScramSha256, ("admin", ROOT.0, ROOT.1), false).await;
        assert_eq!(started.unwrap_err().0, 18);
        let mut config = cluster.config_server().await;
        config.log_in("admin", ROOT.0, ROOT.1).await;
        for command in [
            doc! { "_configsvrAddShard": "s/h", "$db": "admin" },
            doc! { "_configsvrRemoveShard": "s0", "$db": "admin" },
            doc! { "_getUserCacheGeneration": 1, "$db": "admin" },
        ] {
            assert_eq!(config.err(command.clone()).await.0, UNAUTHORIZED, "{command:?}");
        }
        // Routers have none of them, and a client's word that it is a node is no proof.
        let hello = doc! { "hello": 1, "internalClient": doc! { "minWireVersion": 0, "maxWireVersion": 21 }, "$db": "admin" };
        let mut c = cluster.stranger(0).await;
        c.ok(hello).await;
        assert_eq!(c.err(doc! { "_shardsvrDropCollection": "x" }).await.0, 59);
        assert_eq!(c.err(doc! { "find": "x" }).await.0, UNAUTHORIZED);
        root.ok(insert("x")).await;
        cluster.shut_down().await;
    });
}

#[test]
fn a_set_with_another_key_or_none_is_no_shard_of_the_cluster() {
    run(async {
        let mut cluster = Cluster::with_logins(1, 1).await;
        let mut root = cluster.router(0).await;
        for key in [None, Some("another key of others")] {
            let i = cluster.start_shard(key).await;
            let refused = root.err(doc! { "addShard": cluster.shard_host(i), "$db": "admin" }).await;
            assert_eq!(refused.0, 18, "{refused:?}");
        }
        let i = cluster.start_shard(Some("one key of all")).await;
        root.ok(doc! { "addShard": cluster.shard_host(i), "$db": "admin" }).await;
        let shards = root.ok(doc! { "listShards": 1, "$db": "admin" }).await;
        assert_eq!(shards.get("shards").and_then(Bson::as_array).unwrap().len(), 2);
        cluster.shut_down().await;
    });
}

fn time_of(reply: &Document) -> (Bson, i64) {
    let told = reply.get("$clusterTime").and_then(Bson::as_doc).expect("a time").clone();
    let signature = told.get("signature").and_then(Bson::as_doc).expect("a signature");
    let key = signature.get("keyId").and_then(Bson::as_i64).unwrap();
    (told.into(), key)
}

/// A time some seconds later, with the proof of the earlier one and the number of some key.
fn told_ahead(told: &Bson, key: i64) -> Bson {
    let Bson::Document(mut forged) = told.clone() else { panic!() };
    let Some(Bson::Timestamp(at)) = forged.get("clusterTime").cloned() else { panic!() };
    forged.set("clusterTime", Bson::Timestamp(pando_base::Timestamp::new(at.secs() + 60, 1)));
    let Some(Bson::Document(mut signature)) = forged.remove("signature") else { panic!() };
    signature.set("keyId", key);
    forged.push("signature", signature);
    forged.into()
}

#[test]
fn times_are_signed_by_one_key_everywhere_and_nobody_can_make_one_up() {
    run(async {
        let cluster = Cluster::with_logins(1, 2).await;
        let mut root = cluster.router(0).await;
        root.ok(insert("x")).await;
        let (told, key) = time_of(&root.ok(doc! { "ping": 1 }).await);
        assert_ne!(key, 0, "signed");
        let mut ann = with_user(&cluster, 0, "ann", vec![role("read", "test")]).await;
        let find = |time: Bson| doc! { "find": "x", "$clusterTime": time };
        ann.ok(find(told.clone())).await;
        assert_eq!(ann.err(find(told_ahead(&told, key))).await.0, 204);
        assert_eq!(ann.err(find(told_ahead(&told, key + 1000))).await.0, 211);
        // What one router signs another one takes, and so does a shard, which has the key from the config servers.
        let mut elsewhere = cluster.stranger(1).await;
        elsewhere.log_in("admin", "ann", "pw").await;
        elsewhere.ok(find(told.clone())).await;
        let mut direct = cluster.shard(0).await;
        direct.db = "admin".to_owned();
        direct.ok(doc! { "createUser": "local", "pwd": "pw", "roles": vec![role("read", "admin")] }).await;
        direct.log_in("admin", "local", "pw").await;
        let mut signed_by = 0;
        for _ in 0..200 {
            signed_by = time_of(&direct.ok(doc! { "find": "x" }).await).1;
            if signed_by != 0 {
                break;
            }
            pando_testserver::pause(50).await;
        }
        assert_eq!(signed_by, key);
        let later = time_of(&root.ok(insert("x")).await).0;
        direct.ok(find(later)).await;
        assert_eq!(direct.err(find(told_ahead(&told, key))).await.0, 204);
        cluster.shut_down().await;
    });
}

/// Nothing of this costs a cluster without logins anything: nobody is asked who it is.
#[test]
fn without_logins_everybody_may_do_everything_and_times_are_not_signed() {
    run(async {
        let cluster = Cluster::of(1, 1).await;
        let mut c = cluster.router(0).await;
        c.ok(insert("x")).await;
        assert_eq!(time_of(&c.ok(doc! { "ping": 1 }).await).1, 0);
        let status = c.ok(doc! { "connectionStatus": 1 }).await;
        let users = status.get("authInfo").and_then(Bson::as_doc).unwrap().get("authenticatedUsers").unwrap();
        assert!(users.as_array().unwrap().is_empty());
        // Users may be made before logins are asked for, and may log in.
        c.admin(doc! { "createUser": "ann", "pwd": "pw", "roles": vec![role("read", "test")] }).await;
        c.log_in("admin", "ann", "pw").await;
        c.ok(insert("x")).await;
        cluster.shut_down().await;
    });
}

/// As a real server has it: what is kept might have been changed.
#[test]
fn a_merge_that_keeps_what_is_there_needs_the_right_to_update() {
    run(async {
        let cluster = Cluster::with_logins(1, 1).await;
        let mut root = with_user(&cluster, 0, "ann", vec![role("root", "admin")]).await;
        for (name, actions) in [("inserts", vec!["insert"]), ("updates", vec!["insert", "update"])] {
            let on = |coll: &str| doc! { "db": "test", "collection": coll };
            let mut reads = doc! { "resource": on("from") };
            reads.push("actions", vec![Bson::from("find")]);
            let mut writes = doc! { "resource": on("to") };
            writes.push("actions", actions.into_iter().map(Bson::from).collect::<Vec<_>>());
            let mut create = doc! { "createRole": name, "roles": [], "$db": "test" };
            create.push("privileges", vec![Bson::from(reads), Bson::from(writes)]);
            root.ok(create).await;
        }
        root.ok(insert("from")).await;
        for (user, may) in [("inserts", false), ("updates", true)] {
            let mut c = with_user(&cluster, 0, user, vec![role(user, "test")]).await;
            let merge = doc! { "$merge": { "into": "to", "whenMatched": "keepExisting" } };
            let mut aggregate = doc! { "aggregate": "from", "cursor": {}, "$db": "test" };
            aggregate.push("pipeline", vec![Bson::from(merge)]);
            let reply = c.run(aggregate).await;
            let code = reply.get("code").and_then(Bson::as_i64);
            assert_eq!(code, if may { None } else { Some(13) }, "{user}: {reply:?}");
        }
        cluster.shut_down().await;
    });
}

#[test]
fn whether_a_client_may_write_while_writes_are_blocked_is_told_with_what_a_router_sends() {
    run(async {
        let cluster = Cluster::with_logins(1, 1).await;
        let mut ann = with_user(&cluster, 0, "ann", vec![role("readWrite", "test")]).await;
        ann.ok(insert("x")).await;
        let block = doc! { "setUserWriteBlockMode": 1, "global": true, "$db": "admin" };
        cluster.router(0).await.ok(block).await;
        let mut bypasses = insert("x");
        bypasses.push("mayBypassWriteBlocking", true);
        for command in [insert("x"), bypasses] {
            let reply = ann.run(command).await;
            let errors = reply.get("writeErrors").and_then(Bson::as_array).unwrap_or_default();
            let code = |d: &Document| d.get("code").and_then(Bson::as_i64);
            let first = errors.first().and_then(Bson::as_doc).and_then(code);
            assert_eq!(first.or(code(&reply)), Some(371), "{reply:?}");
        }
        cluster.router(0).await.ok(insert("x")).await;
        cluster.shut_down().await;
    });
}

/// What somebody must be allowed for commands about shards, chunks and zones: with it the command says what it thinks of its
/// arguments, without it nothing but 13.
#[test]
fn commands_about_a_cluster_need_their_actions_on_what_they_name() {
    let on = |db: &str, coll: &str| doc! { "db": db, "collection": coll };
    let cluster = || doc! { "cluster": true };
    let x = || on("test", "x");
    let of_x = |name: &str| {
        let mut command = Document::new();
        command.push(name, "test.x");
        command
    };
    let named = |name: &str, value: &str| {
        let mut command = Document::new();
        command.push(name, value);
        command
    };
    type Needs = Vec<(Document, Vec<&'static str>)>;
    let cases: Vec<(Document, Needs)> = vec![
        (of_x("shardCollection"), vec![(x(), vec!["enableSharding"])]),
        (named("enableSharding", "test"), vec![(on("test", ""), vec!["enableSharding"])]),
        (of_x("split"), vec![(x(), vec!["splitChunk"])]),
        (of_x("mergeChunks"), vec![(x(), vec!["splitChunk"])]),
        (of_x("moveChunk"), vec![(x(), vec!["moveChunk"])]),
        (of_x("moveRange"), vec![(x(), vec!["moveChunk"])]),
        (named("movePrimary", "test"), vec![(on("test", ""), vec!["moveChunk"])]),
        (of_x("clearJumboFlag"), vec![(x(), vec!["clearJumboFlag"])]),
        (of_x("refineCollectionShardKey"), vec![(x(), vec!["refineCollectionShardKey"])]),
        (of_x("balancerCollectionStatus"), vec![(x(), vec!["enableSharding"])]),
        (of_x("configureCollectionBalancing"), vec![(x(), vec!["splitChunk"])]),
        (
            doc! { "configureCollectionBalancing": "test.x", "enableBalancing": true },
            vec![(x(), vec!["splitChunk", "moveChunk"])],
        ),
        (of_x("getShardVersion"), vec![(x(), vec!["getShardVersion"])]),
        (doc! { "balancerStart": 1 }, vec![(on("config", "settings"), vec!["update"])]),
        (doc! { "balancerStop": 1 }, vec![(on("config", "settings"), vec!["update"])]),
        (doc! { "balancerStatus": 1 }, vec![(on("config", "settings"), vec!["find"])]),
        (named("addShardToZone", "s0"), vec![(on("config", "shards"), vec!["update"])]),
        (named("addShardToZone", "s0"), vec![(cluster(), vec!["enableSharding"])]),
        (
            named("removeShardFromZone", "s0"),
            vec![(on("config", "shards"), vec!["update"]), (on("config", "tags"), vec!["find"])],
        ),
        (
            of_x("updateZoneKeyRange"),
            vec![
                (on("config", "shards"), vec!["find"]),
                (on("config", "tags"), vec!["find", "update", "remove"]),
            ],
        ),
        (named("addShard", "nobody"), vec![(cluster(), vec!["addShard"])]),
        (named("removeShard", "nobody"), vec![(cluster(), vec!["removeShard"])]),
        (doc! { "listShards": 1 }, vec![(cluster(), vec!["listShards"])]),
        (doc! { "getShardMap": 1 }, vec![(cluster(), vec!["getShardMap"])]),
        (doc! { "flushRouterConfig": 1 }, vec![(cluster(), vec!["flushRouterConfig"])]),
    ];
    run(async move {
        let cluster = Cluster::with_logins(1, 1).await;
        let mut root = cluster.router(0).await;
        let nothing = || Bson::Array(Vec::new());
        root.admin(doc! { "createRole": "r", "privileges": nothing(), "roles": nothing() }).await;
        let mut c = with_user(&cluster, 0, "ann", vec![role("r", "admin")]).await;
        c.db = "admin".to_owned();
        for (command, needs) in cases {
            // All of them, and all but one.
            let flat: Vec<_> = needs
                .iter()
                .flat_map(|(on, actions)| actions.iter().map(move |a| (on.clone(), *a)))
                .collect();
            for missing in std::iter::once(None).chain((0..flat.len()).map(Some)) {
                let kept = flat.iter().enumerate().filter(|(i, _)| Some(*i) != missing);
                let privileges: Vec<Bson> = kept
                    .map(|(_, (on, action))| doc! { "resource": on.clone(), "actions": [*action] }.into())
                    .collect();
                root.admin(doc! { "updateRole": "r", "privileges": privileges }).await;
                let reply = c.run(command.clone()).await;
                let refused = reply.get("code").and_then(Bson::as_i64) == Some(i64::from(UNAUTHORIZED));
                assert_eq!(refused, missing.is_some(), "{command:?} without {missing:?}: {reply:?}");
            }
        }
        cluster.shut_down().await;
    });
}

/// They cannot be changed meanwhile. Whoever has to be asked about is waited for once.
#[test]
fn while_the_config_servers_are_silent_users_may_do_what_they_could() {
    run(async {
        let mut cluster = Cluster::with_logins(1, 1).await;
        let mut ann = with_user(&cluster, 0, "ann", vec![role("readWrite", "test")]).await;
        let mut root = cluster.router(0).await;
        ann.ok(insert("x")).await;
        let port = cluster.lose_config_server().await;
        ann.ok(insert("x")).await;
        let mut again = cluster.stranger(0).await;
        again.log_in("admin", "ann", "pw").await;
        again.ok(insert("x")).await;
        // Now everybody has to be read again, and cannot be.
        root.admin(doc! { "invalidateUserCache": 1 }).await;
        let clock = RealClock::new();
        let begun = clock.mono();
        ann.ok(insert("x")).await;
        let waited = clock.mono() - begun;
        for c in [&mut ann, &mut again] {
            for _ in 0..3 {
                c.ok(insert("x")).await;
            }
        }
        assert!(clock.mono() - begun < waited * 2, "only the first one has waited");
        assert_eq!(ann.err(doc! { "drop": "x", "$db": "other" }).await.0, UNAUTHORIZED);
        // What was not known then is found out when they are back, though their users are as they were.
        cluster.find_config_server(port).await;
        let mut direct = cluster.config_server().await;
        direct.log_in("admin", ROOT.0, ROOT.1).await;
        direct.admin(doc! { "revokeRolesFromUser": "ann", "roles": vec![role("readWrite", "test")] }).await;
        cluster.look_for_changes(0).await;
        for _ in 0..100 {
            if ann.run(insert("x")).await.get("code").and_then(Bson::as_i64) == Some(13) {
                break;
            }
            pando_testserver::pause(100).await;
            cluster.look_for_changes(0).await;
        }
        assert_eq!(ann.err(insert("x")).await.0, UNAUTHORIZED);
        cluster.shut_down().await;
    });
}
