//! What a shard does for routers, config servers and other shards. Each command's arguments are read here; what is done stands in
//! [`ddl`].

mod add_shard;
mod chunks;
mod cleanup_orphaned;
mod coll_mod;
mod create_collection;
pub(in crate::commands) mod ddl;
mod drop_collection;
mod drop_database;
mod drop_indexes;
pub(in crate::commands) mod migration;
mod move_primary;
mod refine_shard_key;
mod refresh;
mod rename_collection;
mod set_allow_migrations;
mod sizes;
mod state;
mod user_write_block;
mod versions;

pub(super) use add_shard::run as add_shard;
pub(super) use chunks::{merge, split};
pub(super) use cleanup_orphaned::run as cleanup_orphaned;
pub(super) use coll_mod::{participant as coll_mod_participant, run as coll_mod};
pub(super) use create_collection::{participant as create_participant, run as create_collection};
pub(super) use drop_collection::{participant as drop_participant, run as drop_collection};
pub(super) use drop_database::{participant as drop_database_participant, run as drop_database};
pub(super) use drop_indexes::run as drop_indexes;
pub(super) use move_primary::{fence as fence_database, run as move_primary, take as take_moved};
pub(super) use refine_shard_key::{run as refine_shard_key, validate as validate_shard_key};
pub(super) use refresh::{collection as flush_collection, database as flush_database};
pub(super) use rename_collection::{
    participant as rename_participant, run as rename_collection, unblock as unblock_renamed,
};
pub(super) use set_allow_migrations::run as set_allow_migrations;
pub(super) use sizes::run as sizes;
pub(super) use state::run as state;
pub(super) use user_write_block::run as user_write_block;
pub(super) use versions::{of_collection as collection_version, of_database as database_version};
