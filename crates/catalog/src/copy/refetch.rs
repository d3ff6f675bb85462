//! Back to the common point where the history may not reach: what was changed after it is written anew, as another
//! member has it by now (R-REF-2, R-REF-3).
//!
//! ```text
//!   fetched file, synced ─► mark {minValid, undoTo} ─► rows back to undoTo ─► documents of the file, at undoTo
//!        ─► indexes they may have left wrong, anew ─► checkpoint ─► log cut ─► mark {minValid}
//! ```
//!
//! The documents are of the future: until the log is applied up to `minValid` they do not belong together, so nobody
//! reads, and entries are applied as in an initial sync. Unique indexes of these collections keep their keys with
//! record ids from here on, since two documents may claim one key meanwhile.
//!
//! Whatever the crash, the next start finds the mark: with `undoTo` it does all of it again from the file.

use crate::Catalog;
use crate::apply::entry::OP;
use crate::copy::cloning::{op_time_of, split_record_id};
use crate::read::source::find_by_id;
use crate::schema::collection::{Collection, Index, KeyFormat};
use crate::schema::durable::Parts;
use crate::write::crud::UpdateForm;
use crate::write::record_id;
use pando_base::{Error, OpTime, Result, Timestamp, Uuid, limits};
use pando_bson::keystring::{Directions, KeyBuilder};
use pando_bson::{DocBuilder, RawDoc, Value};
use pando_env::{Disk, DiskFile};
use pando_index::IndexSpec;
use pando_query::source::RecordId;
use pando_storage::{Dir, Ident, ReadAt};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) const MIN_VALID: &[u8] = b"minValid";
/// Where fetched documents wait until they are rows.
const FILE: &str = "rollback/fetched";

/// Up to where a log must be applied before the data is of one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MinValid {
    pub at: OpTime,
    /// The rows have not been taken back to this yet; zero = they have.
    pub undo_to: Timestamp,
}

/// Documents on their way into the file.
pub struct FetchedFile {
    file: Arc<dyn DiskFile>,
    len: u64,
    waiting: Vec<u8>,
}

impl FetchedFile {
    pub fn create(disk: &dyn Disk) -> Result<FetchedFile> {
        pando_env::disk::make_folder(disk, "rollback")?;
        let file = disk.open(FILE, true)?;
        file.truncate(0)?;
        Ok(FetchedFile { file, len: 0, waiting: Vec::new() })
    }
    /// What the source has under `id` (`{_id}`), with its record id in a last field; `None`: nothing.
    pub fn add(&mut self, uuid: Uuid, id: &[u8], doc: Option<&RawDoc>) -> Result<()> {
        let mut b = DocBuilder::new();
        b.uuid("u", &uuid.0).raw_doc("id", RawDoc::trusted(id));
        if let Some(doc) = doc {
            b.raw_doc("doc", doc);
        }
        self.waiting.extend_from_slice(b.finish().as_bytes());
        if self.waiting.len() < limits::ROLLBACK_FILE_WRITE_BYTES { Ok(()) } else { self.flush() }
    }
    fn flush(&mut self) -> Result<()> {
        self.file.write_at(self.len, &self.waiting)?;
        self.len += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }
    pub fn finish(mut self, disk: &dyn Disk) -> Result<()> {
        self.flush()?;
        self.file.sync()?;
        disk.sync_dir("rollback")?;
        disk.sync_dir(".")?;
        Ok(())
    }
}

/// The file, one document after the other.
struct Documents {
    file: Arc<dyn DiskFile>,
    at: u64,
    buffer: Vec<u8>,
}

impl Documents {
    fn next(&mut self) -> Result<Option<&RawDoc>> {
        let mut len = [0; 4];
        if self.file.read_at(self.at, &mut len)? == 0 {
            return Ok(None);
        }
        self.buffer.resize(u32::from_le_bytes(len) as usize, 0);
        let got = self.file.read_at(self.at, &mut self.buffer)?;
        self.at += got as u64;
        let doc = RawDoc::validate(&self.buffer);
        doc.map(Some).map_err(|e| Error::internal(format!("the file {FILE} is damaged: {e}")))
    }
}

