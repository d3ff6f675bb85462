//! Definition changes: create and drop. Each is one unit (per collection) with its catalog row and its
//! log entry; the snapshot is replaced while the lock is still held.

use crate::Catalog;
use crate::catalog::DdlGuard;
use crate::ddl::time_series;
use crate::schema::collection::{Collection, Index, KeyFormat, Shared, View};
use crate::schema::durable::{self, Parts};
use crate::schema::names;
use crate::schema::options::CollectionOptions;
use crate::schema::sizes::Sizes;
use crate::schema::snapshot::Named;
use crate::schema::views;
use crate::write::crud::retry_conflicts;
use crate::write::interrupt::Uninterrupted;
use crate::write::observer::Defined;
use crate::write::op::WriteOp;
use crate::write::unit::WriteUnit;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, Timestamp, Uuid};
use pando_bson::RawDoc;
use pando_index::IndexSpec;
use pando_query::source::RecordId;
use pando_storage::{IdentKind, ReadAt};
use std::sync::Arc;

/// What `drop` tells.
#[derive(Clone, Debug, Default)]
pub struct Dropped {
    /// `None` for a view.
    pub indexes_were: Option<usize>,
    pub last: OpTime,
}

impl Catalog {
    /// Creates a collection or view as the `create` command asks.
    pub async fn create(&self, ns: &Namespace, mut options: CollectionOptions) -> Result<OpTime> {
        if let Some(c) = &options.collation {
            options.collation = pando_index::full_collation(c)?;
        }
        if options.time_series.is_some() && !ns.coll().starts_with(time_series::BUCKETS) {
            return self.create_time_series(ns, options, None).await;
        }
        if options.is_view() {
            return self.create_view(ns, &options).await;
        }
        self.create_collection(ns, options).await
    }

    /// Creates a collection that keeps the UUID it had elsewhere; of a time series, the buckets do. 40655 when another one has it.
    pub async fn create_as(
        &self,
        ns: &Namespace,
        mut options: CollectionOptions,
        uuid: Uuid,
    ) -> Result<OpTime> {
        if let Some(c) = &options.collation {
            options.collation = pando_index::full_collation(c)?;
        }
        if options.time_series.is_some() && !ns.coll().starts_with(time_series::BUCKETS) {
            return Box::pin(self.create_time_series(ns, options, Some(uuid))).await;
        }
        names::check_creatable(ns)?;
        // One at a time: of two databases only one gets the UUID. The name is no database's, and sorts before all.
        let _given = self.lock_database("").await;
        let _db = self.lock_database(ns.db()).await;
        if self.lookup_uuid(uuid).is_some() {
            return Err(Error::location(40655, format!("Invalid name {ns} for UUID {uuid}")));
        }
        self.create_with_uuid(ns, options, uuid, None)
    }

    /// Creates a collection. The collation in `options` is in full form.
    pub async fn create_collection(&self, ns: &Namespace, options: CollectionOptions) -> Result<OpTime> {
        names::check_creatable(ns)?;
        let _db = self.lock_database(ns.db()).await;
        self.create_collection_locked(ns, options)
    }

    /// The same with the database's lock held.
    pub(crate) fn create_collection_locked(
        &self,
        ns: &Namespace,
        options: CollectionOptions,
    ) -> Result<OpTime> {
        self.create_with_uuid(ns, options, self.new_uuid(), None)
    }

    pub(super) fn create_with_uuid(
        &self,
        ns: &Namespace,
        options: CollectionOptions,
        uuid: Uuid,
        id_index: Option<IndexSpec>,
    ) -> Result<OpTime> {
        self.check_may_come(ns)?;
        self.check_free(ns)?;
        let replicated = !ns.is_unreplicated();
        let mut unit = self.begin_unit(replicated)?;
        if let Some(filter) = &options.validator {
            durable::validator_matcher(filter, &pando_query::QueryCtx::default())?;
            names::check_validatable(ns, uuid, filter)?;
        }
        if options.auto_index_id == Some(false) && replicated {
            let text =
                format!("autoIndexId:false is not allowed for collection {ns} because it can be replicated");
            return Err(Error::location(50001, text));
        }
        let coll = self.add_collection(&mut unit, ns, uuid, options, id_index)?;
        let last = unit.commit()?;
        self.publish(|s| s.put(Named::Collection(coll)));
        Ok(last)
    }

