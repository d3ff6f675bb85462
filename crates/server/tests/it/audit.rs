//! The audit log of a real server: which events there are, what each says, and which are wanted.

#![allow(clippy::unwrap_used)]

use pando_audit::{AuditLog, Filter, Format, Memory, Settings};
use pando_auth::{Mechanism, Password, scram};
use pando_base::Uuid;
use pando_base::limits::AUDIT_ARGS_BYTES_MAX;
use pando_bson::{Binary, Bson, Document, doc, extjson};
use pando_server::Config;
use pando_testserver::{Client, Running, Set, World, pause, run};
use std::sync::{Arc, Mutex};

/// What a server with logins has recorded.
#[derive(Clone, Default)]
struct Trail(Memory);

impl Trail {
    fn settings(filter: Option<&str>) -> Settings {
        Settings { format: Format::Json, filter: filter.map(|f| Filter::parse(f).unwrap()) }
    }
    fn attach(&self, world: &World, c: &mut Config, settings: Settings) {
        let end = |e: &std::io::Error| panic!("{e}");
        let log = AuditLog::new(world.env().clock, settings, Box::new(self.0.clone()), Uuid([7; 16]), end);
        c.audit = Some(Arc::new(log));
    }
    /// The records since the last call.
    fn records(&self) -> Vec<Document> {
        let lines = self.0.take().into_iter().map(|line| String::from_utf8(line).unwrap());
        // The connection's name is in an older form, which the reader does not know.
        let newer = |line: String| {
            let line = line.replace("\"uuid\":{\"$binary\":", "\"uuid\":{\"$binary\":{\"base64\":");
            line.replace(",\"$type\":\"04\"}", ",\"subType\":\"04\"}}")
        };
        lines.map(|line| extjson::parse(newer(line).strip_suffix('\n').unwrap()).unwrap()).collect()
    }
    /// Action, parameters and result of each.
    fn told(&self) -> Vec<String> {
        self.records().iter().map(told).collect()
    }
}

fn told(record: &Document) -> String {
    let param = record.get("param").and_then(Bson::as_doc).unwrap().to_raw();
    let action = record.get("atype").and_then(Bson::as_str).unwrap();
    let result = record.get("result").and_then(Bson::as_i64).unwrap();
    format!("{action} {} {result}", extjson::to_relaxed(&param))
}

async fn with_logins(world: &World, trail: &Trail, filter: Option<&str>) -> Running {
    world
        .start(|c| {
            c.repl_set = Some("rs".to_owned());
            c.auto_initiate = Some(format!("127.0.0.1:{}", c.port));
            c.asks_for_logins = true;
            trail.attach(world, c, Trail::settings(filter));
        })
        .await
}

fn none() -> Bson {
    Bson::Array(Vec::new())
}

fn list<T: Into<Bson>>(items: Vec<T>) -> Bson {
    Bson::Array(items.into_iter().map(Into::into).collect())
}

/// A user of `admin` with the role `root`, logged in.
async fn root(server: &Running) -> Client {
    let mut c = server.connect().await;
    c.ok(doc! { "createUser": "root", "pwd": "pw", "roles": list(vec!["root"]), "$db": "admin" }).await;
    c.log_in("admin", "root", "pw").await;
    c
}

