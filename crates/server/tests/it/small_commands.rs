//! Commands that tools and tests ask for now and then: digests of files, keys that split a collection, the block of user
//! writes, and what takes documents out of a capped collection. Figures and texts are a real server's.

#![allow(clippy::unwrap_used)]

use pando_bson::{Binary, Bson, Document, doc};
use pando_testserver::{Client, World, run};

fn text(reply: &Document, name: &str) -> String {
    reply.get(name).and_then(Bson::as_str).unwrap_or_default().to_owned()
}

fn list(docs: Vec<Document>) -> Vec<Bson> {
    docs.into_iter().map(Bson::Document).collect()
}

fn chunk(id: i32, file: i32, n: i32, data: &[u8]) -> Document {
    let data = Bson::Binary(Binary { subtype: 0, bytes: data.to_vec() });
    doc! { "_id": id, "files_id": file, "n": n, "data": data }
}

#[test]
fn a_file_s_digest_is_read_from_its_chunks_in_their_order() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let md5 = || doc! { "filemd5": 7, "root": "fs" };
        let empty = c.ok(md5()).await;
        assert_eq!(text(&empty, "md5"), "d41d8cd98f00b204e9800998ecf8427e");
        let chunks = vec![chunk(2, 7, 1, b"abc1"), chunk(1, 7, 0, b"abc0"), chunk(3, 7, 2, b"abc2")];
        c.ok(doc! { "insert": "fs.chunks", "documents": list(chunks) }).await;
        assert_eq!(c.err(md5()).await.0, 291, "it needs an index");
        let index = doc! { "key": { "files_id": 1, "n": 1 }, "name": "f" };
        c.ok(doc! { "createIndexes": "fs.chunks", "indexes": [index] }).await;
        let whole = c.ok(md5()).await;
        assert_eq!(text(&whole, "md5"), "219580a55bf2231c1163dc7d2718f3bd");
        assert_eq!(whole.get("numChunks"), Some(&Bson::Int32(3)));
        // The state that a part leaves is taken up again.
        let part = c.ok(doc! { "filemd5": 7, "root": "fs", "partialOk": true }).await;
        let state = part.get("md5state").cloned().unwrap();
        let twice = c.ok(doc! { "filemd5": 7, "partialOk": true, "md5state": state }).await;
        assert_eq!(text(&twice, "md5"), "554f3b49e9be2152454217073202441f");
        // Whoever goes on says where.
        let begun = vec![chunk(5, 8, 0, b"abc0"), chunk(6, 8, 1, b"abc1")];
        c.ok(doc! { "insert": "fs.chunks", "documents": list(begun) }).await;
        let part = c.ok(doc! { "filemd5": 8, "partialOk": true }).await;
        c.ok(doc! { "insert": "fs.chunks", "documents": [chunk(7, 8, 2, b"abc2")] }).await;
        let state = part.get("md5state").cloned().unwrap();
        let rest = c.ok(doc! { "filemd5": 8, "partialOk": true, "md5state": state, "startAt": 2 }).await;
        assert_eq!(text(&rest, "md5"), text(&whole, "md5"));
        assert_eq!(rest.get("numChunks"), Some(&Bson::Int32(3)));
        c.ok(doc! { "insert": "fs.chunks", "documents": [chunk(4, 7, 5, b"x")] }).await;
        assert_eq!(c.err(md5()).await.0, 10040);
        c.ok(doc! { "filemd5": 7, "root": "fs", "partialOk": true }).await;
        c.ok(doc! { "insert": "fs.chunks", "documents": [{ "files_id": 9, "n": 0, "data": "text" }] }).await;
        assert_eq!(c.err(doc! { "filemd5": 9 }).await.0, 50849);
        assert_eq!(c.err(doc! { "filemd5": 9, "root": 1 }).await.0, 73);
    });
}

#[test]
fn what_a_command_that_names_nothing_is_given_as_its_name_may_hold_a_null_character() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "listCollections": "a\0b" }).await;
        assert_eq!(c.err(doc! { "dropDatabase": "a\0b" }).await.0, 14);
        assert_eq!(c.err(doc! { "dbStats": "a\0b" }).await.0, 73);
    });
}

