//! Locks as operators see them, and waits for them that end when they are told to.

use pando_bson::{Binary, Bson, Document, doc};
use pando_testserver::{Client, Running, World, pause, run, spawn};

fn within(mut command: Document, start: bool) -> Document {
    command.push("lsid", doc! { "id": Bson::Binary(Binary { subtype: 4, bytes: vec![1; 16] }) });
    command.push("txnNumber", 1i64);
    command.push("autocommit", false);
    if start {
        command.push("startTransaction", true);
    }
    command
}
fn insert(coll: &str, id: i32) -> Document {
    doc! { "insert": coll, "documents": [{ "_id": id, "x": id }] }
}
fn at<'a>(doc: &'a Document, path: &[&str]) -> Option<&'a Bson> {
    let (last, parents) = path.split_last()?;
    parents.iter().try_fold(doc, |d, name| d.get(name)?.as_doc())?.get(last)
}
fn number(doc: &Document, path: &[&str]) -> i64 {
    at(doc, path).and_then(Bson::as_i64).unwrap_or(0)
}
/// A collection with a document that an open transaction has written.
async fn held(world: &World) -> (Running, Client, Client) {
    let server = world.start_set().await;
    let (mut a, mut b) = (server.connect().await, server.connect().await);
    b.ok(insert("c", 1)).await;
    b.ok(insert("free", 1)).await;
    a.ok(within(insert("c", 2), true)).await;
    (server, a, b)
}
async fn let_go(a: &mut Client) {
    a.ok(within(doc! { "abortTransaction": 1, "$db": "admin" }, false)).await;
}
/// The running operation of this name, once it waits for a lock.
async fn waiting(b: &mut Client, command: &str) -> Document {
    for _ in 0..1_000 {
        let found = b.admin(doc! { "currentOp": 1, "waitingForLock": true }).await;
        let list = found.get("inprog").and_then(Bson::as_array).unwrap_or_default();
        let is_it = |o: &&Document| at(o, &["command", command]).is_some();
        if let Some(op) = list.iter().filter_map(Bson::as_doc).find(is_it) {
            return op.clone();
        }
        pause(5).await;
    }
    panic!("nobody waits");
}

#[test]
fn an_operation_shows_the_locks_that_it_holds_and_waits_for_and_how_long_it_waited() {
    run(async {
        let world = World::new();
        let (server, mut a, mut b) = held(&world).await;
        b.ok(doc! { "profile": 2 }).await;
        let before = b.admin(doc! { "serverStatus": 1 }).await;
        let mut c = server.connect().await;
        let drop = spawn(async move { c.ok(doc! { "drop": "c" }).await });
        let op = waiting(&mut b, "drop").await;
        assert_eq!(op.get("locks"), Some(&Bson::from(doc! { "Database": "W" })), "{op:?}");
        assert_eq!(number(&op, &["lockStats", "Database", "acquireCount", "W"]), 1);
        assert_eq!(number(&op, &["lockStats", "Collection", "acquireWaitCount", "W"]), 1);
        assert_eq!(at(&op, &["lockStats", "Collection", "acquireCount"]), None);
        pause(60).await;
        let_go(&mut a).await;
        drop.await.unwrap();
        b.ok(insert("free", 2)).await;
        b.all(doc! { "find": "free" }).await;
        b.ok(doc! { "profile": 0 }).await;

        let after = b.admin(doc! { "serverStatus": 1 }).await;
        let path = ["locks", "Collection", "timeAcquiringMicros", "W"];
        let waited = number(&after, &path) - number(&before, &path);
        assert!(waited >= 60_000, "{waited}");
        let path = ["locks", "ReplicationStateTransition", "acquireCount", "w"];
        assert!(number(&after, &path) > number(&before, &path));

        let locks_of = async |b: &mut Client, command: &str| {
            for _ in 0..1_000 {
                let mut exists = Document::new();
                exists.push(format!("command.{command}"), doc! { "$exists": true });
                let mut find = doc! { "find": "system.profile" };
                find.push("filter", exists);
                if let Some(entry) = b.all(find).await.first() {
                    return entry.get("locks").and_then(Bson::as_doc).cloned().unwrap();
                }
                pause(5).await;
            }
            panic!("{command} is not in the profile");
        };
        let dropped = locks_of(&mut b, "drop").await;
        assert!(number(&dropped, &["Collection", "timeAcquiringMicros", "W"]) >= 60_000, "{dropped:?}");
        assert_eq!(number(&dropped, &["Database", "acquireCount", "W"]), 1);
        let one = || doc! { "acquireCount": { "w": 1i64 } };
        let mut expected = Document::new();
        expected.push("ReplicationStateTransition", one());
        expected.push("Collection", one());
        assert_eq!(locks_of(&mut b, "insert").await, expected);
        assert_eq!(locks_of(&mut b, "find").await, doc! {}, "readers take no locks");
        server.shut_down().await;
    });
}

