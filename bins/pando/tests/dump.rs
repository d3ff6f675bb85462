//! `pando dump` and `pando load`: mongodump's forms, both ways.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod common;

use common::{Connected, Dir, Server, pando};
use pando_bson::{Bson, Document, RawDoc, doc};
use std::path::Path;

fn text(p: &Path) -> &str {
    p.to_str().unwrap()
}

/// A bit of everything in the databases `app` and `other`.
fn fill(c: &mut Connected) {
    c.insert("app", "c", 0..2500);
    let keys =
        [doc! { "key": { "a": 1 }, "name": "a" }, doc! { "key": { "pad": -1 }, "name": "p", "sparse": true }];
    let mut create = doc! { "createIndexes": "c" };
    create.push("indexes", keys.map(Bson::from).to_vec());
    c.ok("app", create);
    c.ok("app", doc! { "create": "cap", "capped": true, "size": 4096, "max": 10 });
    c.insert("app", "cap", 0..15);
    c.ok("app", doc! { "create": "v", "viewOn": "c", "pipeline": [{ "$match": { "a": 1 } }] });
    c.ok("app", doc! { "create": "checked", "validator": { "x": { "$gt": 5 } } });
    c.ok("app", doc! { "insert": "checked", "documents": [{ "_id": 1, "x": 7 }] });
    let locale = doc! { "locale": "de", "strength": 2 };
    c.ok("app", doc! { "create": "german", "collation": locale });
    c.ok("app", doc! { "create": "series", "timeseries": { "timeField": "t", "metaField": "m" } });
    let at = |i: i64| doc! { "_id": i, "t": Bson::DateTime(i * 60_000), "m": i % 3, "x": i };
    let mut insert = doc! { "insert": "series" };
    insert.push("documents", (0..300).map(|i| Bson::Document(at(i))).collect::<Vec<_>>());
    c.ok("app", insert);
    c.ok("other", doc! { "insert": "odd/name ü", "documents": [{ "_id": { "k": 1 }, "n": 1.5 }] });
    c.ok("other", doc! { "create": "empty" });
}

/// Names, options and indexes of a database's collections.
fn definitions(c: &mut Connected, db: &str) -> Vec<(String, String, String)> {
    let batch = |d: &Document| -> Vec<Document> {
        let cursor = d.get("cursor").and_then(Bson::as_doc).unwrap();
        let list = cursor.get("firstBatch").and_then(Bson::as_array).unwrap();
        list.iter().filter_map(|e| e.as_doc().cloned()).collect()
    };
    let mut out = Vec::new();
    for about in batch(&c.ok(db, doc! { "listCollections": 1 })) {
        let name = about.get("name").and_then(Bson::as_str).unwrap().to_owned();
        let indexes = match about.get("type").and_then(Bson::as_str) {
            Some("view") => String::new(),
            _ => format!("{:?}", batch(&c.ok(db, doc! { "listIndexes": name.as_str() }))),
        };
        out.push((name, format!("{:?}", about.get("options")), indexes));
    }
    out.sort();
    out
}