async fn split(c: &mut Client, more: Document) -> Vec<i32> {
    let mut cmd = doc! { "splitVector": "test.c", "keyPattern": { "_id": 1 } };
    more.iter().for_each(|(k, v)| cmd.set(k, v.clone()));
    let reply = c.ok(cmd).await;
    let keys = reply.get("splitKeys").and_then(Bson::as_array).unwrap().to_vec();
    keys.iter().map(|k| k.as_doc().unwrap().get("_id").and_then(Bson::as_i64).unwrap() as i32).collect()
}

#[test]
fn split_points_lie_where_half_a_chunk_is_full() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let long = "x".repeat(10_000);
        for at in (0..300).step_by(100) {
            let docs: Vec<Document> =
                (at..at + 100).map(|i| doc! { "_id": i, "a": i, "k": 5, "p": long.as_str() }).collect();
            c.ok(doc! { "insert": "c", "documents": list(docs) }).await;
        }
        let megabyte = 1 << 20;
        assert_eq!(split(&mut c, doc! { "maxChunkSizeBytes": megabyte }).await, [52, 105, 158, 211, 264]);
        assert_eq!(split(&mut c, doc! { "maxChunkSize": 1, "maxSplitPoints": 2 }).await, [52, 105]);
        assert_eq!(split(&mut c, doc! { "maxChunkSize": 1, "maxChunkObjects": 30 }).await.first(), Some(&30));
        let range = doc! { "maxChunkSize": 1, "min": { "_id": 100 }, "max": { "_id": 210 } };
        assert_eq!(split(&mut c, range).await, [152, 205]);
        assert_eq!(split(&mut c, doc! { "force": true }).await, [150]);
        assert_eq!(split(&mut c, doc! { "maxChunkSize": 1024 }).await, [0; 0]);
        let ask = |more: Document| {
            let mut cmd = doc! { "splitVector": "test.c", "keyPattern": { "_id": 1 }, "maxChunkSize": 1 };
            more.iter().for_each(|(k, v)| cmd.set(k, v.clone()));
            cmd
        };
        for (more, code) in [
            (doc! { "keyPattern": { "a": 1 } }, 27),
            (doc! { "splitVector": "test.nosuch" }, 26),
            (doc! { "splitVector": "c" }, 73),
            (doc! { "maxChunkSize": 0 }, 72),
            (doc! { "maxChunkObjects": 0 }, 72),
            (doc! { "min": { "_id": 5 }, "max": { "_id": 5 } }, 96),
            (doc! { "min": { "a": 5 }, "max": { "a": 6 } }, 16634),
        ] {
            assert_eq!(c.err(ask(more.clone())).await.0, code, "{more:?}");
        }
        // Old mistakes have a text and no code.
        for more in [doc! { "keyPattern": {} }, doc! { "min": { "_id": 5 } }] {
            let reply = c.run(ask(more)).await;
            assert!(reply.get("errmsg").is_some() && reply.get("code").is_none(), "{reply:?}");
            assert!(reply.get("codeName").is_none());
        }
    });
}

