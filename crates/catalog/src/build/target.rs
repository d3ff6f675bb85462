//! One index of a build: its keys are gathered, sorted, loaded in bulk and corrected by what writers did meanwhile.

use crate::build::sorter::{Sorted, Sorter};
use crate::build::state::{Build, SideOp, SideRow};
use crate::schema::collection::{Collection, Index, KeyFormat};
use crate::schema::durable::Parts;
use crate::write::array_marks::PendingMarks;
use crate::write::duplicate::{duplicate_error, key_values};
use crate::write::entry_layout::{bare_value, split_bare, with_rid};
use crate::write::record_id::{self, Record};
use pando_base::{Error, Result, Timestamp, limits};
use pando_bson::RawDoc;
use pando_bson::keystring::KeyBuilder;
use pando_env::disk::Disk;
use pando_index::{Key, KeySet};
use pando_storage::{BulkLoad, Storage, Txn};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What the runner knows about one index.
pub(crate) struct Target {
    pub(crate) index: Arc<Index>,
    pub(crate) build: Arc<Build>,
    sorter: Option<Sorter>,
    /// Entries that could not be added because another record had the key: looked at again at the end.
    doubtful: BTreeMap<(Vec<u8>, Vec<u8>), Vec<u8>>,
    bits: Vec<u64>,
    paths: BTreeSet<String>,
    multikey: bool,
    entry: Vec<u8>,
}

/// The collection with these indexes ready from `at` on, and what their scans have met.
pub(crate) fn made_ready(
    coll: &Collection,
    targets: &[Target],
    at: Timestamp,
) -> Result<(Arc<Collection>, Vec<PendingMarks>)> {
    let mut parts = Parts::of(coll);
    let mut marks = Vec::new();
    for slot in &mut parts.indexes {
        let Some(t) = targets.iter().find(|t| Arc::ptr_eq(&t.index.state, &slot.state)) else { continue };
        let mut ready = Index::clone(slot);
        ready.building = None;
        ready.ready_at = at;
        let ready = Arc::new(ready);
        // Writers have noted what they met themselves; this is what the scan met.
        if t.multikey {
            ready.state.see(&t.bits, &t.paths, ready.wildcard.as_deref());
            let paths = t.paths.iter().cloned().collect();
            marks.push(PendingMarks {
                collection: coll.uuid,
                index: ready.clone(),
                bits: t.bits.clone(),
                paths,
                written: true,
            });
        }
        *slot = ready;
    }
    Ok((parts.assemble()?, marks))
}

/// The bulk load of one index's sorted entries.
pub(crate) struct Load {
    sorted: Sorted,
    bulk: BulkLoad,
    last: Option<Vec<u8>>,
    pair: (Vec<u8>, Vec<u8>),
}

impl Load {
    /// Loads some entries; false when there are no more. A key that comes twice in a unique index is doubtful: one
    /// of the two documents may have changed since.
    pub(crate) fn some(&mut self, coll: &Collection, t: &mut Target) -> Result<bool> {
        let bare = t.index.format == KeyFormat::Bare;
        let (mut entries, mut bytes) = (0, 0);
        while entries < limits::INDEX_BUILD_STEP_DOCS * 4 && bytes < limits::INDEX_BUILD_STEP_BYTES {
            let Some((key, value)) = self.sorted.next(&mut self.pair)? else { return Ok(false) };
            entries += 1;
            bytes += key.len() + value.len();
            if bare && self.last.as_deref() == Some(key) {
                let (record, bits) = split_bare(value)?;
                t.doubt(coll, key.to_vec(), record.to_vec(), bits.to_vec())?;
                continue;
            }
            self.bulk.push(key, value)?;
            if bare {
                let last = self.last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(key);
            }
        }
        t.build.progress.keys.store(self.bulk.rows(), Ordering::Relaxed);
        Ok(true)
    }
    pub(crate) fn finish(self) -> Result<()> {
        self.bulk.finish()
    }
}

impl Target {
    pub(crate) fn new(disk: Arc<dyn Disk>, index: Arc<Index>, build: Arc<Build>, memory: usize) -> Target {
        let name = format!("index-{}-{}", build.uuid, index.ident.0);
        let sorter = Some(Sorter::new(disk, name, memory));
        let bits = vec![0; index.state.seen.paths.len()];
        let (doubtful, paths) = (BTreeMap::new(), BTreeSet::new());
        Target { index, build, sorter, doubtful, bits, paths, multikey: false, entry: Vec::new() }
    }

