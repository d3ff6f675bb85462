//! `refineCollectionShardKey` on the primary shard of the database (SYS-267): fields are added to a shard key.
//!
//! ```text
//!   begin: look ─► every owner: does an index serve? ─► commit ─► owners read anew ─► over
//!      │                    │                             │  └ refused ─► is it done all the same? ─ yes ─► owners read anew
//!      ▼                    ▼                             │                                        └ no ──► over
//!   over: the key is so already, or cannot be             └── goes on for ever where nobody answers
//! ```
//! Who owns a document does not change, so nobody has to wait: there is no critical section. A shard or a router that knows the old key
//! finds the same owners by it.
//!
//! The checkpoint of `commit` says which generation the collection will be of: all attempts, on whichever primary, send the same, and the
//! config servers know it again. It is the point of no return: a commit that was sent cannot be called back. Where one is refused, the
//! config servers are told to refuse it for ever, which tells whether it was made after all.

pub mod mutants;

use crate::ddl::{
    Head, Locks, SHARDS, SLOT, append_asked_by, append_head, append_majority, doc_at, failure, nonsense, own,
    texts_at,
};
use crate::{Actions, Event, Level, Resource, Retry, Slot, Target, Workflow};
use mutants::{Mutant, broken};
use pando_base::{Error, Millis, Namespace, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use std::collections::BTreeSet;

pub const OPERATION: &str = "refineCollectionShardKey";
/// A step of this node: `{<step>: <ns>, request}` ─► nothing where the key is so already, else
/// `{commit: {oldTimestamp, epoch, timestamp}, shards}`: of which generation the collection is and will be, and who else owns a part.
pub const LOOK: &str = "lookAtShardKey";
/// `{<step>: <ns>}`: this node reads anew what it knows of the collection.
pub use crate::create_collection::REFRESH;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Phase {
    Begin,
    /// Nobody begins with this one: an index may have gone since.
    Validate,
    Commit,
    /// Nor with these: the commit is known again.
    GiveUp,
    Tell,
    Over,
}

impl Phase {
    const KEPT: [(Phase, &str); 2] = [(Phase::Begin, "begin"), (Phase::Commit, "commit")];
}

#[derive(Clone, Debug)]
struct RefineShardKey {
    ns: Namespace,
    /// `{newShardKey}`
    request: DocBuf,
    asked_by: Option<DocBuf>,
    phase: Phase,
    locks: Locks,
    /// See [`LOOK`].
    commit: Option<DocBuf>,
    /// The others that own a part.
    shards: Vec<String>,
    /// Shards that have not answered.
    left: BTreeSet<Slot>,
    result: Option<Result<DocBuf, Error>>,
}

pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    let head = Head::parse(state)?;
    let ns = head.ns()?;
    let phase = Phase::KEPT.iter().find(|(_, text)| *text == head.phase).map(|(phase, _)| *phase);
    let phase = phase.ok_or_else(|| nonsense(state))?;
    let commit = doc_at(state, "commit");
    if (phase == Phase::Commit) != commit.is_some() {
        return Err(nonsense(state));
    }
    Ok(Box::new(RefineShardKey {
        locks: Locks::new(Locks::of_collection(&ns)),
        ns,
        request: head.request,
        asked_by: head.asked_by,
        phase,
        commit,
        shards: texts_at(state, "shards"),
        left: BTreeSet::new(),
        result: None,
    }))
}

