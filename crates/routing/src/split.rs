//! Where chunks are cut: a hashed collection in advance, and what `split` and `mergeChunks` may do (SH-SPLIT-1, SH-SPLIT-2,
//! SH-KEY-3).

use crate::chunk_map::{ChunkMap, ChunkRef};
use crate::shard_key::ShardKey;
use pando_base::{Error, Result, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};

/// Bounds that cut the values of a hashed key's first field into `chunks` equal pieces, as a real server chooses them: outwards
/// from zero where the number is even, else from half a piece beside it.
pub fn hashed_points(key: &ShardKey, chunks: usize) -> Vec<DocBuf> {
    let chunks = chunks.min(limits::INITIAL_CHUNKS_MAX);
    if chunks < 2 {
        return Vec::new();
    }
    let piece = i64::MAX / chunks as i64 * 2;
    let mut at = Vec::with_capacity(chunks);
    let mut distance = if chunks.is_multiple_of(2) { 0 } else { piece / 2 };
    if chunks.is_multiple_of(2) {
        at.push(0);
        distance += piece;
    }
    while at.len() + 1 < chunks {
        at.extend([distance, -distance]);
        distance = distance.saturating_add(piece);
    }
    at.sort_unstable();
    at.dedup();
    at.into_iter().map(|n| hashed_bound(key, n)).collect()
}

fn hashed_bound(key: &ShardKey, n: i64) -> DocBuf {
    let mut d = DocBuilder::new();
    for (i, f) in key.fields().iter().enumerate() {
        match i {
            0 => d.i64(&f.path, n),
            _ => d.value(&*f.path, Value::MinKey),
        };
    }
    d.finish()
}

/// Checks points to split one chunk at: strictly within it, in order, none of them an end of everything.
pub fn check_split(chunk: ChunkRef<'_>, key: &ShardKey, points: &[DocBuf]) -> Result<()> {
    if points.is_empty() {
        return Err(Error::bad_value("need at least one point to split at"));
    }
    if points.len() > limits::SPLIT_POINTS_MAX {
        let text =
            format!("a chunk cannot be split at more than {} points at once", limits::SPLIT_POINTS_MAX);
        return Err(Error::bad_value(text));
    }
    let mut before = chunk.start().to_vec();
    for point in points {
        let at = key.key_of_bound(point)?;
        if at <= before {
            let text = format!(
                "split point {point} does not lie behind the one before it, or the chunk's min {}",
                chunk.min()
            );
            return Err(Error::bad_value(text));
        }
        if at.as_slice() >= chunk.end() {
            let text = format!("split point {point} does not lie before the chunk's max {}", chunk.max());
            return Err(Error::bad_value(text));
        }
        before = at;
    }
    Ok(())
}

/// The chunks between two bounds, which must be bounds of chunks; at least two, all on one shard.
pub fn check_merge<'a>(map: &'a ChunkMap, min: &RawDoc, max: &RawDoc) -> Result<Vec<ChunkRef<'a>>> {
    let (start, end) = (map.key().key_of_bound(min)?, map.key().key_of_bound(max)?);
    let no_chunk = |what: &str, bound: &RawDoc| Error::bad_value(format!("no chunk {what} at {bound}"));
    let mut at = map.find(&start).filter(|c| c.start() == start);
    if at.is_none() {
        return Err(no_chunk("begins", min));
    }
    let mut out: Vec<ChunkRef<'a>> = Vec::new();
    while let Some(chunk) = at.filter(|c| c.start() < end.as_slice()) {
        if out.first().is_some_and(|first| first.owner() != chunk.owner()) {
            return Err(Error::bad_value(format!(
                "the chunks between {min} and {max} lie on several shards"
            )));
        }
        out.push(chunk);
        at = chunk.next();
    }
    match out.last() {
        Some(last) if last.end() != end.as_slice() => Err(no_chunk("ends", max)),
        _ if out.len() < 2 => {
            Err(Error::bad_value(format!("there is but one chunk between {min} and {max}")))
        }
        _ => Ok(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::doc;

    #[test]
    fn hashes_are_cut_where_a_real_server_cuts_them() {
        let key = ShardKey::parse(&doc(r#"{"a": "hashed", "b": 1}"#)).unwrap();
        let at = |n| {
            let points = hashed_points(&key, n);
            points.iter().map(|p| p.get("a").and_then(|v| v.as_i64()).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(at(4), [-4_611_686_018_427_387_902, 0, 4_611_686_018_427_387_902]);
        assert_eq!(at(2), [0]);
        assert_eq!(at(3), [-3_074_457_345_618_258_602, 3_074_457_345_618_258_602]);
        assert!(at(1).is_empty());
        assert_eq!(at(1000).len(), 999);
        assert_eq!(hashed_points(&key, 2)[0], doc(r#"{"a": {"$numberLong": "0"}, "b": {"$minKey": 1}}"#));
    }
}
