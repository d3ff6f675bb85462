//! Who may run what, compared with a real server: `recorded/privileges.jsonl` holds requests, and who of the users below is not told 13
//! by 6.0.5 (`tests/drivers/privileges.py` asks it). Where this server decides otherwise, the line says why.

#![allow(clippy::unwrap_used)]

use pando_auth::roles::Resolved;
use pando_auth::{
    Action, ActionSet, Authority, ClusterAuth, ClusterAuthMode, ClusterKeys, Privileges, UserName,
};
use pando_bson::{Bson, Document, doc};
use pando_command::{COMMANDS, OpCtx, Registry, Request, privilege};
use pando_testserver::{Client, Running, Set, World, run};
use std::collections::BTreeSet;
use std::sync::Arc;

const RECORDED: &str = include_str!("../recorded/privileges.jsonl");

const ROLES: [(&str, &str); 24] = [
    ("read", "test"),
    ("readWrite", "test"),
    ("dbAdmin", "test"),
    ("dbOwner", "test"),
    ("userAdmin", "test"),
    ("enableSharding", "admin"),
    ("read", "admin"),
    ("readWrite", "admin"),
    ("dbAdmin", "admin"),
    ("dbOwner", "admin"),
    ("userAdmin", "admin"),
    ("readAnyDatabase", "admin"),
    ("readWriteAnyDatabase", "admin"),
    ("userAdminAnyDatabase", "admin"),
    ("dbAdminAnyDatabase", "admin"),
    ("clusterAdmin", "admin"),
    ("clusterManager", "admin"),
    ("clusterMonitor", "admin"),
    ("hostManager", "admin"),
    ("backup", "admin"),
    ("restore", "admin"),
    ("root", "admin"),
    ("__queryableBackup", "admin"),
    ("__system", "admin"),
];

/// Passwords are cheap to check here.
async fn asking(world: &World) -> Running {
    world
        .start(|c| {
            c.asks_for_logins = true;
            c.repl_set = Some("rs".to_owned());
            c.auto_initiate = Some(format!("127.0.0.1:{}", c.port));
            for name in ["scramIterationCount", "scramSHA256IterationCount"] {
                c.params.set_at_startup(name, "5000").unwrap();
            }
        })
        .await
}

async fn as_user(server: &Running, user: &str) -> Client {
    let mut c = server.connect().await;
    c.log_in("admin", user, "x").await;
    c
}

fn list(items: impl IntoIterator<Item = Bson>) -> Bson {
    Bson::Array(items.into_iter().collect())
}

async fn make_users(server: &Running) -> Vec<(String, Option<String>)> {
    let mut first = server.connect().await;
    let system = list([doc! { "role": "__system", "db": "admin" }.into()]);
    first.admin(doc! { "createUser": "boss", "pwd": "x", "roles": list(["root".into()]) }).await;
    let mut boss = as_user(server, "boss").await;
    boss.admin(doc! { "grantRolesToUser": "boss", "roles": system }).await;
    let mut users = vec![("-".to_owned(), None), ("norole".to_owned(), Some("norole.".to_owned()))];
    boss.admin(doc! { "createUser": "norole.", "pwd": "x", "roles": list([]) }).await;
    for (role, db) in ROLES {
        let user = format!("{role}.{db}");
        let roles = list([doc! { "role": role, "db": db }.into()]);
        boss.admin(doc! { "createUser": user.as_str(), "pwd": "x", "roles": roles }).await;
        users.push((format!("{role}@{db}"), Some(user)));
    }
    for coll in ["a", "b", "c", "m"] {
        let docs = list([doc! { "_id": 100, "x": 1 }.into()]);
        boss.ok(doc! { "insert": coll, "documents": docs }).await;
    }
    boss.ok(doc! { "create": "v", "viewOn": "a", "pipeline": list([]) }).await;
    boss.ok(doc! { "create": "s", "timeseries": doc! { "timeField": "t" } }).await;
    users
}