#[test]
fn a_dump_in_each_form_makes_the_same_data_elsewhere() {
    let dir = Dir::new("dump");
    let server = Server::set(&dir.path("data"));
    let mut c = server.connect();
    fill(&mut c);
    let forms: [(&str, &[&str]); 4] = [
        ("folder", &["--out"]),
        ("folder-gz", &["--gzip", "--out"]),
        ("archive", &["--archive"]),
        ("archive-gz", &["--gzip", "--archive"]),
    ];
    for (name, how) in forms {
        let at = dir.path(name);
        let host = server.host();
        let (code, said) = pando(&[&["dump", "--host", &host][..], how, &[text(&at)]].concat());
        assert_eq!(code, 0, "{said}");
        let copy = Server::set(&dir.path(&format!("{name}-data")));
        let mut r = copy.connect();
        // What is in the way goes.
        r.insert("app", "c", 90_000..90_010);
        let host = copy.host();
        let from: &[&str] = if name.starts_with("archive") { &["--archive"] } else { &[] };
        let load = [&["load", "--host", &host, "--drop"][..], from, &[text(&at)]].concat();
        let (code, said) = pando(&load);
        assert_eq!(code, 0, "{said}");
        for db in ["app", "other"] {
            assert_eq!(r.hash(db), c.hash(db), "{name} {db}");
            assert_eq!(definitions(&mut r, db), definitions(&mut c, db), "{name} {db}");
        }
        // Once more without --drop: what is there stays, and is told.
        let (code, said) = pando(&load.iter().copied().filter(|a| *a != "--drop").collect::<Vec<_>>());
        assert!(code == 1 && said.contains("were not inserted") && said.contains("E11000"), "{said}");
        assert_eq!(r.hash("app"), c.hash("app"));
    }
    let only = dir.path("only");
    let host = server.host();
    let part = ["dump", "--host", &host, "--db", "app", "--collection", "cap", "--out", text(&only)];
    assert_eq!(pando(&part).0, 0);
    let files: Vec<_> =
        std::fs::read_dir(only.join("app")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(files.len(), 2, "{files:?}");
    let (code, said) = pando(&part);
    assert!(code == 1 && said.contains("is not empty"), "{said}");
    // A dump is no backup, and the tool says what it is.
    let (code, said) = pando(&["restore", text(&only), "--dbpath", text(&dir.path("x"))]);
    assert!(code == 1 && said.contains("pando load"), "{said}");
}

/// An archive as the format's description has it, written by hand: two collections in turns.
fn archive(damage: bool) -> Vec<u8> {
    let mut out = vec![0x6d, 0xe2, 0x99, 0x81];
    let end = [0xff; 4];
    let mut put = |d: Document| out.extend_from_slice(d.to_raw().as_bytes());
    put(
        doc! { "concurrent_collections": 4, "version": "0.1", "server_version": "6.0.5", "tool_version": "100.6.1" },
    );
    for coll in ["a", "b"] {
        let metadata = format!(
            r#"{{"indexes":[{{"v":{{"$numberInt":"2"}},"key":{{"_id":{{"$numberInt":"1"}}}},"name":"_id_"}},
            {{"v":{{"$numberInt":"2"}},"key":{{"x":{{"$numberDouble":"-1.0"}}}},"name":"x_-1","ns":"db.{coll}"}}],
            "uuid":"0123456789abcdef0123456789abcdef","collectionName":"{coll}","type":"collection"}}"#
        );
        put(
            doc! { "db": "db", "collection": coll, "metadata": metadata.as_str(), "size": 0, "type": "collection" },
        );
    }
    out.extend_from_slice(&end);
    let head = |coll: &str, eof: bool, crc: u64| {
        doc! { "db": "db", "collection": coll, "EOF": eof, "CRC": crc as i64 }.to_raw().as_bytes().to_vec()
    };
    // {_id: 1, x: 5}, {_id: 2, x: 6}: their CRC-64 comes from another program.
    let one = [0x15, 0, 0, 0, 0x10, b'_', b'i', b'd', 0, 1, 0, 0, 0, 0x10, b'x', 0, 5, 0, 0, 0, 0];
    let mut two = one;
    (two[9], two[16]) = (2, 6);
    let pieces = [("a", &one), ("b", &one), ("a", &two)];
    for (coll, d) in pieces {
        out.extend(head(coll, false, 0));
        out.extend_from_slice(d);
        out.extend_from_slice(&end);
    }
    if damage {
        let last = out.len() - 9;
        out[last] ^= 1;
    }
    for (coll, crc) in [("b", CRC_OF_ONE), ("a", CRC_OF_BOTH)] {
        out.extend(head(coll, true, crc));
        out.extend_from_slice(&end);
    }
    out
}

const CRC_OF_ONE: u64 = 0x1131_2DEB_6FA8_7408;
const CRC_OF_BOTH: u64 = 0x2766_29A5_9028_6D53;

