//! Every recorded answer of a real server (`tests/differential/golden`), asked of this one: answers, contents and
//! oplog entries are the same, or `explained.json` says why not.
//!
//! The topics are spread over a few servers. `GOLDENS_STEP=n` asks only every nth case.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use pando_testkit::client::Client;
use pando_testkit::goldens::{Explained, Report, Setups, Way, run_topic, topics};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use pando_bson::{Bson, doc};

const SERVERS: usize = 3;

/// A one-member replica set with a folder of its own; both go away at the end.
struct Server {
    child: Child,
    folder: PathBuf,
    host_port: String,
}

impl Server {
    fn start(n: usize) -> Server {
        let folder = std::env::temp_dir().join(format!("pandod-goldens-{}-{n}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_pandod"))
            .args(["--dbpath", ".", "--port", "0", "--nounixsocket", "--replSet", "goldens"])
            .args(["--setParameter", "enableTestCommands=1"])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stdout.take().unwrap());
        let port = port_of(&mut log);
        // A server must never block on its log.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        let server = Server { child, folder, host_port: format!("127.0.0.1:{port}") };
        server.initiate();
        server
    }

    fn initiate(&self) {
        let mut c = Client::connect(&self.host_port).unwrap();
        let member = doc! { "_id": 0, "host": self.host_port.clone() };
        let set = doc! { "_id": "goldens", "members": [member] };
        c.command("admin", &doc! { "replSetInitiate": set }).unwrap();
        for _ in 0..500 {
            let hello = c.command("admin", &doc! { "hello": 1 }).unwrap();
            if hello.get("isWritablePrimary") == Some(&Bson::Boolean(true)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("{} did not become a primary", self.host_port);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// From the line "Waiting for connections".
fn port_of(log: &mut impl BufRead) -> u16 {
    loop {
        let mut line = String::new();
        assert_ne!(log.read_line(&mut line).unwrap(), 0, "the server ended early");
        if line.contains("\"id\":23016,") {
            let at = line.find("\"port\":").unwrap() + 7;
            return line[at..].split(',').next().unwrap().parse().unwrap();
        }
    }
}

fn replay_all(step: usize, explained: &Explained) -> Vec<Report> {
    let setups = Setups::read();
    let left = Mutex::new(topics());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|s| {
        for n in 0..SERVERS {
            let (setups, left, done) = (&setups, &left, &done);
            s.spawn(move || {
                let server = Server::start(n);
                loop {
                    let Some(topic) = left.lock().unwrap().pop() else { break };
                    let report = run_topic(&server.host_port, &topic, step, setups, explained, Way::Set);
                    done.lock().unwrap().push(report);
                }
            });
        }
    });
    done.into_inner().unwrap()
}

#[test]
fn answers_are_those_of_a_real_server() {
    let step = std::env::var("GOLDENS_STEP").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let explained = Explained::read(&["explained.json"]);
    let reports = replay_all(step, &explained);
    let cases: usize = reports.iter().map(|r| r.cases).sum();
    let differ: Vec<String> = reports
        .iter()
        .flat_map(|r| &r.unexplained)
        .map(|d| format!("{} {:?}\n  want {:.600}\n  got  {:.600}", d.id, d.kind, d.want, d.got))
        .collect();
    assert!(differ.is_empty(), "{} of {cases} cases differ:\n{}", differ.len(), differ.join("\n"));
    if step == 1 {
        assert!(cases > 13_000, "only {cases} cases were found");
        let met: BTreeSet<String> = reports.into_iter().flat_map(|r| r.explained).map(|d| d.id).collect();
        let stale: Vec<String> = explained.cases().into_iter().filter(|c| !met.contains(c)).collect();
        assert!(
            stale.is_empty(),
            "these answers are the real server's now, explained.json need not say more: {stale:?}"
        );
    }
}
