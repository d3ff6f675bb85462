//! A collection that somebody wants to have fewer chunks: what is done next (SH-BAL-7).
//!
//! ```text
//!   mergeAndMeasureChunks ─► moveAndMergeChunks ─► mergeChunks ─► over
//!    neighbours of one shard   small chunks go to     what came
//!    become one; sizes         a neighbour's shard    together
//! ```
//! A phase is over when it finds nothing more to do. Only the phase is stored: a primary that begins anew merges what it finds and measures what
//! it needs. **It comes to an end:** each merge and each move of a small chunk to its neighbour leaves fewer runs of one shard's chunks, and nothing makes more.

use crate::migrations::{Migration, Why};
use crate::mutants::{Mutant, broken};
use crate::runs::{Run, runs};
use crate::state::{Collection, Shards};
use pando_base::limits;
use pando_routing::{ChunkRef, ForceJumbo};
use std::collections::{BTreeMap, BTreeSet};

/// As `config.collections` has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    MergeAndMeasure,
    MoveAndMerge,
    Merge,
}

impl Phase {
    const ALL: [(Phase, &'static str); 3] = [
        (Phase::MergeAndMeasure, "mergeAndMeasureChunks"),
        (Phase::MoveAndMerge, "moveAndMergeChunks"),
        (Phase::Merge, "mergeChunks"),
    ];
    pub fn text(self) -> &'static str {
        Phase::ALL.iter().find(|(phase, _)| *phase == self).map_or("", |(_, text)| text)
    }
    /// What nobody knows begins anew.
    pub fn parse(text: Option<&str>) -> Phase {
        let known = Phase::ALL.iter().find(|(_, known)| Some(*known) == text);
        known.map_or(Phase::MergeAndMeasure, |(phase, _)| *phase)
    }
    /// `None`: it is over.
    pub fn next(self) -> Option<Phase> {
        match self {
            Phase::MergeAndMeasure => Some(Phase::MoveAndMerge),
            Phase::MoveAndMerge => Some(Phase::Merge),
            Phase::Merge => None,
        }
    }
}

/// Sizes of ranges that were measured, and ranges that would not move. Chunks that have become one have what they had together.
#[derive(Clone, Default, Debug)]
pub struct Measured {
    /// By the lower bound's key bytes: the upper bound's, and bytes of documents.
    ranges: BTreeMap<Vec<u8>, (Vec<u8>, u64)>,
    stuck: BTreeSet<Vec<u8>>,
    /// How often a chunk could not be measured.
    failed: BTreeMap<Vec<u8>, u32>,
}

impl Measured {
    pub fn note(&mut self, start: &[u8], end: &[u8], bytes: u64) {
        self.ranges.insert(start.to_vec(), (end.to_vec(), bytes));
    }
    /// It could not be measured now. After some tries it is taken for one that is large enough, so that the phase comes to its end.
    pub fn note_failure(&mut self, start: &[u8], end: &[u8]) {
        let tries = self.failed.entry(start.to_vec()).or_default();
        *tries += 1;
        if *tries >= limits::CHUNK_MEASURED_TRIES_MAX {
            self.note(start, end, u64::MAX);
        }
    }
    /// The chunk that begins there was not moved: it is tried once.
    pub fn note_stuck(&mut self, start: &[u8]) {
        self.stuck.insert(start.to_vec());
    }
    fn bytes_of(&self, chunk: ChunkRef<'_>) -> Option<u64> {
        let (mut at, mut sum) = (chunk.start(), 0u64);
        while at != chunk.end() {
            let (end, bytes) = self.ranges.get(at).filter(|(end, _)| end.as_slice() <= chunk.end())?;
            sum = sum.saturating_add(*bytes);
            at = end;
        }
        Some(sum)
    }
}

/// What is to be done now; nothing of it: the phase is over.
#[derive(Default)]
pub struct Tasks<'a> {
    pub merges: Vec<Run<'a>>,
    /// How many bytes these have has to be found out.
    pub measure: Vec<ChunkRef<'a>>,
    pub moves: Vec<Migration>,
    /// How much there is to do in this phase, as far as that is known.
    pub left: usize,
    /// There is something that cannot be done yet: a shard is busy.
    pub waits: bool,
}

