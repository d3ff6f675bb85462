//! `setUserWriteBlockMode` of a whole cluster, on the config servers (SYS-265, SH-UWB-3).
//!
//! ```text
//!   unset: no shard is added; number, shards ─► prepare: every shard ─► this node ─► complete: every shard ─► this node ─► over
//! ```
//! | | prepare | complete |
//! |---|---|---|
//! | block | no definition begins any more, those under way come to their end | nor does a write |
//! | unblock | writes are let in | definitions, too |
//!
//! The second phase begins when all shards have done the first, so no definition that several take part in meets one that refuses its writes.
//! Whoever has begun to block goes on, whatever a shard says: it is told again. One that has been removed meanwhile is told no more. A shard that
//! is added later takes over what this node keeps, and none is added before that is all of it.

pub mod mutants;

use crate::configsvr::{LOOK, append_id, nonsense};
use crate::ddl::{Locks, SHARDS, SLOT, append_majority, failure, texts_at, timestamp_at};
use crate::{Actions, Event, Level, Resource, Retry, Slot, Target, Workflow};
use mutants::{Mutant, broken};
use pando_base::{Error, ErrorCode, Millis, Result, Timestamp, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use std::collections::BTreeSet;

pub const OPERATION: &str = "setUserWriteBlockMode";
/// What a shard is told: `{<command>: 1, global, phase, timestamp}`.
pub const COMMAND: &str = "_shardsvrSetUserWriteBlockMode";
/// A step of this node: `{<step>: 1, global, phase}`: it keeps what shards have been told.
pub const KEEP: &str = "keepUserWriteBlockMode";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Phase {
    Unset,
    Prepare,
    Complete,
    Over,
}

impl Phase {
    const KEPT: [(Phase, &str); 3] =
        [(Phase::Unset, "unset"), (Phase::Prepare, "prepare"), (Phase::Complete, "complete")];

    fn text(self) -> &'static str {
        Phase::KEPT.iter().find(|(phase, _)| *phase == self).map_or("", |(_, text)| text)
    }
}

/// What it starts from.
pub fn begin(block: bool) -> DocBuf {
    let new = SetUserWriteBlockMode {
        block,
        phase: Phase::Unset,
        number: Timestamp::ZERO,
        shards: Vec::new(),
        locks: Locks::new(Vec::new()),
        left: BTreeSet::new(),
    };
    new.state()
}

#[derive(Clone, Debug)]
struct SetUserWriteBlockMode {
    block: bool,
    phase: Phase,
    number: Timestamp,
    shards: Vec<String>,
    locks: Locks,
    /// Shards that have not done this phase.
    left: BTreeSet<Slot>,
}

pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    let text = state.get("phase");
    let text = text.as_ref().and_then(|v| v.as_str());
    let phase = Phase::KEPT.iter().find(|(_, kept)| Some(*kept) == text).map(|(phase, _)| *phase);
    let block = state.get("block").and_then(|v| v.as_bool());
    let (Some(phase), Some(block)) = (phase, block) else { return Err(nonsense(state)) };
    let number = timestamp_at(state, "timestamp");
    if (phase == Phase::Unset) != number.is_none() {
        return Err(nonsense(state));
    }
    let locks = if broken(Mutant::ShardsMayJoin) { Vec::new() } else { locks() };
    Ok(Box::new(SetUserWriteBlockMode {
        block,
        phase,
        number: number.unwrap_or_default(),
        shards: texts_at(state, "shards"),
        locks: Locks::new(locks),
        left: BTreeSet::new(),
    }))
}

fn locks() -> Vec<(Resource, Level)> {
    vec![(Resource::Membership, Level::Exclusive)]
}

