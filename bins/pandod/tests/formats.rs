//! Data folders written by earlier versions open, and hold what they held.
//!
//! `tests/data/format-1` was written by commit cf99c76: a standalone server that was shut down, and a set of one that was
//! killed (its log tells more than its checkpoint), each with every kind of collection and index. The files are a list of
//! (length of the path, length of the file, path, file), compressed. They are never made anew: a change of a format is
//! brought to what these folders hold, or the folders are refused with words that say what to do.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod common;

use common::{Client, PATIENCE, Server};
use pando_bson::{Binary, Bson, DocBuf, doc};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What `dbHash` said of the collections.
const STANDALONE: &[(&str, &str)] = &[
    ("capped", "3abd225f47ee0b9d786600bc266410e2"),
    ("clustered", "4ac80dc0d21dddf0fd303299df9905dd"),
    ("ids", "85ec73184d9b9ea62996bcfae0d3be1c"),
    ("many", "2d20490bed904a2519e4f1ca49551cfd"),
    ("places", "e6e879fea76ebf670e22c2f7defc73b5"),
    ("renamed", "ebdb7e491cac8cc0d0bdcc50e688678a"),
    ("ruled", "4c2771440662f245bdc48507357d8ece"),
    ("system.buckets.series", "02f4c54edb9f5921646662257863a129"),
    ("system.views", "8581dfb5654adc74745b87adee2ca9e2"),
];
const MEMBER: &[(&str, &str)] = &[
    ("capped", "3abd225f47ee0b9d786600bc266410e2"),
    ("clustered", "f21715ba5b44403359cfbe14186f3f81"),
    ("ids", "85ec73184d9b9ea62996bcfae0d3be1c"),
    ("many", "2d20490bed904a2519e4f1ca49551cfd"),
    ("places", "e6e879fea76ebf670e22c2f7defc73b5"),
    ("renamed", "9f62cc33b7976af4ef9d1402e6cdfd0f"),
    ("retried", "449889d50b9c9da417133e134bc4184f"),
    ("ruled", "4c2771440662f245bdc48507357d8ece"),
    ("system.buckets.series", "d425d3667218b75652f128ea2d7900ae"),
    ("system.views", "8581dfb5654adc74745b87adee2ca9e2"),
];
const STANDALONE_COUNTS: &[(&str, i64)] = &[
    ("many", 52),
    ("ids", 27),
    ("places", 31),
    ("capped", 10),
    ("series", 60),
    ("view", 8),
    ("clustered", 9),
    ("ruled", 2),
    ("renamed", 1),
];
const MEMBER_COUNTS: &[(&str, i64)] = &[
    ("many", 52),
    ("ids", 27),
    ("places", 31),
    ("capped", 10),
    ("series", 60),
    ("view", 8),
    ("clustered", 8),
    ("ruled", 2),
    ("renamed", 4),
];
/// Of the retryable writes in the set: the second, `{$inc: {n: 1}}`, had number 2.
const SESSION: u128 = 0x04585f5fa2fc417fbde32a544b51c02f;

