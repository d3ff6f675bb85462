//! renameCollection: within a database a new name for the same rows, across databases a copy.

use crate::Catalog;
use crate::catalog::DdlGuard;
use crate::schema::collection::Collection;
use crate::schema::durable::{self, Parts};
use crate::schema::names;
use crate::schema::snapshot::Named;
use crate::write::interrupt::Interrupt;
use crate::write::observer::Defined;
use crate::write::unit::WriteUnit;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, Timestamp, Uuid};
use pando_storage::ReadAt;
use std::ops::Bound;
use std::sync::Arc;

fn no_source(from: &Namespace, to: &Namespace) -> Error {
    let text = match from.db() == to.db() {
        true => format!("Source collection {from} does not exist"),
        false => "source namespace does not exist".to_owned(),
    };
    Error::new(ErrorCode::NamespaceNotFound, text)
}

impl Catalog {
    /// Renames a collection; `drop_target` allows an existing target, which goes in the same unit.
    pub async fn rename_collection(
        &self,
        from: &Namespace,
        to: &Namespace,
        drop_target: bool,
        interrupt: &dyn Interrupt,
    ) -> Result<OpTime> {
        names::check_renamable(from, to)?;
        let _dbs = self.unless_interrupted(interrupt, self.lock_databases(from.db(), to.db())).await?;
        self.prepare_rename(from, to, drop_target).await?;
        if from.db() != to.db() {
            let (source, _) = self.copy_across(from, to, self.new_uuid(), interrupt).await?;
            return self.drop_guarded(&source).await.map(|dropped| dropped.last);
        }
        self.rename_within(from, to, interrupt).await
    }

    /// The first half of a rename into another database: the new name is a copy's, which has this UUID. The source stays, and whoever asks sees
    /// to it that nobody writes to it from here on until it is dropped. What an earlier attempt has left of the copy goes first.
    pub async fn copy_to_database(
        &self,
        from: &Namespace,
        to: &Namespace,
        uuid: Uuid,
        drop_target: bool,
        interrupt: &dyn Interrupt,
    ) -> Result<OpTime> {
        names::check_renamable(from, to)?;
        let _dbs = self.unless_interrupted(interrupt, self.lock_databases(from.db(), to.db())).await?;
        if let Some(left) = self.lookup_uuid(uuid) {
            if left.ns.db() != to.db() || !left.options.temp {
                return Err(Error::internal(format!("{} has the UUID of a copy of {from}", left.ns)));
            }
            self.drop_copy(&left.ns).await?;
        }
        self.prepare_rename(from, to, drop_target).await?;
        self.copy_across(from, to, uuid, interrupt).await.map(|(_, last)| last)
    }

    /// Whether it can be renamed so, with the locks of both databases held; builds of what makes room end.
    async fn prepare_rename(&self, from: &Namespace, to: &Namespace, drop_target: bool) -> Result<()> {
        let snap = self.snapshot();
        if snap.view(from).is_some() {
            return Err(Error::new(
                ErrorCode::CommandNotSupportedOnView,
                format!("cannot rename view: {from}"),
            ));
        }
        if snap.collection(from).is_none() {
            return Err(no_source(from, to));
        }
        names::check_both_replicated(from, to)?;
        if snap.view(to).is_some() {
            return Err(Error::new(
                ErrorCode::NamespaceExists,
                format!("a view already exists with that name: {to}"),
            ));
        }
        if let Some(other) = snap.database_differing_in_case(to.db()) {
            return Err(names::differs_in_case(&other, to.db()));
        }
        if snap.collection(to).is_some() && !drop_target {
            return Err(Error::new(ErrorCode::NamespaceExists, "target namespace exists"));
        }
        self.refuse_while_building(from)?;
        if snap.collection(to).is_some() {
            names::check_droppable(to, true, self.exposes_oplog())?;
            self.abort_builds(to, "collection dropped by a rename").await?;
        }
        Ok(())
    }

    async fn rename_within(
        &self,
        from: &Namespace,
        to: &Namespace,
        interrupt: &dyn Interrupt,
    ) -> Result<OpTime> {
        // Both locks in name order.
        let (first, second) = if from.as_str() < to.as_str() { (from, to) } else { (to, from) };
        let a = self.unless_interrupted(interrupt, self.ddl_lock(first)).await?;
        let b = self.unless_interrupted(interrupt, self.ddl_lock(second)).await?;
        let (source, target) = if first == from { (a, b) } else { (b, a) };
        let source = source.ok_or_else(|| no_source(from, to))?;
        self.refuse_while_building(from)?;
        let target_coll = target.as_ref().map(|t| &*t.coll);
        let mut unit = self.begin_unit(source.coll.replicated)?;
        let renamed = self.rename_in(&mut unit, &source.coll, to, target_coll, false)?;
        let last = unit.commit()?;
        self.publish_rename(&source.coll, renamed, target_coll, last.ts);
        Ok(last)
    }