#[test]
fn an_archive_with_interleaved_collections_is_loaded_and_a_damaged_one_is_not() {
    let dir = Dir::new("archive");
    let server = Server::set(&dir.path("data"));
    let mut c = server.connect();
    let (host, file) = (server.host(), dir.path("dump.archive"));
    std::fs::write(&file, archive(false)).unwrap();
    let (code, said) = pando(&["load", "--host", &host, "--archive", text(&file)]);
    assert_eq!(code, 0, "{said}");
    assert_eq!((c.count("db", "a"), c.count("db", "b")), (2, 1));
    assert_eq!(definitions(&mut c, "db")[0].2.matches("x_-1").count(), 1);
    std::fs::write(&file, archive(true)).unwrap();
    let (code, said) = pando(&["load", "--host", &host, "--drop", "--archive", text(&file)]);
    assert!(code == 1 && said.contains("the documents of db.a are not those that were written"), "{said}");
    let half = archive(false);
    std::fs::write(&file, &half[..half.len() - 40]).unwrap();
    let (code, said) = pando(&["load", "--host", &host, "--drop", "--archive", text(&file)]);
    assert!(code == 1 && said.contains("is damaged"), "{said}");
    std::fs::write(&file, b"something else").unwrap();
    let (_, said) = pando(&["load", "--host", &host, "--archive", text(&file)]);
    assert!(said.contains("is not an archive of a dump"), "{said}");
}

#[test]
fn the_oplog_of_a_dump_brings_it_to_the_state_of_its_end() {
    let dir = Dir::new("oplog");
    let server = Server::set(&dir.path("data"));
    let mut c = server.connect();
    fill(&mut c);
    let (host, at) = (server.host(), dir.path("dump"));
    let (code, said) = pando(&["dump", "--host", &host, "--oplog", "--out", text(&at)]);
    assert_eq!(code, 0, "{said}");
    let recorded = std::fs::read(at.join("oplog.bson")).unwrap();
    let first = RawDoc::validate(&recorded).unwrap().to_buf();
    // As if all this had happened while the dump was made.
    let filter = doc! { "ts": { "$gt": Bson::from(first.get("ts").unwrap()) } };
    let set = doc! { "q": { "_id": 5 }, "u": { "$set": { "deep.field": [1, 2] }, "$unset": { "pad": 1 } } };
    c.ok("app", doc! { "update": "c", "updates": [set] });
    let many = doc! { "q": { "a": 3 }, "u": { "$inc": { "n": 1 } }, "multi": true };
    c.ok("app", doc! { "update": "c", "updates": [many] });
    c.ok("app", doc! { "delete": "c", "deletes": [{ "q": { "a": 2 }, "limit": 0 }] });
    c.insert("app", "c", 5000..5100);
    c.insert("app", "fresh", 0..3);
    let key = doc! { "key": { "late": 1 }, "name": "late" };
    c.ok("app", doc! { "createIndexes": "c", "indexes": [key] });
    c.ok("app", doc! { "dropIndexes": "c", "index": "p" });
    c.ok("app", doc! { "drop": "checked" });
    c.ok("admin", doc! { "renameCollection": "app.fresh", "to": "app.renamed" });
    c.ok("other", doc! { "dropDatabase": 1 });
    let mut log = Vec::new();
    let mut reply = c.ok("local", doc! { "find": "oplog.rs", "filter": filter, "batchSize": 100_000 });
    let Some(Bson::Document(mut cursor)) = reply.remove("cursor") else { panic!("{reply:?}") };
    let Some(Bson::Array(entries)) = cursor.remove("firstBatch") else { panic!("{cursor:?}") };
    for e in &entries {
        log.extend_from_slice(e.as_doc().unwrap().to_raw().as_bytes());
    }
    assert!(entries.len() > 100);
    std::fs::write(at.join("oplog.bson"), log).unwrap();
    let copy = Server::set(&dir.path("copy"));
    let mut r = copy.connect();
    let host = copy.host();
    let (code, said) = pando(&["load", "--host", &host, "--oplog-replay", text(&at)]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(r.hash("app"), c.hash("app"));
    assert_eq!(definitions(&mut r, "app"), definitions(&mut c, "app"));
    assert!(definitions(&mut r, "other").is_empty());
}
