//! Who owned a chunk at a time (SYS-215, SH-OWN-2): a read of a snapshot goes where the documents were then.

use crate::chunk_map::ChunkRef;
use crate::shard_id::ShardId;
use pando_base::{Error, ErrorCode, Result, Timestamp};

/// The owner at `at`. Chunks of collections from before histories are where they are.
///
/// # Errors
/// [`ErrorCode::StaleChunkHistory`] for a time before the oldest owner that is remembered.
pub fn owner_at(chunk: ChunkRef<'_>, at: Timestamp) -> Result<&ShardId> {
    if chunk.since().is_none_or(|since| since <= at) {
        return Ok(chunk.shard());
    }
    let then = chunk.former_owners().iter().find(|o| o.valid_after <= at);
    then.map(|o| &o.shard).ok_or_else(|| {
        let text =
            format!("who owned the chunk at {} is not known for {at}: that is too long ago", chunk.min());
        Error::new(ErrorCode::StaleChunkHistory, text)
    })
}