    /// What to say where something of that name exists already.
    pub fn taken(&self, ns: &Namespace, by_a_view: bool) -> Option<Error> {
        let text = match (self.snapshot().get(ns)?, by_a_view) {
            (Named::Collection(_), false) => format!("Collection {ns} already exists."),
            (Named::Collection(_), true) => {
                format!("Cannot create collection {ns} - collection already exists.")
            }
            (Named::View(_), true) => "Namespace already exists".to_owned(),
            (Named::View(view), false) => {
                let kind = if view.buckets().is_some() { "timeseries collection" } else { "view" };
                format!("A {kind} already exists. NS: {ns}")
            }
        };
        Some(Error::new(ErrorCode::NamespaceExists, text))
    }
    /// Error when something of that name exists, or the database in other letter case.
    pub(crate) fn check_free(&self, ns: &Namespace) -> Result<()> {
        if let Some(taken) = self.taken(ns, false) {
            return Err(taken);
        }
        let snap = self.snapshot();
        match snap.database_differing_in_case(ns.db()) {
            Some(other) => Err(names::differs_in_case(&other, ns.db())),
            None => Ok(()),
        }
    }

    /// Makes a new collection's row and log entry in `unit`; publish the result after the commit.
    pub(crate) fn add_collection(
        &self,
        unit: &mut WriteUnit,
        ns: &Namespace,
        uuid: Uuid,
        options: CollectionOptions,
        id_index: Option<IndexSpec>,
    ) -> Result<Arc<Collection>> {
        unit.stamp();
        let since = unit.ts();
        let mut indexes = Vec::new();
        let with_id = options.clustered.is_none()
            && options.auto_index_id != Some(false)
            && ns.coll() != "system.profile";
        if with_id {
            let spec = id_index.unwrap_or_else(|| IndexSpec::id_index(options.collation.as_deref()));
            let ident = self.storage().create_ident(IdentKind::Index)?;
            indexes.push(Arc::new(durable::new_index(spec, ident, KeyFormat::Bare, since, self.now_ms())?));
        }
        let coll = Parts {
            ns: ns.clone(),
            uuid,
            options,
            records: self.storage().create_ident(IdentKind::Records)?,
            since,
            replicated: !ns.is_unreplicated(),
            indexes,
            shared: Shared::new(1, Sizes::of_new()),
        }
        .assemble()?;
        durable::put_row(&mut unit.txn, &coll, [].iter())?;
        unit.observe(&Defined::Created { coll: &coll })?;
        Ok(coll)
    }

    /// Creates the collection that definitions of views like `ns` are kept in, where there is none.
    pub async fn make_room_for_views(&self, ns: &Namespace) -> Result<()> {
        let system = Namespace::unchecked(ns.db(), names::SYSTEM_VIEWS);
        let _db = self.lock_database(ns.db()).await;
        let snap = self.snapshot();
        if let Some(other) = snap.database_differing_in_case(ns.db()) {
            return Err(names::differs_in_case(&other, ns.db()));
        }
        match snap.collection(&system) {
            None => self.create_collection_locked(&system, CollectionOptions::default()).map(drop),
            Some(_) => Ok(()),
        }
    }

