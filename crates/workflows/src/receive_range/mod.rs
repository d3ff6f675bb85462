//! A migration, as its recipient sees it (SH-MIG-6 to SH-MIG-15). See [`migration`](crate::migration) for both sides.
//!
//! ```text
//!   begin ─► prepare: task ─► clone: collection ─► documents ─► changes… ─► told to commit ─► drain ─► section ─► entered
//!     │ nothing is here yet     │ whoever finds these phases gives up: the donor gives to one life of one recipient │
//!     ▼                         ▼                                                                                 ▼
//!    over ◄────────── task ready ◄── stayed ─── who owns it? ◄── is it over? ◄── not yet ──── who owns it? ◄── told ┘
//!     ▲                                           │ moved          └ ask again                   │ moved
//!     └──────────────── no task ◄─ section goes ◄─┴──────────────────────────────────────────────┘
//! ```
//! The donor tells when the config servers have committed: its writers wait, so they are asked before the donor is. That the range has moved
//! is true whoever tells; that it has not, only once the donor can commit no more.

pub mod mutants;

use crate::ddl::SLOT;
use crate::migration::{self, Clean, Migration, parse};
use crate::{Actions, Event, Retry, Slot, Workflow};
use mutants::{Mutant, broken};
use pando_base::{Error, ErrorCode, Millis, Result, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc};

/// Steps of this node, all `{<step>: <ns>, migrationId, …}`.
///
/// Fails where this shard owns something of the range, or where something of it waits to be deleted for too long.
pub const PREPARE: &str = "prepareToReceive";
/// The collection is here as the donor has it, with its indexes. Also `receiver`: a number of this life.
pub const MAKE: &str = "makeCollectionToReceive";
/// The documents of the range, each as of some moment since the donor records.
pub const CLONE: &str = "receiveDocuments";
/// What the donor has recorded: one helping. ─► `{empty}`
pub const CATCH_UP: &str = "receiveChanges";
/// The same, and the histories of sessions, until there is nothing left. The donor's writes are blocked.
pub const DRAIN: &str = "receiveTheRest";
/// ─► `{moved}`: who owns the range, as the config servers say; and this node goes by no older answer of theirs.
pub const RESOLVE: &str = "resolveReceived";

/// Whoever wants something of it.
const TOLD: Slot = 1;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Phase {
    Begin,
    Prepare,
    Clone,
    Entered,
    Over,
}

impl Phase {
    const KEPT: [(Phase, &str); 4] = [
        (Phase::Begin, "begin"),
        (Phase::Prepare, "prepare"),
        (Phase::Clone, "clone"),
        (Phase::Entered, "entered"),
    ];
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Idle,
    Drawing,
    Preparing,
    Tasking,
    Making,
    Cloning,
    CatchingUp,
    /// There was little to catch up with.
    Pausing,
    Draining,
    Entering,
    /// Until the donor tells, or it is time to ask.
    Waiting,
    /// Whether it has moved already.
    Looking,
    Asking,
    Resolving,
    Leaving,
    Tidying,
}

/// The machine.
#[derive(Clone, Debug)]
pub struct ReceiveRange {
    migration: Migration,
    request: DocBuf,
    phase: Phase,
    step: Step,
    /// The donor gives to one receiver; `None`: this life has found the phase that it is in.
    receiver: Option<u64>,
    /// The donor blocks its writes, and waits.
    told: bool,
    why: Option<Error>,
    stop: Option<Error>,
}

/// What an instance starts from: `{_id, nss, collectionUuid, donorShardId, recipientShardId, range, keyPattern, request}`.
pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    Ok(Box::new(ReceiveRange::of(state)?))
}

