//! From a query to the shards that may hold what it asks for (SH-RT-2, SH-RT-3).
//!
//! A condition is turned into *boxes*: for each field of the shard key the intervals of values that matching documents may
//! have there, as the planner makes bounds of an index scan. A box is then walked over the chunk map as a scan skips over an
//! index: from chunk to chunk, past those that cannot hold a key of the box. The outcome has every shard with a matching
//! document, and no shard without a chunk that could hold one; only a query made to cost much gets a superset.

mod boxes;
mod point;

pub use boxes::KeyBox;
pub use point::point_of;

use crate::chunk_map::ChunkMap;
use crate::shard_set::ShardSet;
use pando_base::limits;
use pando_bson::Value;
use pando_bson::keystring::{AFTER, Directions, KeyBuilder};
use pando_query::matcher::Matcher;
use pando_query::plan::{BoundField, KeyBounds, KeyCheck};
use pando_query::source::{Direction, FieldKind};

/// The shards a query concerns, by their numbers in `chunks`; none when nothing can match.
pub fn owners_of(chunks: &ChunkMap, matcher: &Matcher) -> ShardSet {
    let mut out = ShardSet::new();
    let boxes = boxes::boxes_of(chunks.key(), matcher);
    let all = chunks.owners();
    if boxes.iter().any(KeyBox::is_everything) {
        return all;
    }
    let mut steps = limits::TARGETING_STEPS_MAX;
    for one in &boxes {
        if out.len() >= all.len() {
            break;
        }
        add_box(chunks, one, all.len(), &mut steps, &mut out);
    }
    out
}

fn add_box(chunks: &ChunkMap, one: &KeyBox, all: usize, steps: &mut usize, out: &mut ShardSet) {
    let key = chunks.key();
    let fields: Vec<BoundField> = key
        .fields()
        .iter()
        .zip(&one.0)
        .map(|(f, intervals)| BoundField {
            name: f.path.to_string(),
            kind: if f.hashed { FieldKind::Hashed } else { FieldKind::Ascending },
            intervals: intervals.clone(),
            multikey: 0,
        })
        .collect();
    let bounds = KeyBounds::new(&fields, None);
    if bounds.nothing {
        return;
    }
    let open = [AFTER];
    let end: &[u8] = if bounds.end.is_empty() { &open } else { &bounds.end };
    if bounds.plain {
        return chunks.add_owners(&bounds.start, end, out);
    }
    skip_over(chunks, &bounds, end, all, steps, out);
}

/// Goes from chunk to chunk, each time to the first that can hold a key within the bounds.
fn skip_over(
    chunks: &ChunkMap,
    bounds: &KeyBounds,
    end: &[u8],
    all: usize,
    steps: &mut usize,
    out: &mut ShardSet,
) {
    let mut at = whole_key(chunks, &bounds.start);
    let mut target = Vec::new();
    while at.as_slice() < end && out.len() < all {
        if *steps == 0 {
            // Made to cost much: whoever owns anything in the rest.
            return chunks.add_owners(&at, end, out);
        }
        *steps -= 1;
        let Some(chunk) = chunks.find(&at) else { return };
        match bounds.check(&at, Direction::Forward, &mut target) {
            KeyCheck::Done => return,
            KeyCheck::Seek if chunk.next().is_some() && target.as_slice() >= chunk.end() => {
                std::mem::swap(&mut at, &mut target);
                continue;
            }
            KeyCheck::Inside | KeyCheck::Seek => _ = out.insert(chunk.owner()),
        }
        match chunk.next() {
            None => return,
            Some(next) => {
                at.clear();
                at.extend_from_slice(next.start());
            }
        }
    }
}

/// The least key that begins so.
fn whole_key(chunks: &ChunkMap, start: &[u8]) -> Vec<u8> {
    let mut out = start.to_vec();
    if out.last() == Some(&AFTER) {
        return out;
    }
    let mut reader = pando_bson::keystring::KeyReader::new(start, Directions::default(), &[]);
    let mut has = 0;
    while matches!(reader.skip(), Ok(true)) {
        has += 1;
    }
    let mut rest = KeyBuilder::default();
    for _ in has..chunks.key().fields().len() {
        rest.append(Value::MinKey);
    }
    out.extend_from_slice(rest.bytes());
    out
}
