//! The one path by which documents change: record, index entries, log entry, all in one unit.
//!
//! `insert_many` is the whole of an insert; updates and deletes are driven by the executor, which has found a
//! record in the unit's own snapshot and calls [`WriteUnit::update`] or [`WriteUnit::delete`] for it.
//! A write conflict anywhere means that the unit is void: drop it, wait a moment, run it again on a new snapshot
//! ([`retry_conflicts`]).

use crate::Catalog;
use crate::schema::collection::{Collection, Index};
use crate::schema::sizes::Totals;
use crate::write::capped;
use crate::write::duplicate;
use crate::write::index_entries::{self, Change};
use crate::write::interrupt::Interrupt;
use crate::write::observer::{Deleted, Inserted, Updated};
use crate::write::op::WriteOp;
use crate::write::record_id;
use crate::write::touched;
use crate::write::unit::WriteUnit;
use crate::write::validation;
use pando_base::{Error, ErrorCode, OpTime, Result, limits};
use pando_bson::{DocBuf, RawDoc};
use pando_oplog::entry;
use pando_query::source::RecordId;
use pando_storage::PREPARE_CONFLICT;
use std::borrow::Cow;
use std::future::Future;
use std::ops::Range;
use std::time::Duration;

/// What became of an insert.
#[derive(Debug, Default)]
pub struct Inserts {
    /// Documents inserted.
    pub n: usize,
    /// Position of each failed document and why.
    pub errors: Vec<(usize, Error)>,
    /// Position of the last entry in the log; [`OpTime::NULL`] when nothing was inserted.
    pub last: OpTime,
    /// Of a retryable write: which documents one unit inserted, and its last entry.
    pub of_session: Vec<(Range<usize>, OpTime)>,
}

/// How an update is told in the log.
#[derive(Clone, Copy, Debug)]
pub enum UpdateForm<'a> {
    /// A `$v: 2` difference.
    Diff(&'a RawDoc),
    /// The whole new document.
    Replacement,
}

/// Backoff between tries of a unit that met a write conflict.
const CONFLICT_YIELDS: u32 = 4;

/// Runs `unit` until it ends neither in a write conflict nor at something undecided. It must start from a new snapshot each
/// time.
pub async fn retry_conflicts<T>(
    catalog: &Catalog,
    interrupt: &dyn Interrupt,
    mut unit: impl FnMut() -> Result<T>,
) -> Result<T> {
    let mut tries = 0;
    catalog.await_room(interrupt).await?;
    let decided = catalog.storage().prepare_changes();
    loop {
        let seen = decided.version();
        match unit() {
            Err(e) if e.code == ErrorCode::WriteConflict => {
                interrupt.check()?;
                after_conflict(catalog, tries).await;
                tries += 1;
            }
            Err(e) if e.code == PREPARE_CONFLICT => {
                catalog.unless_interrupted(interrupt, decided.changed(seen)).await?;
            }
            done => return done,
        }
    }
}

impl Catalog {
    /// Waits for `fut` as long as the operation may.
    pub(crate) async fn unless_interrupted<F: Future + Send>(
        &self,
        interrupt: &dyn Interrupt,
        fut: F,
    ) -> Result<F::Output> {
        let mut fut = std::pin::pin!(fut);
        let look = Duration::from_millis(limits::INTERRUPT_CHECK_MS);
        loop {
            if let Some(done) = self.env().timeout(look, fut.as_mut()).await {
                return Ok(done);
            }
            interrupt.check()?;
        }
    }
}

/// Waits a little before the next try.
pub fn after_conflict(catalog: &Catalog, tries: u32) -> impl Future<Output = ()> + Send + 'static {
    let env = catalog.env().clone();
    async move {
        if tries < CONFLICT_YIELDS {
            env.tasks.yield_now().await;
        } else {
            let ms = (1u64 << (tries - CONFLICT_YIELDS).min(7)).min(limits::CONFLICT_WAIT_MS_MAX);
            env.clock.sleep(std::time::Duration::from_millis(ms)).await;
        }
    }
}

