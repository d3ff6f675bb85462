//! `setClusterParameter` of a whole cluster, on the config servers (SYS-264).
//!
//! ```text
//!   unset: no shard is added; number, shards ─► set: every shard ─► this node ─► over
//! ```
//! The number is also the time that the parameter has from now on, so the last one that is set wins everywhere. Whoever has begun goes on, whatever a
//! shard says. A shard that is added later takes over what this node keeps, and none is added before that is there.

pub mod mutants;

use crate::configsvr::{LOOK, append_id, nonsense};
use crate::ddl::{Locks, SHARDS, SLOT, append_majority, doc_at, failure, texts_at, timestamp_at};
use crate::{Actions, Event, Level, Resource, Retry, Slot, Target, Workflow};
use mutants::{Mutant, broken};
use pando_base::{Error, ErrorCode, Millis, Result, Timestamp, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use std::collections::BTreeSet;

pub const OPERATION: &str = "setClusterParameter";
/// What a shard is told: `{<command>: {<parameter>: value}, clusterParameterTime, timestamp}`.
pub const COMMAND: &str = "_shardsvrSetClusterParameter";
/// A step of this node: `{<step>: {<parameter>: value}, clusterParameterTime}`.
pub const KEEP: &str = "keepClusterParameter";

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Unset,
    Set,
    Over,
}

/// What it starts from: `{<parameter>: value}`.
pub fn begin(parameter: &RawDoc) -> DocBuf {
    let new = SetClusterParameter {
        parameter: parameter.to_buf(),
        phase: Phase::Unset,
        number: Timestamp::ZERO,
        shards: Vec::new(),
        locks: Locks::new(Vec::new()),
        left: BTreeSet::new(),
    };
    new.state()
}

#[derive(Clone, Debug)]
struct SetClusterParameter {
    parameter: DocBuf,
    phase: Phase,
    number: Timestamp,
    shards: Vec<String>,
    locks: Locks,
    /// Shards that have not set it.
    left: BTreeSet<Slot>,
}

pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    let parameter = doc_at(state, "parameter").ok_or_else(|| nonsense(state))?;
    let number = timestamp_at(state, "timestamp");
    let locks = if broken(Mutant::ShardsMayJoin) { Vec::new() } else { locks() };
    Ok(Box::new(SetClusterParameter {
        parameter,
        phase: if number.is_some() { Phase::Set } else { Phase::Unset },
        number: number.unwrap_or_default(),
        shards: texts_at(state, "shards"),
        locks: Locks::new(locks),
        left: BTreeSet::new(),
    }))
}

fn locks() -> Vec<(Resource, Level)> {
    vec![(Resource::Membership, Level::Exclusive)]
}

impl SetClusterParameter {
    /// Where a phase begins, be it here or after a failover.
    fn go(&mut self, out: &mut Actions) {
        match self.phase {
            Phase::Unset => {
                let mut b = DocBuilder::new();
                b.i32(LOOK, 1);
                out.call(SLOT, Target::Own, b.finish(), Retry::Always);
            }
            Phase::Set => {
                let told = self.shards.len() - usize::from(broken(Mutant::OneIsLeftOut));
                self.left = (SHARDS..).take(told).collect();
                for slot in self.left.clone() {
                    self.tell(slot, out);
                }
                self.unless_left(out);
            }
            Phase::Over => {}
        }
    }
    fn looked(&mut self, reply: &RawDoc, out: &mut Actions) {
        self.number = timestamp_at(reply, "timestamp").unwrap_or_default();
        self.shards = texts_at(reply, "shards");
        self.phase = Phase::Set;
        match broken(Mutant::NumberIsNotSafe) {
            true => self.go(out),
            false => out.checkpoint(),
        }
    }
    fn tell(&self, slot: Slot, out: &mut Actions) {
        let Some(shard) = self.shards.get((slot - SHARDS) as usize) else { return };
        let mut b = DocBuilder::new();
        b.raw_doc(COMMAND, &self.parameter).timestamp("clusterParameterTime", self.number);
        if !broken(Mutant::Unnumbered) {
            b.timestamp("timestamp", self.number);
        }
        append_majority(&mut b, "admin");
        out.call(slot, Target::Shard(shard.clone()), b.finish(), Retry::UntilRefused);
    }
    fn unless_left(&mut self, out: &mut Actions) {
        if !self.left.is_empty() && !broken(Mutant::NobodyIsWaitedFor) {
            return;
        }
        if broken(Mutant::NotKept) {
            return self.kept(out);
        }
        let mut b = DocBuilder::new();
        b.raw_doc(KEEP, &self.parameter).timestamp("clusterParameterTime", self.number);
        out.call(SLOT, Target::Own, b.finish(), Retry::Always);
    }
    fn kept(&mut self, out: &mut Actions) {
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
        if !broken(Mutant::NobodyIsWaitedFor) {
            self.unless_left(out);
        }
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
        b.raw_doc("parameter", &self.parameter);
        if self.phase != Phase::Unset {
            b.timestamp("timestamp", self.number);
            b.array("shards", |list| self.shards.iter().for_each(|shard| _ = list.str(shard)));
        }
        b.finish()
    }
}

impl Workflow for SetClusterParameter {
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
            Event::Rested { slot } => self.tell(slot, out),
            // A client that waits no more stops nothing: shards have been told, and others may have joined it.
            _ => {}
        }
    }
    fn document(&self) -> Option<DocBuf> {
        Some(self.state())
    }
    fn holds(&self) -> Vec<(Resource, Level)> {
        match self.phase {
            Phase::Set => locks(),
            Phase::Unset | Phase::Over => Vec::new(),
        }
    }
    fn check(&self) {
        assert!(self.number != Timestamp::ZERO || self.phase == Phase::Unset);
        assert!(self.left.is_empty() || self.phase != Phase::Unset);
    }
}