impl Catalog {
    pub fn min_valid(&self) -> Result<Option<MinValid>> {
        let row = self.storage().begin(ReadAt::Applied)?.get(Ident::META, MIN_VALID)?;
        let Some(row) = row else { return Ok(None) };
        let doc = RawDoc::trusted(&row);
        let Some(Value::Timestamp(undo_to)) = doc.get("undoTo") else {
            return Err(Error::internal(format!("what this node keeps of itself is damaged: {doc}")));
        };
        Ok(Some(MinValid { at: op_time_of(doc)?, undo_to }))
    }
    /// The log is applied over data of different ages.
    pub fn is_before_min_valid(&self) -> bool {
        self.0.before_min_valid.load(Ordering::Acquire)
    }
    fn set_min_valid(&self, mark: Option<MinValid>) -> Result<()> {
        let mut unit = self.storage().begin_local()?;
        match mark {
            Some(mark) => {
                let mut b = DocBuilder::new();
                b.timestamp("ts", mark.at.ts).i64("t", mark.at.t).timestamp("undoTo", mark.undo_to);
                unit.put(Ident::META, MIN_VALID, b.finish().as_bytes())?;
            }
            None => unit.delete(Ident::META, MIN_VALID)?,
        }
        unit.commit()?;
        self.0.before_min_valid.store(mark.is_some(), Ordering::Release);
        self.0.copying.store(mark.is_some(), Ordering::Release);
        self.storage().sync_local()
    }

