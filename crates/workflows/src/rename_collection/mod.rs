//! `renameCollection`, on the primary shard of the database (SH-DDL-12, SYS-249).
//!
//! ```text
//!   begin: look ─► block: sections here ─► look ─► rename: other shards rename, this one renames ─► config servers ─► unblock: sections go ─► over
//!            │                           │     └──────────────── from here on it goes on for ever ────────────────┘
//!            └ may fail                  └ may fail: sections go
//! ```
//! * This node looks twice. What fails at once keeps nobody from a name; what is decided is decided behind the sections, since somebody may take
//!   the new name in between, and what he was told is there would have to make room.
//! * Every shard has a section of its own on both names while it renames: what it was sent by the old name before is renamed with the rest, and what
//!   comes later waits until the config servers know the new name.
//! * All shards take part, whether they own anything or not: one that owns nothing any more may still hold the collection, and would have it
//!   under the old name for ever.
//! * The checkpoint of `rename` is the point of no return. It says what is decided: which collection gets the name, which one makes room, and of which
//!   generation it will be; all attempts, on whichever primary, send the same.
//! * The checkpoint of `unblock` is on a majority before anybody may use the names again: a primary that begins at the one of `rename` enters the
//!   sections again. Shards remember that they were unblocked, by a number above this definition's: a command that comes late finds that.
//!
//! What is not sharded, and takes the place of nothing that is, is renamed here alone. Into another database of the same primary shard that is a
//! copy, whose UUID is decided with the rest: whoever finds the new name with that UUID has copied all there was, since the sections
//! still stand, and goes on with the drop of the source, which is a step of its own and comes behind.

pub mod mutants;

use crate::ddl::{
    Head, Locks, SHARDS, SLOT, append_asked_by, append_head, append_majority, doc_at, failure, nonsense, own,
    texts_at, timestamp_at, uuid_at,
};
use crate::{Actions, Concern, Event, Level, LocalWrite, Resource, Retry, Slot, Target, Workflow};
use mutants::{Mutant, broken};
use pando_base::{Error, ErrorCode, Millis, Namespace, OpTime, Result, Timestamp, limits};
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc, Value};
use std::collections::BTreeSet;

pub const OPERATION: &str = "renameCollection";
/// Steps of this node, all `{<step>: <ns>, to, request, …}`.
///
/// Whether it can be renamed so. ─► `{collectionUUID, timestamp, epoch?, targetUUID?, copyUUID?, shards}`: which collection, the number of this
/// definition, the epoch that it gets where it is sharded, the UUID of a sharded collection that makes room, the UUID of the copy where the new
/// name is in another database, and who else takes part.
pub const LOOK: &str = "lookAtRename";
/// The collection of that UUID gets the new name here; what has the name makes room.
pub const RENAME_HERE: &str = "renameHere";
/// Where the new name has a copy by now: `{<step>: <ns>, collectionUUID}`, the collection that was copied goes.
pub const DROP_SOURCE: &str = "dropRenamed";
/// `{<step>: <ns>}`: this node reads anew what it knows of a collection.
pub use crate::create_collection::REFRESH;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Phase {
    Begin,
    /// From here on there may be sections: the next primary has the locks before anybody else asks for them.
    Block,
    Rename,
    Unblock,
    Over,
}

impl Phase {
    const KEPT: [(Phase, &str); 4] = [
        (Phase::Begin, "begin"),
        (Phase::Block, "block"),
        (Phase::Rename, "rename"),
        (Phase::Unblock, "unblock"),
    ];
}

/// Within a phase.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Idle,
    BlockingWrites,
    BlockingReads,
    AwaitingSection,
    Elsewhere,
    Here,
    Dropping,
    Committing,
    Telling,
    Leaving,
    Refreshing,
}