impl SetUserWriteBlockMode {
    /// Where a phase begins, be it here or after a failover.
    fn go(&mut self, out: &mut Actions) {
        match self.phase {
            Phase::Unset => {
                let mut b = DocBuilder::new();
                b.i32(LOOK, 1);
                out.call(SLOT, Target::Own, b.finish(), Retry::Always);
            }
            Phase::Prepare | Phase::Complete => self.tell(out),
            Phase::Over => {}
        }
    }
    fn looked(&mut self, reply: &RawDoc, out: &mut Actions) {
        self.number = timestamp_at(reply, "timestamp").unwrap_or_default();
        self.shards = texts_at(reply, "shards");
        self.phase = if broken(Mutant::OnePhase) { Phase::Complete } else { Phase::Prepare };
        match broken(Mutant::NumberIsNotSafe) {
            true => self.go(out),
            false => out.checkpoint(),
        }
    }
    fn tell(&mut self, out: &mut Actions) {
        let told = self.shards.len() - usize::from(broken(Mutant::OneIsLeftOut) && self.shards.len() > 1);
        self.left = (SHARDS..).take(told).collect();
        for slot in self.left.clone() {
            self.tell_one(slot, out);
        }
        self.unless_left(out);
    }
    fn tell_one(&self, slot: Slot, out: &mut Actions) {
        let Some(shard) = self.shards.get((slot - SHARDS) as usize) else { return };
        let mut b = DocBuilder::new();
        b.i32(COMMAND, 1).bool("global", self.block).str("phase", self.phase.text());
        if !broken(Mutant::Unnumbered) {
            b.timestamp("timestamp", self.number);
        }
        append_majority(&mut b, "admin");
        out.call(slot, Target::Shard(shard.clone()), b.finish(), Retry::UntilRefused);
    }
    fn unless_left(&mut self, out: &mut Actions) {
        let hasty = broken(Mutant::NobodyIsWaitedFor) && self.left.len() < self.shards.len();
        match self.left.is_empty() || hasty {
            true if broken(Mutant::NotKept) => self.kept(out),
            true => self.keep(out),
            false => {}
        }
    }
    fn keep(&self, out: &mut Actions) {
        let mut b = DocBuilder::new();
        b.i32(KEEP, 1).bool("global", self.block).str("phase", self.phase.text());
        out.call(SLOT, Target::Own, b.finish(), Retry::Always);
    }
    fn kept(&mut self, out: &mut Actions) {
        for slot in std::mem::take(&mut self.left) {
            out.cancel(slot);
        }
        if self.phase == Phase::Prepare {
            self.phase = Phase::Complete;
            return out.checkpoint();
        }
        self.phase = Phase::Over;
        for (resource, _) in locks() {
            out.release(resource);
        }
        out.done(Ok(DocBuf::default()));
    }
    fn answered(&mut self, slot: Slot, reply: &RawDoc, out: &mut Actions) {
        match (self.phase, slot) {
            (Phase::Unset, _) => self.looked(reply, out),
            (_, SLOT) => self.kept(out),
            _ => self.done_by(slot, out),
        }
    }
    fn done_by(&mut self, slot: Slot, out: &mut Actions) {
        self.left.remove(&slot);
        self.unless_left(out);
    }
    /// Only shards are told in a way that may be refused.
    fn refused(&mut self, slot: Slot, why: &Error, out: &mut Actions) {
        let gone = why.code == ErrorCode::ShardNotFound && !broken(Mutant::GoneIsWaitedFor);
        if gone || broken(Mutant::RefusalIsBelieved) {
            return self.done_by(slot, out);
        }
        out.note(format!("{OPERATION} is refused by a shard, which is told again: {why}"));
        out.rest(slot, limits::WORKFLOW_RETRY_MS_MAX as Millis);
    }
    fn state(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        append_id(&mut b, OPERATION);
        b.bool("block", self.block).str("phase", self.phase.text());
        if self.phase != Phase::Unset {
            b.timestamp("timestamp", self.number);
            b.array("shards", |list| self.shards.iter().for_each(|shard| _ = list.str(shard)));
        }
        b.finish()
    }
}

impl Workflow for SetUserWriteBlockMode {
    fn step(&mut self, _: Millis, event: Event, out: &mut Actions) {
        if let (Event::Answer { .. }, Some((slot, why))) = (&event, failure(&event)) {
            return self.refused(slot, why, out);
        }
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
            Event::Answer { slot, reply: Ok(reply) } => self.answered(slot, &reply, out),
            Event::Rested { slot } => self.tell_one(slot, out),
            // A client that waits no more stops nothing: shards have been told, and others may have joined it.
            _ => {}
        }
    }
    fn document(&self) -> Option<DocBuf> {
        Some(self.state())
    }
    fn holds(&self) -> Vec<(Resource, Level)> {
        match self.phase {
            Phase::Unset => Vec::new(),
            _ => locks(),
        }
    }
    fn check(&self) {
        assert!(self.number != Timestamp::ZERO || matches!(self.phase, Phase::Unset | Phase::Over));
        assert!(self.left.is_empty() || matches!(self.phase, Phase::Prepare | Phase::Complete));
    }
}