impl ReceiveRange {
    pub fn of(state: &RawDoc) -> Result<ReceiveRange> {
        let text = state.get("phase").and_then(|v| v.as_str().map(str::to_owned));
        let text = text.as_deref().unwrap_or("begin");
        let phase = Phase::KEPT.iter().find(|(_, known)| *known == text).map(|(phase, _)| *phase);
        Ok(ReceiveRange {
            migration: parse(state)?,
            request: crate::ddl::doc_at(state, "request").unwrap_or_default(),
            phase: phase.ok_or_else(|| migration::nonsense(state))?,
            step: Step::Idle,
            receiver: None,
            told: false,
            why: None,
            stop: None,
        })
    }
    fn own(&self, step: &str, retry: Retry, out: &mut Actions) {
        let mut b = self.migration.command(step);
        self.migration.append(&mut b);
        b.raw_doc("request", &self.request);
        match self.receiver {
            _ if broken(Mutant::GoesOnInAnotherLife) => _ = b.i64("receiver", 1),
            Some(receiver) => _ = b.i64("receiver", receiver.cast_signed()),
            None => {}
        }
        out.call(SLOT, crate::Target::Own, b.finish(), retry);
    }
    fn begin_phase(&mut self, phase: Phase, out: &mut Actions) {
        self.phase = phase;
        self.step = Step::Idle;
        match phase == Phase::Entered && broken(Mutant::EnteredNotSafe)
            || phase == Phase::Clone && broken(Mutant::TaskNotSafe)
        {
            true => self.go(out),
            false => out.checkpoint(),
        }
    }
    /// What the phase begins with, in whichever life.
    fn go(&mut self, out: &mut Actions) {
        let here = self.receiver.is_some() || broken(Mutant::GoesOnInAnotherLife);
        match self.phase {
            Phase::Begin => {
                self.step = Step::Drawing;
                out.draw(SLOT);
            }
            Phase::Prepare if here => {
                self.step = Step::Tasking;
                out.write(SLOT, vec![self.migration.deletion(Clean::Pending)], Retry::Transient);
            }
            Phase::Clone if here => {
                out.await_nudge(TOLD);
                self.step = Step::Making;
                self.own(MAKE, Retry::Transient, out);
            }
            Phase::Prepare | Phase::Clone => {
                let text = "the migration was given up, since the recipient's primary changed";
                self.give_up(Error::new(ErrorCode::InterruptedDueToReplStateChange, text), out);
            }
            Phase::Entered => self.wait(out),
            Phase::Over => {}
        }
    }
    fn clone_documents(&mut self, out: &mut Actions) {
        self.step = Step::Cloning;
        self.own(CLONE, Retry::Transient, out);
    }
    fn catch_up(&mut self, out: &mut Actions) {
        if self.told && broken(Mutant::NotDrained) {
            return self.enter(out);
        }
        self.step = if self.told { Step::Draining } else { Step::CatchingUp };
        self.own(if self.told { DRAIN } else { CATCH_UP }, Retry::Transient, out);
    }
    fn enter(&mut self, out: &mut Actions) {
        if broken(Mutant::StaysOpen) {
            return self.begin_phase(Phase::Entered, out);
        }
        self.step = Step::Entering;
        out.write(SLOT, vec![self.migration.enter(true)], Retry::Transient);
    }
    /// The donor tells when it is over, or it is asked.
    fn wait(&mut self, out: &mut Actions) {
        self.step = Step::Waiting;
        out.await_nudge(TOLD);
        out.rest(SLOT, limits::MIGRATION_DECISION_ASKED_MS as Millis);
    }
    fn ask(&mut self, out: &mut Actions) {
        if broken(Mutant::DonorNotAsked) {
            return self.resolve(out);
        }
        self.step = Step::Asking;
        self.migration.call(SLOT, &self.migration.donor, migration::IS_OVER, Retry::UntilRefused, out);
    }
    fn look(&mut self, out: &mut Actions) {
        self.step = Step::Looking;
        self.own(RESOLVE, Retry::Always, out);
    }
    fn resolve(&mut self, out: &mut Actions) {
        self.step = Step::Resolving;
        self.own(RESOLVE, Retry::Always, out);
    }
    fn give_up(&mut self, why: Error, out: &mut Actions) {
        if self.phase == Phase::Begin {
            return self.end(Err(why), out);
        }
        out.cancel(TOLD);
        self.stop = None;
        self.why = Some(why);
        self.leave(out);
    }
    fn leave(&mut self, out: &mut Actions) {
        self.step = Step::Leaving;
        out.write(SLOT, vec![self.migration.leave()], Retry::Always);
    }
    fn tidy(&mut self, out: &mut Actions) {
        self.step = Step::Tidying;
        let write = match &self.why {
            Some(_) if broken(Mutant::OrphansStay) => self.migration.no_deletion(),
            Some(_) => self.migration.deletion(Clean::Now),
            None if broken(Mutant::ReceivedIsDeleted) => self.migration.deletion(Clean::Now),
            None => self.migration.no_deletion(),
        };
        out.write(SLOT, vec![write], Retry::Always);
    }
    fn end(&mut self, result: Result<DocBuf>, out: &mut Actions) {
        self.phase = Phase::Over;
        self.step = Step::Idle;
        out.done(result);
    }

