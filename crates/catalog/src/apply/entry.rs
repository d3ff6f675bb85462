//! Entries of the log back into rows, each exactly as if it had been done here: for recovery, later for
//! replication. Applying an entry twice is applying it once.

use crate::Catalog;
use crate::apply::recovery::size_effect;
use crate::read::source::find_id;
use crate::schema::collection::Collection;
use crate::schema::durable::{self, Parts};
use crate::schema::options::CollectionOptions;
use crate::schema::snapshot::Named;
use crate::write::crud::UpdateForm;
use crate::write::op::WriteOp;
use crate::write::record_id;
use crate::write::transaction_event::Origin;
use crate::write::unit::WriteUnit;
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp, Uuid};
use pando_bson::{DocBuf, RawDoc, Value};
use pando_index::IndexSpec;
use pando_oplog::diff;
use pando_oplog::entry::{EntryView, OpType};
use pando_query::source::RecordId;
use pando_storage::Ident;
use std::sync::Arc;

pub(crate) const OP: WriteOp<'static> = WriteOp {
    session: None,
    bypass_validation: true,
    of_server: false,
    from_migrate: false,
    untrimmed: false,
    image: None,
};

/// Why entries are applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applying {
    /// At a start. Rows may be ahead of the log, and traces of what was deleted further on may be gone; totals
    /// count every entry, whether its row had to be written or not.
    Replay,
    /// New entries from elsewhere, each exactly once: what they are about must be there.
    Steady,
    /// Entries from elsewhere over data copied at different times, some of it after the entry was made.
    InitialSync,
}

impl From<Applying> for Origin {
    fn from(why: Applying) -> Origin {
        match why {
            Applying::Steady => Origin::Entry,
            Applying::Replay | Applying::InitialSync => Origin::Replay,
        }
    }
}

/// A name that an entry must have: without it nobody knows what it is about.
pub(crate) fn named<'a>(e: &EntryView<'a>, field: &str) -> Result<&'a str> {
    let name = e.o.get(field).and_then(|v| v.as_str());
    name.ok_or_else(|| Error::internal(format!("the entry at {} has no '{field}'", e.ts)))
}

impl Catalog {
    /// Applies one entry at its own timestamp.
    pub fn apply_entry(&self, e: &EntryView<'_>, why: Applying) -> Result<()> {
        match e.op {
            OpType::Insert if e.o_is_array => self.apply_inserts(e, why),
            OpType::Insert | OpType::Update | OpType::Delete => self.apply_document(e, why),
            OpType::Command => self
                .apply_command(e, why)
                .map_err(|err| err.context(format_args!("while applying the log entry {}", e.doc))),
            OpType::Noop => Ok(()),
        }
    }

    pub(crate) fn target(&self, e: &EntryView<'_>) -> Option<Arc<Collection>> {
        match e.ui {
            Some(uuid) => self.lookup_uuid(uuid),
            None => self.lookup(&Namespace::parse(e.ns).ok()?),
        }
    }

    fn apply_document(&self, e: &EntryView<'_>, why: Applying) -> Result<()> {
        // A collection that is gone was dropped by a later entry.
        let Some(coll) = self.target(e) else { return self.no_collection(e, why) };
        let mut unit = self.begin_applied(e.ts)?;
        apply_to(&mut unit, &coll, e, why, i64::MAX)?;
        unit.commit().map(drop)
    }
    pub(crate) fn no_collection(&self, e: &EntryView<'_>, why: Applying) -> Result<()> {
        if why == Applying::Steady {
            return Err(Error::new(
                ErrorCode::NamespaceNotFound,
                format!("Failed to apply operation due to missing collection: {}", e.doc),
            ));
        }
        Ok(())
    }

