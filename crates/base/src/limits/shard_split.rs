//! Bounds of sets that split.

/// A recipient that has not left yet is asked again after this: tenants wait meanwhile.
pub const SHARD_SPLIT_POLL_MS: u64 = 20;