/// What `look` has decided.
#[derive(Clone, Debug)]
struct Decided {
    uuid: pando_base::Uuid,
    at: Timestamp,
    /// `Some`: it is sharded.
    epoch: Option<ObjectId>,
    /// Of a sharded collection that makes room.
    target: Option<pando_base::Uuid>,
    /// `Some`: the new name is in another database.
    copy: Option<pando_base::Uuid>,
    shards: Vec<String>,
}

impl Decided {
    /// Of a state document, or of the answer of `look`.
    fn of(doc: &RawDoc) -> Option<Decided> {
        let epoch = match doc.get("epoch") {
            Some(Value::ObjectId(epoch)) => Some(epoch),
            _ => None,
        };
        Some(Decided {
            uuid: uuid_at(doc, "collectionUUID")?,
            at: timestamp_at(doc, "timestamp")?,
            epoch,
            target: uuid_at(doc, "targetUUID"),
            copy: uuid_at(doc, "copyUUID"),
            shards: texts_at(doc, "shards"),
        })
    }
    fn append(&self, b: &mut DocBuilder) {
        b.uuid("collectionUUID", &self.uuid.0).timestamp("timestamp", self.at);
        if let Some(epoch) = self.epoch {
            b.object_id("epoch", epoch);
        }
        if let Some(target) = self.target {
            b.uuid("targetUUID", &target.0);
        }
        if let Some(copy) = self.copy {
            b.uuid("copyUUID", &copy.0);
        }
    }
    /// Whether others have to do with it.
    fn concerns_the_cluster(&self) -> bool {
        self.epoch.is_some() || self.target.is_some()
    }
}

#[derive(Clone, Debug)]
struct RenameCollection {
    from: Namespace,
    to: Namespace,
    /// `{to, dropTarget, stayTemp, …}`
    request: DocBuf,
    asked_by: Option<DocBuf>,
    phase: Phase,
    step: Step,
    locks: Locks,
    decided: Option<Decided>,
    /// Shards that have not answered.
    left: BTreeSet<Slot>,
    /// Why this node would not rename what concerns nobody else.
    failure: Option<Error>,
}

/// Those of the databases, each once and shared, then both names, all in their order: whoever drops a database may already wait for it.
fn locks_of(from: &Namespace, to: &Namespace) -> Vec<(Resource, Level)> {
    let lock = |name: &str, level| (Resource::Definition(name.to_owned()), level);
    let databases = BTreeSet::from([from.db(), to.db()]).into_iter().map(|db| lock(db, Level::Shared));
    let names = BTreeSet::from([from.as_str(), to.as_str()]).into_iter();
    databases.chain(names.map(|ns| lock(ns, Level::Exclusive))).collect()
}

pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    let head = Head::parse(state)?;
    let from = head.ns()?;
    let to = head.request.get("to").and_then(|v| v.as_str().map(Namespace::parse));
    let to = to.ok_or_else(|| nonsense(state))??;
    let phase = Phase::KEPT.iter().find(|(_, text)| *text == head.phase).map(|(phase, _)| *phase);
    let phase = phase.ok_or_else(|| nonsense(state))?;
    let decided = Decided::of(state);
    if (phase > Phase::Block) != decided.is_some() {
        return Err(nonsense(state));
    }
    let failure = doc_at(state, "failure").and_then(|why| {
        let code = i32::try_from(why.get("code")?.as_i64()?).ok()?;
        Some(Error::new(ErrorCode(code), why.get("errmsg")?.as_str()?.to_owned()))
    });
    Ok(Box::new(RenameCollection {
        locks: Locks::new(locks_of(&from, &to)),
        from,
        to,
        request: head.request,
        asked_by: head.asked_by,
        phase,
        step: Step::Idle,
        decided,
        left: BTreeSet::new(),
        failure,
    }))
}

/// The `command` of what the sections are for.
pub const SECTION: &str = "rename";

/// Whose the sections are, on every shard.
pub fn reason(from: &Namespace, to: &str) -> DocBuf {
    let mut b = DocBuilder::new();
    b.str("command", SECTION).str("from", from.as_str()).str("to", to);
    b.finish()
}

