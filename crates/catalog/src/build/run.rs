//! The task of a build: scan, sort, load, and then drain what writers leave until somebody ends it.

use crate::Catalog;
use crate::build::jobs::{Job, WhileWanted};
use crate::build::state::{Phase, SideRow};
use crate::build::target::{Target, made_ready};
use crate::schema::collection::Collection;
use crate::schema::durable;
use crate::schema::snapshot::Named;
use crate::write::interrupt::Interrupt;
use crate::write::observer::Defined;
use crate::write::record_id::{self, Record};
use crate::write::unit::WriteUnit;
use pando_base::codes::class;
use pando_base::redaction::WithCode;
use pando_base::{Error, ErrorCode, OpTime, Result, Timestamp, limits};
use pando_bson::RawDoc;
use pando_bson::keystring::KeyBuilder;
use pando_env::log::Component;
use pando_index::KeySet;
use pando_storage::{Dir, Ident, ReadAt, Txn};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Steps 2 to 4.
pub(crate) struct Runner {
    pub(crate) catalog: Catalog,
    pub(crate) job: Arc<Job>,
}

impl Runner {
    fn collection(&self) -> Result<Arc<Collection>> {
        self.catalog
            .lookup_uuid(self.job.collection)
            .ok_or_else(|| Error::new(ErrorCode::IndexBuildAborted, "collection dropped"))
    }
    /// Only here a build can be ended: elsewhere the log does it.
    fn leads(&self) -> bool {
        self.catalog.gate().is_open()
    }

    /// Until the build is over, in whatever way.
    pub(crate) async fn run(&self, scan: Txn) -> Result<OpTime> {
        let mut built = self.build(scan).await;
        loop {
            let seen = self.job.changed.version();
            if let Err(e) = &built {
                self.note_failed(e);
            }
            self.settle().await?;
            if self.job.is_claimed() {
                self.job.lay_out(built);
                return self.job.finished().await;
            }
            // What went wrong here may be right in the end: the primary says which.
            if let Ok(targets) = &mut built {
                match self.go_on(targets).await {
                    Ok(Some(last)) => return Ok(last),
                    Ok(None) => {}
                    Err(e) => {
                        built = Err(e);
                        continue;
                    }
                }
            }
            let look = Duration::from_millis(limits::INDEX_BUILD_DRAIN_MS);
            self.catalog.env().timeout(look, self.job.changed.changed(seen)).await;
        }
    }

    /// The first time that something goes wrong here; a task that is told to end has not failed.
    fn note_failed(&self, e: &Error) {
        if self.job.check_stop().is_err() || !self.job.note_failed(e.clone()) {
            return;
        }
        self.catalog.env().log.info(Component::Index, 20_649, "Index build: failed", |a| {
            a.show("buildUUID", self.job.uuid);
            a.data("error", &WithCode(e));
        });
        self.catalog.0.builds.news.bump();
    }
    fn is_judged(&self) -> bool {
        self.catalog.0.builds.judged.load(Ordering::Acquire)
    }

    /// Ends the task when it was told to; gives the build up where that is wished, permitted, and can be told to the log.
    async fn settle(&self) -> Result<()> {
        self.job.check_stop()?;
        let Some(cause) = self.job.to_give_up(self.is_judged()) else { return Ok(()) };
        if !self.leads() || self.job.is_claimed() {
            return Ok(());
        }
        match self.catalog.abort_build(&self.job, &cause).await {
            Ok(()) => self.job.ask_to_stop(cause),
            // Primary no more: the build goes on until the next one decides.
            Err(e) if e.code.is(class::NOT_PRIMARY) => self.job.forget_wish(),
            Err(e) if e.code == ErrorCode::WriteConflict => {}
            Err(worse) => self.job.ask_to_stop(worse),
        }
        self.job.check_stop()
    }

