//! A set under a test's hand: real members in a simulated world, one step after another, in virtual time.
//!
//! A test says what happens to members and links, asks members things as a client would, and waits for what must
//! follow. Nothing here decides anything: the members are whole servers.

use crate::client::Client;
use crate::executor::lock;
use crate::links::Machine;
use crate::{FaultyDisk, NetOptions, Node, ProcessId, World};
use pando_bson::{Bson, Document, doc};
use pando_env::Env;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const FIRST_PORT: u16 = 27017;
/// Nobody's, at an address of its own.
const STRANGER: Machine = Machine(u16::MAX - 1);
/// Virtual time within which something that must happen has happened.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Members of one set, and somebody outside who asks them.
pub struct Rig {
    pub world: World,
    pub nodes: Vec<Node>,
    outside: ProcessId,
    env: Env,
}

/// An answer that may come later.
#[derive(Clone, Default)]
pub struct Asked(Arc<Mutex<Option<Document>>>);

impl Asked {
    pub fn answer(&self) -> Option<Document> {
        lock(&self.0).clone()
    }
}

impl Rig {
    /// Members that have not been initiated.
    pub fn unnamed(seed: u64, members: u16) -> Rig {
        Rig::unnamed_with(seed, members, |_| {})
    }
    fn unnamed_with(seed: u64, members: u16, prepare: impl Fn(&mut Node)) -> Rig {
        let world = World::new(seed, NetOptions::default());
        world.net.set_address(STRANGER, "10.9.9.9");
        let nodes: Vec<Node> = (0..members)
            .map(|i| {
                let mut node =
                    Node::member(&world, FaultyDisk::new(seed ^ u64::from(i) << 32), FIRST_PORT + i);
                prepare(&mut node);
                node.boot();
                node
            })
            .collect();
        let outside = world.sim.start_process();
        let env = world.env(outside, nodes[0].disk.clone());
        let rig = Rig { world, nodes, outside, env };
        rig.wait_ms(500);
        rig
    }
    /// So many equal members, all in their places.
    pub fn of(seed: u64, members: u16) -> Rig {
        Rig::with(seed, &vec![Document::new(); usize::from(members)], Document::new())
    }
    /// Members with these fields of their own, all in their places.
    pub fn with(seed: u64, members: &[Document], settings: Document) -> Rig {
        Rig::unnamed(seed, members.len() as u16).initiated(members, settings)
    }
    /// Equal members that keep this much of their oplog.
    pub fn with_oplog(seed: u64, members: u16, bytes: u64) -> Rig {
        let rig = Rig::unnamed_with(seed, members, |n| n.storage.oplog_bytes_max = bytes);
        rig.initiated(&vec![Document::new(); usize::from(members)], Document::new())
    }
    /// Equal members with `enableMajorityReadConcern: false`.
    pub fn without_majority_reads(seed: u64, members: u16) -> Rig {
        let rig = Rig::unnamed_with(seed, members, |n| n.majority_reads = false);
        rig.initiated(&vec![Document::new(); usize::from(members)], Document::new())
    }
    /// Equal members whose folders are encrypted.
    pub fn encrypted(seed: u64, members: u16) -> Rig {
        let rig = Rig::unnamed_with(seed, members, |n| n.encrypted = true);
        rig.initiated(&vec![Document::new(); usize::from(members)], Document::new())
    }
    /// Equal members that take so many connections.
    pub fn with_connections(seed: u64, members: u16, connections: usize) -> Rig {
        let rig = Rig::unnamed_with(seed, members, |n| n.connections = connections);
        rig.initiated(&vec![Document::new(); usize::from(members)], Document::new())
    }
    pub fn initiated(self, members: &[Document], settings: Document) -> Rig {
        let rig = self;
        let config = rig.config(members, settings);
        rig.ok(0, doc! { "replSetInitiate": config, "$db": "admin" });
        rig.until("every member in its place", |rig| {
            let status = rig.status(0);
            let states = status.get("members").and_then(Bson::as_array).unwrap_or_default();
            let settled = states
                .iter()
                .filter_map(Bson::as_doc)
                .filter(|m| m.get("state").and_then(Bson::as_i64).is_some_and(|s| matches!(s, 1 | 2 | 7)));
            settled.count() == members.len() && rig.primary_now().is_some()
        });
        rig
    }
    pub fn config(&self, members: &[Document], settings: Document) -> Document {
        let list: Vec<Bson> = members
            .iter()
            .enumerate()
            .map(|(i, own)| {
                let mut m = doc! { "_id": i as i32, "host": self.nodes[i].addr() };
                own.iter().for_each(|(k, v)| m.push(k, v.clone()));
                m.into()
            })
            .collect();
        let mut config = doc! { "_id": "rs0" };
        config.push("members", list);
        config.push("settings", settings);
        config
    }