    /// Adds a document's keys to what is to be sorted.
    pub(crate) fn add(
        &mut self,
        record: &Record,
        doc: &RawDoc,
        builder: &mut KeyBuilder,
        keys: &mut KeySet,
    ) -> Result<()> {
        self.index.keys.keys(doc, builder, keys)?;
        self.note(keys);
        let Some(sorter) = &mut self.sorter else { return Ok(()) };
        for k in keys.iter() {
            if self.index.format == KeyFormat::Bare {
                sorter.push(k.bytes, &bare_value(record, k.type_bits))?;
            } else {
                self.entry.clear();
                self.entry.extend_from_slice(k.bytes);
                record.append_to(&mut self.entry);
                sorter.push(&self.entry, k.type_bits)?;
            }
        }
        Ok(())
    }

    /// Sorts; `None` when that was done before.
    pub(crate) fn load(&mut self, storage: &Storage, from: Timestamp) -> Result<Option<Load>> {
        let Some(sorter) = self.sorter.take() else { return Ok(None) };
        let sorted = sorter.finish()?;
        // After a crash the build is done again, or its end is found in the log and the index made at the end of the replay.
        let bulk = storage.bulk(self.index.ident, from)?;
        // What carries no timestamp is in no log: an unreplicated collection's index, made anew at the start.
        let bulk = if from.is_zero() { bulk } else { bulk.small_in_memory() };
        Ok(Some(Load { sorted, bulk, last: None, pair: Default::default() }))
    }

    fn note(&mut self, keys: &KeySet) {
        if keys.multikey || keys.len() > 1 {
            self.multikey = true;
            self.bits.iter_mut().zip(&keys.marks).for_each(|(b, more)| *b |= more);
            self.paths.extend(keys.wild_paths.iter().cloned());
        }
    }

    fn doubt(&mut self, coll: &Collection, key: Vec<u8>, record: Vec<u8>, type_bits: Vec<u8>) -> Result<()> {
        if self.doubtful.len() >= limits::INDEX_BUILD_DUPLICATES_MAX {
            return Err(self.duplicate(coll, &key, &type_bits));
        }
        self.doubtful.insert((key, record), type_bits);
        Ok(())
    }

    fn duplicate(&self, coll: &Collection, key: &[u8], type_bits: &[u8]) -> Error {
        let values = key_values(&self.index, Key { bytes: key, type_bits });
        duplicate_error(coll, &self.index, &values)
    }

    /// Applies one change that a writer left.
    pub(crate) fn apply(&mut self, coll: &Collection, txn: &mut Txn, row: &SideRow<'_>) -> Result<()> {
        let ident = self.index.ident;
        let record = Record::of(&record_id::from_storage_key(coll.is_clustered(), row.record)?);
        if self.index.format == KeyFormat::WithRid {
            let k = with_rid(row.key, &record);
            return match row.op {
                SideOp::Add => txn.put(ident, &k, row.type_bits),
                SideOp::Remove => txn.delete(ident, &k),
            };
        }
        let there = txn.get(ident, row.key)?;
        let mine = match &there {
            Some(value) => split_bare(value)?.0 == row.record,
            None => true,
        };
        match (row.op, mine) {
            (SideOp::Add, true) => txn.put(ident, row.key, &bare_value(&record, row.type_bits)),
            (SideOp::Add, false) => {
                self.doubt(coll, row.key.to_vec(), row.record.to_vec(), row.type_bits.to_vec())
            }
            (SideOp::Remove, true) => txn.delete(ident, row.key),
            (SideOp::Remove, false) => {
                self.doubtful.remove(&(row.key.to_vec(), row.record.to_vec()));
                Ok(())
            }
        }
    }

    /// Adds the doubtful entries; those whose key is still taken are duplicates.
    pub(crate) fn settle_doubts(&self, coll: &Collection, txn: &mut Txn) -> Result<()> {
        for ((key, record), type_bits) in &self.doubtful {
            if let Some(value) = txn.get(self.index.ident, key)?
                && split_bare(&value)?.0 != record
            {
                return Err(self.duplicate(coll, key, type_bits));
            }
            let record = Record::of(&record_id::from_storage_key(coll.is_clustered(), record)?);
            txn.put(self.index.ident, key, &bare_value(&record, type_bits))?;
        }
        Ok(())
    }
}
