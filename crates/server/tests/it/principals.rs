//! Users and roles: what is kept of them, what is told, and what is refused, as a real server does it.

#![allow(clippy::unwrap_used)]

use pando_auth::{Mechanism, Password, scram};
use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, World, run};

fn list<T: Into<Bson>>(items: Vec<T>) -> Bson {
    Bson::Array(items.into_iter().map(Into::into).collect())
}

fn none() -> Bson {
    Bson::Array(Vec::new())
}

async fn stored(c: &mut Client, coll: &str, id: &str) -> Document {
    let find = doc! { "find": coll, "filter": doc! { "_id": id }, "$db": "admin" };
    c.all(find).await.remove(0)
}

async fn told(c: &mut Client, command: Document, of: &str) -> Vec<Document> {
    let reply = c.ok(command).await;
    let each = reply.get(of).and_then(Bson::as_array).unwrap().iter();
    each.map(|d| d.as_doc().unwrap().clone()).collect()
}

fn names(d: &Document) -> Vec<&str> {
    d.iter().map(|(name, _)| name).collect()
}

fn roles_of(d: &Document, field: &str) -> Vec<String> {
    let each = d.get(field).and_then(Bson::as_array).unwrap().iter().map(|r| {
        let r = r.as_doc().unwrap();
        format!(
            "{}@{}",
            r.get("role").and_then(Bson::as_str).unwrap(),
            r.get("db").and_then(Bson::as_str).unwrap()
        )
    });
    each.collect()
}

#[test]
fn a_user_is_kept_without_its_password_and_told_without_its_credentials() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let restrictions = list(vec![doc! { "clientSource": list(vec!["127.0.0.1"]) }]);
        let create = doc! {
            "createUser": "ann", "pwd": "secret", "customData": doc! { "a": 1 },
            "roles": list(vec![Bson::from("read"), Bson::from(doc! { "role": "readWrite", "db": "other" })]),
            "authenticationRestrictions": restrictions,
        };
        c.ok(create.clone()).await;
        assert_eq!(c.err(create).await.0, 51_003);
        let kept = stored(&mut c, "system.users", "test.ann").await;
        assert_eq!(
            names(&kept),
            [
                "_id",
                "userId",
                "user",
                "db",
                "credentials",
                "authenticationRestrictions",
                "customData",
                "roles"
            ]
        );
        assert!(!format!("{kept:?}").contains("secret"));
        let credentials = kept.get("credentials").and_then(Bson::as_doc).unwrap();
        for (mechanism, iterations) in [("SCRAM-SHA-1", 10_000), ("SCRAM-SHA-256", 15_000)] {
            let of = credentials.get(mechanism).and_then(Bson::as_doc).unwrap();
            assert_eq!(of.get("iterationCount").and_then(Bson::as_i64), Some(iterations));
        }
        let users = told(&mut c, doc! { "usersInfo": 1 }, "users").await;
        assert_eq!(names(&users[0]), ["_id", "userId", "user", "db", "customData", "roles", "mechanisms"]);
        let users = told(
            &mut c,
            doc! { "usersInfo": "ann", "showPrivileges": true, "showCredentials": true },
            "users",
        )
        .await;
        assert_eq!(
            names(&users[0]),
            [
                "_id",
                "userId",
                "user",
                "db",
                "mechanisms",
                "credentials",
                "customData",
                "roles",
                "inheritedRoles",
                "inheritedPrivileges",
                "inheritedAuthenticationRestrictions",
            ]
        );
        assert_eq!(roles_of(&users[0], "inheritedRoles"), ["read@test", "readWrite@other"]);
        // what tools ask before they copy users
        assert_eq!(
            stored(&mut c, "system.version", "authSchema").await.get("currentVersion").and_then(Bson::as_i64),
            Some(5)
        );
        let filtered = doc! { "usersInfo": doc! { "forAllDBs": true }, "filter": doc! { "user": "nobody" } };
        assert!(told(&mut c, filtered, "users").await.is_empty());
        c.ok(doc! { "dropUser": "ann" }).await;
        assert_eq!(c.err(doc! { "dropUser": "ann" }).await.0, 11);
    });
}

