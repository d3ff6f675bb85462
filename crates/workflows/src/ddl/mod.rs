//! What coordinators of a cluster's definitions have in common (SH-DDL-1 to SH-DDL-5).
//!
//! State documents are in `config.system.sharding_ddl_coordinators`: `{_id: {namespace, operationType}, phase, request, …}`. `request` is
//! what the client asks for: who asks for the same joins, who asks for something else is refused (117).
//!
//! ```text
//!   state document ─► DDL locks ─► check ─► critical section ─► other shards ─► config servers ─► section and document go
//!        └── every arrow behind the check is safe to go twice; each phase that matters is on a majority before it begins
//! ```
//! # Fencing
//!
//! A primary that is deposed may have sent a command that arrives when its successor has long finished. So each definition has one
//! number, the `timestamp` of an entry in this shard's log, written under the DDL lock and on a majority before anybody hears of it. It
//! grows from one definition of a name to the next, and all attempts of one definition, on whichever primary, have the same. Whoever
//! carries a definition out remembers the newest number that it has seen of the name, and refuses older ones.

mod dropping;

pub use dropping::DROP_HERE;
pub(crate) use dropping::Dropping;

use crate::{
    Actions, Event, Level, Resource, Slot, Workflow, coll_mod, create_collection, drop_collection,
    drop_sharded_database, move_primary, refine_shard_key, rename_collection,
};
use pando_base::{Error, Namespace, Result, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use std::collections::VecDeque;

pub const NAME: &str = "ShardingDDLCoordinator";
/// As MongoDB's coordinators call what they keep of whoever asks.
const ASKED_BY: &str = "forwardableOpMetadata";
/// Of those: writes are made though those of users are blocked.
const PASSES: &str = "mayBypassWriteBlocking";
pub const COLLECTION: &str = "system.sharding_ddl_coordinators";

/// One thing after the other; other shards have slots of their own from [`SHARDS`] on.
pub(crate) const SLOT: Slot = 0;
pub(crate) const SHARDS: Slot = 1;

/// A coordinator from its state document.
pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    let id = state.get("_id");
    let kind = id.as_ref().and_then(|v| v.as_doc()).and_then(|id| id.get("operationType")?.as_str());
    match kind {
        Some(coll_mod::OPERATION) => coll_mod::restore(state),
        Some(create_collection::OPERATION) => create_collection::restore(state),
        Some(drop_collection::OPERATION) => drop_collection::restore(state),
        Some(drop_sharded_database::OPERATION) => drop_sharded_database::restore(state),
        Some(move_primary::OPERATION) => move_primary::restore(state),
        Some(refine_shard_key::OPERATION) => refine_shard_key::restore(state),
        Some(rename_collection::OPERATION) => rename_collection::restore(state),
        _ => Err(nonsense(state)),
    }
}
/// What two requests must agree on to be one.
pub fn options(state: &RawDoc) -> DocBuf {
    doc_at(state, "request").unwrap_or_default()
}
/// What an instance starts from. `asked_by` is whoever asked first, as `$audit` says it: what the steps of this node do is told as
/// theirs. It is no part of what two requests must agree on.
pub fn begin(namespace: &str, operation: &str, request: &RawDoc, asked_by: Option<&RawDoc>) -> DocBuf {
    let mut b = DocBuilder::new();
    append_head(&mut b, namespace, operation, "begin", request, asked_by);
    b.finish()
}
/// Whether it is a definition that somebody wants who may not write while the writes of users are blocked. Moving what a database holds changes
/// nothing of it, and is not one.
pub fn is_of_users(state: &RawDoc) -> bool {
    let id = doc_at(state, "_id").unwrap_or_default();
    let text = |name: &str| id.get(name).and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default();
    let namespace = text("namespace");
    let of_servers = matches!(namespace.split('.').next(), Some("admin" | "config" | "local"));
    let passes = doc_at(state, ASKED_BY).is_some_and(|who| who.get(PASSES).is_some_and(|v| v.is_truthy()));
    text("operationType") != move_primary::OPERATION && !of_servers && !passes
}
/// Whoever asks, as [`begin`] takes it: `who` as `$audit` says it, and that writes may be made while those of users are blocked.
pub fn asking(who: Option<&RawDoc>, passes: bool) -> Option<DocBuf> {
    if who.is_none() && !passes {
        return None;
    }
    let mut b = DocBuilder::new();
    b.elems_of(who.unwrap_or(RawDoc::empty()));
    if passes {
        b.bool(PASSES, true);
    }
    Some(b.finish())
}
/// Of a step's body: see [`begin`].
pub fn asked_by(step: &RawDoc) -> Option<DocBuf> {
    doc_at(step, ASKED_BY)
}
pub(crate) fn append_asked_by(b: &mut DocBuilder, asked_by: Option<&RawDoc>) {
    if let Some(asked_by) = asked_by {
        b.raw_doc(ASKED_BY, asked_by);
    }
}