    /// Drains; with nothing left this member has its part. Commits where it may.
    async fn go_on(&self, targets: &mut [Target]) -> Result<Option<OpTime>> {
        self.drain(targets).await?;
        if self.job.note_ready() {
            targets.iter().for_each(|t| t.build.progress.enter(Phase::Ready));
            self.catalog.0.builds.news.bump();
        }
        let may = self.job.is_permitted() || !self.is_judged();
        if !may || !self.leads() {
            return Ok(None);
        }
        match self.commit_alone(targets).await {
            Ok(last) => Ok(Some(last)),
            Err(_) if self.job.is_unwanted() => Ok(None),
            // Primary no more: the next one commits, or aborts.
            Err(e) if e.code.is(class::NOT_PRIMARY) => Ok(None),
            Err(e) if e.code == ErrorCode::WriteConflict => Ok(None),
            Err(e) => Err(e),
        }
    }

    async fn commit_alone(&self, targets: &mut [Target]) -> Result<OpTime> {
        let coll = self.collection()?;
        let alone = coll.shared.lock.exclusive(&self.catalog.env().clock);
        let _alone = self.catalog.unless_interrupted(&WhileWanted(&self.job), alone).await?;
        WhileWanted(&self.job).check()?;
        let coll = self.collection()?;
        while drain_some(&self.catalog, &coll, targets)? {}
        self.commit(&coll, targets)
    }

    async fn build(&self, scan: Txn) -> Result<Vec<Target>> {
        while self.catalog.0.builds.is_held()? {
            self.settle().await?;
            self.catalog.env().clock.sleep(Duration::from_millis(limits::INTERRUPT_CHECK_MS)).await;
        }
        let coll = self.collection()?;
        let memory = limits::INDEX_BUILD_MEMORY_BYTES / self.job.specs.len().max(1);
        let mut targets: Vec<Target> = coll
            .building_indexes()
            .iter()
            .filter_map(|i| {
                let build = i.building.clone().filter(|b| b.uuid == self.job.uuid)?;
                Some(Target::new(self.catalog.env().disk.clone(), i.clone(), build, memory))
            })
            .collect();
        self.scan(&coll, &scan, &mut targets).await?;
        let visible_from = scan.read_ts();
        drop(scan);
        for t in &mut targets {
            t.build.progress.enter(Phase::Loading);
            self.load(&coll, t, visible_from).await?;
        }
        targets.iter().for_each(|t| t.build.progress.enter(Phase::Draining));
        self.drain(&mut targets).await?;
        Ok(targets)
    }

    async fn pause(&self) -> Result<()> {
        self.settle().await?;
        self.catalog.await_room(&*self.job).await?;
        self.catalog.env().tasks.yield_now().await;
        Ok(())
    }