    pub(crate) async fn create_view(&self, ns: &Namespace, options: &CollectionOptions) -> Result<OpTime> {
        names::check_creatable(ns)?;
        names::check_view_name(ns)?;
        if let Some(filter) = &options.validator {
            durable::validator_matcher(filter, &pando_query::QueryCtx::default())?;
        }
        let on = options.view.as_ref().map_or("", |v| v.view_on.as_str());
        Namespace::new(ns.db(), on)?;
        if let Some(taken) = self.taken(ns, true) {
            return Err(taken);
        }
        views::check_target(on)?;
        let view = views::from_options(ns, options)?;
        let system = Namespace::unchecked(ns.db(), names::SYSTEM_VIEWS);
        let _db = self.lock_database(ns.db()).await;
        let snap = self.snapshot();
        if let Some(taken) = self.taken(ns, true) {
            return Err(taken);
        }
        if let Some(other) = snap.database_differing_in_case(ns.db()) {
            return Err(names::differs_in_case(&other, ns.db()));
        }
        views::check_graph(&snap, &view)?;
        if snap.collection(&system).is_none() {
            self.create_collection_locked(&system, CollectionOptions::default())?;
        }
        let coll = self.write_lock(&system).await?.ok_or_else(|| Error::internal("system.views is gone"))?;
        let doc = views::to_doc(&view);
        self.insert_unit(&WriteOp::default(), &coll, &[&doc], &[])
    }

    /// Drops a collection or view. Code 26 when there is none.
    pub async fn drop_collection(&self, ns: &Namespace) -> Result<Dropped> {
        names::check_droppable(ns, self.lookup(ns).is_some(), self.exposes_oplog())?;
        let _db = self.lock_database(ns.db()).await;
        if let Some(view) = self.lookup_view(ns) {
            if view.buckets().is_none_or(|buckets| self.lookup(buckets).is_none()) {
                let last = self.change_view_doc(ns, None).await?;
                return Ok(Dropped { indexes_were: None, last });
            }
            // Whoever gives up waiting leaves both.
            let buckets = self.lock_to_drop(&view.on).await?;
            self.change_view_doc(ns, None).await?;
            return self.drop_locked(&buckets);
        }
        // Buckets go with the view of them.
        let view = ns.coll().strip_prefix(time_series::BUCKETS).map(|c| Namespace::unchecked(ns.db(), c));
        if let Some(view) = view.filter(|v| self.lookup_view(v).is_some_and(|v| v.on == *ns)) {
            self.change_view_doc(&view, None).await?;
        }
        self.drop_locked(&self.lock_to_drop(ns).await?)
    }

    async fn lock_to_drop(&self, ns: &Namespace) -> Result<DdlGuard> {
        let not_found = || Error::new(ErrorCode::NamespaceNotFound, "ns not found");
        self.abort_builds(ns, "collection dropped").await?;
        self.ddl_lock(ns).await.ok_or_else(not_found)
    }
    fn drop_locked(&self, guard: &DdlGuard) -> Result<Dropped> {
        let indexes = guard.coll.index_count();
        let mut unit = self.begin_unit(guard.coll.replicated)?;
        self.remove_collection(&mut unit, &guard.coll)?;
        let last = unit.commit()?;
        self.forget(&guard.coll, last.ts);
        Ok(Dropped { indexes_were: Some(indexes), last })
    }
    /// The same behind a copy of all of it, when there may be no room for anything for a while.
    pub(crate) async fn drop_guarded(&self, guard: &DdlGuard) -> Result<Dropped> {
        retry_conflicts(self, &Uninterrupted, || self.drop_locked(guard)).await
    }
    /// Drops what was copied into another database, whatever its name: a collection that nobody may drop by name has another one now.
    pub async fn drop_copied(&self, ns: &Namespace) -> Result<Dropped> {
        let _db = self.lock_database(ns.db()).await;
        self.drop_guarded(&self.lock_to_drop(ns).await?).await
    }

    /// Deletes the row and leaves the log entry; [`Catalog::forget`] follows the commit.
    pub(crate) fn remove_collection(&self, unit: &mut WriteUnit, coll: &Collection) -> Result<()> {
        unit.stamp();
        durable::delete_row(&mut unit.txn, coll.uuid)?;
        unit.observe(&Defined::Dropped { coll })
    }