#[test]
fn users_change_and_keep_what_was_not_named() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "createUser": "bob", "pwd": "a", "roles": none(), "mechanisms": list(vec!["SCRAM-SHA-1"]) }).await;
        let before = stored(&mut c, "system.users", "test.bob").await;
        c.ok(doc! { "updateUser": "bob", "customData": doc! { "b": 1 } }).await;
        c.ok(doc! { "grantRolesToUser": "bob", "roles": list(vec!["read", "dbAdmin"]) }).await;
        c.ok(doc! { "revokeRolesFromUser": "bob", "roles": list(vec!["dbAdmin", "readWrite"]) }).await;
        let after = stored(&mut c, "system.users", "test.bob").await;
        assert_eq!(after.get("credentials"), before.get("credentials"));
        assert_eq!(roles_of(&after, "roles"), ["read@test"]);
        let more = doc! { "updateUser": "bob", "mechanisms": list(vec!["SCRAM-SHA-256"]) };
        assert_eq!(c.err(more).await.0, 2);
        c.ok(doc! { "updateUser": "bob", "pwd": "b" }).await;
        let users = told(&mut c, doc! { "usersInfo": "bob" }, "users").await;
        assert_eq!(users[0].get("mechanisms").and_then(Bson::as_array).unwrap().len(), 2);
        c.ok(doc! { "updateUser": "bob", "mechanisms": list(vec!["SCRAM-SHA-256"]) }).await;
        let refused: Vec<(Document, i32)> = vec![
            (doc! { "updateUser": "bob" }, 2),
            (doc! { "updateUser": "nobody", "roles": none() }, 11),
            (doc! { "grantRolesToUser": "bob", "roles": none() }, 2),
            (doc! { "grantRolesToUser": "nobody", "roles": list(vec!["read"]) }, 11),
            (doc! { "grantRolesToUser": "bob", "roles": list(vec!["nope"]) }, 31),
            (doc! { "createUser": "x", "pwd": "p" }, 40_414),
            (doc! { "createUser": "x", "roles": none() }, 2),
            (doc! { "createUser": "", "pwd": "p", "roles": none() }, 2),
            (doc! { "createUser": "x", "pwd": "", "roles": none() }, 50_687),
            (doc! { "createUser": "x", "pwd": "p", "roles": list(vec![5]) }, 2),
            (doc! { "createUser": "x", "pwd": "p", "roles": none(), "mechanisms": none() }, 2),
            (doc! { "createUser": "x", "pwd": "p", "roles": none(), "mechanisms": list(vec!["X"]) }, 2),
            (doc! { "createUser": "x", "pwd": "p", "roles": none(), "digestPassword": false }, 2),
            (
                doc! { "createUser": "x", "pwd": "p", "roles": none(), "authenticationRestrictions": list(vec![doc! {}]) },
                162,
            ),
            (doc! { "createUser": "x", "pwd": "p", "roles": none(), "$db": "local" }, 2),
            (doc! { "createUser": "x", "pwd": "p", "roles": none(), "$db": "$external" }, 2),
        ];
        for (command, code) in refused {
            assert_eq!(c.err(command.clone()).await.0, code, "{command:?}");
        }
        c.ok(doc! { "createUser": "x", "roles": none(), "$db": "$external" }).await;
        assert_eq!(
            c.ok(doc! { "dropAllUsersFromDatabase": 1 }).await.get("n").and_then(Bson::as_i64),
            Some(1)
        );
    });
}

