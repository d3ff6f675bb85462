//! The process is killed under load: what it acknowledged with `j: true` is there when it comes back.
//!
//! Three kills; `tests/crash/kill9.py` does the same two hundred times, with more kinds of writes and checks.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod common;

use common::{Client, PATIENCE, Server};
use pando_bson::{DocBuf, doc};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const WRITERS: i64 = 3;

fn start(dir: &Path) -> Server {
    // Checkpoints all the time, so that kills meet them.
    Server::member(&dir.join("data"), 0, "syncdelay=0.05")
}

fn number(reply: &DocBuf, path: &str) -> i64 {
    reply.get_path(path).and_then(|v| v.as_i64()).unwrap_or(-1)
}

/// A connection to a server that takes writes.
fn writable(port: u16) -> Client {
    let mut c = Client::connect(port).unwrap();
    let until = Instant::now() + PATIENCE;
    loop {
        let hello = c.ok("admin", doc! { "hello": 1 });
        if hello.get("isWritablePrimary").and_then(|v| v.as_bool()) == Some(true) {
            return c;
        }
        if hello.get("setName").is_none() {
            let host = format!("127.0.0.1:{port}");
            let config = doc! { "_id": "rs", "members": [{ "_id": 0, "host": host }] };
            c.ok("admin", doc! { "replSetInitiate": config });
        }
        assert!(Instant::now() < until, "no primary");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Inserts documents with ascending ids and counts them in one document; returns how many were acknowledged.
fn write(port: u16, writer: i64, mut n: i64, stop: &AtomicBool) -> i64 {
    let Some(mut c) = Client::connect(port) else { return n };
    while !stop.load(Relaxed) {
        let pad = "x".repeat((n % 200) as usize);
        let insert = doc! {
            "insert": "docs",
            "documents": [{ "w": writer, "n": n, "a": n % 10, "pad": pad }],
            "writeConcern": { "j": true }
        };
        let count = doc! {
            "update": "counts",
            "updates": [{ "q": { "_id": writer }, "u": { "$set": { "n": n + 1 } }, "upsert": true }],
            "writeConcern": { "j": true }
        };
        for command in [insert, count] {
            let Some(reply) = c.run("kill", command) else { return n };
            assert!(reply.get("writeErrors").is_none() && number(&reply, "n") == 1, "{reply}");
        }
        n += 1;
    }
    n
}

/// Builds and drops an index until the server is gone.
fn index(port: u16, stop: &AtomicBool) {
    let Some(mut c) = Client::connect(port) else { return };
    while !stop.load(Relaxed) {
        let create =
            doc! { "createIndexes": "docs", "indexes": [{ "key": { "a": 1, "n": -1 }, "name": "i" }] };
        let drop = doc! { "dropIndexes": "docs", "index": "i" };
        if c.run("kill", create).is_none() || c.run("kill", drop).is_none() {
            return;
        }
    }
}

fn check(c: &mut Client, acknowledged: &[i64]) {
    let until = Instant::now() + PATIENCE;
    while number(&c.ok("admin", doc! { "serverStatus": 1 }), "activeIndexBuilds.total") != 0 {
        assert!(Instant::now() < until, "an index build does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    for (writer, n) in acknowledged.iter().enumerate() {
        let writer = writer as i64;
        let counted = doc! { "count": "counts", "query": { "_id": writer, "n": { "$in": [*n, n + 1] } } };
        assert!(number(&c.ok("kill", counted), "n") == 1 || *n == 0, "writer {writer} lost its count of {n}");
        let below = doc! { "count": "docs", "query": { "w": writer, "n": { "$lt": *n } } };
        assert_eq!(number(&c.ok("kill", below), "n"), *n, "documents of writer {writer}");
    }
    for coll in ["docs", "counts"] {
        let valid = c.ok("kill", doc! { "validate": coll, "full": true });
        assert_eq!(valid.get("valid").and_then(|v| v.as_bool()), Some(true), "{valid}");
    }
}

struct Dir(PathBuf);

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn nothing_acknowledged_with_j_is_lost_when_the_process_is_killed() {
    let dir = Dir(std::env::temp_dir().join(format!("pandod-kill-{}", std::process::id())));
    std::fs::create_dir_all(dir.0.join("data")).unwrap();
    let mut acknowledged = vec![0; WRITERS as usize];
    let mut server = start(&dir.0);
    writable(server.port);
    for load_ms in [150, 700, 400] {
        let (port, stop) = (server.port, AtomicBool::new(false));
        // A number that was on its way may be taken or not: go on above it.
        let next: Vec<i64> = acknowledged.clone();
        std::thread::scope(|s| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|w| {
                    let (stop, n) = (&stop, next[w as usize]);
                    s.spawn(move || write(port, w, n, stop))
                })
                .collect();
            s.spawn(|| index(port, &stop));
            std::thread::sleep(Duration::from_millis(load_ms));
            server.kill();
            stop.store(true, Relaxed);
            for (n, w) in acknowledged.iter_mut().zip(writers) {
                *n = w.join().unwrap();
            }
        });
        server = start(&dir.0);
        let mut c = writable(server.port);
        for (w, n) in acknowledged.iter_mut().enumerate() {
            // What was in flight at the kill: there or not.
            let at = doc! { "count": "docs", "query": { "w": w as i64, "n": *n } };
            let in_flight = number(&c.ok("kill", at), "n");
            assert!((0..=1).contains(&in_flight));
            let bump = doc! {
                "update": "counts",
                "updates": [{ "q": { "_id": w as i64 }, "u": { "$max": { "n": *n + in_flight } } }]
            };
            if in_flight == 1 {
                c.ok("kill", bump);
            }
            *n += in_flight;
        }
        check(&mut c, &acknowledged);
    }
    assert!(acknowledged.iter().all(|n| *n > 5), "{acknowledged:?}");
    server.kill();
}
