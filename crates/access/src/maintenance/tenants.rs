//! A tenant's databases as a whole, on their way from one set to another: what there is of them is read here as of one time, and made there
//! as it was told. Whether the tenant's clients may come meanwhile is somebody else's question.
//!
//! Entries of what is made here say so (`fromMigrate`): to whoever watches the set nothing has happened.

use super::{Maintenance, RangePlace};
use crate::internal_collections::OP;
use pando_base::{Error, ErrorCode, Namespace, Result, TenantId, TenantScope, Timestamp, Uuid, limits};
use pando_bson::{DocBuf, RawDoc};
use pando_catalog::{Collection, CollectionSource, Interrupt, WriteGuard, WriteOp, WriteUnit};
use pando_oplog::EntryView;
use pando_query::source::{Direction, RecordScan, Source};
use pando_storage::{BeginOptions, OnPrepared, ReadAt, Txn};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What another set's documents are written with.
pub(crate) const TOLD: WriteOp<'static> = WriteOp { from_migrate: true, untrimmed: true, ..OP };

/// A tenant's collections at one time. As long as it lives, storage keeps all versions of that time, also of what has been dropped since:
/// tables of dropped collections go when no reader is left from before.
pub struct TenantExport {
    at: Timestamp,
    txn: Txn,
    collections: BTreeMap<Uuid, Arc<Collection>>,
}

impl TenantExport {
    pub fn at(&self) -> Timestamp {
        self.at
    }
    /// Those whose writes are in the log, in the order of their names. Definitions of views are documents of one of them.
    pub fn collections(&self) -> Vec<&Arc<Collection>> {
        let mut all: Vec<_> = self.collections.values().collect();
        all.sort_by(|a, b| a.ns.as_str().cmp(b.ns.as_str()));
        all
    }
    /// Documents behind a place, in the order of their records, until there are so many or they come to so many bytes (but one at least);
    /// and the place of the last one, `None` where these are all.
    ///
    /// # Errors
    /// 26 for a collection that there was not.
    pub fn documents(
        &self,
        uuid: Uuid,
        after: Option<&RangePlace>,
        max: usize,
        bytes_max: usize,
    ) -> Result<(Vec<DocBuf>, Option<RangePlace>)> {
        let none = || {
            let text = format!("the tenant had no collection with UUID {uuid} at {}", self.at);
            Error::new(ErrorCode::NamespaceNotFound, text)
        };
        let coll = self.collections.get(&uuid).ok_or_else(none)?;
        let mut source = CollectionSource::within(coll.clone(), &self.txn);
        let after = after.map(RangePlace::record);
        let mut all = source.scan_records(RecordScan { after, ..RecordScan::all(Direction::Forward) })?;
        let (mut docs, mut last, mut bytes) = (Vec::new(), None, 0);
        while let Some((rid, doc)) = all.next()? {
            if docs.len() == max || (!docs.is_empty() && bytes + doc.len() > bytes_max) {
                return Ok((docs, last.map(RangePlace::of_record)));
            }
            bytes += doc.len();
            docs.push(RawDoc::trusted(&doc).to_buf());
            last = Some(rid);
        }
        Ok((docs, None))
    }
}

impl Maintenance {
    /// What there is of tenants at a time, to which everything must be readable already.
    pub fn export_tenants(&self, whose: &TenantScope<'_>, at: Timestamp) -> Result<TenantExport> {
        // What is prepared and undecided might commit at that time still.
        let waits = BeginOptions { on_prepared: OnPrepared::Conflict };
        let txn = self.catalog.storage().begin_with(ReadAt::At(at), waits)?;
        let all = self.catalog.collections_at(&txn, |db| whose.owns(db))?;
        let replicated = all.into_iter().filter(|coll| coll.replicated);
        let collections = replicated.map(|coll| (coll.uuid, coll)).collect();
        Ok(TenantExport { at, txn, collections })
    }

    /// Makes a collection as another set has it; what is there of it already stays.
    pub async fn create_told(
        &self,
        ns: &Namespace,
        uuid: Uuid,
        options: &RawDoc,
        indexes: &[&RawDoc],
    ) -> Result<()> {
        self.catalog.of_other_set().create_as_told(ns, uuid, options, indexes).await
    }
    /// Carries out a definition that another set's log tells; again, where that has been done.
    pub async fn define_told(&self, e: &EntryView<'_>, interrupt: &dyn Interrupt) -> Result<()> {
        self.catalog.of_other_set().define_as_told(e, interrupt).await
    }
    /// Inserts documents of another set, in their order, each in its place behind those that are there.
    ///
    /// # Errors
    /// 11000 where there is one with its `_id`.
    pub async fn insert_told(
        &self,
        interrupt: &dyn Interrupt,
        ns: &Namespace,
        uuid: Uuid,
        docs: &[DocBuf],
    ) -> Result<()> {
        let put = |unit: &mut WriteUnit, coll: &WriteGuard, doc: &DocBuf| unit.put_told(&TOLD, coll, doc);
        for docs in docs.chunks(limits::INSERT_UNIT_DOCS_MAX) {
            self.in_units(interrupt, ns, uuid, docs, put).await?;
        }
        Ok(())
    }
    /// Drops whatever there is of a tenant.
    pub async fn drop_tenant(&self, tenant: &str) -> Result<()> {
        let catalog = self.catalog.of_other_set();
        for db in self.databases() {
            if TenantId::of(&db) != Some(tenant) {
                continue;
            }
            let _locked = catalog.lock_database(&db).await;
            let mut names = catalog.names_in_database(&db);
            // Views go with what they are kept in.
            names.sort_by_key(|ns| ns.coll() == "system.views");
            for ns in names {
                catalog.abort_builds(&ns, "the tenant's data is dropped").await?;
                catalog.drop_in_locked_database(&ns).await?;
            }
        }
        Ok(())
    }
}