    fn refuse_while_building(&self, ns: &Namespace) -> Result<()> {
        match self.lookup(ns) {
            Some(c) if !c.building_indexes().is_empty() => Err(Error::new(
                ErrorCode::BackgroundOperationInProgressForNamespace,
                format!(
                    "cannot perform operation: an index build is currently running for collection '{ns}'"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// The rows and the log entry of a rename within a database.
    pub(crate) fn rename_in(
        &self,
        unit: &mut WriteUnit,
        coll: &Arc<Collection>,
        to: &Namespace,
        target: Option<&Collection>,
        stay_temp: bool,
    ) -> Result<Arc<Collection>> {
        unit.stamp();
        let mut parts = Parts::of(coll);
        parts.ns = to.clone();
        parts.options.temp &= stay_temp;
        parts.since = unit.ts();
        let renamed = parts.assemble()?;
        durable::put_row(&mut unit.txn, &renamed, [].iter())?;
        if let Some(t) = target {
            durable::delete_row(&mut unit.txn, t.uuid)?;
        }
        unit.observe(&Defined::Renamed { from: coll, to, target, stay_temp })?;
        Ok(renamed)
    }

    pub(crate) fn publish_rename(
        &self,
        from: &Collection,
        renamed: Arc<Collection>,
        target: Option<&Collection>,
        at: Timestamp,
    ) {
        self.publish(|s| {
            if let Some(t) = target {
                s.remove(t);
            }
            s.remove(from);
            s.put(Named::Collection(renamed));
        });
        if let Some(t) = target {
            t.shared.mark_dropped();
            self.keep_lock_counts(t);
            self.drop_rows(t, at);
        }
    }

    /// Copies into a temporary collection of the other database, and renames that. The source is locked as long as it is held.
    async fn copy_across(
        &self,
        from: &Namespace,
        to: &Namespace,
        uuid: Uuid,
        interrupt: &dyn Interrupt,
    ) -> Result<(DdlGuard, OpTime)> {
        let source = self.unless_interrupted(interrupt, self.ddl_lock(from)).await?.ok_or_else(|| {
            Error::new(ErrorCode::NamespaceNotFound, format!("Source collection {from} does not exist"))
        })?;
        let suffix: String = self.new_uuid().to_string().chars().take(5).collect();
        let tmp = Namespace::unchecked(to.db(), &format!("tmp{suffix}.renameCollection"));
        let mut options = source.coll.options.clone();
        options.temp = true;
        self.create_with_uuid(&tmp, options, uuid, None)?;
        let done = self.copy_and_put(&source.coll, &tmp, to, interrupt).await;
        if done.is_err() {
            self.drop_copy(&tmp).await?;
        }
        done.map(|last| (source, last))
    }
    async fn copy_and_put(
        &self,
        source: &Arc<Collection>,
        tmp: &Namespace,
        to: &Namespace,
        interrupt: &dyn Interrupt,
    ) -> Result<OpTime> {
        self.copy_into(source, tmp, interrupt).await?;
        let target = self.unless_interrupted(interrupt, self.ddl_lock(to)).await?;
        self.put_copy(tmp, to, target.as_ref().map(|t| &*t.coll), interrupt).await
    }

    async fn copy_into(
        &self,
        source: &Arc<Collection>,
        tmp: &Namespace,
        interrupt: &dyn Interrupt,
    ) -> Result<()> {
        let specs: Vec<_> =
            source.ready_indexes().iter().filter(|i| !i.spec.is_id_index()).map(|i| i.spec.clone()).collect();
        let mut copy = self.lookup(tmp).ok_or_else(|| Error::internal("the copy is gone"))?;
        for spec in specs {
            let mut unit = self.begin_write(&copy)?;
            unit.stamp();
            let next = self.with_new_index(&unit, &copy, spec.clone())?;
            durable::put_row(&mut unit.txn, &next, [].iter())?;
            unit.observe(&Defined::IndexCreated { coll: &next, spec: &spec })?;
            unit.commit()?;
            self.publish(|s| s.put(Named::Collection(next.clone())));
            copy = next;
        }
        let txn = self.storage().begin(ReadAt::Latest)?;
        self.copy_records(&txn, (source, Bound::Unbounded), &copy, interrupt).await.map(drop)
    }
}
