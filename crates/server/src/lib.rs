//! One `pandod`: everything of a process behind one handle, and its commands.
//!
//! ```text
//! Server ─┬─ config       what the process was told when it started
//!         ├─ instance     environment, parameters, fail points, clients, counters (shared with the pipeline)
//!         ├─ storage      rows and the log
//!         ├─ access       the one door to collections
//!         ├─ lifecycle    is the server stopping?                                      uses no other part
//!         ├─ settings     what the set has set: concerns, feature version, ...         uses no other part
//!         ├─ replication  member state, positions, coordinator, data path              uses lifecycle
//!         ├─ sessions     logical sessions and what they have carried out              uses replication
//!         ├─ sharding     which shard this is, what it owns                            uses no other part
//!         ├─ upkeep       checkpoints, index builds, what writes wait for, TTL         uses all of these
//!         ├─ statistics   figures that requests leave behind, what is running
//!         ├─ crud ─┬─ reads         which state is read, queries and their plans       uses replication
//!         │        ├─ cursors       results between two batches                        uses reads
//!         │        ├─ aggregations  pipelines, change streams                          uses reads, sessions, statistics
//!         │        ├─ writes        statements, their retries, time series             uses reads, sessions, upkeep
//!         │        └─ transactions  how they begin, go on and end                      uses sessions, upkeep
//!         └─ registry     the table of commands → commands/<name>.rs, which take the parts they use
//! ```
//! No part knows the server. What the coordinator orders when the member's role changes is
//! [`RoleChanges`](replication::role_changes::RoleChanges), a part of upkeep, which only the coordinator calls.
//!
//! [`Server::start`] opens the data, recovers, takes its place in the replica set and starts the background
//! tasks ([`lifecycle::tasks`]); [`Server::shutdown`] undoes that in order and leaves a checkpoint. It runs the same under
//! `env-tokio` and in the simulator. Who listens for connections is not its business: a connection asks
//! [`pando_command::pipeline::run`] with the server as its [`pando_command::Node`].

mod aggregation;
mod audit;
mod change_stream;
pub mod commands;
mod config;
mod config_server;
mod crud;
mod cursors;
mod explain;
mod lifecycle;
mod node;
mod object_id;
mod principals;
mod read;
mod replication;
mod server;
mod sessions;
mod settings;
mod sharding;
mod statistics;
mod tenants;
mod timeseries;
mod transaction;
mod upkeep;
mod views;
mod workflows;
mod write;

pub use config::{Config, GIT_VERSION, MAX_WIRE_VERSION, VERSION, VERSION_ARRAY};
pub use lifecycle::Lifecycle;
pub use replication::Replication;
pub use server::Server;
pub use sessions::LogicalSessions;
