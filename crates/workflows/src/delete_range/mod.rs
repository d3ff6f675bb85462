//! Deleting a range that is another shard's by now, or that never became this one's (SH-RDEL).
//!
//! ```text
//!   wait: readers here have gone ─► orphan cleanup delay ─► lock ─► whose is it? ─► delete ─► helping, pause, helping… ─► once more from the beginning ─► over
//!                                                                      └ its own, or of a collection that is no more: nothing
//! ```
//! The state document is the task that [`migration`](crate::migration) has written to `config.rangeDeletions`, once it is no longer pending. One range is
//! deleted at a time: the lock is one for all of them.

pub mod mutants;

use crate::ddl::SLOT;
use crate::migration::{DELETIONS_COLLECTION, Migration, nonsense, parse};
use crate::{Actions, Event, Level, Resource, Retry, Workflow};
use mutants::{Mutant, broken};
use pando_base::{Millis, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};

/// Steps of this node, all `{<step>: <ns>, migrationId, range, …}`.
///
/// Returns when no reader of this node is left that goes by an older ownership of the range. ─► `{delayMs, pauseMs}`
pub const AWAIT_READERS: &str = "awaitReadersOfRange";
/// ─► `{owned, gone}`: as the config servers say; `gone`: there is no such collection any more.
pub const JUDGE: &str = "judgeRange";
/// One helping. ─► `{done, restMs?, next?}`: how long to rest at least behind it, so that clients keep most of the machine; `next` is
/// given to the following one, which goes on there. `done`: there is no more from there on.
pub const DELETE: &str = "deleteSomeOfRange";
pub const NEXT: &str = "next";

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Idle,
    Readers,
    Delay,
    Locking,
    Judging,
    /// Secondaries are told by the state document that what their readers see may go.
    Telling,
    Deleting,
    Pausing,
}

/// The machine.
#[derive(Clone, Debug)]
pub struct DeleteRange {
    migration: Migration,
    /// Nobody ever saw it here.
    at_once: bool,
    processing: bool,
    step: Step,
    pause_ms: Millis,
    /// Where the next helping begins; `None`: with the range.
    next: Option<DocBuf>,
}

pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    Ok(Box::new(DeleteRange::of(state)?))
}

/// What takes one range after the other.
fn lock() -> Resource {
    Resource::Definition(format!("config.{DELETIONS_COLLECTION}"))
}