fn texts(d: &Document, field: &str) -> Option<BTreeSet<String>> {
    let all = d.get(field)?.as_array()?.iter();
    Some(all.map(|v| v.as_str().unwrap().to_owned()).collect())
}

#[test]
fn every_built_in_role_may_what_it_may_on_a_real_server() {
    run(async {
        let world = World::new();
        let server = asking(&world).await;
        let users = make_users(&server).await;
        let requests: Vec<Document> =
            RECORDED.lines().map(|line| pando_bson::extjson::parse(line).unwrap()).collect();
        let mut pairs = 0;
        let mut wrong = Vec::new();
        for (name, user) in &users {
            let mut c = match user {
                Some(user) => as_user(&server, user).await,
                None => server.connect().await,
            };
            for r in &requests {
                let text = |field: &str| r.get(field).and_then(Bson::as_str).unwrap_or_default();
                let mut cmd = r.get("cmd").and_then(Bson::as_doc).unwrap().clone();
                if text("id").starts_with("usersInfo self") {
                    let user = user.as_deref().unwrap_or("nobody");
                    cmd = doc! { "usersInfo": doc! { "user": user, "db": "admin" } };
                }
                cmd.push("$db", text("db"));
                let reply = c.run(cmd).await;
                let in_write = reply.get("writeErrors").and_then(Bson::as_array).and_then(|e| e[0].as_doc());
                let code = in_write.unwrap_or(&reply).get("code").and_then(Bson::as_i64);
                let expected = texts(r, "here").or_else(|| texts(r, "allowed")).unwrap();
                assert!(r.get("here").is_none() || r.get("why").is_some());
                pairs += 1;
                if (code != Some(13)) != expected.contains(name) {
                    wrong.push(format!("{} as {name}: {code:?}", text("id")));
                }
            }
        }
        assert!(wrong.is_empty(), "{} of {pairs}: {wrong:#?}", wrong.len());
        assert!(pairs > 12_000, "{pairs}");
        server.shut_down().await;
    });
}

/// A row's actions are enough, and each of them is needed.
#[test]
fn one_action_less_is_not_enough() {
    run(async {
        let world = World::new();
        let server = world.start_standalone().await;
        let client = server.server.instance.internal_client("test");
        let ctx = OpCtx::internal(client, "test", "test");
        let mut rows = 0;
        for row in COMMANDS {
            let privilege::Privileges::Needs(on, actions) = row.privileges else { continue };
            let Some(command) = server.server.registry.find(row.name) else { continue };
            let resource = match on {
                privilege::Resource::Cluster => pando_auth::Resource::Cluster,
                privilege::Resource::Database => pando_auth::Resource::collection("test", ""),
                privilege::Resource::Collection => pando_auth::Resource::collection("test", "a"),
            };
            let may = |actions: &[Action]| {
                let mut privileges = Privileges::new();
                privileges.allow(resource.clone(), ActionSet::of(actions));
                let resolved = Resolved { privileges, ..Resolved::default() };
                let who = Authority::of_user(UserName::new("u", "test"), resolved);
                let mut body = Document::new();
                body.push(row.name, "a");
                let body = body.to_raw();
                let req = Request {
                    name: row.name,
                    invoked_as: row.name,
                    db: "test",
                    body: &body,
                    sequences: &[],
                    exhaust_allowed: false,
                    legacy: false,
                };
                Registry::may_run(command, &*server.server, &ctx, &req, &who).unwrap()
            };
            rows += 1;
            assert!(may(actions), "{}", row.name);
            for without in actions {
                let others: Vec<Action> = Action::ALL.iter().copied().filter(|a| a != without).collect();
                assert!(!may(&others), "{} without {}", row.name, without.name());
            }
        }
        assert!(rows > 60, "{rows}");
        assert_eq!(server.server.registry.unchecked(), Vec::<&str>::new());
        server.shut_down().await;
    });
}

