//! Three real processes: they form a set, the primary is killed, another takes writes within seconds, nothing that a
//! majority acknowledged is lost, and the killed one comes back.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod common;

use common::{PATIENCE, Server};
use pando_bson::{DocBuf, Document, doc};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A tenth of a second is usual; the election timeout alone would be ten.
const FAILOVER_MAX: Duration = Duration::from_secs(5);
/// After an early election, until another may be.
const COOLDOWN: Duration = Duration::from_secs(10);

struct Member {
    server: Server,
    port: u16,
    dir: PathBuf,
}

impl Member {
    fn start(dir: &Path, port: u16) -> Member {
        let server = Server::member(dir, port, "enableTestCommands=1");
        Member { port: server.port, server, dir: dir.to_owned() }
    }
    fn kill(&mut self) {
        self.server.kill();
    }
    /// The reply, or nothing when nobody answers.
    fn run(&self, db: &str, command: Document) -> Option<DocBuf> {
        self.server.connect()?.run(db, command)
    }
    fn is(&self, what: &str) -> bool {
        let hello = self.run("admin", doc! { "hello": 1 });
        hello.is_some_and(|h| h.get(what).and_then(|v| v.as_bool()) == Some(true))
    }
    /// Acknowledged by a majority?
    fn insert(&self, id: i32) -> bool {
        let command = doc! {
            "insert": "docs", "documents": [{ "_id": id }],
            "writeConcern": { "w": "majority", "wtimeout": 30_000 }
        };
        let Some(reply) = self.run("failover", command) else { return false };
        reply.get("n").and_then(|v| v.as_i64()) == Some(1) && reply.get("writeConcernError").is_none()
    }
    fn count(&self) -> i64 {
        let command = doc! {
            "count": "docs", "query": {}, "$readPreference": { "mode": "secondaryPreferred" }
        };
        self.run("failover", command).and_then(|r| r.get("n").and_then(|v| v.as_i64())).unwrap_or(-1)
    }
}

fn until(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
    begun.elapsed()
}

fn primary(members: &[Member]) -> Option<usize> {
    members.iter().position(|m| m.is("isWritablePrimary"))
}

fn set_of_three(dir: &Path) -> Vec<Member> {
    let members: Vec<Member> = (0..3).map(|i| Member::start(&dir.join(i.to_string()), 0)).collect();
    let host = |i: usize| format!("127.0.0.1:{}", members[i].port);
    let config = doc! {
        "_id": "rs",
        "members": [{ "_id": 0, "host": host(0) }, { "_id": 1, "host": host(1) }, { "_id": 2, "host": host(2) }]
    };
    let reply = members[0].run("admin", doc! { "replSetInitiate": config }).unwrap();
    assert_eq!(reply.get("ok").and_then(|v| v.as_f64()), Some(1.0), "{reply}");
    settled(&members);
    members
}

fn settled(members: &[Member]) {
    until(PATIENCE, "a primary and two secondaries", || {
        primary(members).is_some() && members.iter().filter(|m| m.is("secondary")).count() == 2
    });
}

#[test]
fn a_killed_primary_is_replaced_in_seconds_and_nothing_acknowledged_is_lost() {
    let dir = tempdir("kill");
    let mut members = set_of_three(&dir);
    let mut acknowledged = 0;
    for round in 0..3 {
        let p = primary(&members).unwrap();
        for _ in 0..20 {
            assert!(members[p].insert(acknowledged));
            acknowledged += 1;
        }
        members[p].kill();
        let took = until(FAILOVER_MAX, "another primary", || primary(&members).is_some());
        let new = primary(&members).unwrap();
        let more = until(FAILOVER_MAX, "a majority write", || members[new].insert(acknowledged));
        acknowledged += 1;
        // The next one lost within ten seconds would be replaced after the election timeout.
        std::thread::sleep(COOLDOWN);
        println!("round {round}: writable after {took:?}, a majority write {more:?} later");
        assert_eq!(members[new].count(), i64::from(acknowledged));
        let (path, port) = (members[p].dir.clone(), members[p].port);
        members[p] = Member::start(&path, port);
        settled(&members);
    }
    until(PATIENCE, "everyone has everything", || {
        members.iter().all(|m| m.count() == i64::from(acknowledged))
    });
    drop(members);
    let _ = std::fs::remove_dir_all(&dir);
}

#[test]
fn a_step_down_hands_over_at_once() {
    let dir = tempdir("handoff");
    let members = set_of_three(&dir);
    let p = primary(&members).unwrap();
    assert!(members[p].insert(1));
    until(PATIENCE, "everyone has everything", || members.iter().all(|m| m.count() == 1));
    let reply = members[p].run("admin", doc! { "replSetStepDown": 60 }).unwrap();
    assert_eq!(reply.get("ok").and_then(|v| v.as_f64()), Some(1.0), "{reply}");
    until(FAILOVER_MAX, "the heir", || primary(&members).is_some_and(|new| new != p));
    drop(members);
    let _ = std::fs::remove_dir_all(&dir);
}

#[test]
fn a_workflow_survives_killed_primaries() {
    const TARGET: i32 = 150;
    let dir = tempdir("workflow");
    let mut members = set_of_three(&dir);
    let p = primary(&members).unwrap();
    let start = doc! { "_demoWorkflow": "start", "id": 1, "target": TARGET, "restMillis": 10 };
    let reply = members[p].run("admin", start).unwrap();
    assert_eq!(reply.get("ok").and_then(|v| v.as_f64()), Some(1.0), "{reply}");
    let counted = |members: &[Member]| {
        let count = doc! { "count": "demoTally", "query": {} };
        let at = primary(members)?;
        members[at].run("config", count)?.get("n").and_then(|v| v.as_i64())
    };
    for round in 1..=3 {
        until(PATIENCE, "some progress", || counted(&members).is_some_and(|n| n >= round * 20));
        let p = primary(&members).unwrap();
        members[p].kill();
        // The second and the third of them in a row: after the election timeout.
        until(PATIENCE, "another primary", || primary(&members).is_some());
        let (path, port) = (members[p].dir.clone(), members[p].port);
        members[p] = Member::start(&path, port);
        settled(&members);
    }
    let before = counted(&members).unwrap();
    assert!(before < i64::from(TARGET), "it outlived three primaries: {before}");
    until(PATIENCE, "the end", || {
        let states = primary(&members)
            .and_then(|p| members[p].run("config", doc! { "count": "demoWorkflows", "query": {} }));
        states.is_some_and(|r| r.get("n").and_then(|v| v.as_i64()) == Some(0))
    });
    assert_eq!(counted(&members), Some(i64::from(TARGET)));
    drop(members);
    let _ = std::fs::remove_dir_all(&dir);
}

fn tempdir(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("pando-failover-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    dir
}
