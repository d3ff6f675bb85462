//! What clients ask for, as data: the arguments of every command that more than one role serves.
//!
//! ```text
//!   Request (body, sequences) ──parse──► FindArgs, UpdateArgs, ... ──► a member of a set runs it
//!                                              │
//!                                              └─spell──► the same command for a shard, changed where the router wants
//! ```
//! A command is read once, in the order and with the words of MongoDB; whoever serves it takes the typed arguments. What
//! they name is not looked up here: there is no catalog and no clock. Where a role has a say in the middle of reading
//! (which names may be written), it passes that in.
//!
//! * [`read`] — find, count, distinct, aggregate, getMore;
//! * [`write`] — insert, update, delete, bulkWrite, findAndModify;
//! * [`define`] — createIndexes;
//! * [`spell`] — how they become documents again.

pub mod constants;
pub mod define;
pub mod fields;
pub mod read;
pub mod spell;
pub mod write;

pub use define::create_indexes::CreateIndexesArgs;
pub use read::aggregate::AggregateArgs;
pub use read::count::CountArgs;
pub use read::distinct::DistinctArgs;
pub use read::find::FindArgs;
pub use read::get_more::GetMoreArgs;
pub use write::args::WriteArgs;
pub use write::bulk_write::{BulkOp, BulkWriteArgs, NsInfo};
pub use write::delete::{DeleteArgs, DeleteStatement};
pub use write::find_and_modify::FindAndModifyArgs;
pub use write::insert::InsertArgs;
pub use write::update::{UpdateArgs, UpdateStatement};