/// The request of a state document, and whose it is.
pub(crate) struct Head {
    pub(crate) namespace: String,
    pub(crate) request: DocBuf,
    pub(crate) phase: String,
    pub(crate) asked_by: Option<DocBuf>,
}

impl Head {
    pub(crate) fn parse(state: &RawDoc) -> Result<Head> {
        let id = doc_at(state, "_id").ok_or_else(|| nonsense(state))?;
        let text = |d: &RawDoc, name: &str| Some(d.get(name)?.as_str()?.to_owned());
        Ok(Head {
            namespace: text(&id, "namespace").ok_or_else(|| nonsense(state))?,
            request: options(state),
            phase: text(state, "phase").ok_or_else(|| nonsense(state))?,
            asked_by: asked_by(state),
        })
    }
    pub(crate) fn ns(&self) -> Result<Namespace> {
        Namespace::parse(&self.namespace)
    }
}

pub(crate) fn append_head(
    b: &mut DocBuilder,
    namespace: &str,
    operation: &str,
    phase: &str,
    request: &RawDoc,
    asked_by: Option<&RawDoc>,
) {
    b.doc("_id", |d| {
        d.str("namespace", namespace).str("operationType", operation);
    });
    b.str("phase", phase).raw_doc("request", request);
    append_asked_by(b, asked_by);
}
pub(crate) fn nonsense(state: &RawDoc) -> Error {
    Error::bad_value(format!("not a state of a coordinator: {state}"))
}
pub(crate) fn doc_at(doc: &RawDoc, name: &str) -> Option<DocBuf> {
    doc.get(name)?.as_doc().map(RawDoc::to_buf)
}
pub(crate) fn array_at(doc: &RawDoc, name: &str) -> Option<DocBuf> {
    doc.get(name)?.as_array().map(RawDoc::to_buf)
}
pub(crate) fn timestamp_at(doc: &RawDoc, name: &str) -> Option<Timestamp> {
    match doc.get(name)? {
        Value::Timestamp(at) => Some(at),
        _ => None,
    }
}
/// A UUID among the fields of a document.
pub fn uuid_at(doc: &RawDoc, name: &str) -> Option<Uuid> {
    match doc.get(name)? {
        Value::Binary { subtype: 4, bytes } => Uuid::from_slice(bytes),
        _ => None,
    }
}
pub(crate) fn texts_at(doc: &RawDoc, name: &str) -> Vec<String> {
    let list = array_at(doc, name).unwrap_or_default();
    list.iter().filter_map(|e| e.value().as_str().map(str::to_owned)).collect()
}
/// The end of a command that another node must have on a majority before it answers.
pub(crate) fn append_majority(b: &mut DocBuilder, db: &str) {
    b.doc("writeConcern", |d| {
        d.str("w", "majority");
    });
    b.str("$db", db);
}
/// A step of this node itself, and what it is about.
pub(crate) fn own(step: &str, ns: &Namespace) -> DocBuilder {
    let mut b = DocBuilder::new();
    b.str(step, ns.as_str());
    b
}

/// Locks that are taken one after the other, once in a life.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Locks(VecDeque<(Resource, Level)>);

impl Locks {
    /// The name's, with its database shared.
    pub(crate) fn of_collection(ns: &Namespace) -> Vec<(Resource, Level)> {
        let database = Resource::Definition(ns.db().to_owned());
        vec![(database, Level::Shared), (Resource::Definition(ns.as_str().to_owned()), Level::Exclusive)]
    }
    pub(crate) fn new(all: Vec<(Resource, Level)>) -> Locks {
        Locks(all.into())
    }
    /// Asks for the next one; false when all are held.
    pub(crate) fn ask(&self, out: &mut Actions) -> bool {
        let Some((resource, level)) = self.0.front().cloned() else { return false };
        out.lock_in_the_end(SLOT, resource, level);
        true
    }
    pub(crate) fn taken(&mut self) {
        self.0.pop_front();
    }
}

/// The failure that an event tells.
pub(crate) fn failure(event: &Event) -> Option<(Slot, &Error)> {
    match event {
        Event::Wrote { slot, result: Err(e) } => Some((*slot, e)),
        Event::Found { slot, result: Err(e) } => Some((*slot, e)),
        Event::Replicated { slot, result: Err(e) }
        | Event::Locked { slot, result: Err(e) }
        | Event::Entered { slot, result: Err(e) } => Some((*slot, e)),
        Event::Answer { slot, reply: Err(e) } => Some((*slot, e)),
        _ => None,
    }
}
