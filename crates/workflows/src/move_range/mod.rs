//! A migration, as its donor sees it (SH-MIG-1 to SH-MIG-19). See [`migration`](crate::migration) for both sides.
//!
//! ```text
//!   begin ─► look ─► clone: task ─► record ─► start ─► status… ─► section: writes ─► drained ─► section: reads ─► number
//!                      │ whoever finds this phase gives up: what was recorded is lost                                │
//!                      ▼                                                                                             ▼
//!                   aborted ◄──────────── the range stayed ◄── fence ◄── refused ◄────────────────────────── commit ─┤
//!                      │                                                                                             ▼
//!                      └─► section goes, recipient told once, no task ─► over ◄─ task ready ◄─ released ◄─ committed ┘
//! ```
//! Writes are blocked from `section: writes` to the end of the section, reads from `section: reads`.

pub mod mutants;

use crate::ddl::{SLOT, append_majority, doc_at, timestamp_at};
use crate::migration::{self, Clean, Migration, Progress, parse};
use crate::{Actions, Concern, Event, Retry, Slot, Target, Workflow};
use mutants::{Mutant, broken};
use pando_base::{Error, ErrorCode, Millis, OpTime, Result, Timestamp, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc};

/// Steps of this node, all `{<step>: <ns>, migrationId, range, …}`.
///
/// With the `request` of the state document ─► what the config servers say of the range, if it may move: `{collectionUuid, keyPattern, chunk: {min, max, version}, collectionVersion}`.
pub const LOOK: &str = "lookAtRange";
/// From now on what is written in the range is kept for the recipient.
pub const RECORD: &str = "recordRange";
/// ─► `{timestamp}`: of an entry in this shard's log.
pub const NUMBER: &str = "numberMigration";
/// ─► `{moved}`: who owns the range, as the config servers say.
pub const RESOLVE: &str = "resolveMigration";
/// With `committed`: nothing is recorded any more, and what this node knows of who owns what is not of before.
pub const LET_GO: &str = "letGoOfRange";

/// The recipient is told while the section goes.
const RECIPIENT: Slot = 1;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Phase {
    Begin,
    Clone,
    Commit,
    Committed,
    Aborted,
    Over,
}

impl Phase {
    const KEPT: [(Phase, &str); 5] = [
        (Phase::Begin, "begin"),
        (Phase::Clone, "clone"),
        (Phase::Commit, "commit"),
        (Phase::Committed, "committed"),
        (Phase::Aborted, "aborted"),
    ];
}

/// Within a phase: what is under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Idle,
    Looking,
    Tasking,
    TaskSafe,
    Recording,
    Starting,
    Polling,
    BlockingWrites,
    Draining,
    BlockingReads,
    Numbering,
    Committing,
    Fencing,
    Resolving,
    LettingGo,
    Parting,
    Tidying,
}

/// What `look` has found.
#[derive(Clone, PartialEq, Debug)]
struct Before {
    /// `{min, max, version}` of the chunk that the range is a part of.
    chunk: DocBuf,
    collection_version: DocBuf,
}

/// The machine.
#[derive(Clone, Debug)]
pub struct MoveRange {
    migration: Migration,
    /// What was asked for besides the range: `{waitForDelete, maxChunkSizeBytes, forceJumbo, openEnded, openStart}`.
    request: DocBuf,
    phase: Phase,
    step: Step,
    before: Option<Before>,
    valid_after: Option<Timestamp>,
    why: Option<(ErrorCode, String)>,
    /// `clone` began in this life: what is written meanwhile is recorded.
    recorded: bool,
    since: Millis,
    /// Somebody wants it to end while something is under way that must not be cut off.
    stop: Option<Error>,
    /// Of parting: the section is gone, the recipient has answered.
    left: bool,
    released: bool,
}

/// What an instance starts from: `{_id, nss, donorShardId, recipientShardId, range, request}`.
pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    Ok(Box::new(MoveRange::of(state)?))
}

