//! What outlives a request: cursors, logical sessions, and which retryable writes were already done.
//!
//! * [`cursors`] — results parked between `find` and `getMore`;
//! * [`sessions`] — the logical sessions table (`startSession`, `refreshSessions`, `endSessions`);
//! * [`memory`](mod@memory) — what stages of pipelines may hold;
//! * [`operations`] — what runs, with the session that it belongs to, as `currentOp` shows it;
//! * [`retryable`] — the statements of each session's newest `txnNumber`, so that a retry is answered, not
//!   executed; who uses a session, and what its transaction holds between statements;
//! * [`rights`] — whose cursors are;
//! * [`spills`] — what sorts and groups hold beyond their memory;
//! * [`transaction`] — the states of a session's transaction, and which requests fit them.

mod cursor_stats;
pub mod cursors;
mod listed;
pub mod memory;
pub mod operations;
pub mod retryable;
pub mod rights;
pub mod sessions;
pub mod spills;
pub mod transaction;

pub use cursor_stats::CursorStats;
pub use cursors::{Asked, CursorInfo, Cursors, Pinned};
pub use listed::listed;
pub use memory::memory;
pub use sessions::Sessions;
pub use spills::Spills;

use pando_command::generic_args::SessionId;
use std::fmt::Write as _;

/// A session in error messages: `<uuid> - <owner digest in base64> - <txnNumber> - <txnUUID>`; a parent has none of the last two.
pub fn lsid_text(lsid: &SessionId) -> String {
    let mut s = pando_base::Uuid(lsid.id).to_string();
    s.push_str(" - ");
    push_base64(&mut s, &lsid.uid);
    let (number, uuid) = match &lsid.child {
        Some(child) => (child.txn_number.map(|n| n.to_string()), pando_base::Uuid(child.uuid).to_string()),
        None => (None, String::new()),
    };
    let _ = write!(s, " - {} - {uuid}", number.unwrap_or_default());
    s
}

fn push_base64(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(3) {
        let n = chunk.iter().fold(0u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            if i > chunk.len() {
                out.push('=');
            } else {
                let _ = out.write_char(DIGITS[(n >> (18 - 6 * i)) as usize & 63] as char);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::session_id::Child;

    #[test]
    fn sessions_print_as_mongodb_prints_them() {
        let lsid = SessionId::of([0x61; 16]);
        assert_eq!(
            lsid_text(&lsid),
            "61616161-6161-6161-6161-616161616161 - 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU= -  - "
        );
        let child = Child { uuid: [0x62; 16], txn_number: Some(5) };
        let child = lsid_text(&SessionId { child: Some(child), ..lsid });
        assert!(child.ends_with(" - 5 - 62626262-6262-6262-6262-626262626262"), "{child}");
    }
}
