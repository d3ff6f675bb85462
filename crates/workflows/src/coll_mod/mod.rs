//! `collMod` on the primary shard of the database (SYS-254): every shard that owns a part has the same definition in the end.
//!
//! ```text
//!   begin: look ─► unique? every owner tries ─► here: it is changed here ─► tell: who owns parts now? ─► each changes it ─► over
//!      │                     │                         │                          ▲                          │
//!      └─────────────────────┴──────── may fail ───────┴─► over                   └── somebody knows better ─┘
//! ```
//! Who owns a document does not change, and no answer to a read does, so nobody has to wait: there is no critical section.
//!
//! **Here first**: what is wrong with it is told before any other shard has done it. Where this shard owns nothing of a sharded collection
//! no definition has come here since it did, so a failure here means nothing.
//!
//! **The checkpoint of `here`** has this definition's number, and holds its locks: whoever is primary next changes it here before anybody
//! else defines something of the name, and sends the same number.
//!
//! **The checkpoint of `tell` is the point of no return**: a majority has what was changed here, and what others were sent cannot be called
//! back. Behind it owners are told until they answer. They are found by asking the config servers anew, and are told by which version: a
//! shard that gets its first range meanwhile either copies the new definition, or whoever gave it the range knows a newer version, and all
//! are told again. What is told twice leads to the same. A shard that refuses otherwise keeps none from being told, and the client hears why.

pub mod mutants;

use crate::ddl::{
    Head, Locks, SHARDS, SLOT, append_asked_by, append_head, append_majority, array_at, doc_at, failure,
    nonsense, own, timestamp_at,
};
use crate::{Actions, Event, Level, Resource, Retry, Slot, Target, Workflow};
use mutants::{Mutant, broken};
use pando_base::codes::class;
use pando_base::{Error, ErrorCode, Millis, Namespace, Result, Timestamp, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use std::collections::BTreeSet;

pub const OPERATION: &str = "collMod";
/// Steps of this node. `{<step>: <ns>}` ─► `{timestamp, owners}`: the number of this definition, and who else owns a part, see [`OWNERS`].
pub const LOOK: &str = "lookAtCollMod";
/// `{<step>: <ns>}` ─► `{isOwner, owners: [{shard, version}]}`: whether this shard owns a part of it, or all there is, as the config servers
/// say, and who else does, with what a command to them says of that.
pub const OWNERS: &str = "lookAtOwners";
/// `{<step>: <ns>, request, timestamp}` ─► `{reply?, isAlone?}`: what it told, where this shard owns a part, or all there is; and whether
/// nobody else can.
pub const HERE: &str = "collModHere";
pub const PARTICIPANT: &str = "_shardsvrCollModParticipant";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Phase {
    Begin,
    /// Nobody begins with this one: documents may have come since.
    Try,
    Here,
    /// Who owns a part?
    Owners,
    /// Nor with this one: others may own parts by then.
    Tell,
    Over,
}

impl Phase {
    const KEPT: [(Phase, &str); 3] =
        [(Phase::Begin, "begin"), (Phase::Here, "here"), (Phase::Owners, "tell")];
}

/// A shard, and what it is told of what it owns.
#[derive(Clone, PartialEq, Debug)]
struct Owner {
    shard: String,
    version: DocBuf,
}

#[derive(Clone, Debug)]
struct CollMod {
    ns: Namespace,
    /// The arguments of `collMod`.
    request: DocBuf,
    asked_by: Option<DocBuf>,
    phase: Phase,
    locks: Locks,
    /// See the module text of `ddl`.
    at: Option<Timestamp>,
    /// What it told here, where that counts.
    reply: Option<DocBuf>,
    /// The others that own a part.
    owners: Vec<Owner>,
    /// Shards that have not answered.
    left: BTreeSet<Slot>,
    /// One of them knows better who owns what.
    is_stale: bool,
    refusal: Option<Error>,
    /// What it told elsewhere.
    theirs: DocBuf,
}

pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    let head = Head::parse(state)?;
    let ns = head.ns()?;
    let phase = Phase::KEPT.iter().find(|(_, text)| *text == head.phase).map(|(phase, _)| *phase);
    let phase = phase.ok_or_else(|| nonsense(state))?;
    let at = timestamp_at(state, "timestamp");
    if (phase > Phase::Begin) != at.is_some() {
        return Err(nonsense(state));
    }
    Ok(Box::new(CollMod {
        locks: Locks::new(Locks::of_collection(&ns)),
        ns,
        request: head.request,
        asked_by: head.asked_by,
        phase,
        at,
        reply: doc_at(state, "reply"),
        owners: Vec::new(),
        left: BTreeSet::new(),
        is_stale: false,
        refusal: None,
        theirs: DocBuf::default(),
    }))
}