    /// Whether definitions are known as of `common`: documents can be fetched, collections cannot.
    pub fn remembers_definitions(&self, common: Timestamp) -> Result<bool> {
        if self.storage().remembers(common) {
            return Ok(true);
        }
        let txn = self.storage().begin(ReadAt::Applied)?;
        let mut rows = txn.scan(Ident::CATALOG, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
        while let Some((key, _)) = rows.next()? {
            if txn.newest_ts(Ident::CATALOG, &key)?.is_some_and(|ts| ts > common) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes everything above `common` back with the help of a finished [`FetchedFile`]. Nobody may read or write
    /// meanwhile. The log is to be applied up to `min_valid` then.
    pub fn roll_back_fetched(&self, common: Timestamp, min_valid: OpTime) -> Result<()> {
        let anew = !self.storage().remembers(common);
        self.set_min_valid(Some(MinValid { at: min_valid, undo_to: common }))?;
        self.undo_fetched(common, anew)
    }
    /// At a start. False when there was nothing to do.
    pub(crate) fn resume_fetched(&self) -> Result<bool> {
        let Some(mark) = self.min_valid()? else { return Ok(false) };
        let pending = !mark.undo_to.is_zero();
        if pending {
            // What was undone is in the file; up to there this is a start like any other.
            self.storage().cut_log(mark.undo_to)?;
            self.replay_log()?;
        }
        self.0.before_min_valid.store(true, Ordering::Release);
        self.0.copying.store(true, Ordering::Release);
        if pending {
            self.undo_fetched(mark.undo_to, true)?;
        }
        Ok(pending)
    }

    /// `anew`: whatever index of these collections may be wrong, since the older rows were not all there.
    fn undo_fetched(&self, common: Timestamp, anew: bool) -> Result<()> {
        self.storage().rewind_to(common)?;
        self.forget_definitions();
        self.load_rows(common)?;
        self.forget_imports_not_in_use()?;
        let file = self.env().disk.open(FILE, false)?;
        let mut documents = Documents { file, at: 0, buffer: Vec::new() };
        let mut current: Option<(Arc<Collection>, Vec<IndexSpec>)> = None;
        while let Some(entry) = documents.next()? {
            let Some((uuid, id)) = key_of(entry) else {
                return Err(Error::internal("a damaged fetched entry"));
            };
            if current.as_ref().is_none_or(|(coll, _)| coll.uuid != uuid) {
                self.done_with(current.take(), common)?;
                // Made after the common point, or dropped there: nothing to put right.
                let Some(coll) = self.lookup_uuid(uuid) else { continue };
                current = Some(self.without_doubtful(&coll, common, anew)?);
            }
            if let Some((coll, _)) = &current {
                self.put_fetched(coll, id, entry.get("doc").and_then(|v| v.as_doc()), common)?;
                if self.storage().wants_checkpoint() {
                    self.storage().checkpoint_rewound(common)?;
                }
            }
        }
        self.done_with(current, common)?;
        self.finish_rebuilds(common)?;
        self.reload_all_views()?;
        self.count_everything()?;
        self.storage().checkpoint_rewound(common)?;
        if self.checkpoint()? < common {
            return Err(Error::internal("the checkpoint of a rollback does not hold all of it"));
        }
        self.storage().cut_log(common)?;
        self.storage().log().publish(common);
        self.drop_unnamed_rows()?;
        let mark = self.min_valid()?.ok_or_else(|| Error::internal("a rollback without its mark"))?;
        self.set_min_valid(Some(MinValid { undo_to: Timestamp::ZERO, ..mark }))?;
        self.env().disk.remove(FILE)?;
        Ok(())
    }

    /// The collection without the indexes that are to be made anew, and these.
    fn without_doubtful(
        &self,
        coll: &Arc<Collection>,
        at: Timestamp,
        anew: bool,
    ) -> Result<(Arc<Collection>, Vec<IndexSpec>)> {
        let doubtful =
            |i: &Index| !i.spec.is_id_index() && i.is_ready() && (anew || i.format == KeyFormat::Bare);
        let gone: Vec<Arc<Index>> = coll.indexes.iter().filter(|i| doubtful(i)).cloned().collect();
        if gone.is_empty() {
            return Ok((coll.clone(), Vec::new()));
        }
        let mut parts = Parts::of(coll);
        parts.indexes.retain(|i| !doubtful(i));
        self.apply_parts(at, parts)?;
        gone.iter().for_each(|i| self.drop_index_rows(i, at));
        let coll = self.lookup_uuid(coll.uuid).ok_or_else(|| Error::internal("the collection is gone"))?;
        Ok((coll, gone.iter().map(|i| i.spec.clone()).collect()))
    }
    fn done_with(&self, done: Option<(Arc<Collection>, Vec<IndexSpec>)>, at: Timestamp) -> Result<()> {
        match done {
            Some((coll, specs)) if !specs.is_empty() => self.rebuild_later(&coll, &specs, at),
            _ => Ok(()),
        }
    }

    /// Our document with this `_id` becomes the source's.
    fn put_fetched(&self, coll: &Collection, id: &RawDoc, doc: Option<&RawDoc>, at: Timestamp) -> Result<()> {
        let mut unit = self.begin_applied(at)?;
        let mut plain = Vec::new();
        let rid = doc.map(|d| split_record_id(d, &mut plain)).transpose()?.flatten();
        let rid = if coll.is_clustered() { 0 } else { rid.unwrap_or_else(|| coll.shared.take_rids(1)) };
        let new = doc.map(|_| RawDoc::trusted(&plain));
        match (find_by_id(unit.txn(), coll, id)?, new) {
            (Some((there, old)), Some(new)) if coll.is_clustered() || there == RecordId::Long(rid) => {
                unit.update(&OP, coll, &there, RawDoc::trusted(&old), new, UpdateForm::Replacement, &[])?;
                return unit.commit().map(drop);
            }
            (Some((there, old)), _) => unit.delete(&OP, coll, &there, RawDoc::trusted(&old), &[])?,
            // Its record is gone without the key that led to it.
            (None, _) => {
                if let (Some(index), Some(id)) = (coll.id_index(), id.elem("_id")) {
                    let mut key = KeyBuilder::new(Directions::ASCENDING);
                    let order = coll.collation().map(|c| &**c as &dyn pando_bson::compare::StringOrder);
                    key.append_elem(&id, order);
                    unit.txn.delete(index.ident, key.bytes())?;
                }
            }
        }
        if let Some(new) = new {
            if !coll.is_clustered() {
                coll.shared.saw_rid(rid);
                // A record that is here under another `_id` has no business there: the source would not have used its id.
                let key = record_id::storage_key(&RecordId::Long(rid));
                unit.txn.delete(coll.records, &key)?;
            }
            unit.insert(&OP, coll, new, rid, &[])?;
        }
        unit.commit().map(drop)
    }

    /// The log is applied up to `minValid`: the data is of one time again. False when the entry there is not the one
    /// the documents were fetched behind: its branch was undone, and nobody can say what they are.
    pub fn reach_min_valid(&self) -> Result<bool> {
        let Some(mark) = self.min_valid()? else { return Ok(true) };
        let mut log = self.storage().log().read(Bound::Included(mark.at.ts), false);
        let same = match log.next()? {
            Some((ts, entry)) => {
                let term = RawDoc::trusted(&entry).get("t").and_then(|v| v.as_i64()).unwrap_or(-1);
                OpTime::new(ts, term) == mark.at
            }
            None => false,
        };
        if same {
            self.note_initial_data(mark.at.ts)?;
            self.set_min_valid(None)?;
        }
        Ok(same)
    }
}

fn key_of(entry: &RawDoc) -> Option<(Uuid, &RawDoc)> {
    match (entry.get("u"), entry.get("id").and_then(|v| v.as_doc())) {
        (Some(Value::Binary { bytes, .. }), Some(id)) => Some((Uuid::from_slice(bytes)?, id)),
        _ => None,
    }
}
