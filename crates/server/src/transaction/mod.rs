//! Multi-document transactions on a member of a replica set.
//!
//! ```text
//!  statement ─► check_out ─► handler ─► check_in ─► (parked on its session) ─► next statement …
//!               session lent, open.rs          └ an error: aborted
//!               locks of what it names         commitTransaction: one unit, one log entry
//! ```
//! What is open lies on the session between statements ([`open::OpenTxn`]): a storage unit with its snapshot and its
//! writes, shared locks of the collections it met, its place inside the write gate. A step-down, the lifetime limit,
//! `killSessions` and a shutdown end it from outside ([`ends`]).

mod checkout;
pub(crate) mod conflicts;
mod ends;
mod memory;
pub(crate) mod metrics;
mod open;
mod prepares;
mod source;
mod table;
mod units;

pub(crate) use ends::{expire, lsid_doc};
pub(crate) use open::OpenTxn;
