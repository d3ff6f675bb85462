//! One `pandod`: everything of a process behind one handle, and its commands.
//!
//! ```text
//! Server ─┬─ instance   parameters, fail points, clients, counters (shared with the pipeline)
//!         ├─ storage    rows and the log
//!         ├─ access     the one door to collections; `maintenance` works on the data as a whole
//!         ├─ repl       member state: may I write, what does hello say
//!         ├─ cursors, sessions, retryable
//!         └─ registry   the table of commands → commands/<name>.rs
//! ```
//! [`Server::start`] opens the data, recovers, takes its place in the replica set and starts the background
//! tasks ([`lifecycle::tasks`]); [`Server::shutdown`] undoes that in order and leaves a checkpoint. It runs the same under
//! `env-tokio` and in the simulator. Who listens for connections is not its business: a connection asks
//! [`pando_command::pipeline::run`] with the server as its [`pando_command::Node`].

mod aggregation;
mod change_stream;
pub mod commands;
mod config;
mod cursors;
mod explain;
mod lifecycle;
mod namespaces;
mod node;
mod object_id;
mod replication;
mod server;
mod sessions;
mod settings;
mod statistics;
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
