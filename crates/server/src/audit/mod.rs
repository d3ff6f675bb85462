//! Events of the audit log that this server raises, each at the place that nothing gets around.
//!
//! | events | where |
//! |---|---|
//! | logins and logouts | [`crate::principals`] (`told.rs`), `Client::left` |
//! | refusals, and what was allowed | the pipeline's check (`command/audit.rs`) |
//! | databases, collections, views, indexes | [`definitions`]: an observer of every change of a definition |
//! | users and roles by commands | `Principals::change_user` and its kin, which do not work without an event |
//! | users and roles written past those | [`definitions`], too: an observer of every write |
//! | the server itself | `lifecycle/audit.rs` |
//!
//! A secondary records what its own clients do, and nothing of what it applies.

pub(crate) mod definitions;
