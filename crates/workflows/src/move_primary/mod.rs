//! `movePrimary` on the primary shard of the database (SH-DDL-11, SYS-235): what is not sharded goes to another shard.
//!
//! ```text
//!   begin ─► look ─► clone ─► section: writes ─► drain ─► section: reads ─► commit ─► committed: drop here ─► section goes ─► over
//!     │                │                           │                          │ └ refused ─► is it done all the same? ─ yes ─► committed
//!     ▼                │                           │                          │                                      └ no ──► aborted
//!   over: it is there  └──────── any failure ──────┴──────────► aborted ─► section goes ─► the other drops its copies ─► over
//!   already, or cannot                                                  (both ends go on for ever where nobody answers)
//! ```
//! * `clone` gives the other shard every collection while clients write. What is written meanwhile is recorded in memory: whoever finds
//!   this phase in a state document gives up, and the client asks again.
//! * Writes wait from `section: writes` to the end, reads from `section: reads`. `drain` gives what was recorded, and has the other shard
//!   refuse whatever else comes of this move.
//! * The checkpoint of `commit` is the point of no return: a commit that was sent cannot be called back. Where one is refused, the
//!   config servers are told to refuse it for ever, which tells whether it was made after all.
//! * The section goes behind the checkpoint of `committed` or `aborted`: from then on nobody sends the commit again.

pub mod mutants;

use crate::ddl::{
    Head, Locks, SLOT, append_asked_by, append_head, append_majority, doc_at, failure, nonsense, timestamp_at,
};
use crate::{Actions, Event, Level, LocalWrite, Resource, Retry, Target, Workflow, whole_database};
use mutants::{Mutant, broken};
use pando_base::{Error, ErrorCode, Millis, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc};

pub const OPERATION: &str = "movePrimary";
/// Steps of this node, all `{<step>: <database>, request: {toShard}, version?, timestamp?}`.
///
/// ─► nothing where it is there already, else `{version, timestamp}`: of the database, and the number of this definition.
pub const LOOK: &str = "lookAtPrimary";
/// What is written from now on is recorded, and everything that is here is given.
pub const CLONE: &str = "cloneDatabase";
/// What was recorded is given, and nothing else of this move is taken any more.
pub const DRAIN: &str = "drainDatabase";
/// Nothing is recorded any more; what is here of what has moved goes.
pub const DROP_MOVED: &str = "dropMovedDatabase";
/// Nothing is recorded any more; the other shard drops what it was given.
pub const LET_GO: &str = "letGoOfDatabase";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Phase {
    Begin,
    Clone,
    Commit,
    /// Nobody begins with this one: the commit is known again.
    GiveUp,
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

/// Within `Clone`, `Committed` and `Aborted`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Idle,
    Cloning,
    BlockingWrites,
    Draining,
    BlockingReads,
    Tidying,
    Leaving,
}

#[derive(Clone, Debug)]
struct MovePrimary {
    db: String,
    /// `{toShard}`
    request: DocBuf,
    asked_by: Option<DocBuf>,
    phase: Phase,
    step: Step,
    locks: Locks,
    /// Of the database as it was, and the number of this definition.
    before: Option<(DocBuf, Timestamp)>,
    /// This life has begun to record.
    records: bool,
    /// Why it is given up.
    why: Option<Error>,
}

fn locks_of(db: &str) -> Vec<(Resource, Level)> {
    vec![(Resource::Definition(db.to_owned()), Level::Exclusive)]
}

pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    let head = Head::parse(state)?;
    let phase = Phase::KEPT.iter().find(|(_, text)| *text == head.phase).map(|(phase, _)| *phase);
    let phase = phase.ok_or_else(|| nonsense(state))?;
    let before = before_of(state);
    let why = doc_at(state, "abortReason").and_then(|why| {
        let code = i32::try_from(why.get("code")?.as_i64()?).ok()?;
        Some(Error::new(ErrorCode(code), why.get("errmsg")?.as_str()?.to_owned()))
    });
    if (phase > Phase::Begin) != before.is_some() || (phase == Phase::Aborted) != why.is_some() {
        return Err(nonsense(state));
    }
    Ok(Box::new(MovePrimary {
        locks: Locks::new(locks_of(&head.namespace)),
        db: head.namespace,
        request: head.request,
        asked_by: head.asked_by,
        phase,
        step: Step::Idle,
        before,
        records: false,
        why,
    }))
}