struct Dir(PathBuf);

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn unpacked(name: &str) -> Dir {
    let packed =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/format-1").join(format!("{name}.zst"));
    let all = zstd::stream::decode_all(std::fs::File::open(packed).unwrap()).unwrap();
    let dir = std::env::temp_dir().join(format!("pandod-formats-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let mut rest = &all[..];
    while !rest.is_empty() {
        let length = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap()) as usize;
        let (path, file) = (length(0), length(4));
        let to = dir.join(std::str::from_utf8(&rest[8..8 + path]).unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::write(to, &rest[8 + path..8 + path + file]).unwrap();
        rest = &rest[8 + path + file..];
    }
    Dir(dir)
}

fn start(dir: &Path, more: &[&str]) -> Server {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pandod"));
    command.args(["--dbpath", ".", "--port", "0", "--nounixsocket"]).args(more);
    Server::listening(command.current_dir(dir))
}

fn number(reply: &DocBuf, path: &str) -> i64 {
    reply.get_path(path).and_then(|v| v.as_i64()).unwrap_or(-1)
}

fn count(c: &mut Client, coll: &str) -> i64 {
    number(&c.ok("kept", doc! { "count": coll }), "n")
}

fn check(c: &mut Client, hashes: &[(&str, &str)], counts: &[(&str, i64)]) {
    let told = c.ok("kept", doc! { "dbHash": 1 });
    for (coll, hash) in hashes {
        let now = told.get("collections").and_then(|v| v.as_doc()?.get(coll)?.as_str());
        assert_eq!(now, Some(*hash), "{coll}");
    }
    for (coll, n) in counts {
        assert_eq!(count(c, coll), *n, "{coll}");
    }
    for (coll, _) in hashes.iter().filter(|(coll, _)| *coll != "system.views") {
        let valid = c.ok("kept", doc! { "validate": *coll, "full": true });
        assert_eq!(valid.get("valid").and_then(|v| v.as_bool()), Some(true), "{valid}");
    }
    let by_index = [
        (doc! { "v": 1.5 }, "v"),
        (doc! { "n": 2, "v": { "$gte": 0 } }, "n_v"),
        (doc! { "arr.k": 99 }, "multikey"),
        (doc! { "n": 1, "_id": 1 }, "unique"),
        (doc! { "s": "word3 und noch eins" }, "hashed"),
        (doc! { "w.deep.b": "4" }, "wildcard"),
        (doc! { "n": 3, "v": { "$type": "number" } }, "partial"),
    ];
    for (filter, index) in by_index {
        let counted = |hint: Bson, c: &mut Client| {
            let n = doc! { "count": "many", "query": filter.clone(), "hint": hint };
            number(&c.ok("kept", n), "n")
        };
        let scanned = counted(Bson::from(doc! { "$natural": 1 }), c);
        let found = counted(Bson::from(index), c);
        assert!(found == scanned && found > 0, "{index}: {found} of {scanned}");
    }
    let text = c.ok("kept", doc! { "count": "many", "query": { "$text": { "$search": "word1" } } });
    assert!(number(&text, "n") > 0, "{text}");
    let sphere = doc! { "$geoWithin": { "$centerSphere": [[-20, -9], 0.2] } };
    let near = c.ok("kept", doc! { "count": "places", "query": { "at": sphere }, "hint": "sphere" });
    assert!(number(&near, "n") > 0, "{near}");
}

/// It takes writes, and holds all when it comes back.
fn write(c: &mut Client) {
    // On disk: the process is killed right afterwards.
    let docs = doc! {
        "insert": "many",
        "documents": [{ "_id": "new", "v": 1.7, "n": 77, "s": "neu" }],
        "writeConcern": doc! { "w": 1, "j": true }
    };
    c.ok("kept", docs);
    let valid = c.ok("kept", doc! { "validate": "many", "full": true });
    assert_eq!(valid.get("valid").and_then(|v| v.as_bool()), Some(true), "{valid}");
}

#[test]
fn a_standalone_of_format_1_opens_and_holds_all() {
    let dir = unpacked("standalone");
    let mut server = start(&dir.0, &[]);
    let mut c = server.connect().unwrap();
    check(&mut c, STANDALONE, STANDALONE_COUNTS);
    write(&mut c);
    server.kill();
    let server = start(&dir.0, &[]);
    assert_eq!(count(&mut server.connect().unwrap(), "many"), STANDALONE_COUNTS[0].1 + 1);
}

#[test]
fn a_killed_member_of_format_1_opens_and_its_log_goes_on() {
    let dir = unpacked("member");
    let server = start(&dir.0, &["--replSet", "kept"]);
    let mut c = server.connect().unwrap();
    let until = Instant::now() + PATIENCE;
    while c.ok("admin", doc! { "hello": 1 }).get("isWritablePrimary").and_then(|v| v.as_bool()) != Some(true)
    {
        assert!(Instant::now() < until, "no primary");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    check(&mut c, MEMBER, MEMBER_COUNTS);
    let first = doc! { "count": "oplog.rs", "query": { "o.msg": "initiating set" } };
    assert_eq!(number(&c.ok("local", first), "n"), 1);
    let last = doc! { "count": "oplog.rs", "query": { "ns": "kept.renamed", "o._id": 4 } };
    assert_eq!(number(&c.ok("local", last), "n"), 1);
    let id = Binary { subtype: 4, bytes: SESSION.to_be_bytes().to_vec() };
    let again = doc! {
        "update": "retried",
        "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } }],
        "lsid": { "id": Bson::Binary(id) },
        "txnNumber": 2i64
    };
    let reply = c.ok("kept", again);
    assert!(reply.get("retriedStmtIds").is_some(), "{reply}");
    let n = doc! { "count": "retried", "query": { "n": 1 } };
    assert_eq!(number(&c.ok("kept", n), "n"), 1, "it was not carried out again");
    write(&mut c);
}
