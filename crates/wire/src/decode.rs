//! Requests from bytes.

use crate::compress::{Compressors, Scratch};
use crate::header::{Header, flags, message_len, op};
use crate::{Envelope, Frame, Style, WireError, legacy};
use pando_base::{Error, ErrorCode, limits};
use pando_bson::RawDoc;

/// An OP_MSG: one body document and any number of named document sequences.
#[derive(Debug)]
pub struct OpMsg<'a> {
    pub flags: u32,
    pub body: &'a RawDoc,
    pub sequences: Vec<Sequence<'a>>,
}

impl<'a> OpMsg<'a> {
    pub fn sequence(&self, name: &str) -> Option<&Sequence<'a>> {
        self.sequences.iter().find(|s| s.name == name)
    }
}

/// A kind-1 section: documents outside the body, as if an array of that name were in it.
#[derive(Clone, Copy, Debug)]
pub struct Sequence<'a> {
    pub name: &'a str,
    bytes: &'a [u8],
    count: usize,
}

impl<'a> Sequence<'a> {
    /// Number of documents.
    pub fn len(&self) -> usize {
        self.count
    }
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// The documents one behind the other.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
    pub fn iter(&self) -> Docs<'a> {
        Docs { rest: self.bytes }
    }
}

impl<'a> IntoIterator for &Sequence<'a> {
    type Item = &'a RawDoc;
    type IntoIter = Docs<'a>;
    fn into_iter(self) -> Docs<'a> {
        self.iter()
    }
}

/// Walks the documents of a sequence.
#[derive(Clone, Debug)]
pub struct Docs<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Docs<'a> {
    type Item = &'a RawDoc;
    fn next(&mut self) -> Option<&'a RawDoc> {
        if self.rest.is_empty() {
            return None;
        }
        let doc = RawDoc::trusted(self.rest);
        self.rest = self.rest.get(doc.byte_len()..).unwrap_or_default();
        Some(doc)
    }
}

/// Decodes the message at the front of `input`; `None` when it is not all there yet.
///
/// `allowed` are the compressors agreed on in the handshake; a message compressed otherwise closes the
/// connection. Decompressed bytes live in `scratch` until the next call.
pub fn decode<'a>(
    input: &'a [u8],
    allowed: Compressors,
    scratch: &'a mut Scratch,
) -> Result<Option<(Frame<'a>, Envelope)>, WireError> {
    let Some(length) = message_len(input)? else { return Ok(None) };
    let (Some(message), Some(header)) = (input.get(..length), Header::read(input)) else { return Ok(None) };
    let mut envelope = Envelope {
        request_id: header.request_id,
        consumed: length,
        plain_bytes: length,
        style: Style::Msg,
        flags: 0,
        compressor: None,
    };
    let frame = if header.op_code == op::COMPRESSED {
        let (compressor, op_code, message) = scratch.decompress(message, header, allowed)?;
        envelope.compressor = Some(compressor);
        envelope.plain_bytes = message.len();
        plain(message, op_code, &mut envelope)?
    } else {
        plain(message, header.op_code, &mut envelope)?
    };
    Ok(Some((frame, envelope)))
}

/// A member's reply, whole. It may be larger than any document of a user: a log entry can carry one before and one after.
pub fn decode_reply(input: &[u8]) -> Result<OpMsg<'_>, WireError> {
    let not_a_reply = WireError::Close("not a reply");
    let header = Header::read(input).filter(|h| h.op_code == op::MSG && h.length == input.len());
    let Some(header) = header else { return Err(not_a_reply) };
    let mut envelope = Envelope {
        request_id: header.request_id,
        consumed: header.length,
        plain_bytes: header.length,
        style: Style::Msg,
        flags: 0,
        compressor: None,
    };
    let reply = op_msg(input, &mut envelope, limits::WIRE_MESSAGE_BYTES_MAX)?;
    if reply.sequences.is_empty() { Ok(reply) } else { Err(not_a_reply) }
}

fn plain<'a>(message: &'a [u8], op_code: i32, envelope: &mut Envelope) -> Result<Frame<'a>, WireError> {
    match op_code {
        op::MSG => op_msg(message, envelope, limits::BSON_INTERNAL_BYTES_MAX).map(Frame::Msg),
        op::QUERY => legacy::op_query(message, envelope).map(Frame::Query),
        op::GET_MORE => Err(legacy::removed("OP_GET_MORE", envelope)),
        _ => Err(WireError::Close("unknown opcode")),
    }
}