impl MoveRange {
    /// Whoever has asked waits until the range is deleted: readers on secondaries get no time for that.
    fn is_waited_for(&self) -> bool {
        self.request.get("waitForDelete").is_some_and(|v| v.is_truthy())
    }
    pub fn of(state: &RawDoc) -> Result<MoveRange> {
        let text = state.get("phase").and_then(|v| v.as_str().map(str::to_owned));
        let text = text.as_deref().unwrap_or("begin");
        let phase = Phase::KEPT.iter().find(|(_, known)| *known == text).map(|(phase, _)| *phase);
        let phase = phase.ok_or_else(|| migration::nonsense(state))?;
        let before = doc_at(state, "chunk").zip(doc_at(state, "preMigrationCollectionVersion"));
        let why = doc_at(state, "abortReason").and_then(|why| {
            let code = i32::try_from(why.get("code")?.as_i64()?).ok()?;
            Some((ErrorCode(code), why.get("errmsg")?.as_str()?.to_owned()))
        });
        let valid_after = timestamp_at(state, "validAfter");
        if (phase > Phase::Begin) != before.is_some()
            || (phase == Phase::Aborted) != why.is_some()
            || matches!(phase, Phase::Commit | Phase::Committed) && valid_after.is_none()
        {
            return Err(migration::nonsense(state));
        }
        Ok(MoveRange {
            migration: parse(state)?,
            request: doc_at(state, "request").unwrap_or_default(),
            phase,
            step: Step::Idle,
            before: before.map(|(chunk, collection_version)| Before { chunk, collection_version }),
            valid_after,
            why,
            recorded: false,
            since: 0,
            stop: None,
            left: false,
            released: false,
        })
    }

