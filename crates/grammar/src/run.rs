//! Runs programs: on one server for the sake of its health, on two for the sake of their answers.

use crate::compare::{Difference, care_of, compare, is_loose_at, rows};
use crate::data;
use crate::draw::Class;
use crate::judge;
use crate::order;
use crate::program::{Call, Program};
use crate::reasons::Reasons;
use crate::report::{Groups, golden_case, json, rough};
use crate::server::{Server, prepare};
use crate::shrink::Pair;
use crate::wire::{Reply, Wire};
use pando_bson::{Bson, Document, doc};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Programs that are sent at once.
const BATCH: u64 = 24;
/// Programs between two looks for cursors that stayed open.
const LEAKS_EVERY: u64 = 6_000;

pub struct Options {
    pub seed: u64,
    pub programs: u64,
    pub until: Option<Instant>,
    pub against: Option<String>,
    pub folder: PathBuf,
    pub port: u16,
    /// How many unexplained differences of a kind are shrunk; what comes after them is told as it is.
    pub shrunk: usize,
    /// Programs of other classes are passed over.
    pub only: Option<Class>,
}

/// What was wrong with the server itself.
pub struct Trouble {
    pub count: usize,
    pub example: String,
}

pub struct Run {
    options: Options,
    server: Server,
    wire: Wire,
    pair: Option<Pair>,
    slack: u32,
    pub done: u64,
    pub troubles: BTreeMap<String, Trouble>,
    pub groups: Groups,
    /// Kinds of differences before they were shrunk, and one of each.
    rough: BTreeMap<String, Trouble>,
    pub reasons: Reasons,
    pub differences: u64,
    /// Differences that are proven to be nothing but the order of mistakes.
    pub orders: u64,
    /// Seeds of programs that were answered alike when they ran alone.
    pub gone: Vec<u64>,
    their_cursors: Vec<OpenCursor>,
    /// Programs of the batch under way that were answered differently.
    pending: Vec<(Program, Difference)>,
    /// What is left behind in the database of definitions differs.
    definitions_differ: bool,
    /// Our server was started on an empty folder; the reference still has what programs have left there.
    began_again: bool,
    /// Seeds of the batches during which the reference ended.
    pub reference_ended: Vec<u64>,
}

/// What a difference turned out to be.
enum Verdict {
    Order,
    Reason,
    /// Not there when the program ran alone.
    Gone,
    Unexplained,
}

/// Database, collection, id.
type OpenCursor = (String, String, i64);

fn open_cursor(reply: &Document) -> Option<OpenCursor> {
    let cursor = reply.get("cursor")?.as_doc()?;
    let (Some(Bson::Int64(id)), Some(Bson::String(ns))) = (cursor.get("id"), cursor.get("ns")) else {
        return None;
    };
    let (db, coll) = ns.split_once('.')?;
    (*id != 0).then(|| (db.to_owned(), coll.to_owned(), *id))
}

fn host_of(uri: &str) -> &str {
    uri.trim_start_matches("mongodb://").split('/').next().unwrap_or_default()
}

/// How much longer things may take than on an idle machine.
fn slack() -> u32 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|l| l.parse().ok()).unwrap_or(0.0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    1 + (2.0 * load / cores) as u32
}

/// Tries for two minutes.
fn connected_again(connect: impl Fn() -> std::io::Result<Wire>) -> std::io::Result<Wire> {
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        match connect() {
            Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_secs(1)),
            other => return other,
        }
    }
}

impl Run {
    pub fn new(options: Options) -> std::io::Result<Run> {
        let server = Server::start(&options.folder, options.port)?;
        let wire = prepare(&server.address())?;
        let pair = match &options.against {
            Some(uri) => Some(Pair::new(prepare(&server.address())?, prepare(host_of(uri))?)),
            None => None,
        };
        Ok(Run {
            options,
            server,
            wire,
            pair,
            slack: slack(),
            done: 0,
            troubles: BTreeMap::new(),
            groups: Groups::default(),
            rough: BTreeMap::new(),
            reasons: Reasons::read(),
            differences: 0,
            orders: 0,
            gone: Vec::new(),
            their_cursors: Vec::new(),
            pending: Vec::new(),
            definitions_differ: false,
            began_again: false,
            reference_ended: Vec::new(),
        })
    }

    fn trouble(&mut self, key: String, example: impl FnOnce() -> String) {
        let known = self.troubles.contains_key(&key);
        let entry =
            self.troubles.entry(key.clone()).or_insert_with(|| Trouble { count: 0, example: example() });
        entry.count += 1;
        if !known {
            eprintln!("!! {key}\n   {}", self.troubles[&key].example);
        }
    }

