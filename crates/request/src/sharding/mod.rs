//! Commands that routers carry out with the config servers.

pub mod enable_sharding;
pub mod merge_all_chunks;
pub mod shard_collection;