#[test]
fn users_cannot_write_while_their_writes_are_blocked_and_everybody_else_can() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        let block = |on: bool| doc! { "setUserWriteBlockMode": 1, "global": on, "$db": "admin" };
        c.ok(block(true)).await;
        let refused = c.ok(doc! { "insert": "c", "documents": [{ "_id": 2 }] }).await;
        let errors = refused.get("writeErrors").and_then(Bson::as_array).unwrap();
        assert_eq!(errors[0].as_doc().unwrap().get("code"), Some(&Bson::Int32(371)));
        for refused in [
            doc! { "create": "new" },
            doc! { "drop": "c" },
            doc! { "dropDatabase": 1 },
            doc! { "collMod": "c" },
            doc! { "convertToCapped": "c", "size": 4096 },
            doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }] },
            doc! { "findAndModify": "c", "query": { "_id": 1 }, "remove": true },
            doc! { "aggregate": "c", "pipeline": [{ "$out": "o" }], "cursor": {} },
            doc! { "renameCollection": "test.c", "to": "test.d", "$db": "admin" },
        ] {
            assert_eq!(c.err(refused.clone()).await.0, 371, "{refused:?}");
        }
        // What changes nothing, reads, the server's own databases, and other servers' clients that may.
        c.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": 9 }, "limit": 1 }] }).await;
        c.ok(doc! { "find": "c" }).await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "admin" }).await;
        let passes = doc! { "insert": "c", "documents": [{ "_id": 3 }], "mayBypassWriteBlocking": true };
        assert_eq!(c.ok(passes).await.get("n"), Some(&Bson::Int32(1)));
        let status = c.ok(doc! { "serverStatus": 1 }).await;
        let repl = status.get("repl").and_then(Bson::as_doc).unwrap();
        assert_eq!(repl.get("userWriteBlockMode"), Some(&Bson::Int32(2)));
        drop(c);
        // It is the set's, and holds on.
        let port = server.port;
        server.shut_down().await;
        let server = world.start_at(port, |config| config.repl_set = Some("rs".to_owned())).await;
        let mut c = server.connect().await;
        for _ in 0..100 {
            if c.run(doc! { "hello": 1 }).await.get("isWritablePrimary") == Some(&Bson::Boolean(true)) {
                break;
            }
            pando_testserver::pause(50).await;
        }
        assert_eq!(c.err(doc! { "create": "new" }).await.0, 371);
        c.ok(block(false)).await;
        c.ok(doc! { "create": "new" }).await;
    });
}

#[test]
fn documents_leave_a_capped_collection_from_its_end() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "create": "cap", "capped": true, "size": 4096 }).await;
        let docs: Vec<Document> = (0..5).map(|i| doc! { "_id": i }).collect();
        c.ok(doc! { "insert": "cap", "documents": list(docs) }).await;
        let count = |n: i32| (doc! { "count": "cap" }, Bson::Int32(n));
        c.ok(doc! { "captrunc": "cap", "n": 1 }).await;
        c.ok(doc! { "captrunc": "cap", "n": 2, "inc": true }).await;
        assert_eq!(c.err(doc! { "captrunc": "cap", "n": 1 }).await.0, 20);
        assert_eq!(c.err(doc! { "captrunc": "cap", "n": 0 }).await.0, 2);
        let (ask, one) = count(1);
        assert_eq!(c.ok(ask.clone()).await.get("n"), Some(&one));
        c.ok(doc! { "emptycapped": "cap" }).await;
        assert_eq!(c.ok(ask).await.get("n"), Some(&Bson::Int32(0)));
        assert_eq!(c.err(doc! { "emptycapped": "nosuch" }).await.0, 26);
        c.ok(doc! { "godinsert": "g", "obj": { "_id": 1 } }).await;
        assert_eq!(c.err(doc! { "godinsert": "g", "obj": { "_id": 1 } }).await.0, 11000);
        assert_eq!(c.err(doc! { "godinsert": "g", "obj": {} }).await.0, 1);
        let hash = c.ok(doc! { "_hashBSONElement": "b", "seed": 1 }).await;
        assert_eq!(hash.get("out"), Some(&Bson::Int64(7_258_623_442_272_059_781)));
    });
}

#[test]
fn diagnostic_data_are_the_replies_of_the_commands_that_have_them() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let reply = c.ok(doc! { "getDiagnosticData": 1, "$db": "admin" }).await;
        let data = reply.get("data").and_then(Bson::as_doc).unwrap();
        for (part, field) in [
            ("serverStatus", "uptimeMillis"),
            ("replSetGetStatus", "members"),
            ("local.oplog.rs.stats", "maxSize"),
        ] {
            let part = data.get(part).and_then(Bson::as_doc).unwrap();
            assert!(["start", field, "end"].iter().all(|f| part.get(f).is_some()), "{part:?}");
        }
        c.ok(doc! { "setParameter": 1, "diagnosticDataCollectionEnabled": false, "$db": "admin" }).await;
        let reply = c.ok(doc! { "getDiagnosticData": 1, "$db": "admin" }).await;
        assert_eq!(reply.get("data"), Some(&Bson::Document(Document::new())));
    });
}
