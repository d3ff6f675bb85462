//! This node's place in a replica set.
//!
//! The topology core decides; this crate is its shell. [`coordinator`] feeds it time, messages and positions and carries
//! out what it says; [`data`] moves entries from a sync source into this node's log and tables; what the rest of the
//! server reads lies in [`Repl`].
//!
//! * [`coordinator`] — the core's shell: tasks, calls to members, barriers;
//! * [`data`] — the entries' way from a sync source into this node's log and tables;
//! * [`config`] — the configuration document, of the topology crate;
//! * [`state`] — what operations see: member state, term, topology version, and who waits for them;
//! * [`flow_control`] — how fast a primary may write;
//! * [`services`] — hooks at changes of role, and workflows that run on a primary;
//! * [`await_replication`] — write concerns;
//! * [`show`] — the documents that `hello` and `replSetGetStatus` answer with.

pub mod await_replication;
pub mod coordinator;
pub mod data;
pub mod flow_control;
pub mod params;
pub mod services;
pub mod show;
pub mod state;

pub use config::{Member, ReplSetConfig};
pub use coordinator::{Coordinator, Effects, Said};
pub use pando_topology as topology;
pub use pando_topology::config;
pub use state::{MemberState, Membership, Repl, State};