    fn own(&self, step: &str, retry: Retry, out: &mut Actions) {
        let mut b = self.migration.command(step);
        self.migration.append(&mut b);
        out.call(SLOT, Target::Own, b.finish(), retry);
    }
    fn begin_phase(&mut self, phase: Phase, out: &mut Actions) {
        self.phase = phase;
        self.step = Step::Idle;
        let unsafe_ = phase == Phase::Commit && broken(Mutant::CommitNotSafe)
            || phase == Phase::Committed && broken(Mutant::DecisionNotSafe);
        match unsafe_ {
            true => self.go(out),
            false => out.checkpoint(),
        }
    }
    /// What the phase begins with, in whichever life.
    fn go(&mut self, out: &mut Actions) {
        match self.phase {
            Phase::Begin => {
                self.step = Step::Looking;
                let mut b = self.migration.command(LOOK);
                self.migration.append(&mut b);
                b.raw_doc("request", &self.request);
                out.call(SLOT, Target::Own, b.finish(), Retry::Transient);
            }
            Phase::Clone if self.recorded || broken(Mutant::CloneOutlivesItsRecord) => {
                self.step = Step::Tasking;
                out.write(SLOT, vec![self.migration.deletion(Clean::Pending)], Retry::Transient);
            }
            Phase::Clone => {
                let text = "the migration was given up, since the donor's primary changed";
                self.give_up(Error::new(ErrorCode::InterruptedDueToReplStateChange, text), out);
            }
            Phase::Commit => self.commit(out),
            Phase::Committed | Phase::Aborted => {
                self.step = Step::LettingGo;
                let mut b = self.migration.command(LET_GO);
                self.migration.append(&mut b);
                b.bool("committed", self.phase == Phase::Committed);
                out.call(SLOT, Target::Own, b.finish(), Retry::Always);
                (self.left, self.released) = (false, false);
                self.tell_recipient(out);
            }
            Phase::Over => {}
        }
    }
    fn looked(&mut self, reply: &RawDoc, out: &mut Actions) {
        let uuid = crate::ddl::uuid_at(reply, "collectionUuid");
        let version = doc_at(reply, "collectionVersion");
        match (uuid, doc_at(reply, "keyPattern"), doc_at(reply, "chunk").zip(version)) {
            (Some(uuid), Some(key), Some((chunk, collection_version))) => {
                (self.migration.uuid, self.migration.key) = (uuid, key);
                self.before = Some(Before { chunk, collection_version });
                self.recorded = true;
                self.begin_phase(Phase::Clone, out);
            }
            _ => self.end(Err(Error::internal(format!("no range was found: {reply}"))), out),
        }
    }
    fn start(&mut self, out: &mut Actions) {
        self.step = Step::Starting;
        let mut b = self.migration.command(migration::START);
        self.migration.append(&mut b);
        b.raw_doc("request", &self.request);
        append_majority(&mut b, "admin");
        out.call(SLOT, Target::Shard(self.migration.recipient.clone()), b.finish(), Retry::Transient);
    }
    fn poll(&mut self, out: &mut Actions) {
        self.step = Step::Polling;
        self.migration.call(SLOT, &self.migration.recipient, migration::STATUS, Retry::Transient, out);
    }
    fn polled(&mut self, now: Millis, reply: &RawDoc, out: &mut Actions) {
        match Progress::parse(reply) {
            Progress::Steady => self.block(false, out),
            Progress::Underway if now.saturating_sub(self.since) > limits::MIGRATION_MS_MAX as Millis => {
                let text = "the recipient did not catch up in time";
                self.give_up(Error::new(ErrorCode::ExceededTimeLimit, text), out);
            }
            Progress::Underway => out.rest(SLOT, limits::MIGRATION_POLL_MS as Millis),
            Progress::Failed => {
                let why = reply.get("errmsg").and_then(|v| v.as_str().map(str::to_owned));
                let text = why.unwrap_or_else(|| "the recipient gave the migration up".to_owned());
                self.give_up(Error::new(ErrorCode::OperationFailed, text), out);
            }
        }
    }
    fn block(&mut self, reads: bool, out: &mut Actions) {
        if reads && broken(Mutant::ReadsGoOn) {
            return self.number(out);
        }
        if !reads && broken(Mutant::WritesGoOn) {
            return self.drain(out);
        }
        self.step = if reads { Step::BlockingReads } else { Step::BlockingWrites };
        out.write(SLOT, vec![self.migration.enter(reads)], Retry::Transient);
    }
    fn drain(&mut self, out: &mut Actions) {
        if broken(Mutant::NotDrained) {
            return self.block(true, out);
        }
        self.step = Step::Draining;
        // Writes wait: whoever does not answer soon is given up.
        let mut b = self.migration.command(migration::COMMIT);
        b.i64("maxTimeMS", limits::MIGRATION_DRAIN_MS_MAX.cast_signed());
        append_majority(&mut b, "admin");
        let recipient = Target::Shard(self.migration.recipient.clone());
        out.call(SLOT, recipient, b.finish(), Retry::Never);
    }
    fn number(&mut self, out: &mut Actions) {
        self.step = Step::Numbering;
        self.own(NUMBER, Retry::Transient, out);
    }
    fn commit(&mut self, out: &mut Actions) {
        self.step = Step::Committing;
        let (Some(before), Some(at)) = (&self.before, self.valid_after) else { return };
        let m = &self.migration;
        let mut b = DocBuilder::new();
        b.str("_configsvrCommitChunkMigration", m.ns.as_str());
        b.str("fromShard", &m.donor).str("toShard", &m.recipient);
        b.doc("migratedChunk", |d| {
            d.raw_doc("min", &m.min).raw_doc("max", &m.max);
            d.raw_doc("lastmod", &doc_at(&before.chunk, "version").unwrap_or_default());
        });
        b.raw_doc("fromShardCollectionVersion", &before.collection_version).timestamp("validAfter", at);
        append_majority(&mut b, "admin");
        out.call(SLOT, Target::ConfigServers, b.finish(), Retry::UntilRefused);
    }
    /// What was sent and not answered must not be carried out later.
    fn fence(&mut self, out: &mut Actions) {
        if broken(Mutant::NoFence) {
            return self.resolve(out);
        }
        self.step = Step::Fencing;
        let Some(before) = &self.before else { return };
        let bound = |name| doc_at(&before.chunk, name).unwrap_or_default();
        let mut b = DocBuilder::new();
        b.i32("_configsvrEnsureChunkVersionIsGreaterThan", 1);
        b.raw_doc("minKey", &bound("min")).raw_doc("maxKey", &bound("max"));
        b.raw_doc("version", &bound("version")).str("nss", self.migration.ns.as_str());
        b.uuid("collectionUUID", &self.migration.uuid.0);
        append_majority(&mut b, "admin");
        out.call(SLOT, Target::ConfigServers, b.finish(), Retry::UntilRefused);
    }
    fn resolve(&mut self, out: &mut Actions) {
        self.step = Step::Resolving;
        self.own(RESOLVE, Retry::Always, out);
    }
    fn give_up(&mut self, why: Error, out: &mut Actions) {
        if self.phase == Phase::Begin {
            return self.end(Err(why), out);
        }
        self.stop = None;
        self.why = Some((why.code, why.message.to_string()));
        self.begin_phase(Phase::Aborted, out);
    }
    fn part(&mut self, out: &mut Actions) {
        self.step = Step::Parting;
        out.write(SLOT, vec![self.migration.leave()], Retry::Always);
    }
    /// While this node lets go: writers wait for both. Of an abort the recipient hears once, since it asks by itself; of a commit until it
    /// has forgotten the migration.
    fn tell_recipient(&mut self, out: &mut Actions) {
        let (command, retry) = match self.phase {
            Phase::Committed => (migration::RELEASE, Retry::UntilRefused),
            _ => (migration::ABORT, Retry::Never),
        };
        if self.phase == Phase::Committed && broken(Mutant::ForgetsFirst) {
            self.released = true;
            return self.migration.call(RECIPIENT, &self.migration.recipient, command, Retry::Never, out);
        }
        self.migration.call(RECIPIENT, &self.migration.recipient, command, retry, out);
    }
    fn on_recipient(&mut self, reply: Result<DocBuf>, out: &mut Actions) {
        match reply {
            // A shard that is gone holds nothing any more.
            Err(e) if self.phase == Phase::Committed && e.code != ErrorCode::ShardNotFound => {
                out.rest(RECIPIENT, limits::WORKFLOW_RETRY_MS as Millis);
            }
            _ => {
                self.released = true;
                self.unless_parting(out);
            }
        }
    }
    fn unless_parting(&mut self, out: &mut Actions) {
        if !(self.left && self.released) {
            return;
        }
        self.step = Step::Tidying;
        let write = match self.phase {
            Phase::Committed if broken(Mutant::NothingIsDeleted) => self.migration.no_deletion(),
            Phase::Committed if self.is_waited_for() => self.migration.deletion(Clean::Now),
            Phase::Committed => self.migration.deletion(Clean::Delayed),
            _ if broken(Mutant::OwnRangeDeleted) => self.migration.deletion(Clean::Delayed),
            _ => self.migration.no_deletion(),
        };
        out.write(SLOT, vec![write], Retry::Always);
    }
    fn end(&mut self, result: Result<DocBuf>, out: &mut Actions) {
        self.phase = Phase::Over;
        self.step = Step::Idle;
        out.done(result);
    }
    fn finish(&mut self, out: &mut Actions) {
        let result = match self.why.take() {
            Some((code, text)) => Err(Error::new(code, text)),
            None => Ok(DocBuf::default()),
        };
        self.end(result, out);
    }

