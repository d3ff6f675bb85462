//! What a rollback takes back, gathered while the two logs are walked (R-RB-2).

use crate::data::progress::Position;
use pando_base::{Result, SessionId, limits};
use pando_bson::{DocBuilder, RawDoc, doc};
use pando_catalog::observer::Ids;
use pando_oplog::EntryView;
use pando_oplog::entry::OpType;
use pando_oplog::session::lsid_of;
use std::collections::{BTreeMap, BTreeSet};

const SYSTEM_VERSION: &str = "admin.system.version";

/// Our entries above the common point.
#[derive(Clone, Debug, Default)]
pub struct Undone {
    pub entries: u64,
    pub newest: Option<Position>,
    pub oldest: Option<Position>,
    pub namespaces: BTreeSet<String>,
    pub sessions: BTreeSet<SessionId>,
    /// Operations by the name of their command; `insert`, `update` and `delete` count documents.
    pub commands: BTreeMap<String, u64>,
    /// `{_id: …}` of the documents they were about, by namespace.
    pub ids: Ids,
    /// There were more of them than are kept.
    pub ids_incomplete: bool,
    id_bytes: usize,
}

impl Undone {
    /// Entries come newest first.
    pub(crate) fn note(&mut self, e: &EntryView<'_>) -> Result<()> {
        let at = Position { op_time: e.op_time(), wall: e.wall };
        self.entries += 1;
        self.newest.get_or_insert(at);
        self.oldest = Some(at);
        self.note_session(e.doc);
        self.note_operation(e)
    }
    /// Whether a command of this name is among the operations.
    pub fn has(&self, command: &str) -> bool {
        self.commands.contains_key(command)
    }
    /// Milliseconds from the oldest entry to the newest.
    pub fn spans_ms(&self) -> i64 {
        self.newest.map_or(0, |n| n.wall).saturating_sub(self.oldest.map_or(0, |o| o.wall))
    }

    fn note_operation(&mut self, e: &EntryView<'_>) -> Result<()> {
        if e.op == OpType::Noop {
            return Ok(());
        }
        if e.o.get("prepare").is_some_and(|v| v.is_truthy()) {
            self.count("prepareTransaction", 1);
        }
        if let Some(inner) = e.inner() {
            return inner.into_iter().try_for_each(|op| self.note_operation(&op?));
        }
        if !self.namespaces.contains(e.ns) {
            self.namespaces.insert(e.ns.to_owned());
        }
        match e.op {
            OpType::Insert if e.o_is_array => {
                self.count("insert", e.o.iter().count() as u64);
            }
            OpType::Insert => self.count("insert", 1),
            OpType::Update => self.count("update", 1),
            OpType::Delete => self.count("delete", 1),
            OpType::Command => self.count(e.command().map_or("", |c| c.name()), 1),
            OpType::Noop => {}
        }
        self.note_ids(e);
        Ok(())
    }
    fn note_ids(&mut self, e: &EntryView<'_>) {
        match e.op {
            OpType::Insert if e.o_is_array => {
                e.o.iter().filter_map(|doc| doc.value().as_doc()).for_each(|doc| self.note_id(e.ns, doc));
            }
            OpType::Insert | OpType::Delete => self.note_id(e.ns, e.o),
            OpType::Update => self.note_id(e.ns, e.o2.unwrap_or(e.o)),
            OpType::Command | OpType::Noop => {}
        }
    }
    fn note_id(&mut self, ns: &str, doc: &RawDoc) {
        let Some(id) = doc.elem("_id") else { return };
        let mut key = DocBuilder::new();
        key.elem(id);
        let key = key.finish();
        // Of the server's own documents every one is told: there are few, and others depend on them.
        let own = ns.starts_with("config.") || ns == SYSTEM_VERSION;
        if !own && self.id_bytes + key.byte_len() > limits::ROLLBACK_TOLD_IDS_BYTES_MAX {
            self.ids_incomplete = true;
            return;
        }
        if !self.ids.contains_key(ns) {
            self.ids.insert(ns.to_owned(), BTreeSet::new());
        }
        if let Some(of_ns) = self.ids.get_mut(ns)
            && of_ns.insert(key.as_bytes().to_vec())
        {
            self.id_bytes += key.byte_len();
        }
    }
    /// Whether something in the database `config` is among them.
    pub fn has_config(&self) -> bool {
        self.namespaces.iter().any(|ns| ns.starts_with("config."))
    }
    /// Whether the document that says which shard this node belongs to is among them.
    pub fn has_shard_identity(&self) -> bool {
        let key = doc! { "_id": "shardIdentity" }.to_raw();
        self.ids.get(SYSTEM_VERSION).is_some_and(|ids| ids.contains(key.as_bytes()))
    }
    fn note_session(&mut self, entry: &RawDoc) {
        self.sessions.extend(entry.get("lsid").and_then(|v| lsid_of(v.as_doc()?)));
    }
    fn count(&mut self, what: &str, n: u64) {
        match self.commands.get_mut(what) {
            Some(count) => *count += n,
            None => drop(self.commands.insert(what.to_owned(), n)),
        }
    }
}
