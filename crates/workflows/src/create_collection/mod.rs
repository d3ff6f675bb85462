//! `shardCollection` on the primary shard of the database (SH-DDL-7).
//!
//! ```text
//!   check ─► blockWrites, create ──────────────────► commit ─► settle ─► over
//!     │          │                                     │  └ refused ─► is it done all the same? ─ yes ─► settle
//!     ▼          ▼                                     │                                        └ no ──► rollBack
//!    over     rollBack                                 └── goes on for ever where nobody answers
//!
//!   section      writes blocked ──────┬── reads, too ──────────┬── gone, behind the checkpoint of `settle`
//! ```
//! * `check` may fail, and leaves nothing.
//! * `blockWrites` makes collection and index here, and decides what the collection will be: UUID, epoch, timestamp, chunks.
//! * `create` has the shards make it that begin with a part, then blocks reads. A primary that ends here leaves collections that nobody
//!   routes to, and the next one decides anew, under a higher number.
//! * The checkpoint of `commit` says what was decided: all attempts from now on, on whichever primary, send the same. It is the point
//!   of no return: a commit that was sent cannot be called back. Whoever wants to give it up has the config servers refuse it for ever
//!   first, and hears then whether it was made.

pub mod mutants;

use crate::ddl::{
    Head, Locks, SHARDS, SLOT, append_asked_by, append_head, append_majority, array_at, doc_at, failure,
    nonsense, own, texts_at, timestamp_at, uuid_at,
};
use crate::{Actions, Event, Level, LocalWrite, Resource, Retry, Slot, Target, Workflow};
use mutants::{Mutant, broken};
use pando_base::{Error, ErrorCode, Millis, Namespace, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use std::collections::BTreeSet;

pub const OPERATION: &str = "createCollection";
/// Steps of this node: `{<step>: <ns>, request}`. The first answers nothing, or `{already: <result>}`; the second a definition.
pub const CHECK: &str = "checkCreateCollection";
pub const MAKE: &str = "makeCollection";
/// `{<step>: <ns>}`: has this node read anew what it knows of a collection.
pub const REFRESH: &str = "refreshCollection";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Phase {
    Check,
    BlockWrites,
    /// Nobody begins with this one: until it is to be committed, a definition may be decided anew.
    Create,
    Commit,
    Settle,
    /// Nor with this one.
    GiveUp,
    /// Kept behind a commit that was given up: it must not be sent again, where there is no section any more.
    RollBack,
    Over,
}

impl Phase {
    const KEPT: [(Phase, &str); 5] = [
        (Phase::Check, "begin"),
        (Phase::BlockWrites, "blockWrites"),
        (Phase::Commit, "commit"),
        (Phase::Settle, "settle"),
        (Phase::RollBack, "rollBack"),
    ];
}

#[derive(Clone, Debug)]
struct CreateCollection {
    ns: Namespace,
    request: DocBuf,
    asked_by: Option<DocBuf>,
    phase: Phase,
    locks: Locks,
    /// What `makeCollection` has answered: `{collection, chunks, options, indexes, shards}`; `shards` are the others that own a part.
    definition: Option<DocBuf>,
    /// Shards that have not answered.
    left: BTreeSet<Slot>,
    /// What the client is told: behind the commit, or where it fails.
    result: Option<Result<DocBuf, Error>>,
}

pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    let head = Head::parse(state)?;
    let ns = head.ns()?;
    let phase = Phase::KEPT.iter().find(|(_, text)| *text == head.phase).map(|(phase, _)| *phase);
    let phase = phase.ok_or_else(|| nonsense(state))?;
    let definition = doc_at(state, "definition");
    let result =
        doc_at(state, "result").map(Ok).or_else(|| doc_at(state, "failure").map(|e| Err(error_of(&e))));
    if (phase >= Phase::Commit) != definition.is_some() || (phase >= Phase::Settle) != result.is_some() {
        return Err(nonsense(state));
    }
    Ok(Box::new(CreateCollection {
        locks: Locks::new(Locks::of_collection(&ns)),
        ns,
        request: head.request,
        asked_by: head.asked_by,
        phase,
        definition,
        left: BTreeSet::new(),
        result,
    }))
}

fn error_of(doc: &RawDoc) -> Error {
    let code = doc.get("code").and_then(|v| v.as_i64()).and_then(|code| i32::try_from(code).ok());
    let text = doc.get("errmsg").and_then(|v| v.as_str()).unwrap_or_default().to_owned();
    Error::new(code.map_or(ErrorCode::InternalError, ErrorCode), text)
}