#[test]
fn a_record_says_who_and_from_where() {
    run(async {
        let (world, trail) = (World::new(), Trail::default());
        let server = with_logins(&world, &trail, None).await;
        let started = trail.records();
        let startup = started.iter().find(|r| told(r).starts_with("startup ")).unwrap();
        let fields: Vec<&str> = startup.iter().map(|(name, _)| name).collect();
        assert_eq!(fields, ["atype", "ts", "uuid", "local", "remote", "users", "roles", "param", "result"]);
        for side in ["local", "remote"] {
            assert_eq!(startup.get(side), Some(&doc! { "isSystemUser": true }.into()));
        }
        let mut c = root(&server).await;
        trail.records();
        c.ok(doc! { "create": "c" }).await;
        let records = trail.records();
        let created = records.iter().find(|r| told(r).starts_with("createCollection ")).unwrap();
        let uuid = |r: &Document| match r.get("uuid") {
            Some(Bson::Binary(b)) if b.subtype == 4 => b.bytes.clone(),
            other => panic!("{other:?}"),
        };
        assert_ne!(uuid(created), uuid(startup));
        assert!(records.iter().all(|r| uuid(r) == uuid(created)), "one connection, one name");
        let local = created.get("local").and_then(Bson::as_doc).unwrap();
        assert_eq!(*local, doc! { "ip": "127.0.0.1", "port": i32::from(server.port) });
        let remote = created.get("remote").and_then(Bson::as_doc).unwrap();
        assert_eq!(remote.get("ip"), Some(&"127.0.0.1".into()));
        assert_eq!(created.get("users"), Some(&list(vec![doc! { "user": "root", "db": "admin" }])));
        assert_eq!(created.get("roles"), Some(&list(vec![doc! { "role": "root", "db": "admin" }])));
        assert!(matches!(created.get("ts"), Some(Bson::DateTime(_))));
        server.shut_down().await;
        assert!(trail.told().contains(&"shutdown {} 0".to_owned()));
    });
}

#[test]
fn logins_and_logouts_are_recorded() {
    run(async {
        let (world, trail) = (World::new(), Trail::default());
        let server = with_logins(&world, &trail, None).await;
        drop(root(&server).await);
        let logout = "logout {\"reason\":\"Implicit logout due to client connection closure\",\"initialUsers\":[{\"user\":\
                      \"root\",\"db\":\"admin\"}],\"updatedUsers\":[]} 0";
        let mut seen = trail.told();
        while !seen.iter().any(|t| t == logout) {
            pause(10).await;
            seen.extend(trail.told());
        }
        let of = |user: &str, mechanism: &str, result: i32| {
            format!(
                "authenticate {{\"user\":\"{user}\",\"db\":\"admin\",\"mechanism\":\"{mechanism}\"}} {result}"
            )
        };
        assert!(seen.contains(&of("root", "SCRAM-SHA-256", 0)), "{seen:?}");

        let mut c = server.connect().await;
        for (user, password) in [("root", "wrong"), ("nobody", "pw")] {
            let (mut mine, challenge) = begin(&mut c, user, password).await;
            let proof = payload(mine.prove(&payload_of(&challenge)).unwrap());
            c.err(doc! { "saslContinue": 1, "conversationId": 1, "payload": proof, "$db": "admin" }).await;
            assert_eq!(trail.told(), [of(user, "SCRAM-SHA-256", 18)]);
        }
        c.err(doc! { "saslStart": 1, "mechanism": "PLAIN", "payload": "", "$db": "admin" }).await;
        c.err(doc! { "authenticate": 1, "mechanism": "PLAIN", "$db": "admin" }).await;
        assert_eq!(trail.told(), [of("", "PLAIN", 334), of("", "PLAIN", 334)]);
        begin(&mut c, "root", "pw").await;
        begin(&mut c, "root", "pw").await;
        assert_eq!(trail.told(), [of("root", "SCRAM-SHA-256", 337)]);
        c.log_in("admin", "root", "pw").await;
        c.ok(doc! { "logout": 1, "$db": "test" }).await;
        c.ok(doc! { "logout": 1, "$db": "admin" }).await;
        let explicit = "logout {\"reason\":\"Explicit logout from admin\",\"initialUsers\":[{\"user\":\"root\",\"db\":\"admin\"}\
                        ],\"updatedUsers\":[]} 0";
        assert_eq!(
            trail.told(),
            [of("root", "SCRAM-SHA-256", 337), of("root", "SCRAM-SHA-256", 0), explicit.to_owned()]
        );
        let told = doc! { "driver": doc! { "name": "d", "version": "1" }, "os": doc! { "type": "Linux" } };
        c.ok(doc! { "hello": 1, "client": told }).await;
        assert_eq!(
            trail.told(),
            [format!(
                "clientMetadata {{\"localEndpoint\":{{\"ip\":\"127.0.0.1\",\"port\":{}}},\"clientMetadata\":{{\"driver\":{{\"name\":\
                 \"d\",\"version\":\"1\"}},\"os\":{{\"type\":\"Linux\"}}}}}} 0",
                server.port
            )]
        );
        server.shut_down().await;
    });
}