#[test]
fn a_role_that_is_dropped_is_taken_from_everybody() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let find = |coll: &str| {
            list(vec![
                doc! { "resource": doc! { "db": "test", "collection": coll }, "actions": list(vec!["find"]) },
            ])
        };
        c.ok(doc! { "createRole": "low", "privileges": find("c"), "roles": none() }).await;
        c.ok(doc! { "createRole": "high", "privileges": none(), "roles": list(vec!["low", "read"]) }).await;
        c.ok(doc! { "createUser": "ann", "pwd": "p", "roles": list(vec!["low", "high"]) }).await;
        let users = told(&mut c, doc! { "usersInfo": "ann", "showPrivileges": true }, "users").await;
        assert_eq!(roles_of(&users[0], "inheritedRoles"), ["high@test", "low@test", "read@test"]);
        c.ok(doc! { "grantPrivilegesToRole": "low", "privileges": find("d") }).await;
        c.ok(doc! { "revokePrivilegesFromRole": "low", "privileges": find("c") }).await;
        assert_eq!(stored(&mut c, "system.roles", "test.low").await.get("privileges"), Some(&find("d")));
        let refused: Vec<(Document, i32)> = vec![
            (doc! { "createRole": "low", "privileges": none(), "roles": none() }, 51_002),
            (doc! { "createRole": "read", "privileges": none(), "roles": none() }, 2),
            (doc! { "createRole": "x", "privileges": find("c"), "roles": none(), "$db": "other" }, 49),
            (doc! { "createRole": "x", "privileges": none(), "roles": none(), "$db": "local" }, 2),
            (doc! { "createRole": "x", "privileges": none(), "roles": list(vec!["nope"]) }, 31),
            (doc! { "grantRolesToRole": "low", "roles": list(vec!["high"]) }, 49),
            (doc! { "updateRole": "low", "roles": list(vec!["low"]) }, 49),
            (doc! { "updateRole": "nope", "privileges": none() }, 31),
            (doc! { "updateRole": "low" }, 2),
            (doc! { "grantRolesToRole": "read", "roles": list(vec!["low"]) }, 2),
            (doc! { "dropRole": "read" }, 2),
            (doc! { "dropRole": "nope" }, 31),
        ];
        for (command, code) in refused {
            assert_eq!(c.err(command.clone()).await.0, code, "{command:?}");
        }
        c.ok(doc! { "dropRole": "low" }).await;
        assert_eq!(roles_of(&stored(&mut c, "system.users", "test.ann").await, "roles"), ["high@test"]);
        assert_eq!(roles_of(&stored(&mut c, "system.roles", "test.high").await, "roles"), ["read@test"]);
        let roles = told(&mut c, doc! { "rolesInfo": 1, "showPrivileges": true }, "roles").await;
        assert_eq!(
            names(&roles[0]),
            [
                "_id",
                "role",
                "db",
                "privileges",
                "roles",
                "isBuiltin",
                "inheritedRoles",
                "inheritedPrivileges"
            ]
        );
        assert_eq!(
            c.ok(doc! { "dropAllRolesFromDatabase": 1 }).await.get("n").and_then(Bson::as_i64),
            Some(1)
        );
    });
}

/// What a reply of a login says.
fn message(reply: &Document) -> (i32, bool, Vec<u8>) {
    let Some(Bson::Binary(payload)) = reply.get("payload") else { panic!("{reply:?}") };
    let number = reply.get("conversationId").and_then(Bson::as_i64).unwrap() as i32;
    (number, reply.get("done") == Some(&Bson::Boolean(true)), payload.bytes.clone())
}

fn binary(bytes: Vec<u8>) -> Bson {
    Bson::Binary(pando_bson::Binary { subtype: 0, bytes })
}

fn start(mechanism: Mechanism, payload: Vec<u8>) -> Document {
    doc! {
        "saslStart": 1, "mechanism": mechanism.name(), "payload": binary(payload),
        "options": doc! { "skipEmptyExchange": true },
    }
}

