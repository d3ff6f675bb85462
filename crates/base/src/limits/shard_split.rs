//! Bounds of sets that split, and of those that become one.

/// A recipient that has not left yet is asked again after this: tenants wait meanwhile.
pub const SHARD_SPLIT_POLL_MS: u64 = 20;
/// Decisions about tenants that are remembered for those who waited, when their documents are gone.
pub const TENANT_DECISIONS_KEPT: usize = 256;
/// The terms of a set that has left another one begin so far above those of the other (SV-SPLIT-9): members leave one after the other, and
/// no entry of the old set that the last of them still fetches may carry a term in which the new set has elected somebody.
pub const SPLIT_TERMS_AHEAD: crate::Term = 1000;
/// A set that splits off has at least so many members (SV-SPLIT-1).
pub const SPLIT_RECIPIENTS_MIN: usize = 3;

/// A recipient of tenants that has not everything yet is asked again after this.
pub const TENANT_MIGRATION_POLL_MS: u64 = 20;
/// A recipient that carries out what the donor does waits so long for news before it looks what it was told.
pub const TENANT_MIGRATION_NEWS_MS: u64 = 100;
/// A donor that asks how far the recipient is gets an answer after so long, and asks again.
pub const TENANT_MIGRATION_ANSWER_MS: u64 = 1_000;
/// Blocks of another set's tables in memory while they are taken in: they are read once, in order.
pub const FOREIGN_TABLES_CACHE_BYTES: usize = 16 << 20;
/// Whoever takes another set's tables in looks so often whether it is still to go on.
pub const FOREIGN_ROWS_PER_LOOK: u64 = 4096;
/// How often a piece of a donor's file is asked for before the copy is given up, and the pause in between.
pub const FOREIGN_READ_TRIES: u32 = 20;
pub const FOREIGN_READ_PAUSE_MS: u64 = 500;
/// Bytes of the disk that stay free when another set's tables are taken in.
pub const FOREIGN_DISK_RESERVE_BYTES: u64 = 256 << 20;
/// A member that takes another set's tables in is asked again after so long whether it has them.
pub const FOREIGN_TAKE_IN_SECS_MAX: u64 = 600;
/// How long an aborted tenant migration that is to be forgotten waits for its recipient to hear of that.
pub const TENANT_MIGRATION_UNTOLD_MS: u64 = 30_000;
/// How long a read of a tenant waits at a member that has just started or rolled back, until that has what its set had.
pub const TENANT_READS_AWAIT_SET_MS: u64 = 10_000;
