//! What the config servers say when somebody asks that a range move: whose it is now (SH-MIG-1).

use crate::balancer_round::max_chunk_bytes;
use crate::manager::CatalogManager;
use crate::metadata::is_draining;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, ObjectId, RawDoc, Value};
use pando_routing::chunk_map::{ChunkMap, ChunkRef};
use pando_routing::{ShardId, ShardKey};

/// A range of a collection, and the shard that owns it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnedRange {
    pub owner: ShardId,
    /// Of the collection.
    pub epoch: ObjectId,
    /// `None`: as much below `max` as one migration moves.
    pub min: Option<DocBuf>,
    /// `None`: as much from `min` on as one migration moves.
    pub max: Option<DocBuf>,
    /// What one migration moves at most.
    pub max_bytes: u64,
}

impl CatalogManager {
    /// The part of a chunk that begins at `min`, and ends at `max`; one of both may be left to the donor.
    ///
    /// # Errors
    /// 2 for settings that nobody can go by; 118 where the collection is not sharded, 70 for a recipient that nobody knows, 72 without either bound, 2 where the
    /// range is no part of one chunk.
    pub fn range_to_move(
        &self,
        of: &str,
        min: Option<&RawDoc>,
        max: Option<&RawDoc>,
        to: &ShardId,
    ) -> Result<OwnedRange> {
        let stored = self.stored(of)?.ok_or_else(|| {
            Error::new(ErrorCode::NamespaceNotSharded, format!("Collection {of} is not sharded."))
        })?;
        match self.metadata().shard(to.as_str())? {
            None => return Err(Error::new(ErrorCode::ShardNotFound, format!("Shard {to} not found"))),
            Some(doc) if is_draining(&doc) => {
                let text = format!("Shard {to} is currently draining");
                return Err(Error::new(ErrorCode::ShardNotFound, text));
            }
            Some(_) => {}
        }
        let (key, chunks) = (&stored.entry().key, &stored.table.chunks);
        for bound in [min, max].into_iter().flatten() {
            // No document has such a value there.
            let never = |v: Value<'_>| matches!(v, Value::Array(_) | Value::Regex { .. } | Value::Undefined);
            if bound.iter().any(|e| never(e.value())) {
                let text = format!("{bound} is not valid for shard key pattern {}", key.pattern());
                return Err(Error::bad_value(text));
            }
        }
        let chunk = chunk_of(key, chunks, min, max)?;
        let end = chunk.max();
        let (first, whole) = (min.unwrap_or(chunk.min()), max.unwrap_or(&end));
        let (start, upto) = (key.key_of_bound(first)?, key.key_of_bound(whole)?);
        if upto.as_slice() <= start.as_slice() || upto.as_slice() > chunk.end() {
            let text = format!(
                "the range [{first}, {whole}) of {of} is no part of one chunk: the chunk ends at {end}"
            );
            return Err(Error::bad_value(text));
        }
        Ok(OwnedRange {
            owner: chunk.shard().clone(),
            epoch: stored.entry().generation.epoch,
            min: min.map(RawDoc::to_buf),
            max: max.map(RawDoc::to_buf),
            max_bytes: max_chunk_bytes(stored.entry(), &self.balancer_settings()?),
        })
    }
}

/// The chunk that begins at `min` or holds it; where only the end is known, the one that holds the keys just below.
fn chunk_of<'a>(
    key: &ShardKey,
    chunks: &'a ChunkMap,
    min: Option<&RawDoc>,
    max: Option<&RawDoc>,
) -> Result<ChunkRef<'a>> {
    match (min, max) {
        (Some(min), _) => {
            chunks.find(&key.key_of_bound(min)?).ok_or_else(|| Error::internal("no chunk holds a shard key"))
        }
        (None, Some(max)) => chunks
            .find_below(&key.key_of_bound(max)?)
            .ok_or_else(|| Error::bad_value(format!("no key lies below the bound {max}"))),
        (None, None) => {
            Err(Error::new(ErrorCode::InvalidOptions, "a range has a lower bound, an upper bound, or both"))
        }
    }
}
