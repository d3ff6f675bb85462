//! Copying another member's collections into an empty node (R-IS-2, R-IS-4), and emptying it again.
//!
//! Documents are copied while the other member changes them, under its record ids and at timestamps below those of
//! all entries: every change made since the copying began is applied over the copy later, in order, and applying it
//! twice does no harm. Until then two copies may claim one unique key, so unique indexes made meanwhile keep their keys with record ids.
//!
//! A marker outlives a crash: with it set, a start finds an empty node instead of half a copy. Emptying is a rollback to
//! nothing; a node whose history cannot be rolled back far enough is emptied the same way, and remembers what others
//! may count on its having held.

use crate::Catalog;
use crate::apply::entry::OP;
use crate::copy::refetch::MIN_VALID;
use crate::schema::durable::{self, Parts};
use crate::schema::options::CollectionOptions;
use crate::schema::snapshot::Named;
use crate::write::record_id;
use pando_base::{Error, Namespace, OpTime, Result, Timestamp, Uuid};
use pando_bson::{DocBuf, RawDoc, Value, doc};
use pando_index::IndexSpec;
use pando_query::source::RecordId;
use pando_storage::{Ident, ReadAt};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// There while the node's data is an unfinished copy.
const MARKER: &[u8] = b"initialSync";
/// Where the last copy ended: `{ts}`.
const INITIAL_DATA: &[u8] = b"initialData";
/// What this node held before it gave its data up: `{ts, t}`.
const PROMISED: &[u8] = b"promised";
const RESTORED: &[u8] = b"restored";
const WITHOUT_INDEXES: &[u8] = b"withoutIndexes";

fn ends_at(ts: Timestamp) -> DocBuf {
    doc! { "ts": ts }.to_raw()
}
/// Of a row that this node keeps of itself; a place alone has no term.
pub(crate) fn op_time_of(doc: &RawDoc) -> Result<OpTime> {
    match (doc.get("ts"), doc.get("t")) {
        (Some(Value::Timestamp(ts)), None) => Ok(OpTime::new(ts, -1)),
        (Some(Value::Timestamp(ts)), Some(Value::Int64(t))) => Ok(OpTime::new(ts, t)),
        _ => Err(Error::internal(format!("what this node keeps of itself is damaged: {doc}"))),
    }
}

impl Catalog {
    /// Whether the node's data is an unfinished copy.
    pub fn is_copy_unfinished(&self) -> Result<bool> {
        self.storage().begin(ReadAt::Applied)?.exists(Ident::META, MARKER)
    }
    /// Sets or removes the marker, durably. While it is set unique indexes tolerate duplicates.
    pub fn mark_copy(&self, unfinished: bool) -> Result<()> {
        let mut unit = self.storage().begin_local()?;
        if unfinished {
            unit.put(Ident::META, MARKER, DocBuf::new().as_bytes())?;
        } else {
            unit.delete(Ident::META, MARKER)?;
            unit.put(Ident::META, INITIAL_DATA, ends_at(self.storage().stable()).as_bytes())?;
        }
        unit.commit()?;
        self.0.copying.store(unfinished, Ordering::Release);
        self.storage().sync_local()
    }
    /// The same as long as the process lives, without looking at the disk.
    pub fn is_copying(&self) -> bool {
        self.0.copying.load(Ordering::Acquire)
    }

    /// Whether what the log or another member tells of indexes is made here, too (`buildIndexes` of this member). Kept, because
    /// the log is replayed before the set's configuration is known.
    pub fn set_makes_indexes(&self, yes: bool) -> Result<()> {
        if self.makes_indexes() == yes {
            return Ok(());
        }
        let mut unit = self.storage().begin_local()?;
        match yes {
            true => unit.delete(Ident::META, WITHOUT_INDEXES)?,
            false => unit.put(Ident::META, WITHOUT_INDEXES, DocBuf::new().as_bytes())?,
        }
        unit.commit()?;
        self.0.without_indexes.store(!yes, Ordering::Release);
        self.storage().sync_local()
    }
    pub fn makes_indexes(&self) -> bool {
        !self.0.without_indexes.load(Ordering::Acquire)
    }
    pub(crate) fn load_makes_indexes(&self) -> Result<()> {
        let without = self.storage().begin(ReadAt::Applied)?.exists(Ident::META, WITHOUT_INDEXES)?;
        self.0.without_indexes.store(without, Ordering::Release);
        Ok(())
    }