/// What answers whoever has not logged in. To be reviewed with each change.
#[test]
fn few_commands_are_open_to_everybody() {
    let open: Vec<&str> =
        COMMANDS.iter().filter(|r| r.privileges == privilege::Privileges::Open).map(|r| r.name).collect();
    let reviewed: Vec<&str> = include_str!("../recorded/open_commands.txt").lines().collect();
    assert_eq!(open, reviewed);
}

#[test]
fn the_first_user_is_created_on_this_machine() {
    run(async {
        let world = World::new();
        let server = asking(&world).await;
        let mut c = server.connect().await;
        let create =
            |db: &str| doc! { "createUser": "u", "pwd": "x", "roles": list(["root".into()]), "$db": db };
        assert_eq!(c.err(create("test")).await.0, 13);
        assert_eq!(c.err(doc! { "find": "a" }).await.0, 13);
        assert_eq!(
            c.err(doc! { "createRole": "r", "privileges": list([]), "roles": list([]), "$db": "admin" })
                .await
                .0,
            13
        );
        c.ok(create("admin")).await;
        assert_eq!(
            c.err(doc! { "createUser": "v", "pwd": "x", "roles": list([]), "$db": "admin" }).await,
            (13, "command createUser requires authentication".to_owned())
        );
        let mut u = as_user(&server, "u").await;
        u.ok(doc! { "insert": "a", "documents": list([doc! { "_id": 1 }.into()]) }).await;
        server.shut_down().await;
    });
}

#[test]
fn what_was_granted_and_revoked_counts_at_once() {
    run(async {
        let world = World::new();
        let server = asking(&world).await;
        make_users(&server).await;
        let (mut boss, mut u) = (as_user(&server, "boss").await, as_user(&server, "norole.").await);
        let find = || doc! { "find": "a" };
        let (code, text) = u.err(find()).await;
        assert_eq!(code, 13);
        assert!(text.starts_with("not authorized on test to execute command { find: \"a\""), "{text}");
        let (code, text) = u.err(doc! { "find": "a", "filter": doc! { "x": "y".repeat(100_000) } }).await;
        assert_eq!(code, 13);
        assert!(text.len() < 2 * pando_base::limits::UNAUTHORIZED_SHOWN_BYTES_MAX, "{}", text.len());
        let role = || list([doc! { "role": "read", "db": "test" }.into()]);
        boss.admin(doc! { "grantRolesToUser": "norole.", "roles": role() }).await;
        u.ok(find()).await;
        boss.admin(doc! { "revokeRolesFromUser": "norole.", "roles": role() }).await;
        assert_eq!(u.err(find()).await.0, 13);
        boss.admin(doc! { "dropUser": "norole." }).await;
        assert_eq!(u.err(find()).await, (13, "command find requires authentication".to_owned()));
        server.shut_down().await;
    });
}

#[test]
fn cursors_and_sessions_are_their_users() {
    run(async {
        let world = World::new();
        let server = asking(&world).await;
        make_users(&server).await;
        let mut ann = as_user(&server, "readWrite.test").await;
        let mut bob = as_user(&server, "dbOwner.test").await;
        let docs = list((0..10).map(|i| doc! { "_id": i }.into()));
        ann.ok(doc! { "insert": "many", "documents": docs }).await;
        let opened = ann.ok(doc! { "find": "many", "batchSize": 2 }).await;
        let id = opened.get("cursor").and_then(Bson::as_doc).and_then(|c| c.get("id")).and_then(Bson::as_i64);
        let more = || doc! { "getMore": id.unwrap(), "collection": "many", "batchSize": 2 };
        assert_eq!(bob.err(more()).await.0, 13);
        assert_eq!(
            bob.err(doc! { "killCursors": "many", "cursors": list([Bson::Int64(id.unwrap())]) }).await.0,
            13
        );
        ann.ok(more()).await;

        let bytes = |subtype, byte, n| Bson::Binary(pando_bson::Binary { subtype, bytes: vec![byte; n] });
        let lsid = || doc! { "id": bytes(4, 7, 16) };
        for c in [&mut ann, &mut bob] {
            c.ok(doc! { "find": "many", "lsid": lsid() }).await;
        }
        let mut boss = as_user(&server, "boss").await;
        let all = doc! { "aggregate": 1, "cursor": doc! {},
        "pipeline": list([doc! { "$listLocalSessions": doc! { "allUsers": true } }.into()]) };
        assert_eq!(boss.all(all).await.len(), 2);
        let own = doc! { "aggregate": 1, "cursor": doc! {},
        "pipeline": list([doc! { "$listLocalSessions": doc! {} }.into()]) };
        assert_eq!(bob.all(own).await.len(), 1);
        let foreign = doc! { "id": bytes(4, 7, 16), "uid": bytes(0, 9, 32) };
        assert_eq!(bob.err(doc! { "find": "many", "lsid": foreign }).await.0, 13);
        server.shut_down().await;
    });
}

