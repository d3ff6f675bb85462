//! Bounds of what a shard knows of who owns what, and of how long it is waited for.

/// Chunks that a shard's primary writes down in one unit of work.
pub const CACHED_CHUNKS_PER_WRITE_MAX: usize = 1_000;
/// Times that a secondary reads what its primary has written down of a collection while that changes.
pub const CACHED_METADATA_READS_MAX: usize = 10;
/// Collections whose last written state a primary remembers; of all others it is read again before something is written.
pub const CACHED_METADATA_WRITTEN_MAX: usize = 10_000;
/// A statement of a transaction waits so long for the end of a critical section (MongoDB's `metadataRefreshInTransactionMaxWaitBehindCritSecMS`).
pub const SECTION_AWAITED_IN_TRANSACTION_MS: u64 = 500;
