//! Tenants come from another set: what their new set's primary does (SV-OUT-1). See [`donate_tenants`](crate::donate_tenants) for the other side.
//!
//! ```text
//!   [uninitialized] ─► valid? ─► [started]: nobody gets at them ─► nothing there? ─► [started, copying] ─► clear ─► copy as of S
//!              │ no                                                 │ no                  ▲ again             │
//!              ▼                                                    │                     └───── not now ─────┤
//!          [aborted] ◄──────────────────────────────────────────────┴──── called off, refused ◄───────────────┤
//!              │ what was copied goes                                                         ▲               ▼
//!              ▼                                                                              ├──── follow: [consistent]
//!      told to forget ─► [expireAt] ─► the delay ─► over ◄─┐                                  │               ▼ up to blockTimestamp
//!                                                          │                                  └── [rejectReadsBeforeTimestamp]
//!                                                          └─ told to forget ◄─ [committed] ◄── the donor has decided ◄──┘
//! ```
//! In brackets: what the state document says, on a majority, before anything of it is done. Every member goes by it: nobody but the copier gets at the tenants
//! before `committed`. The donor decides, and goes on telling until it is heard, so nothing here is asked for.

pub mod mutants;

use crate::ddl::{SLOT, doc_at, texts_at, timestamp_at, uuid_at};
use crate::shard_split::EXPIRE;
use crate::{Actions, Event, Retry, Target, Workflow};
use mutants::{Mutant, broken};
use pando_base::codes::class;
use pando_base::{Error, ErrorCode, Millis, Namespace, Result, Timestamp, Uuid, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};

pub const SERVICE: &str = "TenantMigrationRecipientService";

/// Steps of this node, all `{<step>: 1, migrationId, tenantIds, donorConnectionString, …}`.
///
/// Whether this can be done.
pub const VALIDATE: &str = "validateReception";
/// Everybody who came before is out, and there is nothing of the tenants here.
pub const CHECK_EMPTY: &str = "checkNothingOfTenants";
/// What was copied before goes.
pub const CLEAR: &str = "clearTenants";
/// ─► `{startApplyingDonorTimestamp}`: everything as of then is here.
pub const COPY: &str = "copyTenants";
/// With `startApplyingDonorTimestamp`: carries the donor's entries out until it has as many as it was told to have.
pub const FOLLOW: &str = "followDonor";
/// ─► `{rejectReadsBeforeTimestamp, blockTimestamp}`: a time of this set behind all that was carried out, which a majority has; and the donor's up to
/// which that is.
pub const MARK: &str = "markReception";
/// ─► `{committed, forgotten}`: what this node was told of the decision.
pub const HEAR: &str = "hearDecision";