    /// One entry that inserts several documents.
    fn apply_inserts(&self, e: &EntryView<'_>, why: Applying) -> Result<()> {
        e.o.iter().try_for_each(|d| {
            let o = d.value().as_doc().ok_or_else(|| Error::internal("an insert of something else"))?;
            self.apply_document(&EntryView { o, o_is_array: false, rid: None, ..*e }, why)
        })
    }
    pub(crate) fn apply_command(&self, e: &EntryView<'_>, why: Applying) -> Result<()> {
        let Some(first) = e.command() else { return Err(Error::internal("a command entry without command")) };
        let db = e.ns.split_once('.').map_or(e.ns, |(db, _)| db);
        if let Some(uuid) = e.ui
            && self.row_is_newer(uuid, e.ts)?
        {
            // A rename that is done already has dropped its target, which this replay may have made again.
            return match dropped_by_rename(e).and_then(|u| self.lookup_uuid(u)) {
                Some(target) => self.drop_at(e.ts, &target),
                None => Ok(()),
            };
        }
        match first.name() {
            "applyOps" => self.apply_group(e, why),
            "commitTransaction" => self.apply_commit(e, why),
            "abortTransaction" => self.apply_abort(e, why),
            "create" => self.apply_create(e, db),
            "importCollection" => self.apply_import(e, db),
            "drop" => self.apply_drop(e),
            "renameCollection" => self.apply_rename(e),
            "collMod" => self.apply_coll_mod(e),
            "createIndexes" => {
                let spec = IndexSpec::from_stored(&without_first(e.o))?;
                self.apply_new_indexes(e, &[spec])
            }
            "startIndexBuild" => self.apply_start_build(e, why),
            "commitIndexBuild" => self.apply_commit_build(e),
            "abortIndexBuild" => {
                let specs = specs_of(e)?;
                self.apply_remove_indexes(e, |name| specs.iter().any(|s| s.name == name))
            }
            "dropIndexes" => {
                let name = named(e, "index")?;
                self.apply_remove_indexes(e, |n| n == name)
            }
            // Its collections are dropped by entries of their own.
            "dropDatabase" => Ok(()),
            other => Err(Error::internal(format!("cannot apply a '{other}' entry"))),
        }
    }

    /// The catalog row as loaded already has this entry's effect.
    pub(crate) fn row_is_newer(&self, uuid: Uuid, ts: Timestamp) -> Result<bool> {
        let txn = self.storage().begin(pando_storage::ReadAt::Applied)?;
        Ok(txn.newest_ts(Ident::CATALOG, &uuid.0)?.is_some_and(|at| at >= ts))
    }

    fn apply_create(&self, e: &EntryView<'_>, db: &str) -> Result<()> {
        let uuid = e.ui.ok_or_else(|| Error::internal("a create entry without UUID"))?;
        if let Some(there) = self.lookup_uuid(uuid) {
            // Copied while another collection still had its name: now the name may be free.
            self.publish(|s| s.put(Named::Collection(there)));
            return Ok(());
        }
        let name = named(e, "create")?;
        let ns = Namespace::unchecked(db, name);
        let options = CollectionOptions::from_stored(&without_first(e.o))?;
        let id_index = match e.o.get("idIndex").and_then(|v| v.as_doc()) {
            Some(d) => Some(IndexSpec::from_stored(d)?),
            None => None,
        };
        let mut unit = self.begin_applied(e.ts)?;
        let coll = self.add_collection(&mut unit, &ns, uuid, options, id_index)?;
        unit.commit()?;
        self.publish(|s| s.put(Named::Collection(coll)));
        Ok(())
    }

    fn apply_drop(&self, e: &EntryView<'_>) -> Result<()> {
        match self.target(e) {
            Some(coll) => self.drop_at(e.ts, &coll),
            None => Ok(()),
        }
    }
    fn drop_at(&self, ts: Timestamp, coll: &Collection) -> Result<()> {
        let mut unit = self.begin_applied(ts)?;
        self.remove_collection(&mut unit, coll)?;
        unit.commit()?;
        self.forget(coll, ts);
        Ok(())
    }

    fn apply_rename(&self, e: &EntryView<'_>) -> Result<()> {
        let target = dropped_by_rename(e).and_then(|u| self.lookup_uuid(u));
        let Some(coll) = self.target(e) else {
            // It was dropped by a later entry, and never copied here; what it replaced is gone all the same.
            return target.map_or(Ok(()), |t| self.drop_at(e.ts, &t));
        };
        let to = named(e, "to")?;
        let to = match to.split_once('.') {
            Some((db, name)) => Namespace::unchecked(db, name),
            None => return Err(Error::internal("a rename entry without target")),
        };
        let stay_temp = e.o.get("stayTemp").is_some_and(|v| v.is_truthy());
        let mut unit = self.begin_applied(e.ts)?;
        let renamed = self.rename_in(&mut unit, &coll, &to, target.as_deref(), stay_temp)?;
        unit.commit()?;
        self.publish_rename(&coll, renamed, target.as_deref(), e.ts);
        Ok(())
    }

    fn apply_coll_mod(&self, e: &EntryView<'_>) -> Result<()> {
        let Some(coll) = self.target(e) else { return Ok(()) };
        let parts = crate::ddl::coll_mod::changed_parts(&coll, e.o)?;
        self.apply_parts(e.ts, parts)
    }

    /// Writes a changed collection at the entry's timestamp and publishes it.
    pub(crate) fn apply_parts(&self, ts: Timestamp, parts: Parts) -> Result<()> {
        let mut unit = self.begin_applied(ts)?;
        let coll = parts.assemble()?;
        durable::put_row(&mut unit.txn, &coll, [].iter())?;
        unit.commit()?;
        self.publish(|s| s.put(Named::Collection(coll)));
        Ok(())
    }
}

