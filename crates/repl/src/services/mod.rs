//! Services that follow this node's role (R-POS-1..4).
//!
//! ```text
//!   step-up:   begin ─► "new primary" entry ─► complete ─► on a majority ─► documents loaded ─► instances run
//!   step-down: instances are interrupted; their documents stay for the next primary
//! ```
//!
//! * [`aware`] — hooks at every change of role, in order, each once;
//! * [`machine`] — what a workflow is: a pure machine over one state document;
//! * [`host`] — runs workflows on a primary, and nowhere else; the only code that knows about stepping up and down;
//! * [`demo`] — a workflow that counts, to see all this at work.

pub mod aware;
pub mod demo;
pub mod host;
#[cfg(test)]
mod kit;
pub mod machine;

pub use aware::{Hooks, ReplicaSetAware};
pub use host::{Host, Instance, Service, Store};
pub use machine::{Action, Event, Machine};