fn go_on(number: i32, payload: Vec<u8>) -> Document {
    doc! { "saslContinue": 1, "conversationId": number, "payload": binary(payload) }
}

/// The code of a login that fails, or 0.
async fn log_in(c: &mut Client, mechanism: Mechanism, user: &str, password: &str) -> i32 {
    let (mut mine, first) = scram::Client::start(mechanism, user, Password::new(password), &[7; 18]);
    let (number, done, challenge) = message(&c.ok(start(mechanism, first)).await);
    assert!(!done);
    let reply = c.run(go_on(number, mine.prove(&challenge).unwrap())).await;
    if let Some(code) = reply.get("code").and_then(Bson::as_i64) {
        return code as i32;
    }
    let (_, done, proof) = message(&reply);
    assert!(done);
    mine.verify(&proof).unwrap();
    0
}

async fn who(c: &mut Client) -> (Vec<String>, Vec<String>) {
    let reply = c.ok(doc! { "connectionStatus": 1, "showPrivileges": true }).await;
    let info = reply.get("authInfo").and_then(Bson::as_doc).unwrap();
    let users = info.get("authenticatedUsers").and_then(Bson::as_array).unwrap();
    let users =
        users.iter().map(|u| u.as_doc().unwrap().get("user").and_then(Bson::as_str).unwrap().to_owned());
    (users.collect(), roles_of(info, "authenticatedUserRoles"))
}

#[test]
fn a_user_logs_in_and_out_again() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "createUser": "ann", "pwd": "p\u{e9}", "roles": list(vec!["read"]) }).await;
        c.ok(doc! { "createUser": "bob", "pwd": "q", "roles": none(), "mechanisms": list(vec!["SCRAM-SHA-1"]) }).await;
        for mechanism in Mechanism::ALL {
            let mut c = server.connect().await;
            assert_eq!(log_in(&mut c, mechanism, "ann", "wrong").await, 18);
            assert_eq!(log_in(&mut c, mechanism, "nobody", "p\u{e9}").await, 18);
            assert_eq!(who(&mut c).await, (vec![], vec![]));
            assert_eq!(log_in(&mut c, mechanism, "ann", "p\u{e9}").await, 0);
            assert_eq!(log_in(&mut c, mechanism, "ann", "p\u{e9}").await, 0);
            assert_eq!(who(&mut c).await, (vec!["ann".to_owned()], vec!["read@test".to_owned()]));
        }
        assert_eq!(log_in(&mut c, Mechanism::ScramSha256, "bob", "q").await, 18);
        assert_eq!(log_in(&mut c, Mechanism::ScramSha256, "ann", "p\u{e9}").await, 0);
        // somebody else while one is logged in
        assert_eq!(log_in(&mut c, Mechanism::ScramSha1, "bob", "q").await, 5_626_702);
        c.ok(doc! { "grantRolesToUser": "ann", "roles": list(vec!["dbAdmin"]) }).await;
        assert_eq!(who(&mut c).await.1, ["dbAdmin@test", "read@test"]);
        c.ok(doc! { "logout": 1, "$db": "other" }).await;
        assert_eq!(who(&mut c).await.0, ["ann"]);
        c.ok(doc! { "logout": 1 }).await;
        assert_eq!(who(&mut c).await, (vec![], vec![]));
        // who was dropped and made again is somebody else
        assert_eq!(log_in(&mut c, Mechanism::ScramSha256, "ann", "p\u{e9}").await, 0);
        c.ok(doc! { "dropUser": "ann" }).await;
        c.ok(doc! { "createUser": "ann", "pwd": "x", "roles": none() }).await;
        assert_eq!(who(&mut c).await.0, Vec::<String>::new());
    });
}

