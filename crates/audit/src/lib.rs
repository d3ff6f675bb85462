//! The audit log: what happened that somebody may have to account for, by MongoDB's names.
//!
//! ```text
//!   a login, a refusal, a change of a definition, of users, of the server itself
//!        └─ the one place that it cannot get around makes an Event ─► AuditLog::record
//!                 who asked (Who) + when + Event ─► one document ─► filter ─► JSON line or BSON ─► Sink
//! ```
//! An event is with the operating system before whoever caused it hears of it, so that it survives the end of the process. That of a change
//! is written when the change is certain and nobody can see it, and is on the disk before the change is ([`AuditLog::sync`], called by the
//! oplog): what survives has its event, whenever the process or the power ends. Where an event cannot be written the process ends: a server
//! that goes on without its audit log does what nobody will know of.
//!
//! Who asked is known where a request is, and not in the depth where a collection is dropped. So whoever polls a request says to its
//! thread who asks ([`originator::enter`]), as it does with the locks of an operation; what nobody asked for is the server's own.
//!
//! Nothing here knows a file: what a [`Sink`] does is the process's business.

mod event;
mod events;
mod filter;
mod form;
mod log;
pub mod originator;
mod pending;
mod sink;
mod who;

pub use event::Event;
pub use events::{IndexBuild, Mutation};
pub use filter::Filter;
pub use form::Format;
pub use log::{AuditLog, Settings};
pub use pending::Pending;
pub use sink::{Memory, Sink, Sync};
pub use who::{Place, Who};
