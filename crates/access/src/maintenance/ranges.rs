//! Ranges of a collection as a whole, whoever owns them: what moves to another shard is read here, what comes from one is put here, and
//! what is another's by now is deleted (SH-MIG-5 to SH-MIG-8, SH-RDEL).
//!
//! Entries of what is put and deleted say so (`fromMigrate`): to whoever watches the cluster nothing has happened.

use super::Maintenance;
use crate::internal_collections::OP;
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid, limits};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_catalog::{
    Collection, CollectionSource, Interrupt, UpdateForm, WriteGuard, WriteOp, WriteUnit, find_id,
    retry_conflicts,
};
use pando_query::source::{Direction, IndexScan, RecordId, RecordScan, Source};
use pando_routing::ShardKey;
use std::sync::Arc;

/// `[start, end)` of shard keys; an empty `end` is the end of all keys.
#[derive(Clone, Debug)]
pub struct IndexRange {
    pub ns: Namespace,
    pub uuid: Uuid,
    /// The index that has them in order; where there is none, all documents are looked at.
    pub index: Option<String>,
    pub key: ShardKey,
    pub start: Vec<u8>,
    pub end: Vec<u8>,
}

/// How far into a range somebody has come. Whoever deletes helping by helping goes on behind it: to begin with the range anew would be to
/// pass over all that is deleted already, each time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangePlace {
    /// The key of the index that was gone by; `None` where all documents were looked at.
    key: Option<Vec<u8>>,
    record: RecordId,
}

impl RangePlace {
    pub(super) fn of_record(record: RecordId) -> RangePlace {
        RangePlace { key: None, record }
    }
    pub(super) fn record(&self) -> &RecordId {
        &self.record
    }
    /// `{key?, record}`: for whoever keeps it and knows nothing of it.
    pub fn to_raw(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        if let Some(key) = &self.key {
            b.binary("key", 0, key);
        }
        match &self.record {
            RecordId::Long(id) => b.i64("record", *id),
            RecordId::Key(key) => b.binary("record", 0, key),
        };
        b.finish()
    }
    pub fn parse(doc: &RawDoc) -> Option<RangePlace> {
        let bytes = |name: &str| match doc.get(name) {
            Some(Value::Binary { bytes, .. }) => Some(bytes.to_vec()),
            _ => None,
        };
        let record = match doc.get("record")? {
            Value::Binary { .. } => RecordId::Key(bytes("record")?.into()),
            id => RecordId::Long(id.as_i64()?),
        };
        Some(RangePlace { key: bytes("key"), record })
    }
}

/// What one helping of a range was.
#[derive(Debug, Default)]
pub struct Deleted {
    pub documents: usize,
    /// Its last document was here.
    pub last: Option<RangePlace>,
}

/// Whether a document that is there already may be replaced or deleted by what another shard says.
pub type MayChange<'a> = dyn Fn(&RawDoc) -> bool + Send + Sync + 'a;

const MOVED: WriteOp<'static> = WriteOp { from_migrate: true, ..OP };

fn gone(ns: &Namespace, uuid: Uuid) -> Error {
    Error::new(ErrorCode::NamespaceNotFound, format!("there is no collection {ns} with UUID {uuid} any more"))
}

impl IndexRange {
    fn records_of(
        &self,
        source: &mut dyn Source,
        dir: Direction,
        after: Option<&RecordId>,
        max: usize,
    ) -> Result<Vec<RecordId>> {
        let mut all = source.scan_records(RecordScan { after, ..RecordScan::all(dir) })?;
        let (mut found, mut key) = (Vec::new(), KeyBuilder::default());
        while found.len() < max
            && let Some((rid, doc)) = all.next()?
        {
            if self.key.key_of(RawDoc::trusted(&doc), &mut key).is_ok()
                && key.bytes() >= self.start.as_slice()
                && (self.end.is_empty() || key.bytes() < self.end.as_slice())
            {
                found.push(rid);
            }
        }
        Ok(found)
    }
}