fn member_keys(keys: &str) -> Arc<ClusterAuth> {
    let keys = ClusterKeys::fixed(keys).unwrap();
    Arc::new(ClusterAuth::new(ClusterAuthMode::KeyFile, Some(keys)))
}

fn keyed(config: &mut pando_server::Config, keys: &str) {
    config.cluster_auth = member_keys(keys);
    config.asks_for_logins = true;
    config.signs_cluster_times = true;
    config.params.set_at_startup("scramSHA256IterationCount", "5000").unwrap();
}

/// Elections, replication and acknowledgement with members that log in to each other; a stranger's members' commands are refused.
#[test]
fn members_with_one_key_are_a_set() {
    run(async {
        let set = Set::configured(3, |c| keyed(c, "c2VjcmV0IGtleQ==")).await;
        let primary = set.primary().await;
        let mut c = set.connect(primary).await;
        c.admin(doc! { "createUser": "boss", "pwd": "x", "roles": list(["root".into()]) }).await;
        let mut boss = set.connect(primary).await;
        boss.log_in("admin", "boss", "x").await;
        let all = doc! { "w": 3, "wtimeout": 20_000 };
        let docs = list([doc! { "_id": 1 }.into()]);
        boss.ok(doc! { "insert": "a", "documents": docs, "writeConcern": all }).await;
        for i in 0..3 {
            let mut c = set.connect(i).await;
            assert_eq!(c.err(doc! { "find": "a" }).await.0, 13);
            let vote = doc! { "replSetRequestVotes": 1, "setName": "rs", "$db": "admin" };
            assert_eq!(c.err(vote).await.0, 13);
            c.log_in("admin", "boss", "x").await;
            let read = doc! { "find": "a", "$readPreference": doc! { "mode": "secondaryPreferred" } };
            assert_eq!(c.all(read).await.len(), 1);
        }
        // What is revoked on the primary counts on all of them.
        let wc = || doc! { "w": 3, "wtimeout": 20_000 };
        let of_test = || list([doc! { "role": "read", "db": "test" }.into()]);
        let create = doc! { "createUser": "ann", "pwd": "x", "roles": of_test(), "writeConcern": wc() };
        boss.admin(create).await;
        let mut anns = Vec::new();
        for i in 0..3 {
            let mut c = set.connect(i).await;
            c.log_in("admin", "ann", "x").await;
            anns.push(c);
        }
        let read = || doc! { "find": "a", "$readPreference": doc! { "mode": "secondaryPreferred" } };
        for c in &mut anns {
            c.ok(read()).await;
        }
        let revoke = doc! { "revokeRolesFromUser": "ann", "roles": of_test(), "writeConcern": wc() };
        boss.admin(revoke).await;
        for c in &mut anns {
            assert_eq!(c.err(read()).await.0, 13);
        }
        boss.admin(doc! { "dropUser": "ann", "writeConcern": wc() }).await;
        for c in &mut anns {
            assert_eq!(c.err(read()).await, (13, "command find requires authentication".to_owned()));
        }
        set.shut_down().await;
    });
}

