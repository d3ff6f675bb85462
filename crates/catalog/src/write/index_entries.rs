//! Index entries in storage: how they lie, how uniqueness is kept, what a duplicate looks like to the client.

use crate::build::state::SideOp;
use crate::schema::collection::{Collection, Index, KeyFormat};
use crate::schema::durable;
use crate::write::record_id::{self, Record};
use crate::write::unit::{PendingMarks, WriteUnit};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::keystring::KeyReader;
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_index::{Key, KeySet};
use pando_query::source::{IndexKind, RecordId};
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
        return build.side_write(unit, op, record, key);
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

pub(crate) fn with_rid(key: &[u8], record: &Record) -> Vec<u8> {
    let mut k = Vec::with_capacity(key.len() + 10);
    k.extend_from_slice(key);
    record.append_to(&mut k);
    k
}

/// Value of an entry in [`KeyFormat::Bare`]: length of the record key, record key, type bits.
pub(crate) fn bare_value(record: &Record, type_bits: &[u8]) -> Vec<u8> {
    let mut v = Vec::with_capacity(6 + record.key.len() + type_bits.len());
    push_with_length(&mut v, &record.key);
    v.extend_from_slice(type_bits);
    v
}

/// Splits a [`KeyFormat::Bare`] value into record key and type bits.
pub(crate) fn split_bare(value: &[u8]) -> Result<(&[u8], &[u8])> {
    split_length(value).ok_or_else(|| Error::internal("damaged index entry"))
}

/// Says that the length follows in four bytes: record keys of clustered collections can be long.
const LONG_LENGTH: u16 = u16::MAX;

/// Appends a record key behind its length.
pub(crate) fn push_with_length(out: &mut Vec<u8>, record: &[u8]) {
    match u16::try_from(record.len()) {
        Ok(n) if n < LONG_LENGTH => out.extend_from_slice(&n.to_be_bytes()),
        _ => {
            out.extend_from_slice(&LONG_LENGTH.to_be_bytes());
            out.extend_from_slice(&(record.len() as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(record);
}

/// A record key that lies behind its length, and the rest.
pub(crate) fn split_length(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (n, rest) = bytes.split_first_chunk::<2>()?;
    match u16::from_be_bytes(*n) {
        LONG_LENGTH => {
            let (n, rest) = rest.split_first_chunk::<4>()?;
            rest.split_at_checked(u32::from_be_bytes(*n) as usize)
        }
        n => rest.split_at_checked(usize::from(n)),
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
    if let Some(info) = coll.info.indexes.iter().find(|i| i.name == index.spec.name) {
        info.multikey.any.store(true, std::sync::atomic::Ordering::Release);
        keys.marks.iter().enumerate().for_each(|(i, b)| {
            info.multikey.mark(i, *b);
        });
    }
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

/// The values of a key, under the names of the key pattern.
pub(crate) fn key_values(index: &Index, key: Key<'_>) -> DocBuf {
    let mut values = KeyReader::new(key.bytes, index.keys.directions(), key.type_bits);
    let mut b = DocBuilder::new();
    for f in &index.spec.fields {
        if index.spec.kind == IndexKind::Wildcard && f.path.ends_with("$**") {
            let _ = values.next_into(&mut b, "$_path");
        }
        // Keys made here can be read back; a damaged one only shortens the message.
        if !values.next_into(&mut b, &f.path).unwrap_or(false) {
            break;
        }
    }
    b.finish()
}

fn duplicate(coll: &Collection, index: &Index, key: Key<'_>) -> Error {
    duplicate_error(coll, index, &key_values(index, key))
}

pub(crate) fn duplicate_clustered(coll: &Collection, doc: &RawDoc) -> Error {
    let mut value = DocBuilder::new();
    if let Some(id) = doc.elem("_id") {
        value.elem(id);
    }
    let mut pattern = DocBuilder::new();
    pattern.i32("_id", 1);
    let name = coll.options.clustered.as_ref().map_or("_id_", |c| &c.name);
    build_duplicate(coll, name, &pattern.finish(), &value.finish(), None)
}

/// Code 11000 in MongoDB's words, with `keyPattern` and `keyValue` beside it.
pub(crate) fn duplicate_error(coll: &Collection, index: &Index, values: &RawDoc) -> Error {
    build_duplicate(coll, &index.spec.name, &index.spec.key, values, index.spec.collation.as_deref())
}

fn build_duplicate(
    coll: &Collection,
    name: &str,
    pattern: &RawDoc,
    values: &RawDoc,
    collation: Option<&RawDoc>,
) -> Error {
    // Of long strings the beginning.
    let mut shown = format!("{values:#}");
    let mut extra = DocBuilder::new();
    extra.raw_doc("keyPattern", pattern);
    let mut text = String::new();
    if let Some(c) = collation {
        text = format!(" collation: {c}");
        let (hex, flags) = hex_values(values);
        shown = hex_text(&hex);
        extra.raw_doc("keyValue", &hex);
        extra.array("hexEncoded", |a| {
            for f in flags {
                a.value(Value::Boolean(f));
            }
        });
        extra.raw_doc("collation", c);
    } else {
        extra.raw_doc("keyValue", values);
    }
    let message =
        format!("E11000 duplicate key error collection: {} index: {name}{text} dup key: {shown}", coll.ns);
    Error::new(ErrorCode::DuplicateKey, message).with_extra(extra.finish().into_bytes())
}

/// Strings of a collated key are sort keys: shown in hex.
fn hex_values(values: &RawDoc) -> (DocBuf, Vec<bool>) {
    let mut b = DocBuilder::new();
    let mut flags = Vec::new();
    for e in values {
        match e.value() {
            Value::String(s) => {
                let hex: String = s.bytes().map(|b| format!("{b:02x}")).collect();
                b.str(e.name(), &hex);
                flags.push(true);
            }
            _ => {
                b.elem(e);
                flags.push(false);
            }
        }
    }
    (b.finish(), flags)
}

fn hex_text(values: &RawDoc) -> String {
    let mut parts = Vec::new();
    for e in values {
        match e.value() {
            Value::String(s) => parts.push(format!("{}: \"0x{s}\"", e.name())),
            v => parts.push(format!("{}: {v}", e.name())),
        }
    }
    format!("{{ {} }}", parts.join(", "))
}
