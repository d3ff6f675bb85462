//! Entries of transactions back into rows: one unit at the last entry's timestamp, whatever the number of entries.
//!
//! One unit, because a replay skips what stands at an entry's timestamp already: two operations on one document, or a
//! collection and its first documents, must not hide each other. A member that follows replays nothing: it spreads
//! operations over workers, each document's to one of them ([`Catalog::apply_run`], [`Catalog::prepare_share`]).

use crate::Catalog;
use crate::apply::entry::{Applying, apply_to, without_first};
use crate::schema::collection::Collection;
use crate::schema::durable::{self, Parts};
use crate::schema::options::CollectionOptions;
use crate::schema::snapshot::Named;
use crate::write::unit::WriteUnit;
use pando_base::{Error, Namespace, Result, Timestamp, Uuid};
use pando_bson::RawDoc;
use pando_index::IndexSpec;
use pando_oplog::entry::{EntryView, OpType};
use pando_storage::IdentKind;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A group on its way into rows.
pub(crate) struct Group<'a> {
    catalog: &'a Catalog,
    why: Applying,
    unit: WriteUnit,
    /// Collections that the group makes.
    made: Vec<Arc<Collection>>,
    /// Whether a collection's row was at or beyond this entry before the group began.
    newer: BTreeMap<Uuid, bool>,
}

impl Catalog {
    /// An `applyOps` entry. A part of a chain waits for the chain's end. One that prepares is applied by members that
    /// follow; whoever recovers waits for its decision, or for the end of the log.
    pub(crate) fn apply_group(&self, e: &EntryView<'_>, why: Applying) -> Result<()> {
        let is_set = |name: &str| e.o.get(name).is_some_and(|v| v.is_truthy());
        match is_set("prepare") {
            true if why == Applying::Steady => self.apply_prepare(e, why.into()),
            true => Ok(()),
            false if is_set("partialTxn") => Ok(()),
            false => {
                self.apply_whole(e, why)?;
                self.applied_transaction(e, why.into());
                Ok(())
            }
        }
    }

    /// All operations of the transaction that ends with this entry. Returns where the first of its entries is, and where
    /// the last one before this.
    pub(crate) fn apply_whole(&self, e: &EntryView<'_>, why: Applying) -> Result<(Timestamp, Timestamp)> {
        let parts = self.earlier_parts(e.doc)?;
        let mut group = Group::new(self, why, self.begin_applied(e.ts)?);
        let (mut first, mut last) = (e.ts, e.ts);
        for part in &parts {
            let part = EntryView::parse(RawDoc::trusted(part))?;
            (first, last) = (first.min(part.ts), part.ts);
            group.apply_all(&EntryView { ts: e.ts, ..part })?;
        }
        group.apply_all(e)?;
        let Group { unit, made, .. } = group;
        unit.commit()?;
        if !made.is_empty() {
            self.publish(|s| made.into_iter().for_each(|c| s.put(Named::Collection(c))));
        }
        Ok((first, last))
    }
}

impl<'a> Group<'a> {
    pub(crate) fn new(catalog: &'a Catalog, why: Applying, unit: WriteUnit) -> Group<'a> {
        Group { catalog, why, unit, made: Vec::new(), newer: BTreeMap::new() }
    }
    pub(crate) fn into_unit(self) -> WriteUnit {
        self.unit
    }
    fn apply_all(&mut self, e: &EntryView<'_>) -> Result<()> {
        e.inner().into_iter().flatten().try_for_each(|op| self.apply(&op?))
    }
    pub(crate) fn apply(&mut self, op: &EntryView<'_>) -> Result<()> {
        self.apply_any(op).map_err(|err| err.context(format_args!("while applying {}", op.doc)))
    }

    fn apply_any(&mut self, e: &EntryView<'_>) -> Result<()> {
        match e.op {
            OpType::Noop => Ok(()),
            OpType::Command => self.apply_command(e),
            OpType::Insert | OpType::Update | OpType::Delete => {
                let made = self.made.iter().find(|c| Some(c.uuid) == e.ui).cloned();
                let Some(coll) = made.or_else(|| self.catalog.target(e)) else {
                    return self.catalog.no_collection(e, self.why);
                };
                apply_to(&mut self.unit, &coll, e, self.why, i64::MAX)
            }
        }
    }

    fn apply_command(&mut self, e: &EntryView<'_>) -> Result<()> {
        let Some(uuid) = e.ui else { return Err(Error::internal("a definition without UUID")) };
        if !self.newer.contains_key(&uuid) {
            let newer = self.catalog.row_is_newer(uuid, e.ts)?;
            self.newer.insert(uuid, newer);
        }
        if self.newer.get(&uuid) == Some(&true) {
            return Ok(());
        }
        match e.command().map(|c| c.name()) {
            Some("create") => self.create(e, uuid),
            Some("createIndexes") => self.create_index(e, uuid),
            _ => Err(Error::internal("a transaction holds no such definition change")),
        }
    }

    fn create(&mut self, e: &EntryView<'_>, uuid: Uuid) -> Result<()> {
        if let Some(there) = self.catalog.lookup_uuid(uuid) {
            // Copied while another collection still had its name: now the name may be free.
            self.catalog.publish(|s| s.put(Named::Collection(there)));
            return Ok(());
        }
        let db = e.ns.split_once('.').map_or(e.ns, |(db, _)| db);
        let name = crate::apply::entry::named(e, "create")?;
        let options = CollectionOptions::from_stored(&without_first(e.o))?;
        let id_index = e.o.get("idIndex").and_then(|v| v.as_doc()).map(IndexSpec::from_stored).transpose()?;
        let ns = Namespace::unchecked(db, name);
        let coll = self.catalog.add_collection(&mut self.unit, &ns, uuid, options, id_index)?;
        self.made.push(coll);
        Ok(())
    }

    fn create_index(&mut self, e: &EntryView<'_>, uuid: Uuid) -> Result<()> {
        let Some(at) = self.made.iter().position(|c| c.uuid == uuid) else {
            // Copied with its indexes.
            return Ok(());
        };
        let spec = IndexSpec::from_stored(&without_first(e.o))?;
        let storage = self.catalog.storage();
        let format = self.catalog.format_for(&spec);
        let ident = storage.create_ident(IdentKind::Index)?;
        let index = durable::new_index(spec, ident, format, e.ts, self.catalog.now_ms())?;
        let mut parts = Parts::of(&self.made[at]);
        parts.indexes.push(Arc::new(index));
        let coll = parts.assemble()?;
        durable::put_row(&mut self.unit.txn, &coll, [].iter())?;
        self.made[at] = coll;
        Ok(())
    }
}
