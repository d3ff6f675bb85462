//! `redactClientLogData`: with it, no value that a client has sent is in the log.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod common;

use common::{Client, Server};
use pando_bson::{Document, doc};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// In every value.
const MARKER: &str = "m4rker";

struct Dir(PathBuf);

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start(name: &str, args: &[&str]) -> (Dir, Server) {
    let dir = std::env::temp_dir().join(format!("pandod-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(dir.join("data")).unwrap();
    let mut c = Command::new(env!("CARGO_BIN_EXE_pandod"));
    c.current_dir(&dir).args(["--dbpath", "data", "--port", "0", "--nounixsocket"]).stdin(Stdio::null());
    c.args(["--slowms", "0", "--setParameter", "logLevel=5", "--setParameter", "enableTestCommands=1"])
        .args(args);
    (Dir(dir), Server::listening(&mut c))
}

/// Commands that write lines, with values of a client's in every place that may be told.
fn speak(c: &mut Client) {
    let validator = doc! { "a": { "$ne": format!("{MARKER}-bad") } };
    let group = doc! { "$group": { "_id": format!("${MARKER}") } };
    let index = doc! { "key": { "a": 1 }, "name": "a_1", "unique": true };
    let commands: Vec<Document> = vec![
        doc! { "create": "c", "validator": validator, "validationAction": "warn" },
        doc! { "createIndexes": "c", "indexes": [index] },
        doc! { "insert": "c", "documents": [{ "a": MARKER }, { "a": { "b": [MARKER, 7_654_321] } }] },
        // A key that is there, and a document that the validator warns of.
        doc! { "insert": "c", "documents": [{ "a": MARKER }] },
        doc! { "insert": "c", "documents": [{ "a": format!("{MARKER}-bad") }] },
        doc! { "findAndModify": "c", "query": { "a": { "b": [MARKER, 7_654_321] } }, "update": { "$set": { "a": MARKER } } },
        doc! { "update": "c", "updates": [{ "q": { "a": MARKER }, "u": { "$inc": { "a": 1 } } }] },
        doc! { "find": "c", "filter": { "a": MARKER, "n": 7_654_321 }, "comment": MARKER },
        doc! { "find": "c", "filter": { "a": { "$nope": MARKER } } },
        doc! { "find": "c", "filter": { "a": { "$regex": format!("({MARKER}") } } },
        doc! { "aggregate": "c", "pipeline": [{ "$match": { "a": MARKER } }, group], "cursor": { "batchSize": 0 } },
        doc! { "aggregate": "c", "pipeline": [{ "$project": { "x": { "$toInt": MARKER } } }], "cursor": {} },
        doc! { "distinct": "c", "key": "a", "query": { "a": MARKER } },
        doc! { "delete": "c", "deletes": [{ "q": { "a": MARKER }, "limit": 1 }] },
        doc! { "createIndexes": "c", "indexes": [{ "key": { "b": 1 }, "name": "b", "partialFilterExpression": { "a": MARKER } }] },
        doc! { "logMessage": MARKER, "extra": { "a": MARKER } },
    ];
    for command in commands {
        let db = if command.get("logMessage").is_some() { "admin" } else { "test" };
        let _ = c.run(db, command);
    }
    // A cursor's first command is told with each of its batches.
    c.ok("test", doc! { "insert": "d", "documents": [{ "a": MARKER }, { "a": MARKER }, { "a": MARKER }] });
    let found = c.ok("test", doc! { "find": "d", "filter": { "a": MARKER }, "batchSize": 1 });
    let id = found.get_path("cursor.id").and_then(|v| v.as_i64()).unwrap();
    c.ok("test", doc! { "getMore": id, "collection": "d", "batchSize": 1 });
    let _ = c.run(
        "test",
        doc! { "createIndexes": "d", "indexes": [{ "key": { "a": 1 }, "name": "u", "unique": true }] },
    );
}

fn log(c: &mut Client) -> Vec<String> {
    let told = c.ok("admin", doc! { "getLog": "global" });
    let lines = told.get("log").and_then(|v| v.as_array()).unwrap();
    // What asks for the log stands in it as well.
    lines.iter().filter_map(|e| e.value().as_str().map(str::to_owned)).collect()
}

#[test]
fn no_value_of_a_clients_is_in_the_log_where_that_is_wanted() {
    let (_dir, server) = start("redaction", &["--redactClientLogData"]);
    let mut c = server.connect().unwrap();
    speak(&mut c);
    let lines = log(&mut c);
    for line in &lines {
        assert!(!line.contains(MARKER) && !line.contains("7654321"), "{line}");
    }
    let one =
        |part: &str| lines.iter().find(|l| l.contains(part)).unwrap_or_else(|| panic!("no line with {part}"));
    // Names of fields, collections and errors stay.
    let find = one("\"command\":{\"find\":\"###\",\"filter\":{\"a\":\"###\",\"n\":\"###\"}");
    assert!(find.contains("\"ns\":\"test.c\""), "{find}");
    one("\"originatingCommand\":{\"find\":\"###\"");
    one("\"errMsg\":\"###\",\"errName\":\"BadValue\"");
    one("\"id\":20294,");
    one("\"extra\":{\"a\":\"###\"}");
}

#[test]
fn it_is_turned_on_and_off_while_the_server_runs() {
    let (_dir, server) = start("redaction-later", &[]);
    let mut c = server.connect().unwrap();
    speak(&mut c);
    assert!(log(&mut c).iter().filter(|l| l.contains(MARKER)).count() > 10);
    c.ok("admin", doc! { "setParameter": 1, "redactClientLogData": true });
    c.ok("admin", doc! { "clearLog": "global" });
    speak(&mut c);
    assert_eq!(log(&mut c).iter().find(|l| l.contains(MARKER)), None);
    c.ok("admin", doc! { "setParameter": 1, "redactClientLogData": false });
    speak(&mut c);
    assert!(log(&mut c).iter().any(|l| l.contains(MARKER)));
}
