//! Replaced versions in the tables: found by the timestamp at which they were replaced.

use crate::bytes::Bytes;
use crate::kv::{Kv, Tree};
use crate::row;
use crate::snapshot::Snapshot;
use lsm_tree::Slice;
use pando_base::Result;
use std::ops::Bound;

/// The payload of [`find_value`].
pub(crate) fn find(
    kv: &dyn Kv,
    snap: &Snapshot,
    ident: u32,
    key: &[u8],
    current: u64,
) -> Result<Option<Bytes>> {
    Ok(find_value(kv, snap, ident, key, current)?.map(row::payload))
}

/// The version of `key` that `snap` sees, given that the current row (at `current`) is unseen.
///
/// Versions of a key follow one another as `[start, stop)`; where a stop meets no next start the key was absent.
/// So this walks from the unseen present into the past until a start, or a deletion, is seen.
pub(crate) fn find_value(
    kv: &dyn Kv,
    snap: &Snapshot,
    ident: u32,
    key: &[u8],
    current: u64,
) -> Result<Option<Slice>> {
    let mut unseen = current;
    let above = row::history_key(ident, key, snap.read.saturating_add(1));
    let last = row::history_key(ident, key, u64::MAX);
    // The version replaced first after the read timestamp covers it, if any does. (One that the snapshot sees replaced
    // all the same was so by a prepared transaction that takes effect before its entry.)
    if snap.read < u64::MAX {
        let later = kv.range(Tree::History, Bound::Included(&above), Bound::Included(&last), false);
        for item in later {
            let (k, value) = item?;
            if snap.sees(row::stop_of(&k)) {
                continue;
            }
            let (start, _) = row::header(&value)?;
            if start == 0 || snap.sees(start) {
                return Ok(Some(value));
            }
            unseen = start;
            break;
        }
    }
    if snap.in_flight.is_empty() {
        return Ok(None);
    }
    let first = row::history_key(ident, key, 0);
    for item in kv.range(Tree::History, Bound::Included(&first), Bound::Excluded(&above), true) {
        let (k, value) = item?;
        let stop = row::stop_of(&k);
        if stop != unseen && snap.sees(stop) {
            return Ok(None);
        }
        let (start, _) = row::header(&value)?;
        if start == 0 || snap.sees(start) {
            return Ok(Some(value));
        }
        unseen = start;
    }
    Ok(None)
}

/// When the last version replaced or deleted at or below `upto` ended.
pub(crate) fn last_stop(kv: &dyn Kv, ident: u32, key: &[u8], upto: u64) -> Result<Option<u64>> {
    let (first, last) = (row::history_key(ident, key, 0), row::history_key(ident, key, upto));
    let mut versions = kv.range(Tree::History, Bound::Included(&first), Bound::Included(&last), true);
    Ok(versions.next().transpose()?.map(|(k, _)| row::stop_of(&k)))
}