    pub fn wait(&self, d: Duration) {
        self.world.sim.run_for(d);
        for (i, node) in self.nodes.iter().enumerate() {
            let problem = node.server().and_then(|s| s.replication.timestamp_problem());
            assert_eq!(problem, None, "timestamps of member {i} are out of order");
        }
    }
    pub fn wait_ms(&self, ms: u64) {
        self.wait(Duration::from_millis(ms));
    }
    /// Waits until `holds`; the test ends with the log's last lines when that takes too long.
    pub fn until(&self, what: &str, mut holds: impl FnMut(&Rig) -> bool) {
        let end = self.world.sim.now() + PATIENCE;
        while !holds(self) {
            if self.world.sim.now() >= end {
                let log = self.world.log_lines();
                let last = &log[log.len().saturating_sub(60)..];
                panic!("waited in vain for {what}\n{}", last.join("\n"));
            }
            self.wait(LOOK_EVERY);
        }
    }

    /// What member `i` says to a command, on a connection of its own; `{io: ..}` when it cannot be asked.
    pub fn ask(&self, i: usize, command: Document) -> Document {
        let asked = self.start(i, command);
        let end = self.world.sim.now() + PATIENCE;
        loop {
            if let Some(answer) = asked.answer() {
                return answer;
            }
            if self.world.sim.now() >= end || !self.world.sim.step() {
                return doc! { "io": "no answer" };
            }
        }
    }
    /// The same from a machine that is no member's.
    pub fn ask_as_stranger(&self, i: usize, command: Document) -> Document {
        let asked = self.start_from(STRANGER, i, command);
        self.until("an answer to a stranger", |_| asked.answer().is_some());
        asked.answer().unwrap_or_default()
    }
    /// Asks and goes on.
    pub fn start(&self, i: usize, command: Document) -> Asked {
        self.start_from(Machine::OUTSIDE, i, command)
    }
    fn start_from(&self, machine: Machine, i: usize, mut command: Document) -> Asked {
        if !command.contains("$db") {
            command.push("$db", "test");
        }
        let env = match machine {
            Machine::OUTSIDE => self.env.clone(),
            _ => self.world.env_at(machine, self.outside, self.nodes[0].disk.clone()),
        };
        let (addr, body) = (self.nodes[i].addr(), command.to_raw());
        let asked = Asked::default();
        let slot = asked.clone();
        self.world.sim.spawn(self.outside, "asking", async move {
            let reply = async { Client::connect(&env, &addr).await?.command(&body).await }.await;
            *lock(&slot.0) = Some(match reply {
                Ok(reply) => Document::from(&*reply),
                Err(e) => doc! { "io": e.to_string() },
            });
        });
        asked
    }
    /// A command that must succeed, its write concern included.
    pub fn ok(&self, i: usize, command: Document) -> Document {
        let reply = self.ask(i, command.clone());
        let good = reply.get("ok").is_some_and(Bson::is_truthy)
            && !reply.contains("writeErrors")
            && !reply.contains("writeConcernError");
        assert!(good, "{command:?}\n{reply:?}");
        reply
    }
    /// An administrative command that must succeed.
    pub fn admin(&self, i: usize, mut command: Document) -> Document {
        command.push("$db", "admin");
        self.ok(i, command)
    }
    /// Asks for a change until the set takes it (elections may be under way).
    pub fn insist(&self, i: usize, command: &Document) {
        self.until("a command to be taken", |rig| {
            rig.ask(i, command.clone()).get("ok").is_some_and(Bson::is_truthy)
        });
    }

