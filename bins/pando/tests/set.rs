//! `pando up --members 3` as a user sees it: real processes, one of them killed, data that stay.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_testkit::client::Client;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let path = std::env::temp_dir().join(format!("pando-up-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Dir(path)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `pando up --members 3` and the lines it prints.
struct Up {
    child: Child,
    lines: Receiver<String>,
    pids: Vec<u32>,
}

impl Up {
    fn start(dir: &Path, port: u16) -> Up {
        let mut child = pando(dir, &["up", "--members", "3", "--port", &port.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).all(|l| tell.send(l).is_ok()));
        Up { child, lines, pids: Vec::new() }
    }
    /// Reads on until a line contains `what`.
    fn until(&mut self, what: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line =
                self.lines.recv_timeout(left).unwrap_or_else(|e| panic!("{e}: no '{what}' in {seen:#?}"));
            if let Some(pid) = line.rsplit("process ").next().and_then(|p| p.parse().ok()) {
                self.pids.push(pid);
            }
            if line.contains(what) {
                return line;
            }
            seen.push(line);
        }
    }
    fn interrupt(mut self) -> i32 {
        signal("-INT", self.child.id());
        let code = wait(&mut self.child);
        self.pids.clear();
        code
    }
}

impl Drop for Up {
    /// After a failed test.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.pids.iter().for_each(|pid| drop(Command::new("kill").args(["-9", &pid.to_string()]).output()));
    }
}

fn pando(dir: &Path, args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_pando"));
    c.current_dir(dir).args(args).stdin(Stdio::null());
    c
}

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

fn wait(child: &mut Child) -> i32 {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        assert!(Instant::now() < until, "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn refused(dir: &Path, args: &[&str]) -> (i32, String) {
    let mut child = pando(dir, args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let code = wait(&mut child);
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (code, text)
}

/// Three ports in a row that nobody listens on.
fn free_ports() -> u16 {
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let start = 20_000 + (std::process::id() % 10_000) as u16;
    (start..start + 3000).step_by(3).find(|p| (0..3).all(|i| free(p + i))).unwrap()
}

/// What the primary among three ports answers.
fn on_primary(port: u16, command: &Document) -> Document {
    let until = Instant::now() + PATIENCE;
    loop {
        for p in port..port + 3 {
            let Ok(mut c) = Client::connect(&format!("127.0.0.1:{p}")) else { continue };
            if let Ok(reply) = c.command("t", command)
                && reply.get("ok").and_then(Bson::as_f64) == Some(1.0)
            {
                return reply;
            }
        }
        assert!(Instant::now() < until, "nobody carries out {command:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn pid_in(line: &str) -> u32 {
    line.rsplit("process ").next().unwrap().parse().unwrap()
}

#[test]
fn a_set_survives_the_loss_of_a_member_and_a_restart() {
    let dir = Dir::new("set");
    let port = free_ports();
    let mut up = Up::start(&dir.0, port);
    up.until("replicaSet=rs0");
    let primary = pid_in(&up.until("PRIMARY"));
    let insert = |id: i32| {
        doc! { "insert": "c", "documents": [{ "_id": id }], "writeConcern": { "w": "majority" } }
    };
    assert!(on_primary(port, &insert(1)).get("writeConcernError").is_none());

    let (code, text) = refused(&dir.0, &["up", "--members", "3", "--port", &port.to_string()]);
    assert!(code == 100 && text.contains("a server already runs on"), "{text}");

    signal("-KILL", primary);
    let ended = up.until("ended (signal 9)");
    up.until(&format!("{} is started again", ended.split(' ').next().unwrap()));
    on_primary(port, &insert(2));
    up.until(&format!("{} SECONDARY", ended.split(' ').next().unwrap()));
    assert_eq!(up.interrupt(), 0);

    let up = Up::start(&dir.0, port);
    let n = on_primary(port, &doc! { "count": "c" });
    assert_eq!(n.get("n").and_then(Bson::as_i64), Some(2), "{n:?}");
    assert_eq!(up.interrupt(), 0);
    for i in 1..=3 {
        let lock = dir.0.join(format!("pando-data/rs0/member{i}/mongod.lock"));
        assert_eq!(std::fs::metadata(lock).unwrap().len(), 0, "every member stopped cleanly");
    }

    let (code, text) = refused(&dir.0, &["up", "--members", "5", "--port", &port.to_string()]);
    assert!(code == 100 && text.contains("holds a set of 3 members: say --members 3"), "{text}");
}

#[test]
fn what_cannot_work_is_refused_with_words_that_help() {
    let dir = Dir::new("refused");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, text) = refused(&dir.0, &["up", "--members", "3", "--port", &port]);
    assert!(code == 100 && text.contains("Address already in use") && text.contains("--port"), "{text}");
    for (args, words) in [
        (&["up", "--members", "4"][..], "an odd number from 1 to 7"),
        (&["up", "--members", "9"], "an odd number from 1 to 7"),
        (&["up", "--members=x"], "an odd number from 1 to 7"),
        (&["up", "--members", "3", "--fork"], "--fork does not go together with --members"),
        (&["up", "--members", "3", "--nosuch"], "unrecognised option '--nosuch'"),
    ] {
        let (code, text) = refused(&dir.0, args);
        assert!(code == 2 && text.contains(words), "{args:?}: {text}");
    }
}