fn before_of(doc: &RawDoc) -> Option<(DocBuf, Timestamp)> {
    doc_at(doc, "version").zip(timestamp_at(doc, "timestamp"))
}

impl MovePrimary {
    fn begin_phase(&mut self, phase: Phase, out: &mut Actions) {
        self.phase = phase;
        self.step = Step::Idle;
        let is_unsafe = match phase {
            Phase::Commit => broken(Mutant::CommitNotSafe),
            Phase::Committed | Phase::Aborted => broken(Mutant::OpensBeforeItIsSafe),
            _ => false,
        };
        match is_unsafe {
            true => self.go(out),
            false => out.checkpoint(),
        }
    }
    /// Where a phase begins, be it here or after a failover.
    fn go(&mut self, out: &mut Actions) {
        match self.phase {
            Phase::Begin => self.own(LOOK, Retry::Transient, out),
            Phase::Clone if self.records || broken(Mutant::CloneOutlivesItsRecord) => {
                self.step = Step::Cloning;
                match self.records {
                    true => self.own(CLONE, Retry::Never, out),
                    false => self.section(false, out),
                }
            }
            Phase::Clone => {
                let text = "the move was given up, since the primary of the shard changed";
                self.give_up(Error::new(ErrorCode::InterruptedDueToReplStateChange, text), out);
            }
            Phase::Commit => self.commit(false, out),
            Phase::Committed => {
                self.step = Step::Tidying;
                self.own(DROP_MOVED, Retry::Always, out);
            }
            // Clients need not wait for the other shard.
            Phase::Aborted => self.leave(out),
            Phase::GiveUp | Phase::Over => {}
        }
    }
    fn own(&self, step: &str, retry: Retry, out: &mut Actions) {
        let mut b = DocBuilder::new();
        b.str(step, &self.db).raw_doc("request", &self.request);
        if let Some((version, at)) = &self.before {
            b.raw_doc("version", version).timestamp("timestamp", *at);
        }
        append_asked_by(&mut b, self.asked_by.as_deref());
        out.call(SLOT, Target::Own, b.finish(), retry);
    }
    fn reason(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.str("command", "movePrimary").str("db", &self.db);
        b.finish()
    }
    fn section(&mut self, block_reads: bool, out: &mut Actions) {
        if block_reads && broken(Mutant::ReadsGoOn) {
            return self.begin_phase(Phase::Commit, out);
        }
        if !block_reads && broken(Mutant::WritesGoOn) {
            self.step = Step::Draining;
            return self.own(DRAIN, Retry::Never, out);
        }
        self.step = if block_reads { Step::BlockingReads } else { Step::BlockingWrites };
        let (ns, reason) = (whole_database(&self.db), self.reason());
        out.write(SLOT, vec![LocalWrite::EnterSection { ns, reason, block_reads }], Retry::Never);
    }
    fn leave(&mut self, out: &mut Actions) {
        self.step = Step::Leaving;
        let (ns, reason) = (whole_database(&self.db), self.reason());
        out.write(SLOT, vec![LocalWrite::LeaveSection { ns, reason }], Retry::Always);
    }
    fn commit(&self, give_up: bool, out: &mut Actions) {
        let Some((version, _)) = &self.before else { return };
        let to = self.request.get("toShard").and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default();
        let mut b = DocBuilder::new();
        b.str("_configsvrCommitMovePrimary", &self.db).raw_doc("expectedDatabaseVersion", version);
        b.str("to", &to);
        if give_up {
            b.bool("giveUp", true);
        }
        append_majority(&mut b, "admin");
        let retry = if give_up { Retry::Always } else { Retry::UntilRefused };
        out.call(SLOT, Target::ConfigServers, b.finish(), retry);
    }
    fn looked(&mut self, reply: &RawDoc, out: &mut Actions) {
        self.before = before_of(reply);
        match self.before.is_some() {
            true => {
                self.records = true;
                self.begin_phase(Phase::Clone, out);
            }
            false => self.end(Ok(DocBuf::default()), out),
        }
    }
    fn give_up(&mut self, why: Error, out: &mut Actions) {
        self.why = Some(why);
        self.begin_phase(Phase::Aborted, out);
    }
    fn answered(&mut self, reply: &RawDoc, out: &mut Actions) {
        match (self.phase, self.step) {
            (Phase::Begin, _) => self.looked(reply, out),
            (Phase::Clone, Step::Cloning) => self.section(false, out),
            (Phase::Clone, Step::Draining) => self.section(true, out),
            (Phase::Commit, _) => self.begin_phase(Phase::Committed, out),
            (Phase::GiveUp, _) => match reply.get("made").is_some_and(|v| v.is_truthy()) {
                true => {
                    self.why = None;
                    self.begin_phase(Phase::Committed, out);
                }
                false => self.begin_phase(Phase::Aborted, out),
            },
            (Phase::Committed, Step::Tidying) => self.leave(out),
            (Phase::Aborted, Step::Tidying) => self.over(out),
            _ => {}
        }
    }
    fn wrote(&mut self, out: &mut Actions) {
        match self.step {
            Step::BlockingWrites => {
                self.step = Step::Draining;
                self.own(DRAIN, Retry::Never, out);
            }
            Step::BlockingReads => self.begin_phase(Phase::Commit, out),
            _ if self.phase == Phase::Aborted && !broken(Mutant::CopiesStay) => {
                self.step = Step::Tidying;
                self.own(LET_GO, Retry::Always, out);
            }
            _ => self.over(out),
        }
    }
    fn over(&mut self, out: &mut Actions) {
        let result = self.why.take().map_or_else(|| Ok(DocBuf::default()), Err);
        self.end(result, out);
    }
    fn failed(&mut self, why: &Error, out: &mut Actions) {
        match self.phase {
            Phase::Begin => self.end(Err(why.clone()), out),
            Phase::Clone => self.give_up(why.clone(), out),
            Phase::Commit if broken(Mutant::RefusalIsBelieved) => self.give_up(why.clone(), out),
            Phase::Commit => {
                self.why = Some(why.clone());
                self.phase = Phase::GiveUp;
                self.commit(true, out);
            }
            _ => {}
        }
    }
    fn end(&mut self, result: Result<DocBuf, Error>, out: &mut Actions) {
        self.phase = Phase::Over;
        for (resource, _) in locks_of(&self.db) {
            out.release(resource);
        }
        out.done(result);
    }
}

