//! Bounds of what a router does at once.

/// Documents that a shard sends in the first batch of one that is merged with others, where the client says nothing.
pub const ROUTER_FIRST_BATCH_DOCS: u64 = 101;
/// Bytes of documents that a router keeps ready of one shard's part of a merged stream before it asks for no more of them.
pub const ROUTER_READ_AHEAD_BYTES: usize = 32 << 20;
/// Milliseconds that a router has shards wait at a time while it merges their changes: silent ones keep events of others so long.
pub const ROUTER_WATCH_SLICE_MS: i64 = 100;
/// Bytes of events that a router holds of a shard and asks it for more, to learn that nothing comes before what others have sent.
pub const ROUTER_WATCH_AHEAD_BYTES: usize = 64 << 10;
/// Writes without the shard key look for a document and write it; so many times another writer may come in between.
pub const ROUTER_WRITE_WITHOUT_KEY_TRIES_MAX: u32 = 10;
