//! Chunk maps from chunks, and from another map and what has changed.

use super::block::{Block, Former, ROWS, Row};
use super::{ChunkMap, Part, torn};
use crate::chunk::Chunk;
use crate::shard_id::ShardId;
use crate::version::Placement;
use pando_base::{Result, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A chunk with the bytes of its bounds.
struct Keyed<'a> {
    chunk: &'a Chunk,
    start: Vec<u8>,
    end: Vec<u8>,
}

/// Numbers for shards, those of a map before first.
struct Numbers {
    parts: Vec<Part>,
    by_name: BTreeMap<ShardId, u32>,
}

impl Numbers {
    fn of(map: &ChunkMap) -> Numbers {
        let by_name = map.parts.iter().enumerate().map(|(i, p)| (p.shard.clone(), i as u32)).collect();
        let parts = map.parts.iter().map(|p| Part { chunks: 0, placement: Placement::NONE, ..p.clone() });
        Numbers { parts: parts.collect(), by_name }
    }
    fn number(&mut self, shard: &ShardId) -> u32 {
        if let Some(n) = self.by_name.get(shard) {
            return *n;
        }
        let n = self.parts.len() as u32;
        self.by_name.insert(shard.clone(), n);
        self.parts.push(Part { shard: shard.clone(), chunks: 0, placement: Placement::NONE });
        n
    }
    /// What each one has in these blocks.
    fn count(mut self, blocks: &[Arc<Block>]) -> Arc<[Part]> {
        for owner in blocks.iter().flat_map(|b| b.owners()) {
            let part = &mut self.parts[owner.shard as usize];
            part.chunks += owner.chunks as usize;
            part.placement = part.placement.max(owner.placement);
        }
        self.parts.into()
    }
}

/// By their lower bounds. Two with one bound: the newer.
fn keyed<'a>(map: &ChunkMap, chunks: &'a [Chunk]) -> Result<Vec<Keyed<'a>>> {
    let mut out = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let (start, end) = (map.key.key_of_bound(&chunk.min)?, map.key.key_of_bound(&chunk.max)?);
        if start >= end {
            return Err(torn(&format!("one begins at {} and ends at {}", chunk.min, chunk.max)));
        }
        out.push(Keyed { chunk, start, end });
    }
    let newer_first = |k: &Keyed<'_>| std::cmp::Reverse(k.chunk.placement);
    out.sort_by(|a, b| a.start.cmp(&b.start).then_with(|| newer_first(a).cmp(&newer_first(b))));
    out.dedup_by(|b, a| a.start == b.start);
    Ok(out)
}

fn row<'a>(k: &'a Keyed<'_>, numbers: &mut Numbers) -> Row<'a> {
    let c = k.chunk;
    let former: Former = (c.history.len() > 1).then(|| c.history[1..].into());
    Row {
        key: &k.start,
        min: &c.min,
        shard: numbers.number(&c.shard),
        placement: c.placement,
        since: c.history.first().map_or(Timestamp::ZERO, |o| o.valid_after),
        jumbo: c.jumbo,
        former,
    }
}

fn cut(rows: &[Row<'_>], out: &mut Vec<Arc<Block>>) {
    // Even pieces, so that the last one is not tiny.
    let pieces = rows.len().div_ceil(ROWS).max(1);
    let each = rows.len().div_ceil(pieces).max(1);
    out.extend(rows.chunks(each).map(|piece| Arc::new(Block::new(piece))));
}

pub(super) fn build(empty: &ChunkMap, chunks: &[Chunk]) -> Result<ChunkMap> {
    let keyed = keyed(empty, chunks)?;
    let least = empty.key.key_of_bound(&empty.key.least())?;
    let mut at: &[u8] = &least;
    for k in &keyed {
        if k.start != at {
            return Err(torn(&format!("nothing ends where {} begins", k.chunk.min)));
        }
        at = &k.end;
    }
    if at != empty.end() {
        return Err(torn(if keyed.is_empty() {
            "there are none"
        } else {
            "nothing reaches the greatest key"
        }));
    }
    let mut numbers = Numbers::of(empty);
    let rows: Vec<Row<'_>> = keyed.iter().map(|k| row(k, &mut numbers)).collect();
    let mut blocks = Vec::new();
    cut(&rows, &mut blocks);
    Ok(finish(empty, blocks, numbers))
}

fn finish(from: &ChunkMap, blocks: Vec<Arc<Block>>, numbers: Numbers) -> ChunkMap {
    let len = blocks.iter().map(|b| b.len()).sum();
    let parts = numbers.count(&blocks);
    let owning = parts.iter().filter(|p| p.chunks > 0).count();
    let newest = parts.iter().map(|p| p.placement).max().unwrap_or_default();
    ChunkMap {
        key: from.key.clone(),
        blocks: blocks.into(),
        parts,
        owning,
        newest,
        len,
        end: from.end.clone(),
    }
}

/// Neighbouring changes, and the blocks and rows of the map before that they replace.
struct Patch<'k, 'c> {
    changes: &'k [Keyed<'c>],
    first: (usize, usize),
    /// Behind the last one.
    last: (usize, usize),
}

