//! A cluster as its clients see it, through routers: by subject, in one binary. `cargo test -p pando-router --test it migrations::` runs those of one
//! folder.

mod balancer;
mod cluster;
mod config_shard;
mod definitions_at_once;
mod feature_version;
mod generated;
mod leftovers;
mod logins;
mod metadata_consistency;
mod migrations;
mod recorded_answers;
mod rows;
mod sessions;
mod shards_come_and_go;
mod tools;
mod user_writes;