    /// Forgets every replicated row and the whole log. Nobody may be reading or writing, and the marker must be set: a
    /// crash on the way is answered by doing it again.
    pub fn discard_copy(&self) -> Result<()> {
        if !self.is_copy_unfinished()? {
            return Err(Error::internal("only a copy that is not finished can be discarded"));
        }
        self.forget_imports()?;
        self.storage().start_afresh()?;
        self.storage().cut_log(Timestamp::ZERO)?;
        self.forget_definitions();
        Ok(())
    }

    /// Where this node's history begins: the end of its initial sync. Zero if it never had one.
    pub fn initial_data(&self) -> Result<Timestamp> {
        let row = self.storage().begin(ReadAt::Applied)?.get(Ident::META, INITIAL_DATA)?;
        row.map_or(Ok(Timestamp::ZERO), |doc| Ok(op_time_of(RawDoc::trusted(&doc))?.ts))
    }
    /// This node's history begins here.
    pub(crate) fn note_initial_data(&self, at: Timestamp) -> Result<()> {
        let mut unit = self.storage().begin_local()?;
        unit.put(Ident::META, INITIAL_DATA, ends_at(at).as_bytes())?;
        unit.commit().map(drop)
    }
    /// What this node has told others to hold and may not hold any more.
    pub fn promised(&self) -> Result<OpTime> {
        let row = self.storage().begin(ReadAt::Applied)?.get(Ident::META, PROMISED)?;
        row.map_or(Ok(OpTime::NULL), |doc| op_time_of(RawDoc::trusted(&doc)))
    }
    /// This folder was restored from a backup as a member of its set: what it held, and whom it voted for, after the backup
    /// nobody knows.
    pub fn note_restored(&self) -> Result<()> {
        let mut unit = self.storage().begin_local()?;
        unit.put(Ident::META, RESTORED, DocBuf::new().as_bytes())?;
        unit.commit()?;
        self.storage().sync_local()
    }
    pub fn is_restored(&self) -> Result<bool> {
        Ok(self.storage().begin(ReadAt::Applied)?.get(Ident::META, RESTORED)?.is_some())
    }
    /// It holds what the set does. Durable at the next sync of such rows.
    pub fn end_restored(&self) -> Result<()> {
        let mut unit = self.storage().begin_local()?;
        unit.delete(Ident::META, RESTORED)?;
        unit.commit().map(drop)
    }
    /// The files here were another node's: its promises are not ours, and ours are not known to it. Nor did this node come from
    /// a backup because that one did.
    pub fn take_over_copy(&self, promised: OpTime, restored: bool) -> Result<()> {
        let mut unit = self.storage().begin_local()?;
        match restored {
            true => unit.put(Ident::META, RESTORED, DocBuf::new().as_bytes())?,
            false => unit.delete(Ident::META, RESTORED)?,
        }
        if promised.is_null() {
            unit.delete(Ident::META, PROMISED)?;
        } else {
            let doc = doc! { "ts": promised.ts, "t": promised.t }.to_raw();
            unit.put(Ident::META, PROMISED, doc.as_bytes())?;
        }
        unit.commit()?;
        self.storage().sync_local()
    }
    /// Makes this node empty, whatever it holds, so that it copies another member's data. Entries up to `promised` may
    /// have been counted on by others.
    pub fn give_up_data(&self, promised: OpTime) -> Result<()> {
        let promised = promised.max(self.promised()?);
        let mut unit = self.storage().begin_local()?;
        unit.put(Ident::META, MARKER, DocBuf::new().as_bytes())?;
        let doc = doc! { "ts": promised.ts, "t": promised.t }.to_raw();
        unit.put(Ident::META, PROMISED, doc.as_bytes())?;
        unit.delete(Ident::META, MIN_VALID)?;
        unit.commit()?;
        self.0.before_min_valid.store(false, Ordering::Release);
        self.0.copying.store(true, Ordering::Release);
        self.storage().sync_local()?;
        self.discard_copy()
    }

