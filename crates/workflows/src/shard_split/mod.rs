//! A set that splits: its hidden members with a tag become a set of their own, which owns some of the tenants (SV-SPLIT).
//!
//! ```text
//!   [uninitialized] ─► valid? ─► [aborting index builds] ─► builds given up ─► block: nothing is written behind blockTimestamp
//!              │ no                                                          │
//!              ▼                                                             ▼
//!          [aborted] ◄── refused, too late, called off ── caught up? ◄─ split already? ◄─ [blocking]
//!              ▲                                             │              │ yes
//!              │                                             ▼              ▼
//!              └── called off, and not in force ◄─ split configuration ─► each says the new name? ─► the most advanced steps up
//!                                                                                                         │
//!          over ◄─ the delay ◄─ [expireAt] ◄─ forgotten ◄─ [committed] ◄─ its first entry is on a majority ◄┘
//! ```
//! In brackets: what the state document says, on a majority, before anything of it is done. Every member goes by the document. From the split
//! configuration on there is no way back: the recipients may have gone. A primary that ends leaves everything to the next one, which
//! begins where the document is; that it could not go on is no reason to abort.

pub mod mutants;

use crate::ddl::{SLOT, doc_at, texts_at, timestamp_at, uuid_at};
use crate::{Actions, Event, Retry, Slot, Target, Workflow};
use mutants::{Mutant, broken};
use pando_base::codes::class;
use pando_base::{Error, ErrorCode, Millis, Namespace, OpTime, Result, Timestamp, Uuid, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use std::collections::BTreeMap;

pub const SERVICE: &str = "ShardSplitDonorService";

/// Steps of this node, all `{<step>: 1, migrationId, tenantIds, recipientTagName, recipientSetName, …}`.
///
/// Whether the configuration can be split so. ─► `{recipients: [<host>, …], timeoutMs}`
pub const VALIDATE: &str = "validateShardSplit";
/// No index build of the tenants is under way, and none begins.
pub const ABORT_BUILDS: &str = "abortTenantIndexBuilds";
/// No write of the tenants commits any more. ─► `{blockTimestamp}`: of an entry behind all of them.
pub const BLOCK: &str = "blockTenants";
/// ─► `{split, recipients, timeoutMs}`: whether the configuration in force is the split one; no other is on its way.
pub const LOOK: &str = "lookAtSplit";
/// With `blockTimestamp` and `maxTimeMS`: returns when every recipient is there.
pub const CATCH_UP: &str = "awaitRecipients";
/// The split configuration is in force.
pub const SPLIT: &str = "installSplitConfig";
/// ─► `{opTime}`: of an entry in this set's log.
pub const NUMBER: &str = "numberShardSplit";
/// With `expireAt`, if that is known. ─► `{expireAt, afterMs}`
pub const EXPIRE: &str = "expireShardSplit";

/// The first of the recipients; one slot each.
const HOSTS: Slot = 16;

/// Where state documents are, by the name that 6.0.5 gives it.
pub fn collection() -> Namespace {
    Namespace::unchecked("config", "tenantSplitDonors")
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Phase {
    Begin,
    Builds,
    Blocking,
    Committed,
    Aborted,
    Over,
}

impl Phase {
    const KEPT: [(Phase, &str); 5] = [
        (Phase::Begin, "uninitialized"),
        (Phase::Builds, "aborting index builds"),
        (Phase::Blocking, "blocking"),
        (Phase::Committed, "committed"),
        (Phase::Aborted, "aborted"),
    ];
    fn is_decided(self) -> bool {
        matches!(self, Phase::Committed | Phase::Aborted)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Idle,
    Validating,
    AbortingBuilds,
    Blocking,
    Looking,
    CatchingUp,
    Splitting,
    /// The configuration was refused, for now.
    Pausing,
    /// Recipients are asked who they are.
    Accepting,
    SteppingUp,
    Noting,
    Numbering,
    AwaitingForget,
    Expiring,
    Delaying,
}

/// What a recipient has said of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Accepted {
    at: OpTime,
    is_primary: bool,
}

/// The machine.
#[derive(Clone, Debug)]
pub struct ShardSplit {
    id: Uuid,
    tag: String,
    set: String,
    /// The set that splits: where a document with another name lies, it came with that set's data.
    donor: String,
    tenants: Vec<String>,
    phase: Phase,
    step: Step,
    recipients: Vec<String>,
    block: Option<Timestamp>,
    decided: Option<OpTime>,
    why: Option<(ErrorCode, String)>,
    expire_at: Option<i64>,
    /// Somebody wants it to end while something is under way that must not be cut off.
    stop: Option<Error>,
    /// When this life began with it, and how long it may take from then on.
    since: Option<Millis>,
    limit_ms: Millis,
    now: Millis,
    accepted: BTreeMap<Slot, Accepted>,
    leader: Option<String>,
}

fn nonsense(state: &RawDoc) -> Error {
    Error::bad_value(format!("not a state of a shard split: {state}"))
}
pub fn append_op_time(b: &mut DocBuilder, name: &str, at: OpTime) {
    b.doc(name, |d| _ = d.timestamp("ts", at.ts).i64("t", at.t));
}
pub fn op_time(doc: &RawDoc) -> Option<OpTime> {
    let ts = timestamp_at(doc, "ts")?;
    Some(OpTime::new(ts, doc.get("t").and_then(|v| v.as_i64())?))
}

/// What an instance starts from, in the set `donor`.
pub fn begin(id: &Uuid, tenants: &[&str], tag: &str, set: &str, donor: &str) -> DocBuf {
    let mut b = DocBuilder::new();
    b.uuid("_id", &id.0).str("recipientSetName", set).str("recipientTagName", tag).str("donorSetName", donor);
    b.array("tenantIds", |list| tenants.iter().for_each(|tenant| _ = list.str(tenant)));
    b.str("state", "uninitialized");
    b.finish()
}
/// What whoever joins must have asked for as well (SV-CMD-4).
pub fn options(state: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::new();
    for name in ["recipientSetName", "recipientTagName", "tenantIds"] {
        if let Some(e) = state.elem(name) {
            b.elem(e);
        }
    }
    b.finish()
}
/// What a state says of the decision: `None` where there is none yet, why not where it was aborted.
pub fn decided(state: &RawDoc) -> Option<Result<()>> {
    let split = ShardSplit::of(state).ok().filter(|split| split.phase.is_decided())?;
    Some(split.why.map_or(Ok(()), |(code, text)| Err(Error::new(code, text))))
}
/// Somebody has said that it may be forgotten.
pub fn is_forgotten(state: &RawDoc) -> bool {
    ShardSplit::of(state).is_ok_and(|split| split.expire_at.is_some())
}
/// It was called off before anybody had begun it.
pub fn is_nobodys(state: &RawDoc) -> bool {
    ShardSplit::of(state).is_ok_and(|split| split.set.is_empty())
}
pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    Ok(Box::new(ShardSplit::of(state)?))
}

/// Whether the same may work when it is tried later.
fn may_come_right(why: &Error) -> bool {
    why.code != ErrorCode::ExceededTimeLimit
        && why.code.is(class::RETRIABLE | class::NOT_PRIMARY | class::NETWORK)
}

impl ShardSplit {
    /// # Errors
    /// 2 for a document that no split has left (SV-DOC-4).
    pub fn of(state: &RawDoc) -> Result<ShardSplit> {
        let text = |name: &str| state.get(name).and_then(|v| v.as_str().map(str::to_owned));
        let phase = text("state").and_then(|known| Phase::KEPT.iter().find(|(_, text)| *text == known));
        let (Some(id), Some(set), Some(tag), Some((phase, _))) =
            (uuid_at(state, "_id"), text("recipientSetName"), text("recipientTagName"), phase)
        else {
            return Err(nonsense(state));
        };
        let why = doc_at(state, "abortReason").and_then(|why| {
            let code = i32::try_from(why.get("code")?.as_i64()?).ok()?;
            Some((ErrorCode(code), why.get("errmsg")?.as_str()?.to_owned()))
        });
        let block = timestamp_at(state, "blockTimestamp");
        let decided = doc_at(state, "commitOrAbortOpTime").and_then(|at| op_time(&at));
        let expire_at = match state.get("expireAt") {
            Some(Value::DateTime(at)) => Some(at),
            _ => None,
        };
        let well = match phase {
            Phase::Blocking | Phase::Committed => block.is_some(),
            Phase::Begin | Phase::Builds => block.is_none(),
            Phase::Aborted | Phase::Over => true,
        };
        let told = phase.is_decided() == decided.is_some() && (*phase == Phase::Aborted) == why.is_some();
        if !well || !told || expire_at.is_some() && !phase.is_decided() {
            return Err(nonsense(state));
        }
        Ok(ShardSplit {
            id,
            tag,
            set,
            donor: text("donorSetName").unwrap_or_default(),
            tenants: texts_at(state, "tenantIds"),
            phase: *phase,
            step: Step::Idle,
            recipients: Vec::new(),
            block,
            decided,
            why,
            expire_at,
            stop: None,
            since: None,
            limit_ms: 0,
            now: 0,
            accepted: BTreeMap::new(),
            leader: None,
        })
    }

    fn own(&mut self, step: Step, name: &str, retry: Retry, out: &mut Actions) {
        self.step = step;
        let mut b = DocBuilder::new();
        b.i32(name, 1).uuid("migrationId", &self.id.0).str("recipientSetName", &self.set);
        b.str("recipientTagName", &self.tag);
        b.array("tenantIds", |list| self.tenants.iter().for_each(|tenant| _ = list.str(tenant)));
        if let Some(at) = self.block {
            b.timestamp("blockTimestamp", at);
        }
        if let Some(at) = self.expire_at {
            b.date("expireAt", at);
        }
        if step == Step::CatchingUp {
            b.i64("maxTimeMS", self.left_ms().max(1));
        }
        out.call(SLOT, Target::Own, b.finish(), retry);
    }
    fn begin_phase(&mut self, phase: Phase, out: &mut Actions) {
        self.phase = phase;
        self.step = Step::Idle;
        let unsafe_ = phase == Phase::Blocking && broken(Mutant::BlocksNotSafe)
            || phase == Phase::Builds && broken(Mutant::BeginNotSafe)
            || phase == Phase::Committed && broken(Mutant::DecisionNotSafe);
        match unsafe_ {
            true => self.go(out),
            false => out.checkpoint(),
        }
    }
    /// What the phase begins with, in whichever life.
    fn go(&mut self, out: &mut Actions) {
        match self.phase {
            Phase::Begin => self.own(Step::Validating, VALIDATE, Retry::Transient, out),
            Phase::Builds if broken(Mutant::BuildsGoOn) => self.block(out),
            Phase::Builds => self.own(Step::AbortingBuilds, ABORT_BUILDS, Retry::Transient, out),
            Phase::Blocking => self.look(out),
            Phase::Committed | Phase::Aborted if self.expire_at.is_none() => {
                self.step = Step::AwaitingForget;
                out.await_nudge(SLOT);
            }
            Phase::Committed | Phase::Aborted => self.own(Step::Expiring, EXPIRE, Retry::Always, out),
            Phase::Over => {}
        }
    }
    fn block(&mut self, out: &mut Actions) {
        self.own(Step::Blocking, BLOCK, Retry::Transient, out);
    }
    fn look(&mut self, out: &mut Actions) {
        self.own(Step::Looking, LOOK, Retry::Always, out);
    }
    /// Who becomes a set, and how long that may take.
    fn take_recipients(&mut self, reply: &RawDoc) {
        self.recipients = texts_at(reply, "recipients");
        self.limit_ms = reply.get("timeoutMs").and_then(|v| v.as_i64()).unwrap_or(0);
        self.since.get_or_insert(self.now);
    }
    fn left_ms(&self) -> Millis {
        self.since.map_or(0, |since| (since + self.limit_ms - self.now).max(0))
    }
    fn looked(&mut self, reply: &RawDoc, out: &mut Actions) {
        self.take_recipients(reply);
        if reply.get("split").is_some_and(|v| v.is_truthy()) && !broken(Mutant::SplitNotLookedFor) {
            return self.accept(out);
        }
        match self.stop.take() {
            Some(why) => self.give_up(why, out),
            None if self.left_ms() == 0 => {
                let text = "the shard split took longer than shardSplitTimeoutMS";
                self.give_up(Error::new(ErrorCode::ExceededTimeLimit, text), out);
            }
            None => self.catch_up(out),
        }
    }
    fn catch_up(&mut self, out: &mut Actions) {
        match broken(Mutant::NotCaughtUp) {
            true => self.split(out),
            false => self.own(Step::CatchingUp, CATCH_UP, Retry::Never, out),
        }
    }
    fn split(&mut self, out: &mut Actions) {
        self.own(Step::Splitting, SPLIT, Retry::Never, out);
    }

    /// Every recipient is asked who it is, until all have the new name.
    fn accept(&mut self, out: &mut Actions) {
        self.stop = None;
        self.step = Step::Accepting;
        self.accepted.clear();
        for slot in self.slots() {
            self.ask(slot, out);
        }
    }
    fn slots(&self) -> Vec<Slot> {
        (HOSTS..).take(self.recipients.len()).collect()
    }
    fn host(&self, slot: Slot) -> Option<&String> {
        self.recipients.get(slot.checked_sub(HOSTS)? as usize)
    }
    fn ask(&self, slot: Slot, out: &mut Actions) {
        let Some(host) = self.host(slot) else { return };
        let mut b = DocBuilder::new();
        b.i32("hello", 1).str("$db", "admin");
        out.call(slot, Target::Host(host.clone()), b.finish(), Retry::Never);
    }
    fn on_recipient(&mut self, slot: Slot, reply: &Result<DocBuf>, out: &mut Actions) {
        if self.step != Step::Accepting {
            return;
        }
        let said = reply.as_ref().ok().and_then(|reply| self.accepted_by(reply));
        let Some(said) = said else { return out.rest(slot, limits::SHARD_SPLIT_POLL_MS as Millis) };
        self.accepted.insert(slot, said);
        if self.accepted.len() == self.recipients.len() || broken(Mutant::OneAcceptsForAll) {
            self.slots().into_iter().filter(|other| *other != slot).for_each(|other| out.cancel(other));
            self.choose(out);
        }
    }
    fn accepted_by(&self, hello: &RawDoc) -> Option<Accepted> {
        let name = hello.get("setName")?;
        if name.as_str() != Some(&self.set) && !broken(Mutant::AnyNameAccepted) {
            return None;
        }
        let at =
            op_time(&doc_at(&doc_at(hello, "lastWrite")?, "opTime")?).filter(|at| *at != OpTime::NULL)?;
        Some(Accepted { at, is_primary: hello.get("isWritablePrimary").is_some_and(|v| v.is_truthy()) })
    }
    /// Whoever is primary already, or whoever has the most.
    fn choose(&mut self, out: &mut Actions) {
        let primary = self.accepted.iter().find(|(_, said)| said.is_primary).map(|(slot, _)| *slot);
        let best = match broken(Mutant::LeastAdvancedStepsUp) {
            true => self.accepted.iter().min_by_key(|(_, said)| said.at),
            false => self.accepted.iter().max_by_key(|(_, said)| said.at),
        };
        let Some(slot) = primary.or(best.map(|(slot, _)| *slot)) else { return };
        self.leader = self.host(slot).cloned();
        if primary.is_some() {
            return self.note(out);
        }
        self.step = Step::SteppingUp;
        let mut b = DocBuilder::new();
        b.i32("replSetStepUp", 1).bool("skipDryRun", true).str("$db", "admin");
        self.tell_leader(b.finish(), out);
    }
    fn tell_leader(&self, body: DocBuf, out: &mut Actions) {
        let Some(leader) = &self.leader else { return };
        out.call(SLOT, Target::Host(leader.clone()), body, Retry::Never);
    }
    /// Its first entry is on a majority of the new set: nobody with less is elected any more.
    fn note(&mut self, out: &mut Actions) {
        if broken(Mutant::NotNoted) {
            return self.number(out);
        }
        self.step = Step::Noting;
        let mut b = DocBuilder::new();
        b.i32("appendOplogNote", 1);
        b.doc("data", |d| _ = d.str("msg", "shard split: the new set has everything"));
        b.doc("writeConcern", |d| _ = d.str("w", "majority"));
        b.str("$db", "admin");
        self.tell_leader(b.finish(), out);
    }
    fn number(&mut self, out: &mut Actions) {
        self.own(Step::Numbering, NUMBER, Retry::Always, out);
    }
    fn give_up(&mut self, why: Error, out: &mut Actions) {
        self.stop = None;
        self.why = Some((why.code, why.message.to_string()));
        self.number(out);
    }

    /// What was under way has worked.
    fn on_done(&mut self, reply: &RawDoc, out: &mut Actions) {
        match self.step {
            Step::Validating => {
                self.take_recipients(reply);
                self.begin_phase(Phase::Builds, out);
            }
            Step::AbortingBuilds => self.block(out),
            Step::Blocking => match timestamp_at(reply, "blockTimestamp") {
                Some(at) => {
                    self.block = Some(at);
                    self.begin_phase(Phase::Blocking, out);
                }
                None => self.give_up(Error::internal("a split without a blockTimestamp"), out),
            },
            Step::Looking => self.looked(reply, out),
            Step::CatchingUp => self.split(out),
            Step::Splitting => self.accept(out),
            Step::SteppingUp => self.note(out),
            Step::Noting => self.number(out),
            Step::Numbering => {
                self.decided = doc_at(reply, "opTime").and_then(|at| op_time(&at));
                let phase = if self.why.is_some() { Phase::Aborted } else { Phase::Committed };
                self.begin_phase(phase, out);
            }
            Step::Expiring => self.expiring(reply, out),
            Step::Idle | Step::Pausing | Step::Accepting | Step::AwaitingForget | Step::Delaying => {}
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
            Step::Validating | Step::AbortingBuilds | Step::Blocking => self.give_up(why, out),
            // Each try has the time that is left: what was too late is not tried again.
            Step::CatchingUp if !may_come_right(&why) => self.give_up(why, out),
            // Whether it is in force is looked up; the set may be able to take it later.
            Step::CatchingUp | Step::Splitting => {
                out.note(format!("the split configuration is not in force yet: {why}"));
                self.step = Step::Pausing;
                out.rest(SLOT, limits::WORKFLOW_RETRY_MS as Millis);
            }
            // Another one may have been elected meanwhile, or has more.
            Step::SteppingUp | Step::Noting => {
                out.note(format!("the new set has no primary yet: {why}"));
                // Who has been elected takes writes in a moment.
                let is_elected = self.step == Step::Noting;
                let ms = if is_elected { limits::SHARD_SPLIT_POLL_MS } else { limits::WORKFLOW_RETRY_MS };
                self.step = Step::Accepting;
                self.accepted.clear();
                self.slots().into_iter().for_each(|slot| out.rest(slot, ms as Millis));
            }
            _ => {}
        }
    }
    fn on_rested(&mut self, slot: Slot, out: &mut Actions) {
        match (slot, self.step) {
            (SLOT, Step::Pausing) => self.look(out),
            (SLOT, Step::Delaying) => self.end(out),
            (slot, Step::Accepting) => self.ask(slot, out),
            _ => {}
        }
    }
    fn on_abort(&mut self, why: Error, out: &mut Actions) {
        // The next primary goes on.
        if why.code.is(class::NOT_PRIMARY | class::SHUTDOWN)
            || self.phase.is_decided()
            || self.phase == Phase::Over
        {
            return;
        }
        match self.step {
            Step::Validating | Step::AbortingBuilds | Step::Blocking | Step::CatchingUp => {
                out.cancel(SLOT);
                self.give_up(why, out);
            }
            Step::Splitting | Step::Accepting if broken(Mutant::AbortedBehindSplit) => {
                self.slots().into_iter().for_each(|slot| out.cancel(slot));
                out.cancel(SLOT);
                self.give_up(why, out);
            }
            // Not in force, for all that is known: that is looked up first.
            Step::Idle | Step::Looking | Step::Splitting | Step::Pausing => self.stop = Some(why),
            _ => {}
        }
    }
}

impl Workflow for ShardSplit {
    fn step(&mut self, now: Millis, event: Event, out: &mut Actions) {
        self.now = now;
        match event {
            Event::Begin => out.checkpoint(),
            Event::Durable => match self.stop.take_if(|_| self.phase < Phase::Blocking) {
                Some(why) => self.give_up(why, out),
                None => self.go(out),
            },
            Event::Abort(why) => self.on_abort(why, out),
            Event::Answer { slot, reply } if slot >= HOSTS => self.on_recipient(slot, &reply, out),
            Event::Answer { reply: Ok(reply), .. } => self.on_done(&reply, out),
            Event::Answer { reply: Err(why), .. } => self.on_failure(why, out),
            Event::Rested { slot } => self.on_rested(slot, out),
            Event::Nudged { .. } => self.own(Step::Expiring, EXPIRE, Retry::Always, out),
            _ => {}
        }
    }
    fn document(&self) -> Option<DocBuf> {
        let state = Phase::KEPT.iter().find(|(phase, _)| *phase == self.phase).map_or("", |(_, text)| text);
        let mut b = DocBuilder::new();
        b.uuid("_id", &self.id.0).str("recipientSetName", &self.set).str("recipientTagName", &self.tag);
        b.str("donorSetName", &self.donor);
        b.array("tenantIds", |list| self.tenants.iter().for_each(|tenant| _ = list.str(tenant)));
        b.str("state", state);
        if let Some(at) = self.block {
            b.timestamp("blockTimestamp", at);
        }
        if let Some(at) = self.decided {
            append_op_time(&mut b, "commitOrAbortOpTime", at);
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
            self.block.is_some()
                || self.phase < Phase::Blocking
                || self.why.is_some()
                || self.phase == Phase::Over
        );
        assert!(!self.phase.is_decided() || self.decided.is_some(), "a decision without an opTime");
        assert!(self.phase != Phase::Committed || self.why.is_none(), "committed, with a reason why not");
    }
}
