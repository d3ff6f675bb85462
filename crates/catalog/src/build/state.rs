//! The unfinished state of an index, and builds in one go.

use crate::Catalog;
use crate::ddl::indexes::format_of;
use crate::schema::collection::{Collection, Index, KeyFormat};
use crate::schema::durable;
use crate::schema::snapshot::Named;
use crate::write::index_entries;
use crate::write::record_id::{self, Record};
use crate::write::unit::WriteUnit;
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
