//! Replies (and, for tools and tests, requests) to bytes.

use crate::compress::{Packed, Scratch, compress};
use crate::header::{Header, flags, op};
use crate::legacy::{REPLY_AWAIT_CAPABLE, REPLY_QUERY_FAILURE};
use crate::{Envelope, Style};
use pando_base::Error;
use pando_bson::{DocBuf, DocBuilder, RawDoc};

/// Starts an OP_MSG at the end of `out`, up to where the body document begins; returns its position for
/// [`close_msg`]. Lets a reply be built straight into the send buffer.
pub fn open_msg(out: &mut Vec<u8>, request_id: i32, response_to: i32, flag_bits: u32) -> usize {
    let start = out.len();
    Header { length: 0, request_id, response_to, op_code: op::MSG }.write(out);
    out.extend_from_slice(&flag_bits.to_le_bytes());
    out.push(0);
    start
}

/// Finishes the OP_MSG begun at `start`: length, and the checksum if its flag is set.
pub fn close_msg(out: &mut Vec<u8>, start: usize) {
    let checksum = out.get(start + Header::LEN).is_some_and(|b| u32::from(*b) & flags::CHECKSUM_PRESENT != 0);
    let len = (out.len() - start + if checksum { 4 } else { 0 }) as u32;
    out[start..start + 4].copy_from_slice(&len.to_le_bytes());
    if checksum {
        let sum = crc32c::crc32c(&out[start..]);
        out.extend_from_slice(&sum.to_le_bytes());
    }
}

/// Appends a whole OP_MSG: body and document sequences.
pub fn encode_msg(
    out: &mut Vec<u8>,
    request_id: i32,
    response_to: i32,
    flag_bits: u32,
    body: &RawDoc,
    sequences: &[(&str, &[&RawDoc])],
) {
    let start = open_msg(out, request_id, response_to, flag_bits);
    out.extend_from_slice(body.as_bytes());
    append_sequences(out, sequences);
    close_msg(out, start);
}

/// Document sequences (kind-1 sections) of the OP_MSG that is being written, behind its body.
pub fn append_sequences(out: &mut Vec<u8>, sequences: &[(&str, &[&RawDoc])]) {
    for (name, docs) in sequences {
        let size = 4 + name.len() + 1 + docs.iter().map(|d| d.byte_len()).sum::<usize>();
        out.push(1);
        out.extend_from_slice(&(size as u32).to_le_bytes());
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        for doc in *docs {
            out.extend_from_slice(doc.as_bytes());
        }
    }
}

/// Appends the reply to a request in the shape the request calls for.
///
/// `more_to_come` marks a reply of an exhaust stream that another one will follow. `response_to` is normally
/// the envelope's `request_id`; in a stream it is the id of the reply before. Tells what a compressor did, if one did.
pub fn encode_reply(
    out: &mut Vec<u8>,
    envelope: &Envelope,
    request_id: i32,
    response_to: i32,
    more_to_come: bool,
    body: &RawDoc,
    scratch: &mut Scratch,
) -> Option<Packed> {
    let start = out.len();
    match envelope.style {
        Style::Msg => {
            let mut bits = if more_to_come { flags::MORE_TO_COME } else { 0 };
            if envelope.compressor.is_none() {
                bits |= envelope.flags & flags::CHECKSUM_PRESENT;
            }
            encode_msg(out, request_id, response_to, bits, body, &[]);
        }
        Style::Reply | Style::QueryFailure => {
            let length = Header::LEN + 20 + body.byte_len();
            Header { length, request_id, response_to, op_code: op::REPLY }.write(out);
            let failed = envelope.style == Style::QueryFailure;
            let bits = if failed { REPLY_QUERY_FAILURE } else { REPLY_AWAIT_CAPABLE };
            out.extend_from_slice(&bits.to_le_bytes());
            // No cursor, starting from 0, one document.
            out.extend_from_slice(&[0; 12]);
            out.extend_from_slice(&1u32.to_le_bytes());
            out.extend_from_slice(body.as_bytes());
        }
    }
    compress(out, start, envelope.compressor?, scratch)
}

/// The reply document for an error that the wire layer itself found, for callers that have no command
/// pipeline at hand: `{ok, errmsg, code, codeName}`, or `$err` in a query failure.
pub fn encode_error_body(style: Style, error: &Error) -> DocBuf {
    let mut b = DocBuilder::new();
    match style {
        Style::QueryFailure => {
            b.str("$err", &error.message).i32("code", error.code.0).f64("ok", 0.0);
        }
        Style::Msg | Style::Reply => {
            b.f64("ok", 0.0).str("errmsg", &error.message).i32("code", error.code.0);
            b.str("codeName", &error.code.name());
        }
    }
    b.finish()
}