/// With a body of up to `max` bytes.
fn op_msg<'a>(message: &'a [u8], envelope: &mut Envelope, max: usize) -> Result<OpMsg<'a>, WireError> {
    let rest = &message[Header::LEN..];
    let Some(bits) = rest.first_chunk::<4>().map(|b| u32::from_le_bytes(*b)) else {
        return Err(WireError::Close("OP_MSG without flags"));
    };
    let known = flags::CHECKSUM_PRESENT | flags::MORE_TO_COME;
    if bits & flags::REQUIRED & !known != 0 {
        return Err(WireError::Close("unknown required OP_MSG flag"));
    }
    envelope.flags = bits;
    let mut sections = &rest[4..];
    if bits & flags::CHECKSUM_PRESENT != 0 {
        let Some((body, sum)) = sections.split_last_chunk::<4>() else {
            let e = Error::location(51252, "Invalid message size for an OpMsg containing a checksum");
            return Err(WireError::Reply(*envelope, e));
        };
        if crc32c::crc32c(&message[..message.len() - 4]) != u32::from_le_bytes(*sum) {
            return Err(WireError::Close("OP_MSG checksum does not match"));
        }
        sections = body;
    }
    sections_of(sections, bits, max).map_err(|e| WireError::Reply(*envelope, e))
}

fn sections_of(mut rest: &[u8], flags: u32, max: usize) -> Result<OpMsg<'_>, Error> {
    let mut body: Option<&RawDoc> = None;
    let mut sequences: Vec<Sequence<'_>> = Vec::new();
    while let Some((kind, after)) = rest.split_first() {
        rest = match kind {
            0 => {
                if body.is_some() {
                    return Err(Error::location(40430, "Multiple body sections in message"));
                }
                let doc = RawDoc::validate_prefix_within(after, max)?;
                body = Some(doc);
                &after[doc.byte_len()..]
            }
            1 => {
                let (sequence, after) = sequence_of(after)?;
                if sequences.iter().any(|s| s.name == sequence.name) {
                    return Err(Error::location(
                        40431,
                        format!("Duplicate document sequence: {}", sequence.name),
                    ));
                }
                if sequences.len() == limits::WIRE_SEQUENCES_MAX {
                    return Err(Error::new(
                        ErrorCode::TooManyDocumentSequences,
                        "Too many document sequences in OP_MSG",
                    ));
                }
                sequences.push(sequence);
                after
            }
            2 => return Err(Error::new(ErrorCode::Unauthorized, "Unsupported Security Token provided")),
            other => return Err(Error::location(40432, format!("Unknown section kind {other}"))),
        };
    }
    let Some(body) = body else {
        return Err(Error::location(40587, "OP_MSG messages must have a body"));
    };
    if let Some(twice) = sequences.iter().find(|s| body.elem(s.name).is_some()) {
        let text = format!("Duplicate field between body and document sequence {}", twice.name);
        return Err(Error::location(40433, text));
    }
    Ok(OpMsg { flags, body, sequences })
}

/// Reads `{i32 size, cstring name, documents}`; the size counts itself.
fn sequence_of(bytes: &[u8]) -> Result<(Sequence<'_>, &[u8]), Error> {
    let past_end = |wanted: u32, have: usize| {
        Error::new(
            ErrorCode::Overflow,
            format!("Invalid advance ({wanted}) past end of buffer[{have}] at offset: 0"),
        )
    };
    let Some((head, after)) = bytes.split_first_chunk::<4>() else {
        return Err(past_end(4, bytes.len()));
    };
    let inner = u32::from_le_bytes(*head).wrapping_sub(4);
    let Some((payload, after)) = after.split_at_checked(inner as usize) else {
        return Err(past_end(inner, after.len()));
    };
    let Some(end) = payload.iter().position(|b| *b == 0) else {
        return Err(Error::new(ErrorCode::Overflow, "reading a string that is not NUL terminated"));
    };
    let name = std::str::from_utf8(&payload[..end])
        .map_err(|_| Error::new(ErrorCode::BadValue, "Document sequence name is not UTF-8"))?;
    let docs = &payload[end + 1..];
    let (mut rest, mut count) = (docs, 0);
    while !rest.is_empty() {
        rest = &rest[RawDoc::validate_prefix(rest)?.byte_len()..];
        count += 1;
    }
    Ok((Sequence { name, bytes: docs, count }, after))
}
