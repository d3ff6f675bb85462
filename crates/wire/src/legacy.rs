//! OP_QUERY, kept for the handshake of drivers that do not yet know whether the server speaks OP_MSG.

use crate::header::{Header, flags};
use crate::{Envelope, Style, WireError};
use pando_base::{Error, ErrorCode};
use pando_bson::{RawDoc, Value};

/// A command in an OP_QUERY on `<db>.$cmd`. Only the handshake commands may be served from it (others get
/// code 352, UnsupportedOpQueryCommand, from the command layer).
#[derive(Debug)]
pub struct OpQuery<'a> {
    pub db: &'a str,
    /// The command, taken out of `$query` if it was wrapped.
    pub command: &'a RawDoc,
}

/// The `exhaust` bit of OP_QUERY's own flags.
const QUERY_EXHAUST: u32 = 64;

const SEE: &str = "The client driver may require an upgrade. For more details see \
                   https://dochub.mongodb.org/core/legacy-opcode-removal";

impl OpQuery<'_> {
    /// The error for every command but the handshake.
    pub fn unsupported(name: &str) -> Error {
        Error::new(
            ErrorCode::UnsupportedOpQueryCommand,
            format!("Unsupported OP_QUERY command: {name}. {SEE}"),
        )
    }
}

/// The answer to opcodes that were removed.
pub(crate) fn removed(opcode: &str, envelope: &mut Envelope) -> WireError {
    envelope.style = Style::QueryFailure;
    WireError::Reply(*envelope, Error::location(5_739_101, format!("{opcode} is no longer supported. {SEE}")))
}

pub(crate) fn op_query<'a>(message: &'a [u8], envelope: &mut Envelope) -> Result<OpQuery<'a>, WireError> {
    const SHORT: WireError = WireError::Close("OP_QUERY is too short");
    let rest = &message[Header::LEN..];
    let Some((bits, rest)) = rest.split_first_chunk::<4>() else { return Err(SHORT) };
    let Some(end) = rest.iter().position(|b| *b == 0) else { return Err(SHORT) };
    let (Ok(ns), rest) = (std::str::from_utf8(&rest[..end]), &rest[end + 1..]) else { return Err(SHORT) };
    let Some((_skip, rest)) = rest.split_first_chunk::<4>() else { return Err(SHORT) };
    let Some((wanted, documents)) = rest.split_first_chunk::<4>() else { return Err(SHORT) };

    let Some(db) = ns.strip_suffix(".$cmd") else { return Err(removed("OP_QUERY", envelope)) };
    envelope.style = Style::Reply;
    envelope.flags = 0;
    command(u32::from_le_bytes(*bits), ns, i32::from_le_bytes(*wanted), documents)
        .map(|command| OpQuery { db, command })
        .map_err(|e| WireError::Reply(*envelope, e))
}

fn command<'a>(bits: u32, ns: &str, wanted: i32, documents: &'a [u8]) -> Result<&'a RawDoc, Error> {
    let bad_object = |e: Error| {
        let text = format!("Client Error: bad object in message: {}", e.message);
        Error::new(e.code, text)
    };
    let query = RawDoc::validate_prefix(documents).map_err(bad_object)?;
    let rest = &documents[query.byte_len()..];
    if !rest.is_empty() {
        if rest.len() < 5 {
            let text = "Client Error: Remaining data too small for BSON object";
            return Err(Error::new(ErrorCode::InvalidBSON, text));
        }
        RawDoc::validate_prefix(rest).map_err(bad_object)?;
    }
    if bits & QUERY_EXHAUST != 0 {
        let text = format!("The 'exhaust' OP_QUERY flag is invalid for commands: {ns} {query}");
        return Err(Error::location(18527, text));
    }
    if !matches!(wanted, 1 | -1) {
        let text = format!("Bad numberToReturn ({wanted}) for $cmd type ns - can only be 1 or -1");
        return Err(Error::location(16979, text));
    }
    match query.first() {
        Some(e) if matches!(e.name(), "$query" | "query") => match e.value() {
            Value::Document(inner) => Ok(inner),
            _ => Ok(query),
        },
        _ => Ok(query),
    }
}

/// Flag bits of OP_REPLY.
pub(crate) const REPLY_AWAIT_CAPABLE: u32 = 8;
pub(crate) const REPLY_QUERY_FAILURE: u32 = 2;

// OP_MSG bits must not leak into a legacy reply.
const _: () = assert!(flags::MORE_TO_COME == 2);
