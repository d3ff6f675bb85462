//! Users and roles: what is kept of them, what is told, and what is refused, as a real server does it.

#![allow(clippy::unwrap_used)]

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
    let reply = c.ok(find).await;
    let rows = reply
        .get("cursor")
        .and_then(Bson::as_doc)
        .unwrap()
        .get("firstBatch")
        .and_then(Bson::as_array)
        .unwrap();
    rows[0].as_doc().unwrap().clone()
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
