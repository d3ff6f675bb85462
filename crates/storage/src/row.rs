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

pub(crate) use pando_base::limits::STORAGE_KEY_BYTES_MAX as KEY_BYTES_MAX;

pub(crate) fn key(ident: u32, user: &[u8]) -> Slice {
    Slice::from(ByteView::fused(&ident.to_be_bytes(), user))
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
fn head(ts: u64, kind: u8) -> [u8; HEADER_BYTES] {
    let mut head = [0u8; HEADER_BYTES];
    head[0] = kind;
    head[1..].copy_from_slice(&ts.to_be_bytes());
    head
}
/// A payload with the header of a row committed at `ts` hidden in front of it: if that is what happens, the row
/// goes to its table without another copy.
pub(crate) fn stamped(ts: u64, payload: &[u8]) -> Bytes {
    Bytes::from_slice(stamped_value(ts, payload), HEADER_BYTES)
}
/// A live row's table value.
pub(crate) fn stamped_value(ts: u64, payload: &[u8]) -> Slice {
    Slice::from(ByteView::fused(&head(ts, LIVE), payload))
}
/// A table value; `None` is a deleted row's marker.
pub(crate) fn value(ts: u64, payload: Option<&Bytes>) -> Slice {
    match payload {
        None => Slice::from(&head(ts, DELETED)),
        Some(payload) => {
            let head = head(ts, LIVE);
            payload.with_header(&head).unwrap_or_else(|| Slice::from(ByteView::fused(&head, payload)))
        }
    }
}
/// (timestamp, deleted) of a table value.
#[inline]
pub(crate) fn header(value: &[u8]) -> Result<(u64, bool)> {
    match (value.first(), value.get(1..HEADER_BYTES).and_then(|b| b.first_chunk::<8>())) {
        (Some(kind), Some(ts)) => Ok((u64::from_be_bytes(*ts), *kind == DELETED)),
        _ => Err(Error::new(ErrorCode::InternalError, "a stored row is shorter than its header")),
    }
}
/// The same of a value that is looked at where it lies. [`header`] has refused what is shorter.
#[inline]
pub(crate) fn payload_of(value: &[u8]) -> &[u8] {
    &value[HEADER_BYTES..]
}
pub(crate) fn payload(value: Slice) -> Bytes {
    Bytes::from_slice(value, HEADER_BYTES)
}
/// The smallest engine key above every key of `ident`; `None` after the last ident.
pub(crate) fn ident_end(ident: u32) -> Option<[u8; 4]> {
    ident.checked_add(1).map(u32::to_be_bytes)
}