    /// Makes a collection as `listCollections` and `listIndexes` of the other member show it.
    pub fn clone_collection(
        &self,
        db: &str,
        listed: &RawDoc,
        indexes: &[DocBuf],
        at: Timestamp,
    ) -> Result<Uuid> {
        let bad = || Error::internal(format!("unusable collection description: {listed}"));
        let name = listed.get("name").and_then(|v| v.as_str()).ok_or_else(bad)?;
        let uuid = match listed.get_path("info.uuid") {
            Some(Value::Binary { bytes, .. }) => Uuid::from_slice(bytes).ok_or_else(bad)?,
            _ => return Err(bad()),
        };
        let options = CollectionOptions::from_stored(
            listed.get("options").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty()),
        )?;
        let id_index =
            listed.get("idIndex").and_then(|v| v.as_doc()).map(IndexSpec::from_stored).transpose()?;
        let mut unit = self.begin_applied(at)?;
        let mut coll =
            self.add_collection(&mut unit, &Namespace::unchecked(db, name), uuid, options, id_index)?;
        for listed in indexes.iter().filter(|_| self.makes_indexes()) {
            // `{spec, buildUUID}`: the other member has not finished it. Nor have we then; the entry that ends the build ends
            // it here, too, and should this member be primary by then, it takes the build up.
            let building = match (listed.get("buildUUID"), listed.get("spec").and_then(|v| v.as_doc())) {
                (Some(Value::Binary { bytes, .. }), Some(spec)) => {
                    Some((Uuid::from_slice(bytes).ok_or_else(bad)?, spec))
                }
                _ => None,
            };
            if let Some((build, spec)) = building {
                let mut parts = Parts::of(&coll);
                parts.indexes.push(Arc::new(self.unfinished_index(IndexSpec::from_stored(spec)?, build)?));
                coll = parts.assemble()?;
                continue;
            }
            let spec = IndexSpec::from_stored(listed)?;
            if !spec.is_id_index() {
                coll = self.with_new_index(&unit, &coll, spec)?;
            }
        }
        durable::put_row(&mut unit.txn, &coll, [].iter())?;
        unit.commit()?;
        self.publish(|s| s.put(Named::Collection(coll)));
        Ok(uuid)
    }

    /// Adds copied documents, each with its record id in a last field `$recordId`. Those that are there already are
    /// left alone: a copy that was broken off starts over. Returns how many were new.
    pub fn clone_documents(&self, uuid: Uuid, docs: &[&RawDoc], at: Timestamp) -> Result<u64> {
        let coll =
            self.lookup_uuid(uuid).ok_or_else(|| Error::internal("the collection being copied is gone"))?;
        let mut unit = self.begin_applied(at)?;
        let mut plain = Vec::new();
        let mut new = 0;
        for doc in docs {
            let rid = split_record_id(doc, &mut plain)?;
            let doc = RawDoc::trusted(&plain);
            let rid = match rid {
                Some(n) if !coll.is_clustered() => n,
                _ if coll.is_clustered() => 0,
                _ => coll.shared.take_rids(1),
            };
            let key = if coll.is_clustered() {
                record_id::id_key(&coll, doc)?
            } else {
                coll.shared.saw_rid(rid);
                record_id::storage_key(&RecordId::Long(rid))
            };
            if unit.txn.exists(coll.records, &key)? {
                continue;
            }
            unit.insert(&OP, &coll, doc, rid, &[])?;
            new += 1;
        }
        unit.commit()?;
        Ok(new)
    }

    /// Definitions of views as the copied `system.views` collections have them.
    pub fn reload_all_views(&self) -> Result<()> {
        self.snapshot().databases().iter().try_for_each(|db| self.reload_views(db, ReadAt::Applied))
    }
}

/// Copies `doc` without its last field when that is `$recordId`, and returns that field's number.
pub(crate) fn split_record_id(doc: &RawDoc, plain: &mut Vec<u8>) -> Result<Option<i64>> {
    plain.clear();
    let last = doc.iter().last().filter(|e| e.name_bytes() == b"$recordId");
    let Some(last) = last else {
        plain.extend_from_slice(doc.as_bytes());
        return Ok(None);
    };
    let value_at = last.data().as_ptr() as usize - doc.as_bytes().as_ptr() as usize;
    // Type byte, name and its terminator lie in front of the value.
    let at = value_at
        .checked_sub(last.name_bytes().len() + 2)
        .ok_or_else(|| Error::internal("a damaged copied document"))?;
    plain.extend_from_slice(&doc.as_bytes()[..at]);
    plain.push(0);
    let len = plain.len() as u32;
    plain[..4].copy_from_slice(&len.to_le_bytes());
    Ok(last.value().as_i64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::{Document, doc};

    #[test]
    fn the_record_id_comes_off_and_everything_else_stays() {
        let mut plain = Vec::new();
        let with = doc! { "_id": 1, "a": { "$recordId": 3 }, "$recordId": 77i64 }.to_raw();
        assert_eq!(split_record_id(&with, &mut plain).unwrap(), Some(77));
        let left = RawDoc::validate(&plain).unwrap();
        assert_eq!(Document::from(left), doc! { "_id": 1, "a": { "$recordId": 3 } });
        let without = doc! { "$recordId": 5, "b": 1 }.to_raw();
        assert_eq!(split_record_id(&without, &mut plain).unwrap(), None);
        assert_eq!(plain, without.as_bytes());
    }
}
