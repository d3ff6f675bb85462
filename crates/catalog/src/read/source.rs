//! What queries read: one collection at one snapshot, as [`pando_query::source::Source`].

use crate::Catalog;
use crate::read::oplog_source::OplogSource;
use crate::schema::collection::{Collection, KeyFormat};
use crate::schema::tables::TableSource;
use crate::write::entry_layout::split_bare;
use crate::write::record_id::{self, long_key};
use bytes::Bytes;
use pando_base::limits;
use pando_base::{Error, Result, Timestamp};
use pando_bson::keystring::{Directions, KeyBuilder};
use pando_bson::{Elem, RawDoc};
use pando_query::source::{
    CollectionInfo, Direction, Found, IndexCursor, IndexEntry, IndexScan, Look, RecordCursor, RecordId,
    RecordScan, Source, Verdict,
};
use pando_storage::{BeginOptions, Cursor, Dir, OnPrepared, ReadAt, Txn};
use std::borrow::Borrow;
use std::ops::Bound;
use std::sync::Arc;

/// Storage's bytes under the name queries know; shares, never copies.
pub(crate) fn shared(b: pando_storage::Bytes) -> Bytes {
    Bytes::from_owner(b)
}

fn dir(d: Direction) -> Dir {
    match d {
        Direction::Forward => Dir::Forward,
        Direction::Backward => Dir::Backward,
    }
}

/// One collection at one snapshot. `T` is an owned transaction, or a borrowed one (a write unit's).
pub struct CollectionSource<T> {
    coll: Arc<Collection>,
    txn: T,
    /// Own writes may come between fetches: look every record up.
    writes_between: bool,
    near: Option<Near>,
    last_fetched: i64,
}

/// A cursor over records, standing before `next`.
struct Near {
    cursor: Cursor,
    next: Option<(i64, pando_storage::Bytes)>,
}

impl Catalog {
    /// Opens a collection for reading at a point in time.
    pub fn open_source(&self, coll: &Arc<Collection>, at: ReadAt) -> Result<Box<dyn Source>> {
        self.open_source_with(coll, at, OnPrepared::Ignore)
    }
    /// The same, with a say in what is done about prepared transactions.
    pub fn open_source_with(
        &self,
        coll: &Arc<Collection>,
        at: ReadAt,
        on_prepared: OnPrepared,
    ) -> Result<Box<dyn Source>> {
        if coll.is_oplog() {
            return Ok(Box::new(OplogSource::new(self, coll.clone())));
        }
        if let Some(source) = TableSource::of(coll) {
            return Ok(Box::new(source));
        }
        Ok(Box::new(CollectionSource::new(
            coll.clone(),
            self.storage().begin_with(at, BeginOptions { on_prepared })?,
        )))
    }
}

impl CollectionSource<Txn> {
    /// A reader of its own snapshot.
    pub fn new(coll: Arc<Collection>, txn: Txn) -> CollectionSource<Txn> {
        CollectionSource::over(coll, txn, false)
    }
}

impl<'t> CollectionSource<&'t Txn> {
    /// A reader inside a write unit: sees the unit's own writes.
    pub fn within(coll: Arc<Collection>, txn: &'t Txn) -> CollectionSource<&'t Txn> {
        CollectionSource::over(coll, txn, true)
    }
}

impl<T: Borrow<Txn> + Send> CollectionSource<T> {
    fn over(coll: Arc<Collection>, txn: T, writes_between: bool) -> CollectionSource<T> {
        let coll = coll.as_seen_at(txn.borrow().read_ts());
        CollectionSource { coll, txn, writes_between, near: None, last_fetched: i64::MIN }
    }
    pub fn txn(&self) -> &Txn {
        self.txn.borrow()
    }

