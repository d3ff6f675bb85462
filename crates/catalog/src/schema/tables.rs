//! Collections without rows of their own: state that lies elsewhere, read under a name.
//!
//! `config.transactions` and `config.image_collection` are documents on MongoDB; here they are what the table of
//! sessions and the log know, and `local.replset.minvalid` is the mark that the catalog keeps. Under its name a table is a collection like any other to readers: it is listed, counted,
//! planned, explained and tailed off in batches. A cursor over it keeps the rows' names as they were when it was opened,
//! and reads each row when it comes to it. Nobody writes to it (see [`crate::schema::names`]), and no lock for a change of its
//! definition can be had ([`Catalog::ddl_lock`](crate::Catalog)).

use crate::Catalog;
use crate::schema::collection::{Collection, KeyFormat, NO_ROWS, Shared};
use crate::schema::durable::{self, Parts};
use crate::schema::options::CollectionOptions;
use crate::schema::sizes::Sizes;
use crate::schema::snapshot::Named;
use crate::schema::table::Table;
use bytes::Bytes;
use pando_base::{Error, Namespace, Result, Timestamp, Uuid};
use pando_bson::DocBuf;
use pando_bson::keystring::{Directions, KeyBuilder};
use pando_index::IndexSpec;
use pando_query::source::{
    CollectionInfo, Direction, IndexCursor, IndexEntry, IndexScan, RecordCursor, RecordId, RecordScan, Source,
};
use std::ops::Range;
use std::sync::Arc;

impl Catalog {
    /// Shows `table` as a collection, in the place of whatever has had this name so far.
    pub fn show_table(&self, ns: &Namespace, uuid: Uuid, table: Arc<dyn Table>) -> Result<()> {
        let id_index = IndexSpec::id_index(None);
        let id_index =
            durable::new_index(id_index, NO_ROWS, KeyFormat::Bare, Timestamp::ZERO, self.now_ms())?;
        let shared = Shared::new(1, Sizes::default());
        if shared.table.set(table).is_err() {
            return Err(Error::internal("a new collection has a table already"));
        }
        let coll = Parts {
            ns: ns.clone(),
            uuid,
            options: CollectionOptions::default(),
            records: NO_ROWS,
            since: Timestamp::ZERO,
            replicated: false,
            indexes: vec![Arc::new(id_index)],
            shared,
        }
        .assemble()?;
        self.publish(|s| s.put(Named::Collection(coll)));
        Ok(())
    }
}

/// A row's place in the order of `_id`, and how it is asked for.
struct Entry {
    key: Bytes,
    type_bits: Bytes,
    id: DocBuf,
}

/// A reader of a table: the rows' names as they were when it was made. Cheap to clone.
#[derive(Clone)]
pub struct TableSource {
    info: Arc<CollectionInfo>,
    table: Arc<dyn Table>,
    entries: Arc<[Entry]>,
}

impl TableSource {
    /// `None` for a collection that has rows of its own.
    pub fn of(coll: &Collection) -> Option<TableSource> {
        let table = coll.table()?;
        let mut builder = KeyBuilder::new(Directions::ASCENDING);
        let mut entries: Vec<Entry> = Vec::new();
        for id in table.ids() {
            let Some(elem) = id.first() else { continue };
            builder.restart(Directions::ASCENDING);
            builder.append_elem(&elem, None);
            let (key, type_bits) = (builder.bytes(), builder.type_bits());
            let (key, type_bits) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(type_bits));
            entries.push(Entry { key, type_bits, id });
        }
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        Some(TableSource { info: coll.info.clone(), table: table.clone(), entries: entries.into() })
    }
    /// The position of the first entry whose key is not below `key`.
    fn at(&self, key: &[u8]) -> usize {
        self.entries.partition_point(|e| *e.key < *key)
    }
    /// The same past `key`.
    fn past(&self, key: &[u8]) -> usize {
        self.entries.partition_point(|e| *e.key <= *key)
    }
    fn row(&self, entry: &Entry) -> Result<Option<Bytes>> {
        Ok(self.table.row(&entry.id)?.map(|doc| Bytes::from(doc.into_bytes())))
    }
    /// What is left of `range` for a scan that has come past `after`.
    fn rest(&self, mut range: Range<usize>, after: Option<&[u8]>, dir: Direction) -> Walk {
        match (after, dir) {
            (Some(key), Direction::Forward) => range.start = range.start.max(self.past(key)),
            (Some(key), Direction::Backward) => range.end = range.end.min(self.at(key)),
            (None, _) => {}
        }
        Walk { source: self.clone(), range, dir }
    }
}

fn key_of(rid: &RecordId) -> &[u8] {
    match rid {
        RecordId::Key(key) => key,
        // No row of a table has a number.
        RecordId::Long(_) => &[],
    }
}

impl Source for TableSource {
    fn collection(&self) -> &Arc<CollectionInfo> {
        &self.info
    }
    fn read_ts(&self) -> Timestamp {
        Timestamp::ZERO
    }
    fn record_count(&self) -> u64 {
        self.entries.len() as u64
    }
    fn fetch(&mut self, rid: &RecordId) -> Result<Option<Bytes>> {
        let key = key_of(rid);
        match self.entries.get(self.at(key)).filter(|e| *e.key == *key) {
            Some(entry) => self.row(entry),
            None => Ok(None),
        }
    }
    fn scan_records(&mut self, scan: RecordScan<'_>) -> Result<Box<dyn RecordCursor>> {
        let start = scan.min.map_or(0, |rid| self.at(key_of(rid)));
        let end = scan.max.map_or(self.entries.len(), |rid| self.past(key_of(rid)));
        Ok(Box::new(self.rest(start..end, scan.after.map(key_of), scan.dir)))
    }
    fn scan_index(&mut self, scan: IndexScan<'_>) -> Result<Box<dyn IndexCursor>> {
        let start = self.at(scan.start);
        let end = if scan.end.is_empty() { self.entries.len() } else { self.at(scan.end) };
        Ok(Box::new(self.rest(start..end, scan.after.map(|(key, _)| key), scan.dir)))
    }
}

/// A walk over positions of [`TableSource::entries`]: of rows as of index entries, for both have the same order.
struct Walk {
    source: TableSource,
    range: Range<usize>,
    dir: Direction,
}

impl Walk {
    fn step(&mut self) -> Option<usize> {
        match self.dir {
            Direction::Forward => self.range.next(),
            Direction::Backward => self.range.next_back(),
        }
    }
}

impl RecordCursor for Walk {
    fn next(&mut self) -> Result<Option<(RecordId, Bytes)>> {
        while let Some(at) = self.step() {
            let entry = &self.source.entries[at];
            // A row that has gone since is passed over.
            if let Some(row) = self.source.row(entry)? {
                return Ok(Some((RecordId::Key(entry.key.clone()), row)));
            }
        }
        Ok(None)
    }
}

impl IndexCursor for Walk {
    fn next(&mut self) -> Result<Option<IndexEntry<'_>>> {
        let Some(at) = self.step() else { return Ok(None) };
        let Entry { key, type_bits, .. } = &self.source.entries[at];
        Ok(Some(IndexEntry { key, type_bits, rid: RecordId::Key(key.clone()) }))
    }
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        match self.dir {
            Direction::Forward => self.range.start = self.range.start.max(self.source.at(key)),
            Direction::Backward => self.range.end = self.range.end.min(self.source.at(key)),
        }
        Ok(())
    }
}
