//! Timestamped storage: rows with versions, units of work, one log.
//!
//! ```text
//!   Txn ──commit──► memory tables (every version, by ident and key)      OpLog (slots, holes)
//!                        │ checkpoint: versions ≤ stable, log first          │ flush_once: hole-free prefix
//!                        ▼                                                   ▼
//!                   tables: records, indexes, history                   log segments
//! ```
//!
//! * A row's newest version lies under its plain key with its commit timestamp in front; replaced versions lie in
//!   the history tree under the timestamp that replaced them, until `oldest` passes it.
//! * The log is the only journal. Tables never hold anything above what is synced in the log and, while memory
//!   suffices, nothing above the stable timestamp: recovery opens the tables and replays the log from there.
//! * Readers take a snapshot (a timestamp and what is in flight below it) and block nobody.
//! * Nothing here spawns: the server calls [`OpLog::flush_once`] and the checkpoint from its own tasks.
//!
//! Read [`Storage`], [`Txn`], [`Cursor`] and [`OpLog`]; the modules below them each start with their story.

mod bulk;
mod bytes;
mod checkpoint;
mod conflict;
mod cursor;
mod damage;
mod flush;
mod foreign;
pub mod formats;
mod history;
mod ident;
mod kv;
mod late;
mod log;
mod memtable;
mod meta;
mod options;
mod pin;
mod prepared;
mod row;
mod snapshot;
pub mod staging;
mod stats;
mod storage;
mod store;
#[doc(hidden)]
pub mod testing;
mod txn;
mod undecided;
mod undo;
mod upgrade;
mod writes;

pub use bulk::BulkLoad;
pub use bytes::Bytes;
pub use cursor::Cursor;
pub use foreign::load::{LoadedTable, LoadedTables};
pub use foreign::{ForeignCheckpoint, ForeignRows, discard_foreign, has_foreign, is_foreign_wanted};
pub use ident::{Ident, IdentKind};
pub use log::{OpLog, OplogCursor, Slot, Slots};
pub use options::{Backend, KeyCut, Options};
pub use pin::{PinnedCheckpoint, PinnedFile, PinnedKind};
pub use snapshot::{OnPrepared, ReadAt};
pub use stats::{Stats, TableStats};
pub use storage::Storage;
pub use store::PREPARE_CONFLICT;
pub use txn::{BeginOptions, Dir, Mark, Txn};
pub use undecided::{Decision, PreparedTxn};

/// Commit timestamps are cluster times.
pub type Ts = pando_base::Timestamp;

/// crc32c, with which files of a pinned checkpoint are checked.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}
/// The same over what was summed up so far and more.
pub fn checksum_more(sum: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(sum, bytes)
}
