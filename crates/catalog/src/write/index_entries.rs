//! Index entries in storage: how they lie, how uniqueness is kept, what a duplicate looks like to the client.

use crate::build::state::SideOp;
use crate::schema::collection::{Collection, Index, KeyFormat};
use crate::schema::durable;
use crate::write::array_marks::PendingMarks;
use crate::write::duplicate::{duplicate_error, key_values};
use crate::write::entry_layout::{bare_value, split_bare, with_rid};
use crate::write::record_id::{self, Record};
use crate::write::unit::WriteUnit;
use pando_base::{Error, Result};
use pando_index::{Key, KeySet};
use pando_query::source::RecordId;
use pando_storage::{Dir, Txn};
use std::ops::Bound;
use std::sync::Arc;

/// What happens to one key of one record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    Add,
    /// Add, for a record id that nobody used before.
    AddFresh,
    Remove,
}

/// Puts or removes one entry, or leaves it to the build when the index is not ready.
pub(crate) fn apply(
    unit: &mut WriteUnit,
    coll: &Collection,
    index: &Arc<Index>,
    record: &Record,
    change: Change,
    key: Key<'_>,
) -> Result<()> {
    if let Some(build) = &index.building {
        let op = if change == Change::Remove { SideOp::Remove } else { SideOp::Add };
        let (seq, row) = build.side_row(op, &record.key, key);
        return unit.txn.put_new(build.side, &seq, &row);
    }
    if unit.precedes(index) {
        return Err(Error::write_conflict());
    }
    let checked = !unit.is_applying();
    match (index.format, change) {
        (KeyFormat::Bare, Change::Remove) => remove_bare(&mut unit.txn, coll, index, record, key),
        (KeyFormat::Bare, _) => add_bare(&mut unit.txn, coll, index, record, key, checked),
        (KeyFormat::WithRid, Change::Remove) => {
            let k = with_rid(key.bytes, record);
            unit.txn.delete(index.ident, &k)
        }
        (KeyFormat::WithRid, add) => {
            if checked && index.spec.rejects_duplicates() {
                check_unique(&mut unit.txn, coll, index, record, key)?;
            }
            let k = with_rid(key.bytes, record);
            if add == Change::AddFresh {
                unit.txn.put_new(index.ident, &k, key.type_bits)
            } else {
                unit.txn.put(index.ident, &k, key.type_bits)
            }
        }
    }
}

fn add_bare(
    txn: &mut Txn,
    coll: &Collection,
    index: &Index,
    record: &Record,
    key: Key<'_>,
    checked: bool,
) -> Result<()> {
    let value = bare_value(record, key.type_bits);
    if !checked {
        return txn.put(index.ident, key.bytes, &value);
    }
    match txn.get(index.ident, key.bytes)? {
        None => txn.insert(index.ident, key.bytes, &value),
        Some(there) if split_bare(&there)?.0 == record.key => txn.put(index.ident, key.bytes, &value),
        Some(_) => Err(duplicate(coll, index, key)),
    }
}

/// Removes an entry unless the key belongs to another record by now (which only happens while replaying).
fn remove_bare(
    txn: &mut Txn,
    _coll: &Collection,
    index: &Index,
    record: &Record,
    key: Key<'_>,
) -> Result<()> {
    match txn.get(index.ident, key.bytes)? {
        Some(there) if split_bare(&there)?.0 != record.key => Ok(()),
        _ => txn.delete(index.ident, key.bytes),
    }
}

/// Uniqueness in an index whose keys carry record ids: nobody else may have the key, and two writers adding it at
/// once must meet on one row, so the bare key is written too (as a deletion).
fn check_unique(
    txn: &mut Txn,
    coll: &Collection,
    index: &Index,
    record: &Record,
    key: Key<'_>,
) -> Result<()> {
    txn.delete(index.ident, key.bytes)?;
    for rid in records_of(txn, coll, index, key.bytes)? {
        if record_id::storage_key(&rid) != record.key {
            return Err(duplicate(coll, index, key));
        }
    }
    Ok(())
}

/// The first two records that an index has under exactly this key.
pub(crate) fn records_of(txn: &Txn, coll: &Collection, index: &Index, key: &[u8]) -> Result<Vec<RecordId>> {
    if index.format == KeyFormat::Bare {
        let found = txn.get(index.ident, key)?;
        return found
            .map(|v| record_id::from_storage_key(coll.is_clustered(), split_bare(&v)?.0))
            .into_iter()
            .collect();
    }
    let mut end = key.to_vec();
    end.push(pando_bson::keystring::AFTER);
    let mut cursor = txn.scan(index.ident, Bound::Included(key), Bound::Excluded(&end), Dir::Forward)?;
    let mut out = Vec::new();
    while let Some((k, _)) = cursor.next()? {
        let (bare, rid) = record_id::split(coll.is_clustered(), &k)?;
        if bare != key || out.len() == 2 {
            break;
        }
        out.push(rid);
    }
    Ok(out)
}

/// Notes which paths of the document held arrays: for readers at once, for the durable row with the unit.
pub(crate) fn note_arrays(unit: &mut WriteUnit, coll: &Collection, index: &Arc<Index>, keys: &KeySet) {
    let arrays = keys.multikey || keys.len() > 1;
    if !arrays || index.state.knows(&keys.marks, &keys.wild_paths) {
        return;
    }
    let pending = |m: &PendingMarks| {
        keys.marks.iter().enumerate().all(|(i, b)| m.bits.get(i).is_some_and(|have| have & b == *b))
            && keys.wild_paths.iter().all(|p| m.paths.contains(p))
    };
    if unit.pending_marks(index).any(pending) {
        return;
    }
    let paths = keys.wild_paths.iter().cloned().collect();
    index.state.see(&keys.marks, &paths, index.wildcard.as_deref());
    let bits = keys.marks.clone();
    unit.note_marks(PendingMarks {
        collection: coll.uuid,
        index: index.clone(),
        bits,
        paths: keys.wild_paths.clone(),
        written: false,
    });
}

/// Writes the catalog row when this unit has met arrays that the row does not know yet.
pub(crate) fn write_marks(unit: &mut WriteUnit, coll: &Collection) -> Result<()> {
    if !unit.defers_marks() && unit.take_unwritten_marks() {
        let (txn, marks) = unit.txn_and_marks();
        durable::put_row(txn, coll, marks.iter())?;
    }
    Ok(())
}

fn duplicate(coll: &Collection, index: &Index, key: Key<'_>) -> Error {
    duplicate_error(coll, index, &key_values(index, key))
}
