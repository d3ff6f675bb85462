//! How the config servers change a collection's chunks: what a split, a merge or a move writes (SH-VER-3, SH-SPLIT-1, SH-SPLIT-2,
//! SH-MIG-12).
//!
//! Each function takes the table as it is and gives the chunks to write, each in the place of the stored one with the same lower
//! bound. Whoever calls it writes them all or none, and lets nobody else change the collection in between (SYS-257,
//! SYS-269). A change that has been made already is no change, so a command that was sent twice has one effect.

use crate::chunk::{Chunk, Owner};
use crate::chunk_map::ChunkRef;
use crate::shard_id::ShardId;
use crate::split;
use crate::table::RoutingTable;
use crate::version::Placement;
use pando_base::{Error, ErrorCode, Result, Timestamp, limits};
use pando_bson::{DocBuf, ObjectId, RawDoc};

/// What to write.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Change {
    /// Instead of the chunk with the same lower bound, or new. The ids are the shell's.
    pub written: Vec<Chunk>,
    /// Lower bounds of chunks that are no more.
    pub removed: Vec<DocBuf>,
}

impl Change {
    pub fn is_nothing(&self) -> bool {
        self.written.is_empty() && self.removed.is_empty()
    }
}

/// Placements for changed chunks, each newer than all that there are.
struct Next(Placement);

impl Next {
    fn take(&mut self) -> Result<Placement> {
        self.0 = self.0.after_change()?;
        Ok(self.0)
    }
}

fn piece(of: ChunkRef<'_>, min: &RawDoc, max: &RawDoc, placement: Placement) -> Chunk {
    let (min, max) = (min.to_buf(), max.to_buf());
    // A piece may be small enough to be moved.
    Chunk { id: ObjectId([0; 12]), min, max, placement, jumbo: false, ..of.to_chunk() }
}

/// Cuts the chunk `[min, max)` of `shard` at these points.
pub fn split(
    table: &RoutingTable,
    shard: &ShardId,
    min: &RawDoc,
    max: &RawDoc,
    points: &[DocBuf],
) -> Result<Change> {
    let key = &table.collection.key;
    let chunk = chunk_at(table, min)?;
    let (start, end) = (key.key_of_bound(min)?, key.key_of_bound(max)?);
    if chunk.end() != end {
        return if is_split(table, &start, &end, points)? {
            Ok(Change::default())
        } else {
            Err(no_chunk(min, max))
        };
    }
    check_owner(chunk, shard)?;
    split::check_split(chunk, key, points)?;
    let mut next = Next(table.placement());
    let mut written = Vec::with_capacity(points.len() + 1);
    let mut low = min;
    for high in points.iter().map(|p| &**p).chain([max]) {
        written.push(piece(chunk, low, high, next.take()?));
        low = high;
    }
    Ok(Change { written, removed: Vec::new() })
}

/// Whether `[start, end)` is cut at just these points already.
fn is_split(table: &RoutingTable, start: &[u8], end: &[u8], points: &[DocBuf]) -> Result<bool> {
    let mut at = table.chunks.find(start);
    for point in points {
        let point = table.collection.key.key_of_bound(point)?;
        match at {
            Some(chunk) if chunk.end() == point => at = chunk.next(),
            _ => return Ok(false),
        }
    }
    Ok(at.is_some_and(|last| last.end() == end))
}

/// Makes one of the chunks between two bounds, all of which `shard` owns.
pub fn merge(table: &RoutingTable, shard: &ShardId, min: &RawDoc, max: &RawDoc) -> Result<Change> {
    merge_all(table, shard, &[(min.to_buf(), max.to_buf())])
}

/// The same for several ranges, none of which overlap.
pub fn merge_all(table: &RoutingTable, shard: &ShardId, ranges: &[(DocBuf, DocBuf)]) -> Result<Change> {
    let (mut change, mut next) = (Change::default(), Next(table.placement()));
    for (min, max) in ranges {
        let chunks = split::check_merge(&table.chunks, shard, min, max)?;
        let (Some(first), true) = (chunks.first(), chunks.len() > 1) else { continue };
        // Before the youngest of them some of its documents were elsewhere.
        let since = chunks.iter().filter_map(|c| c.since()).max();
        let history = since.map(|valid_after| Owner { valid_after, shard: shard.clone() });
        let history = history.into_iter().collect();
        change.written.push(Chunk { history, ..piece(*first, min, max, next.take()?) });
        change.removed.extend(chunks[1..].iter().map(|c| c.min().to_buf()));
    }
    Ok(change)
}

/// Gives `[min, max)`, a part of one chunk of `from`, to another shard, which owns it from `at` on.
pub fn move_range(
    table: &RoutingTable,
    from: &ShardId,
    to: &ShardId,
    min: &RawDoc,
    max: &RawDoc,
    at: Timestamp,
) -> Result<Change> {
    let key = &table.collection.key;
    let (start, end) = (key.key_of_bound(min)?, key.key_of_bound(max)?);
    let chunk = table.chunks.find(&start).filter(|c| start < end && end.as_slice() <= c.end());
    let chunk = chunk.ok_or_else(|| no_chunk(min, max))?;
    if chunk.shard() == to && chunk.start() == start && chunk.end() == end {
        return Ok(Change::default());
    }
    check_owner(chunk, from)?;
    if chunk.since().is_some_and(|since| since >= at) {
        let text =
            format!("{from} owns the chunk at {min} since {:?}, which is not before {at}", chunk.since());
        return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
    }
    let mut next = Next(table.placement().after_move()?);
    let mut moved = piece(chunk, min, max, next.0);
    moved.shard = to.clone();
    moved.history.insert(0, Owner { valid_after: at, shard: to.clone() });
    moved.history.truncate(limits::CHUNK_OWNERS_MAX);
    let mut written = vec![moved];
    // What is left of the chunk tells everybody that the donor has changed; where nothing is, another chunk of it does.
    if chunk.start() < start.as_slice() {
        written.push(piece(chunk, chunk.min(), min, next.take()?));
    }
    if end.as_slice() < chunk.end() {
        written.push(piece(chunk, max, &chunk.max(), next.take()?));
    }
    if written.len() == 1
        && let Some(control) =
            table.chunks.iter().find(|c| c.owner() == chunk.owner() && c.start() != chunk.start())
    {
        written.push(Chunk { placement: next.take()?, ..control.to_chunk() });
    }
    Ok(Change { written, removed: Vec::new() })
}

fn chunk_at<'a>(table: &'a RoutingTable, min: &RawDoc) -> Result<ChunkRef<'a>> {
    let start = table.collection.key.key_of_bound(min)?;
    let chunk = table.chunks.find(&start).filter(|c| c.start() == start);
    chunk.ok_or_else(|| Error::bad_value(format!("no chunk begins at {min}")))
}
fn no_chunk(min: &RawDoc, max: &RawDoc) -> Error {
    Error::bad_value(format!("[{min}, {max}) is not a chunk, nor a part of one"))
}
fn check_owner(chunk: ChunkRef<'_>, shard: &ShardId) -> Result<()> {
    if chunk.shard() == shard {
        return Ok(());
    }
    let text = format!("the chunk at {} is owned by {}, not by {shard}", chunk.min(), chunk.shard());
    Err(Error::new(ErrorCode::ConflictingOperationInProgress, text))
}
