//! What the tests with real processes share: a server that listens, and asking it.
// Each test takes what it needs.
#![allow(dead_code)]

use pando_bson::{DocBuf, Document};
use pando_testkit::client;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server in the foreground; killed at the end.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) port: u16,
    /// What it logged until it listened.
    pub(crate) lines: Vec<String>,
}

impl Server {
    /// Starts `command` and reads its log until it tells the port.
    pub(crate) fn listening(command: &mut Command) -> Server {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut lines = Vec::new();
        let port = loop {
            let mut line = String::new();
            assert_ne!(out.read_line(&mut line).unwrap(), 0, "ended early: {lines:?}");
            lines.push(line);
            let line = lines.last().unwrap();
            if line.contains("\"id\":23016,") {
                let at = line.find("\"port\":").unwrap() + 7;
                break line[at..].split(',').next().unwrap().parse().unwrap();
            }
        };
        // Keep the pipe drained: a server must never block on its log.
        std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        Server { child, port, lines }
    }
    /// A member of the set `rs` with its data in `dir`.
    pub(crate) fn member(dir: &Path, port: u16, parameter: &str) -> Server {
        std::fs::create_dir_all(dir).unwrap();
        let port = port.to_string();
        Server::listening(
            Command::new(env!("CARGO_BIN_EXE_pandod"))
                .args(["--dbpath", ".", "--port", &port, "--nounixsocket", "--replSet", "rs"])
                .args(["--setParameter", parameter])
                .current_dir(dir),
        )
    }
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
    pub(crate) fn connect(&self) -> Option<Client> {
        Client::connect(self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct Client(client::Client);

impl Client {
    pub(crate) fn connect(port: u16) -> Option<Client> {
        client::Client::connect(&format!("127.0.0.1:{port}")).ok().map(Client)
    }
    /// The reply, or nothing when the server is gone.
    pub(crate) fn run(&mut self, db: &str, command: Document) -> Option<DocBuf> {
        self.0.run(db, command).ok()
    }
    pub(crate) fn ok(&mut self, db: &str, command: Document) -> DocBuf {
        let reply = self.run(db, command).unwrap();
        assert_eq!(reply.get("ok").and_then(|v| v.as_f64()), Some(1.0), "{reply}");
        reply
    }
}
