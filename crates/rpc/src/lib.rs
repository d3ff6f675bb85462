//! Calls from one node to another: MongoDB's wire protocol as its client, over whatever network `env` is.
//!
//! ```text
//!   Pool ──take──► Connection ── call ──► one reply
//!                      │
//!                      └─ stream ──► Exhaust ── next ──► reply, reply, reply … (moreToCome)
//! ```
//!
//! * [`Connection`] — one socket after its handshake: a request, a deadline, a reply that is read in place;
//! * [`Exhaust`] — a request whose replies keep coming (oplog tailing);
//! * [`Pool`] — a few idle connections per host, for calls that are rare;
//! * [`Failure`] — why a call failed, sorted by what the caller should make of it.
//!
//! Nothing here retries: whether a call may be repeated is known where it is made.

mod connection;
mod exhaust;
mod failure;
mod handshake;
mod pool;

pub use connection::{Connection, Options};
pub use exhaust::Exhaust;
pub use failure::{Failure, Kind, Outcome};
pub use handshake::Peer;
pub use pool::{HostConnections, Lease, Pool};