/// Where state documents are, by the name that 6.0 gives it.
pub fn collection() -> Namespace {
    Namespace::unchecked("config", "tenantMigrationRecipients")
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Phase {
    Begin,
    Started,
    Copying,
    Consistent,
    Received,
    Committed,
    Aborted,
    Over,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Idle,
    Validating,
    CheckingEmpty,
    Clearing,
    Copying,
    /// What could not be copied now is copied anew.
    Pausing,
    Following,
    Marking,
    /// Somebody will say what the donor has decided, or that it may be forgotten.
    Awaiting,
    Hearing,
    Expiring,
    Delaying,
}

/// The machine.
#[derive(Clone, Debug)]
pub struct ReceiveTenants {
    id: Uuid,
    /// What was asked for: fields of the document that never change.
    asked: DocBuf,
    phase: Phase,
    step: Step,
    /// The donor's time as of which everything was copied.
    start: Option<Timestamp>,
    /// This set's, behind everything that was carried out.
    before: Option<Timestamp>,
    /// The donor's, up to which everything was.
    block: Option<Timestamp>,
    /// Something of the tenants may lie here that was copied.
    copied: bool,
    why: Option<(ErrorCode, String)>,
    expire_at: Option<i64>,
    stop: Option<Error>,
}

/// Fields that are asked for and never change.
const ASKED: [&str; 6] =
    ["tenantId", "tenantIds", "protocol", "donorConnectionString", "donorSetName", "recipientSetName"];

fn nonsense(state: &RawDoc) -> Error {
    Error::bad_value(format!("not a state of a tenant migration's recipient: {state}"))
}

/// What an instance starts from: `asked` has `tenantId` or `tenantIds`, `protocol`, `donorConnectionString` and `donorSetName`.
pub fn begin(id: &Uuid, asked: &RawDoc, set: &str) -> DocBuf {
    let mut b = DocBuilder::new();
    b.uuid("_id", &id.0);
    let asked = ASKED.iter().filter(|name| **name != "recipientSetName").filter_map(|name| asked.elem(*name));
    asked.for_each(|e| _ = b.elem(e));
    b.str("recipientSetName", set).str("state", "uninitialized");
    b.finish()
}
/// What an instance starts from that was called off before anybody had begun it: whoever comes to begin it is refused.
pub fn called_off(id: &Uuid, set: &str) -> DocBuf {
    let mut b = DocBuilder::new();
    b.uuid("_id", &id.0).str("recipientSetName", set).str("state", "aborted");
    b.doc("abortReason", |d| {
        d.i32("code", ErrorCode::TenantMigrationAborted.0).str("errmsg", "it was called off before it began");
    });
    b.finish()
}
/// What whoever joins must have asked for as well.
pub fn options(state: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::new();
    for name in ["tenantId", "protocol", "donorSetName"] {
        if let Some(e) = state.elem(name) {
            b.elem(e);
        }
    }
    b.finish()
}
/// How far a state is, for whoever waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Progress {
    Copies,
    Consistent,
    /// It has everything before `blockTimestamp`.
    Received,
    Committed,
    Aborted,
}
pub fn progress(state: &RawDoc) -> Progress {
    match ReceiveTenants::of(state).map(|machine| machine.phase) {
        Ok(Phase::Consistent) => Progress::Consistent,
        Ok(Phase::Received) => Progress::Received,
        Ok(Phase::Committed) => Progress::Committed,
        Ok(Phase::Aborted | Phase::Over) | Err(_) => Progress::Aborted,
        Ok(Phase::Begin | Phase::Started | Phase::Copying) => Progress::Copies,
    }
}
/// Why it was aborted.
pub fn why_aborted(state: &RawDoc) -> Option<Error> {
    let (code, text) = ReceiveTenants::of(state).ok()?.why?;
    Some(Error::new(code, text))
}
/// Somebody has said that it may be forgotten.
pub fn is_forgotten(state: &RawDoc) -> bool {
    ReceiveTenants::of(state).is_ok_and(|machine| machine.expire_at.is_some())
}
pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    Ok(Box::new(ReceiveTenants::of(state)?))
}

