//! The entry by which a collection that was taken in comes into being, and what it does to those who apply it.

use super::registry::Registered;
use super::told::{IMPORT_MISSING, totals_of};
use crate::Catalog;
use crate::apply::entry::named;
use crate::apply::recovery::last_rid;
use crate::schema::collection::{Collection, Index, Shared};
use crate::schema::durable::{self, Parts};
use crate::schema::names::SYSTEM_VIEWS;
use crate::schema::sizes::Sizes;
use crate::schema::snapshot::Named;
use crate::write::observer::Defined;
use crate::write::unit::WriteUnit;
use pando_base::{Error, Namespace, OpTime, Result, Uuid};
use pando_bson::{RawDoc, Value};
use pando_oplog::entry::EntryView;
use pando_storage::ReadAt;
use std::sync::Arc;

fn import_of(e: &EntryView<'_>) -> Option<Uuid> {
    match e.o.get("import")? {
        Value::Binary { bytes, .. } => Uuid::from_slice(bytes),
        _ => None,
    }
}

fn missing(what: impl std::fmt::Display) -> Error {
    Error::new(IMPORT_MISSING, format!("a collection that was taken in from another set is not here: {what}"))
}

impl Catalog {
    /// On a primary: makes a collection seen that [`Catalog::take_in`] has named, with a slot of the log. Every member that bears
    /// data must have told that it has it too. `None` where it is there already, by an earlier primary's entry.
    pub async fn import_collection(&self, import: Uuid, uuid: Uuid) -> Result<Option<OpTime>> {
        let Some(registered) = self.registered(import, uuid)? else { return Err(missing(uuid)) };
        let ns = durable::decode(&registered.row, self.now_ms())?.parts.ns;
        // One at a time: of two databases only one gets the UUID.
        let _given = self.lock_database("").await;
        let _db = self.lock_database(ns.db()).await;
        let _names = self.lock_imports();
        if let Some(there) = self.lookup_uuid(uuid) {
            return match there.ns == ns {
                true => Ok(None),
                false => Err(Error::location(40655, format!("Invalid name {ns} for UUID {uuid}"))),
            };
        }
        // It may have been forgotten while this waited.
        let Some(registered) = self.registered(import, uuid)? else { return Err(missing(uuid)) };
        self.check_may_come(&ns)?;
        self.check_free(&ns)?;
        let mut unit = self.begin_unit(true)?;
        let coll = self.add_imported(&mut unit, import, &ns, &registered)?;
        let last = unit.commit()?;
        self.see_imported(coll, ReadAt::Latest)?;
        Ok(Some(last))
    }

    /// The same by the entry.
    pub(crate) fn apply_import(&self, e: &EntryView<'_>, db: &str) -> Result<()> {
        let (Some(uuid), Some(import)) = (e.ui, import_of(e)) else {
            return Err(Error::internal("an importCollection entry that does not say what it is about"));
        };
        if let Some(there) = self.lookup_uuid(uuid) {
            // Copied from a member that had it.
            self.publish(|s| s.put(Named::Collection(there)));
            return Ok(());
        }
        let _names = self.lock_imports();
        let Some(registered) = self.registered(import, uuid)? else { return Err(missing(e.doc)) };
        if registered.totals != totals_of(e) {
            return Err(missing(format_args!("this node has {:?} of {}", registered.totals, e.doc)));
        }
        let ns = Namespace::unchecked(db, named(e, "importCollection")?);
        let mut unit = self.begin_applied(e.ts)?;
        let coll = self.add_imported(&mut unit, import, &ns, &registered)?;
        self.check_indexes(e, &coll)?;
        unit.commit()?;
        self.see_imported(coll, ReadAt::Applied)
    }

    /// Writes the row of the catalog, and the entry; publish the result after the commit.
    fn add_imported(
        &self,
        unit: &mut WriteUnit,
        import: Uuid,
        ns: &Namespace,
        registered: &Registered,
    ) -> Result<Arc<Collection>> {
        unit.stamp();
        let since = unit.ts();
        let Parts { uuid, options, records, indexes, replicated, shared, .. } =
            durable::decode(&registered.row, self.now_ms())?.parts;
        let ready = |i: Arc<Index>| Arc::new(Index { ready_at: since, ..Index::clone(&i) });
        let indexes = indexes.into_iter().map(ready).collect();
        let ns = ns.clone();
        let mut parts = Parts { ns, uuid, options, records, since, replicated, indexes, shared };
        parts.shared = Shared::new(last_rid(&unit.txn, &parts)? + 1, Sizes::of_new());
        let coll = parts.assemble()?;
        if registered.totals.count > 0 && crate::read::source::first_records(&unit.txn, &coll, 1)?.is_empty()
        {
            return Err(missing(format_args!("the table of {} is empty", coll.ns)));
        }
        durable::put_row(&mut unit.txn, &coll, [].iter())?;
        unit.change_sizes(&coll, registered.totals);
        unit.observe(&Defined::Imported { coll: &coll, import, totals: registered.totals })?;
        Ok(coll)
    }
    fn see_imported(&self, coll: Arc<Collection>, at: ReadAt) -> Result<()> {
        let views = (coll.ns.coll() == SYSTEM_VIEWS).then(|| coll.ns.db().to_owned());
        self.publish(|s| s.put(Named::Collection(coll)));
        views.map_or(Ok(()), |db| self.reload_views(&db, at))
    }
    /// Whether this node has the indexes that the primary has.
    fn check_indexes(&self, e: &EntryView<'_>, coll: &Collection) -> Result<()> {
        let specs = e.o.get("indexes").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
        for spec in specs.iter().filter_map(|s| s.value().as_doc()) {
            let name = spec.get("name").and_then(|v| v.as_str()).unwrap_or_default();
            if coll.index(name).is_none() && (self.makes_indexes() || name == "_id_") {
                return Err(missing(format_args!("the index {name} of {}", coll.ns)));
            }
        }
        Ok(())
    }
}