fn owners_of(reply: &RawDoc) -> Vec<Owner> {
    let list = array_at(reply, "owners").unwrap_or_default();
    let owner = |d: &RawDoc| {
        let shard = d.get("shard")?.as_str()?.to_owned();
        Some(Owner { shard, version: doc_at(d, "version").unwrap_or_default() })
    };
    list.iter().filter_map(|e| owner(e.value().as_doc()?)).collect()
}

impl CollMod {
    /// Where a phase begins, be it here or after a failover.
    fn go(&mut self, out: &mut Actions) {
        match self.phase {
            Phase::Begin => out.call(SLOT, Target::Own, own(LOOK, &self.ns).finish(), Retry::Transient),
            Phase::Here => self.change_here(out),
            Phase::Owners => out.call(SLOT, Target::Own, own(OWNERS, &self.ns).finish(), Retry::Always),
            _ => {}
        }
    }
    fn begin_phase(&mut self, phase: Phase, rule: Mutant, out: &mut Actions) {
        self.phase = phase;
        match broken(rule) {
            true => self.go(out),
            false => out.checkpoint(),
        }
    }
    /// What one shard may refuse that another one does: documents stand in the way.
    fn becomes_unique(&self) -> bool {
        let is_true = |d: &RawDoc, name: &str| d.get(name).is_some_and(|v| v.is_truthy());
        let index = doc_at(&self.request, "index").unwrap_or_default();
        is_true(&index, "unique") && !is_true(&self.request, "dryRun")
    }