/// Whether the same may work when it is tried later: the network, an election over there, a member that is busy or away.
fn may_come_right(why: &Error) -> bool {
    why.code == ErrorCode::FailedToSatisfyReadPreference || why.code.is(class::RETRIABLE | class::RECOVERING)
}
/// The same of a copy, which begins anew: what the donor held still for it is gone, or there is no room for another one now.
fn may_be_copied_later(why: &Error) -> bool {
    let codes = [
        ErrorCode::SnapshotTooOld,
        ErrorCode::NotYetInitialized,
        ErrorCode::ConflictingOperationInProgress,
        ErrorCode::CursorNotFound,
        ErrorCode::InvalidSyncSource,
        ErrorCode::LockTimeout,
    ];
    may_come_right(why) || codes.contains(&why.code)
}
impl ReceiveTenants {
    /// # Errors
    /// 2 for a document that no reception has left.
    pub fn of(state: &RawDoc) -> Result<ReceiveTenants> {
        let truthy = |name: &str| state.get(name).is_some_and(|v| v.is_truthy());
        let time = |name: &str| timestamp_at(state, name);
        let (start, block) = (time("startApplyingDonorTimestamp"), time("blockTimestamp"));
        let before = time("rejectReadsBeforeTimestamp").filter(|_| block.is_some());
        let phase = match (state.get("state").and_then(|v| v.as_str()), start, before) {
            (Some("uninitialized"), None, None) => Phase::Begin,
            (Some("started"), None, None) if truthy("copied") => Phase::Copying,
            (Some("started"), None, None) => Phase::Started,
            (Some("consistent"), Some(_), None) => Phase::Consistent,
            (Some("consistent"), Some(_), Some(_)) => Phase::Received,
            (Some("committed"), Some(_), Some(_)) => Phase::Committed,
            (Some("aborted"), ..) => Phase::Aborted,
            _ => return Err(nonsense(state)),
        };
        let why = doc_at(state, "abortReason").and_then(|why| {
            let code = i32::try_from(why.get("code")?.as_i64()?).ok()?;
            Some((ErrorCode(code), why.get("errmsg")?.as_str()?.to_owned()))
        });
        let expire_at = match state.get("expireAt") {
            Some(Value::DateTime(at)) => Some(at),
            _ => None,
        };
        let may_expire = matches!(phase, Phase::Committed | Phase::Aborted);
        if (phase == Phase::Aborted) != why.is_some() || expire_at.is_some() && !may_expire {
            return Err(nonsense(state));
        }
        let mut asked = DocBuilder::new();
        ASKED.iter().filter_map(|name| state.elem(*name)).for_each(|e| _ = asked.elem(e));
        Ok(ReceiveTenants {
            id: uuid_at(state, "_id").ok_or_else(|| nonsense(state))?,
            asked: asked.finish(),
            phase,
            step: Step::Idle,
            start,
            before,
            block,
            copied: truthy("copied"),
            why,
            expire_at,
            stop: None,
        })
    }
    fn tenants(&self) -> Vec<String> {
        let one = self.asked.get("tenantId").and_then(|v| v.as_str().map(str::to_owned));
        one.map_or_else(|| texts_at(&self.asked, "tenantIds"), |tenant| vec![tenant])
    }

    fn own(&mut self, step: Step, name: &str, retry: Retry, out: &mut Actions) {
        self.step = step;
        let mut b = DocBuilder::new();
        b.i32(name, 1).uuid("migrationId", &self.id.0);
        self.asked.iter().filter(|e| e.name() != "tenantIds").for_each(|e| _ = b.elem(e));
        b.array("tenantIds", |list| self.tenants().iter().for_each(|tenant| _ = list.str(tenant)));
        if let Some(at) = self.start {
            b.timestamp("startApplyingDonorTimestamp", at);
        }
        if let Some(at) = self.expire_at {
            b.date("expireAt", at);
        }
        out.call(SLOT, Target::Own, b.finish(), retry);
    }
    fn begin_phase(&mut self, phase: Phase, out: &mut Actions) {
        self.phase = phase;
        self.step = Step::Idle;
        self.copied |= phase == Phase::Copying;
        let unsafe_ = match phase {
            Phase::Started => broken(Mutant::CopiedUnguarded),
            Phase::Copying => broken(Mutant::CopyNotNoted),
            Phase::Received => broken(Mutant::AnsweredUnsafe),
            _ => false,
        };
        match unsafe_ {
            true => self.go(out),
            false => out.checkpoint(),
        }
    }
    /// What the phase begins with, in whichever life.
    fn go(&mut self, out: &mut Actions) {
        match self.phase {
            Phase::Begin => self.own(Step::Validating, VALIDATE, Retry::Transient, out),
            Phase::Started if broken(Mutant::EmptyNotChecked) => self.begin_phase(Phase::Copying, out),
            Phase::Started => self.own(Step::CheckingEmpty, CHECK_EMPTY, Retry::Transient, out),
            Phase::Copying if broken(Mutant::LeftoversStay) => self.copy(out),
            Phase::Copying => self.clear(out),
            Phase::Consistent => self.follow(out),
            Phase::Received => self.wait(out),
            Phase::Committed | Phase::Aborted if self.expire_at.is_some() => self.expire(out),
            Phase::Aborted if self.copied && !broken(Mutant::LeftoversOnAbort) => self.clear(out),
            Phase::Aborted if broken(Mutant::ClearsOthers) => self.clear(out),
            Phase::Committed | Phase::Aborted => self.wait(out),
            Phase::Over => {}
        }
    }
    fn clear(&mut self, out: &mut Actions) {
        self.own(Step::Clearing, CLEAR, Retry::Always, out);
    }
    fn copy(&mut self, out: &mut Actions) {
        self.own(Step::Copying, COPY, Retry::Never, out);
    }
    fn follow(&mut self, out: &mut Actions) {
        self.own(Step::Following, FOLLOW, Retry::Never, out);
    }
    fn wait(&mut self, out: &mut Actions) {
        self.step = Step::Awaiting;
        out.await_nudge(SLOT);
    }
    fn expire(&mut self, out: &mut Actions) {
        self.own(Step::Expiring, EXPIRE, Retry::Always, out);
    }
    fn give_up(&mut self, why: Error, out: &mut Actions) {
        self.stop = None;
        self.why = Some((why.code, why.message.to_string()));
        self.begin_phase(Phase::Aborted, out);
    }

