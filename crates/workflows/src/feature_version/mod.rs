//! `setFeatureCompatibilityVersion` of a whole cluster, on the config servers (SYS-264).
//!
//! ```text
//!   unset: no shard is added; number, shards ─► start: this node ─► every shard ─► complete: every shard ─► this node ─► over
//! ```
//! A node that has started is content with the features of both versions; one that has completed uses those of the new one. So nobody uses what
//! another one does not know, and this node, which says what a new shard is told, is the first to begin and the last to end.
//!
//! What is refused ends it where it is, which is what whoever asks is told: it is taken up by asking again, also for the way back.

pub mod mutants;

use crate::configsvr::{LOOK, append_id, nonsense};
use crate::ddl::{Locks, SHARDS, SLOT, append_majority, failure, texts_at, timestamp_at};
use crate::{Actions, Event, Level, Resource, Retry, Slot, Target, Workflow};
use mutants::{Mutant, broken};
use pando_base::{Error, ErrorCode, Millis, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use std::collections::BTreeSet;

/// Also what a shard is told: `{<command>: <version>, phase, changeTimestamp}`.
pub const OPERATION: &str = "setFeatureCompatibilityVersion";
/// A step of this node: `{<step>: <version>, phase}`: it goes as far itself.
pub const ADVANCE: &str = "advanceFeatureVersion";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Phase {
    Unset,
    Start,
    Complete,
    Over,
}

impl Phase {
    const KEPT: [(Phase, &str); 3] =
        [(Phase::Unset, "unset"), (Phase::Start, "start"), (Phase::Complete, "complete")];

    fn text(self) -> &'static str {
        Phase::KEPT.iter().find(|(phase, _)| *phase == self).map_or("", |(_, text)| text)
    }
}

#[derive(Clone, Debug)]
struct SetFeatureVersion {
    version: String,
    phase: Phase,
    number: Timestamp,
    shards: Vec<String>,
    locks: Locks,
    /// Shards that have not done this phase.
    left: BTreeSet<Slot>,
}

/// What it starts from.
pub fn begin(version: &str) -> DocBuf {
    let new = SetFeatureVersion {
        version: version.to_owned(),
        phase: Phase::Unset,
        number: Timestamp::ZERO,
        shards: Vec::new(),
        locks: Locks::new(Vec::new()),
        left: BTreeSet::new(),
    };
    new.state()
}

pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    let text = |name: &str| state.get(name).and_then(|v| v.as_str().map(str::to_owned));
    let kept = text("phase");
    let phase = Phase::KEPT.iter().find(|(_, text)| Some(*text) == kept.as_deref()).map(|(phase, _)| *phase);
    let (Some(phase), Some(version)) = (phase, text("version")) else { return Err(nonsense(state)) };
    let number = timestamp_at(state, "timestamp");
    if (phase == Phase::Unset) != number.is_none() {
        return Err(nonsense(state));
    }
    let locks = if broken(Mutant::ShardsMayJoin) { Vec::new() } else { locks() };
    Ok(Box::new(SetFeatureVersion {
        version,
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

impl SetFeatureVersion {
    /// Where a phase begins, be it here or after a failover.
    fn go(&mut self, out: &mut Actions) {
        match self.phase {
            Phase::Unset => {
                let mut b = DocBuilder::new();
                b.i32(LOOK, 1);
                out.call(SLOT, Target::Own, b.finish(), Retry::Always);
            }
            Phase::Start if broken(Mutant::ShardsComeFirst) => self.tell(out),
            Phase::Start => self.advance(out),
            Phase::Complete if broken(Mutant::EndsFirst) => self.advance(out),
            Phase::Complete => self.tell(out),
            Phase::Over => {}
        }
    }
    fn looked(&mut self, reply: &RawDoc, out: &mut Actions) {
        self.number = timestamp_at(reply, "timestamp").unwrap_or_default();
        self.shards = texts_at(reply, "shards");
        self.phase = Phase::Start;
        match broken(Mutant::NumberIsNotSafe) {
            true => self.go(out),
            false => out.checkpoint(),
        }
    }
    fn advance(&self, out: &mut Actions) {
        let mut b = DocBuilder::new();
        b.str(ADVANCE, &self.version).str("phase", self.phase.text());
        out.call(SLOT, Target::Own, b.finish(), Retry::Transient);
    }
    fn tell(&mut self, out: &mut Actions) {
        let told = self.shards.len() - usize::from(broken(Mutant::OneIsLeftOut) && self.shards.len() > 1);
        self.left = (SHARDS..).take(told).collect();
        let mut b = DocBuilder::new();
        b.str(OPERATION, &self.version).bool("fromConfigServer", true);
        b.str("phase", self.phase.text());
        if !broken(Mutant::Unnumbered) {
            b.timestamp("changeTimestamp", self.number);
        }
        append_majority(&mut b, "admin");
        let body = b.finish();
        for (slot, shard) in (SHARDS..).zip(&self.shards).take(told) {
            out.call(slot, Target::Shard(shard.clone()), body.clone(), Retry::UntilRefused);
        }
        self.unless_left(out);
    }
    fn unless_left(&mut self, out: &mut Actions) {
        let hasty = broken(Mutant::NobodyIsWaitedFor) && self.left.len() < self.shards.len();
        if !self.left.is_empty() && !hasty {
            return;
        }
        self.cancel_left(out);
        let own_is_left = self.phase == Phase::Complete && !broken(Mutant::EndsFirst)
            || self.phase == Phase::Start && broken(Mutant::ShardsComeFirst);
        match own_is_left {
            true => self.advance(out),
            false => self.phase_is_over(out),
        }
    }
    fn cancel_left(&mut self, out: &mut Actions) {
        for slot in std::mem::take(&mut self.left) {
            out.cancel(slot);
        }
    }
    fn phase_is_over(&mut self, out: &mut Actions) {
        match self.phase {
            Phase::Start => {
                self.phase = Phase::Complete;
                out.checkpoint();
            }
            _ => self.end(Ok(DocBuf::default()), out),
        }
    }
    fn answered(&mut self, slot: Slot, reply: &RawDoc, out: &mut Actions) {
        match (self.phase, slot) {
            (Phase::Unset, _) => self.looked(reply, out),
            (Phase::Start, SLOT) if !broken(Mutant::ShardsComeFirst) => self.tell(out),
            (Phase::Complete, SLOT) if broken(Mutant::EndsFirst) => self.tell(out),
            (Phase::Start | Phase::Complete, SLOT) => self.phase_is_over(out),
            _ => self.done_by(slot, out),
        }
    }
    fn done_by(&mut self, slot: Slot, out: &mut Actions) {
        self.left.remove(&slot);
        self.unless_left(out);
    }
    fn refused(&mut self, slot: Slot, why: &Error, out: &mut Actions) {
        let gone = why.code == ErrorCode::ShardNotFound && !broken(Mutant::GoneIsARefusal);
        if slot != SLOT && (gone || broken(Mutant::RefusalIsBelieved)) {
            return self.done_by(slot, out);
        }
        self.cancel_left(out);
        self.end(Err(why.clone()), out);
    }
    fn end(&mut self, result: Result<DocBuf>, out: &mut Actions) {
        self.phase = Phase::Over;
        for (resource, _) in locks() {
            out.release(resource);
        }
        out.done(result);
    }
    fn state(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        append_id(&mut b, OPERATION);
        b.str("version", &self.version).str("phase", self.phase.text());
        if self.phase != Phase::Unset {
            b.timestamp("timestamp", self.number);
            b.array("shards", |list| self.shards.iter().for_each(|shard| _ = list.str(shard)));
        }
        b.finish()
    }
}

impl Workflow for SetFeatureVersion {
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
            // A client that waits no more stops nothing: others may have joined it.
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
        assert!(self.left.is_empty() || matches!(self.phase, Phase::Start | Phase::Complete));
    }
}