impl Catalog {
    /// Lets a writer that has outrun the disk wait, before it begins a unit.
    pub(crate) async fn await_room(&self, interrupt: &dyn Interrupt) -> Result<()> {
        while !self.storage().has_room() {
            interrupt.check()?;
            let look = Duration::from_millis(limits::INTERRUPT_CHECK_MS);
            if self.env().timeout(look, self.storage().wait_room()).await.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Inserts documents in units of up to 500 documents or 2 MB. A unit that fails is done again one by one, so
    /// that each error has its document. `stmt_ids` is empty or one per document.
    // tour: insert 4/9
    pub async fn insert_many(
        &self,
        op: &WriteOp<'_>,
        coll: &Collection,
        docs: &[&RawDoc],
        stmt_ids: &[i32],
        ordered: bool,
        interrupt: &dyn Interrupt,
    ) -> Inserts {
        let mut out = Inserts::default();
        let mut at = 0;
        let mut op = *op;
        while at < docs.len() {
            let end = unit_end(docs, at);
            let ids = if stmt_ids.is_empty() { stmt_ids } else { &stmt_ids[at..end] };
            match interrupt.check().and_then(|()| self.insert_unit(&op, coll, &docs[at..end], ids)) {
                Ok(last) => {
                    out.n += end - at;
                    note(&mut out, &mut op, at..end, last);
                }
                Err(_) => {
                    let stop = self
                        .insert_one_by_one(
                            &mut op,
                            coll,
                            docs,
                            at..end,
                            stmt_ids,
                            ordered,
                            interrupt,
                            &mut out,
                        )
                        .await;
                    if stop {
                        return out;
                    }
                }
            }
            at = end;
            if at < docs.len() {
                self.env().tasks.yield_now().await;
                // An interruption is reported by the next unit.
                let _ = self.await_room(interrupt).await;
            }
        }
        out
    }

    #[allow(clippy::too_many_arguments)]
    async fn insert_one_by_one(
        &self,
        op: &mut WriteOp<'_>,
        coll: &Collection,
        docs: &[&RawDoc],
        range: Range<usize>,
        stmt_ids: &[i32],
        ordered: bool,
        interrupt: &dyn Interrupt,
        out: &mut Inserts,
    ) -> bool {
        for i in range {
            let ids = if stmt_ids.is_empty() { stmt_ids } else { &stmt_ids[i..=i] };
            let one = interrupt.check();
            let done = match one {
                Ok(()) => {
                    retry_conflicts(self, interrupt, || self.insert_unit(op, coll, &docs[i..=i], ids)).await
                }
                Err(e) => Err(e),
            };
            match done {
                Ok(last) => {
                    out.n += 1;
                    note(out, op, i..i + 1, last);
                }
                Err(e) => {
                    let fatal = e.code.ends_batch();
                    out.errors.push((i, e));
                    if ordered || fatal {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Inserts documents in one unit with one timestamp each; all of them or none.
    pub fn insert_unit(
        &self,
        op: &WriteOp<'_>,
        coll: &Collection,
        docs: &[&RawDoc],
        stmt_ids: &[i32],
    ) -> Result<OpTime> {
        let fixed = docs.iter().map(|d| self.fix_for_insert(d)).collect::<Result<Vec<Cow<'_, RawDoc>>>>()?;
        self.insert_final(op, coll, &fixed, stmt_ids)
    }

    /// Inserts a document in its final form, which several statements of a session have made.
    pub fn insert_of_statements(
        &self,
        op: &WriteOp<'_>,
        coll: &Collection,
        doc: &RawDoc,
        stmt_ids: &[i32],
    ) -> Result<OpTime> {
        let mut unit = self.begin_write_waiting(coll)?;
        let rid = coll.shared.take_rids(1);
        unit.insert(op, coll, doc, rid, stmt_ids)?;
        unit.commit()
    }

    /// Inserts documents that are in their final form already (an upsert's keeps its `Timestamp(0, 0)`).
    pub fn insert_final(
        &self,
        op: &WriteOp<'_>,
        coll: &Collection,
        docs: &[Cow<'_, RawDoc>],
        stmt_ids: &[i32],
    ) -> Result<OpTime> {
        // A capped collection's records become visible in record order: hold the turn until the commit.
        let _turn = coll.is_capped().then(|| capped::turn(coll));
        let mut unit = self.begin_write_waiting(coll)?;
        if !op.bypass_validation {
            for doc in docs {
                validation::check_insert(self, coll, doc)?;
            }
        }
        if docs.len() > 1 && !coll.is_capped() {
            unit.reserve(docs.len());
        }
        let first_rid = coll.shared.take_rids(docs.len());
        for (i, doc) in docs.iter().enumerate() {
            let ids = if stmt_ids.is_empty() { stmt_ids } else { &stmt_ids[i..=i] };
            unit.insert(op, coll, doc, first_rid + i as i64, ids)?;
        }
        unit.commit()
    }
}

fn note(out: &mut Inserts, op: &mut WriteOp<'_>, docs: Range<usize>, last: OpTime) {
    if !last.is_null() {
        out.last = last;
        if let Some(s) = &mut op.session {
            s.prev = last;
            out.of_session.push((docs, last));
        }
    }
}

fn unit_end(docs: &[&RawDoc], at: usize) -> usize {
    let mut bytes = 0;
    let mut end = at;
    while end < docs.len() && end - at < limits::INSERT_UNIT_DOCS_MAX {
        bytes += docs[end].byte_len();
        if end > at && bytes > limits::INSERT_UNIT_BYTES_MAX {
            break;
        }
        end += 1;
    }
    end
}

impl WriteUnit {
    /// Inserts a document that is in its final form. `rid` is a fresh record id (unused in clustered collections).
    pub fn insert(
        &mut self,
        op: &WriteOp<'_>,
        coll: &Collection,
        doc: &RawDoc,
        rid: i64,
        stmt_ids: &[i32],
    ) -> Result<()> {
        self.stamp();
        let (record, rid) = record_id::for_insert(coll, doc, rid)?;
        if coll.is_clustered() {
            if self.txn.exists(coll.records, &record.key)? && !self.is_applying() {
                return Err(duplicate::duplicate_clustered(coll, doc));
            }
            self.txn.insert(coll.records, &record.key, doc.as_bytes())?;
        } else {
            self.txn.put_new(coll.records, &record.key, doc.as_bytes())?;
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let done = coll.indexes.iter().try_for_each(|index| {
            index.keys.keys(doc, &mut scratch.builder, &mut scratch.new)?;
            index_entries::note_arrays(self, coll, index, &scratch.new);
            scratch
                .new
                .iter()
                .try_for_each(|key| index_entries::apply(self, coll, index, &record, Change::AddFresh, key))
        });
        self.scratch = scratch;
        done?;
        index_entries::write_marks(self, coll)?;
        self.change_sizes(coll, Totals { count: 1, bytes: doc.byte_len() as i64 });
        let event = Inserted { coll, doc, rid, stmt_ids };
        for o in self.observers().iter() {
            o.inserted(self, op, &event)?;
        }
        if coll.is_capped() && !op.untrimmed && !self.is_applying() {
            capped::trim(self, op, coll)?;
        }
        Ok(())
    }

    /// Replaces the document of a record. `old` is what this unit's snapshot has there.
    pub fn update(
        &mut self,
        op: &WriteOp<'_>,
        coll: &Collection,
        rid: &RecordId,
        old: &RawDoc,
        new: &RawDoc,
        form: UpdateForm<'_>,
        stmt_ids: &[i32],
    ) -> Result<()> {
        if new.byte_len() > limits::BSON_USER_BYTES_MAX && !self.is_applying() {
            return Err(Error::location(
                17419,
                format!("Resulting document after update is larger than {}", limits::BSON_USER_BYTES_MAX),
            ));
        }
        if !op.bypass_validation && !self.is_applying() {
            validation::check_update(&self.catalog, coll, old, new)?;
        }
        self.stamp();
        let record = record_id::Record::of(rid);
        self.txn.put(coll.records, &record.key, new.as_bytes())?;
        for index in &coll.indexes {
            if !index.spec.is_id_index() && touched::may_change_keys(index, form) {
                self.update_index(coll, index, &record, old, new)?;
            }
        }
        index_entries::write_marks(self, coll)?;
        self.change_sizes(coll, Totals { count: 0, bytes: new.byte_len() as i64 - old.byte_len() as i64 });
        let diff: DocBuf;
        let o = match form {
            UpdateForm::Replacement => new,
            UpdateForm::Diff(d) => {
                diff = entry::diff_object(d);
                &diff
            }
        };
        let event = Updated { coll, old, new, o, rid: record_id::logged(rid), stmt_ids };
        for o in self.observers().iter() {
            o.updated(self, op, &event)?;
        }
        Ok(())
    }

    /// Puts a record's entry of the `_id` index again.
    pub(crate) fn put_id_key(&mut self, coll: &Collection, rid: &RecordId, doc: &RawDoc) -> Result<()> {
        let Some(index) = coll.indexes.iter().find(|i| i.spec.is_id_index()) else { return Ok(()) };
        let record = record_id::Record::of(rid);
        let mut scratch = std::mem::take(&mut self.scratch);
        let done = index.keys.keys(doc, &mut scratch.builder, &mut scratch.new).and_then(|()| {
            let mut keys = scratch.new.iter();
            keys.try_for_each(|key| index_entries::apply(self, coll, index, &record, Change::Add, key))
        });
        self.scratch = scratch;
        done
    }

    fn update_index(
        &mut self,
        coll: &Collection,
        index: &std::sync::Arc<Index>,
        record: &record_id::Record,
        old: &RawDoc,
        new: &RawDoc,
    ) -> Result<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let done = (|| {
            index.keys.keys(old, &mut scratch.builder, &mut scratch.old)?;
            index.keys.keys(new, &mut scratch.builder, &mut scratch.new)?;
            index_entries::note_arrays(self, coll, index, &scratch.new);
            let (removed, added) = pando_index::changes(&scratch.old, &scratch.new);
            if self.precedes(index) && !(removed.is_empty() && added.is_empty()) {
                return Err(Error::new(
                    ErrorCode::SnapshotUnavailable,
                    "Unable to read from a snapshot due to pending collection catalog changes; please retry the operation.",
                ));
            }
            for key in removed {
                index_entries::apply(self, coll, index, record, Change::Remove, key)?;
            }
            for key in added {
                index_entries::apply(self, coll, index, record, Change::Add, key)?;
            }
            Ok(())
        })();
        self.scratch = scratch;
        done
    }

    /// Deletes a record. `old` is what this unit's snapshot has there.
    pub fn delete(
        &mut self,
        op: &WriteOp<'_>,
        coll: &Collection,
        rid: &RecordId,
        old: &RawDoc,
        stmt_ids: &[i32],
    ) -> Result<()> {
        self.stamp();
        let record = record_id::Record::of(rid);
        self.txn.delete(coll.records, &record.key)?;
        let mut scratch = std::mem::take(&mut self.scratch);
        let done = coll.indexes.iter().try_for_each(|index| {
            index.keys.keys(old, &mut scratch.builder, &mut scratch.old)?;
            scratch
                .old
                .iter()
                .try_for_each(|key| index_entries::apply(self, coll, index, &record, Change::Remove, key))
        });
        self.scratch = scratch;
        done?;
        self.change_sizes(coll, Totals { count: -1, bytes: -(old.byte_len() as i64) });
        let event = Deleted { coll, old, rid: record_id::logged(rid), stmt_ids };
        for o in self.observers().iter() {
            o.deleted(self, op, &event)?;
        }
        Ok(())
    }
}