    /// The configuration in force with the next version, for a reconfiguration.
    pub fn next_config(&self, i: usize) -> Document {
        let reply = self.admin(i, doc! { "replSetGetConfig": 1 });
        let mut config = reply.get("config").and_then(Bson::as_doc).cloned().unwrap_or_default();
        config.set("version", words::number(&config, "version") as i32 + 1);
        config
    }
    pub fn hello(&self, i: usize) -> Document {
        self.ask(i, doc! { "hello": 1, "$db": "admin" })
    }
    pub fn status(&self, i: usize) -> Document {
        self.ask(i, doc! { "replSetGetStatus": 1, "$db": "admin" })
    }
    pub fn is_primary(&self, i: usize) -> bool {
        self.hello(i).get("isWritablePrimary").is_some_and(Bson::is_truthy)
    }
    pub fn primary_now(&self) -> Option<usize> {
        (0..self.nodes.len()).find(|i| self.is_primary(*i))
    }
    /// The member that takes writes, when there is one.
    pub fn primary(&self) -> usize {
        let mut found = None;
        self.until("a primary", |rig| {
            found = rig.primary_now();
            found.is_some()
        });
        found.unwrap_or_default()
    }
    /// All but one.
    pub fn others(&self, than: usize) -> Vec<usize> {
        (0..self.nodes.len()).filter(|i| *i != than).collect()
    }
    /// A chain primary <- middle <- last, by command.
    pub fn chain(&self) -> [usize; 3] {
        let p = self.primary();
        let rest = self.others(p);
        let (middle, last) = (rest[0], rest[1]);
        self.ok(p, words::insert(0, words::w(3)));
        self.admin(last, doc! { "replSetSyncFrom": self.nodes[middle].addr() });
        self.until("the chain", |rig| rig.source_of(last) == Some(middle));
        [p, middle, last]
    }
    /// Whom a member copies from.
    pub fn source_of(&self, i: usize) -> Option<usize> {
        let status = self.status(i);
        let host = status.get("syncSourceHost").and_then(Bson::as_str)?;
        self.nodes.iter().position(|n| n.addr() == host)
    }

    /// A connection of bytes, to send what no driver would.
    pub fn env(&self) -> &Env {
        &self.env
    }
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.world.sim.spawn(self.outside, "outside", task);
    }

    fn machine(&self, i: usize) -> Machine {
        self.nodes[i].machine()
    }
    /// Nothing goes between two members any more.
    pub fn part(&self, a: usize, b: usize) {
        let (a, b) = (self.machine(a), self.machine(b));
        let mut links = self.world.net.links();
        links.cut(a, b);
        links.cut(b, a);
    }
    /// A member loses all others; those outside still reach it.
    pub fn isolate(&self, i: usize) {
        self.others(i).into_iter().for_each(|other| self.part(i, other));
    }
    pub fn heal(&self) {
        self.world.net.links().heal();
    }
}

/// Words of the tests.
pub mod words {
    use pando_bson::{Bson, Document, doc};

    pub fn code(reply: &Document) -> i64 {
        reply.get("code").and_then(Bson::as_i64).unwrap_or(0)
    }
    /// A value inside documents and arrays.
    pub fn at<'a>(doc: &'a Document, path: &str) -> Option<&'a Bson> {
        let mut parts = path.split('.');
        let mut value = doc.get(parts.next()?)?;
        for part in parts {
            value = match (value.as_doc(), value.as_array()) {
                (Some(d), _) => d.get(part)?,
                (_, Some(a)) => a.get(part.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        Some(value)
    }
    pub fn number(doc: &Document, path: &str) -> i64 {
        at(doc, path).and_then(Bson::as_i64).unwrap_or_else(|| panic!("no number at {path}: {doc:?}"))
    }
    pub fn concern_code(reply: &Document) -> Option<i64> {
        at(reply, "writeConcernError.code")?.as_i64()
    }
    pub fn insert(id: i32, concern: Document) -> Document {
        doc! { "insert": "c", "documents": [{ "_id": id }], "writeConcern": concern }
    }
    /// Of all members.
    pub fn w(n: i32) -> Document {
        doc! { "w": n, "wtimeout": 60_000 }
    }
    /// Of all members, on their disks.
    pub fn on_disk(n: i32) -> Document {
        doc! { "w": n, "j": true, "wtimeout": 60_000 }
    }
    pub fn majority() -> Document {
        doc! { "w": "majority", "wtimeout": 60_000 }
    }
    /// May run on a secondary.
    pub fn anywhere(mut command: Document) -> Document {
        command.push("$readPreference", doc! { "mode": "secondaryPreferred" });
        command
    }
    pub fn find(level: &str) -> Document {
        anywhere(doc! { "find": "c", "sort": { "_id": 1 }, "readConcern": { "level": level } })
    }
    /// The `_id`s of a first batch.
    pub fn ids(reply: &Document) -> Vec<i64> {
        let batch = at(reply, "cursor.firstBatch").and_then(Bson::as_array);
        let batch = batch.unwrap_or_else(|| panic!("no batch: {reply:?}"));
        batch.iter().filter_map(|d| d.as_doc()?.get("_id")?.as_i64()).collect()
    }
}