    fn looked(&mut self, reply: &RawDoc, out: &mut Actions) {
        self.at = timestamp_at(reply, "timestamp");
        self.owners = owners_of(reply);
        if self.at.is_none() {
            return self.end(Err(Error::internal("a definition without a number")), out);
        }
        if self.becomes_unique() && !broken(Mutant::NobodyIsAsked) {
            self.phase = Phase::Try;
            self.ask_all(out);
        }
        self.unless_left(out);
    }
    fn ask_all(&mut self, out: &mut Actions) {
        self.is_stale = false;
        self.refusal = None;
        let only_tried = self.phase == Phase::Try;
        let left_out = usize::from(broken(Mutant::OneIsLeftOut) && !only_tried);
        let told = self.owners.len().saturating_sub(left_out);
        let retry = if only_tried { Retry::Transient } else { Retry::UntilRefused };
        for (slot, owner) in (SHARDS..).zip(&self.owners[..told]) {
            self.left.insert(slot);
            out.call(slot, Target::Shard(owner.shard.clone()), self.participant(owner), retry);
        }
    }
    /// What is only tried has no number: the one of a primary that ends before its next checkpoint may be above its successor's.
    fn participant(&self, owner: &Owner) -> DocBuf {
        let mut b = DocBuilder::new();
        b.str(PARTICIPANT, self.ns.coll());
        if self.phase == Phase::Try {
            self.request.iter().filter(|e| e.name() != "dryRun").for_each(|e| _ = b.elem(e));
            b.bool("dryRun", true);
        } else {
            b.elems_of(&self.request);
            let number = self.at.filter(|_| !broken(Mutant::Unnumbered));
            number.into_iter().for_each(|at| _ = b.timestamp("timestamp", at));
        }
        b.elems_of(&owner.version);
        append_majority(&mut b, self.ns.db());
        b.finish()
    }
    /// No failure is told that may pass: whether it was changed would not be known.
    fn change_here(&mut self, out: &mut Actions) {
        if broken(Mutant::OthersFirst) && self.phase == Phase::Here {
            return self.begin_phase(Phase::Owners, Mutant::OthersFirst, out);
        }
        let mut b = own(HERE, &self.ns);
        b.raw_doc("request", &self.request);
        self.at.into_iter().for_each(|at| _ = b.timestamp("timestamp", at));
        append_asked_by(&mut b, self.asked_by.as_deref());
        out.call(SLOT, Target::Own, b.finish(), Retry::UntilRefused);
    }
    fn changed_here(&mut self, reply: &RawDoc, out: &mut Actions) {
        self.reply = doc_at(reply, "reply");
        if reply.get("isAlone").is_some_and(|v| v.is_truthy()) {
            let told = self.reply.take().unwrap_or_default();
            return self.end(Ok(told), out);
        }
        self.begin_phase(Phase::Owners, Mutant::NoPointOfNoReturn, out);
    }
    fn tell(&mut self, reply: &RawDoc, out: &mut Actions) {
        self.phase = Phase::Tell;
        if !broken(Mutant::OwnersOfBefore) || self.owners.is_empty() {
            self.owners = owners_of(reply);
        }
        self.ask_all(out);
        let is_owner = reply.get("isOwner").is_some_and(|v| v.is_truthy());
        if is_owner && self.reply.is_none() && !broken(Mutant::NotHereAgain) {
            self.left.insert(SLOT);
            self.change_here(out);
        }
        self.unless_left(out);
    }
    fn unless_left(&mut self, out: &mut Actions) {
        match self.phase {
            _ if !self.left.is_empty() => {}
            Phase::Begin | Phase::Try => match (self.is_stale, self.refusal.take()) {
                (_, Some(why)) => self.end(Err(why), out),
                (true, None) => {
                    self.phase = Phase::Begin;
                    out.rest(SLOT, limits::WORKFLOW_RETRY_MS as Millis);
                }
                (false, None) => self.begin_phase(Phase::Here, Mutant::NumberNotSafe, out),
            },
            Phase::Tell if self.is_stale => {
                self.phase = Phase::Owners;
                out.rest(SLOT, limits::WORKFLOW_RETRY_MS as Millis);
            }
            _ => {
                let refusal = self.refusal.take();
                let told = self.reply.take().unwrap_or_else(|| std::mem::take(&mut self.theirs));
                self.end(refusal.map_or(Ok(told), Err), out);
            }
        }
    }
    fn answered(&mut self, slot: Slot, reply: &RawDoc, out: &mut Actions) {
        match self.phase {
            Phase::Begin => self.looked(reply, out),
            Phase::Here => self.changed_here(reply, out),
            Phase::Owners => self.tell(reply, out),
            Phase::Try | Phase::Tell => {
                self.left.remove(&slot);
                match slot {
                    SLOT => self.reply = doc_at(reply, "reply"),
                    _ => self.keep(reply),
                }
                self.unless_left(out);
            }
            Phase::Over => {}
        }
    }
    /// What was told first: whoever is told again has nothing to tell.
    fn keep(&mut self, reply: &RawDoc) {
        if !self.theirs.is_empty() {
            return;
        }
        let mut b = DocBuilder::new();
        let of_it = |name: &str| name.ends_with("_old") || name.ends_with("_new");
        reply.iter().filter(|e| of_it(e.name())).for_each(|e| _ = b.elem(e));
        self.theirs = b.finish();
    }
    fn failed(&mut self, slot: Slot, why: &Error, out: &mut Actions) {
        match self.phase {
            Phase::Begin | Phase::Here => self.end(Err(why.clone()), out),
            Phase::Try | Phase::Tell => {
                self.left.remove(&slot);
                // A shard that has left the cluster has nothing any more.
                if why.code.is(class::STALE_ROUTING) {
                    self.is_stale |= !broken(Mutant::StaleIsOver);
                } else if why.code != ErrorCode::ShardNotFound && !broken(Mutant::RefusalIsForgotten) {
                    self.refusal.get_or_insert_with(|| why.clone());
                }
                self.unless_left(out);
            }
            Phase::Owners | Phase::Over => {}
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

impl Workflow for CollMod {
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
            Event::Rested { .. } => self.go(out),
            Event::Answer { slot, reply: Ok(reply) } => self.answered(slot, &reply, out),
            // A client that waits no more stops nothing: others may have joined it.
            _ => {}
        }
    }
    fn document(&self) -> Option<DocBuf> {
        let phase = Phase::KEPT.iter().find(|(phase, _)| *phase == self.phase).map_or("", |(_, text)| text);
        let mut b = DocBuilder::new();
        append_head(&mut b, self.ns.as_str(), OPERATION, phase, &self.request, self.asked_by.as_deref());
        if self.phase > Phase::Begin {
            self.at.into_iter().for_each(|at| _ = b.timestamp("timestamp", at));
        }
        if let Some(reply) = &self.reply {
            b.raw_doc("reply", reply);
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
        assert!(self.at.is_some() || matches!(self.phase, Phase::Begin | Phase::Over));
        assert!(self.left.is_empty() || matches!(self.phase, Phase::Try | Phase::Tell | Phase::Over));
    }
}