    /// All programs, in batches.
    pub fn run(&mut self) -> std::io::Result<()> {
        let (from, end) = (self.options.seed, self.options.seed.saturating_add(self.options.programs));
        let mut next = from;
        let (begun, mut told) = (Instant::now(), Instant::now());
        while next < end && self.options.until.is_none_or(|until| Instant::now() < until) {
            let last = (next + BATCH).min(end);
            let wanted = |p: &Program| self.options.only.is_none_or(|only| p.class == only);
            let batch: Vec<Program> = (next..last).map(Program::of).filter(wanted).collect();
            self.batch(&batch)?;
            self.done += last - next;
            if (last - from) / LEAKS_EVERY != (next - from) / LEAKS_EVERY {
                self.slack = slack();
                self.look_for_leaks()?;
            }
            if told.elapsed() > Duration::from_secs(10) {
                told = Instant::now();
                let rate = self.done as f64 / begun.elapsed().as_secs_f64();
                let mib = self.server.resident() >> 20;
                eprintln!(
                    "{} programs, {rate:.0}/s, slack {}, {mib} MiB, {} troubles, {} differences in {} kinds",
                    self.done,
                    self.slack,
                    self.troubles.len(),
                    self.differences,
                    self.rough.len()
                );
            }
            next = last;
        }
        self.look_for_leaks()
    }

    fn batch(&mut self, programs: &[Program]) -> std::io::Result<()> {
        let mut from = 0;
        while from < programs.len() {
            from += self.part(&programs[from..])?;
        }
        if self.server.has_panicked() {
            self.after_a_panic(programs);
        }
        Ok(())
    }

    /// Runs programs until all are done or the connection breaks; how many are behind us.
    fn part(&mut self, programs: &[Program]) -> std::io::Result<usize> {
        let calls = || programs.iter().flat_map(Program::calls).map(|c| (c.db.as_str(), &c.cmd));
        if std::mem::take(&mut self.began_again) {
            self.begin_alike()?;
        }
        if let Some(pair) = &mut self.pair {
            pair.theirs.send(calls());
        }
        self.wire.restart_clock();
        self.wire.send(calls());
        let (mut open, mut alone) = (Vec::new(), self.pair.is_none());
        for (i, p) in programs.iter().enumerate() {
            let mut ours = Vec::with_capacity(p.len());
            let mut problem = None;
            for call in p.calls() {
                match self.wire.receive() {
                    Ok(reply) => ours.push(self.judged(p, call, reply, &mut open)),
                    Err(e) => {
                        problem = Some((call, e));
                        break;
                    }
                }
            }
            if let Some((call, e)) = problem {
                self.broken(p, call, &e)?;
                // Cursors outlive the connection; those of a server that ended are not found.
                self.close(&open)?;
                if alone || self.skip_theirs(programs[i..].iter().map(Program::len).sum()).is_err() {
                    self.take_up_the_reference(programs)?;
                }
                return Ok(i + 1);
            }
            alone = alone || self.compare(p, &ours).is_err();
        }
        self.close(&open)?;
        if std::mem::take(&mut self.definitions_differ) && !alone {
            alone = self.forget_definitions().is_err();
        }
        if alone || self.close_theirs().is_err() {
            self.take_up_the_reference(programs)?;
        }
        // Only now, for they are run again, each by itself.
        self.look_into_differences();
        Ok(programs.len())
    }

    fn judged(&mut self, p: &Program, call: &Call, reply: Reply, open: &mut Vec<OpenCursor>) -> Document {
        let doc = Document::from(&*reply.body);
        // Beside another server a reply lies here until that one has answered as well.
        let took = if self.pair.is_some() { Duration::ZERO } else { reply.took };
        if let Some(complaint) = judge::complaint(call, &doc, took, self.slack) {
            let took = reply.took;
            self.trouble(complaint, || {
                let text: String = json(&call.cmd).chars().take(2000).collect();
                let reply: String = json(&doc).chars().take(300).collect();
                format!("seed {} · {} · {took:?} · {text}\n   → {reply}", p.seed, call.db)
            });
        }
        open.extend(open_cursor(&doc));
        doc
    }

    /// Cursors get one `getMore` and are closed.
    fn close(&mut self, open: &[OpenCursor]) -> std::io::Result<()> {
        for (db, coll, id) in open {
            let more = doc! { "getMore": *id, "collection": coll.as_str(), "batchSize": 2, "maxTimeMS": 1 };
            let kill = doc! { "killCursors": coll.as_str(), "cursors": [*id] };
            for cmd in [more, kill] {
                if let Err(e) = self.wire.run(db, &cmd) {
                    let p = Program::of(0);
                    return self.broken(&p, &Call::new(db, cmd), &e);
                }
            }
        }
        Ok(())
    }