fn payload(bytes: Vec<u8>) -> Bson {
    Bson::Binary(Binary { subtype: 0, bytes })
}

fn payload_of(reply: &Document) -> Vec<u8> {
    match reply.get("payload") {
        Some(Bson::Binary(b)) => b.bytes.clone(),
        other => panic!("{other:?}"),
    }
}

async fn begin(c: &mut Client, user: &str, password: &str) -> (scram::Client, Document) {
    let mechanism = Mechanism::ScramSha256;
    let (mine, first) = scram::Client::start(mechanism, user, Password::new(password), &[7; 18]);
    let start =
        doc! { "saslStart": 1, "mechanism": mechanism.name(), "payload": payload(first), "$db": "admin" };
    let challenge = c.ok(start).await;
    (mine, challenge)
}

#[test]
fn what_was_refused_is_recorded_and_what_was_allowed_where_that_is_asked_for() {
    run(async {
        let (world, trail) = (World::new(), Trail::default());
        let server = with_logins(&world, &trail, None).await;
        let mut admin = root(&server).await;
        admin.ok(doc! { "createUser": "ann", "pwd": "pw", "roles": list(vec!["read"]) }).await;
        let mut c = server.connect().await;
        trail.records();
        c.err(doc! { "find": "c" }).await;
        assert_eq!(
            trail.told(),
            [
                "authCheck {\"command\":\"find\",\"ns\":\"test.c\",\"args\":{\"find\":\"c\",\"$db\":\"test\"}} 13"
            ]
        );
        c.log_in("test", "ann", "pw").await;
        trail.records();
        c.ok(doc! { "find": "c" }).await;
        assert_eq!(trail.told(), [""; 0]);
        c.err(doc! { "createUser": "eve", "pwd": "s3cret", "roles": none() }).await;
        c.err(doc! { "serverStatus": 1, "$db": "admin" }).await;
        assert_eq!(
            trail.told(),
            [
                "authCheck {\"command\":\"createUser\",\"ns\":\"test\",\"args\":{\"createUser\":\"eve\",\"pwd\":\"xxx\",\
                 \"roles\":[],\"$db\":\"test\"}} 13",
                "authCheck {\"command\":\"serverStatus\",\"ns\":\"admin\",\"args\":{\"serverStatus\":1,\"$db\":\"admin\"}} 13",
            ]
        );
        admin.admin(doc! { "setParameter": 1, "auditAuthorizationSuccess": true }).await;
        trail.records();
        c.ok(doc! { "find": "c", "filter": doc! { "a": 1 } }).await;
        c.ok(doc! { "hello": 1 }).await;
        admin.run_with_sequence(doc! { "insert": "c" }, "documents", &[doc! { "_id": 1 }]).await;
        let told = trail.told();
        assert_eq!(
            told[..2],
            [
                "authCheck {\"command\":\"find\",\"ns\":\"test.c\",\"args\":{\"find\":\"c\",\"filter\":{\"a\":1},\"$db\":\
                 \"test\"}} 0",
                "authCheck {\"command\":\"insert\",\"ns\":\"test.c\",\"args\":{\"insert\":\"c\",\"$db\":\"test\",\"documents\":\
                 [{\"_id\":1}]}} 0",
            ]
        );
        server.shut_down().await;
    });
}