#[test]
fn definition_changes_and_validate_stop_waiting_when_they_are_told_to() {
    run(async {
        let world = World::new();
        let (server, mut a, mut b) = held(&world).await;
        b.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "other" }).await;
        for command in [
            doc! { "validate": "c", "full": true },
            doc! { "renameCollection": "test.c", "to": "other.d", "$db": "admin" },
            doc! { "drop": "c" },
            doc! { "collMod": "c", "validator": {} },
            doc! { "dropIndexes": "c", "index": "*" },
            doc! { "dropDatabase": 1 },
        ] {
            let mut limited = command.clone();
            limited.push("maxTimeMS", 150);
            let name = command.iter().next().unwrap().0.to_owned();
            assert_eq!(b.err(limited).await.0, 50, "{name}");
            let mut c = server.connect().await;
            let waits = spawn(async move { c.run(command).await });
            let op = waiting(&mut b, &name).await;
            b.admin(doc! { "killOp": 1, "op": number(&op, &["opid"]) }).await;
            let killed = waits.await.unwrap();
            assert_eq!(number(&killed, &["code"]), 11601, "{name}: {killed:?}");
        }
        let_go(&mut a).await;
        let left = b.all(doc! { "listCollections": 1, "nameOnly": true, "$db": "other" }).await;
        assert_eq!(left.len(), 1, "no copy is left: {left:?}");
        server.shut_down().await;
    });
}

#[test]
fn a_rename_across_databases_stops_waiting_for_its_target_and_takes_its_copy_back() {
    run(async {
        let world = World::new();
        let (server, mut a, mut b) = held(&world).await;
        b.ok(doc! { "insert": "from", "documents": [{ "_id": 1 }], "$db": "other" }).await;
        let mut rename = doc! { "renameCollection": "other.from", "to": "test.c", "dropTarget": true };
        rename.push("maxTimeMS", 200);
        rename.push("$db", "admin");
        assert_eq!(b.err(rename.clone()).await.0, 50);
        let names = async |b: &mut Client, db: &str| {
            b.all(doc! { "listCollections": 1, "nameOnly": true, "$db": db }).await.len()
        };
        assert_eq!((names(&mut b, "test").await, names(&mut b, "other").await), (2, 1));
        let_go(&mut a).await;
        rename.set("maxTimeMS", 0);
        b.ok(rename).await;
        assert_eq!((names(&mut b, "test").await, names(&mut b, "other").await), (2, 0));
        server.shut_down().await;
    });
}

#[test]
fn a_create_indexes_that_is_killed_while_its_build_waits_for_a_transaction_ends_and_leaves_no_index() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let (mut a, mut b, mut c) = (server.connect().await, server.connect().await, server.connect().await);
        b.ok(insert("c", 1)).await;
        let hold = |mode: &str| doc! { "configureFailPoint": "hangAfterStartingIndexBuild", "mode": mode };
        b.admin(hold("alwaysOn")).await;
        let create =
            doc! { "createIndexes": "c", "indexes": [{ "key": { "x": 1 }, "name": "x" }], "maxTimeMS": 1500 };
        let building = spawn(async move { c.run(create).await });
        while b.admin(doc! { "currentOp": 1, "desc": "IndexBuildsCoordinator" }).await.get("inprog")
            == Some(&Bson::Array(Vec::new()))
        {
            pause(5).await;
        }
        a.ok(within(insert("c", 2), true)).await;
        b.admin(hold("off")).await;
        let ended = building.await.unwrap();
        assert_eq!(number(&ended, &["code"]), 50, "{ended:?}");
        let_go(&mut a).await;
        for _ in 0..1_000 {
            if b.all(doc! { "listIndexes": "c" }).await.len() == 1 {
                break;
            }
            pause(5).await;
        }
        assert_eq!(b.all(doc! { "listIndexes": "c" }).await.len(), 1);
        b.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "x": 1 }, "name": "x" }] }).await;
        server.shut_down().await;
    });
}

#[test]
fn what_a_transaction_has_joined_is_not_dropped_before_it_ends() {
    run(async {
        let world = World::new();
        let (server, mut a, mut b) = held(&world).await;
        let join = doc! { "$lookup": { "from": "free", "localField": "x", "foreignField": "x", "as": "j" } };
        let facet = doc! { "$facet": { "f": [join] } };
        a.ok(within(doc! { "aggregate": "c", "pipeline": [facet], "cursor": {} }, false)).await;
        let refused = b.run(doc! { "drop": "free", "maxTimeMS": 100 }).await;
        assert_eq!(refused.get("code").and_then(Bson::as_i64), Some(50), "{refused:?}");
        let_go(&mut a).await;
        b.ok(doc! { "drop": "free" }).await;
        server.shut_down().await;
    });
}