#[test]
fn a_login_goes_along_with_a_hello_and_fails_in_silence() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "createUser": "ann", "pwd": "p", "roles": none() }).await;
        let (mut mine, first) =
            scram::Client::start(Mechanism::ScramSha256, "ann", Password::new("p"), &[7; 18]);
        let mut step = start(Mechanism::ScramSha256, first);
        step.push("db", "test");
        let hello = |step: &Document| doc! { "hello": 1, "saslSupportedMechs": "test.ann", "speculativeAuthenticate": step.clone() };
        let reply = c.ok(hello(&step)).await;
        assert_eq!(reply.get("saslSupportedMechs"), Some(&list(vec!["SCRAM-SHA-1", "SCRAM-SHA-256"])));
        let (number, _, challenge) =
            message(reply.get("speculativeAuthenticate").and_then(Bson::as_doc).unwrap());
        let (_, done, proof) = message(&c.ok(go_on(number, mine.prove(&challenge).unwrap())).await);
        mine.verify(&proof).unwrap();
        assert!(done);
        assert_eq!(who(&mut c).await.0, ["ann"]);
        for (field, wrong) in
            [("mechanism", Bson::from("X")), ("payload", binary(b"x".to_vec())), ("db", Bson::from(5))]
        {
            let mut step = step.clone();
            step.set(field, wrong);
            assert!(c.ok(hello(&step)).await.get("speculativeAuthenticate").is_none(), "{field}");
        }
        // Who has no credentials in the mechanism that a driver guessed is told what it has, and no challenge that the driver would take up.
        c.ok(doc! { "createUser": "old", "pwd": "p", "roles": none(), "mechanisms": list(vec!["SCRAM-SHA-1"]) }).await;
        let (_, first) = scram::Client::start(Mechanism::ScramSha256, "old", Password::new("p"), &[7; 18]);
        let mut step = start(Mechanism::ScramSha256, first);
        step.push("db", "test");
        let reply = c
            .ok(doc! { "hello": 1, "saslSupportedMechs": "test.old", "speculativeAuthenticate": step })
            .await;
        assert_eq!(reply.get("saslSupportedMechs"), Some(&list(vec!["SCRAM-SHA-1"])));
        assert!(reply.get("speculativeAuthenticate").is_none(), "{reply:?}");
        let nobody = doc! { "hello": 1, "saslSupportedMechs": "test.nobody" };
        assert!(c.ok(nobody).await.get("saslSupportedMechs").is_none());
    });
}

#[test]
fn conversations_are_refused_as_by_a_real_server() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let first = || b"n,,n=ann,r=fyko+d2lbbFgONRv9qkxdawL".to_vec();
        let begin = |field: &str, v: Bson| {
            let mut d = start(Mechanism::ScramSha256, first());
            d.set(field, v);
            d
        };
        for (command, code) in [
            (begin("mechanism", Bson::from("PLAIN")), 334),
            (begin("mechanism", Bson::from(5)), 14),
            (begin("payload", Bson::from(5)), 2),
            (begin("payload", Bson::from("?")), 10_270),
            (begin("payload", binary(b"x".to_vec())), 18),
            (begin("foo", Bson::from(5)), 40_415),
            (begin("options", Bson::from(5)), 14),
            (doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256" }, 40_414),
            (go_on(1, Vec::new()), 17),
            (doc! { "saslContinue": 1, "conversationId": "x", "payload": binary(Vec::new()) }, 14),
        ] {
            assert_eq!(c.err(command.clone()).await.0, code, "{command:?}");
        }
        c.ok(start(Mechanism::ScramSha256, first())).await;
        assert_eq!(c.err(go_on(2, Vec::new())).await.0, 17);
        assert_eq!(c.err(go_on(1, Vec::new())).await.0, 17);
        // text is answered in text
        let reply =
            c.ok(begin("payload", Bson::from("biwsbj1hbm4scj1meWtvK2QybGJiRmdPTlJ2OXFreGRhd0w="))).await;
        assert!(reply.get("payload").and_then(Bson::as_str).is_some());
    });
}