pub(super) fn splice(map: &ChunkMap, changed: &[Chunk]) -> Result<ChunkMap> {
    if map.is_empty() {
        return build(map, changed);
    }
    let keyed = keyed(map, changed)?;
    let patches = patches(map, &keyed)?;
    let mut numbers = Numbers::of(map);
    let mut blocks: Vec<Arc<Block>> = Vec::with_capacity(map.blocks.len());
    let mut kept = 0;
    let mut i = 0;
    while i < patches.len() {
        // All patches that touch one stretch of blocks are put in together.
        let (from, mut to) = (patches[i].first.0, patches[i].last.0);
        let mut n = 1;
        while patches.get(i + n).is_some_and(|p| p.first.0 <= to) {
            to = to.max(patches[i + n].last.0);
            n += 1;
        }
        blocks.extend_from_slice(&map.blocks[kept..from]);
        let mut rows = rows_of(map, &patches[i..i + n], from, to, &mut numbers);
        // A small rest takes its neighbour in, or many merges would leave a map of crumbs.
        let is_free = patches.get(i + n).is_none_or(|p| p.first.0 > to + 1);
        if let Some(next) = map.blocks.get(to + 1).filter(|_| is_free && rows.len() < ROWS / 4) {
            rows.extend((0..next.len()).map(|r| next.row(r)));
            to += 1;
        }
        cut(&rows, &mut blocks);
        kept = to + 1;
        i += n;
    }
    blocks.extend_from_slice(&map.blocks[kept..]);
    Ok(finish(map, blocks, numbers))
}

/// Rows of the blocks `from..=to` with the patches in their places.
fn rows_of<'a>(
    map: &'a ChunkMap,
    patches: &'a [Patch<'_, '_>],
    from: usize,
    to: usize,
    numbers: &mut Numbers,
) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let mut at = (from, 0);
    let copy = |rows: &mut Vec<Row<'a>>, mut at: (usize, usize), upto: (usize, usize)| {
        while at < upto {
            let block = &map.blocks[at.0];
            let end = if at.0 == upto.0 { upto.1 } else { block.len() };
            rows.extend((at.1..end).map(|r| block.row(r)));
            at = (at.0 + 1, 0);
        }
    };
    for p in patches {
        copy(&mut rows, at, p.first);
        rows.extend(p.changes.iter().map(|k| row(k, numbers)));
        at = p.last;
    }
    copy(&mut rows, at, (to, map.blocks[to].len()));
    rows
}

fn patches<'k, 'c>(map: &ChunkMap, keyed: &'k [Keyed<'c>]) -> Result<Vec<Patch<'k, 'c>>> {
    let mut out = Vec::new();
    let mut i = 0;
    while i < keyed.len() {
        let mut n = 1;
        while i + n < keyed.len() && keyed[i + n].start <= keyed[i + n - 1].end {
            if keyed[i + n].start < keyed[i + n - 1].end {
                return Err(torn(&format!("two hold {}", keyed[i + n].chunk.min)));
            }
            n += 1;
        }
        out.push(patch(map, &keyed[i..i + n])?);
        i += n;
    }
    Ok(out)
}

/// Changes that follow one another must begin and end where chunks before did.
fn patch<'k, 'c>(map: &ChunkMap, changes: &'k [Keyed<'c>]) -> Result<Patch<'k, 'c>> {
    let (Some(low), Some(high)) = (changes.first(), changes.last()) else { return Err(torn("no change")) };
    let first = map.find(&low.start).filter(|c| c.start() == low.start);
    let first = first.ok_or_else(|| torn(&format!("no chunk begins at {}", low.chunk.min)))?;
    let last = if high.end == map.end() {
        let block = map.blocks.len() - 1;
        (block, map.blocks[block].len())
    } else {
        let after = map.find(&high.end).filter(|c| c.start() == high.end);
        let after = after.ok_or_else(|| torn(&format!("no chunk ends at {}", high.chunk.max)))?;
        // Behind the last row of a block rather than before the first of the next, which is not touched then.
        match (after.row, after.block) {
            (0, block) if block > 0 => (block - 1, map.blocks[block - 1].len()),
            (row, block) => (block, row),
        }
    };
    Ok(Patch { changes, first: (first.block, first.row), last })
}
