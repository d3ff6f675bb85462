//! Definitions that another set has made, of a tenant that this one takes over: carried out by a primary, as new writes of its own.
//!
//! All are known by UUID, and each may be carried out again: a primary that ends behind one leaves the next primary in doubt. What is
//! otherwise than it was on the other set is an error, never made to fit.

use crate::Catalog;
use crate::apply::entry::{dropped_by_rename, named, specs_of, without_first};
use crate::catalog::DdlGuard;
use crate::ddl::coll_mod::changed_parts;
use crate::lock::Guard;
use crate::schema::collection::Collection;
use crate::schema::durable;
use crate::schema::options::CollectionOptions;
use crate::schema::snapshot::Named;
use crate::write::interrupt::Interrupt;
use crate::write::observer::Defined;
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_index::IndexSpec;
use pando_oplog::entry::EntryView;
use std::fmt::Display;
use std::sync::Arc;

fn otherwise(what: &str, e: &(impl Display + ?Sized)) -> Error {
    Error::new(ErrorCode::OperationFailed, format!("{what}, against what another set says: {e}"))
}

impl Catalog {
    /// Makes a collection with that UUID, with options and indexes as they are stored. What is there of it already stays. It is not
    /// temporary here, whatever it is there: a new primary drops what is.
    ///
    /// # Errors
    /// 40655 where the UUID is another collection's, 48 where the name is.
    pub async fn create_as_told(
        &self,
        ns: &Namespace,
        uuid: Uuid,
        options: &RawDoc,
        indexes: &[&RawDoc],
    ) -> Result<()> {
        let specs = indexes.iter().map(|doc| IndexSpec::from_stored(doc)).collect::<Result<Vec<_>>>()?;
        // As `create_as` does it.
        let _given = self.lock_database("").await;
        let _db = self.lock_database(ns.db()).await;
        match self.lookup_uuid(uuid) {
            Some(there) if there.ns == *ns => {}
            Some(_) => return Err(Error::location(40655, format!("Invalid name {ns} for UUID {uuid}"))),
            None => {
                let options = CollectionOptions { temp: false, ..CollectionOptions::from_stored(options)? };
                let id_index = specs.iter().find(|spec| spec.is_id_index()).cloned();
                self.create_with_uuid(ns, options, uuid, id_index)?;
            }
        }
        let guard = self.ddl_lock(ns).await.ok_or_else(|| Error::internal("a new collection is gone"))?;
        self.add_told_indexes(&guard, &specs)
    }
    /// Indexes of a collection that is empty, as it was there.
    fn add_told_indexes(&self, guard: &DdlGuard, specs: &[IndexSpec]) -> Result<()> {
        let coll = &guard.coll;
        let missing: Vec<IndexSpec> =
            specs.iter().filter(|spec| coll.index(&spec.name).is_none()).cloned().collect();
        if missing.is_empty() {
            return Ok(());
        }
        if !self.is_empty_collection(coll)? {
            return Err(otherwise("the collection holds documents", &coll.ns));
        }
        self.create_on_empty(coll, missing).map(drop)
    }

    /// The collection of a definition, with the locks of whoever changes it.
    async fn lock_told(&self, uuid: Uuid) -> Option<(Guard, DdlGuard)> {
        loop {
            let ns = self.lookup_uuid(uuid)?.ns.clone();
            let db = self.lock_database(ns.db()).await;
            if let Some(guard) = self.ddl_lock(&ns).await
                && guard.coll.uuid == uuid
            {
                return Some((db, guard));
            }
        }
    }
    async fn lock_told_or_fail(&self, e: &EntryView<'_>) -> Result<(Guard, DdlGuard)> {
        let locked = match e.ui {
            Some(uuid) => self.lock_told(uuid).await,
            None => None,
        };
        locked.ok_or_else(|| otherwise("there is no such collection", e.doc))
    }

    /// Carries out a `c` entry of another set's log; of a build of indexes, its end.
    ///
    /// # Errors
    /// 96 where what it is about is not as it was there.
    pub async fn define_as_told(&self, e: &EntryView<'_>, interrupt: &dyn Interrupt) -> Result<()> {
        let done = match e.command().map_or("", |c| c.name()) {
            "create" => self.create_told(e).await,
            "drop" => self.drop_told(e).await,
            "renameCollection" => self.rename_told(e).await,
            "collMod" => self.modify_told(e).await,
            "createIndexes" => {
                let spec = IndexSpec::from_stored(&without_first(e.o))?;
                let (_db, guard) = self.lock_told_or_fail(e).await?;
                self.add_told_indexes(&guard, &[spec])
            }
            "commitIndexBuild" => self.build_told(e, interrupt).await,
            "dropIndexes" => self.drop_index_told(e).await,
            // Its collections have gone by entries of their own; and an unfinished index is none here.
            "dropDatabase" | "startIndexBuild" | "abortIndexBuild" => Ok(()),
            _ => Err(otherwise("an unknown definition", e.doc)),
        };
        done.map_err(|err| err.context(format_args!("while another set's entry {} was carried out", e.doc)))
    }

