//! Bounds of index builds.

/// Keys sorted in memory by one index build before it spills: MongoDB's `maxIndexBuildMemoryUsageMegabytes`.
pub const INDEX_BUILD_MEMORY_BYTES: usize = 200 * 1024 * 1024;
/// Documents handled by a background index build between two yields: about a millisecond.
pub const INDEX_BUILD_STEP_DOCS: usize = 1000;
/// Bytes of documents, or of index entries, that it handles at most between two yields.
pub const INDEX_BUILD_STEP_BYTES: usize = 1024 * 1024;
/// A build that has its part and waits for the decision looks this often what writers have left: the less is to do when the
/// decision comes, with everybody waiting.
pub const INDEX_BUILD_DRAIN_MS: u64 = 100;
/// A vote for an index build that the primary did not take is sent again after so long.
pub const INDEX_BUILD_VOTE_RETRY_MS: u64 = 500;
/// A vote waits so long for its majority: a primary that does not answer is asked again.
pub const INDEX_BUILD_VOTE_MS_MAX: u64 = 30_000;
/// What index builds wait for is looked at this often even if nothing is heard of it.
pub const INDEX_BUILDS_LOOK_MS: u64 = 5_000;
/// Bytes of documents that an applied index is built over in one storage unit.
pub const INDEX_BUILD_IN_PLACE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Duplicate keys a unique index build remembers before it gives up at once.
pub const INDEX_BUILD_DUPLICATES_MAX: usize = 1000;
/// Tenths of a second that an interrupted `createIndexes` waits for its build to be taken back before it says so.
pub const INDEX_BUILD_ABORT_WAITS: usize = 10;
/// Tasks of a collection's index builds that end without a word to the log, where builds are given up, before that is told as an error.
pub const INDEX_BUILD_GIVEN_UP_TRIES: usize = 3;
