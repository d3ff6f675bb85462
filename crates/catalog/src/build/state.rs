//! The unfinished state of an index, and the changes that writers leave beside it.

use crate::write::length_prefix::{push_with_length, split_length};
use pando_base::Uuid;
use pando_index::Key;
use pando_storage::Ident;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

/// The unfinished state of one index.
#[derive(Debug)]
pub struct Build {
    /// One build may make several indexes.
    pub uuid: Uuid,
    /// Changes that came after the scan's moment, in order.
    pub(crate) side: Ident,
    /// The log has said that the index is ready: the replay that read so makes it at its end, or a later one that begins behind that entry.
    pub(crate) is_committed: bool,
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
            is_committed: false,
            begun: AtomicBool::new(false),
            seq: AtomicU64::new(0),
            progress: Progress::default(),
        }
    }
    /// The same, of an index of which the log has said that it is ready.
    pub(crate) fn committed(&self) -> Build {
        Build { is_committed: true, ..Build::new(self.uuid, self.side, self.started) }
    }
    /// A change of the index's keys, for later: its place in the side table, and its row.
    pub(crate) fn side_row(&self, op: SideOp, record: &[u8], key: Key<'_>) -> ([u8; 8], Vec<u8>) {
        let seq = self.seq.fetch_add(1, Ordering::Relaxed);
        self.progress.side_writes.fetch_add(1, Ordering::Relaxed);
        let row = SideRow { op, record, key: key.bytes, type_bits: key.type_bits };
        (seq.to_be_bytes(), row.encode())
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
        push_with_length(&mut row, self.record);
        row.extend_from_slice(&(self.key.len() as u32).to_be_bytes());
        row.extend_from_slice(self.key);
        row.extend_from_slice(self.type_bits);
        row
    }
    pub(crate) fn decode(row: &'a [u8]) -> Option<SideRow<'a>> {
        let (op, rest) = row.split_first()?;
        let (record, rest) = split_length(rest)?;
        let (n, rest) = rest.split_first_chunk::<4>()?;
        let (key, type_bits) = rest.split_at_checked(u32::from_be_bytes(*n) as usize)?;
        Some(SideRow { op: if *op == 0 { SideOp::Add } else { SideOp::Remove }, record, key, type_bits })
    }
}