    /// What was under way has worked.
    fn on_done(&mut self, now: Millis, reply: &RawDoc, out: &mut Actions) {
        if let Some(why) = self.stop.take().filter(|_| self.phase < Phase::Commit) {
            return self.give_up(why, out);
        }
        match self.step {
            Step::Looking => self.looked(reply, out),
            Step::Tasking => {
                self.step = Step::TaskSafe;
                out.await_replicated(SLOT, OpTime::NULL, Concern::Majority, 0);
            }
            Step::TaskSafe => {
                self.step = Step::Recording;
                self.own(RECORD, Retry::Transient, out);
            }
            Step::Recording => self.start(out),
            Step::Starting => {
                self.since = now;
                self.poll(out);
            }
            Step::Polling => self.polled(now, reply, out),
            Step::BlockingWrites => self.drain(out),
            Step::Draining => self.block(true, out),
            Step::BlockingReads => self.number(out),
            Step::Numbering => match timestamp_at(reply, "timestamp") {
                Some(at) => {
                    self.valid_after = Some(at);
                    self.begin_phase(Phase::Commit, out);
                }
                None => self.give_up(Error::internal("a migration without a number"), out),
            },
            Step::Committing => self.begin_phase(Phase::Committed, out),
            Step::Fencing => self.resolve(out),
            Step::Resolving => self.resolved(reply, out),
            Step::LettingGo => self.part(out),
            Step::Parting => {
                self.left = true;
                self.unless_parting(out);
            }
            Step::Tidying => self.finish(out),
            Step::Idle => {}
        }
    }
    fn resolved(&mut self, reply: &RawDoc, out: &mut Actions) {
        match reply.get("moved").is_some_and(|v| v.is_truthy()) {
            true => {
                self.why = None;
                self.begin_phase(Phase::Committed, out);
            }
            false => {
                let (code, text) = self.why.take().unwrap_or_else(|| {
                    (ErrorCode::OperationFailed, "the config servers refused the migration".to_owned())
                });
                self.give_up(Error::new(code, text), out);
            }
        }
    }
    fn on_failure(&mut self, why: Error, out: &mut Actions) {
        match self.step {
            Step::Committing if broken(Mutant::RefusedIsAborted) => self.give_up(why, out),
            Step::Committing => {
                self.why = Some((why.code, why.message.to_string()));
                self.fence(out);
            }
            // Of what is gone nothing can be committed late.
            Step::Fencing => self.resolve(out),
            _ if self.phase < Phase::Commit => self.give_up(why, out),
            _ => {}
        }
    }
    fn on_abort(&mut self, why: Error, out: &mut Actions) {
        if self.phase >= Phase::Commit && !broken(Mutant::AbortedBehindCommit) {
            return;
        }
        match self.step {
            Step::Looking | Step::Starting | Step::Polling | Step::Draining => {
                out.cancel(SLOT);
                self.give_up(why, out);
            }
            Step::Committing if broken(Mutant::AbortedBehindCommit) => {
                out.cancel(SLOT);
                self.give_up(why, out);
            }
            _ => self.stop = Some(why),
        }
    }
}

