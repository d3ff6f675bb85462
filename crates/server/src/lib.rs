//! One `pandod`: everything of a process behind one handle, and its commands.
//!
//! ```text
//! Server ─┬─ instance   parameters, fail points, clients, counters (shared with the pipeline)
//!         ├─ storage    rows and the log
//!         ├─ catalog    collections, indexes, the write path
//!         ├─ repl       member state: may I write, what does hello say
//!         ├─ cursors, sessions, retryable
//!         └─ registry   the table of commands → commands/<name>.rs
//! ```
//! [`Server::start`] opens the data, recovers, takes its place in the replica set and starts the background
//! tasks ([`tasks`]); [`Server::shutdown`] undoes that in order and leaves a checkpoint. It runs the same under
//! `env-tokio` and in the simulator. Who listens for connections is not its business: a connection asks
//! [`pando_command::pipeline::run`] with the server as its [`pando_command::Node`].

mod agg_sources;
mod agg_write;
mod aggregation;
mod await_read_concern;
mod backups;
mod batch;
mod body;
mod change_stream;
mod check_all;
mod cluster_parameters;
mod cluster_time_keys;
mod collection_stats_stages;
pub mod commands;
mod config;
mod cursor_reply;
mod explaining;
mod explaining_pipelines;
mod feature_version;
mod feature_version_guard;
mod find_one;
mod flow_control;
mod foreign_collections;
mod forward_to_primary;
mod fsync_lock;
mod index_builds;
mod inserting;
mod kept_sessions;
mod let_variables;
mod local_identity;
mod map_reduce;
mod member_alone;
mod member_door;
mod namespaces;
mod node;
mod oplog_tail;
mod pipeline_cursor;
mod plan_use;
mod positions;
mod profiling;
mod query_ctx;
mod query_cursor;
mod replication;
mod restored;
mod restored_writes;
mod resync;
mod retry_images;
mod rollback;
mod rollback_files;
mod rw_defaults;
mod scripts;
mod server;
mod services;
mod session_refresh;
mod settings;
mod shutdown;
mod spill;
mod statements;
mod tasks;
mod timeseries;
mod top;
mod transaction;
mod transitions;
mod ttl;
mod user_writes;
mod views;
mod workflows;
mod writes;

pub use config::{Config, GIT_VERSION, MAX_WIRE_VERSION, VERSION, VERSION_ARRAY};
pub use server::Server;
