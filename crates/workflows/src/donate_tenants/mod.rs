//! Tenants go to a set that has nothing of them: what their set's primary does (SV-OUT-1). See [`receive_tenants`](crate::receive_tenants) for the
//! other side.
//!
//! ```text
//!   [uninitialized] ─► valid? ─► [aborting index builds] ─► builds given up ─► [data sync] ─► the recipient is consistent?
//!              │ no                                                                │                    │ yes
//!              ▼                                                                   ▼                    ▼
//!          [aborted] ◄── refused, too late, called off ──────── has it everything? ◄─ [blocking] ◄─ block: nothing is written
//!              │                                                      │ yes                           behind blockTimestamp
//!              ▼                                                      ▼
//!      the recipient is told ◄───────────────────────────────── [committed] ─► forgotten ─► the recipient forgets ─► [expireAt]
//!              └──► forgotten ─► [expireAt] ─► the delay ─► over                         over ◄─ data go ◄─ the delay ◄─┘
//! ```
//! In brackets: what the state document says, on a majority, before anything of it is done. The donor decides alone: its document on a majority is
//! the decision. The recipient lets nobody in before it has heard of it.

pub mod mutants;

use crate::ddl::{SLOT, doc_at, texts_at, timestamp_at, uuid_at};
use crate::shard_split::{ABORT_BUILDS, BLOCK, EXPIRE, NUMBER, append_op_time, op_time};
use crate::{Actions, Event, Retry, Slot, Target, Workflow};
use mutants::{Mutant, broken};
use pando_base::codes::class;
use pando_base::{Error, ErrorCode, Millis, Namespace, OpTime, Result, Timestamp, Uuid, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};

pub const SERVICE: &str = "TenantMigrationDonorService";

/// Steps of this node besides those that a shard split has, all `{<step>: 1, migrationId, tenantIds, …}`.
///
/// Whether this can be done. ─► `{timeoutMs}`: how long tenants may be blocked; of a merge `tenantIds` as well, those that there are.
pub const VALIDATE: &str = "validateTenantMigration";
/// ─► `{timeoutMs}`
pub const LOOK_AT_TIMEOUT: &str = "lookAtBlockingLimit";
/// What is elsewhere now is not kept here.
pub const DISCARD: &str = "discardTenants";

/// What the recipient's primary is told.
///
/// With `returnAfterReachingDonorTimestamp` or without. ─► `{reached}`
pub const SYNC: &str = "recipientSyncData";
/// The donor has decided that the tenants are the recipient's.
pub const COMMIT: &str = "_recipientCommitMigration";
/// With `decision`. It may forget; where it was aborted nothing of the tenants is left there.
pub const FORGET: &str = "recipientForgetMigration";

/// The recipient is told while somebody is waited for.
const PEER: Slot = 1;
/// How long something may take, whatever is waited for meanwhile.
const LIMIT: Slot = 2;

