//! One collection goes: first nobody routes to it any more, then its parts go. Part of a drop, and of the drop of a database.

use super::{SHARDS, SLOT, append_asked_by, append_majority, own};
use crate::drop_collection::mutants::{Mutant, broken};
use crate::{Actions, Concern, Event, LocalWrite, Retry, Slot, Target};
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, Timestamp, Uuid, limits};
use pando_bson::{DocBuf, DocBuilder};
use std::collections::BTreeSet;

/// A step of this node: `{<step>: <ns>}`, what is here of the collection goes.
pub const DROP_HERE: &str = "dropHere";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Step {
    Entering,
    Committing,
    Elsewhere,
    Here,
    /// Its section may be left.
    Done,
}

#[derive(Clone, Debug)]
pub(crate) struct Dropping {
    pub(crate) ns: Namespace,
    /// As the config servers know it; `None`: it is not sharded.
    pub(crate) uuid: Option<Uuid>,
    /// See the module text of `ddl`.
    pub(crate) at: Timestamp,
    /// The others.
    pub(crate) shards: Vec<String>,
    asked_by: Option<DocBuf>,
    step: Step,
    left: BTreeSet<Slot>,
    failure: Option<Error>,
}

impl Dropping {
    pub(crate) fn new(
        ns: Namespace,
        uuid: Option<Uuid>,
        at: Timestamp,
        shards: Vec<String>,
        asked_by: Option<DocBuf>,
    ) -> Dropping {
        Dropping {
            ns,
            uuid,
            at,
            shards,
            asked_by,
            step: Step::Entering,
            left: BTreeSet::new(),
            failure: None,
        }
    }
    fn reason(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.str("command", "dropCollection").str("ns", self.ns.as_str());
        b.finish()
    }
    pub(crate) fn begin(&mut self, out: &mut Actions) {
        self.step = Step::Entering;
        if broken(Mutant::WritesGoOn) {
            return self.commit(out);
        }
        let (ns, reason) = (self.ns.clone(), self.reason());
        out.write(SLOT, vec![LocalWrite::EnterSection { ns, reason, block_reads: true }], Retry::Always);
    }
    /// Whoever owns it says when.
    pub(crate) fn leave(&self, out: &mut Actions) {
        let (ns, reason) = (self.ns.clone(), self.reason());
        out.write(SLOT, vec![LocalWrite::LeaveSection { ns, reason }], Retry::Always);
    }
    /// `Some`: it is gone, or this node will not let it go, which can be where it is not sharded only. The section is still there.
    pub(crate) fn step(&mut self, event: Event, out: &mut Actions) -> Option<Result<()>> {
        match (self.step, event) {
            (Step::Entering, Event::Wrote { .. }) if broken(Mutant::SectionNotSafe) => self.commit(out),
            (Step::Entering, Event::Wrote { result: Ok(at), .. }) => {
                out.await_replicated(SLOT, at.unwrap_or(OpTime::NULL), Concern::Majority, 0);
            }
            // Nobody waits for longer than this node is primary.
            (Step::Entering, Event::Replicated { result: Err(_), .. }) => self.begin(out),
            (Step::Entering, Event::Replicated { .. }) => self.commit(out),
            (Step::Committing, Event::Answer { .. }) => self.drop_elsewhere(out),
            (Step::Elsewhere, Event::Answer { slot, reply }) => self.on_answer(slot, reply.err(), out),
            (Step::Elsewhere, Event::Rested { slot }) => self.ask(slot, out),
            (Step::Here, Event::Answer { reply, .. }) => {
                self.failure = reply.err();
                self.step = Step::Done;
                return Some(self.failure.clone().map_or(Ok(()), Err));
            }
            _ => {}
        }
        None
    }

    fn commit(&mut self, out: &mut Actions) {
        let Some(uuid) = self.uuid else { return self.drop_elsewhere(out) };
        self.step = Step::Committing;
        if broken(Mutant::PartsFirst) {
            return self.drop_elsewhere(out);
        }
        let mut b = DocBuilder::new();
        b.str("_configsvrCommitDropCollection", self.ns.as_str()).uuid("collectionUUID", &uuid.0);
        if !broken(Mutant::NoNumber) {
            b.timestamp("timestamp", self.at);
        }
        append_majority(&mut b, "admin");
        out.call(SLOT, Target::ConfigServers, b.finish(), Retry::Always);
    }
    fn drop_elsewhere(&mut self, out: &mut Actions) {
        self.step = Step::Elsewhere;
        self.left = (SHARDS..).zip(&self.shards).map(|(slot, _)| slot).collect();
        for slot in self.left.clone() {
            self.ask(slot, out);
        }
        self.unless_left(out);
    }
    /// Also where it is not sharded, once: a shard may have leftovers of a sharding that was given up.
    fn ask(&self, slot: Slot, out: &mut Actions) {
        let Some(shard) = self.shards.get((slot - SHARDS) as usize) else { return };
        let mut b = DocBuilder::new();
        b.str("_shardsvrDropCollectionParticipant", self.ns.coll());
        if !broken(Mutant::NoNumber) {
            b.timestamp("timestamp", self.at);
        }
        append_majority(&mut b, self.ns.db());
        let retry = if self.uuid.is_some() { Retry::UntilRefused } else { Retry::Never };
        out.call(slot, Target::Shard(shard.clone()), b.finish(), retry);
    }
    fn on_answer(&mut self, slot: Slot, failure: Option<Error>, out: &mut Actions) {
        // A shard that has left the cluster has nothing any more.
        let matters = |e: &Error| self.uuid.is_some() && e.code != ErrorCode::ShardNotFound;
        if failure.as_ref().is_some_and(matters) && !broken(Mutant::RefusedIsGone) {
            return out.rest(slot, limits::WORKFLOW_RETRY_MS as i64);
        }
        self.left.remove(&slot);
        self.unless_left(out);
    }
    fn unless_left(&mut self, out: &mut Actions) {
        if !self.left.is_empty() {
            return;
        }
        self.step = Step::Here;
        let retry = if self.uuid.is_some() { Retry::Always } else { Retry::UntilRefused };
        let mut b = own(DROP_HERE, &self.ns);
        append_asked_by(&mut b, self.asked_by.as_deref());
        out.call(SLOT, Target::Own, b.finish(), retry);
    }
    pub(crate) fn check(&self) {
        assert!(self.left.is_empty() || self.step == Step::Elsewhere);
    }
}