#[test]
fn arguments_have_a_bound() {
    run(async {
        let (world, trail) = (World::new(), Trail::default());
        let server = with_logins(&world, &trail, None).await;
        let mut c = root(&server).await;
        c.admin(doc! { "setParameter": 1, "auditAuthorizationSuccess": true }).await;
        c.ok(doc! { "create": "c" }).await;
        trail.records();
        let long = doc! { "a": "x".repeat(AUDIT_ARGS_BYTES_MAX) };
        c.ok(doc! { "insert": "c", "documents": list(vec![long.clone()]) }).await;
        c.run_with_sequence(doc! { "insert": "c" }, "documents", &[long]).await;
        for told in trail.told() {
            let begins = "authCheck {\"command\":\"insert\",\"ns\":\"test.c\",\"args\":{\"insert\":\"c\",\"$db\":\"test\",\"$truncated\":";
            assert!(told.starts_with(begins), "{}", &told[..300.min(told.len())]);
        }
        let status = c.admin(doc! { "serverStatus": 1 }).await;
        let log = status.get("auditLog").and_then(Bson::as_doc).unwrap();
        assert_eq!(log.get("truncated").and_then(Bson::as_i64), Some(2));
        server.shut_down().await;
    });
}

#[test]
fn changes_of_definitions_are_recorded() {
    run(async {
        let (world, trail) = (World::new(), Trail::default());
        let server = with_logins(&world, &trail, None).await;
        let mut c = root(&server).await;
        trail.records();
        let index = |ns: &str, name: &str, key: &str, state: &str| {
            format!(
                "createIndex {{\"ns\":\"{ns}\",\"indexName\":\"{name}\",\"indexSpec\":{{\"v\":2,\"key\":{{\"{key}\":1}},\"name\":\
                 \"{name}\"}},\"indexBuildState\":\"IndexBuild{state}\"}} 0"
            )
        };
        let ns = |action: &str, ns: &str| format!("{action} {{\"ns\":\"{ns}\"}} 0");
        c.ok(doc! { "create": "c" }).await;
        assert_eq!(
            trail.told(),
            [
                ns("createDatabase", "test"),
                ns("createCollection", "test.c"),
                index("test.c", "_id_", "_id", "Succeeded")
            ]
        );
        c.ok(doc! { "insert": "c", "documents": list(vec![doc! { "a": 1 }]) }).await;
        let spec = doc! { "key": doc! { "a": 1 }, "name": "a_1" };
        c.ok(doc! { "createIndexes": "c", "indexes": list(vec![spec]) }).await;
        assert_eq!(
            trail.records().iter().map(told).collect::<Vec<_>>(),
            [index("test.c", "a_1", "a", "Started"), index("test.c", "a_1", "a", "Succeeded")]
        );
        c.ok(doc! { "insert": "c", "documents": list(vec![doc! { "a": 1 }]) }).await;
        let spec = doc! { "key": doc! { "a": -1 }, "name": "unique", "unique": true };
        c.err(doc! { "createIndexes": "c", "indexes": list(vec![spec]) }).await;
        let told_of_it = trail.told();
        assert!(
            told_of_it.last().unwrap().ends_with("\"indexBuildState\":\"IndexBuildAborted\"} 276"),
            "{told_of_it:?}"
        );
        c.ok(doc! { "dropIndexes": "c", "index": "a_1" }).await;
        assert_eq!(trail.told(), ["dropIndex {\"ns\":\"test.c\",\"indexName\":\"a_1\"} 0"]);
        c.ok(
            doc! { "create": "v", "viewOn": "c", "pipeline": list(vec![doc! { "$match": doc! { "a": 1 } }]) },
        )
        .await;
        let view = "{\"ns\":\"test.v\",\"viewOn\":\"test.c\",\"pipeline\":[{\"$match\":{\"a\":1}}]} 0";
        assert_eq!(*trail.told().last().unwrap(), format!("createCollection {view}"));
        c.ok(doc! { "drop": "v" }).await;
        assert_eq!(trail.told(), [format!("dropCollection {view}")]);
        c.ok(doc! { "drop": "none" }).await;
        assert_eq!(trail.told(), ["dropCollection {\"ns\":\"test.none\"} 26"]);
        c.admin(doc! { "renameCollection": "test.c", "to": "test.d" }).await;
        assert_eq!(trail.told(), ["renameCollection {\"old\":\"test.c\",\"new\":\"test.d\"} 0"]);
        c.ok(doc! { "drop": "d" }).await;
        assert_eq!(trail.told(), [ns("dropCollection", "test.d")]);
        c.ok(doc! { "create": "e" }).await;
        trail.records();
        c.ok(doc! { "dropDatabase": 1 }).await;
        let dropped = trail.records();
        assert!(dropped.iter().all(|r| r.get("users") == dropped[0].get("users")));
        assert_eq!(*dropped.iter().map(told).collect::<Vec<_>>().last().unwrap(), ns("dropDatabase", "test"));
        assert!(dropped.iter().map(told).any(|t| t == ns("dropCollection", "test.e")));
        server.shut_down().await;
    });
}

