//! Replica sets of several members in one process, talked to over sockets as drivers do.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods)]

mod change_streams;
mod cluster_time;
mod defaults;
mod drops;
mod feature_version;
mod flow;
mod forward_to_primary;
mod members;
mod merge_files;
mod not_utf8;
mod observers;
mod office;
mod prepared;
mod restored;
mod retries;
mod rollback;
mod serverless;
mod services;
mod shard_split;
mod shutdown;
mod snapshot_reads;
mod tenant_data;
mod tenant_migration;
mod transactions;
mod transition;
mod words;