impl Tasks<'_> {
    pub fn is_over(&self) -> bool {
        self.merges.is_empty() && self.measure.is_empty() && self.moves.is_empty() && !self.waits
    }
}

/// The next tasks of a phase. Shards of the moves have something to do from here on.
pub fn defragment<'a>(
    phase: Phase,
    collection: &Collection<'a>,
    measured: &Measured,
    shards: &mut Shards,
) -> Tasks<'a> {
    let mut tasks = Tasks { merges: runs(collection.chunks, collection.zones, |_| true), ..Tasks::default() };
    tasks.left = tasks.merges.len();
    if !tasks.merges.is_empty() || phase == Phase::Merge {
        tasks.merges.truncate(limits::DEFRAGMENTATION_TASKS_AT_ONCE);
        return tasks;
    }
    let unknown = collection.chunks.iter().filter(|chunk| measured.bytes_of(*chunk).is_none());
    tasks.measure = unknown.collect();
    tasks.left = tasks.measure.len();
    if !tasks.measure.is_empty() || phase == Phase::MergeAndMeasure {
        tasks.measure.truncate(limits::DEFRAGMENTATION_TASKS_AT_ONCE);
        return tasks;
    }
    move_small(collection, measured, shards, &mut tasks);
    tasks
}

/// Chunks of less than a quarter of what a chunk may have, the smallest first.
fn move_small(collection: &Collection<'_>, measured: &Measured, shards: &mut Shards, tasks: &mut Tasks<'_>) {
    let small = if broken(Mutant::LargeChunksMove) { u64::MAX } else { collection.max_chunk_bytes / 4 };
    let mut candidates: Vec<(u64, ChunkRef<'_>, Vec<ChunkRef<'_>>)> = Vec::new();
    let mut before = None;
    for chunk in collection.chunks.iter() {
        let neighbours = [before, chunk.next()].into_iter().flatten();
        before = Some(chunk);
        let Some(bytes) = measured.bytes_of(chunk).filter(|bytes| *bytes < small) else { continue };
        if chunk.is_jumbo() || measured.stuck.contains(chunk.start()) {
            continue;
        }
        let takes = neighbours.filter(|n| takes(collection, shards, chunk, *n)).collect::<Vec<_>>();
        if !takes.is_empty() {
            candidates.push((bytes, chunk, takes));
        }
    }
    candidates.sort_by_key(|(bytes, ..)| *bytes);
    tasks.left = candidates.len();
    for (_, chunk, neighbours) in candidates {
        // Of two the one that has less.
        let to = neighbours.iter().filter(|n| shards.may_act(n.shard()));
        let to = to.min_by_key(|n| measured.bytes_of(**n)).filter(|_| shards.may_act(chunk.shard()));
        let Some(to) = to else {
            tasks.waits = true;
            continue;
        };
        shards.occupy(chunk.shard());
        shards.occupy(to.shard());
        tasks.moves.push(Migration {
            ns: collection.ns.to_owned(),
            from: chunk.shard().clone(),
            to: to.shard().clone(),
            min: chunk.min().to_buf(),
            max: chunk.max(),
            why: Why::Defragmentation,
            force: ForceJumbo::No,
        });
    }
}

/// Whether a chunk could go to its neighbour's shard and become one with it.
fn takes(collection: &Collection<'_>, shards: &Shards, chunk: ChunkRef<'_>, neighbour: ChunkRef<'_>) -> bool {
    let (start, end) = (chunk.start().min(neighbour.start()), chunk.end().max(neighbour.end()));
    let ends = collection.zones.end_within(start, end) && !broken(Mutant::MergesOverZones);
    let zone = collection.zones.of(chunk.start(), chunk.end());
    let may_have = shards.get(neighbour.shard()).is_some_and(|shard| !shard.draining && shard.may_have(zone));
    !ends && !neighbour.is_jumbo() && may_have && neighbour.owner() != chunk.owner()
}
