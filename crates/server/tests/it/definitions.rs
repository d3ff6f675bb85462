//! Definition changes through the whole server: their effect, their oplog entries, and what a restart finds.

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, World, run};

async fn names(c: &mut Client) -> Vec<String> {
    let rows = c.all(doc! { "listCollections": 1, "nameOnly": true }).await;
    rows.iter().filter_map(|r| r.get("name")?.as_str().map(str::to_owned)).collect()
}

/// The commands in the oplog for the test's databases, each by its first field.
async fn logged(c: &mut Client) -> Vec<String> {
    let find =
        doc! { "find": "oplog.rs", "filter": { "op": "c", "ns": { "$regex": "^test" } }, "$db": "local" };
    let rows = c.all(find).await;
    rows.iter().filter_map(|r| Some(r.get("o")?.as_doc()?.iter().next()?.0.to_owned())).collect()
}

#[test]
fn every_definition_change_leaves_its_entry_and_outlives_a_restart() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "create": "a", "collation": { "locale": "de" } }).await;
        c.ok(doc! { "createIndexes": "a", "indexes": [{ "key": { "x": 1 }, "name": "x" }] }).await;
        c.ok(doc! { "insert": "a", "documents": [{ "_id": 1, "x": "B" }, { "_id": 2, "x": "a" }] }).await;
        c.ok(doc! { "createIndexes": "a", "indexes": [{ "key": { "y": 1 }, "name": "y" }] }).await;
        c.ok(doc! { "collMod": "a", "index": { "name": "y", "hidden": true } }).await;
        c.admin(doc! { "renameCollection": "test.a", "to": "test.b" }).await;
        c.ok(doc! { "dropIndexes": "b", "index": "x" }).await;
        c.ok(doc! { "create": "v", "viewOn": "b", "pipeline": [{ "$match": { "_id": 1 } }] }).await;
        c.ok(doc! { "create": "gone" }).await;
        c.ok(doc! { "drop": "gone" }).await;
        c.ok(doc! { "create": "capped", "capped": true, "size": 4096, "max": 2 }).await;
        let want = [
            "create",
            "createIndexes",
            "startIndexBuild",
            "commitIndexBuild",
            "collMod",
            "renameCollection",
            "dropIndexes",
            "create",
            "create",
            "drop",
            "create",
        ];
        let got = logged(&mut c).await;
        let got: Vec<&str> = got.iter().map(String::as_str).collect();
        assert_eq!(got, want);
        server.abandon();

        let server = world.start_set().await;
        let mut c = server.connect().await;
        assert_eq!(names(&mut c).await, ["b", "capped", "system.views", "v"]);
        let indexes = c.all(doc! { "listIndexes": "b" }).await;
        assert_eq!(indexes.len(), 2);
        assert_eq!(indexes[1].get("hidden"), Some(&Bson::Boolean(true)));
        assert_eq!(c.all(doc! { "find": "v" }).await.len(), 1);
        // The collection's own collation still sorts.
        let sorted = c.all(doc! { "find": "b", "sort": { "x": 1 }, "projection": { "_id": 1 } }).await;
        assert_eq!(sorted, [doc! { "_id": 2 }, doc! { "_id": 1 }]);
        server.shut_down().await;
    });
}

#[test]
fn names_in_use_and_names_that_are_not_there_are_told_apart() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "a", "documents": [{ "_id": 1 }] }).await;
        c.ok(doc! { "insert": "b", "documents": [{ "_id": 2 }] }).await;
        let rename = |from: &str, to: &str, over: bool| {
            doc! { "renameCollection": from, "to": to, "dropTarget": over, "$db": "admin" }
        };
        assert_eq!(c.err(rename("test.a", "test.b", false)).await.0, 48);
        assert_eq!(c.err(rename("test.nope", "test.b", true)).await.0, 26);
        assert_eq!(c.err(doc! { "create": "a", "capped": true, "size": 4096 }).await.0, 48);
        // The same again is no error, nor is dropping what is gone.
        c.ok(doc! { "create": "a" }).await;
        c.ok(doc! { "drop": "nope" }).await;
        assert_eq!(c.err(doc! { "dropIndexes": "a", "index": "nope" }).await.0, 27);
        assert_eq!(c.err(doc! { "dropIndexes": "a", "index": "_id_" }).await.0, 72);
        assert_eq!(c.err(doc! { "collMod": "nope" }).await.0, 26);
        c.ok(rename("test.a", "test.b", true)).await;
        assert_eq!(c.all(doc! { "find": "b" }).await, [doc! { "_id": 1 }]);
        // Into another database: the documents move along.
        c.ok(rename("test.b", "other.b", false)).await;
        assert!(names(&mut c).await.is_empty());
        assert_eq!(c.all(doc! { "find": "b", "$db": "other" }).await, [doc! { "_id": 1 }]);
        c.ok(doc! { "dropDatabase": 1, "$db": "other" }).await;
        assert!(c.all(doc! { "find": "b", "$db": "other" }).await.is_empty());
        server.shut_down().await;
    });
}

#[test]
fn a_document_that_fails_validation_is_told_why() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let schema = doc! { "required": ["a"], "properties": { "a": { "bsonType": "int", "minimum": 5 } } };
        c.ok(doc! { "create": "c", "validator": { "$jsonSchema": schema } }).await;
        let reply = c.run(doc! { "insert": "c", "documents": [{ "_id": 7, "a": 1 }] }).await;
        let Some(Bson::Array(errors)) = reply.get("writeErrors") else { panic!("{reply:?}") };
        let error = errors[0].as_doc().expect("an error");
        assert_eq!(error.get("code").and_then(Bson::as_i64), Some(121));
        let info = error.get("errInfo").and_then(Bson::as_doc).expect("errInfo");
        assert_eq!(info.get("failingDocumentId"), Some(&Bson::Int32(7)));
        let details = info.get("details").and_then(Bson::as_doc).expect("details");
        assert_eq!(details.get("operatorName").and_then(Bson::as_str), Some("$jsonSchema"));
        assert!(details.contains("schemaRulesNotSatisfied"), "{details:?}");
        server.shut_down().await;
    });
}

#[test]
fn settings_of_a_set_outlive_a_restart() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let set = doc! { "setDefaultRWConcern": 1, "defaultWriteConcern": { "w": 1, "wtimeout": 5 } };
        c.admin(set).await;
        let of = |d: &Document| d.get("defaultWriteConcern").cloned();
        let before = of(&c.admin(doc! { "getDefaultRWConcern": 1 }).await);
        assert!(before.is_some());
        server.shut_down().await;
        let server = world.start_set().await;
        let mut c = server.connect().await;
        assert_eq!(of(&c.admin(doc! { "getDefaultRWConcern": 1 }).await), before);
        server.shut_down().await;
    });
}
