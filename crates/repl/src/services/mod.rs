//! Services that follow this node's role (R-POS-1..4).
//!
//! ```text
//!   step-up:   begin ─► "new primary" entry ─► complete ─► on a majority ─► documents loaded ─► instances run
//!   step-down: instances are interrupted; their documents stay for the next primary
//! ```
//!
//! * [`aware`] — hooks at every change of role, at the commit point's, at rollbacks: one list, in order, each once;
//! * [`host`] — runs workflows on a primary, and nowhere else; the only code that knows about stepping up and down;
//! * [`drive`] — runs one workflow in one task, be it the host's or a command's;
//! * [`store`] — what workflows need of the node.
//!
//! What workflows are, and which there are, is `pando_workflows`.

pub mod aware;
pub mod drive;
mod hands;
pub mod host;
pub mod store;

pub use aware::{Hooks, ReplicaSetAware};
pub use drive::{End, Hands, drive};
pub use host::{Host, Instance, Service};
pub use store::{Guard, Held, Store};