impl RenameCollection {
    fn begin_phase(&mut self, phase: Phase, out: &mut Actions) {
        self.phase = phase;
        self.step = Step::Idle;
        let skips = match phase {
            Phase::Rename => broken(Mutant::NoPointOfNoReturn),
            Phase::Unblock => broken(Mutant::OpensBeforeItIsSafe),
            _ => false,
        };
        match skips {
            true => self.go(out),
            false => out.checkpoint(),
        }
    }
    /// Where a phase begins, be it here or after a failover.
    fn go(&mut self, out: &mut Actions) {
        match self.phase {
            Phase::Begin => self.look(out),
            Phase::Block => self.enter(Step::BlockingWrites, out),
            Phase::Rename if broken(Mutant::NotBlocked) => self.rename_elsewhere(out),
            Phase::Rename => self.enter(Step::BlockingWrites, out),
            Phase::Unblock => self.tell(out),
            Phase::Over => {}
        }
    }
    fn look(&self, out: &mut Actions) {
        let mut b = own(LOOK, &self.from);
        b.str("to", self.to.as_str()).raw_doc("request", &self.request);
        append_asked_by(&mut b, self.asked_by.as_deref());
        out.call(SLOT, Target::Own, b.finish(), Retry::Transient);
    }
    /// Nothing is renamed.
    fn give_up(&mut self, why: Error, out: &mut Actions) {
        match (self.phase, self.step) {
            (Phase::Begin, _) | (_, Step::Leaving) => self.end(Err(why), out),
            _ => {
                self.failure = Some(why);
                self.leave(out);
            }
        }
    }
    fn looked(&mut self, reply: &RawDoc, out: &mut Actions) {
        let decided = Decided::of(reply);
        match (decided.is_some(), self.phase) {
            (false, _) => self.give_up(Error::internal("a definition without a number"), out),
            (true, Phase::Begin) if !broken(Mutant::LooksOnce) => self.begin_phase(Phase::Block, out),
            (true, _) => {
                self.decided = decided;
                self.begin_phase(Phase::Rename, out);
            }
        }
    }
    fn concerns_the_cluster(&self) -> bool {
        self.decided.as_ref().is_some_and(Decided::concerns_the_cluster)
    }
    /// First those who write are waited for; whoever only reads need not wait for them.
    fn enter(&mut self, step: Step, out: &mut Actions) {
        self.step = step;
        let block_reads = step == Step::BlockingReads;
        let enter = |ns: &Namespace| LocalWrite::EnterSection {
            ns: ns.clone(),
            reason: reason(&self.from, self.to.as_str()),
            block_reads,
        };
        let writes = vec![enter(&self.from), enter(&self.to)];
        out.write(SLOT, writes, Retry::Always);
    }
    fn wrote(&mut self, at: Option<OpTime>, out: &mut Actions) {
        match self.step {
            Step::BlockingWrites if self.phase == Phase::Block => self.look(out),
            Step::BlockingWrites => self.enter(Step::BlockingReads, out),
            Step::BlockingReads if broken(Mutant::SectionNotSafe) => self.rename_elsewhere(out),
            Step::BlockingReads => {
                self.step = Step::AwaitingSection;
                out.await_replicated(SLOT, at.unwrap_or(OpTime::NULL), Concern::Majority, 0);
            }
            Step::Leaving if self.phase == Phase::Block => {
                let why = self.failure.take().unwrap_or_else(|| Error::internal("given up for nothing"));
                self.end(Err(why), out);
            }
            Step::Leaving => self.refresh(out),
            _ => {}
        }
    }

