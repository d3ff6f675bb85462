//! The sixteen bytes in front of every message.

use crate::WireError;
use pando_base::limits;

/// Opcodes.
pub mod op {
    pub const REPLY: i32 = 1;
    pub const QUERY: i32 = 2004;
    pub const GET_MORE: i32 = 2005;
    pub const COMPRESSED: i32 = 2012;
    pub const MSG: i32 = 2013;
}

/// Flag bits of OP_MSG; unknown bits of the lower half are an error, of the upper half they are ignored.
pub mod flags {
    /// A CRC-32C of the message follows it.
    pub const CHECKSUM_PRESENT: u32 = 1;
    /// Request: do not answer. Reply: another one follows without a request.
    pub const MORE_TO_COME: u32 = 2;
    /// The client can take a stream of replies.
    pub const EXHAUST_ALLOWED: u32 = 1 << 16;
    /// Bits that must be understood.
    pub const REQUIRED: u32 = 0xFFFF;
}

/// A message header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whole message in bytes, header included.
    pub length: usize,
    pub request_id: i32,
    pub response_to: i32,
    pub op_code: i32,
}

impl Header {
    pub const LEN: usize = 16;

    /// Reads a header; `None` when fewer than 16 bytes are there. The length is not judged.
    pub fn read(bytes: &[u8]) -> Option<Header> {
        let at = |i: usize| Some(i32::from_le_bytes(*bytes.get(i..)?.first_chunk()?));
        Some(Header {
            length: at(0)?.max(0) as usize,
            request_id: at(4)?,
            response_to: at(8)?,
            op_code: at(12)?,
        })
    }
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.length as u32).to_le_bytes());
        for n in [self.request_id, self.response_to, self.op_code] {
            out.extend_from_slice(&n.to_le_bytes());
        }
    }
}

/// Length in bytes of the message at the front of `input`, once its header is there.
///
/// A length outside 16…48,000,000 closes the connection.
pub fn message_len(input: &[u8]) -> Result<Option<usize>, WireError> {
    match Header::read(input) {
        None => Ok(None),
        Some(h) if (Header::LEN..=limits::WIRE_MESSAGE_BYTES_MAX).contains(&h.length) => Ok(Some(h.length)),
        Some(_) => Err(WireError::Close("message length out of bounds")),
    }
}
