//! Multi-document transactions on a member of a replica set.
//!
//! ```text
//!  statement ─► check_out ─► handler ─► check_in ─► (parked on its session) ─► next statement …
//!               session lent                   └ an error: aborted
//!               locks of what it names         commitTransaction: one unit, one log entry
//! ```
//! What is open lies on the session between statements ([`pando_access::OpenTxn`]), and the door to collections finds it there. A
//! step-down, the lifetime limit, `killSessions` and a shutdown end it from outside ([`ends`]).

mod checkout;
mod ends;
mod prepares;

pub(crate) use ends::{expire, lsid_doc, parked};
