//! Bounds of ranges that move from one shard to another.

/// A recipient that has not caught up after this is given up (MongoDB's 6 hours).
pub const MIGRATION_MS_MAX: u64 = 6 * 3_600_000;
/// Between two questions to a recipient, and between two helpings of changes that a recipient takes.
pub const MIGRATION_POLL_MS: u64 = 20;
/// A recipient that has everything, and is not told what became of it, asks so often.
pub const MIGRATION_DECISION_ASKED_MS: u64 = 5000;
/// A recipient takes the last changes in this time, or the donor gives up: its writes wait meanwhile.
pub const MIGRATION_DRAIN_MS_MAX: u64 = 10_000;
/// What a donor remembers of documents that are written while their range moves (MongoDB's 500 MB): more, and it gives up.
pub const MIGRATION_RECORDED_BYTES_MAX: usize = 500 << 20;
/// Documents that are told in one helping; fewer where they are large.
pub const MIGRATION_HELPING_DOCUMENTS_MAX: usize = 10_000;
