//! The copy of one large collection, past memory: its records go straight into tables as they come, in record order; the
//! entries of its indexes are sorted beside them and loaded at the end.
//!
//! Nobody reads or writes the collection meanwhile, and a copy that is broken off is thrown away as a whole.

use crate::Catalog;
use crate::build::sorter::Sorter;
use crate::copy::cloning::split_record_id;
use crate::schema::collection::{Collection, Index, KeyFormat};
use crate::schema::durable;
use crate::schema::sizes::Totals;
use crate::write::array_marks::PendingMarks;
use crate::write::entry_layout::{bare_value, split_bare};
use crate::write::record_id::{self, Record};
use pando_base::{Error, Result, Timestamp, Uuid, limits};
use pando_bson::RawDoc;
use pando_bson::keystring::KeyBuilder;
use pando_index::KeySet;
use pando_query::source::RecordId;
use pando_storage::BulkLoad;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub struct CloneLoad {
    catalog: Catalog,
    coll: Arc<Collection>,
    records: BulkLoad,
    /// Timestamp of all rows.
    at: Timestamp,
    indexes: Vec<Entries>,
    last: Vec<u8>,
    totals: Totals,
    plain: Vec<u8>,
    builder: KeyBuilder,
    keys: KeySet,
}

/// What one index will hold.
struct Entries {
    index: Arc<Index>,
    sorter: Sorter,
    bits: Vec<u64>,
    paths: BTreeSet<String>,
    multikey: bool,
}

impl Catalog {
    /// Begins the copy of a collection that was just made and is empty; its rows will carry `at`.
    pub fn clone_load(&self, uuid: Uuid, at: Timestamp) -> Result<CloneLoad> {
        let coll =
            self.lookup_uuid(uuid).ok_or_else(|| Error::internal("the collection being copied is gone"))?;
        let memory = limits::INDEX_BUILD_MEMORY_BYTES / coll.indexes.len().max(1);
        let entries = |index: &Arc<Index>| Entries {
            sorter: Sorter::new(self.env().disk.clone(), format!("clone-{}", index.ident.0), memory),
            bits: vec![0; index.state.seen.paths.len()],
            paths: BTreeSet::new(),
            multikey: false,
            index: index.clone(),
        };
        Ok(CloneLoad {
            catalog: self.clone(),
            records: self.storage().bulk(coll.records, at)?,
            at,
            indexes: coll.indexes.iter().filter(|i| i.is_ready()).map(entries).collect(),
            last: Vec::new(),
            totals: Totals::default(),
            plain: Vec::new(),
            builder: KeyBuilder::default(),
            keys: KeySet::default(),
            coll,
        })
    }
}

impl CloneLoad {
    /// Adds documents as [`Catalog::clone_documents`] takes them. Those at or before the last one are there already.
    /// Returns how many were new.
    pub fn push<'d>(&mut self, docs: impl Iterator<Item = &'d RawDoc>) -> Result<u64> {
        let before = self.totals.count;
        let mut plain = std::mem::take(&mut self.plain);
        for doc in docs {
            let rid = split_record_id(doc, &mut plain)?;
            self.add(RawDoc::trusted(&plain), rid)?;
        }
        self.plain = plain;
        Ok((self.totals.count - before) as u64)
    }

    fn add(&mut self, doc: &RawDoc, rid: Option<i64>) -> Result<()> {
        let rid = match rid {
            _ if self.coll.is_clustered() => RecordId::Key(record_id::id_key(&self.coll, doc)?.into()),
            Some(n) => RecordId::Long(n),
            None => return Err(Error::internal("a copied document without record id")),
        };
        let record = Record::of(&rid);
        if !self.last.is_empty() && record.key <= self.last {
            return Ok(());
        }
        self.records.push(&record.key, doc.as_bytes())?;
        for e in &mut self.indexes {
            e.index.keys.keys(doc, &mut self.builder, &mut self.keys)?;
            e.add(&record, &self.keys)?;
        }
        if let RecordId::Long(n) = rid {
            self.coll.shared.saw_rid(n);
        }
        self.last.clone_from(&record.key);
        self.totals.count += 1;
        self.totals.bytes += doc.byte_len() as i64;
        Ok(())
    }

    /// Everything becomes readable. `after` is a later timestamp, for what the row of the collection has to say.
    pub fn finish(self, after: Timestamp) -> Result<()> {
        let CloneLoad { catalog, coll, records, at, indexes, totals, .. } = self;
        records.finish()?;
        coll.shared.sizes.changed(at, totals, || catalog.storage().counted());
        let mut marks = Vec::new();
        for e in indexes {
            marks.extend(e.marks(&coll));
            e.load(&catalog, at)?;
        }
        let mut unit = catalog.begin_applied(after)?;
        durable::put_row(&mut unit.txn, &coll, marks.iter())?;
        marks.into_iter().for_each(|m| unit.note_marks(m));
        unit.commit().map(drop)
    }
}

impl Entries {
    fn add(&mut self, record: &Record, keys: &KeySet) -> Result<()> {
        if keys.multikey || keys.len() > 1 {
            self.multikey = true;
            self.bits.iter_mut().zip(&keys.marks).for_each(|(b, more)| *b |= more);
            self.paths.extend(keys.wild_paths.iter().cloned());
        }
        for k in keys.iter() {
            if self.index.format == KeyFormat::Bare {
                self.sorter.push(k.bytes, &bare_value(record, k.type_bits))?;
            } else {
                self.sorter.push(&crate::write::entry_layout::with_rid(k.bytes, record), k.type_bits)?;
            }
        }
        Ok(())
    }
    /// That arrays were met.
    fn marks(&self, coll: &Collection) -> Option<PendingMarks> {
        if !self.multikey {
            return None;
        }
        self.index.state.see(&self.bits, &self.paths, self.index.wildcard.as_deref());
        // What the planner looks at.
        if let Some(info) = coll.info.indexes.iter().find(|i| i.name == self.index.spec.name) {
            info.multikey.any.store(true, Ordering::Release);
            self.bits.iter().enumerate().for_each(|(i, b)| {
                info.multikey.mark(i, *b);
            });
        }
        Some(PendingMarks {
            collection: coll.uuid,
            index: self.index.clone(),
            bits: self.bits.clone(),
            paths: self.paths.iter().cloned().collect(),
            written: true,
        })
    }
    fn load(self, catalog: &Catalog, at: Timestamp) -> Result<()> {
        let mut sorted = self.sorter.finish()?;
        let mut bulk = catalog.storage().bulk(self.index.ident, at)?;
        let mut pair = Default::default();
        let mut pending: Option<(Vec<u8>, Vec<u8>)> = None;
        while let Some((key, value)) = sorted.next(&mut pair)? {
            match &mut pending {
                // A document was removed and came again while the source was read: the later record counts.
                Some((last, kept)) if last == key => {
                    if self.index.format == KeyFormat::WithRid || split_bare(value)?.0 > split_bare(kept)?.0 {
                        *kept = value.to_vec();
                    }
                }
                Some((last, kept)) => {
                    bulk.push(last, kept)?;
                    last.clear();
                    last.extend_from_slice(key);
                    kept.clear();
                    kept.extend_from_slice(value);
                }
                None => pending = Some((key.to_vec(), value.to_vec())),
            }
        }
        if let Some((last, kept)) = &pending {
            bulk.push(last, kept)?;
        }
        bulk.finish()
    }
}
