//! Index builds on collections that hold documents, beside writers, on every member at once.
//!
//! ```text
//!   primary:   startIndexBuild ─► scan, load, drain ─► votes ─────────────► alone: drain the rest, commitIndexBuild
//!                    │                                  ▲ enough of them          │
//!                    ▼ (log)                            │                         ▼ (log)
//!   others:    register ───────► scan, load, drain ─► vote                   drain the rest, ready
//! ```
//! 1. Register (alone with the collection for a moment, or between two entries of the log): the index exists but is not
//!    ready. From now on writers leave every change of its keys in a side table, in their own units.
//! 2. Scan the collection as it was at some moment since, sort the keys, load them in bulk.
//! 3. Apply the side table to the index, again and again. With nothing left the member has its part ready.
//! 4. The primary is told that its commit quorum is met, and is alone again: it applies the rest, looks once more at what
//!    seemed to be duplicates, makes the index ready and says so in the log. Where that entry is applied the same is done.
//!
//! Steps 2 to 4 run in a task of their own ([`crate::build_job`], [`crate::build_run`]), so that neither a client that goes
//! away nor a change of role takes the build with it: a primary that steps down goes on as one of the others, and whoever
//! is elected commits. What the log says of builds is in [`crate::build_follow`].
//!
//! Rows of an unfinished index are in no log; nobody reads them, and after a crash or a rollback the build starts over. They carry
//! the timestamp that was visible when they were written, below that of the entry that makes the index ready.

use crate::Catalog;
use crate::collection::{Collection, Index, KeyFormat};
use crate::durable;
use crate::index_ddl::format_of;
use crate::index_entries;
use crate::record_id::{self, Record};
use crate::snapshot::Named;
use crate::unit::WriteUnit;
use pando_base::{OpTime, Result, Timestamp, Uuid};
use pando_bson::RawDoc;
use pando_bson::keystring::KeyBuilder;
use pando_index::IndexSpec;
use pando_index::{Key, KeySet};
use pando_storage::{Dir, Ident, IdentKind};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

/// The unfinished state of one index.
#[derive(Debug)]
pub struct Build {
    /// One build may make several indexes.
    pub uuid: Uuid,
    /// Changes that came after the scan's moment, in order.
    pub(crate) side: Ident,
    /// A task has begun to fill the index.
    pub(crate) begun: AtomicBool,
    seq: AtomicU64,
    /// Monotonic time of the registration (of the restart, for a build taken up again).
    pub started: Duration,
    pub progress: Progress,
}

/// How far a build is.
#[derive(Debug, Default)]
pub struct Progress {
    phase: AtomicU8,
    pub docs_total: AtomicU64,
    pub docs_done: AtomicU64,
    pub keys: AtomicU64,
    pub side_writes: AtomicU64,
    pub side_applied: AtomicU64,
}

/// What a build is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    Scanning,
    Loading,
    Draining,
    /// This member has its part, and waits for the decision.
    Ready,
}

impl Progress {
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Scanning,
            1 => Phase::Loading,
            2 => Phase::Draining,
            _ => Phase::Ready,
        }
    }
    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }
    /// Another task scans again.
    pub(crate) fn start_over(&self) {
        self.enter(Phase::Scanning);
        self.docs_done.store(0, Ordering::Relaxed);
        self.keys.store(0, Ordering::Relaxed);
    }
}

/// What a writer did to a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SideOp {
    Add,
    Remove,
}

impl Build {
    pub(crate) fn new(uuid: Uuid, side: Ident, started: Duration) -> Build {
        Build {
            uuid,
            side,
            started,
            begun: AtomicBool::new(false),
            seq: AtomicU64::new(0),
            progress: Progress::default(),
        }
    }
    /// Leaves a change of the index's keys for later.
    pub(crate) fn side_write(
        &self,
        unit: &mut WriteUnit,
        op: SideOp,
        record: &Record,
        key: Key<'_>,
    ) -> Result<()> {
        let seq = self.seq.fetch_add(1, Ordering::Relaxed);
        let row = SideRow { op, record: &record.key, key: key.bytes, type_bits: key.type_bits }.encode();
        self.progress.side_writes.fetch_add(1, Ordering::Relaxed);
        unit.txn.put_new(self.side, &seq.to_be_bytes(), &row)
    }
}