    async fn scan(&self, coll: &Collection, scan: &Txn, targets: &mut [Target]) -> Result<()> {
        let mut cursor = scan.scan(coll.records, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
        let (mut builder, mut keys) = (KeyBuilder::default(), KeySet::default());
        loop {
            let (mut docs, mut bytes) = (0, 0);
            while docs < limits::INDEX_BUILD_STEP_DOCS && bytes < limits::INDEX_BUILD_STEP_BYTES {
                if !cursor.advance()? {
                    return Ok(());
                }
                docs += 1;
                bytes += cursor.value().len();
                let record = Record::of(&record_id::from_storage_key(coll.is_clustered(), cursor.key())?);
                for t in targets.iter_mut() {
                    t.add(&record, RawDoc::trusted(cursor.value()), &mut builder, &mut keys)?;
                }
            }
            for t in targets.iter() {
                t.build.progress.docs_done.fetch_add(docs as u64, Ordering::Relaxed);
            }
            self.pause().await?;
        }
    }

    async fn load(&self, coll: &Collection, t: &mut Target, visible_from: Timestamp) -> Result<()> {
        let Some(mut load) = t.load(self.catalog.storage(), visible_from)? else { return Ok(()) };
        while load.some(coll, t)? {
            self.pause().await?;
        }
        load.finish()
    }

    /// Until the side tables are empty.
    async fn drain(&self, targets: &mut [Target]) -> Result<()> {
        let coll = self.collection()?;
        loop {
            match drain_some(&self.catalog, &coll, targets) {
                Ok(false) => return Ok(()),
                // Its rows are still there.
                Ok(true) => {}
                Err(e) if matches!(e.code, ErrorCode::WriteConflict | ErrorCode::TemporarilyUnavailable) => {}
                Err(e) => return Err(e),
            }
            self.pause().await?;
        }
    }

    /// Step 4 on a primary, alone with the collection.
    fn commit(&self, coll: &Arc<Collection>, targets: &[Target]) -> Result<OpTime> {
        let mut unit = self.catalog.begin_write(coll)?;
        unit.stamp();
        let current = finish(&mut unit, coll, targets)?;
        unit.observe(&Defined::BuildCommitted {
            coll: &current,
            build: self.job.uuid,
            specs: &self.job.specs,
        })?;
        let last = unit.commit()?;
        self.catalog.publish(|s| s.put(Named::Collection(current)));
        self.catalog.note_built(self.job.uuid, targets, last.ts);
        Ok(last)
    }
}

/// Within the unit that makes the indexes ready, with their side tables empty: what seemed to be duplicates, and the row of the
/// collection.
pub(crate) fn finish(
    unit: &mut WriteUnit,
    coll: &Arc<Collection>,
    targets: &[Target],
) -> Result<Arc<Collection>> {
    for t in targets {
        t.settle_doubts(coll, &mut unit.txn)?;
    }
    let (current, marks) = made_ready(coll, targets, unit.ts())?;
    durable::put_row(&mut unit.txn, &current, marks.iter())?;
    marks.into_iter().for_each(|m| unit.note_marks(m));
    Ok(current)
}

/// A bounded part of a side table.
fn side_rows(txn: &Txn, side: Ident) -> Result<Vec<(pando_storage::Bytes, pando_storage::Bytes)>> {
    let mut cursor = txn.scan(side, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while rows.len() < limits::INDEX_BUILD_STEP_DOCS && bytes < limits::INDEX_BUILD_STEP_BYTES {
        let Some(row) = cursor.next()? else { break };
        bytes += row.1.len();
        rows.push(row);
    }
    Ok(rows)
}

/// Applies a part of the side tables; false when they were empty. Its rows carry the timestamp that is visible now: they are
/// this member's own business, and no entry of the log tells of them.
fn drain_some(catalog: &Catalog, coll: &Collection, targets: &mut [Target]) -> Result<bool> {
    let mut any = false;
    for t in targets.iter_mut() {
        let txn = catalog.storage().begin(ReadAt::Latest)?;
        let rows = side_rows(&txn, t.build.side)?;
        if rows.is_empty() {
            continue;
        }
        any = true;
        let at = txn.read_ts();
        apply_side_rows(WriteUnit::applied(catalog, txn, at, None), coll, t, &rows)?;
    }
    Ok(any)
}

/// Applies rows of a side table and takes them out of it, in one unit.
fn apply_side_rows(
    mut unit: WriteUnit,
    coll: &Collection,
    t: &mut Target,
    rows: &[(pando_storage::Bytes, pando_storage::Bytes)],
) -> Result<()> {
    for (seq, row) in rows {
        let row = SideRow::decode(row).ok_or_else(|| Error::internal("damaged side table row"))?;
        t.apply(coll, &mut unit.txn, &row)?;
        unit.txn.delete(t.build.side, seq)?;
    }
    unit.commit()?;
    t.build.progress.side_applied.fetch_add(rows.len() as u64, Ordering::Relaxed);
    Ok(())
}

impl Catalog {
    /// All that is left in the side tables, at the timestamp of the entry that ends the build. Nothing is written meanwhile.
    pub(crate) fn drain_rest(&self, coll: &Collection, targets: &mut [Target], at: Timestamp) -> Result<()> {
        for t in targets.iter_mut() {
            loop {
                let unit = self.begin_applied(at)?;
                let rows = side_rows(&unit.txn, t.build.side)?;
                if rows.is_empty() {
                    break;
                }
                apply_side_rows(unit, coll, t, &rows)?;
            }
        }
        Ok(())
    }
    /// The indexes are ready since `at`: nobody needs their side tables.
    pub(crate) fn note_built(&self, build: pando_base::Uuid, targets: &[Target], at: Timestamp) {
        for t in targets {
            self.storage().drop_ident(t.build.side, at);
            self.env().log.info(Component::Index, 20_345, "Index build: done building", |a| {
                a.show("buildUUID", build);
                a.str("index", &t.index.spec.name);
                a.show("commitTimestamp", at);
            });
        }
    }
}
