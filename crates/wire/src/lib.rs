//! Wire messages: bytes in, frames out, and back. No sockets, no state beyond reusable buffers.
//!
//! The road of a request: [`message_len`] tells a reader how many bytes the message at the front of its buffer
//! has; [`decode`] turns them into a [`Frame`] that borrows from that buffer (or from [`Scratch`], when the
//! message was compressed) and an [`Envelope`] that says how to answer; [`encode_reply`] writes the answer in
//! the client's own manner: OP_MSG or OP_REPLY, with a checksum or compression if the request had them.
//!
//! Every document in a frame has passed [`RawDoc::validate`](pando_bson::RawDoc::validate). Two kinds of bad
//! input are told apart ([`WireError`]): where the framing itself cannot be trusted the connection must close;
//! where only one message is wrong it is answered with an error and the connection goes on. Which is which
//! follows MongoDB. Memory grows with bytes really received, never with a length a peer merely claims.

mod compress;
mod decode;
mod encode;
mod header;
mod legacy;

pub use compress::{COMPRESSED_HEAD_BYTES, Compressor, Compressors, Packed, Scratch, compress};
pub use decode::{Docs, OpMsg, Sequence, decode, decode_reply};
pub use encode::{append_sequences, close_msg, encode_error_body, encode_msg, encode_reply, open_msg};
pub use header::{Header, flags, message_len, op};
pub use legacy::OpQuery;

use pando_base::Error;

/// A decoded request.
#[derive(Debug)]
pub enum Frame<'a> {
    Msg(OpMsg<'a>),
    /// The legacy handshake; any other use of OP_QUERY has already become an error.
    Query(OpQuery<'a>),
}

/// How a request came, and so how its reply must leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The request's id: the reply's `responseTo`.
    pub request_id: i32,
    /// Bytes of the input that this message took.
    pub consumed: usize,
    pub style: Style,
    /// OP_MSG flag bits of the request (0 for OP_QUERY).
    pub flags: u32,
    /// Bytes of the message when nothing of it is compressed.
    pub plain_bytes: usize,
    /// How the request was compressed; the reply is compressed likewise.
    pub compressor: Option<Compressor>,
}

impl Envelope {
    /// False for unacknowledged requests: nothing may be sent back, not even an error.
    pub fn wants_reply(&self) -> bool {
        self.flags & flags::MORE_TO_COME == 0
    }
    /// The client reads a stream of replies to this one request.
    pub fn exhaust_allowed(&self) -> bool {
        self.flags & flags::EXHAUST_ALLOWED != 0
    }
}

/// The shape of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// OP_MSG.
    Msg,
    /// OP_REPLY to a legacy command.
    Reply,
    /// OP_REPLY with the query-failure flag and `$err` in place of `errmsg`.
    QueryFailure,
}

/// Why a message could not be decoded.
#[derive(Debug)]
pub enum WireError {
    /// The byte stream cannot be trusted: close the connection without a word.
    Close(&'static str),
    /// This message is wrong; answer with the error and go on behind `envelope.consumed`.
    Reply(Envelope, Error),
}
