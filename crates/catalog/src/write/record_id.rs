//! Record ids as storage keys.
//!
//! Ordinary collections: eight bytes, ascending with insertion. Clustered ones: the key string of `_id`.

use crate::schema::collection::Collection;
use pando_base::{Error, Result};
use pando_bson::RawDoc;
use pando_bson::keystring::{
    Directions, KeyBuilder, append_record_id, append_record_key, split_record_id, split_record_key,
};
use pando_query::source::RecordId;

/// A record id with its storage key.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) key: RecordKey,
    long: Option<i64>,
}

/// The storage key of a record.
pub(crate) type RecordKey = Vec<u8>;

pub(crate) fn long_key(rid: i64) -> [u8; 8] {
    ((rid as u64) ^ (1 << 63)).to_be_bytes()
}

fn long_of(key: &[u8]) -> Option<i64> {
    Some((u64::from_be_bytes(key.try_into().ok()?) ^ (1 << 63)) as i64)
}

impl Record {
    pub(crate) fn of(rid: &RecordId) -> Record {
        match rid {
            RecordId::Long(n) => Record { key: long_key(*n).to_vec(), long: Some(*n) },
            RecordId::Key(k) => Record { key: k.to_vec(), long: None },
        }
    }
    /// Appends this record id to an index key.
    pub(crate) fn append_to(&self, key: &mut Vec<u8>) {
        match self.long {
            Some(n) => append_record_id(key, n),
            None => append_record_key(key, &self.key),
        }
    }
}

/// The storage key of a record id.
pub(crate) fn storage_key(rid: &RecordId) -> RecordKey {
    Record::of(rid).key
}

/// The record id that a storage key stands for.
pub(crate) fn from_storage_key(clustered: bool, key: &[u8]) -> Result<RecordId> {
    if clustered {
        return Ok(RecordId::Key(bytes::Bytes::copy_from_slice(key)));
    }
    long_of(key).map(RecordId::Long).ok_or_else(|| Error::internal("damaged record key"))
}

/// Splits an index key into its key string and the record id behind it.
pub(crate) fn split(clustered: bool, key: &[u8]) -> Result<(&[u8], RecordId)> {
    let parts = if clustered {
        split_record_key(key).map(|(k, r)| (k, RecordId::Key(bytes::Bytes::copy_from_slice(r))))
    } else {
        split_record_id(key).map(|(k, r)| (k, RecordId::Long(r)))
    };
    parts.ok_or_else(|| Error::internal("damaged index key"))
}

/// The key string of a document's `_id` (with the collection's collation).
pub(crate) fn id_key(coll: &Collection, doc: &RawDoc) -> Result<Vec<u8>> {
    let id = doc.elem("_id").ok_or_else(|| Error::internal("a document without _id"))?;
    let mut b = KeyBuilder::new(Directions::ASCENDING);
    let order = coll.collation().map(|c| &**c as &dyn pando_bson::compare::StringOrder);
    b.append_elem(&id, order);
    Ok(b.finish())
}

/// The record of a document to insert and its id as the log tells it.
pub(crate) fn for_insert(coll: &Collection, doc: &RawDoc, rid: i64) -> Result<(Record, Option<i64>)> {
    if coll.is_clustered() {
        return Ok((Record { key: id_key(coll, doc)?, long: None }, None));
    }
    Ok((Record { key: long_key(rid).to_vec(), long: Some(rid) }, Some(rid)))
}

/// The record id as the log tells it.
pub(crate) fn logged(rid: &RecordId) -> Option<i64> {
    match rid {
        RecordId::Long(n) => Some(*n),
        RecordId::Key(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_keys_order_like_their_ids() {
        let ids = [i64::MIN, -5, -1, 0, 1, 255, 256, i64::MAX];
        for pair in ids.windows(2) {
            assert!(long_key(pair[0]) < long_key(pair[1]));
        }
        for id in ids {
            assert_eq!(from_storage_key(false, &long_key(id)).unwrap(), RecordId::Long(id));
        }
    }
}