#[test]
fn whoever_guesses_passwords_waits() {
    run(async {
        let world = World::new();
        let server = asking(&world).await;
        make_users(&server).await;
        let mut c = server.connect().await;
        let guess = || {
            doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256", "$db": "admin",
            "payload": Bson::Binary(pando_bson::Binary { subtype: 0, bytes: b"n,,x=y".to_vec() }) }
        };
        for _ in 0..pando_base::limits::LOGIN_FAILURES_FREE + 1 {
            assert_eq!(c.err(guess()).await.0, 18);
        }
        let clock = world.env().clock;
        let begun = clock.mono();
        let mut boss = as_user(&server, "boss").await;
        let took = clock.mono() - begun;
        assert!(took.as_millis() >= u128::from(pando_base::limits::LOGIN_PAUSE_MS_MIN));
        let status = boss.admin(doc! { "serverStatus": 1 }).await;
        let path = ["security", "authentication", "mechanisms", "SCRAM-SHA-256", "authenticate"];
        let counts = path.iter().fold(status, |d, name| d.get(name).and_then(Bson::as_doc).unwrap().clone());
        let count = |name: &str| counts.get(name).and_then(Bson::as_i64).unwrap();
        assert_eq!((count("received"), count("successful")), (2, 2));
        server.shut_down().await;
    });
}

#[test]
fn who_may_writes_while_the_writes_of_users_are_blocked() {
    run(async {
        let world = World::new();
        let server = asking(&world).await;
        make_users(&server).await;
        let (mut boss, mut user) = (as_user(&server, "boss").await, as_user(&server, "readWrite.test").await);
        boss.admin(doc! { "setUserWriteBlockMode": 1, "global": true }).await;
        let mut n = 0;
        let mut insert = || {
            n += 1;
            doc! { "insert": "blocked", "documents": list([doc! { "_id": n }.into()]),
            "mayBypassWriteBlocking": true }
        };
        let reply = user.run(insert()).await;
        let refused = reply.get("writeErrors").and_then(Bson::as_array).and_then(|e| e[0].as_doc());
        let code = refused.unwrap_or(&reply).get("code").and_then(Bson::as_i64);
        assert_eq!(code, Some(371), "{reply:?}");
        let reply = boss.ok(insert()).await;
        assert!(reply.get("writeErrors").is_none(), "{reply:?}");
        boss.admin(doc! { "setUserWriteBlockMode": 1, "global": false }).await;
        user.ok(insert()).await;
        server.shut_down().await;
    });
}

/// A member is who knows the key: others are refused, and told so.
#[test]
fn a_connection_with_another_key_is_refused() {
    run(async {
        let world = World::new();
        let server = world
            .start(|c| {
                keyed(c, "c2VjcmV0IGtleQ==");
                c.repl_set = Some("rs".to_owned());
            })
            .await;
        let at = format!("127.0.0.1:{}", server.port);
        let with = |key: &str| pando_rpc::Options {
            login: pando_rpc::LoginAs::Member(member_keys(key)),
            ..Default::default()
        };
        let env = world.env();
        let refused = pando_rpc::Connection::connect(&env, &at, &with("b3RoZXIga2V5")).await.err().unwrap();
        assert_eq!(refused.code().0, 18, "{refused}");
        let both = with("- b3RoZXIga2V5\n- c2VjcmV0IGtleQ==\n");
        assert!(pando_rpc::Connection::connect(&env, &at, &both).await.is_err());
        let mut member = pando_rpc::Connection::connect(&env, &at, &both).await.unwrap();
        let ask = doc! { "connectionStatus": 1, "$db": "admin" }.to_raw();
        let reply = member.call(&ask, std::time::Duration::from_secs(5)).await.unwrap();
        assert!(reply.to_string().contains("__system"), "{reply}");
        server.shut_down().await;
    });
}

