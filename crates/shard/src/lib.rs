//! What a shard knows: which shard of which cluster it is, and what it owns.
//!
//! ```text
//!   admin.system.version {_id: "shardIdentity"} ─► ShardIdentity ─► who this is, where the config servers are
//!   routing tables (refreshed by the server)     ─► FilteringMetadata ◄─ check ── the door, for each request that has a version
//!                                                        ▲
//!                                   critical sections ───┘   (a change of ownership that is about to happen)
//! ```
//!
//! * [`identity`] — the document that makes a set a shard (SYS-201);
//! * [`metadata`] — for each collection what is known of it, judged against what a request believes (SYS-212, SH-PROTO-2);
//! * [`owned_documents`] — the same as plans see it: which documents a query may show (SYS-215, SH-OWN-2);
//! * [`recorded_range`] — what is written in a range while it moves to another shard (SH-MIG-5, SH-MIG-7).
//!
//! No I/O: who refreshes tells what was read, who is refused is told whether to refresh or to wait.

pub mod identity;
pub mod metadata;
pub mod owned_documents;
pub mod recorded_range;

pub use identity::ShardIdentity;
pub use metadata::{FilteringMetadata, Known, Refusal, Why};
pub use owned_documents::OwnedDocuments;
pub use recorded_range::{Helping, RecordedRange};