/// Where state documents are, by the name that 6.0 gives it.
pub fn collection() -> Namespace {
    Namespace::unchecked("config", "tenantMigrationDonors")
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Phase {
    Begin,
    Builds,
    Sync,
    Blocking,
    Committed,
    Aborted,
    Over,
}

impl Phase {
    const KEPT: [(Phase, &str); 6] = [
        (Phase::Begin, "uninitialized"),
        (Phase::Builds, "aborting index builds"),
        (Phase::Sync, "data sync"),
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
    /// The recipient copies.
    Syncing,
    Blocking,
    /// The recipient gets what is before `blockTimestamp`.
    CatchingUp,
    Pausing,
    Numbering,
    AwaitingForget,
    /// Somebody said that it may be forgotten; the recipient does not know the decision yet.
    Telling,
    Forgetting,
    Expiring,
    Delaying,
    Discarding,
}

/// Who asks for what, as the state document keeps it.
#[derive(Clone, PartialEq, Debug)]
pub struct Asked<'a> {
    pub id: Uuid,
    /// `None`: all that this set has (a shard merge).
    pub tenant: Option<&'a str>,
    /// `<set>/<host>,<host>`
    pub recipient: &'a str,
    pub recipient_set: &'a str,
    pub donor: &'a str,
    pub donor_set: &'a str,
}

/// The machine.
#[derive(Clone, Debug)]
pub struct DonateTenants {
    id: Uuid,
    /// What was asked for: fields of the document that never change.
    asked: DocBuf,
    phase: Phase,
    step: Step,
    block: Option<Timestamp>,
    decided: Option<OpTime>,
    why: Option<(ErrorCode, String)>,
    expire_at: Option<i64>,
    /// The recipient has been asked for something: it may have a document.
    peer_knows: bool,
    /// In this life: it has heard of the decision.
    told: bool,
    stop: Option<Error>,
    /// When this life began to wait with the tenants blocked, and how long it may.
    since: Option<Millis>,
    limit_ms: Millis,
    now: Millis,
}

/// Fields that are asked for and never change.
const ASKED: [&str; 7] = [
    "tenantId",
    "tenantIds",
    "protocol",
    "recipientConnectionString",
    "recipientSetName",
    "donorConnectionString",
    "donorSetName",
];

fn nonsense(state: &RawDoc) -> Error {
    Error::bad_value(format!("not a state of a tenant migration: {state}"))
}

/// What an instance starts from.
pub fn begin(asked: &Asked<'_>) -> DocBuf {
    let mut b = DocBuilder::new();
    b.uuid("_id", &asked.id.0);
    match asked.tenant {
        Some(tenant) => b.str("tenantId", tenant).str("protocol", "multitenant migrations"),
        None => b.str("protocol", "shard merge"),
    };
    b.str("recipientConnectionString", asked.recipient).str("recipientSetName", asked.recipient_set);
    b.str("donorConnectionString", asked.donor).str("donorSetName", asked.donor_set);
    b.str("state", "uninitialized");
    b.finish()
}
/// What whoever joins must have asked for as well.
pub fn options(state: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::new();
    for name in ["tenantId", "protocol", "recipientConnectionString"] {
        if let Some(e) = state.elem(name) {
            b.elem(e);
        }
    }
    b.finish()
}
/// What a state says of the decision: `None` where there is none yet, why not where it was aborted.
pub fn decided(state: &RawDoc) -> Option<Result<()>> {
    let machine = DonateTenants::of(state).ok().filter(|machine| machine.phase.is_decided())?;
    Some(machine.why.map_or(Ok(()), |(code, text)| Err(Error::new(code, text))))
}
/// A majority knows of it: whoever is primary next goes on with it.
pub fn is_durable(state: &RawDoc) -> bool {
    DonateTenants::of(state).is_ok_and(|machine| machine.phase > Phase::Begin)
}
/// Somebody has said that it may be forgotten.
pub fn is_forgotten(state: &RawDoc) -> bool {
    DonateTenants::of(state).is_ok_and(|machine| machine.expire_at.is_some())
}
pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    Ok(Box::new(DonateTenants::of(state)?))
}

/// Whether the same may work when it is tried later: the network, an election over there.
fn may_come_right(why: &Error) -> bool {
    why.code == ErrorCode::FailedToSatisfyReadPreference
        || why.code.is(class::RETRIABLE | class::NOT_PRIMARY | class::RECOVERING | class::SHUTDOWN)
}

