//! A replica set as its clients see it: who its members are, which one is primary, how far away each is, and whom to ask.
//! Pure: no I/O, no clock, no chance.
//!
//! [`Core::step`] takes the time and one [`Event`] and appends [`Action`]s, as the protocol's core does. Its shell sends the
//! probes, and tells what came back and what happened to other calls.
//!
//! ```text
//!   hello replies, failures ──► discovery.rs ─► Set ◄── feedback.rs ◄── errors of any call
//!                                               │
//!   read preference, deadline ──► select.rs ◄───┘ ──► a host, now or once there is one
//! ```
//!
//! * [`hello`] — one member's answer, and what kind of member gives it;
//! * [`set`] — what is known of all members;
//! * [`discovery`] — how an answer changes that (the drivers' rules for discovery and monitoring);
//! * [`feedback`] — how errors of calls do;
//! * [`read_preference`], [`select`] — who may answer a call, and who of these is near;
//! * [`core`] — probes, one under way for each host, and those who wait for a host (SH-REG-3 to SH-REG-5).
//!
//! A monitor outlives the registry of shards that names it: what it knows of a set stays when the registry is read again.

pub mod core;
pub mod discovery;
pub mod feedback;
pub mod hello;
pub mod read_preference;
pub mod select;
pub mod set;

pub use crate::core::{Action, Core, Event, Token};
pub use feedback::{CallError, What};
pub use hello::{Hello, MemberKind, TopologyVersion};
pub use read_preference::{Mode, ReadPreference};
pub use set::{Member, Set};