#[test]
fn changes_of_users_and_roles_are_recorded() {
    run(async {
        let (world, trail) = (World::new(), Trail::default());
        let server = with_logins(&world, &trail, None).await;
        let mut c = root(&server).await;
        c.ok(doc! { "createRole": "first", "roles": none(), "privileges": none() }).await;
        trail.records();
        let read = list(vec!["read"]);
        let told_read = "\"roles\":[{\"role\":\"read\",\"db\":\"test\"}]";
        let find = || {
            let on = doc! { "db": "test", "collection": "c" };
            list(vec![doc! { "resource": on, "actions": list(vec!["find"]) }])
        };
        let told_find =
            "\"privileges\":[{\"resource\":{\"db\":\"test\",\"collection\":\"c\"},\"actions\":[\"find\"]}]";
        let (ann, r) = ("\"user\":\"ann\",\"db\":\"test\"", "\"role\":\"r\",\"db\":\"test\"");
        for (command, event) in [
            (
                doc! { "createUser": "ann", "pwd": "pw", "roles": read.clone(), "customData": doc! { "a": 1 } },
                format!("createUser {{{ann},\"customData\":{{\"a\":1}},{told_read}}}"),
            ),
            (
                doc! { "updateUser": "ann", "pwd": "pw2" },
                format!("updateUser {{{ann},\"passwordChanged\":true}}"),
            ),
            (
                doc! { "updateUser": "ann", "roles": read.clone(), "customData": doc! { "b": 1 } },
                format!(
                    "updateUser {{{ann},\"passwordChanged\":false,\"customData\":{{\"b\":1}},{told_read}}}"
                ),
            ),
            (
                doc! { "grantRolesToUser": "ann", "roles": read.clone() },
                format!("grantRolesToUser {{{ann},{told_read}}}"),
            ),
            (
                doc! { "revokeRolesFromUser": "ann", "roles": read.clone() },
                format!("revokeRolesFromUser {{{ann},{told_read}}}"),
            ),
            (
                doc! { "createRole": "r", "roles": read.clone(), "privileges": find() },
                format!("createRole {{{r},{told_read},{told_find}}}"),
            ),
            (doc! { "updateRole": "r", "roles": read.clone() }, format!("updateRole {{{r},{told_read}}}")),
            (doc! { "updateRole": "r", "privileges": find() }, format!("updateRole {{{r},{told_find}}}")),
            (
                doc! { "grantRolesToRole": "r", "roles": read.clone() },
                format!("grantRolesToRole {{{r},{told_read}}}"),
            ),
            (
                doc! { "revokeRolesFromRole": "r", "roles": read.clone() },
                format!("revokeRolesFromRole {{{r},{told_read}}}"),
            ),
            (
                doc! { "grantPrivilegesToRole": "r", "privileges": find() },
                format!("grantPrivilegesToRole {{{r},{told_find}}}"),
            ),
            (
                doc! { "revokePrivilegesFromRole": "r", "privileges": find() },
                format!("revokePrivilegesFromRole {{{r},{told_find}}}"),
            ),
            (doc! { "dropRole": "r" }, format!("dropRole {{{r}}}")),
            (doc! { "dropUser": "ann" }, format!("dropUser {{{ann}}}")),
            (doc! { "dropAllUsersFromDatabase": 1 }, "dropAllUsersFromDatabase {\"db\":\"test\"}".to_owned()),
            (doc! { "dropAllRolesFromDatabase": 1 }, "dropAllRolesFromDatabase {\"db\":\"test\"}".to_owned()),
        ] {
            c.ok(command).await;
            assert_eq!(trail.told(), [format!("{event} 0")]);
        }
        // A change that fails is none.
        c.err(doc! { "dropUser": "ann" }).await;
        c.err(doc! { "createUser": "bob", "pwd": "", "roles": none() }).await;
        assert_eq!(trail.told(), [""; 0]);
        server.shut_down().await;
    });
}