    /// What was under way has worked.
    fn on_done(&mut self, reply: &RawDoc, out: &mut Actions) {
        let is = |name: &str| reply.get(name).is_some_and(|v| v.is_truthy());
        match self.step {
            Step::Validating => self.begin_phase(Phase::Started, out),
            Step::CheckingEmpty => self.begin_phase(Phase::Copying, out),
            Step::Clearing if self.phase == Phase::Aborted => self.wait(out),
            Step::Clearing => self.copy(out),
            Step::Copying => match timestamp_at(reply, "startApplyingDonorTimestamp") {
                Some(at) => {
                    self.start = Some(at);
                    self.begin_phase(Phase::Consistent, out);
                }
                None => self.give_up(Error::internal("a copy of no time"), out),
            },
            Step::Following => self.own(Step::Marking, MARK, Retry::Always, out),
            Step::Marking => {
                self.before = timestamp_at(reply, "rejectReadsBeforeTimestamp");
                self.block = timestamp_at(reply, "blockTimestamp");
                self.begin_phase(Phase::Received, out);
            }
            Step::Hearing if is("committed") && self.phase == Phase::Received => {
                self.begin_phase(Phase::Committed, out);
            }
            // Whoever has decided is told once it is on a majority.
            Step::Hearing if is("forgotten") && self.phase != Phase::Received => self.expire(out),
            Step::Hearing => self.wait(out),
            Step::Expiring => self.expiring(reply, out),
            Step::Idle | Step::Pausing | Step::Awaiting | Step::Delaying => {}
        }
    }
    fn expiring(&mut self, reply: &RawDoc, out: &mut Actions) {
        let known = self.expire_at.is_some();
        if let Some(Value::DateTime(at)) = reply.get("expireAt") {
            self.expire_at = Some(at);
        }
        if !known {
            return self.begin_phase(self.phase, out);
        }
        self.step = Step::Delaying;
        let after = reply.get("afterMs").and_then(|v| v.as_i64()).unwrap_or(0).max(0);
        match broken(Mutant::GoneAtOnce) {
            true => self.end(out),
            false => out.rest(SLOT, after),
        }
    }
    fn end(&mut self, out: &mut Actions) {
        self.phase = Phase::Over;
        self.step = Step::Idle;
        out.done(Ok(DocBuf::default()));
    }
    fn on_failure(&mut self, why: Error, out: &mut Actions) {
        match self.step {
            Step::Validating | Step::CheckingEmpty => self.give_up(why, out),
            Step::Copying if may_be_copied_later(&why) => self.pause(&why, out),
            Step::Following if may_come_right(&why) => self.pause(&why, out),
            Step::Copying | Step::Following => self.give_up(why, out),
            _ => {}
        }
    }
    fn pause(&mut self, why: &Error, out: &mut Actions) {
        out.note(format!("the donor cannot be followed now: {why}"));
        self.step = Step::Pausing;
        out.rest(SLOT, limits::WORKFLOW_RETRY_MS as Millis);
    }
    fn on_rested(&mut self, out: &mut Actions) {
        match self.step {
            Step::Pausing if self.phase == Phase::Consistent => self.follow(out),
            // What was copied is of another time.
            Step::Pausing => self.clear(out),
            Step::Delaying => self.end(out),
            _ => {}
        }
    }
    /// The donor has decided that nothing comes of it.
    fn on_abort(&mut self, why: Error, out: &mut Actions) {
        if why.code.is(class::NOT_PRIMARY | class::SHUTDOWN) {
            return;
        }
        match self.phase {
            Phase::Committed if broken(Mutant::AbortedBehindCommit) => {}
            Phase::Committed | Phase::Aborted | Phase::Over => return,
            _ => {}
        }
        match self.step {
            Step::Idle => self.stop = Some(why),
            _ => {
                out.cancel(SLOT);
                self.give_up(why, out);
            }
        }
    }
}

