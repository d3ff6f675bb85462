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
/// Bytes of documents that are told in one reply. Whoever tells them does nothing else meanwhile: with 4 MB all writers of a donor of one core waited for
/// 20 to 45 ms behind each reply.
pub const MIGRATION_REPLY_BYTES_MAX: usize = 512 << 10;
/// Documents of a range that moves: the donor notes their records first.
pub const MIGRATION_DOCUMENTS_MAX: usize = 10_000_000;
/// A recipient waits so long for earlier deletions of what it is to receive (MongoDB's `receiveChunkWaitForRangeDeleterTimeoutMS`).
pub const MIGRATION_DELETIONS_AWAITED_MS: u64 = 10_000;
/// Between two looks at what is still to be deleted.
pub const MIGRATION_DELETIONS_LOOKED_AT_MS: u64 = 100;
/// Documents that are deleted of a range in one unit of work.
pub const RANGE_DELETION_DOCUMENTS_MAX: usize = 250;
/// How much longer a deletion rests than it works where clients are about: they keep most of a core, and the busier it is the longer it rests. Nine
/// times was found to take 15 % of what four busy clients get done.
pub const RANGE_DELETION_REST_PER_WORK: u32 = 16;
/// It rests no longer: what a lock has held up says nothing of how busy the machine is.
pub const RANGE_DELETION_REST_MS_MAX: u32 = 1_000;
/// A donor waits so long for those who write to the collection (MongoDB's `migrationLockAcquisitionMaxWaitMS`).
pub const MIGRATION_LOCK_AWAITED_MS: u64 = 500;
/// A recipient waits so long for a session that is to learn what it has done on the donor.
pub const MIGRATION_SESSION_AWAITED_MS: u64 = 5_000;
/// Entries of the log that a donor looks at for one turn of histories.
pub const MIGRATION_HISTORY_ENTRIES_LOOKED_AT: usize = 50_000;
/// Documents and entries of one turn that are few enough to fetch what comes then while nobody may write.
pub const MIGRATION_LITTLE_LEFT: usize = 100;
/// Turns over all collections of a database that moves, until what is left is little or clients write faster than that.
pub const MOVE_PRIMARY_ROUNDS_MAX: usize = 20;
/// Entries that are noted, behind which others get their turn.
pub const MIGRATION_ENTRIES_BETWEEN_YIELDS: usize = 64;
/// Turns of documents, behind which what was written meanwhile is given.
pub const MOVE_PRIMARY_TURNS_BETWEEN: usize = 16;
/// How often writers of one of its collections are waited for, and the pause between.
pub const MOVE_PRIMARY_TRIES_MAX: usize = 60;
pub const MOVE_PRIMARY_RETRY_MS: u64 = 1000;
/// Between two rounds of the balancer.
pub const BALANCER_ROUND_MS: u64 = 10_000;
/// The same behind a round that has moved something (MongoDB's `balancerMigrationsThrottlingMs`).
pub const BALANCER_PAUSE_MS: u64 = 1_000;
/// Bytes of a bound of a chunk or a zone: a migration's document holds up to eight, and so do its commands.
pub const CHUNK_BOUND_BYTES_MAX: usize = 1 << 20;
/// Bytes of the document of a workflow that begins, and of what a step of its own node tells it, which the document may take in.
pub const WORKFLOW_STATE_BYTES_MAX: usize = 6 << 20;
/// How long a recipient waits for another member of its set to have some documents, where secondaries set the pace and nobody says how long.
pub const MIGRATION_THROTTLE_MS: u64 = 60_000;