/// Applies an `i`, `u` or `d` entry within a unit whose timestamp is the entry's. `first_rid`: no record had this id, or a
/// higher one, before.
pub(crate) fn apply_to(
    unit: &mut WriteUnit,
    coll: &Collection,
    e: &EntryView<'_>,
    why: Applying,
    first_rid: i64,
) -> Result<()> {
    let rid = match record_of(unit, coll, e)? {
        Some(rid) => rid,
        None if e.op == OpType::Insert => RecordId::Long(coll.shared.take_rids(1)),
        None => return missing(coll, e, why, unit.txn.counted()),
    };
    if let (RecordId::Long(n), OpType::Insert, Applying::Steady) = (&rid, e.op, why)
        && (coll.shared.is_fresh_rid(*n) || *n >= first_rid)
    {
        return unit.insert(&OP, coll, e.o, *n, &[]);
    }
    let key = record_id::storage_key(&rid);
    if let RecordId::Long(n) = rid {
        coll.shared.saw_rid(n);
    }
    let skips = why != Applying::Steady;
    if skips && unit.txn.newest_ts(coll.records, &key)?.is_some_and(|ts| ts >= e.ts) {
        if why == Applying::Replay {
            coll.shared.sizes.changed(e.ts, size_effect(e), || unit.txn.counted());
        }
        return Ok(());
    }
    let old = unit.txn.get(coll.records, &key)?;
    let old = old.as_ref().map(|d| RawDoc::trusted(d));
    match (e.op, old) {
        (OpType::Insert, None) => {
            let n = if let RecordId::Long(n) = rid { n } else { 0 };
            unit.insert(&OP, coll, e.o, n, &[])
        }
        (OpType::Insert, Some(old)) => {
            unit.update(&OP, coll, &rid, old, e.o, UpdateForm::Replacement, &[])?;
            // The `_id` may have been another record's for a while, whose deletion took the key with it.
            if why == Applying::InitialSync { unit.put_id_key(coll, &rid, e.o) } else { Ok(()) }
        }
        (OpType::Update, Some(old)) => {
            let new: DocBuf;
            let new: &RawDoc = match e.diff() {
                Some(d) => {
                    new = diff::apply(old, d)?;
                    &new
                }
                None => e.o,
            };
            unit.update(&OP, coll, &rid, old, new, UpdateForm::Replacement, &[])
        }
        (OpType::Delete, Some(old)) => unit.delete(&OP, coll, &rid, old, &[]),
        (_, None) => missing(coll, e, why, unit.txn.counted()),
        (OpType::Command | OpType::Noop, Some(_)) => Ok(()),
    }
}

/// The entry's document is not there.
fn missing(coll: &Collection, e: &EntryView<'_>, why: Applying, counted: Timestamp) -> Result<()> {
    match (why, e.op) {
        (Applying::Replay, _) => coll.shared.sizes.changed(e.ts, size_effect(e), || counted),
        (Applying::Steady, OpType::Update) => {
            return Err(Error::new(
                ErrorCode::OperationFailed,
                format!("Failed to apply update due to missing document: {}", e.doc),
            ));
        }
        _ => {}
    }
    Ok(())
}

/// The collection that a rename replaced.
pub(crate) fn dropped_by_rename(e: &EntryView<'_>) -> Option<Uuid> {
    match e.o.get("dropTarget")? {
        Value::Binary { bytes, .. } => Uuid::from_slice(bytes),
        _ => None,
    }
}

/// The record an entry is about, if its id can be known.
fn record_of(unit: &WriteUnit, coll: &Collection, e: &EntryView<'_>) -> Result<Option<RecordId>> {
    let Some(id) = e.document_id() else { return Ok(None) };
    if coll.is_clustered() {
        let doc = if e.op == OpType::Update { e.o2.unwrap_or(e.o) } else { e.o };
        return Ok(Some(RecordId::Key(bytes::Bytes::from(record_id::id_key(coll, doc)?))));
    }
    match e.rid {
        Some(rid) => Ok(Some(RecordId::Long(rid))),
        None => Ok(find_id(&unit.txn, coll, id)?.map(|(rid, _)| rid)),
    }
}

pub(crate) fn without_first(doc: &RawDoc) -> DocBuf {
    let mut b = pando_bson::DocBuilder::new();
    for e in doc.iter().skip(1) {
        b.elem(e);
    }
    b.finish()
}

pub(crate) fn specs_of(e: &EntryView<'_>) -> Result<Vec<IndexSpec>> {
    let list = e.o.get("indexes").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
    list.iter().map(|s| IndexSpec::from_stored(s.value().as_doc().unwrap_or(RawDoc::empty()))).collect()
}
