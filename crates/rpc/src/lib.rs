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
//! * [`Pool`] — bounded connections per host, for calls that are rare, and a bounded queue in front of them;
//! * [`Gossip`] — times that a pool's calls hand on and hear of;
//! * [`Failure`] — why a call failed, sorted by what the caller should make of it, with the whole reply;
//! * [`may_retry`] — whether it may be made again, decided from data.
//!
//! Whether a call may be repeated is known where it is made, and said with it ([`Retry`]). A pool repeats one that an idle
//! connection did not carry; nothing else here does.

mod connection;
mod exhaust;
mod failure;
mod gossip;
mod handshake;
mod login;
mod login_as;
mod pool;
mod retry;

pub use connection::{Connection, Options, Sequence};
pub use exhaust::Exhaust;
pub use failure::{CallResult, Effect, Failure, Kind};
pub use gossip::Gossip;
pub use handshake::Peer;
pub use login_as::{By, LoginAs, UserLogin};
pub use pool::{Bounds, HostConnections, Lease, Pool};
pub use retry::{Retry, may_retry};