#[test]
fn users_written_past_their_commands_are_recorded_without_credentials() {
    run(async {
        let (world, trail) = (World::new(), Trail::default());
        // Nobody may do this but a member; where nobody logs in, everybody may.
        let server = world.start(|c| trail.attach(&world, c, Trail::settings(None))).await;
        let mut c = server.connect().await;
        c.ok(doc! { "createUser": "ann", "pwd": "pw", "roles": none() }).await;
        trail.records();
        let user = doc! { "_id": "test.eve", "user": "eve", "db": "test", "credentials": doc! { "x": "s3cret" }, "roles": none() };
        let q = doc! { "_id": "test.eve" };
        c.db = "admin".to_owned();
        c.ok(doc! { "insert": "system.users", "documents": list(vec![user]) }).await;
        let change = doc! { "q": q.clone(), "u": doc! { "$set": doc! { "a": 1 } } };
        c.ok(doc! { "update": "system.users", "updates": list(vec![change]) }).await;
        c.ok(doc! { "delete": "system.users", "deletes": list(vec![doc! { "q": q, "limit": 1 }]) }).await;
        let of = |more: &str, by: &str| {
            format!(
                "directAuthMutation {{\"document\":{{\"_id\":\"test.eve\",\"user\":\"eve\",\"db\":\"test\",\"roles\":[]{more}}},\"ns\":\
                 \"admin.system.users\",\"operation\":\"{by}\"}} 0"
            )
        };
        assert_eq!(trail.told(), [of("", "insert"), of(",\"a\":1", "update"), of(",\"a\":1", "remove")]);
        // As entries of an oplog, too: they are whose who applies them.
        let user = doc! { "_id": "test.eve", "user": "eve", "db": "test", "credentials": doc! { "x": "s3cret" }, "roles": none() };
        let change = doc! { "$v": 2, "diff": doc! { "u": doc! { "a": 1 } } };
        let (users, id) = ("admin.system.users", || doc! { "_id": "test.eve" });
        for entry in [
            doc! { "op": "i", "ns": users, "o": user },
            doc! { "op": "u", "ns": users, "o2": id(), "o": change },
            doc! { "op": "d", "ns": users, "o": id() },
            doc! { "op": "c", "ns": "test.$cmd", "o": doc! { "create": "applied" } },
        ] {
            c.ok(doc! { "applyOps": list(vec![entry]) }).await;
        }
        let told = trail.told();
        assert_eq!(told[..3], [of("", "insert"), of(",\"a\":1", "update"), of(",\"a\":1", "remove")]);
        assert!(told.iter().any(|t| t.starts_with("createCollection {\"ns\":\"test.applied\"}")), "{told:?}");
        server.shut_down().await;
    });
}