    fn rename_elsewhere(&mut self, out: &mut Actions) {
        self.step = Step::Elsewhere;
        self.ask_all(out);
    }
    fn ask_all(&mut self, out: &mut Actions) {
        self.left.clear();
        if self.concerns_the_cluster() {
            let shards = self.decided.iter().flat_map(|d| &d.shards);
            self.left = (SHARDS..).zip(shards).map(|(slot, _)| slot).collect();
        }
        for slot in self.left.clone() {
            self.ask(slot, out);
        }
        self.unless_left(out);
    }
    fn ask(&self, slot: Slot, out: &mut Actions) {
        let Some(decided) = &self.decided else { return };
        let Some(shard) = decided.shards.get((slot - SHARDS) as usize) else { return };
        let mut b = DocBuilder::new();
        let command = match self.step {
            Step::Telling => "_shardsvrRenameCollectionParticipantUnblock",
            _ => "_shardsvrRenameCollectionParticipant",
        };
        b.str(command, self.from.coll()).str("to", self.to.as_str());
        b.uuid("sourceUUID", &decided.uuid.0);
        if !broken(Mutant::NoNumber) {
            b.timestamp("timestamp", decided.at);
        }
        append_majority(&mut b, self.from.db());
        out.call(slot, Target::Shard(shard.clone()), b.finish(), Retry::UntilRefused);
    }
    fn on_answer(&mut self, slot: Slot, failure: Option<&Error>, out: &mut Actions) {
        // A shard that has left the cluster has nothing any more.
        let matters = failure.is_some_and(|e| e.code != ErrorCode::ShardNotFound);
        if matters && !broken(Mutant::RefusedIsDone) {
            return out.rest(slot, limits::WORKFLOW_RETRY_MS as i64);
        }
        self.left.remove(&slot);
        self.unless_left(out);
    }
    fn unless_left(&mut self, out: &mut Actions) {
        match self.step {
            _ if !self.left.is_empty() => {}
            Step::Telling => self.leave(out),
            _ => self.rename_here(out),
        }
    }
    fn rename_here(&mut self, out: &mut Actions) {
        self.step = Step::Here;
        let Some(decided) = &self.decided else { return };
        let mut b = own(RENAME_HERE, &self.from);
        b.str("to", self.to.as_str()).raw_doc("request", &self.request);
        decided.append(&mut b);
        append_asked_by(&mut b, self.asked_by.as_deref());
        // This node may refuse what concerns nobody else.
        let retry = if decided.concerns_the_cluster() { Retry::Always } else { Retry::UntilRefused };
        out.call(SLOT, Target::Own, b.finish(), retry);
    }
    /// Behind the copy, if it is one: the source is dropped here for good.
    fn drop_source(&mut self, out: &mut Actions) {
        let Some(decided) = self.decided.as_ref().filter(|d| d.copy.is_some()) else {
            return self.commit(out);
        };
        self.step = Step::Dropping;
        let mut b = own(DROP_SOURCE, &self.from);
        b.uuid("collectionUUID", &decided.uuid.0);
        append_asked_by(&mut b, self.asked_by.as_deref());
        out.call(SLOT, Target::Own, b.finish(), Retry::Always);
    }
    fn commit(&mut self, out: &mut Actions) {
        let Some(decided) = self.decided.as_ref().filter(|d| d.concerns_the_cluster()) else {
            return self.begin_phase(Phase::Unblock, out);
        };
        self.step = Step::Committing;
        let mut b = DocBuilder::new();
        b.str("_configsvrRenameCollectionMetadata", self.from.as_str()).str("to", self.to.as_str());
        decided.append(&mut b);
        append_majority(&mut b, "admin");
        out.call(SLOT, Target::ConfigServers, b.finish(), Retry::Always);
    }
    /// The others leave their sections.
    fn tell(&mut self, out: &mut Actions) {
        self.step = Step::Telling;
        match broken(Mutant::OthersStayBlocked) {
            true => self.leave(out),
            false => self.ask_all(out),
        }
    }
    fn leave(&mut self, out: &mut Actions) {
        self.step = Step::Leaving;
        let leave = |ns: &Namespace| LocalWrite::LeaveSection {
            ns: ns.clone(),
            reason: reason(&self.from, self.to.as_str()),
        };
        let writes = vec![leave(&self.from), leave(&self.to)];
        out.write(SLOT, writes, Retry::Always);
    }
    fn refresh(&mut self, out: &mut Actions) {
        self.step = Step::Refreshing;
        out.call(SLOT, Target::Own, own(REFRESH, &self.to).finish(), Retry::Never);
    }

