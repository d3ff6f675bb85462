//! `drop` on the primary shard of the database (SH-DDL-8).
//!
//! ```text
//!   begin ─► look ─► drop: section ─► config servers ─► other shards ─► here ─► leave: section goes ─► over
//!              │     └────────────── from here on it goes on for ever ──────────┘
//!              └ may fail
//! ```
//! The checkpoint of `leave` is on a majority before anybody may make the collection anew: a primary that begins at the one of `drop`
//! drops what it finds.
//!
//! What is not sharded goes the same way, but for the config servers. Other shards are asked once then, and this node may refuse.

pub mod mutants;

use crate::ddl::{
    Dropping, Head, Locks, SLOT, append_head, failure, nonsense, own, texts_at, timestamp_at, uuid_at,
};
use crate::{Actions, Event, Level, Resource, Retry, Target, Workflow};
use mutants::{Mutant, broken};
use pando_base::{Error, Millis, Namespace, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};

pub const OPERATION: &str = "dropCollection";
/// Steps of this node. `{<step>: <ns>}` ─► `{collectionUUID?, timestamp, shards}`: what the config servers know, and the number of this
/// definition.
pub const LOOK: &str = "lookAtCollection";
pub use crate::ddl::DROP_HERE;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Phase {
    Begin,
    Drop,
    Leave,
    Over,
}

impl Phase {
    const KEPT: [(Phase, &str); 3] =
        [(Phase::Begin, "begin"), (Phase::Drop, "drop"), (Phase::Leave, "leave")];
}

#[derive(Clone, Debug)]
struct DropCollection {
    ns: Namespace,
    request: DocBuf,
    asked_by: Option<DocBuf>,
    phase: Phase,
    locks: Locks,
    dropping: Option<Dropping>,
    result: Option<Result<DocBuf, Error>>,
}

pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    let head = Head::parse(state)?;
    let ns = head.ns()?;
    let phase = Phase::KEPT.iter().find(|(_, text)| *text == head.phase).map(|(phase, _)| *phase);
    let phase = phase.ok_or_else(|| nonsense(state))?;
    let dropping = dropping_of(&ns, state, head.asked_by.clone());
    if (phase > Phase::Begin) != dropping.is_some() {
        return Err(nonsense(state));
    }
    Ok(Box::new(DropCollection {
        locks: Locks::new(Locks::of_collection(&ns)),
        ns,
        request: head.request,
        asked_by: head.asked_by,
        phase,
        dropping,
        result: None,
    }))
}

/// Of a state document, or of the answer of `look`.
fn dropping_of(ns: &Namespace, doc: &RawDoc, asked_by: Option<DocBuf>) -> Option<Dropping> {
    let at = timestamp_at(doc, "timestamp")?;
    Some(Dropping::new(ns.clone(), uuid_at(doc, "collectionUUID"), at, texts_at(doc, "shards"), asked_by))
}

impl DropCollection {
    fn begin_phase(&mut self, phase: Phase, out: &mut Actions) {
        self.phase = phase;
        match broken(Mutant::OpensBeforeItIsSafe) && phase == Phase::Leave {
            true => self.go(out),
            false => out.checkpoint(),
        }
    }
    fn go(&mut self, out: &mut Actions) {
        match (self.phase, &mut self.dropping) {
            (Phase::Begin, _) => out.call(SLOT, Target::Own, own(LOOK, &self.ns).finish(), Retry::Transient),
            (Phase::Drop, Some(dropping)) => dropping.begin(out),
            (Phase::Leave, Some(dropping)) => dropping.leave(out),
            _ => {}
        }
    }
    fn looked(&mut self, reply: &RawDoc, out: &mut Actions) {
        self.dropping = dropping_of(&self.ns, reply, self.asked_by.clone());
        match self.dropping.is_some() {
            true => self.begin_phase(Phase::Drop, out),
            false => self.end(Err(Error::internal("a definition without a number")), out),
        }
    }
    fn end(&mut self, result: Result<DocBuf, Error>, out: &mut Actions) {
        self.phase = Phase::Over;
        for (resource, _) in Locks::of_collection(&self.ns).into_iter().rev() {
            out.release(resource);
        }
        out.done(result);
    }
    fn on_event(&mut self, event: Event, out: &mut Actions) {
        match (self.phase, event) {
            (Phase::Begin, Event::Answer { reply: Ok(reply), .. }) => self.looked(&reply, out),
            (Phase::Begin, event) => {
                if let Some((_, why)) = failure(&event) {
                    self.end(Err(why.clone()), out);
                }
            }
            (Phase::Drop, event) => {
                let done = self.dropping.as_mut().and_then(|dropping| dropping.step(event, out));
                match done {
                    None => {}
                    Some(Ok(())) => self.begin_phase(Phase::Leave, out),
                    // Nothing was done: whoever begins anew is refused as well.
                    Some(Err(why)) => {
                        self.result = Some(Err(why));
                        self.phase = Phase::Leave;
                        self.go(out);
                    }
                }
            }
            (Phase::Leave, Event::Wrote { .. }) => {
                let result = self.result.clone().unwrap_or_else(|| Ok(DocBuf::default()));
                self.end(result, out);
            }
            _ => {}
        }
    }
}

impl Workflow for DropCollection {
    fn step(&mut self, _: Millis, event: Event, out: &mut Actions) {
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
            // A client that waits no more stops nothing: others may have joined it.
            Event::Abort(_) => {}
            event => self.on_event(event, out),
        }
    }
    fn document(&self) -> Option<DocBuf> {
        let phase = Phase::KEPT.iter().find(|(phase, _)| *phase == self.phase).map_or("", |(_, text)| text);
        let mut b = DocBuilder::new();
        append_head(&mut b, self.ns.as_str(), OPERATION, phase, &self.request, self.asked_by.as_deref());
        if let Some(dropping) = &self.dropping {
            if let Some(uuid) = dropping.uuid {
                b.uuid("collectionUUID", &uuid.0);
            }
            b.timestamp("timestamp", dropping.at);
            b.array("shards", |list| {
                dropping.shards.iter().for_each(|shard| _ = list.str(shard));
            });
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
        assert!(self.dropping.is_some() || self.phase == Phase::Begin || self.phase == Phase::Over);
        self.dropping.iter().for_each(Dropping::check);
    }
}
