//! What the config servers say when somebody asks that a range move: whose it is now (SH-MIG-1).

use crate::balancer_round::max_chunk_bytes;
use crate::manager::CatalogManager;
use crate::metadata::is_draining;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, ObjectId, RawDoc, Value};
use pando_routing::ShardId;

/// A range of a collection, and the shard that owns it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnedRange {
    pub owner: ShardId,
    /// Of the collection.
    pub epoch: ObjectId,
    pub min: DocBuf,
    /// `None`: as much from `min` on as one migration moves.
    pub max: Option<DocBuf>,
    /// What one migration moves at most.
    pub max_bytes: u64,
}

impl CatalogManager {
    /// The part of a chunk that begins at `min`.
    ///
    /// # Errors
    /// 2 for settings that nobody can go by; 118 where the collection is not sharded, 70 for a recipient that nobody knows, 2 where the range is no part of one chunk.
    pub fn range_to_move(
        &self,
        of: &str,
        min: &RawDoc,
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
        for bound in [Some(min), max].into_iter().flatten() {
            // No document has such a value there.
            let never = |v: Value<'_>| matches!(v, Value::Array(_) | Value::Regex { .. } | Value::Undefined);
            if bound.iter().any(|e| never(e.value())) {
                let text = format!("{bound} is not valid for shard key pattern {}", key.pattern());
                return Err(Error::bad_value(text));
            }
        }
        let start = key.key_of_bound(min)?;
        let chunk = chunks.find(&start).ok_or_else(|| Error::internal("no chunk holds a shard key"))?;
        let end = chunk.max();
        let whole = max.unwrap_or(&end);
        let upto = key.key_of_bound(whole)?;
        if upto.as_slice() <= start.as_slice() || upto.as_slice() > chunk.end() {
            let text = format!(
                "the range [{min}, {whole}) of {of} is no part of one chunk: the chunk ends at {end}"
            );
            return Err(Error::bad_value(text));
        }
        Ok(OwnedRange {
            owner: chunk.shard().clone(),
            epoch: stored.entry().generation.epoch,
            min: min.to_buf(),
            max: max.map(RawDoc::to_buf),
            max_bytes: max_chunk_bytes(stored.entry(), &self.balancer_settings()?),
        })
    }
}
