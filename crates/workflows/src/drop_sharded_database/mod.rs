//! `dropDatabase` on the primary shard (SH-DDL-9): each sharded collection, then the database on every shard, then its entry.
//!
//! ```text
//!   begin ─► look ─► drop: c1 … cn, each as in `drop` ─► other shards ─► here ─► commit: its entry goes ─► over
//!              └ may fail                                                          └ of that version, no other
//!
//!   the database's section                                    entered ──────────────────────── left, where its entry is gone
//! ```
//! From before its collections here go until nobody is sent here any more, whoever goes by the database's version waits: what was
//! written between would be acknowledged, and of no database.
//! The checkpoint of `commit` is on a majority before the name may become another database: a primary that begins at the one of `drop`
//! drops what it finds.

pub mod mutants;

use crate::ddl::{
    Dropping, Head, Locks, SHARDS, SLOT, append_asked_by, append_head, append_majority, doc_at, failure,
    nonsense, texts_at, timestamp_at, uuid_at,
};
use crate::{Actions, Event, Level, LocalWrite, Resource, Retry, Slot, Target, Workflow, whole_database};
use mutants::{Mutant, broken};
use pando_base::{Error, ErrorCode, Millis, Namespace, Result, Timestamp, Uuid, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use std::collections::BTreeSet;

pub const OPERATION: &str = "dropDatabase";
/// Steps of this node. `{<step>: <db>}` ─► `{timestamp, shards, collections: [{ns, uuid}], version?}`: what the config servers know.
pub const LOOK: &str = "lookAtDatabase";
/// What is here of the database goes.
pub const DROP_HERE: &str = "dropDatabaseHere";
/// Has this node read anew what it knows of it.
pub const REFRESH: &str = "refreshDatabase";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Phase {
    Begin,
    Drop,
    Commit,
    Over,
}

impl Phase {
    const KEPT: [(Phase, &str); 3] =
        [(Phase::Begin, "begin"), (Phase::Drop, "drop"), (Phase::Commit, "commit")];
}

/// Within `Drop` and `Commit`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Collection,
    Leaving,
    Elsewhere,
    Entering,
    Here,
    Entry,
    Refreshing,
    /// The database's own section.
    Opening,
}

/// What `look` has answered.
#[derive(Clone, PartialEq, Debug)]
struct Found {
    at: Timestamp,
    shards: Vec<String>,
    collections: Vec<(Namespace, Uuid)>,
    /// This shard is its primary under it.
    version: Option<DocBuf>,
}

impl Found {
    fn parse(doc: &RawDoc) -> Option<Found> {
        let list = doc.get("collections")?;
        let one = |d: &RawDoc| Some((Namespace::parse(d.get("ns")?.as_str()?).ok()?, uuid_at(d, "uuid")?));
        let collections = list.as_array()?.iter().map(|e| e.value().as_doc().and_then(one));
        Some(Found {
            at: timestamp_at(doc, "timestamp")?,
            shards: texts_at(doc, "shards"),
            collections: collections.collect::<Option<_>>()?,
            version: doc_at(doc, "version"),
        })
    }
    fn append(&self, b: &mut DocBuilder) {
        b.timestamp("timestamp", self.at).array("shards", |list| {
            self.shards.iter().for_each(|shard| _ = list.str(shard));
        });
        b.array("collections", |list| {
            for (ns, uuid) in &self.collections {
                list.doc(|d| _ = d.str("ns", ns.as_str()).uuid("uuid", &uuid.0));
            }
        });
        if let Some(version) = &self.version {
            b.raw_doc("version", version);
        }
    }
}

#[derive(Clone, Debug)]
struct DropShardedDatabase {
    db: String,
    request: DocBuf,
    asked_by: Option<DocBuf>,
    phase: Phase,
    step: Step,
    locks: Locks,
    found: Option<Found>,
    /// Collections of `found` that are gone.
    gone: usize,
    dropping: Option<Dropping>,
    left: BTreeSet<Slot>,
    /// What the client is told once the section is left.
    result: Option<Result<DocBuf, Error>>,
}

fn locks_of(db: &str) -> Vec<(Resource, Level)> {
    vec![(Resource::Definition(db.to_owned()), Level::Exclusive)]
}

pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    let head = Head::parse(state)?;
    let phase = Phase::KEPT.iter().find(|(_, text)| *text == head.phase).map(|(phase, _)| *phase);
    let phase = phase.ok_or_else(|| nonsense(state))?;
    let found = Found::parse(state);
    if (phase > Phase::Begin) != found.is_some() {
        return Err(nonsense(state));
    }
    Ok(Box::new(DropShardedDatabase {
        locks: Locks::new(locks_of(&head.namespace)),
        db: head.namespace,
        request: head.request,
        asked_by: head.asked_by,
        phase,
        step: Step::Collection,
        found,
        gone: 0,
        dropping: None,
        left: BTreeSet::new(),
        result: None,
    }))
}

impl DropShardedDatabase {
    fn own(&self, step: &str, retry: Retry, out: &mut Actions) {
        let mut b = DocBuilder::new();
        b.str(step, &self.db);
        append_asked_by(&mut b, self.asked_by.as_deref());
        out.call(SLOT, Target::Own, b.finish(), retry);
    }
    fn go(&mut self, out: &mut Actions) {
        match self.phase {
            Phase::Begin => self.own(LOOK, Retry::Transient, out),
            Phase::Drop => self.drop_next(out),
            Phase::Commit => self.commit(out),
            Phase::Over => {}
        }
    }
    fn drop_next(&mut self, out: &mut Actions) {
        let Some(found) = &self.found else { return };
        let skipped = broken(Mutant::CollectionsStay);
        let Some((ns, uuid)) = found.collections.get(self.gone).filter(|_| !skipped).cloned() else {
            return self.drop_elsewhere(out);
        };
        let mut dropping =
            Dropping::new(ns, Some(uuid), found.at, found.shards.clone(), self.asked_by.clone());
        dropping.begin(out);
        self.step = Step::Collection;
        self.dropping = Some(dropping);
    }
    fn drop_elsewhere(&mut self, out: &mut Actions) {
        self.step = Step::Elsewhere;
        let shards = self.found.as_ref().map_or(0, |found| found.shards.len()) as Slot;
        self.left = (SHARDS..SHARDS + shards).collect();
        for slot in self.left.clone() {
            self.ask(slot, out);
        }
        self.unless_left(out);
    }
    fn ask(&self, slot: Slot, out: &mut Actions) {
        let Some(found) = &self.found else { return };
        let Some(shard) = found.shards.get((slot - SHARDS) as usize) else { return };
        let mut b = DocBuilder::new();
        b.i32("_shardsvrDropDatabaseParticipant", 1);
        if !broken(Mutant::NoNumber) {
            b.timestamp("timestamp", found.at);
        }
        append_majority(&mut b, &self.db);
        out.call(slot, Target::Shard(shard.clone()), b.finish(), Retry::UntilRefused);
    }
    fn unless_left(&mut self, out: &mut Actions) {
        if !self.left.is_empty() {
            return;
        }
        if broken(Mutant::DatabaseStaysOpen) {
            return self.drop_here(out);
        }
        self.step = Step::Entering;
        let (ns, reason) = (whole_database(&self.db), self.reason());
        out.write(SLOT, vec![LocalWrite::EnterSection { ns, reason, block_reads: true }], Retry::Always);
    }
    fn reason(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.str("command", "dropDatabase").str("db", &self.db);
        b.finish()
    }
    /// The section needs no wait of its own: the entry goes behind the next checkpoint.
    fn drop_here(&mut self, out: &mut Actions) {
        self.step = Step::Here;
        self.own(DROP_HERE, Retry::UntilRefused, out);
    }
    /// Whoever waits may go on: to another shard where the entry is gone.
    fn open(&mut self, result: Result<DocBuf, Error>, out: &mut Actions) {
        if broken(Mutant::DatabaseStaysShut) {
            return self.end(result, out);
        }
        self.step = Step::Opening;
        self.result = Some(result);
        let (ns, reason) = (whole_database(&self.db), self.reason());
        out.write(SLOT, vec![LocalWrite::LeaveSection { ns, reason }], Retry::Always);
    }
    fn commit(&mut self, out: &mut Actions) {
        let version = self.found.as_ref().and_then(|found| found.version.clone());
        let Some(version) = version else { return self.refresh(out) };
        self.step = Step::Entry;
        let mut b = DocBuilder::new();
        b.str("_configsvrCommitDropDatabase", &self.db).raw_doc("version", &version);
        append_majority(&mut b, "admin");
        out.call(SLOT, Target::ConfigServers, b.finish(), Retry::UntilRefused);
    }
    fn refresh(&mut self, out: &mut Actions) {
        self.step = Step::Refreshing;
        self.own(REFRESH, Retry::Always, out);
    }
    fn end(&mut self, result: Result<DocBuf, Error>, out: &mut Actions) {
        self.phase = Phase::Over;
        for (resource, _) in locks_of(&self.db) {
            out.release(resource);
        }
        out.done(result);
    }

