//! Commands of config servers, which routers and shards send: one file each. What they decide and write is the catalog manager's
//! ([`pando_config_server`]); here stand their arguments, their replies and the wait for a majority.

pub(super) mod add_shard;
pub(super) mod add_shard_to_zone;
pub(super) mod balancer_collection_status;
pub(super) mod balancer_start;
pub(super) mod balancer_status;
pub(super) mod balancer_stop;
pub(super) mod clear_jumbo_flag;
pub(super) mod commit_chunk_migration;
pub(super) mod commit_chunk_split;
pub(super) mod commit_chunks_merge;
pub(super) mod commit_drop_collection;
pub(super) mod commit_drop_database;
pub(super) mod commit_merge_all_chunks;
pub(super) mod commit_move_primary;
pub(super) mod commit_refine_shard_key;
pub(super) mod commit_shard_collection;
pub(super) mod configure_collection_balancing;
pub(super) mod create_database;
pub(super) mod ensure_chunk_version;
pub(super) mod move_range;
pub(super) mod remove_chunks;
pub(super) mod remove_shard;
pub(super) mod remove_shard_from_zone;
pub(super) mod remove_tags;
pub(super) mod rename_collection_metadata;
pub(super) mod set_allow_migrations;
pub(super) mod set_cluster_parameter;
pub(super) mod transition_from_dedicated;
pub(super) mod transition_to_dedicated;
pub(super) mod update_zone_key_range;
pub(super) mod user_write_block;

pub(super) mod call;
mod coordinate;
mod fields;
mod leftovers;
mod prelude;

pub(super) use coordinate::coordinate;
