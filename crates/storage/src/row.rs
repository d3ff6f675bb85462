//! How a row lies in a table: key = ident, user key; value = kind, commit timestamp, payload.
//!
//! History rows have the key ident, length of the user key, user key, stop timestamp, so that all of one key's
//! versions are neighbours and no other key's rows lie between them.

use crate::bytes::Bytes;
use lsm_tree::Slice;
use pando_base::{Error, ErrorCode, Result};

/// Bytes in front of the payload.
pub(crate) const HEADER_BYTES: usize = 9;
const LIVE: u8 = 0;
const DELETED: u8 = 1;

/// Longest user key: tables store key lengths in 16 bits, history adds a few bytes.
pub(crate) const KEY_BYTES_MAX: usize = 65_000;

pub(crate) fn key(ident: u32, user: &[u8]) -> Vec<u8> {
    let mut k = Vec::with_capacity(4 + user.len());
    k.extend_from_slice(&ident.to_be_bytes());
    k.extend_from_slice(user);
    k
}
/// The ident of an engine key (of any tree).
pub(crate) fn ident_of(key: &[u8]) -> u32 {
    key.first_chunk::<4>().map_or(0, |c| u32::from_be_bytes(*c))
}
pub(crate) fn history_key(ident: u32, user: &[u8], stop: u64) -> Vec<u8> {
    let mut k = Vec::with_capacity(14 + user.len());
    k.extend_from_slice(&ident.to_be_bytes());
    k.extend_from_slice(&(user.len() as u16).to_be_bytes());
    k.extend_from_slice(user);
    k.extend_from_slice(&stop.to_be_bytes());
    k
}
/// The stop timestamp of a history key.
pub(crate) fn stop_of(key: &[u8]) -> u64 {
    key.last_chunk::<8>().map_or(0, |c| u64::from_be_bytes(*c))
}
/// A table value; `None` is a deleted row's marker.
pub(crate) fn value(ts: u64, payload: Option<&[u8]>) -> Vec<u8> {
    let body = payload.unwrap_or_default();
    let mut v = Vec::with_capacity(HEADER_BYTES + body.len());
    v.push(if payload.is_some() { LIVE } else { DELETED });
    v.extend_from_slice(&ts.to_be_bytes());
    v.extend_from_slice(body);
    v
}
/// (timestamp, deleted) of a table value.
#[inline]
pub(crate) fn header(value: &[u8]) -> Result<(u64, bool)> {
    match (value.first(), value.get(1..HEADER_BYTES).and_then(|b| b.first_chunk::<8>())) {
        (Some(kind), Some(ts)) => Ok((u64::from_be_bytes(*ts), *kind == DELETED)),
        _ => Err(Error::new(ErrorCode::InternalError, "a stored row is shorter than its header")),
    }
}
pub(crate) fn payload(value: Slice) -> Bytes {
    Bytes::from_slice(value, HEADER_BYTES)
}
/// The smallest engine key above every key of `ident`; `None` after the last ident.
pub(crate) fn ident_end(ident: u32) -> Option<[u8; 4]> {
    ident.checked_add(1).map(u32::to_be_bytes)
}