#[test]
fn what_is_done_to_the_server_is_recorded() {
    run(async {
        let (world, trail) = (World::new(), Trail::default());
        let server = with_logins(&world, &trail, None).await;
        let mut c = root(&server).await;
        trail.records();
        c.admin(doc! { "logApplicationMessage": "the milk is out" }).await;
        assert_eq!(trail.told(), ["applicationMessage {\"msg\":\"the milk is out\"} 0"]);
        for what in [Bson::from(1), Bson::from("audit")] {
            c.admin(doc! { "logRotate": what }).await;
            let told = trail.told();
            assert!(told[0].starts_with("rotateLog {\"pid\":") && told[0].ends_with(" 0"), "{told:?}");
            assert!(
                told[0].contains("\"osInfo\":{\"name\":") && told[0].contains("\"status\":\"OK\""),
                "{told:?}"
            );
        }
        c.admin(doc! { "logRotate": "server" }).await;
        assert_eq!(trail.told(), [""; 0]);
        c.admin(doc! { "getClusterParameter": "changeStreamOptions" }).await;
        let asked = "getClusterParameter {\"requestedClusterServerParameters\":\"changeStreamOptions\"} 0";
        assert_eq!(trail.told(), [asked]);
        let options = doc! { "preAndPostImages": doc! { "expireAfterSeconds": 60 } };
        c.admin(doc! { "setClusterParameter": doc! { "changeStreamOptions": options } }).await;
        let told = trail.told();
        let told = told.iter().find(|t| t.starts_with("setClusterParameter ")).unwrap();
        assert!(
            told.contains("\"originalClusterServerParameter\":{\"_id\":\"changeStreamOptions\""),
            "{told}"
        );
        assert!(told.contains("\"expireAfterSeconds\":60"), "{told}");
        for command in [doc! { "getAuditConfig": 1 }, doc! { "setAuditConfig": 1, "filter": doc! {} }] {
            let mut command = command;
            command.push("$db", "admin");
            assert_eq!(c.err(command).await.0, 115);
        }
        let Some(Bson::Document(mut config)) =
            c.admin(doc! { "replSetGetConfig": 1 }).await.get("config").cloned()
        else {
            panic!("no configuration")
        };
        let next = config.get("version").and_then(Bson::as_i64).unwrap() + 1;
        config.set("version", next);
        c.admin(doc! { "replSetReconfig": config }).await;
        let told = trail.told();
        let told = told
            .iter()
            .find(|t| t.starts_with("replSetReconfig {\"old\":{\"_id\":\"rs\",\"version\":"))
            .unwrap();
        assert!(told.contains(&format!("\"new\":{{\"_id\":\"rs\",\"version\":{next},")), "{told}");
        server.shut_down().await;
    });
}

#[test]
fn a_filter_chooses_among_whole_records() {
    run(async {
        let (world, trail) = (World::new(), Trail::default());
        let filter = "{atype: {$in: ['createCollection', 'authCheck']}, 'param.ns': {$regex: '^test[.]'}, 'users.user': 'root'}";
        let server = with_logins(&world, &trail, Some(filter)).await;
        let mut c = root(&server).await;
        c.ok(doc! { "create": "c" }).await;
        c.ok(doc! { "create": "c", "$db": "other" }).await;
        c.ok(doc! { "drop": "c" }).await;
        assert_eq!(trail.told(), ["createCollection {\"ns\":\"test.c\"} 0"]);
        let status = c.admin(doc! { "serverStatus": 1 }).await;
        let log = status.get("auditLog").and_then(Bson::as_doc).unwrap();
        assert_eq!(log.get("written").and_then(Bson::as_i64), Some(1));
        assert!(log.get("filtered").and_then(Bson::as_i64) > Some(5));
        server.shut_down().await;
    });
}

#[test]
fn what_apply_ops_makes_is_recorded() {
    run(async {
        let (world, trail) = (World::new(), Trail::default());
        let server = world.start(|c| trail.attach(&world, c, Trail::settings(None))).await;
        let mut c = server.connect().await;
        let uuid = Bson::Binary(Binary { subtype: 4, bytes: vec![5; 16] });
        let op = doc! { "op": "c", "ns": "test.$cmd", "ui": uuid, "o": doc! { "create": "c" } };
        c.ok(doc! { "applyOps": list(vec![op]), "$db": "admin" }).await;
        assert!(trail.told().contains(&"createCollection {\"ns\":\"test.c\"} 0".to_owned()));
        server.shut_down().await;
    });
}