impl CreateCollection {
    fn begin_phase(&mut self, phase: Phase, out: &mut Actions) {
        self.phase = phase;
        out.checkpoint();
    }
    /// Where a phase begins, be it here or after a failover.
    fn go(&mut self, out: &mut Actions) {
        match self.phase {
            Phase::Check => self.own_step(CHECK, out),
            Phase::BlockWrites => self.enter_section(false, out),
            Phase::Commit => self.commit(false, out),
            Phase::Settle | Phase::RollBack => self.leave_section(out),
            Phase::Create | Phase::GiveUp | Phase::Over => {}
        }
    }
    fn own_step(&self, step: &str, out: &mut Actions) {
        let mut b = own(step, &self.ns);
        b.raw_doc("request", &self.request);
        append_asked_by(&mut b, self.asked_by.as_deref());
        out.call(SLOT, Target::Own, b.finish(), Retry::Transient);
    }

    fn reason(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.str("command", "shardCollection").str("ns", self.ns.as_str());
        b.finish()
    }
    fn enter_section(&self, block_reads: bool, out: &mut Actions) {
        let (ns, reason) = (self.ns.clone(), self.reason());
        out.write(SLOT, vec![LocalWrite::EnterSection { ns, reason, block_reads }], Retry::Never);
    }
    fn leave_section(&self, out: &mut Actions) {
        let (ns, reason) = (self.ns.clone(), self.reason());
        out.write(SLOT, vec![LocalWrite::LeaveSection { ns, reason }], Retry::Always);
    }
    /// The section needs no wait of its own: nobody else hears of anything before the next checkpoint, which comes behind it.
    fn on_wrote(&mut self, out: &mut Actions) {
        match self.phase {
            Phase::BlockWrites => self.own_step(MAKE, out),
            Phase::Create if broken(Mutant::NoPointOfNoReturn) => {
                self.phase = Phase::Commit;
                self.commit(false, out);
            }
            Phase::Create => self.begin_phase(Phase::Commit, out),
            Phase::Settle => self.tell(out),
            Phase::RollBack => self.end(out),
            other => panic!("a write in {other:?}"),
        }
    }

    fn field(&self, name: &str) -> DocBuf {
        let definition = self.definition.as_deref().unwrap_or(RawDoc::empty());
        doc_at(definition, name).or_else(|| array_at(definition, name)).unwrap_or_default()
    }
    fn shards(&self) -> Vec<String> {
        texts_at(self.definition.as_deref().unwrap_or(RawDoc::empty()), "shards")
    }
    fn create_elsewhere(&mut self, out: &mut Actions) {
        let entry = self.field("collection");
        let mut b = DocBuilder::new();
        b.str("_shardsvrCreateCollectionParticipant", self.ns.coll());
        if let Some(uuid) = uuid_at(&entry, "uuid") {
            b.uuid("collectionUUID", &uuid.0);
        }
        b.raw_doc("options", &self.field("options")).raw_array("indexes", &self.field("indexes"));
        if let Some(at) = timestamp_at(&entry, "timestamp") {
            b.timestamp("timestamp", at);
        }
        append_majority(&mut b, self.ns.db());
        let body = b.finish();
        self.left.clear();
        for (slot, shard) in (SHARDS..).zip(self.shards()) {
            self.left.insert(slot);
            out.call(slot, Target::Shard(shard), body.clone(), Retry::Transient);
        }
        self.unless_left(out);
    }
    fn unless_left(&mut self, out: &mut Actions) {
        if !self.left.is_empty() {
            return;
        }
        match self.phase {
            Phase::Create => match broken(Mutant::ReadsGoOn) {
                true => self.begin_phase(Phase::Commit, out),
                false => self.enter_section(true, out),
            },
            _ => self.end(out),
        }
    }

    fn commit(&self, give_up: bool, out: &mut Actions) {
        let mut b = DocBuilder::new();
        b.i32("_configsvrCommitShardCollection", 1).raw_doc("collection", &self.field("collection"));
        b.raw_array("chunks", &self.field("chunks"));
        if give_up {
            b.bool("giveUp", true);
        }
        append_majority(&mut b, "admin");
        let retry = if give_up { Retry::Always } else { Retry::UntilRefused };
        out.call(SLOT, Target::ConfigServers, b.finish(), retry);
    }
    fn committed(&mut self, reply: &RawDoc, out: &mut Actions) {
        let mut b = DocBuilder::new();
        if let Some(version) = doc_at(reply, "collectionVersion") {
            b.raw_doc("collectionVersion", &version);
        }
        if let Some(uuid) = uuid_at(&self.field("collection"), "uuid") {
            b.uuid("collectionUUID", &uuid.0);
        }
        self.result = Some(Ok(b.finish()));
        match broken(Mutant::OpensBeforeItIsSafe) {
            true => {
                self.phase = Phase::Settle;
                self.leave_section(out);
            }
            false => self.begin_phase(Phase::Settle, out),
        }
    }
    /// Owners read anew what they know. Whoever misses it learns when the next request comes.
    fn tell(&mut self, out: &mut Actions) {
        self.left.clear();
        let mut b = DocBuilder::new();
        b.str("_flushRoutingTableCacheUpdates", self.ns.as_str()).bool("syncFromConfig", true);
        b.str("$db", "admin");
        let body = b.finish();
        for (slot, shard) in (SHARDS..).zip(self.shards()) {
            self.left.insert(slot);
            out.call(slot, Target::Shard(shard), body.clone(), Retry::Never);
        }
        self.left.insert(SLOT);
        out.call(SLOT, Target::Own, own(REFRESH, &self.ns).finish(), Retry::Never);
    }