    async fn create_told(&self, e: &EntryView<'_>) -> Result<()> {
        let uuid = e.ui.ok_or_else(|| otherwise("a collection without UUID", e.doc))?;
        let db = e.ns.split_once('.').map_or(e.ns, |(db, _)| db);
        let ns = Namespace::unchecked(db, named(e, "create")?);
        let id_index = e.o.get("idIndex").and_then(|v| v.as_doc());
        self.create_as_told(&ns, uuid, &without_first(e.o), id_index.as_slice()).await
    }
    async fn drop_told(&self, e: &EntryView<'_>) -> Result<()> {
        let uuid = e.ui.ok_or_else(|| otherwise("a drop without UUID", e.doc))?;
        // It is gone when this is done again.
        let Some((_db, guard)) = self.lock_told(uuid).await else { return Ok(()) };
        let mut unit = self.begin_unit(guard.coll.replicated)?;
        self.remove_collection(&mut unit, &guard.coll)?;
        let at = unit.commit()?;
        self.forget(&guard.coll, at.ts);
        Ok(())
    }
    async fn rename_told(&self, e: &EntryView<'_>) -> Result<()> {
        let to = Namespace::parse(named(e, "to")?)?;
        let uuid = e.ui.ok_or_else(|| otherwise("a rename without UUID", e.doc))?;
        let gone = || otherwise("there is no such collection", e.doc);
        let from = self.lookup_uuid(uuid).ok_or_else(gone)?.ns.clone();
        if from == to {
            return Ok(());
        }
        let _dbs = self.lock_databases(from.db(), to.db()).await;
        // Both locks in name order.
        let (first, second) = if from.as_str() < to.as_str() { (&from, &to) } else { (&to, &from) };
        let (a, b) = (self.ddl_lock(first).await, self.ddl_lock(second).await);
        let (source, target) = if *first == from { (a, b) } else { (b, a) };
        let source = source.filter(|s| s.coll.uuid == uuid).ok_or_else(gone)?;
        let target = target.as_ref().map(|t| &*t.coll);
        if target.map(|t| t.uuid) != dropped_by_rename(e) {
            return Err(otherwise("another collection has the name", e.doc));
        }
        let mut unit = self.begin_unit(source.coll.replicated)?;
        let renamed = self.rename_in(&mut unit, &source.coll, &to, target, false)?;
        let last = unit.commit()?;
        self.publish_rename(&source.coll, renamed, target, last.ts);
        Ok(())
    }
    async fn modify_told(&self, e: &EntryView<'_>) -> Result<()> {
        let (_db, guard) = self.lock_told_or_fail(e).await?;
        let changed = changed_parts(&guard.coll, e.o)?.assemble()?;
        let mut unit = self.begin_unit(guard.coll.replicated)?;
        unit.stamp();
        durable::put_row(&mut unit.txn, &changed, [].iter())?;
        let old = e.o2.unwrap_or(RawDoc::empty());
        unit.observe(&Defined::Modified { coll: &changed, command: e.o, old })?;
        unit.commit()?;
        self.publish(|s| s.put(Named::Collection(changed)));
        Ok(())
    }
    async fn drop_index_told(&self, e: &EntryView<'_>) -> Result<()> {
        let (_db, guard) = self.lock_told_or_fail(e).await?;
        let name = named(e, "index")?;
        self.drop_named(&guard.coll, &[name.to_owned()]).map(drop)
    }
    async fn build_told(&self, e: &EntryView<'_>, interrupt: &dyn Interrupt) -> Result<()> {
        let coll = e.ui.and_then(|uuid| self.lookup_uuid(uuid));
        let coll = coll.ok_or_else(|| otherwise("there is no such collection", e.doc))?;
        let mut specs = specs_of(e)?;
        specs.retain(|spec| !coll.index(&spec.name).is_some_and(|i| i.is_ready()));
        if specs.iter().any(|spec| coll.index(&spec.name).is_some()) {
            // An earlier primary has begun it. What was taken up here is nobody's who may define something.
            self.abort_builds(&coll.ns, "whoever copies the tenant makes the index anew").await?;
        }
        let docs: Vec<DocBuf> = specs.iter().map(|spec| as_asked(&coll, &spec.doc)).collect();
        let docs: Vec<&RawDoc> = docs.iter().map(|doc| &**doc).collect();
        match docs.is_empty() {
            true => Ok(()),
            false => self.create_indexes(&coll.ns, &docs, interrupt).await.map(drop),
        }
    }
}

/// An index without a collation does not say so where it is stored, and would get the collection's.
fn as_asked(coll: &Arc<Collection>, spec: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::new();
    b.elems_of(spec);
    if coll.options.collation.is_some() && spec.get("collation").is_none() {
        b.doc("collation", |c| _ = c.str("locale", "simple"));
    }
    b.finish()
}