    fn on_answer(&mut self, slot: Slot, reply: Result<DocBuf, Error>, out: &mut Actions) {
        match (self.step, reply) {
            (Step::Elsewhere, Err(e)) if e.code != ErrorCode::ShardNotFound => {
                out.rest(slot, limits::WORKFLOW_RETRY_MS as Millis);
            }
            (Step::Elsewhere, _) => {
                self.left.remove(&slot);
                self.unless_left(out);
            }
            // There are databases that nobody drops.
            (Step::Here, Err(e)) if e.code == ErrorCode::IllegalOperation => self.open(Err(e), out),
            (Step::Here, Err(_)) => out.rest(slot, limits::WORKFLOW_RETRY_MS as Millis),
            (Step::Here, Ok(_)) => {
                self.phase = Phase::Commit;
                match broken(Mutant::CommitNotSafe) {
                    true => self.commit(out),
                    false => out.checkpoint(),
                }
            }
            (Step::Entry, Err(e)) => self.open(Err(e), out),
            (Step::Entry, Ok(_)) => self.refresh(out),
            (Step::Refreshing, _) => self.open(Ok(DocBuf::default()), out),
            (Step::Collection | Step::Leaving | Step::Entering | Step::Opening, _) => {}
        }
    }
    fn rested(&mut self, slot: Slot, out: &mut Actions) {
        match self.step {
            Step::Elsewhere => self.ask(slot, out),
            _ => self.own(DROP_HERE, Retry::UntilRefused, out),
        }
    }
    fn on_event(&mut self, event: Event, out: &mut Actions) {
        if self.phase == Phase::Begin {
            return match (&event, failure(&event)) {
                (_, Some((_, why))) => self.end(Err(why.clone()), out),
                (Event::Answer { reply: Ok(reply), .. }, _) => self.looked(reply, out),
                _ => {}
            };
        }
        match (self.step, event) {
            (Step::Collection, event) => {
                let Some(dropping) = &mut self.dropping else { return };
                if dropping.step(event, out).is_some() {
                    dropping.leave(out);
                    self.step = Step::Leaving;
                }
            }
            (Step::Leaving, Event::Wrote { .. }) => {
                self.dropping = None;
                self.gone += 1;
                self.drop_next(out);
            }
            (Step::Entering, Event::Wrote { .. }) => self.drop_here(out),
            (Step::Opening, Event::Wrote { .. }) => {
                let result = self.result.take().unwrap_or_else(|| Ok(DocBuf::default()));
                self.end(result, out);
            }
            (_, Event::Answer { slot, reply }) => self.on_answer(slot, reply, out),
            (_, Event::Rested { slot }) => self.rested(slot, out),
            _ => {}
        }
    }
    fn looked(&mut self, reply: &RawDoc, out: &mut Actions) {
        self.found = Found::parse(reply);
        match self.found.is_some() {
            true => {
                self.phase = Phase::Drop;
                out.checkpoint();
            }
            false => self.end(Err(Error::internal("a definition without a number")), out),
        }
    }
}

impl Workflow for DropShardedDatabase {
    fn step(&mut self, _: Millis, event: Event, out: &mut Actions) {
        match event {
            Event::Begin => out.checkpoint(),
            Event::Durable | Event::Locked { .. } => {
                if let Event::Locked { .. } = event {
                    self.locks.taken();
                }
                if !self.locks.ask(out) {
                    self.go(out);
                }
            }
            // A client that waits no more stops nothing: others may have joined it.
            Event::Abort(_) => {}
            event => self.on_event(event, out),
        }
    }
    fn document(&self) -> Option<DocBuf> {
        let phase = Phase::KEPT.iter().find(|(phase, _)| *phase == self.phase).map_or("", |(_, text)| text);
        let mut b = DocBuilder::new();
        append_head(&mut b, &self.db, OPERATION, phase, &self.request, self.asked_by.as_deref());
        if let Some(found) = &self.found {
            found.append(&mut b);
        }
        Some(b.finish())
    }
    fn holds(&self) -> Vec<(Resource, Level)> {
        match self.phase {
            Phase::Begin => Vec::new(),
            _ => locks_of(&self.db),
        }
    }
    fn check(&self) {
        assert!(self.found.is_some() || self.phase == Phase::Begin || self.phase == Phase::Over);
        assert!(self.left.is_empty() || self.step == Step::Elsewhere);
        self.dropping.iter().for_each(Dropping::check);
    }
}