/// Names that a check might read otherwise than the command, and collections by their UUIDs.
#[test]
fn nothing_is_read_around_the_check() {
    run(async {
        let world = World::new();
        let server = asking(&world).await;
        make_users(&server).await;
        let (mut boss, mut reader) = (as_user(&server, "boss").await, as_user(&server, "read.test").await);
        let listed = doc! { "listCollections": 1, "filter": doc! { "name": "system.users" }, "$db": "admin" };
        let users = boss.all(listed).await.remove(0);
        let uuid = users.get("info").and_then(Bson::as_doc).and_then(|i| i.get("uuid")).unwrap().clone();
        boss.ok(doc! { "find": uuid.clone(), "$db": "admin" }).await;
        let mut of_admin = as_user(&server, "read.admin").await;
        of_admin.ok(doc! { "find": "a", "$db": "admin" }).await;
        for command in ["find", "count", "listIndexes", "distinct"] {
            let mut by_uuid = Document::new();
            by_uuid.push(command, uuid.clone());
            by_uuid.push("key", "user");
            by_uuid.push("$db", "admin");
            assert_eq!(of_admin.err(by_uuid).await.0, 13, "{command}");
        }

        let twice = |name: &str, first: Bson, second: Bson| {
            let mut d = Document::new();
            d.push(name, first);
            d.push(name, second);
            d
        };
        let mut lookup = twice("from", "b".into(), doc! { "db": "other", "coll": "o" }.into());
        lookup.push("pipeline", list([]));
        lookup.push("as", "r");
        let union = twice("coll", "b".into(), "c".into());
        let mut out = twice("db", "test".into(), "other".into());
        out.push("coll", "o");
        for (stage, spec) in [("$lookup", lookup), ("$unionWith", union), ("$out", out)] {
            let mut named = Document::new();
            named.push(stage, spec);
            let run = doc! { "aggregate": "a", "pipeline": list([named.into()]), "cursor": doc! {} };
            assert_eq!(reader.err(run).await.0, 13, "{stage}");
        }
        let current = twice("allUsers", false.into(), true.into());
        let run = doc! { "aggregate": 1, "pipeline": list([doc! { "$currentOp": current }.into()]), "cursor": doc! {}, "$db": "admin" };
        assert_eq!(of_admin.err(run).await.0, 13);
        let mut user = doc! { "user": "read.admin" };
        user.push("db", "admin");
        user.push("db", "test");
        assert_eq!(of_admin.err(doc! { "usersInfo": user, "$db": "admin" }).await.0, 13);
        let mut writer = as_user(&server, "readWrite.test").await;
        let out = doc! { "replace": "o", "merge": "o", "db": "other" };
        let run = doc! { "mapReduce": "a", "map": "x", "reduce": "x", "out": out };
        assert_eq!(writer.err(run).await.0, 13);
        let mut restorer = as_user(&server, "restore.admin").await;
        let insert = doc! { "op": "i", "ns": "test.a", "ui": uuid, "o": doc! { "_id": 7 } };
        let run = doc! { "applyOps": list([insert.into()]), "$db": "admin" };
        assert_eq!(restorer.err(run).await.0, 13, "the UUID is that of the users");

        let mut run = twice("pipeline", list([]), list([doc! { "$out": "o" }.into()]));
        let mut first = doc! { "aggregate": "a" };
        for (name, v) in run.iter() {
            first.push(name, v.clone());
        }
        run = first;
        run.push("cursor", doc! {});
        assert_eq!(reader.err(run).await.0, 40413, "a command has each argument once");
        server.shut_down().await;
    });
}

