//! Administration under fire: a server before it is initiated, then the members of a set.
//!
//! Whatever is sent, nobody may die or panic, and the set must have a primary that takes a majority write again within
//! half a minute of an epoch's end (parameters and fail points are set back first).

use crate::draw::{Class, Gen};
use crate::judge;
use crate::program::{Call, Program};
use crate::report::json;
use crate::run::Trouble;
use crate::server::Server;
use crate::wire::Wire;
use pando_bson::{Bson, Document, doc};
use pando_command::fail_point;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Commands of an epoch: part of them before the set is initiated.
const EPOCH: u64 = 400;
const BEFORE: u64 = 60;

pub struct Admin {
    pub folder: PathBuf,
    pub first_port: u16,
    pub done: u64,
    pub troubles: BTreeMap<String, Trouble>,
    recent: Vec<String>,
}

struct Members {
    servers: Vec<Server>,
    wires: Vec<Option<Wire>>,
}

impl Admin {
    pub fn new(folder: PathBuf, first_port: u16) -> Admin {
        Admin { folder, first_port, done: 0, troubles: BTreeMap::new(), recent: Vec::new() }
    }

    fn trouble(&mut self, key: String, example: String) {
        let known = self.troubles.contains_key(&key);
        let entry = self.troubles.entry(key.clone()).or_insert(Trouble { count: 0, example });
        entry.count += 1;
        if !known {
            eprintln!("!! {key}\n   {}", entry.example);
        }
    }

    pub fn run(&mut self, seed: u64, programs: u64, until: Option<Instant>) -> std::io::Result<()> {
        let mut next = seed;
        let end = seed.saturating_add(programs);
        while next < end && until.is_none_or(|u| Instant::now() < u) {
            let last = next.saturating_add(EPOCH).min(end);
            self.epoch(next, last)?;
            eprintln!("{} commands of administration, {} kinds of trouble", self.done, self.troubles.len());
            next = last;
        }
        Ok(())
    }

    /// New servers, commands before and after they become a set, and a look at what is left.
    fn epoch(&mut self, from: u64, to: u64) -> std::io::Result<()> {
        self.recent.clear();
        let mut servers = Vec::new();
        for i in 0..2 {
            servers.push(Server::start(&self.folder.join(format!("m{i}")), self.first_port + i)?);
        }
        let wires = servers.iter().map(|s| Wire::connect(&s.address()).ok()).collect();
        let mut members = Members { servers, wires };
        for seed in from..to.min(from + BEFORE) {
            self.one(seed, 0, &mut members, true)?;
        }
        // What came before may have initiated it.
        let hosts: Vec<Bson> = (0..2)
            .map(|i| {
                doc! { "_id": i, "host": members.servers[i as usize].address().as_str(), "priority": 1 - i }
                    .into()
            })
            .collect();
        let mut config = doc! { "_id": "rs" };
        config.push("members", hosts);
        config.push("settings", doc! { "electionTimeoutMillis": 2000, "heartbeatIntervalMillis": 500 });
        let reply = self.ask(0, &mut members, "admin", &doc! { "replSetInitiate": config });
        let initiated = reply.as_ref().is_some_and(|r| r.get("ok").is_some_and(Bson::is_truthy));
        if initiated && !has_primary(&members, Duration::from_secs(40)) {
            self.trouble("no primary after replSetInitiate".into(), self.recent.join("\n   "));
            return Ok(());
        }
        for seed in from + BEFORE..to {
            self.one(seed, (seed % 3 == 0) as usize, &mut members, false)?;
        }
        if initiated {
            self.look(&mut members);
        }
        Ok(())
    }

    /// Sends a command to a member; `None` when the connection is gone.
    fn ask(&mut self, at: usize, members: &mut Members, db: &str, cmd: &Document) -> Option<Document> {
        if members.wires[at].is_none() {
            members.wires[at] = Wire::connect(&members.servers[at].address()).ok();
        }
        members.wires[at].as_mut()?.run(db, cmd).ok()
    }