impl DonateTenants {
    /// # Errors
    /// 2 for a document that no migration has left.
    pub fn of(state: &RawDoc) -> Result<DonateTenants> {
        let text = |name: &str| state.get(name).and_then(|v| v.as_str().map(str::to_owned));
        let phase = text("state").and_then(|known| Phase::KEPT.iter().find(|(_, text)| *text == known));
        let (Some(id), Some(_), Some((phase, _))) =
            (uuid_at(state, "_id"), text("recipientConnectionString"), phase)
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
            Phase::Begin | Phase::Builds | Phase::Sync => block.is_none(),
            Phase::Aborted | Phase::Over => true,
        };
        let told = phase.is_decided() == decided.is_some() && (*phase == Phase::Aborted) == why.is_some();
        if !well || !told || expire_at.is_some() && !phase.is_decided() {
            return Err(nonsense(state));
        }
        let mut asked = DocBuilder::new();
        ASKED.iter().filter_map(|name| state.elem(*name)).for_each(|e| _ = asked.elem(e));
        Ok(DonateTenants {
            id,
            asked: asked.finish(),
            phase: *phase,
            step: Step::Idle,
            block,
            decided,
            why,
            expire_at,
            peer_knows: state.get("recipientKnows").is_some_and(|v| v.is_truthy()),
            told: false,
            stop: None,
            since: None,
            limit_ms: 0,
            now: 0,
        })
    }
    fn tenants(&self) -> Vec<String> {
        let one = self.asked.get("tenantId").and_then(|v| v.as_str().map(str::to_owned));
        one.map_or_else(|| texts_at(&self.asked, "tenantIds"), |tenant| vec![tenant])
    }

    fn own(&mut self, step: Step, name: &str, retry: Retry, out: &mut Actions) {
        self.step = step;
        let mut b = DocBuilder::new();
        b.i32(name, 1).uuid("migrationId", &self.id.0).elems_of(&self.asked);
        if self.asked.elem("tenantIds").is_none() {
            b.array("tenantIds", |list| self.tenants().iter().for_each(|tenant| _ = list.str(tenant)));
        }
        if let Some(at) = self.block {
            b.timestamp("blockTimestamp", at);
        }
        if let Some(at) = self.expire_at {
            b.date("expireAt", at);
        }
        out.call(SLOT, Target::Own, b.finish(), retry);
    }
    /// A command to the recipient.
    fn tell(
        &self,
        slot: Slot,
        name: &str,
        retry: Retry,
        out: &mut Actions,
        more: impl FnOnce(&mut DocBuilder),
    ) {
        let mut b = DocBuilder::new();
        b.i32(name, 1).uuid("migrationId", &self.id.0);
        let told = ASKED.iter().filter(|name| **name != "recipientConnectionString");
        for name in told {
            if let Some(e) = self.asked.elem(*name) {
                b.elem(e);
            }
        }
        more(&mut b);
        b.str("$db", "admin");
        let set = self.asked.get("recipientConnectionString").and_then(|v| v.as_str().map(str::to_owned));
        out.call(slot, Target::Set(set.unwrap_or_default()), b.finish(), retry);
    }
    fn begin_phase(&mut self, phase: Phase, out: &mut Actions) {
        self.phase = phase;
        self.step = Step::Idle;
        self.peer_knows |= phase == Phase::Sync;
        let unsafe_ = match phase {
            Phase::Builds => broken(Mutant::BeginNotSafe),
            Phase::Blocking => broken(Mutant::BlocksNotSafe),
            Phase::Committed | Phase::Aborted => self.expire_at.is_none() && broken(Mutant::DecisionNotSafe),
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
            Phase::Builds if broken(Mutant::BuildsGoOn) => self.begin_phase(Phase::Sync, out),
            Phase::Builds => self.own(Step::AbortingBuilds, ABORT_BUILDS, Retry::Transient, out),
            Phase::Sync => self.sync(out),
            Phase::Blocking if self.limit_ms == 0 => {
                // How long it may take is not known in this life yet.
                self.own(Step::Validating, LOOK_AT_TIMEOUT, Retry::Always, out);
            }
            Phase::Blocking => self.catch_up(out),
            Phase::Committed | Phase::Aborted if self.expire_at.is_none() => self.tell_decision(out),
            Phase::Committed | Phase::Aborted => self.own(Step::Expiring, EXPIRE, Retry::Always, out),
            Phase::Over => {}
        }
    }
    fn sync(&mut self, out: &mut Actions) {
        self.step = Step::Syncing;
        self.tell(SLOT, SYNC, Retry::UntilRefused, out, |_| {});
    }
    fn block(&mut self, out: &mut Actions) {
        self.own(Step::Blocking, BLOCK, Retry::Transient, out);
    }
    fn left_ms(&self) -> Millis {
        self.since.map_or(0, |since| (since + self.limit_ms - self.now).max(0))
    }
    fn catch_up(&mut self, out: &mut Actions) {
        if broken(Mutant::NotCaughtUp) {
            return self.number(out);
        }
        if self.since.is_none() {
            self.since = Some(self.now);
            out.rest(LIMIT, self.limit_ms);
        }
        if self.left_ms() == 0 {
            return self.too_late(out);
        }
        self.step = Step::CatchingUp;
        let Some(block) = self.block else { return };
        self.tell(SLOT, SYNC, Retry::Never, out, |b| {
            b.timestamp("returnAfterReachingDonorTimestamp", block);
        });
    }
    fn too_late(&mut self, out: &mut Actions) {
        let text = "the tenants were blocked for longer than tenantMigrationBlockingStateTimeoutMS";
        self.give_up(Error::new(ErrorCode::ExceededTimeLimit, text), out);
    }
    fn number(&mut self, out: &mut Actions) {
        out.cancel(LIMIT);
        self.own(Step::Numbering, NUMBER, Retry::Always, out);
    }
    fn give_up(&mut self, why: Error, out: &mut Actions) {
        self.stop = None;
        self.why = Some((why.code, why.message.to_string()));
        self.number(out);
    }
    /// The recipient hears of the decision as soon as there is one, and this one waits until it may be forgotten.
    fn tell_decision(&mut self, out: &mut Actions) {
        self.told = !self.peer_knows;
        match (self.phase, self.told) {
            (_, true) => {}
            (Phase::Committed, _) => self.tell(PEER, COMMIT, Retry::Always, out, |_| {}),
            _ => self.tell_forget(PEER, out),
        }
        self.step = Step::AwaitingForget;
        out.await_nudge(SLOT);
    }
    fn tell_forget(&self, slot: Slot, out: &mut Actions) {
        let (decision, retry) = match self.phase == Phase::Committed {
            true => ("committed", Retry::Always),
            // A set that refuses it, as one without `--serverless` does, has nothing to forget.
            false => ("aborted", Retry::UntilRefused),
        };
        self.tell(slot, FORGET, retry, out, |b| _ = b.str("decision", decision));
    }
    fn forget(&mut self, out: &mut Actions) {
        if !self.told && !broken(Mutant::ForgottenUntold) {
            self.step = Step::Telling;
            // Nobody is let in there, whether it hears of it or not; an address that leads nowhere must not hold this set for ever.
            if self.phase == Phase::Aborted {
                out.rest(LIMIT, limits::TENANT_MIGRATION_UNTOLD_MS as Millis);
            }
        } else if self.phase == Phase::Committed {
            self.step = Step::Forgetting;
            self.tell_forget(SLOT, out);
        } else {
            self.expire(out);
        }
    }
    fn expire(&mut self, out: &mut Actions) {
        self.own(Step::Expiring, EXPIRE, Retry::Always, out);
    }

    /// What was to take so long at most has not come to its end.
    fn on_limit(&mut self, out: &mut Actions) {
        match self.step {
            Step::CatchingUp | Step::Pausing if self.phase == Phase::Blocking => {
                out.cancel(SLOT);
                self.too_late(out);
            }
            Step::Telling => {
                out.note("the recipient was not reached; if it has heard of the migration, send it recipientForgetMigration");
                out.cancel(PEER);
                self.on_peer_told(out);
            }
            _ => {}
        }
    }
    fn on_peer_told(&mut self, out: &mut Actions) {
        self.told = true;
        out.cancel(LIMIT);
        if self.step == Step::Telling {
            self.forget(out);
        }
    }
    /// What was under way has worked.
    fn on_done(&mut self, reply: &RawDoc, out: &mut Actions) {
        let reached = reply.get("reached").is_some_and(|v| v.is_truthy());
        match self.step {
            Step::Validating => self.validated(reply, out),
            Step::AbortingBuilds => self.begin_phase(Phase::Sync, out),
            Step::Syncing if reached || broken(Mutant::NotConsistent) => self.block(out),
            Step::CatchingUp if reached => self.number(out),
            Step::Syncing | Step::CatchingUp => self.pause(out),
            Step::Blocking => match timestamp_at(reply, "blockTimestamp") {
                Some(at) => {
                    self.block = Some(at);
                    self.begin_phase(Phase::Blocking, out);
                }
                None => self.give_up(Error::internal("a migration without a blockTimestamp"), out),
            },
            Step::Numbering => {
                self.decided = doc_at(reply, "opTime").and_then(|at| op_time(&at));
                let phase = if self.why.is_some() { Phase::Aborted } else { Phase::Committed };
                self.begin_phase(phase, out);
            }
            Step::Forgetting => self.expire(out),
            Step::Expiring => self.expiring(reply, out),
            Step::Discarding => self.end(out),
            Step::Idle | Step::Pausing | Step::AwaitingForget | Step::Telling | Step::Delaying => {}
        }
    }
    fn validated(&mut self, reply: &RawDoc, out: &mut Actions) {
        self.limit_ms = reply.get("timeoutMs").and_then(|v| v.as_i64()).unwrap_or(1).max(1);
        if self.phase == Phase::Blocking {
            return self.catch_up(out);
        }
        if let Some(list) = reply.elem("tenantIds") {
            let mut b = DocBuilder::new();
            self.asked.iter().filter(|e| e.name() != "tenantIds").for_each(|e| _ = b.elem(e));
            b.elem(list);
            self.asked = b.finish();
        }
        self.begin_phase(Phase::Builds, out);
    }
    fn pause(&mut self, out: &mut Actions) {
        self.step = Step::Pausing;
        out.rest(SLOT, limits::TENANT_MIGRATION_POLL_MS as Millis);
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
    fn discard(&mut self, out: &mut Actions) {
        match self.phase == Phase::Committed || broken(Mutant::DiscardedOnAbort) {
            true => self.own(Step::Discarding, DISCARD, Retry::Always, out),
            false => self.end(out),
        }
    }
    fn end(&mut self, out: &mut Actions) {
        self.phase = Phase::Over;
        self.step = Step::Idle;
        out.done(Ok(DocBuf::default()));
    }
    fn on_failure(&mut self, why: Error, out: &mut Actions) {
        match self.step {
            Step::Validating | Step::AbortingBuilds | Step::Syncing | Step::Blocking => {
                self.give_up(why, out);
            }
            Step::CatchingUp if !may_come_right(&why) => self.give_up(why, out),
            Step::CatchingUp => {
                out.note(format!("the recipient does not have everything yet: {why}"));
                self.pause(out);
            }
            _ => {}
        }
    }
    fn on_rested(&mut self, out: &mut Actions) {
        match self.step {
            Step::Pausing if self.phase == Phase::Sync => self.sync(out),
            Step::Pausing => self.catch_up(out),
            Step::Delaying => self.discard(out),
            _ => {}
        }
    }
    fn on_abort(&mut self, why: Error, out: &mut Actions) {
        // The next primary goes on.
        if why.code.is(class::NOT_PRIMARY | class::SHUTDOWN) || self.phase == Phase::Over {
            return;
        }
        if self.phase.is_decided() {
            if broken(Mutant::AbortedBehindCommit)
                && self.phase == Phase::Committed
                && self.expire_at.is_none()
            {
                out.cancel(SLOT);
                out.cancel(PEER);
                self.give_up(why, out);
            }
            return;
        }
        match self.step {
            // The number is of whatever is decided.
            Step::Numbering if self.why.is_none() => self.why = Some((why.code, why.message.to_string())),
            Step::Numbering => {}
            // What the document says next is on its way to a majority.
            Step::Idle => self.stop = Some(why),
            _ => {
                out.cancel(SLOT);
                self.give_up(why, out);
            }
        }
    }
}