    /// What was under way has worked.
    fn on_done(&mut self, reply: &RawDoc, out: &mut Actions) {
        if let Some(why) = self.stop.take().filter(|_| self.phase < Phase::Entered) {
            return self.give_up(why, out);
        }
        let moved = || reply.get("moved").is_some_and(|v| v.is_truthy());
        match self.step {
            Step::Preparing => self.begin_phase(Phase::Prepare, out),
            Step::Tasking => self.begin_phase(Phase::Clone, out),
            Step::Making => self.clone_documents(out),
            Step::Cloning => self.catch_up(out),
            Step::CatchingUp if self.told => self.catch_up(out),
            Step::CatchingUp => match reply.get("empty").is_some_and(|v| v.is_truthy()) {
                true => {
                    self.step = Step::Pausing;
                    out.rest(SLOT, limits::MIGRATION_POLL_MS as Millis);
                }
                false => self.catch_up(out),
            },
            Step::Draining => self.enter(out),
            Step::Entering => self.begin_phase(Phase::Entered, out),
            Step::Asking => match reply.get("over").is_some_and(|v| v.is_truthy()) {
                true => self.resolve(out),
                false => self.wait(out),
            },
            Step::Looking | Step::Resolving if moved() => self.leave(out),
            Step::Looking => self.ask(out),
            Step::Resolving => {
                let text = "the config servers say that the range has stayed where it was";
                self.give_up(Error::new(ErrorCode::OperationFailed, text), out);
            }
            Step::Leaving => self.tidy(out),
            Step::Tidying => {
                let result = self.why.take().map_or_else(|| Ok(DocBuf::default()), Err);
                self.end(result, out);
            }
            Step::Drawing | Step::Pausing | Step::Waiting | Step::Idle => {}
        }
    }
    fn on_failure(&mut self, why: Error, out: &mut Actions) {
        match self.step {
            // A shard that is gone commits nothing.
            Step::Asking if why.code == ErrorCode::ShardNotFound => self.resolve(out),
            // The donor will not say; it is asked again.
            Step::Asking => self.wait(out),
            _ if self.phase < Phase::Entered => self.give_up(why, out),
            _ => {}
        }
    }
    fn on_told(&mut self, out: &mut Actions) {
        match self.phase {
            Phase::Entered if self.step == Step::Waiting => {
                out.cancel(SLOT);
                self.look(out);
            }
            // The donor's writers wait.
            _ if self.step == Step::Pausing => {
                self.told = true;
                out.cancel(SLOT);
                self.catch_up(out);
            }
            _ => self.told = true,
        }
    }
    fn on_rested(&mut self, out: &mut Actions) {
        match self.step {
            Step::Waiting => {
                out.cancel(TOLD);
                self.ask(out);
            }
            _ => self.catch_up(out),
        }
    }
    fn on_abort(&mut self, why: Error, out: &mut Actions) {
        if self.phase >= Phase::Entered && !broken(Mutant::AbortedBehindEntered) {
            return;
        }
        match self.step {
            Step::Drawing
            | Step::Preparing
            | Step::Making
            | Step::Cloning
            | Step::CatchingUp
            | Step::Pausing
            | Step::Draining
            | Step::Waiting => {
                out.cancel(SLOT);
                self.give_up(why, out);
            }
            Step::Leaving | Step::Tidying => {}
            _ => self.stop = Some(why),
        }
    }
}

impl Workflow for ReceiveRange {
    fn step(&mut self, _: Millis, event: Event, out: &mut Actions) {
        match event {
            Event::Begin => out.checkpoint(),
            Event::Durable => match self.stop.take().filter(|_| self.phase < Phase::Entered) {
                Some(why) => self.give_up(why, out),
                None => self.go(out),
            },
            Event::Random { number, .. } => {
                self.receiver = Some(number);
                self.step = Step::Preparing;
                self.own(PREPARE, Retry::Transient, out);
            }
            Event::Abort(why) => self.on_abort(why, out),
            Event::Nudged { .. } => self.on_told(out),
            Event::Rested { .. } => self.on_rested(out),
            Event::Answer { reply: Ok(reply), .. } => self.on_done(&reply, out),
            Event::Wrote { result: Ok(_), .. } => self.on_done(RawDoc::empty(), out),
            Event::Answer { reply: Err(why), .. } | Event::Wrote { result: Err(why), .. } => {
                self.on_failure(why, out);
            }
            _ => {}
        }
    }
    fn document(&self) -> Option<DocBuf> {
        let phase = Phase::KEPT.iter().find(|(phase, _)| *phase == self.phase).map_or("", |(_, text)| text);
        let mut b = DocBuilder::new();
        b.uuid("_id", &self.migration.id.0);
        self.migration.append(&mut b);
        b.str("phase", phase).raw_doc("request", &self.request);
        Some(b.finish())
    }
    fn check(&self) {
        assert!(self.receiver.is_none() || self.phase != Phase::Begin || self.step != Step::Drawing);
    }
}
