//! What a node does to delete a range (`pando_workflows::delete_range`).

use super::{Ddl, range};
use pando_access::{Deleted, RangePlace, Uninterrupted};
use pando_base::{Error, ErrorCode, Result, Uuid, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_command::Param;
use pando_workflows::delete_range;
use pando_workflows::migration::{self, Migration};
use std::time::Duration;

/// `{delayMs, pauseMs}`.
pub(super) async fn await_readers(ddl: &Ddl<'_>, migration: &Migration) -> Result<DocBuf> {
    let keys = range::keys(migration)?;
    let (metadata, clock) = (&ddl.sharding.metadata, &ddl.ctx.env().clock);
    let renamed = by_its_name(ddl, migration);
    // Whoever began to read by the old name goes on by it.
    let is_read = |ns| metadata.is_read_as_of_before(ns, migration.uuid, &keys);
    while is_read(&migration.ns) || is_read(&renamed.ns) {
        clock.sleep(Duration::from_millis(limits::MIGRATION_DELETIONS_LOOKED_AT_MS)).await;
    }
    let params = &ddl.server.instance.params;
    let mut b = DocBuilder::new();
    b.i64("delayMs", params.int(Param::orphanCleanupDelaySecs).saturating_mul(1000));
    b.i64("pauseMs", params.int(Param::rangeDeleterBatchDelayMS));
    Ok(b.finish())
}

impl Ddl<'_> {
    /// Returns when the range of a migration is deleted here.
    pub(super) async fn await_deletion(&self, id: Uuid) -> Result<()> {
        let mut b = DocBuilder::new();
        b.uuid("_id", &id.0);
        let key = b.finish();
        let internal = self.server.access.internal_collections();
        while internal
            .lacking(&migration::deletions(), [((), &*key)].into_iter())?
            .is_some_and(|l| l.is_empty())
        {
            let pause = Duration::from_millis(limits::MIGRATION_DELETIONS_LOOKED_AT_MS);
            self.ctx.interruptible(self.ctx.env().clock.sleep(pause)).await?;
        }
        Ok(())
    }
}

/// The same of the collection as it is called now: it may have been renamed since.
fn by_its_name(ddl: &Ddl<'_>, migration: &Migration) -> Migration {
    let ns = ddl.server.access.name_of(migration.uuid).unwrap_or_else(|| migration.ns.clone());
    Migration { ns, ..migration.clone() }
}

/// `{owned, gone}`: as the config servers say.
///
/// # Errors
/// 117 while it is being renamed: the config servers know it by its old name still.
pub(super) async fn judge(ddl: &Ddl<'_>, task: &Migration) -> Result<DocBuf> {
    let migration = &by_its_name(ddl, task);
    ddl.check_not_renamed_now(&migration.ns)?;
    let table = range::as_routed(ddl, migration).await?;
    // It may have begun while they were asked, or be over: then they were asked of a name that it has no more.
    ddl.check_not_renamed_now(&migration.ns)?;
    if by_its_name(ddl, task).ns != migration.ns {
        let text = format!("collection {} was renamed while it was asked whose it is", migration.ns);
        return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
    }
    let here =
        ddl.server.access.definitions().collection(&migration.ns).is_some_and(|c| c.uuid == migration.uuid);
    let owned = match &table {
        None => false,
        Some(table) => {
            let keys = range::keys_among(table, migration)?;
            table.chunks.iter().any(|c| c.shard() == ddl.own_id() && keys.meets(c.start(), c.end()))
        }
    };
    let mut b = DocBuilder::new();
    b.bool("owned", owned).bool("gone", table.is_none() || !here);
    Ok(b.finish())
}

/// What clients have asked for so far.
fn asked(ddl: &Ddl<'_>) -> u64 {
    let n = &ddl.server.instance.metrics.op_counters;
    [&n.insert, &n.query, &n.update, &n.delete, &n.getmore].into_iter().map(|n| n.get()).sum()
}

/// `{done, restMs, next}`, behind what was `next` the last time.
pub(super) async fn delete_some(ddl: &Ddl<'_>, migration: &Migration, body: &RawDoc) -> Result<DocBuf> {
    let batch = ddl.server.instance.params.int(Param::rangeDeleterBatchSize);
    let max = usize::try_from(batch).ok().filter(|n| *n > 0).unwrap_or(limits::RANGE_DELETION_DOCUMENTS_MAX);
    let max = max.min(limits::RANGE_DELETION_DOCUMENTS_MAX);
    let clock = &ddl.ctx.env().clock;
    let (begun, asked_before) = (clock.mono(), asked(ddl));
    let place = body.get(delete_range::NEXT).and_then(|v| v.as_doc()).and_then(RangePlace::parse);
    let maintenance = &ddl.server.upkeep.maintenance;
    let deleted = match range::whatever_there_is(ddl, &by_its_name(ddl, migration)) {
        Ok(range) => maintenance.delete_in_range(&Uninterrupted, &range, place.as_ref(), max).await?,
        // It was dropped meanwhile.
        Err(e) if e.code == ErrorCode::NamespaceNotFound => Deleted::default(),
        Err(e) => return Err(e),
    };
    ddl.sharding.statistics.deleted.add(deleted.documents as u64);
    let mut b = DocBuilder::new();
    let most = Duration::from_millis(limits::RANGE_DELETION_REST_MS_MAX.into());
    // Where nobody asks for anything nobody is kept waiting.
    let is_alone = asked_before == asked(ddl);
    let rest =
        clock.mono().saturating_sub(begun).saturating_mul(limits::RANGE_DELETION_REST_PER_WORK).min(most);
    b.bool("done", deleted.documents < max);
    b.i64("restMs", if is_alone { 0 } else { rest.as_millis() as i64 });
    if let Some(last) = &deleted.last {
        b.raw_doc(delete_range::NEXT, &last.to_raw());
    }
    Ok(b.finish())
}
