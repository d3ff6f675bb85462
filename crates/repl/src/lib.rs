//! This node's place in a replica set.
//!
//! So far a set has one member, so there is nobody to ask: the node elects itself as soon as it has a
//! configuration, and "majority" means "durable in my own log". What the rest of the server sees is already
//! shaped for more: it asks [`Repl`] whether it may write, waits through
//! [`await_replication`], and reads `hello` and `replSetGetStatus` from the same [`State`]. The topology core
//! will later drive that state; its callers need not change.
//!
//! * [`data`] — the entries' way from a sync source into this node's log and tables;
//! * [`config`] — the configuration document, of the topology crate;
//! * [`state`] — member state, term, election, topology version, and who waits for them;
//! * [`await_replication`] — write concerns;
//! * [`show`] — the documents that `hello` and `replSetGetStatus` answer with.

pub mod await_replication;
pub mod data;
pub mod show;
pub mod state;

pub use config::{Member, ReplSetConfig};
pub use pando_topology::config;
pub use state::{Election, MemberState, Repl, State};
