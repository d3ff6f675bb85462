//! Where chunks are cut: a hashed collection in advance, and what `split` and `mergeChunks` may do (SH-SPLIT-1, SH-SPLIT-2,
//! SH-KEY-3).

use crate::chunk_map::{ChunkMap, ChunkRef};
use crate::shard_id::ShardId;
use crate::shard_key::ShardKey;
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};
use std::cmp::Ordering;

/// Bounds that cut the values of a hashed key's first field into `chunks` equal pieces.
pub fn hashed_points(key: &ShardKey, chunks: usize) -> Vec<DocBuf> {
    let at = hashed_values(chunks.min(limits::INITIAL_CHUNKS_MAX));
    at.into_iter().map(|n| hashed_bound(key, n)).collect()
}
/// Hashes that cut all of them into so many equal pieces, as a real server chooses them: outwards from zero where the number is even,
/// else from half a piece beside it.
pub(crate) fn hashed_values(chunks: usize) -> Vec<i64> {
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
    at
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

/// Checks points to split one chunk at: strictly within it and in order, in the words of 6.0.5 (which ends when there are none).
pub fn check_split(chunk: ChunkRef<'_>, key: &ShardKey, points: &[DocBuf]) -> Result<()> {
    if points.is_empty() {
        return Err(invalid("Split keys must be specified".to_owned()));
    }
    if points.len() > limits::SPLIT_POINTS_MAX {
        return Err(invalid(format!(
            "a chunk cannot be split at more than {} keys at once",
            limits::SPLIT_POINTS_MAX
        )));
    }
    let outside = |point: &RawDoc| {
        invalid(format!("Split key {point} not contained within chunk [{}, {})", chunk.min(), chunk.max()))
    };
    let (mut before, mut before_doc) = (chunk.start().to_vec(), chunk.min());
    for point in points {
        check_storable(point)?;
        ShardKey::check_size(point)?;
        let at = key.key_of_bound(point).map_err(|_| outside(point))?;
        if at.as_slice() < chunk.start() || at.as_slice() >= chunk.end() {
            return Err(outside(point));
        }
        match at.cmp(&before) {
            Ordering::Greater => {}
            Ordering::Equal => {
                let text = format!("Split on lower bound of chunk [{before_doc}, {point}] is not allowed");
                return Err(invalid(text));
            }
            Ordering::Less => {
                return Err(invalid(format!(
                    "Split keys must be specified in strictly increasing order. Key {point} was specified after {before_doc}."
                )));
            }
        }
        (before, before_doc) = (at, point);
    }
    Ok(())
}

/// A bound is kept as a document: what could be taken for an operator there, or has several values, is refused (asked of 6.0.5).
fn check_storable(point: &RawDoc) -> Result<()> {
    let storable = |e: &Elem<'_>| match e.value() {
        Value::Array(_) | Value::Regex { .. } => false,
        Value::Document(d) => !has_operators(d),
        _ => true,
    };
    match point.iter().find(|e| !storable(e)) {
        None => Ok(()),
        Some(e) => Err(Error::bad_value(format!("Shard key element {e} is not valid for storage"))),
    }
}

fn has_operators(d: &RawDoc) -> bool {
    d.iter().any(|e| e.name().starts_with('$') || e.value().as_doc().is_some_and(has_operators))
}

fn invalid(text: String) -> Error {
    Error::new(ErrorCode::InvalidOptions, text)
}

/// The chunks between two bounds, which must be bounds of chunks, all of one shard.
pub fn check_merge<'a>(
    map: &'a ChunkMap,
    shard: &ShardId,
    min: &RawDoc,
    max: &RawDoc,
) -> Result<Vec<ChunkRef<'a>>> {
    let (start, end) = (map.key().key_of_bound(min)?, map.key().key_of_bound(max)?);
    if start >= end {
        let text = format!("min: {min} should be less than max: {max}");
        return Err(Error::new(ErrorCode::FailedToParse, text));
    }
    let mut out: Vec<ChunkRef<'a>> = Vec::new();
    let mut at = map.find(&start).filter(|c| c.start() == start);
    while let Some(chunk) = at.filter(|c| c.start() < end.as_slice() && c.shard() == shard) {
        out.push(chunk);
        at = chunk.next();
    }
    if out.last().is_some_and(|last| last.end() == end.as_slice()) {
        return Ok(out);
    }
    let text = format!(
        "could not merge chunks, shard {shard} does not contain a sequence of chunks that exactly fills the range [{min}, {max})"
    );
    Err(Error::new(ErrorCode::IllegalOperation, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::doc;

    #[test]
    fn points_can_be_kept() {
        for bad in [r#"{"k": {"$gt": 1}}"#, r#"{"k": [1]}"#, r#"{"k": {"a": {"$b": 1}}}"#] {
            let point = doc(bad);
            let e = check_storable(&point).unwrap_err();
            let element = point.first().unwrap();
            assert_eq!(e.message, format!("Shard key element {element} is not valid for storage"));
        }
        assert!(check_storable(&doc(r#"{"k": {"a": 1}}"#)).is_ok());
    }

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