#[test]
fn a_change_that_did_not_happen_has_no_event_and_one_that_did_is_its_users() {
    run(async {
        let (world, trail) = (World::new(), Trail::default());
        let server = with_logins(&world, &trail, None).await;
        let mut c = root(&server).await;
        c.ok(doc! { "insert": "c", "documents": list(vec![doc! { "a": 1 }]) }).await;
        trail.records();
        let lsid = || doc! { "id": Bson::Binary(Binary { subtype: 4, bytes: vec![9; 16] }) };
        for (number, ends) in [(1_i64, "abortTransaction"), (2, "commitTransaction")] {
            let of = |mut command: Document| {
                command.push("lsid", lsid());
                command.push("txnNumber", number);
                command.push("autocommit", false);
                command
            };
            c.ok(of(doc! { "create": "d", "startTransaction": true })).await;
            assert_eq!(trail.told(), [""; 0]);
            let end = if ends == "abortTransaction" {
                doc! { "abortTransaction": 1 }
            } else {
                doc! { "commitTransaction": 1 }
            };
            let mut end = of(end);
            end.push("$db", "admin");
            c.ok(end).await;
        }
        let created = trail.records();
        assert_eq!(told(&created[0]), "createCollection {\"ns\":\"test.d\"} 0");
        // A build ends in nobody's request, and is still that of who began it.
        let spec = doc! { "key": doc! { "a": 1 }, "name": "a_1" };
        c.ok(doc! { "createIndexes": "c", "indexes": list(vec![spec]) }).await;
        let built = trail.records();
        assert_eq!(built.len(), 2);
        let root = list(vec![doc! { "user": "root", "db": "admin" }]);
        for record in created.iter().chain(&built) {
            assert_eq!(record.get("users"), Some(&root), "{record:?}");
        }
        // Who is dropped is logged out when it asks next.
        let mut ann = server.connect().await;
        c.ok(doc! { "createUser": "ann", "pwd": "pw", "roles": none() }).await;
        ann.log_in("test", "ann", "pw").await;
        c.ok(doc! { "dropUser": "ann" }).await;
        trail.records();
        ann.err(doc! { "find": "c" }).await;
        let told = trail.told();
        assert!(
            told[0].starts_with("logout {\"reason\":\"Implicit logout: the user was dropped"),
            "{told:?}"
        );
        assert!(told[1].starts_with("authCheck ") && told[1].ends_with(" 13"), "{told:?}");
        server.shut_down().await;
    });
}

/// Of the members of the set, in the order in which they started.
static TRAILS: Mutex<Vec<Trail>> = Mutex::new(Vec::new());

#[test]
fn a_secondary_records_its_own_clients_and_nothing_that_it_applies() {
    run(async {
        let set = Set::configured(3, |c| {
            let trail = Trail::default();
            trail.attach(&World::new(), c, Trail::settings(None));
            TRAILS.lock().unwrap().push(trail);
        })
        .await;
        let trails = TRAILS.lock().unwrap().clone();
        trails.iter().for_each(|t| drop(t.records()));
        let mut c = set.connect(set.primary().await).await;
        c.ok(doc! { "create": "c", "writeConcern": doc! { "w": 3 } }).await;
        let index = doc! { "key": doc! { "a": 1 }, "name": "a_1" };
        c.ok(doc! { "createIndexes": "c", "indexes": list(vec![index]), "commitQuorum": 3 }).await;
        c.ok(doc! { "createUser": "ann", "pwd": "pw", "roles": none(), "writeConcern": doc! { "w": 3 } })
            .await;
        let options = doc! { "preAndPostImages": doc! { "expireAfterSeconds": 60 } };
        c.admin(doc! { "setClusterParameter": doc! { "changeStreamOptions": options } }).await;
        c.ok(doc! { "drop": "c", "writeConcern": doc! { "w": 3 } }).await;
        let mut seen: Vec<Vec<String>> = trails.iter().map(Trail::told).collect();
        let has = |told: &Vec<String>, action: &str| told.iter().any(|t| t.starts_with(action));
        // What is in force changes on each of them.
        while !seen.iter().all(|told| has(told, "updateCachedClusterServerParameter ")) {
            pause(10).await;
            seen.iter_mut().zip(&trails).for_each(|(told, trail)| told.extend(trail.told()));
        }
        for action in
            ["createCollection ", "createIndex ", "createUser ", "setClusterParameter ", "dropCollection "]
        {
            assert_eq!(seen.iter().filter(|told| has(told, action)).count(), 1, "{action}: {seen:?}");
        }
    });
}
