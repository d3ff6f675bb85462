//! How a row lies in a table: key = ident, user key; value = kind, commit timestamp, payload.
//!
//! History rows have the key ident, user key (each zero byte followed by 0xff), two zero bytes, stop timestamp:
//! they sort like the rows themselves, all versions of one key are neighbours and nothing lies between them.

use crate::bytes::Bytes;
use byteview::ByteView;
use lsm_tree::Slice;
use pando_base::{Error, ErrorCode, Result};

/// Bytes in front of the payload.
pub(crate) const HEADER_BYTES: usize = 9;
const LIVE: u8 = 0;
const DELETED: u8 = 1;

/// Longest user key: tables store key lengths in 16 bits, and history may double a key.
pub(crate) const KEY_BYTES_MAX: usize = 32_700;

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
    let mut k = Vec::with_capacity(24 + user.len());
    k.extend_from_slice(&ident.to_be_bytes());
    for part in user.split_inclusive(|b| *b == 0) {
        k.extend_from_slice(part);
        if part.last() == Some(&0) {
            k.push(0xff);
        }
    }
    k.extend_from_slice(&[0, 0]);
    k.extend_from_slice(&stop.to_be_bytes());
    k
}
/// The stop timestamp of a history key.
pub(crate) fn stop_of(key: &[u8]) -> u64 {
    key.last_chunk::<8>().map_or(0, |c| u64::from_be_bytes(*c))
}
/// A table value; `None` is a deleted row's marker.
pub(crate) fn value(ts: u64, payload: Option<&[u8]>) -> Slice {
    let mut head = [0u8; HEADER_BYTES];
    head[0] = if payload.is_some() { LIVE } else { DELETED };
    head[1..].copy_from_slice(&ts.to_be_bytes());
    Slice::from(ByteView::fused(&head, payload.unwrap_or_default()))
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
