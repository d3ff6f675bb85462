//! What config servers keep of chunks, and how chunks become fewer.

/// Chunks of all routing tables that the config servers' primary keeps, a hundred bytes each; beyond them all chunks of a collection are read
/// for each decision.
pub const KEPT_CHUNKS_MAX: usize = 10_000_000;
/// Chunks that are read at first to find those that have changed.
pub const CHUNKS_LOOKED_AT_FIRST: usize = 8;
/// Chunks that become one, or others, by one commit of the config servers.
pub const CHUNKS_MERGED_AT_ONCE: usize = 10_000;
/// Merges and measurements of a collection that is defragmented that are under way at once (MongoDB's).
pub const DEFRAGMENTATION_TASKS_AT_ONCE: usize = 50;
/// Times that a chunk is asked for its size.
pub const CHUNK_MEASURED_TRIES_MAX: u32 = 10;
/// How often the auto-merger looks whether it is time.
pub const AUTO_MERGER_LOOK_MS: u64 = 1_000;