    fn fetch_long(&mut self, rid: i64) -> Result<Option<Bytes>> {
        let ahead = rid.wrapping_sub(self.last_fetched);
        let close = !self.writes_between && (1..=limits::FETCH_STEPS_MAX).contains(&ahead);
        self.last_fetched = rid;
        if !close {
            self.near = None;
        } else if let Some(near) = &mut self.near {
            return near.step_to(rid);
        }
        let key = long_key(rid);
        if close {
            // The second fetch in a row that lies close behind the last one: open a cursor here.
            let cursor = self.txn.borrow().scan(
                self.coll.records,
                Bound::Included(&key[..]),
                Bound::Unbounded,
                Dir::Forward,
            )?;
            let mut near = Near { cursor, next: None };
            near.advance()?;
            let found = near.step_to(rid)?;
            self.near = Some(near);
            return Ok(found);
        }
        Ok(self.txn.borrow().get(self.coll.records, &key)?.map(shared))
    }
}

impl Near {
    fn advance(&mut self) -> Result<()> {
        self.next = match self.cursor.next()? {
            Some((key, doc)) => match record_id::from_storage_key(false, &key)? {
                RecordId::Long(n) => Some((n, doc)),
                RecordId::Key(_) => None,
            },
            None => None,
        };
        Ok(())
    }
    fn step_to(&mut self, rid: i64) -> Result<Option<Bytes>> {
        loop {
            match &self.next {
                Some((at, _)) if *at < rid => self.advance()?,
                Some((at, _)) if *at > rid => return Ok(None),
                Some(_) => {
                    let found = self.next.take().map(|(_, doc)| shared(doc));
                    self.advance()?;
                    return Ok(found);
                }
                None => return Ok(None),
            }
        }
    }
}

impl<T: Borrow<Txn> + Send> Source for CollectionSource<T> {
    fn collection(&self) -> &Arc<CollectionInfo> {
        &self.coll.info
    }
    fn read_ts(&self) -> Timestamp {
        self.txn.borrow().read_ts()
    }
    fn record_count(&self) -> u64 {
        self.coll.count()
    }
    fn fetch(&mut self, rid: &RecordId) -> Result<Option<Bytes>> {
        match rid {
            RecordId::Long(n) => self.fetch_long(*n),
            RecordId::Key(k) => Ok(self.txn.borrow().get(self.coll.records, k)?.map(shared)),
        }
    }
    fn scan_records(&mut self, scan: RecordScan<'_>) -> Result<Box<dyn RecordCursor>> {
        let key = |r: Option<&RecordId>| r.map(record_id::storage_key);
        let (min, max, after) = (key(scan.min), key(scan.max), key(scan.after));
        let mut lower = min.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let mut upper = max.as_deref().map_or(Bound::Unbounded, Bound::Included);
        if let Some(after) = after.as_deref() {
            match scan.dir {
                Direction::Forward => lower = Bound::Excluded(after),
                Direction::Backward => upper = Bound::Excluded(after),
            }
        }
        let cursor = self.txn.borrow().scan(self.coll.records, lower, upper, dir(scan.dir))?;
        Ok(Box::new(Records { cursor, clustered: self.coll.is_clustered() }))
    }
    fn scan_index(&mut self, scan: IndexScan<'_>) -> Result<Box<dyn IndexCursor>> {
        let index = self.coll.ready_indexes().get(scan.index);
        let index = index.ok_or_else(|| Error::internal("an index scan names no index"))?;
        let mut lower = Bound::Unbounded;
        let mut upper = Bound::Unbounded;
        if !scan.start.is_empty() {
            lower = Bound::Included(scan.start);
        }
        if !scan.end.is_empty() {
            upper = Bound::Excluded(scan.end);
        }
        let after = scan.after.map(|(key, rid)| match index.format {
            KeyFormat::Bare => key.to_vec(),
            KeyFormat::WithRid => crate::write::entry_layout::with_rid(key, &record_id::Record::of(rid)),
        });
        if let Some(after) = after.as_deref() {
            match scan.dir {
                Direction::Forward => lower = Bound::Excluded(after),
                Direction::Backward => upper = Bound::Excluded(after),
            }
        }
        let cursor = self.txn.borrow().scan(index.ident, lower, upper, dir(scan.dir))?;
        Ok(Box::new(Entries {
            cursor,
            format: index.format,
            clustered: self.coll.is_clustered(),
            below: None,
            entry: None,
        }))
    }
}

struct Records {
    cursor: Cursor,
    clustered: bool,
}

impl RecordCursor for Records {
    fn next(&mut self) -> Result<Option<(RecordId, Bytes)>> {
        if !self.cursor.advance()? {
            return Ok(None);
        }
        let rid = record_id::from_storage_key(self.clustered, self.cursor.key())?;
        Ok(Some((rid, shared(self.cursor.share()))))
    }
    fn find(&mut self, look: &mut Look<'_>) -> Result<Found> {
        while self.cursor.advance()? {
            let rid = record_id::from_storage_key(self.clustered, self.cursor.key())?;
            match look(&rid, self.cursor.value())? {
                Verdict::Take => return Ok(Found::Record(rid, shared(self.cursor.share()))),
                Verdict::Pass => {}
                Verdict::Stop => return Ok(Found::Stopped),
            }
        }
        Ok(Found::End)
    }
}

struct Entries {
    cursor: Cursor,
    format: KeyFormat,
    clustered: bool,
    /// After a backward seek: entries at this very key are not wanted.
    below: Option<Vec<u8>>,
    entry: Option<(pando_storage::Bytes, pando_storage::Bytes)>,
}

impl IndexCursor for Entries {
    fn next(&mut self) -> Result<Option<IndexEntry<'_>>> {
        let Some(mut found) = self.cursor.next()? else { return Ok(None) };
        if let Some(below) = self.below.take()
            && below == *found.0
        {
            match self.cursor.next()? {
                Some(next) => found = next,
                None => return Ok(None),
            }
        }
        let (key, value) = self.entry.insert(found);
        Ok(Some(match self.format {
            KeyFormat::WithRid => {
                let (bare, rid) = record_id::split(self.clustered, key)?;
                IndexEntry { key: bare, type_bits: value, rid }
            }
            KeyFormat::Bare => {
                let (record, type_bits) = split_bare(value)?;
                let rid = record_id::from_storage_key(self.clustered, record)?;
                IndexEntry { key, type_bits, rid }
            }
        }))
    }
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.below = self.cursor.is_backward().then(|| key.to_vec());
        self.cursor.seek(key)
    }
}