impl Workflow for ReceiveTenants {
    fn step(&mut self, _: Millis, event: Event, out: &mut Actions) {
        match event {
            Event::Begin => out.checkpoint(),
            Event::Durable => {
                let stop = self.stop.take();
                match stop.filter(|_| !matches!(self.phase, Phase::Committed | Phase::Aborted)) {
                    Some(why) => self.give_up(why, out),
                    None => self.go(out),
                }
            }
            Event::Abort(why) => self.on_abort(why, out),
            Event::Answer { reply: Ok(reply), .. } => self.on_done(&reply, out),
            Event::Answer { reply: Err(why), .. } => self.on_failure(why, out),
            Event::Rested { .. } => self.on_rested(out),
            Event::Nudged { .. } => self.own(Step::Hearing, HEAR, Retry::Always, out),
            _ => {}
        }
    }
    fn document(&self) -> Option<DocBuf> {
        let state = match self.phase {
            Phase::Begin => "uninitialized",
            Phase::Started | Phase::Copying => "started",
            Phase::Consistent | Phase::Received => "consistent",
            Phase::Committed => "committed",
            Phase::Aborted | Phase::Over => "aborted",
        };
        let mut b = DocBuilder::new();
        b.uuid("_id", &self.id.0).elems_of(&self.asked).str("state", state);
        if self.copied {
            b.bool("copied", true);
        }
        if let Some(at) = self.start {
            b.timestamp("startApplyingDonorTimestamp", at);
        }
        if let Some(at) = self.before {
            b.timestamp("rejectReadsBeforeTimestamp", at);
        }
        if let Some(at) = self.block {
            b.timestamp("blockTimestamp", at);
        }
        if let (Some((code, text)), Phase::Aborted) = (&self.why, self.phase) {
            b.doc("abortReason", |d| _ = d.i32("code", code.0).str("errmsg", text));
        }
        if let Some(at) = self.expire_at {
            b.date("expireAt", at);
        }
        Some(b.finish())
    }
    fn check(&self) {
        assert!(
            self.before.is_some() && self.block.is_some()
                || !matches!(self.phase, Phase::Received | Phase::Committed)
        );
        assert!(self.phase != Phase::Committed || self.why.is_none(), "committed, with a reason why not");
        assert!(self.copied || self.phase < Phase::Copying || self.phase >= Phase::Aborted);
    }
}