impl RefineShardKey {
    /// Where a phase begins, be it here or after a failover.
    fn go(&mut self, out: &mut Actions) {
        match self.phase {
            Phase::Begin => {
                let mut b = own(LOOK, &self.ns);
                b.raw_doc("request", &self.request);
                append_asked_by(&mut b, self.asked_by.as_deref());
                out.call(SLOT, Target::Own, b.finish(), Retry::Transient);
            }
            Phase::Commit => self.commit(false, out),
            _ => {}
        }
    }
    fn looked(&mut self, reply: &RawDoc, out: &mut Actions) {
        self.commit = doc_at(reply, "commit");
        self.shards = texts_at(reply, "shards");
        if self.commit.is_none() {
            return self.end(Ok(DocBuf::default()), out);
        }
        self.phase = Phase::Validate;
        let key = doc_at(&self.request, "newShardKey").unwrap_or_default();
        let mut b = DocBuilder::new();
        b.str("_shardsvrValidateShardKeyCandidate", self.ns.coll()).raw_doc("key", &key);
        b.str("$db", self.ns.db());
        let body = b.finish();
        if !broken(Mutant::NobodyIsAsked) {
            self.ask_all(&body, Retry::Transient, out);
        }
        self.unless_left(out);
    }
    fn ask_all(&mut self, body: &RawDoc, retry: Retry, out: &mut Actions) {
        self.left.clear();
        for (slot, shard) in (SHARDS..).zip(&self.shards) {
            self.left.insert(slot);
            out.call(slot, Target::Shard(shard.clone()), body.to_buf(), retry);
        }
    }
    fn unless_left(&mut self, out: &mut Actions) {
        match self.phase {
            _ if !self.left.is_empty() => {}
            Phase::Validate => {
                self.phase = Phase::Commit;
                match broken(Mutant::NoPointOfNoReturn) {
                    true => self.commit(false, out),
                    false => out.checkpoint(),
                }
            }
            _ => self.end(Ok(DocBuf::default()), out),
        }
    }
    fn commit(&self, give_up: bool, out: &mut Actions) {
        let mut b = DocBuilder::new();
        b.str("_configsvrCommitRefineCollectionShardKey", self.ns.as_str());
        b.raw_doc("key", &doc_at(&self.request, "newShardKey").unwrap_or_default());
        b.elems_of(self.commit.as_deref().unwrap_or(RawDoc::empty()));
        if give_up {
            b.bool("giveUp", true);
        }
        append_majority(&mut b, "admin");
        let retry = if give_up { Retry::Always } else { Retry::UntilRefused };
        out.call(SLOT, Target::ConfigServers, b.finish(), retry);
    }
    /// Whoever misses it learns when the next request comes.
    fn tell(&mut self, out: &mut Actions) {
        self.phase = Phase::Tell;
        let mut b = DocBuilder::new();
        b.str("_flushRoutingTableCacheUpdates", self.ns.as_str()).bool("syncFromConfig", true);
        b.str("$db", "admin");
        self.ask_all(&b.finish(), Retry::Never, out);
        self.left.insert(SLOT);
        out.call(SLOT, Target::Own, own(REFRESH, &self.ns).finish(), Retry::Never);
    }
    fn answered(&mut self, slot: Slot, reply: &RawDoc, out: &mut Actions) {
        match self.phase {
            Phase::Begin => self.looked(reply, out),
            Phase::Validate | Phase::Tell => {
                self.left.remove(&slot);
                self.unless_left(out);
            }
            Phase::Commit => self.tell(out),
            Phase::GiveUp if reply.get("made").is_some_and(|v| v.is_truthy()) => self.tell(out),
            Phase::GiveUp => {
                let why = self.result.take();
                self.end(why.unwrap_or_else(|| Err(Error::internal("given up for nothing"))), out);
            }
            Phase::Over => {}
        }
    }
    fn failed(&mut self, slot: Slot, why: &Error, out: &mut Actions) {
        match self.phase {
            Phase::Begin | Phase::Validate => {
                for slot in std::mem::take(&mut self.left) {
                    out.cancel(slot);
                }
                self.end(Err(why.clone()), out);
            }
            Phase::Commit if broken(Mutant::RefusalIsBelieved) => self.end(Err(why.clone()), out),
            Phase::Commit => {
                self.result = Some(Err(why.clone()));
                self.phase = Phase::GiveUp;
                self.commit(true, out);
            }
            // Nobody has to hear of it.
            Phase::Tell => {
                self.left.remove(&slot);
                self.unless_left(out);
            }
            Phase::GiveUp | Phase::Over => {}
        }
    }
    fn end(&mut self, result: Result<DocBuf, Error>, out: &mut Actions) {
        self.phase = Phase::Over;
        for (resource, _) in Locks::of_collection(&self.ns).into_iter().rev() {
            out.release(resource);
        }
        out.done(result);
    }
}

impl Workflow for RefineShardKey {
    fn step(&mut self, _: Millis, event: Event, out: &mut Actions) {
        if let Some((slot, why)) = failure(&event) {
            return match event {
                Event::Answer { .. } => self.failed(slot, why, out),
                _ => self.end(Err(why.clone()), out),
            };
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
            Event::Answer { slot, reply: Ok(reply) } => self.answered(slot, &reply, out),
            // A client that waits no more stops nothing: others may have joined it.
            _ => {}
        }
    }
    fn document(&self) -> Option<DocBuf> {
        let phase = Phase::KEPT.iter().find(|(phase, _)| *phase == self.phase).map_or("", |(_, text)| text);
        let mut b = DocBuilder::new();
        append_head(&mut b, self.ns.as_str(), OPERATION, phase, &self.request, self.asked_by.as_deref());
        if let (Phase::Commit, Some(commit)) = (self.phase, &self.commit) {
            b.raw_doc("commit", commit);
            b.array("shards", |list| self.shards.iter().for_each(|shard| _ = list.str(shard)));
        }
        Some(b.finish())
    }
    fn holds(&self) -> Vec<(Resource, Level)> {
        match self.phase {
            Phase::Begin => Vec::new(),
            _ => Locks::of_collection(&self.ns),
        }
    }
    fn check(&self) {
        assert!(self.commit.is_some() || matches!(self.phase, Phase::Begin | Phase::Over));
        assert!(self.left.is_empty() || matches!(self.phase, Phase::Validate | Phase::Tell | Phase::Over));
    }
}