/// The record whose `_id` equals that of `doc` (a document that begins with, or contains, `_id`).
pub fn find_by_id(
    txn: &Txn,
    coll: &Collection,
    doc: &RawDoc,
) -> Result<Option<(RecordId, pando_storage::Bytes)>> {
    match doc.elem("_id") {
        Some(id) => find_id(txn, coll, id),
        None => Ok(None),
    }
}

/// The record with this `_id` value.
pub fn find_id(
    txn: &Txn,
    coll: &Collection,
    id: Elem<'_>,
) -> Result<Option<(RecordId, pando_storage::Bytes)>> {
    let mut b = KeyBuilder::new(Directions::ASCENDING);
    let order = coll.collation().map(|c| &**c as &dyn pando_bson::compare::StringOrder);
    b.append_elem(&id, order);
    if coll.is_clustered() {
        let found = txn.get(coll.records, b.bytes())?;
        return Ok(found.map(|doc| (RecordId::Key(Bytes::copy_from_slice(b.bytes())), doc)));
    }
    let Some(index) = coll.id_index() else { return Ok(None) };
    let Some(entry) = txn.get(index.ident, b.bytes())? else { return Ok(None) };
    let (key, _) = split_bare(&entry)?;
    let rid = record_id::from_storage_key(false, key)?;
    Ok(txn.get(coll.records, key)?.map(|doc| (rid, doc)))
}

/// The first `n` records in record order.
pub(crate) fn first_records(
    txn: &Txn,
    coll: &Collection,
    n: usize,
) -> Result<Vec<(RecordId, pando_storage::Bytes)>> {
    let mut cursor = txn.scan(coll.records, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
    let mut out = Vec::new();
    while out.len() < n {
        let Some((key, doc)) = cursor.next()? else { break };
        out.push((record_id::from_storage_key(coll.is_clustered(), &key)?, doc));
    }
    Ok(out)
}