    fn on_answer(&mut self, slot: Slot, reply: &RawDoc, out: &mut Actions) {
        match self.phase {
            Phase::Check => match doc_at(reply, "already") {
                Some(result) => {
                    self.result = Some(Ok(result));
                    self.end(out);
                }
                None => self.begin_phase(Phase::BlockWrites, out),
            },
            Phase::BlockWrites => {
                self.definition = Some(reply.to_buf());
                self.phase = Phase::Create;
                self.create_elsewhere(out);
            }
            Phase::Create | Phase::Settle => {
                self.left.remove(&slot);
                self.unless_left(out);
            }
            Phase::Commit => self.committed(reply, out),
            Phase::GiveUp if doc_at(reply, "collectionVersion").is_some() => self.committed(reply, out),
            Phase::GiveUp => match broken(Mutant::OpensBeforeItIsSafe) {
                true => self.roll_back(out),
                false => self.begin_phase(Phase::RollBack, out),
            },
            Phase::RollBack | Phase::Over => {}
        }
    }
    fn failed(&mut self, slot: Slot, why: &Error, out: &mut Actions) {
        match self.phase {
            // Nobody has to hear of it.
            Phase::Settle => {
                self.left.remove(&slot);
                self.unless_left(out);
            }
            Phase::Commit => {
                self.result = Some(Err(why.clone()));
                match broken(Mutant::RefusalIsBelieved) {
                    true => self.roll_back(out),
                    false => {
                        self.phase = Phase::GiveUp;
                        self.commit(true, out);
                    }
                }
            }
            Phase::Check => {
                self.result = Some(Err(why.clone()));
                self.end(out);
            }
            _ => {
                for slot in std::mem::take(&mut self.left) {
                    out.cancel(slot);
                }
                self.result = Some(Err(why.clone()));
                self.roll_back(out);
            }
        }
    }
    fn roll_back(&mut self, out: &mut Actions) {
        self.phase = Phase::RollBack;
        match broken(Mutant::SectionStays) {
            true => self.end(out),
            false => self.leave_section(out),
        }
    }
    fn end(&mut self, out: &mut Actions) {
        self.phase = Phase::Over;
        for (resource, _) in Locks::of_collection(&self.ns).into_iter().rev() {
            out.release(resource);
        }
        let lost = || Err(Error::new(ErrorCode::InternalError, "a definition without a result"));
        out.done(self.result.clone().unwrap_or_else(lost));
    }
}

impl Workflow for CreateCollection {
    fn step(&mut self, _: Millis, event: Event, out: &mut Actions) {
        if let Some((slot, why)) = failure(&event) {
            return self.failed(slot, why, out);
        }
        match event {
            Event::Begin => out.checkpoint(),
            Event::Durable | Event::Locked { .. } => {
                if let Event::Locked { .. } = event {
                    self.locks.taken();
                }
                if broken(Mutant::Unlocked) || !self.locks.ask(out) {
                    self.go(out);
                }
            }
            Event::Wrote { result: Ok(_), .. } => self.on_wrote(out),
            Event::Answer { slot, reply: Ok(reply) } => self.on_answer(slot, &reply, out),
            // A client that waits no more stops nothing: others may have joined it.
            _ => {}
        }
    }
    fn document(&self) -> Option<DocBuf> {
        let phase = Phase::KEPT.iter().find(|(phase, _)| *phase == self.phase).map_or("", |(_, text)| text);
        let mut b = DocBuilder::new();
        append_head(&mut b, self.ns.as_str(), OPERATION, phase, &self.request, self.asked_by.as_deref());
        if let Some(definition) = &self.definition {
            b.raw_doc("definition", definition);
        }
        if let (Phase::Settle, Some(Ok(result))) = (self.phase, &self.result) {
            b.raw_doc("result", result);
        }
        if let (Phase::RollBack, Some(Err(why))) = (self.phase, &self.result) {
            b.doc("failure", |d| _ = d.i32("code", why.code.0).str("errmsg", &why.message));
        }
        Some(b.finish())
    }
    fn holds(&self) -> Vec<(Resource, Level)> {
        match self.phase {
            Phase::Check => Vec::new(),
            _ => Locks::of_collection(&self.ns),
        }
    }
    fn check(&self) {
        assert!(self.definition.is_some() || self.phase < Phase::Create || self.phase > Phase::Settle);
        assert!(self.left.is_empty() || matches!(self.phase, Phase::Create | Phase::Settle));
        assert!(self.result.is_some() || self.phase < Phase::Settle);
    }
}