impl DeleteRange {
    pub fn of(state: &RawDoc) -> Result<DeleteRange> {
        if state.get("pending").is_some_and(|v| v.is_truthy()) {
            return Err(nonsense(state));
        }
        let when = state.get("whenToClean").and_then(|v| v.as_str().map(str::to_owned));
        Ok(DeleteRange {
            migration: parse(state)?,
            at_once: when.as_deref() == Some("now"),
            processing: state.get("processing").is_some_and(|v| v.is_truthy()),
            step: Step::Idle,
            pause_ms: 0,
            next: None,
        })
    }
    fn own(&mut self, step: Step, name: &str, out: &mut Actions) {
        self.step = step;
        let mut b = self.migration.command(name);
        self.migration.append(&mut b);
        b.str("whenToClean", if self.at_once { "now" } else { "delayed" });
        if let Some(next) = &self.next {
            b.raw_doc(NEXT, next);
        }
        out.call(SLOT, crate::Target::Own, b.finish(), Retry::Always);
    }
    fn delete(&mut self, out: &mut Actions) {
        self.own(Step::Deleting, DELETE, out);
    }
    fn readers_gone(&mut self, reply: &RawDoc, out: &mut Actions) {
        let ms = |name: &str| reply.get(name).and_then(|v| v.as_i64()).unwrap_or(0).max(0);
        self.pause_ms = ms("pauseMs");
        match ms("delayMs") {
            delay if delay > 0 && !self.at_once && !broken(Mutant::NoDelay) => {
                self.step = Step::Delay;
                out.rest(SLOT, delay);
            }
            _ => self.take_turn(out),
        }
    }
    fn take_turn(&mut self, out: &mut Actions) {
        self.step = Step::Locking;
        match broken(Mutant::SeveralAtOnce) {
            true => self.own(Step::Judging, JUDGE, out),
            false => out.lock_in_the_end(SLOT, lock(), Level::Exclusive),
        }
    }
    fn judged(&mut self, reply: &RawDoc, out: &mut Actions) {
        let said = |name: &str| reply.get(name).is_some_and(|v| v.is_truthy());
        if said("gone") {
            return self.end(out);
        }
        if said("owned") && !broken(Mutant::OwnRangeDeleted) {
            out.note(format!("a range of {} is not deleted, since this shard owns it", self.migration.ns));
            return self.end(out);
        }
        match self.processing {
            true => self.delete(out),
            false => {
                self.processing = true;
                self.step = Step::Telling;
                out.checkpoint();
            }
        }
    }
    fn deleted(&mut self, reply: &RawDoc, out: &mut Actions) {
        let behind =
            std::mem::replace(&mut self.next, reply.get(NEXT).and_then(|v| v.as_doc()).map(RawDoc::to_buf));
        if reply.get("done").is_some_and(|v| v.is_truthy()) {
            self.next = None;
            // Its index may be another one than it was, and what was passed over may be there again.
            return match behind.is_none() || broken(Mutant::NotLookedAgain) {
                true => self.end(out),
                false => self.delete(out),
            };
        }
        if broken(Mutant::OneHelping) {
            return self.end(out);
        }
        self.step = Step::Pausing;
        let rest_ms = reply.get("restMs").and_then(|v| v.as_i64()).unwrap_or(0);
        out.rest(SLOT, rest_ms.max(self.pause_ms));
    }
    /// The task goes, on a majority, behind all that was deleted.
    fn end(&mut self, out: &mut Actions) {
        self.step = Step::Idle;
        out.release(lock());
        out.done(Ok(DocBuf::default()));
    }
}

impl Workflow for DeleteRange {
    fn step(&mut self, _: Millis, event: Event, out: &mut Actions) {
        match (self.step, event) {
            (_, Event::Begin) => out.checkpoint(),
            // In whichever life: this node's readers are asked for before anything goes.
            (Step::Idle, Event::Durable) if self.processing && broken(Mutant::ReadersForgotten) => {
                self.take_turn(out);
            }
            (Step::Idle, Event::Durable) => self.own(Step::Readers, AWAIT_READERS, out),
            (Step::Telling, Event::Durable) => self.delete(out),
            (Step::Readers, Event::Answer { reply: Ok(reply), .. }) => self.readers_gone(&reply, out),
            (Step::Delay, Event::Rested { .. }) => self.take_turn(out),
            (Step::Locking, Event::Locked { .. }) => self.own(Step::Judging, JUDGE, out),
            (Step::Judging, Event::Answer { reply: Ok(reply), .. }) => self.judged(&reply, out),
            (Step::Deleting, Event::Answer { reply: Ok(reply), .. }) => self.deleted(&reply, out),
            (Step::Pausing, Event::Rested { .. }) => self.delete(out),
            // What has to be deleted is deleted, whoever waits.
            _ => {}
        }
    }
    fn document(&self) -> Option<DocBuf> {
        let mut b = DocBuilder::new();
        b.uuid("_id", &self.migration.id.0);
        self.migration.append(&mut b);
        b.str("whenToClean", if self.at_once { "now" } else { "delayed" });
        if self.processing {
            b.bool("processing", true);
        }
        Some(b.finish())
    }
    /// Who has begun goes on first.
    fn holds(&self) -> Vec<(Resource, Level)> {
        if self.processing { vec![(lock(), Level::Exclusive)] } else { Vec::new() }
    }
    fn check(&self) {
        assert!(self.processing || self.step != Step::Deleting, "deleting before anybody is told");
    }
}
