//! Commands about the cluster itself.

pub(super) mod check_metadata_consistency;
pub(super) mod chunks;
pub(super) mod enable_sharding;
pub(super) mod known;
pub(super) mod move_primary;
pub(super) mod on_config;
pub(super) mod refine_key;
pub(super) mod set_allow_migrations;
pub(super) mod set_user_write_block_mode;
pub(super) mod shard_collection;
pub(super) mod shards;
pub(super) mod transition_from_dedicated;
pub(super) mod transition_to_dedicated;