    /// Takes a dropped collection out of the snapshot; its rows go once no reader can be below `at`.
    pub(crate) fn forget(&self, coll: &Collection, at: Timestamp) {
        coll.shared.mark_dropped();
        self.keep_lock_counts(coll);
        self.publish(|s| {
            s.remove(coll);
            if coll.ns.coll() == names::SYSTEM_VIEWS {
                // The definitions are gone with it.
                for v in s.views(coll.ns.db()) {
                    s.remove_view(&v.ns);
                }
            }
        });
        self.drop_rows(coll, at);
    }

    pub(crate) fn drop_rows(&self, coll: &Collection, at: Timestamp) {
        self.storage().drop_ident(coll.records, at);
        for i in &coll.indexes {
            self.drop_index_rows(i, at);
        }
        self.forget_sizes(coll.uuid);
    }
    pub(crate) fn drop_index_rows(&self, index: &Index, at: Timestamp) {
        self.storage().drop_ident(index.ident, at);
        if let Some(b) = &index.building {
            self.storage().drop_ident(b.side, at);
        }
    }

    /// Replaces (`Some`) or deletes (`None`) a view's document. The database's lock must be held.
    pub(crate) async fn change_view_doc(&self, ns: &Namespace, new: Option<&View>) -> Result<OpTime> {
        let system = Namespace::unchecked(ns.db(), names::SYSTEM_VIEWS);
        let Some(coll) = self.write_lock(&system).await? else {
            return Err(Error::internal("a view without system.views"));
        };
        let mut unit = self.begin_write(&coll)?;
        let mut key = pando_bson::DocBuilder::new();
        key.str("_id", ns.as_str());
        let found = crate::read::source::find_by_id(unit.txn(), &coll, &key.finish())?;
        let Some((rid, old)) = found else { return Err(Error::internal("a view without its document")) };
        let op = WriteOp { bypass_validation: true, ..WriteOp::default() };
        match new {
            None => unit.delete(&op, &coll, &rid, RawDoc::trusted(&old), &[])?,
            Some(view) => {
                let doc = views::to_doc(view);
                let form = crate::write::crud::UpdateForm::Replacement;
                unit.update(&op, &coll, &rid, RawDoc::trusted(&old), &doc, form, &[])?;
            }
        }
        unit.commit()
    }

    /// Drops collections marked `temp`, as a start does. One that cannot go keeps none of the others; the first error is told.
    pub async fn drop_temp_collections(&self) -> Result<usize> {
        let temp: Vec<Namespace> =
            self.snapshot().all_collections().filter(|c| c.options.temp).map(|c| c.ns.clone()).collect();
        let mut first = Ok(temp.len());
        for ns in &temp {
            match self.drop_collection(ns).await {
                Err(e) if e.code != ErrorCode::NamespaceNotFound => first = first.and(Err(e)),
                _ => {}
            }
        }
        first
    }

    /// Empties a collection by deleting its documents one unit after another (for commands that truncate).
    pub async fn delete_all(&self, ns: &Namespace) -> Result<u64> {
        let Some(coll) = self.write_lock(ns).await? else { return Ok(0) };
        let mut n = 0;
        loop {
            let mut unit = self.begin_write(&coll)?;
            let batch =
                crate::read::source::first_records(unit.txn(), &coll, pando_base::limits::TTL_UNIT_DOCS)?;
            if batch.is_empty() {
                return Ok(n);
            }
            for (rid, doc) in &batch {
                let rid: &RecordId = rid;
                unit.delete(&WriteOp::default(), &coll, rid, RawDoc::trusted(doc), &[])?;
            }
            unit.commit()?;
            n += batch.len() as u64;
            self.env().tasks.yield_now().await;
        }
    }

    /// Reads the newest committed state; a convenience for commands that need one quick look.
    pub fn read_latest(&self) -> Result<pando_storage::Txn> {
        self.begin_read(ReadAt::Latest)
    }
}