    fn one(&mut self, seed: u64, at: usize, members: &mut Members, alone: bool) -> std::io::Result<()> {
        let class = if seed.is_multiple_of(6) { Class::Ddl } else { Class::Admin };
        let p = Program::of_class(seed, class, Gen::new(seed));
        // Configurations by chance end every epoch early.
        let rarely = ["replSetReconfig", "replSetInitiate", "replSetRequestVotes"].contains(&p.test.name());
        if rarely && !alone && !seed.is_multiple_of(10) {
            return Ok(());
        }
        self.done += 1;
        for call in p.calls() {
            self.send(seed, at, members, call)?;
        }
        match p.test.name() {
            "fsync" => self.send(seed, at, members, &Call::new("admin", doc! { "fsyncUnlock": 1 }))?,
            "configureFailPoint" => {
                let name = p.test.cmd.get("configureFailPoint").and_then(Bson::as_str).unwrap_or_default();
                let off = doc! { "configureFailPoint": name, "mode": "off" };
                self.send(seed, at, members, &Call::new("admin", off))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn send(&mut self, seed: u64, at: usize, members: &mut Members, call: &Call) -> std::io::Result<()> {
        if members.wires[at].is_none() {
            members.wires[at] = Some(Wire::connect(&members.servers[at].address())?);
        }
        let Some(wire) = &mut members.wires[at] else { return Ok(()) };
        let mut cmd = call.cmd.clone();
        if !cmd.contains("maxTimeMS") {
            cmd.push("maxTimeMS", 2000);
        }
        let text: String = json(&cmd).chars().take(1500).collect();
        if self.recent.len() > 40 {
            self.recent.remove(0);
        }
        self.recent.push(format!("m{at} {}: {text}", call.db));
        wire.restart_clock();
        wire.send([(call.db.as_str(), &cmd)].into_iter());
        match wire.receive() {
            Ok(reply) => {
                let doc = Document::from(&*reply.body);
                if let Some(complaint) = judge::complaint(call, &doc, reply.took, 8) {
                    let shown: String = json(&doc).chars().take(300).collect();
                    self.trouble(
                        complaint,
                        format!("seed {seed} · m{at} {} · {:?} · {text}\n   → {shown}", call.db, reply.took),
                    );
                }
            }
            Err(e) => {
                members.wires[at] = None;
                std::thread::sleep(Duration::from_millis(200));
                let hangs = matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                if members.servers[at].has_ended() {
                    let said = members.servers[at].said();
                    self.trouble(
                        format!("the process ended: {}", call.name()),
                        format!("seed {seed} · m{at} {} · {text}\n   {}", call.db, said.join("\n   ")),
                    );
                    members.servers[at].make_room();
                    members.servers[at] = self.again(at)?;
                } else if hangs {
                    self.trouble(
                        format!("hang: {}", call.name()),
                        format!("seed {seed} · m{at} {} · {text}", call.db),
                    );
                }
            }
        }
        for i in 0..members.servers.len() {
            if members.servers[i].has_panicked() {
                let said = members.servers[i].said();
                let line = said.iter().find(|l| l.starts_with("PANIC")).cloned().unwrap_or_default();
                self.trouble(
                    judge::blurred(&line),
                    format!("seed {seed} · m{at} {} · {text}\n   {}", call.db, said.join("\n   ")),
                );
            }
        }
        Ok(())
    }

    /// A member that died, on its folder.
    fn again(&self, at: usize) -> std::io::Result<Server> {
        Server::open(&self.folder.join(format!("m{at}")), self.first_port + at as u16)
    }

    /// Fail points and locks are taken back; then the set must work.
    fn look(&mut self, members: &mut Members) {
        for at in 0..members.servers.len() {
            // Whoever wants the version of the interface in every command wants it in this one too.
            let anyone = doc! { "setParameter": 1, "requireApiVersion": false, "apiVersion": "1" };
            let _ = self.ask(at, members, "admin", &anyone);
            for name in fail_point::NAMES {
                let off = doc! { "configureFailPoint": *name, "mode": "off" };
                let _ = self.ask(at, members, "admin", &off);
            }
            for _ in 0..3 {
                let _ = self.ask(at, members, "admin", &doc! { "fsyncUnlock": 1 });
            }
            // Maintenance is counted: as often as it was asked for.
            while self
                .ask(at, members, "admin", &doc! { "replSetMaintenance": false })
                .is_some_and(|r| r.get("ok").is_some_and(Bson::is_truthy))
            {}
            let _ = self.ask(at, members, "admin", &doc! { "replSetFreeze": 0 });
        }
        if !has_primary(members, Duration::from_secs(60)) {
            let shown = self.recent.join("\n   ");
            self.trouble("no primary at the end of an epoch".into(), shown);
        }
    }
}

/// Whether some member takes a write within a while. Writes of users may have been blocked; only a primary takes that back.
fn has_primary(members: &Members, patience: Duration) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < patience {
        for s in &members.servers {
            let free = doc! { "setUserWriteBlockMode": 1, "global": false };
            let insert = doc! { "insert": "alive", "documents": [doc! { "x": 1 }] };
            if let Ok(mut wire) = Wire::connect(&s.address())
                && wire.run("admin", &free).is_ok()
                && let Ok(reply) = wire.run("alive", &insert)
                && reply.get("ok").is_some_and(Bson::is_truthy)
                && reply.get("writeErrors").is_none()
            {
                return true;
            }
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    false
}
