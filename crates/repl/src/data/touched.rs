//! Which documents the entries above a point are about, in the order of their collections and `_id`s.
//!
//! However many they are, a bounded number is held: the smallest ones first, and the log is read again for those behind
//! them.

use pando_base::{Result, Timestamp, Uuid, limits};
use pando_bson::{DocBuilder, RawDoc};
use pando_catalog::TransactionHistory;
use pando_oplog::EntryView;
use pando_oplog::entry::OpType;
use pando_storage::OpLog;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// A document: its collection and `{_id: ..}`.
pub type Key = (Uuid, Vec<u8>);

/// Reads a log above a point as often as it takes.
pub struct Touched {
    log: OpLog,
    above: Timestamp,
    /// What a deletion took, too.
    deleted: bool,
    last: Option<Key>,
    bytes_max: usize,
    ended: bool,
    /// The databases of their collections.
    databases: BTreeMap<Uuid, String>,
}

impl Touched {
    pub fn new(log: &OpLog, above: Timestamp, deleted: bool) -> Touched {
        let bytes_max = limits::ROLLBACK_IDS_BYTES_MAX;
        Touched {
            log: log.clone(),
            above,
            deleted,
            last: None,
            bytes_max,
            ended: false,
            databases: BTreeMap::new(),
        }
    }
    /// The next ones; `None` after the last.
    pub fn next(&mut self) -> Result<Option<BTreeSet<Key>>> {
        if self.ended {
            return Ok(None);
        }
        let mut pass = Pass { after: self.last.take(), bytes_max: self.bytes_max, ..Pass::default() };
        let mut entries = self.log.read(Bound::Excluded(self.above), false);
        while let Some((_, entry)) = entries.next()? {
            let e = EntryView::parse(RawDoc::trusted(&entry))?;
            pass.note(&e, self.deleted)?;
            // What was prepared before, and took place here.
            if e.op == OpType::Command && e.command().is_some_and(|c| c.name() == "commitTransaction") {
                for part in TransactionHistory::before(&self.log, e.doc).oldest_first()? {
                    pass.note(&EntryView::parse(RawDoc::trusted(&part))?, self.deleted)?;
                }
            }
        }
        self.databases.append(&mut pass.databases);
        self.ended = !pass.left_out;
        self.last = pass.found.last().cloned();
        Ok((!pass.found.is_empty()).then_some(pass.found))
    }
    /// Of a collection that documents were found of.
    pub fn database_of(&self, uuid: Uuid) -> &str {
        self.databases.get(&uuid).map_or("", String::as_str)
    }
}

#[derive(Default)]
struct Pass {
    after: Option<Key>,
    found: BTreeSet<Key>,
    bytes: usize,
    bytes_max: usize,
    left_out: bool,
    databases: BTreeMap<Uuid, String>,
}

impl Pass {
    fn note(&mut self, e: &EntryView<'_>, deleted: bool) -> Result<()> {
        if let Some(inner) = e.inner() {
            return inner.into_iter().try_for_each(|op| self.note(&op?, deleted));
        }
        match e.op {
            OpType::Insert if e.o_is_array => {
                let docs = e.o.iter().filter_map(|d| d.value().as_doc());
                docs.for_each(|o| self.add(&EntryView { o, o_is_array: false, ..*e }));
            }
            OpType::Insert | OpType::Update => self.add(e),
            OpType::Delete if deleted => self.add(e),
            _ => {}
        }
        Ok(())
    }
    fn add(&mut self, e: &EntryView<'_>) {
        let (Some(uuid), Some(id)) = (e.ui, e.document_id()) else { return };
        let mut key = DocBuilder::new();
        key.elem(id);
        self.databases
            .entry(uuid)
            .or_insert_with(|| e.ns.split_once('.').map_or(e.ns, |(db, _)| db).to_owned());
        self.take((uuid, key.finish().as_bytes().to_vec()));
    }
    fn take(&mut self, key: Key) {
        let size = |k: &Key| size_of::<Key>() + k.1.len();
        if self.after.as_ref().is_some_and(|last| key <= *last) {
            return;
        }
        let bytes = size(&key);
        if self.found.insert(key) {
            self.bytes += bytes;
        }
        while self.bytes > self.bytes_max && self.found.len() > 1 {
            self.left_out = true;
            self.bytes -= self.found.pop_last().map_or(0, |k| size(&k));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_over_the_same_entries_find_every_document_once_in_order_and_hold_few() {
        let key = |n: u32| (Uuid::from_slice(&[(n % 3) as u8; 16]).unwrap(), n.to_be_bytes().to_vec());
        let entries: Vec<Key> = (0..1000).map(|i| key((i * 7919) % 400)).collect();
        let (mut after, mut all) = (None, Vec::new());
        loop {
            let mut pass = Pass { after: after.take(), bytes_max: 2000, ..Pass::default() };
            entries.iter().for_each(|k| pass.take(k.clone()));
            assert!(pass.bytes <= 2000 && !pass.found.is_empty());
            all.extend(pass.found.iter().cloned());
            after = pass.found.last().cloned();
            if !pass.left_out {
                break;
            }
        }
        let expected: Vec<Key> = entries.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        assert_eq!(all, expected);
    }
}
