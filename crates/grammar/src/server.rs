//! The server under test: this same binary, started again as a process of its own, so that it may die.

use crate::data;
use crate::wire::Wire;
use pando_bson::{Bson, Document, doc};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a panic's line begins with.
const PANIC: &str = "PANIC ";

/// Runs as the server until standard input ends.
pub fn serve(folder: &str, port: u16, standalone: bool) {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string().replace('\n', " ");
        eprintln!("{PANIC}{text}");
        let frames = std::backtrace::Backtrace::force_capture().to_string();
        let ours = frames.lines().map(str::trim).filter(|l| l.contains("pando_") || l.contains("crates/"));
        for frame in ours.take(24) {
            eprintln!("    {frame}");
        }
    }));
    let folder = PathBuf::from(folder);
    pando_testserver::run(async move {
        let world = pando_testserver::World::at(folder);
        let running = world
            .start_at(port, |c| {
                c.params.set_at_startup("javascriptEnabled", "true").expect("a known parameter");
                if !standalone {
                    c.repl_set = Some("rs".to_owned());
                }
                if !standalone && port == 0 {
                    c.auto_initiate = Some(format!("127.0.0.1:{}", c.port));
                }
            })
            .await;
        println!("port {}", running.port);
        let mut line = String::new();
        while std::io::stdin().read_line(&mut line).is_ok_and(|n| n > 0) {}
        std::process::exit(0);
    });
}

/// A server process of ours.
pub struct Server {
    child: Child,
    pub port: u16,
    folder: PathBuf,
    /// Lines of its standard error since somebody asked.
    said: Arc<Mutex<Vec<String>>>,
}

fn listen(from: impl Read + Send + 'static, said: Arc<Mutex<Vec<String>>>) {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            if said.len() < 400 {
                said.push(line);
            }
        }
    });
}

impl Server {
    /// Starts on a new folder; a port of 0 is any, and a set that initiates itself.
    pub fn start(folder: &Path, port: u16) -> std::io::Result<Server> {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder)?;
        Server::open(folder, port)
    }

    /// Starts on what is there.
    pub fn open(folder: &Path, port: u16) -> std::io::Result<Server> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["serve", &folder.to_string_lossy(), &port.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        if let Some(err) = child.stderr.take() {
            listen(err, said.clone());
        }
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            let mut out = BufReader::new(out);
            out.read_line(&mut line)?;
            listen(out, said.clone());
        }
        let Some(port) = line.trim().strip_prefix("port ").and_then(|p| p.parse().ok()) else {
            let said = said.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
            return Err(std::io::Error::other(format!("the server did not start: {said}")));
        };
        Ok(Server { child, port, folder: folder.to_owned(), said })
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }
    /// What it said since the last time; the first panic's line, if any, comes first.
    pub fn said(&self) -> Vec<String> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *said)
    }
    /// Whether a panic was reported since the last [`Server::said`].
    pub fn has_panicked(&self) -> bool {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|l| l.starts_with(PANIC))
    }
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
    /// Ends it for another one on the same folder.
    pub fn make_room(&mut self) {
        self.kill();
        self.folder = PathBuf::new();
    }
    /// Bytes of memory that are resident.
    pub fn resident(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).unwrap_or_default();
        text.split(' ').nth(1).and_then(|p| p.parse::<u64>().ok()).unwrap_or(0) * 4096
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        if !self.folder.as_os_str().is_empty() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// Waits for a primary at an address, then makes the collections there.
pub fn prepare(address: &str) -> std::io::Result<Wire> {
    let mut wire = connect_to_primary(address)?;
    for (db, cmd) in data::setup() {
        let reply = wire.run(db, &cmd)?;
        let fine = reply.get("ok").and_then(Bson::as_f64) == Some(1.0) && reply.get("writeErrors").is_none();
        if !fine {
            let name = cmd.iter().next().map_or("", |(n, _)| n);
            return Err(std::io::Error::other(format!("preparing, {name} at {address}: {reply:?}")));
        }
    }
    Ok(wire)
}

pub fn connect_to_primary(address: &str) -> std::io::Result<Wire> {
    let mut last: Option<Document> = None;
    for _ in 0..600 {
        if let Ok(mut wire) = Wire::connect(address)
            && let Ok(hello) = wire.run("admin", &doc! { "hello": 1 })
        {
            if hello.get("isWritablePrimary").is_some_and(Bson::is_truthy) {
                return Ok(wire);
            }
            last = Some(hello);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(std::io::Error::other(format!("no primary at {address}: {last:?}")))
}