    fn close_theirs(&mut self) -> std::io::Result<()> {
        let open = std::mem::take(&mut self.their_cursors);
        if let Some(pair) = &mut self.pair {
            for (db, coll, id) in open {
                pair.theirs.run(&db, &doc! { "killCursors": coll, "cursors": [id] })?;
            }
        }
        Ok(())
    }

    fn skip_theirs(&mut self, replies: usize) -> std::io::Result<()> {
        if let Some(pair) = &mut self.pair {
            for _ in 0..replies {
                pair.theirs.receive()?;
            }
        }
        Ok(())
    }

    /// What the next programs meet there is the same on both sides again.
    fn forget_definitions(&mut self) -> std::io::Result<()> {
        let Some(pair) = &mut self.pair else { return Ok(()) };
        for wire in [&mut pair.theirs, &mut self.wire] {
            wire.run(data::DDL_DB, &doc! { "dropDatabase": 1 })?;
        }
        Ok(())
    }

    /// The reference ended; somebody starts it again. What is left of these programs is not compared.
    fn take_up_the_reference(&mut self, programs: &[Program]) -> std::io::Result<()> {
        let seed = programs.first().map_or(0, |p| p.seed);
        if self.pair.is_some() {
            eprintln!("the reference ended in the batch of seed {seed}");
            self.reference_ended.push(seed);
        }
        self.begin_alike()
    }

    /// Both servers hold what programs find, and nothing that one of them has left.
    fn begin_alike(&mut self) -> std::io::Result<()> {
        let Some(uri) = self.options.against.clone() else { return Ok(()) };
        self.their_cursors.clear();
        let theirs = connected_again(|| prepare(host_of(&uri)))?;
        // Programs may have changed what both had: it is made anew on both sides.
        prepare(&self.server.address())?;
        if let Some(pair) = &mut self.pair {
            pair.theirs = theirs;
        }
        self.wire = prepare(&self.server.address())?;
        Ok(())
    }

