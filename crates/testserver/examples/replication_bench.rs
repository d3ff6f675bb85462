//! How fast a secondary is beside its primary: two processes on this machine, clients on the first.
//!
//! `cargo run --release -p pando-testserver --example replication_bench [seconds] [clients]`
//!
//! For each workload: operations per second of the primary, whether the secondary kept up (time from the last
//! reply to its being applied), and CPU per operation of both. Then the secondary is stopped while the primary
//! takes more writes, and the rate at which it catches up is measured.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, World, pause, run, spawn};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// On this port; 0 picks one.
    fn start(folder: &str, port: u16) -> Server {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env("BENCH_ROLE", "server").env("BENCH_FOLDER", folder).stdout(Stdio::piped());
        command.env("BENCH_PORT", port.to_string());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Server { child, port: line.trim().parse().unwrap() }
    }
    /// Seconds of CPU that the process has used.
    fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<u64> =
            stat.rsplit_once(')').unwrap().1.split_whitespace().map(|f| f.parse().unwrap_or(0)).collect();
        (fields[11] + fields[12]) as f64 / 100.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The child: one server until it is killed.
fn serve() {
    let folder = std::env::var("BENCH_FOLDER").unwrap();
    let port = std::env::var("BENCH_PORT").unwrap().parse().unwrap();
    run(async move {
        let world = World::at(folder.into());
        let server = world.start_at(port, |c| c.repl_set = Some("rs".to_owned())).await;
        println!("{}", server.port);
        loop {
            pause(1000).await;
        }
    });
}

async fn applied(c: &mut Client) -> Option<pando_base::Timestamp> {
    let s = c.run(doc! { "replSetGetStatus": 1, "$db": "admin" }).await;
    let Some(Bson::Document(optimes)) = s.get("optimes") else { return None };
    let Some(Bson::Document(at)) = optimes.get("appliedOpTime") else { return None };
    match (at.get("ts"), s.get("myState").and_then(Bson::as_i64)) {
        (Some(Bson::Timestamp(ts)), Some(1 | 2)) => Some(*ts),
        _ => None,
    }
}

/// A set in which the second member has no vote: the first needs nobody to be primary.
async fn initiate(primary: u16, secondary: u16) {
    let mut c = Client::connect(primary).await;
    let host = |port: u16| format!("127.0.0.1:{port}");
    let members: Vec<Bson> = vec![
        doc! { "_id": 0, "host": host(primary) }.into(),
        doc! { "_id": 1, "host": host(secondary), "priority": 0, "votes": 0 }.into(),
    ];
    let mut config = doc! { "_id": "rs" };
    config.push("members", members);
    let mut body = Document::new();
    body.push("replSetInitiate", config);
    body.push("$db", "admin");
    c.ok(body).await;
    while c.run(doc! { "hello": 1, "$db": "admin" }).await.get("isWritablePrimary")
        != Some(&Bson::Boolean(true))
    {
        pause(20).await;
    }
}

/// Waits until the secondary has what the primary has; returns how long that took.
async fn settle(primary: u16, secondary: u16) -> Duration {
    let started = Instant::now();
    let goal = applied(&mut Client::connect(primary).await).await.unwrap();
    let mut c = Client::connect(secondary).await;
    while applied(&mut c).await.is_none_or(|at| at < goal) {
        pause(2).await;
    }
    started.elapsed()
}

#[derive(Clone, Copy)]
enum Work {
    InsertOne,
    InsertMany,
    UpdateOne,
}

fn command(work: Work, client: u64, n: u64) -> (Document, u64) {
    let id = |i: u64| (client << 40 | i) as i64;
    let row = |i: u64| {
        doc! { "_id": id(i), "name": format!("user {i}"), "n": i as i64, "city": "Paris", "s": "x".repeat(100) }
    };
    match work {
        Work::InsertOne => (doc! { "insert": "a", "documents": [row(n)], "$db": "d" }, 1),
        Work::InsertMany => {
            let docs: Vec<Bson> = (0..1000).map(|i| row(n * 1000 + i).into()).collect();
            let mut d = doc! { "insert": "m" };
            d.push("documents", docs);
            d.push("$db", "d");
            (d, 1000)
        }
        Work::UpdateOne => {
            let q = doc! { "_id": id(n % 1000) };
            (doc! { "update": "a", "updates": [{ "q": q, "u": { "$inc": { "n": 1 } } }], "$db": "d" }, 1)
        }
    }
}

/// Runs clients for so long; returns operations done.
async fn load(port: u16, work: Work, clients: u64, seconds: u64, base: u64) -> u64 {
    let stop = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let (stop, done) = (stop.clone(), done.clone());
            spawn(async move {
                let mut c = Client::connect(port).await;
                let mut n = base;
                while !stop.load(Relaxed) {
                    let (body, ops) = command(work, client + 1, n);
                    c.ok(body).await;
                    n += 1;
                    done.fetch_add(ops, Relaxed);
                }
            })
        })
        .collect();
    pause(seconds * 1000).await;
    stop.store(true, Relaxed);
    for t in tasks {
        t.await.unwrap();
    }
    done.load(Relaxed)
}

fn main() {
    if std::env::var("BENCH_ROLE").is_ok() {
        return serve();
    }
    let number = |n: usize, default: u64| std::env::args().nth(n).map_or(default, |a| a.parse().unwrap());
    let (seconds, clients) = (number(1, 8), number(2, 8));
    run(async move {
        let folder = std::env::temp_dir().join(format!("pando-repl-bench-{}", std::process::id()));
        let at = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let primary = Server::start(&at("primary"), 0);
        let mut secondary = Server::start(&at("secondary"), 0);
        initiate(primary.port, secondary.port).await;
        settle(primary.port, secondary.port).await;
        println!("| workload | primary ops/s | secondary behind at the end | primary CPU | secondary CPU |");
        println!("|---|---|---|---|---|");
        let all = [
            ("insert_one", Work::InsertOne),
            ("update_one", Work::UpdateOne),
            ("insert_many ×1000", Work::InsertMany),
        ];
        for (name, work) in all {
            let (p, s, started) = (primary.cpu(), secondary.cpu(), Instant::now());
            let ops = load(primary.port, work, clients, seconds, 0).await;
            let rate = ops as f64 / started.elapsed().as_secs_f64();
            let behind = settle(primary.port, secondary.port).await;
            let per = |cpu: f64| cpu * 1e6 / ops as f64;
            let (p, s) = (per(primary.cpu() - p), per(secondary.cpu() - s));
            println!("| {name} | {rate:.0} | {:.0} ms | {p:.1} µs | {s:.1} µs |", behind.as_secs_f64() * 1e3);
        }
        println!();
        println!("| catching up with | ops | secondary ops/s | secondary CPU |");
        println!("|---|---|---|---|");
        for (name, work) in all {
            let port = secondary.port;
            drop(secondary);
            let ops = load(primary.port, work, clients, seconds, 1 << 30).await;
            secondary = Server::start(&at("secondary"), port);
            let (cpu, started) = (secondary.cpu(), Instant::now());
            settle(primary.port, secondary.port).await;
            let (took, cpu) = (started.elapsed().as_secs_f64(), secondary.cpu() - cpu);
            println!("| {name} | {ops} | {:.0} | {:.1} µs |", ops as f64 / took, cpu * 1e6 / ops as f64);
        }
        drop((primary, secondary));
        let _ = std::fs::remove_dir_all(folder);
    });
}