impl Workflow for DonateTenants {
    fn step(&mut self, now: Millis, event: Event, out: &mut Actions) {
        self.now = now;
        match event {
            Event::Begin => out.checkpoint(),
            Event::Durable => match self.stop.take_if(|_| !self.phase.is_decided()) {
                Some(why) => self.give_up(why, out),
                None => self.go(out),
            },
            Event::Abort(why) => self.on_abort(why, out),
            Event::Answer { slot: PEER, reply } => {
                if let Err(why) = reply {
                    out.note(format!("the recipient has nothing to forget: {why}"));
                }
                self.on_peer_told(out);
            }
            Event::Answer { reply: Ok(reply), .. } => self.on_done(&reply, out),
            Event::Answer { reply: Err(why), .. } => self.on_failure(why, out),
            Event::Rested { slot: LIMIT } => self.on_limit(out),
            Event::Rested { .. } => self.on_rested(out),
            Event::Nudged { .. } => self.forget(out),
            _ => {}
        }
    }
    fn document(&self) -> Option<DocBuf> {
        let state = Phase::KEPT.iter().find(|(phase, _)| *phase == self.phase).map_or("", |(_, text)| text);
        let mut b = DocBuilder::new();
        b.uuid("_id", &self.id.0).elems_of(&self.asked).str("state", state);
        if self.peer_knows {
            b.bool("recipientKnows", true);
        }
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
