//! Coordinators of a cluster's definitions, straight and through every accident.

mod cluster;
mod coll_mod;
mod create_collection;
mod drop_collection;
mod drop_sharded_database;
mod move_primary;
mod refine_shard_key;
mod rename_collection;