impl Maintenance {
    fn the_collection(&self, ns: &Namespace, uuid: Uuid) -> Result<Arc<Collection>> {
        self.catalog.lookup(ns).filter(|c| c.uuid == uuid).ok_or_else(|| gone(ns, uuid))
    }
    async fn lock_the_collection(&self, ns: &Namespace, uuid: Uuid) -> Result<WriteGuard> {
        let guard = self.catalog.write_lock(ns).await?;
        guard.filter(|c| c.uuid == uuid).ok_or_else(|| gone(ns, uuid))
    }

    /// The records of the range, in the order of its index, up to one more than `max`.
    pub fn records_in_range(&self, range: &IndexRange, max: usize) -> Result<Vec<RecordId>> {
        Ok(self.records_behind(range, Direction::Forward, None, max.saturating_add(1))?.0)
    }
    /// Up to `max` records of the range in that direction, and where the last one is. A place of another index, or of none, is none.
    fn records_behind(
        &self,
        range: &IndexRange,
        dir: Direction,
        after: Option<&RangePlace>,
        max: usize,
    ) -> Result<(Vec<RecordId>, Option<RangePlace>)> {
        let coll = self.the_collection(&range.ns, range.uuid)?;
        let mut source = CollectionSource::new(coll, self.catalog.read_latest()?);
        let after = after.filter(|a| a.key.is_some() == range.index.is_some());
        let Some(index) = &range.index else {
            let found = range.records_of(&mut source, dir, after.map(|a| &a.record), max)?;
            let last = found.last().filter(|_| found.len() == max);
            let last = last.map(|record| RangePlace { key: None, record: record.clone() });
            return Ok((found, last));
        };
        let at = source.collection().indexes.iter().position(|i| i.name == *index);
        let at = at.ok_or_else(|| {
            let text = format!("there is no index {index} of {} any more", range.ns);
            Error::new(ErrorCode::IndexNotFound, text)
        })?;
        let (start, end) = (&*range.start, &*range.end);
        let after = after.and_then(|a| Some((a.key.as_deref()?, &a.record)));
        let mut entries = source.scan_index(IndexScan { index: at, start, end, dir, after })?;
        let (mut found, mut last) = (Vec::new(), None);
        while found.len() < max
            && let Some(entry) = entries.next()?
        {
            if found.len() + 1 == max {
                last = Some(RangePlace { key: Some(entry.key.to_vec()), record: entry.rid.clone() });
            }
            found.push(entry.rid);
        }
        Ok((found, last))
    }
    /// Where the first `count` documents of a range end, if there are more; documents with one key stay together. The bound has all of
    /// the key's fields. No more are looked at than may move at once.
    pub fn end_of_first(&self, range: &IndexRange, count: usize) -> Result<Option<DocBuf>> {
        let coll = self.the_collection(&range.ns, range.uuid)?;
        let records = self.records_in_range(range, limits::MIGRATION_DOCUMENTS_MAX)?;
        let mut source = CollectionSource::new(coll, self.catalog.read_latest()?);
        let (mut key, mut last) = (KeyBuilder::default(), range.start.clone());
        for (i, rid) in records.iter().enumerate().skip(count.saturating_sub(1)) {
            let Some(doc) = source.fetch(rid)? else { continue };
            let doc = RawDoc::trusted(&doc);
            range.key.key_of(doc, &mut key)?;
            if i >= count && key.bytes() > last.as_slice() {
                return range.key.bound_of(doc).map(Some);
            }
            last = key.bytes().to_vec();
        }
        Ok(None)
    }
    /// Where the last `count` documents of a range begin, if there are more: the mirror of [`Self::end_of_first`].
    pub fn start_of_last(&self, range: &IndexRange, count: usize) -> Result<Option<DocBuf>> {
        let coll = self.the_collection(&range.ns, range.uuid)?;
        let most = limits::MIGRATION_DOCUMENTS_MAX.saturating_add(1);
        let (records, _) = self.records_behind(range, Direction::Backward, None, most)?;
        let mut source = CollectionSource::new(coll, self.catalog.read_latest()?);
        let (mut key, mut last): (_, Option<(Vec<u8>, DocBuf)>) = (KeyBuilder::default(), None);
        for (i, rid) in records.iter().enumerate().skip(count.saturating_sub(1)) {
            let Some(doc) = source.fetch(rid)? else { continue };
            let doc = RawDoc::trusted(&doc);
            range.key.key_of(doc, &mut key)?;
            match &last {
                // It has a key of its own: what is cut off begins with the one before.
                Some((least, bound)) if i >= count && key.bytes() < least.as_slice() => {
                    return Ok(Some(bound.clone()));
                }
                _ => last = Some((key.bytes().to_vec(), range.key.bound_of(doc)?)),
            }
        }
        Ok(None)
    }
    /// Documents of records as they are now, until they come to so many bytes (but one at least), and how many records that were. Those
    /// that are gone are passed over.
    pub fn documents_of(
        &self,
        ns: &Namespace,
        uuid: Uuid,
        records: &[RecordId],
        bytes_max: usize,
    ) -> Result<(Vec<DocBuf>, usize)> {
        let coll = self.the_collection(ns, uuid)?;
        let mut source = CollectionSource::new(coll, self.catalog.read_latest()?);
        let (mut docs, mut bytes) = (Vec::new(), 0);
        for (i, rid) in records.iter().enumerate() {
            let Some(doc) = source.fetch(rid)? else { continue };
            if !docs.is_empty() && bytes + doc.len() > bytes_max {
                return Ok((docs, i));
            }
            bytes += doc.len();
            docs.push(RawDoc::trusted(&doc).to_buf());
        }
        Ok((docs, records.len()))
    }
    /// Documents as they are now, in the order of the collection, behind a record: so many, or until they come to so many bytes (but one at
    /// least), and the last record.
    pub fn documents_behind(
        &self,
        ns: &Namespace,
        uuid: Uuid,
        after: Option<&RecordId>,
        max: usize,
        bytes_max: usize,
    ) -> Result<(Vec<DocBuf>, Option<RecordId>)> {
        let coll = self.the_collection(ns, uuid)?;
        let mut source = CollectionSource::new(coll, self.catalog.read_latest()?);
        let scan = RecordScan { after, ..RecordScan::all(Direction::Forward) };
        let mut all = source.scan_records(scan)?;
        let (mut docs, mut last, mut bytes) = (Vec::new(), None, 0);
        while docs.len() < max
            && let Some((rid, doc)) = all.next()?
        {
            if !docs.is_empty() && bytes + doc.len() > bytes_max {
                break;
            }
            bytes += doc.len();
            docs.push(RawDoc::trusted(&doc).to_buf());
            last = Some(rid);
        }
        Ok((docs, last))
    }
    /// The documents with the `_id`s of `keys`, all as of one moment.
    pub fn documents_by_id(
        &self,
        ns: &Namespace,
        uuid: Uuid,
        keys: &[DocBuf],
    ) -> Result<Vec<Option<DocBuf>>> {
        let coll = self.the_collection(ns, uuid)?;
        let txn = self.catalog.read_latest()?;
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            let doc = match key.elem("_id") {
                Some(id) => find_id(&txn, &coll, id)?.map(|(_, doc)| RawDoc::trusted(&doc).to_buf()),
                None => None,
            };
            found.push(doc);
        }
        Ok(found)
    }

    /// Puts documents that another shard has sent, each in place of the one with its `_id` that `may_change` allows.
    ///
    /// # Errors
    /// 11000 where there is another document with its `_id`.
    pub async fn put_moved(
        &self,
        interrupt: &dyn Interrupt,
        ns: &Namespace,
        uuid: Uuid,
        docs: &[DocBuf],
        may_change: &MayChange<'_>,
    ) -> Result<()> {
        for docs in docs.chunks(limits::INSERT_UNIT_DOCS_MAX) {
            let put = |unit: &mut WriteUnit, coll: &WriteGuard, doc: &DocBuf| {
                let Some(id) = doc.elem("_id") else { return Ok(()) };
                let Some((rid, old)) = find_id(unit.txn(), coll, id)? else {
                    return self.catalog.insert_within(unit, &MOVED, coll, doc);
                };
                let old = RawDoc::trusted(&old);
                if old == &**doc {
                    return Ok(());
                }
                if !may_change(old) {
                    let text = format!(
                        "a document with _id {} is here already, outside of the range that moves",
                        id.value()
                    );
                    return Err(Error::new(ErrorCode::DuplicateKey, text));
                }
                unit.update(&MOVED, coll, &rid, old, doc, UpdateForm::Replacement, &[])
            };
            self.in_units(interrupt, ns, uuid, docs, put).await?;
        }
        Ok(())
    }
    /// Removes the documents with the `_id`s of `keys` that `may_change` allows.
    pub async fn remove_moved(
        &self,
        interrupt: &dyn Interrupt,
        ns: &Namespace,
        uuid: Uuid,
        keys: &[DocBuf],
        may_change: &MayChange<'_>,
    ) -> Result<()> {
        for keys in keys.chunks(limits::INSERT_UNIT_DOCS_MAX) {
            let remove = |unit: &mut WriteUnit, coll: &WriteGuard, key: &DocBuf| {
                let Some(id) = key.elem("_id") else { return Ok(()) };
                match find_id(unit.txn(), coll, id)? {
                    Some((rid, old)) if may_change(RawDoc::trusted(&old)) => {
                        unit.delete(&MOVED, coll, &rid, RawDoc::trusted(&old), &[])
                    }
                    _ => Ok(()),
                }
            };
            self.in_units(interrupt, ns, uuid, keys, remove).await?;
        }
        Ok(())
    }
    /// Deletes up to `max` documents of the range behind a place. Fewer than `max` are all that are there; `last` is told of `max` only.
    pub async fn delete_in_range(
        &self,
        interrupt: &dyn Interrupt,
        range: &IndexRange,
        after: Option<&RangePlace>,
        max: usize,
    ) -> Result<Deleted> {
        let (records, last) = self.records_behind(range, Direction::Forward, after, max)?;
        let delete = |unit: &mut WriteUnit, coll: &WriteGuard, rid: &RecordId| {
            let old = CollectionSource::within(coll.collection().clone(), unit.txn()).fetch(rid)?;
            match old {
                Some(old) => unit.delete(&MOVED, coll, rid, RawDoc::trusted(&old), &[]),
                None => Ok(()),
            }
        };
        self.in_units(interrupt, &range.ns, range.uuid, &records, delete).await?;
        Ok(Deleted { documents: records.len(), last })
    }
    /// Deletes the range, so many documents at a time, until there is nothing of it from its beginning to its end.
    pub async fn delete_all_in_range(
        &self,
        interrupt: &dyn Interrupt,
        range: &IndexRange,
        at_once: usize,
    ) -> Result<()> {
        let mut place = None;
        loop {
            let whole = place.is_none();
            let helping = self.delete_in_range(interrupt, range, place.as_ref(), at_once).await?;
            place = helping.last;
            if whole && helping.documents < at_once {
                return Ok(());
            }
        }
    }

    /// All in one unit, which is tried again after a conflict.
    pub(super) async fn in_units<T: Sync>(
        &self,
        interrupt: &dyn Interrupt,
        ns: &Namespace,
        uuid: Uuid,
        all: &[T],
        work: impl Fn(&mut WriteUnit, &WriteGuard, &T) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        if all.is_empty() {
            return Ok(());
        }
        let coll = self.lock_the_collection(ns, uuid).await?;
        retry_conflicts(&self.catalog, interrupt, || {
            let mut unit = self.catalog.begin_write(&coll)?;
            all.iter().try_for_each(|one| work(&mut unit, &coll, one))?;
            unit.commit().map(drop)
        })
        .await
    }
}