/// A row of the side table.
pub(crate) struct SideRow<'a> {
    pub(crate) op: SideOp,
    pub(crate) record: &'a [u8],
    pub(crate) key: &'a [u8],
    pub(crate) type_bits: &'a [u8],
}

impl<'a> SideRow<'a> {
    fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(7 + self.record.len() + self.key.len() + self.type_bits.len());
        row.push(u8::from(self.op == SideOp::Remove));
        index_entries::push_with_length(&mut row, self.record);
        row.extend_from_slice(&(self.key.len() as u32).to_be_bytes());
        row.extend_from_slice(self.key);
        row.extend_from_slice(self.type_bits);
        row
    }
    pub(crate) fn decode(row: &'a [u8]) -> Option<SideRow<'a>> {
        let (op, rest) = row.split_first()?;
        let (record, rest) = index_entries::split_length(rest)?;
        let (n, rest) = rest.split_first_chunk::<4>()?;
        let (key, type_bits) = rest.split_at_checked(u32::from_be_bytes(*n) as usize)?;
        Some(SideRow { op: if *op == 0 { SideOp::Add } else { SideOp::Remove }, record, key, type_bits })
    }
}

impl Catalog {
    pub(crate) fn unfinished_index(&self, spec: IndexSpec, uuid: Uuid) -> Result<Index> {
        let format = format_of(&spec);
        self.unfinished_index_as(spec, uuid, format)
    }
    pub(crate) fn unfinished_index_as(
        &self,
        spec: IndexSpec,
        uuid: Uuid,
        format: KeyFormat,
    ) -> Result<Index> {
        let ident = self.storage().create_ident(IdentKind::Index)?;
        let side = self.storage().create_ident(IdentKind::Records)?;
        let mut index = durable::new_index(spec, ident, format, Timestamp::MAX, self.now_ms())?;
        index.building = Some(Arc::new(Build::new(uuid, side, self.env().clock.mono())));
        Ok(index)
    }

    /// Builds indexes at once, nobody else writing: for unreplicated collections (`at` is `None`) and replays.
    pub(crate) fn build_in_place(
        &self,
        coll: &Arc<Collection>,
        specs: &[IndexSpec],
        at: Option<Timestamp>,
    ) -> Result<OpTime> {
        let mut unit = match at {
            Some(ts) => self.begin_applied(ts)?,
            None => self.begin_write(coll)?,
        };
        let mut current = coll.clone();
        for spec in specs {
            current = self.with_new_index(&unit, &current, spec.clone())?;
        }
        let new: Vec<Arc<Index>> =
            current.indexes.iter().filter(|i| specs.iter().any(|s| s.name == i.spec.name)).cloned().collect();
        let mut cursor = unit.txn.scan(coll.records, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
        let (mut builder, mut keys) = (KeyBuilder::default(), KeySet::default());
        while let Some((key, doc)) = cursor.next()? {
            let record = Record::of(&record_id::from_storage_key(coll.is_clustered(), &key)?);
            for index in &new {
                index.keys.keys(RawDoc::trusted(&doc), &mut builder, &mut keys)?;
                index_entries::note_arrays(&mut unit, &current, index, &keys);
                for k in keys.iter() {
                    index_entries::apply(&mut unit, &current, index, &record, index_entries::Change::Add, k)?;
                }
            }
        }
        unit.take_unwritten_marks();
        let (txn, marks) = unit.txn_and_marks();
        durable::put_row(txn, &current, marks.iter())?;
        let last = unit.commit()?;
        self.publish(|s| s.put(Named::Collection(current)));
        Ok(last)
    }
}

/// Whether this index is one of those that a build makes.
pub(crate) fn is_of(index: &Index, build: Uuid) -> bool {
    index.building.as_ref().is_some_and(|b| b.uuid == build)
}