    /// The connection broke while a command's reply was awaited.
    fn broken(&mut self, p: &Program, call: &Call, e: &std::io::Error) -> std::io::Result<()> {
        std::thread::sleep(Duration::from_millis(300));
        let said = self.server.said();
        let ended = self.server.has_ended();
        let hangs = matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut);
        let panic = said.iter().find(|l| l.starts_with("PANIC") || l.contains("overflowed its stack"));
        let key = match (panic, hangs, ended) {
            (Some(line), ..) => judge::blurred(line),
            (None, true, _) => format!("hang: {}", call.name()),
            (None, _, true) => format!("the process ended: {}", call.name()),
            (None, ..) => format!("the connection closed: {} ({e})", call.name()),
        };
        let (seed, text) = (p.seed, json(&call.cmd).chars().take(3000).collect::<String>());
        let db = call.db.clone();
        self.trouble(key, || format!("seed {seed} · {db} · {text}\n   {}", said.join("\n   ")));
        if hangs {
            self.server.kill();
        }
        if ended || hangs {
            self.server.make_room();
            self.server = Server::start(&self.options.folder, self.options.port)?;
            self.wire = prepare(&self.server.address())?;
        } else {
            self.wire = crate::server::connect_to_primary(&self.server.address())?;
        }
        if let Some(pair) = &mut self.pair {
            pair.ours = Wire::connect(&self.server.address())?;
            self.began_again |= ended || hangs;
        }
        Ok(())
    }

    /// Something panicked, though every command was answered.
    fn after_a_panic(&mut self, programs: &[Program]) {
        let said = self.server.said();
        let Some(line) = said.iter().find(|l| l.starts_with("PANIC")) else { return };
        let key = format!("in the background: {}", judge::blurred(line));
        let seeds = (programs.first().map_or(0, |p| p.seed), programs.last().map_or(0, |p| p.seed));
        self.trouble(key, || format!("seeds {} to {}\n   {}", seeds.0, seeds.1, said.join("\n   ")));
    }

    fn compare(&mut self, p: &Program, ours: &[Document]) -> std::io::Result<()> {
        let Some(pair) = &mut self.pair else { return Ok(()) };
        let care = care_of(p);
        let mut first = None;
        for (at, (call, ours)) in p.calls().zip(ours).enumerate() {
            let theirs = Document::from(&*pair.theirs.receive()?.body);
            if let Some(open) = open_cursor(&theirs) {
                self.their_cursors.push(open);
            }
            if first.is_none() && at >= p.prep.len() {
                first = compare(call, at, is_loose_at(p, at, care), care, ours, &theirs);
            }
        }
        if let Some(d) = first {
            self.definitions_differ |= p.class == Class::Ddl;
            if !self.reasons.explain(p, &d) {
                self.pending.push((p.clone(), d));
            }
        }
        Ok(())
    }

    /// Looks into what differed in a batch, once nothing of the batch is under way any more.
    fn look_into_differences(&mut self) {
        for (p, d) in std::mem::take(&mut self.pending) {
            let verdict = self.verdict(&p, &d).unwrap_or_else(|e| {
                eprintln!("seed {} was not looked into: {e}", p.seed);
                Verdict::Unexplained
            });
            match verdict {
                Verdict::Order => self.orders += 1,
                Verdict::Reason => {}
                Verdict::Gone => self.gone.push(p.seed),
                Verdict::Unexplained => self.note(&p, &d),
            }
        }
    }

    fn note(&mut self, p: &Program, d: &Difference) {
        self.differences += 1;
        let told = || {
            let text: String = json(&p.test.cmd).chars().take(1500).collect();
            let cut = |s: &str| s.chars().take(300).collect::<String>();
            let (ours, theirs) = (cut(&d.ours), cut(&d.theirs));
            format!(
                "seed {} · {}: {text}\n  ours   [{}] {ours}\n  theirs [{}] {theirs}",
                p.seed, p.test.db, d.ours_code, d.theirs_code
            )
        };
        self.rough.entry(rough(p, d)).or_insert_with(|| Trouble { count: 0, example: told() }).count += 1;
    }

    /// Why two answers differ. A program of many parts is made smaller before it is given up: what is left of it may have a reason,
    /// or have two mistakes where the whole has too many to tell apart.
    fn verdict(&mut self, p: &Program, d: &Difference) -> std::io::Result<Verdict> {
        if self.is_order(p, d)? {
            return Ok(Verdict::Order);
        }
        if self.rough.get(&rough(p, d)).map_or(0, |t| t.count) >= self.options.shrunk {
            return Ok(Verdict::Unexplained);
        }
        let mut pair = self.pair_of_its_own()?;
        let Some(again) = pair.difference(p)? else { return Ok(Verdict::Gone) };
        let (small, d) = match pair.shrink(p, &again) {
            Ok(found) => found,
            // It ended the server; the programs themselves will show it.
            Err(_) => (p.clone(), again),
        };
        if self.reasons.explain(&small, &d) {
            return Ok(Verdict::Reason);
        }
        if self.is_order(&small, &d)? {
            return Ok(Verdict::Order);
        }
        for call in &small.prep {
            pair.theirs.run(&call.db, &call.cmd)?;
        }
        let theirs = pair.theirs.run(&small.test.db, &small.test.cmd)?;
        let after = match small.class {
            Class::Write => rows(&pair.theirs.run(&small.test.db, &doc! { "find": "w" })?),
            _ => None,
        };
        let case = golden_case(&small, &theirs, after);
        self.groups.add(small, d, case);
        Ok(Verdict::Unexplained)
    }

    /// Whether both servers know all mistakes of a program, and tell another one.
    fn is_order(&self, p: &Program, d: &Difference) -> std::io::Result<bool> {
        if d.kind != "code" || d.ours_code == "ok" || d.theirs_code == "ok" {
            return Ok(false);
        }
        order::is_order_of_mistakes(&mut self.pair_of_its_own()?, p, d)
    }

    /// New connections: what others have prepared, or sent ahead, is not in the way.
    fn pair_of_its_own(&self) -> std::io::Result<Pair> {
        let uri = self.options.against.clone().unwrap_or_default();
        Ok(Pair::new(Wire::connect(&self.server.address())?, Wire::connect(host_of(&uri))?))
    }

    fn look_for_leaks(&mut self) -> std::io::Result<()> {
        let status = self.wire.run("admin", &doc! { "serverStatus": 1 })?;
        let inside =
            |d: Option<&Bson>, name: &str| d.and_then(Bson::as_doc).and_then(|d| d.get(name)).cloned();
        let cursor = inside(status.get("metrics"), "cursor");
        let open = inside(cursor.as_ref(), "open");
        let total = inside(open.as_ref(), "total").and_then(|n| n.as_i64()).unwrap_or(-1);
        // Shrinking leaves some behind.
        if total != 0 && self.pair.is_none() {
            let done = self.done;
            self.trouble("cursors stay open".into(), || format!("{total} after {done} programs: {open:?}"));
        }
        Ok(())
    }

    /// Kinds of differences as they were met, the most frequent first.
    pub fn print_rough(&self) -> String {
        let mut all: Vec<_> = self.rough.iter().collect();
        all.sort_by_key(|(_, t)| std::cmp::Reverse(t.count));
        all.iter().map(|(key, t)| format!("\n# {key}  ({})\n{}\n", t.count, t.example)).collect()
    }

    pub fn slack(&self) -> u32 {
        self.slack
    }
}
