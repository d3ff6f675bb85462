//! What a change stream of the whole cluster has to show of the log, worked out from the entries alone.

use super::committed::Committed;
use pando_base::Timestamp;
use pando_bson::{Elem, Value};
use pando_oplog::EntryView;
use pando_oplog::entry::OpType;
use std::collections::{BTreeMap, BTreeSet};

/// A change: when it took effect, and what was done to what.
pub(crate) type Change = (Timestamp, String);

pub(crate) fn of_document(kind: &str, ns: &str, id: Option<Elem<'_>>) -> String {
    format!("{kind} {ns} {}", id.map_or_else(|| "nothing".to_owned(), |id| id.to_string()))
}

/// Changes of one entry.
struct Told {
    changes: Vec<String>,
    role: Role,
}

/// Of an entry in a transaction; before it is another entry, or none.
enum Role {
    Alone,
    Part(Timestamp),
    Last(Timestamp),
}

/// Entries that any member ever had, by their hash.
#[derive(Default)]
pub(crate) struct Story(BTreeMap<u64, Told>);

/// What a stream owes to who watches.
#[derive(Default)]
pub(crate) struct Expected {
    pub(crate) changes: Vec<Change>,
    /// Nobody saw all that was committed then: after the first, before the second.
    pub(crate) unseen: Vec<(Timestamp, Timestamp)>,
    /// Transactions that nobody saw a part of.
    pub(crate) torn: BTreeSet<Timestamp>,
}

impl Expected {
    pub(crate) fn is_known(&self, at: Timestamp) -> bool {
        !self.torn.contains(&at) && !self.unseen.iter().any(|(from, to)| *from < at && at < *to)
    }
}

impl Story {
    pub(crate) fn note(&mut self, hash: u64, e: &EntryView<'_>) {
        self.0.entry(hash).or_insert_with(|| told(e));
    }

    /// In the order of the log.
    pub(crate) fn of(&self, committed: &Committed) -> Expected {
        let mut expected = Expected { unseen: committed.unseen.clone(), ..Expected::default() };
        let at = |ts: Timestamp| self.0.get(&committed.chain.get(&ts)?.entry.hash);
        for (ts, told) in committed.chain.keys().filter_map(|ts| Some((*ts, at(*ts)?))) {
            let mut parts = vec![told];
            let mut before = match told.role {
                Role::Alone => Timestamp::ZERO,
                Role::Part(_) => continue,
                Role::Last(before) => before,
            };
            while !before.is_zero() {
                let Some(part) = at(before) else {
                    expected.torn.insert(ts);
                    break;
                };
                parts.push(part);
                before = match part.role {
                    Role::Part(before) => before,
                    _ => Timestamp::ZERO,
                };
            }
            let changes = parts.iter().rev().flat_map(|t| &t.changes);
            expected.changes.extend(changes.map(|c| (ts, c.clone())));
        }
        expected
    }
}

fn told(e: &EntryView<'_>) -> Told {
    let name = e.command().filter(|_| e.op == OpType::Command).map(|c| c.name().to_owned());
    let before = match e.doc.get_path("prevOpTime.ts") {
        Some(Value::Timestamp(ts)) => ts,
        _ => Timestamp::ZERO,
    };
    let is_set = |name: &str| e.o.get(name).is_some_and(|v| v.is_truthy());
    let role = match name.as_deref() {
        Some("applyOps") if is_set("partialTxn") || is_set("prepare") => Role::Part(before),
        Some("applyOps" | "commitTransaction") => Role::Last(before),
        _ => Role::Alone,
    };
    let mut changes = Vec::new();
    match e.inner() {
        Some(inner) => inner.flatten().for_each(|op| changes_of(&op, &mut changes)),
        None => changes_of(e, &mut changes),
    }
    Told { changes, role }
}

fn is_public(ns: &str) -> bool {
    let (db, coll) = ns.split_once('.').unwrap_or((ns, ""));
    !matches!(db, "admin" | "config" | "local") && !coll.starts_with("system.") && !coll.starts_with('$')
}

fn changes_of(e: &EntryView<'_>, out: &mut Vec<String>) {
    let kind = match e.op {
        OpType::Noop => return,
        OpType::Command => return out.extend(definition(e)),
        OpType::Insert => "insert",
        OpType::Delete => "delete",
        OpType::Update if e.diff().is_some() => "update",
        OpType::Update => "replace",
    };
    if !is_public(e.ns) {
    } else if e.o_is_array {
        let docs = e.o.iter().filter_map(|d| d.value().as_doc());
        out.extend(docs.map(|d| of_document(kind, e.ns, d.elem("_id"))));
    } else {
        out.push(of_document(kind, e.ns, e.document_id()));
    }
}

fn definition(e: &EntryView<'_>) -> Option<String> {
    let command = e.command()?;
    let db = e.ns.split_once('.').map_or(e.ns, |(db, _)| db);
    let of = command.value().as_str().unwrap_or_default();
    let told = match command.name() {
        "drop" => format!("drop {db}.{of}"),
        "renameCollection" => format!("rename {of} {}", e.o.get("to")?.as_str()?),
        "dropDatabase" => format!("dropDatabase {db}"),
        _ => return None,
    };
    told.split_once(' ').filter(|(_, what)| is_public(what)).map(|_| told.clone())
}
