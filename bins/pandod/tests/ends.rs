//! How a process ends when something is broken: at once, with words, and never half.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod common;

use common::{Client, PATIENCE, Server};
use pando_bson::{Bson, doc};
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("pandod-ends-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const ABORTED: i32 = 6;

/// A member; what it says on standard error goes to `dir/stderr`.
fn start(dir: &Path, parameters: &[&str]) -> Server {
    std::fs::create_dir_all(dir).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pandod"));
    command.args(["--dbpath", ".", "--port", "0", "--nounixsocket", "--replSet", "rs"]);
    for p in ["enableTestCommands=1"].iter().chain(parameters) {
        command.args(["--setParameter", p]);
    }
    Server::listening(command.current_dir(dir).stderr(File::create(dir.join("stderr")).unwrap()))
}

fn initiate(members: &[&Server]) -> Client {
    let hosts: Vec<Bson> = members
        .iter()
        .enumerate()
        .map(|(i, s)| {
            let priority = if i == 0 { 1.0 } else { 0.0 };
            Bson::Document(
                doc! { "_id": i as i32, "host": format!("127.0.0.1:{}", s.port), "priority": priority },
            )
        })
        .collect();
    let mut c = members[0].connect().unwrap();
    c.ok("admin", doc! { "replSetInitiate": { "_id": "rs", "members": hosts } });
    let until = Instant::now() + PATIENCE;
    while c.ok("admin", doc! { "hello": 1 }).get("isWritablePrimary").and_then(|v| v.as_bool()) != Some(true)
    {
        assert!(Instant::now() < until, "no primary");
        std::thread::sleep(Duration::from_millis(20));
    }
    c
}

fn ended(server: &mut Server, within: Duration) -> ExitStatus {
    let until = Instant::now() + within;
    loop {
        if let Some(status) = server.child.try_wait().unwrap() {
            return status;
        }
        assert!(Instant::now() < until, "it goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn panic_in(c: &mut Client, task: &str) {
    let point = doc! { "configureFailPoint": "panicInTask", "mode": "alwaysOn", "data": { "task": task } };
    c.ok("admin", point);
}

fn insert(c: &mut Client) -> Option<pando_bson::DocBuf> {
    c.run("db", doc! { "insert": "c", "documents": [{ "a": 1 }], "writeConcern": { "w": 1, "j": true } })
}

fn assert_told(dir: &Path, task: &str) {
    let said = std::fs::read_to_string(dir.join("stderr")).unwrap();
    assert!(said.contains("a test asked for a panic"), "the message: {said}");
    assert!(said.contains(&format!("task: {task}")), "the task: {said}");
    assert!(said.contains("\"msg\":\"Fatal assertion\""), "the log's last lines: {said}");
}

#[test]
fn a_panic_in_the_log_flusher_ends_the_process() {
    let dir = Dir::new("flusher");
    let mut server = start(&dir.0, &[]);
    let mut c = initiate(&[&server]);
    assert!(insert(&mut c).is_some());
    panic_in(&mut c, "log flusher");
    // A flush that was under way may still take the first one along.
    let told = (0..2).take_while(|_| insert(&mut c).is_some()).count();
    assert!(told < 2, "nobody can say that it is on disk");
    assert_eq!(ended(&mut server, Duration::from_secs(10)).signal(), Some(ABORTED));
    assert_told(&dir.0, "log flusher");
    let server = start(&dir.0, &[]);
    let mut c = server.connect().unwrap();
    let n = c.ok("db", doc! { "count": "c" });
    assert!(n.get("n").and_then(|v| v.as_i64()) >= Some(1), "{n}");
}

#[test]
fn a_panic_in_the_applier_ends_the_secondary() {
    let dir = Dir::new("applier");
    let first = start(&dir.0.join("0"), &[]);
    let mut second = start(&dir.0.join("1"), &[]);
    let mut c = initiate(&[&first, &second]);
    let all = doc! { "insert": "c", "documents": [{ "a": 1 }], "writeConcern": { "w": 2 } };
    c.ok("db", all);
    panic_in(&mut second.connect().unwrap(), "oplog applier");
    assert!(insert(&mut c).is_some());
    assert_eq!(ended(&mut second, Duration::from_secs(10)).signal(), Some(ABORTED));
    assert_told(&dir.0.join("1"), "oplog applier");
}

#[test]
fn a_disk_that_hangs_ends_the_process() {
    let dir = Dir::new("hang");
    let mut server = start(&dir.0, &["unsyncedWritesInMemory=true", "syncStallSecs=2"]);
    let mut c = initiate(&[&server]);
    assert!(insert(&mut c).is_some());
    File::create(dir.0.join("hold-syncs")).unwrap();
    assert!(insert(&mut c).is_none(), "it waits for the disk until the end");
    assert_eq!(ended(&mut server, Duration::from_secs(10)).code(), Some(61));
}

/// Nothing is drained first.
#[test]
fn a_disk_that_fails_ends_the_process_at_once() {
    let dir = Dir::new("fail");
    let mut server = start(&dir.0, &["unsyncedWritesInMemory=true"]);
    let mut c = initiate(&[&server]);
    assert!(insert(&mut c).is_some());
    File::create(dir.0.join("fail-syncs")).unwrap();
    if let Some(reply) = insert(&mut c) {
        let failed = reply.get("ok").and_then(|v| v.as_f64()) == Some(0.0);
        let told = ["writeErrors", "writeConcernError"].iter().any(|field| reply.get(field).is_some());
        assert!(failed || told, "acknowledged: {reply}");
    }
    assert_eq!(ended(&mut server, Duration::from_secs(3)).code(), Some(14));
}
