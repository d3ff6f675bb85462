//! What the tests of the tool share: a folder, a server in a process, and running the tool.
#![allow(dead_code, clippy::disallowed_methods, clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_testkit::client::Client;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Dir(pub(crate) PathBuf);

impl Dir {
    pub(crate) fn new(name: &str) -> Dir {
        let path = std::env::temp_dir().join(format!("pando-tool-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Dir(path)
    }
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
}

impl Server {
    /// On `dbpath`, which is made where it is missing.
    pub(crate) fn start(dbpath: &Path, options: &[&str]) -> Server {
        std::fs::create_dir_all(dbpath).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_pando"))
            .args(["server", "--dbpath"])
            .arg(dbpath)
            .args(["--port", "0", "--nounixsocket"])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut lines = Vec::new();
        let port = loop {
            let mut line = String::new();
            assert_ne!(out.read_line(&mut line).unwrap(), 0, "ended early: {lines:?}");
            if line.contains("\"id\":23016,") {
                let at = line.find("\"port\":").unwrap() + 7;
                break line[at..].split(',').next().unwrap().parse().unwrap();
            }
            lines.push(line);
        };
        std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        Server { child, port }
    }
    /// A set of one member.
    pub(crate) fn set(dbpath: &Path) -> Server {
        let server = Server::start(dbpath, &["--replSet", "rs"]);
        let member = doc! { "_id": 0, "host": format!("127.0.0.1:{}", server.port).as_str() };
        let mut config = doc! { "_id": "rs" };
        config.push("members", vec![Bson::from(member)]);
        let mut c = server.connect();
        c.ok("admin", doc! { "replSetInitiate": config });
        let until = Instant::now() + PATIENCE;
        while c.ok("admin", doc! { "hello": 1 }).get("isWritablePrimary") != Some(&Bson::Boolean(true)) {
            assert!(Instant::now() < until, "no primary");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }
    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
    pub(crate) fn connect(&self) -> Connected {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Ok(c) = Client::connect(&self.host()) {
                return Connected(c);
            }
            assert!(Instant::now() < until, "it does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    /// Ends it as SIGTERM does.
    pub(crate) fn stop(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct Connected(Client);

impl Connected {
    pub(crate) fn ok(&mut self, db: &str, command: Document) -> Document {
        let reply = self.0.command(db, &command).unwrap();
        assert_eq!(reply.get("ok").and_then(Bson::as_f64), Some(1.0), "{command:?} gave {reply:?}");
        assert!(reply.get("writeErrors").is_none(), "{reply:?}");
        reply
    }
    pub(crate) fn insert(&mut self, db: &str, coll: &str, ids: std::ops::Range<i32>) -> Document {
        let docs: Vec<Bson> =
            ids.map(|i| doc! { "_id": i, "a": i % 7, "pad": "x".repeat(200).as_str() }.into()).collect();
        let mut insert = doc! { "insert": coll };
        insert.push("documents", docs);
        self.ok(db, insert)
    }
    pub(crate) fn count(&mut self, db: &str, coll: &str) -> i64 {
        self.ok(db, doc! { "count": coll }).get("n").and_then(Bson::as_i64).unwrap()
    }
    pub(crate) fn hash(&mut self, db: &str) -> Bson {
        self.ok(db, doc! { "dbHash": 1 }).get("md5").cloned().unwrap()
    }
}

/// Runs the tool: exit code, and what it printed on both outputs.
pub(crate) fn pando<A: AsRef<std::ffi::OsStr>>(args: &[A]) -> (i32, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_pando")).args(args).stdin(Stdio::null()).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    (out.status.code().unwrap_or(-1), text)
}