impl Workflow for MovePrimary {
    fn step(&mut self, _: Millis, event: Event, out: &mut Actions) {
        if let Some((_, why)) = failure(&event) {
            return self.failed(why, out);
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
            Event::Wrote { .. } => self.wrote(out),
            Event::Answer { reply: Ok(reply), .. } => self.answered(&reply, out),
            // A client that waits no more stops nothing: others may have joined it.
            _ => {}
        }
    }
    fn document(&self) -> Option<DocBuf> {
        let phase = Phase::KEPT.iter().find(|(phase, _)| *phase == self.phase).map_or("", |(_, text)| text);
        let mut b = DocBuilder::new();
        append_head(&mut b, &self.db, OPERATION, phase, &self.request, self.asked_by.as_deref());
        if let Some((version, at)) = &self.before {
            b.raw_doc("version", version).timestamp("timestamp", *at);
        }
        if let (Some(why), Phase::Aborted) = (&self.why, self.phase) {
            b.doc("abortReason", |d| _ = d.i32("code", why.code.0).str("errmsg", &why.message));
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
        assert!(self.before.is_some() || matches!(self.phase, Phase::Begin | Phase::Over));
        assert!(self.why.is_none() || self.phase > Phase::Commit);
        assert!(self.phase != Phase::Committed || self.why.is_none(), "committed, with a reason why not");
    }
}