    fn answered(&mut self, slot: Slot, reply: Result<DocBuf, Error>, out: &mut Actions) {
        match (self.phase, self.step, reply) {
            (Phase::Begin | Phase::Block, _, Ok(reply)) => self.looked(&reply, out),
            (Phase::Begin | Phase::Block, _, Err(why)) => self.give_up(why, out),
            (_, Step::Elsewhere | Step::Telling, reply) => self.on_answer(slot, reply.as_ref().err(), out),
            (_, Step::Here, Err(_)) if broken(Mutant::DropsWhatWasNotCopied) => self.drop_source(out),
            (_, Step::Here, Ok(_)) => self.drop_source(out),
            (_, Step::Dropping, _) => self.commit(out),
            (_, Step::Here, Err(why)) => {
                self.failure = Some(why);
                self.begin_phase(Phase::Unblock, out);
            }
            (_, Step::Committing, _) => self.begin_phase(Phase::Unblock, out),
            (_, Step::Refreshing, _) => {
                let result = self.failure.clone().map_or_else(|| Ok(DocBuf::default()), Err);
                self.end(result, out);
            }
            _ => {}
        }
    }
    fn end(&mut self, result: Result<DocBuf, Error>, out: &mut Actions) {
        self.phase = Phase::Over;
        for (resource, _) in locks_of(&self.from, &self.to).into_iter().rev() {
            out.release(resource);
        }
        out.done(result);
    }
}

impl Workflow for RenameCollection {
    fn step(&mut self, _: Millis, event: Event, out: &mut Actions) {
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
            Event::Wrote { result: Ok(at), .. } => self.wrote(at, out),
            Event::Replicated { result, .. } if self.step == Step::AwaitingSection => match result {
                Ok(_) => self.rename_elsewhere(out),
                // Nobody waits for longer than this node is primary.
                Err(_) => self.enter(Step::BlockingWrites, out),
            },
            Event::Rested { slot } if matches!(self.step, Step::Elsewhere | Step::Telling) => {
                self.ask(slot, out);
            }
            Event::Answer { slot, reply } => self.answered(slot, reply, out),
            // A client that waits no more stops nothing: others may have joined it.
            Event::Abort(_) => {}
            event => {
                if let (Phase::Begin | Phase::Block, Some((_, why))) = (self.phase, failure(&event)) {
                    self.give_up(why.clone(), out);
                }
            }
        }
    }
    fn document(&self) -> Option<DocBuf> {
        let phase = Phase::KEPT.iter().find(|(phase, _)| *phase == self.phase).map_or("", |(_, text)| text);
        let mut b = DocBuilder::new();
        append_head(&mut b, self.from.as_str(), OPERATION, phase, &self.request, self.asked_by.as_deref());
        if let Some(decided) = &self.decided {
            decided.append(&mut b);
            b.array("shards", |list| decided.shards.iter().for_each(|shard| _ = list.str(shard)));
        }
        if let (Some(why), Phase::Unblock) = (&self.failure, self.phase) {
            b.doc("failure", |d| _ = d.i32("code", why.code.0).str("errmsg", &why.message));
        }
        Some(b.finish())
    }
    fn holds(&self) -> Vec<(Resource, Level)> {
        match self.phase {
            Phase::Begin => Vec::new(),
            _ => locks_of(&self.from, &self.to),
        }
    }
    fn check(&self) {
        assert!(self.decided.is_some() || matches!(self.phase, Phase::Begin | Phase::Block | Phase::Over));
        assert!(self.left.is_empty() || matches!(self.step, Step::Elsewhere | Step::Telling));
        assert!(self.failure.is_none() || !self.concerns_the_cluster(), "half of it was refused");
    }
}