impl Workflow for MoveRange {
    fn step(&mut self, now: Millis, event: Event, out: &mut Actions) {
        match event {
            Event::Begin => out.checkpoint(),
            Event::Durable => match self.stop.take().filter(|_| self.phase < Phase::Commit) {
                Some(why) => self.give_up(why, out),
                None => self.go(out),
            },
            Event::Abort(why) => self.on_abort(why, out),
            Event::Answer { slot: RECIPIENT, reply } => self.on_recipient(reply, out),
            Event::Rested { slot: RECIPIENT } => self.tell_recipient(out),
            Event::Rested { .. } => self.poll(out),
            Event::Answer { reply: Ok(reply), .. } => self.on_done(now, &reply, out),
            Event::Wrote { result: Ok(_), .. } | Event::Replicated { result: Ok(()), .. } => {
                self.on_done(now, RawDoc::empty(), out);
            }
            Event::Answer { reply: Err(why), .. }
            | Event::Wrote { result: Err(why), .. }
            | Event::Replicated { result: Err(why), .. } => self.on_failure(why, out),
            _ => {}
        }
    }
    fn document(&self) -> Option<DocBuf> {
        let phase = Phase::KEPT.iter().find(|(phase, _)| *phase == self.phase).map_or("", |(_, text)| text);
        let mut b = DocBuilder::new();
        b.uuid("_id", &self.migration.id.0);
        self.migration.append(&mut b);
        b.str("phase", phase).raw_doc("request", &self.request);
        if let Some(before) = &self.before {
            b.raw_doc("chunk", &before.chunk);
            b.raw_doc("preMigrationCollectionVersion", &before.collection_version);
        }
        if let Some(at) = self.valid_after {
            b.timestamp("validAfter", at);
        }
        if let (Some((code, text)), Phase::Aborted) = (&self.why, self.phase) {
            b.doc("abortReason", |d| {
                d.i32("code", code.0).str("errmsg", text);
            });
        }
        Some(b.finish())
    }
    fn check(&self) {
        assert!(self.before.is_some() || self.phase == Phase::Begin || self.phase == Phase::Over);
        assert!(self.phase != Phase::Commit || self.valid_after.is_some());
        assert!(self.phase != Phase::Committed || self.why.is_none(), "committed, with a reason why not");
    }
}