/// Ways to more than was granted that somebody from outside has found.
#[test]
fn doors_that_stood_open_are_closed() {
    run(async {
        let world = World::new();
        let server = asking(&world).await;
        make_users(&server).await;
        let mut boss = as_user(&server, "boss").await;
        let grant = |role: &str, db: &str| list([doc! { "role": role, "db": db }.into()]);
        for (user, roles) in [
            ("owner", grant("dbOwner", "a")),
            ("host", grant("hostManager", "admin")),
            ("saver", grant("backup", "admin")),
        ] {
            boss.admin(doc! { "createUser": user, "pwd": "x", "roles": roles }).await;
        }
        let as_of_admin = async |user: &str| {
            let mut c = server.connect().await;
            c.log_in("admin", user, "x").await;
            c
        };
        // Users of one's own database may have roles of any.
        let mut owner = as_of_admin("owner").await;
        let evil = doc! { "_id": "a.evil", "user": "evil", "db": "a", "roles": grant("root", "admin"), "credentials": doc! {} };
        owner.ok(doc! { "insert": "t", "documents": list([evil.into()]), "$db": "a" }).await;
        let merge =
            doc! { "_mergeAuthzCollections": 1, "tempUsersCollection": "a.t", "db": "a", "$db": "admin" };
        assert_eq!(owner.err(merge).await.0, 13);
        // The files of a backup hold what everybody has.
        let open = || doc! { "_openBackup": 1, "$db": "admin" };
        assert_eq!(as_of_admin("host").await.err(open()).await.0, 13);
        let mut saver = as_of_admin("saver").await;
        let opened = saver.ok(open()).await;
        let close = doc! { "_closeBackup": opened.get("backup").unwrap().clone(), "$db": "admin" };
        saver.ok(close).await;
        // A cursor ends with the grant that it was opened by, a change stream too; other changes of users leave it alone.
        let many = list((0..10).map(|i| doc! { "_id": i }.into()));
        owner.ok(doc! { "insert": "many", "documents": many, "$db": "a" }).await;
        let cursor = |reply: &Document| {
            reply.get("cursor").and_then(Bson::as_doc).and_then(|c| c.get("id")).cloned().unwrap()
        };
        let find = owner.ok(doc! { "find": "many", "batchSize": 2, "$db": "a" }).await;
        let stages = list([doc! { "$project": doc! { "_id": 1 } }.into()]);
        let piped =
            doc! { "aggregate": "many", "pipeline": stages, "cursor": doc! { "batchSize": 2 }, "$db": "a" };
        let piped = owner.ok(piped).await;
        let more = |reply: &Document| doc! { "getMore": cursor(reply), "collection": "many", "batchSize": 2, "$db": "a" };
        boss.admin(doc! { "createUser": "another", "pwd": "x", "roles": list([]) }).await;
        owner.ok(more(&find)).await;
        boss.admin(doc! { "revokeRolesFromUser": "owner", "roles": grant("dbOwner", "a") }).await;
        for opened in [&find, &piped] {
            let (code, text) = owner.err(more(opened)).await;
            assert_eq!(code, 13);
            assert!(text.starts_with("not authorized for getMore with cursor id "), "{text}");
        }
        boss.admin(doc! { "grantRolesToUser": "owner", "roles": grant("dbOwner", "a") }).await;
        owner.ok(more(&find)).await;
        // Sessions of others, by their names.
        let sessions = |user: &str| {
            let users = list([doc! { "user": user, "db": "admin" }.into()]);
            let stage = doc! { "$listLocalSessions": doc! { "users": users } };
            doc! { "aggregate": 1, "pipeline": list([stage.into()]), "cursor": doc! {}, "$db": "admin" }
        };
        assert_eq!(owner.err(sessions("boss")).await.0, 13);
        let id = Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![3; 16] });
        owner.ok(doc! { "find": "t", "lsid": doc! { "id": id }, "$db": "a" }).await;
        assert_eq!(owner.all(sessions("owner")).await.len(), 1);
        assert_eq!(boss.all(sessions("owner")).await.len(), 1);
        server.shut_down().await;
    });
}
