//! `pando up` as a user sees it who asks for several processes: its lines, the processes it starts, its end.
#![allow(dead_code, clippy::disallowed_methods, clippy::unwrap_used)]

use pando_bson::{Bson, Document};
use pando_testkit::client::Client;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Dir(pub(crate) PathBuf);

impl Dir {
    pub(crate) fn new(name: &str) -> Dir {
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

/// `pando up` and the lines it prints.
pub(crate) struct Up {
    child: Child,
    lines: Receiver<String>,
    pids: Vec<u32>,
}

impl Up {
    pub(crate) fn start(dir: &Path, port: u16, options: &[&str]) -> Up {
        let mut child = pando(dir, &["up", "--port", &port.to_string()])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).all(|l| tell.send(l).is_ok()));
        Up { child, lines, pids: Vec::new() }
    }
    /// Reads on until a line contains `what`.
    pub(crate) fn until(&mut self, what: &str) -> String {
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
    pub(crate) fn interrupt(mut self) -> i32 {
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

pub(crate) fn pando(dir: &Path, args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_pando"));
    c.current_dir(dir).args(args).stdin(Stdio::null());
    c
}

pub(crate) fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

pub(crate) fn wait(child: &mut Child) -> i32 {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        assert!(Instant::now() < until, "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn refused(dir: &Path, args: &[&str]) -> (i32, String) {
    let mut child = pando(dir, args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let code = wait(&mut child);
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (code, text)
}

/// The first of `n` ports in a row that nobody listens on. Tests that run at the same time get others.
pub(crate) fn free_ports(n: u16) -> u16 {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let start = 20_000 + (std::process::id() % 10_000) as u16;
    loop {
        let first = start + GIVEN.fetch_add(n, Ordering::Relaxed);
        assert!(first < start + 3000, "no free ports");
        if (first..first + n).all(free) {
            return first;
        }
    }
}

/// What the first that carries it out among the servers of `n` ports answers: the primary, or a router.
pub(crate) fn on_any(port: u16, n: u16, db: &str, command: &Document) -> Document {
    let until = Instant::now() + PATIENCE;
    let mut said = Vec::new();
    loop {
        for p in port..port + n {
            let Ok(mut c) = Client::connect(&format!("127.0.0.1:{p}")) else { continue };
            match c.command(db, command) {
                Ok(reply) if reply.get("ok").and_then(Bson::as_f64) == Some(1.0) => return reply,
                reply => said.push(format!("{reply:?}")),
            }
        }
        assert!(Instant::now() < until, "nobody carries out {command:?}: {:?}", said.last());
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub(crate) fn pid_in(line: &str) -> u32 {
    line.rsplit("process ").next().unwrap().parse().unwrap()
}