#[test]
fn nobody_sees_the_password_of_a_command_that_runs() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let (mut c, mut other) = (server.connect().await, server.connect().await);
        let data = doc! { "failCommands": ["createUser"], "blockConnection": true, "blockTimeMS": 2000 };
        other
            .admin(doc! { "configureFailPoint": "failCommand", "mode": doc! { "times": 1 }, "data": data })
            .await;
        let create = doc! { "createUser": "ann", "pwd": "secret", "roles": none(), "$db": "test" };
        c.send(&create.to_raw(), 0).await;
        let running = loop {
            let reply = other.admin(doc! { "currentOp": 1 }).await;
            let shown = format!("{reply:?}");
            if shown.contains("createUser") {
                break shown;
            }
        };
        assert!(!running.contains("secret"), "{running}");
        c.receive().await;
    });
}

/// What 6.0.5 does with users and roles that a tool has loaded.
#[test]
fn loaded_users_and_roles_are_taken_over() {
    run(async {
        let world = World::new();
        let server = world.start(|_| {}).await;
        let mut c = server.connect().await;
        for (command, code) in [
            (doc! { "_mergeAuthzCollections": 1 }, 40414),
            (doc! { "_mergeAuthzCollections": 1, "db": "" }, 2),
            (doc! { "_mergeAuthzCollections": 1, "db": 5 }, 14),
            (doc! { "_mergeAuthzCollections": 1, "db": "", "drop": 1, "tempUsersCollection": "admin.t" }, 14),
            (doc! { "_mergeAuthzCollections": 1, "db": "", "tempUsersCollection": "nodot" }, 73),
            (doc! { "_mergeAuthzCollections": 1, "db": "", "foo": 1 }, 40415),
        ] {
            let mut command = command;
            command.push("$db", "admin");
            assert_eq!(c.err(command.clone()).await.0, code, "{command:?}");
        }
        for user in ["a", "b"] {
            c.admin(doc! { "createUser": user, "pwd": "x", "roles": Bson::Array(vec![]) }).await;
        }
        let users = || doc! { "find": "system.users", "projection": doc! { "_id": 1 }, "sort": doc! { "_id": 1 }, "$db": "admin" };
        let copy = c.all(doc! { "find": "system.users", "$db": "admin" }).await.remove(0);
        let mut other = copy.clone();
        other.set("_id", "test.c");
        other.set("user", "c");
        other.set("db", "test");
        let docs = Bson::Array(vec![copy.into(), other.into()]);
        c.admin(doc! { "insert": "t", "documents": docs }).await;
        let merge = |db: &str, drop: bool| doc! { "_mergeAuthzCollections": 1, "tempUsersCollection": "admin.t", "db": db, "drop": drop };
        c.admin(merge("test", true)).await;
        let ids = |found: Vec<Document>| -> Vec<String> {
            found.iter().filter_map(|d| d.get("_id").and_then(Bson::as_str).map(str::to_owned)).collect()
        };
        assert_eq!(ids(c.all(users()).await), ["admin.a", "admin.b", "test.c"]);
        c.admin(merge("", true)).await;
        assert_eq!(ids(c.all(users()).await), ["admin.a", "test.c"]);
        c.log_in("admin", "a", "x").await;
        let role = doc! { "_id": "admin.r", "role": "r", "db": "admin", "privileges": Bson::Array(vec![]), "roles": Bson::Array(vec![]) };
        c.admin(
            doc! { "insert": "tr", "documents": Bson::Array(vec![role.into(), doc! { "_id": 5 }.into()]) },
        )
        .await;
        let roles =
            doc! { "_mergeAuthzCollections": 1, "tempRolesCollection": "admin.tr", "db": "", "$db": "admin" };
        assert_eq!(c.err(roles).await.0, 9);
        assert_eq!(ids(c.all(doc! { "find": "system.roles", "$db": "admin" }).await), ["admin.r"]);
        server.shut_down().await;
    });
}
