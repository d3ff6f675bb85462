//! What outlives a request: cursors, logical sessions, and which retryable writes were already done.
//!
//! * [`cursors`] — results parked between `find` and `getMore`;
//! * [`sessions`] — the logical sessions table (`startSession`, `refreshSessions`, `endSessions`);
//! * [`retryable`] — the statements of each session's newest `txnNumber`, so that a retry is answered, not
//!   executed; who uses a session, and what its transaction holds between statements;
//! * [`transaction`] — the states of a session's transaction, and which requests fit them.

pub mod cursors;
pub mod retryable;
pub mod sessions;
pub mod transaction;

pub use cursors::{CursorInfo, Cursors, Pinned};
pub use sessions::Sessions;

use pando_command::generic_args::Lsid;
use std::fmt::Write as _;

/// SHA-256 of the empty user name: the owner of every session while authentication is off.
pub const NO_USER_DIGEST: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27,
    0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// A session in error messages: `<uuid> - <owner digest in base64> -  - `.
pub fn lsid_text(lsid: &Lsid) -> String {
    let mut s = pando_base::Uuid(lsid.id).to_string();
    s.push_str(" - ");
    push_base64(&mut s, &lsid.uid.unwrap_or(NO_USER_DIGEST));
    s.push_str(" -  - ");
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

    #[test]
    fn sessions_print_as_mongodb_prints_them() {
        let lsid = Lsid { id: [0x61; 16], uid: None };
        assert_eq!(
            lsid_text(&lsid),
            "61616161-6161-6161-6161-616161616161 - 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU= -  - "
        );
    }
}
