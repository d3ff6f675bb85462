//! What a donor's node does for a migration (`pando_workflows::move_range`).

use super::{Ddl, range, size};
use pando_access::IndexRange;
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_routing::{ChunkVersion, ShardKey};
use pando_workflows::migration::Migration;
use std::time::Duration;

fn conflict(text: String) -> Error {
    Error::new(ErrorCode::ConflictingOperationInProgress, text)
}

/// `{collectionUuid, keyPattern, chunk: {min, max, version}, collectionVersion}`.
///
/// # Errors
/// 118 where the collection is not sharded, 117 where its chunks may not move, 27 without an index by the key, 96 where the range is no
/// part of a chunk of this shard, 70 for a recipient that nobody knows, 153 where the range is larger than the request has it.
pub(super) async fn look(ddl: &Ddl<'_>, migration: &Migration, body: &RawDoc) -> Result<DocBuf> {
    let ns = &migration.ns;
    ddl.sharding.refresh_anew(ns).await?;
    let table = ddl.sharding.metadata.known(ns).table().cloned();
    let table = table.ok_or_else(|| {
        Error::new(ErrorCode::NamespaceNotSharded, format!("Collection {ns} is not sharded"))
    })?;
    if !table.collection.allow_migrations {
        return Err(conflict("Collection is undergoing changes so moveChunk is not allowed.".to_owned()));
    }
    let shards = ddl.cluster.catalog.refresh_shards().await?;
    if !shards.iter().any(|s| s.entry.id.as_str() == migration.recipient) {
        return Err(Error::new(ErrorCode::ShardNotFound, format!("Shard {} not found", migration.recipient)));
    }
    let key: &ShardKey = &table.collection.key;
    let keys = key.range(&migration.min, &migration.max)?;
    let chunk = table
        .chunks
        .find(&keys.start)
        .filter(|c| keys.end.as_slice() <= c.end() && c.shard() == ddl.own_id());
    let chunk = chunk.ok_or_else(|| {
        let text = format!(
            "the range [{}, {}) of {ns} is no part of a chunk of shard {}",
            migration.min,
            migration.max,
            ddl.own_id()
        );
        Error::new(ErrorCode::OperationFailed, text)
    })?;
    ShardKey::check_size(chunk.min())?;
    ShardKey::check_size(&chunk.max())?;
    let found = Migration { uuid: table.collection.uuid, key: key.pattern().to_buf(), ..migration.clone() };
    let range = range::by_index(ddl, &found)?;
    if let Some(request) = body.get("request").as_ref().and_then(|v| v.as_doc()) {
        size::check(ddl, &found, &range, request)?;
    }
    let mut b = DocBuilder::new();
    b.uuid("collectionUuid", &found.uuid.0).raw_doc("keyPattern", &found.key);
    b.doc("chunk", |d| {
        d.raw_doc("min", chunk.min()).raw_doc("max", &chunk.max());
        ChunkVersion::new(table.collection.generation, chunk.placement()).append("version", d);
    });
    table.version().append("collectionVersion", &mut b);
    Ok(b.finish())
}

/// Whoever writes in the range from now on is recorded; whoever came in before is waited for, but not for long: everybody who comes
/// meanwhile waits, too.
pub(super) async fn record(ddl: &Ddl<'_>, migration: &Migration) -> Result<DocBuf> {
    let range = range::by_index(ddl, migration)?;
    ddl.sharding.donor_begins(migration.id);
    record_in(ddl, migration, range).await?;
    ddl.sharding.donations.of(migration.id)?.begin_copy(&ddl.server.upkeep.maintenance)?;
    Ok(DocBuf::default())
}
/// The same without a look at what is there, and by an index that need not be there.
pub(in crate::commands::shardsvr) async fn record_in(
    ddl: &Ddl<'_>,
    migration: &Migration,
    range: IndexRange,
) -> Result<()> {
    let key = range::key(migration)?;
    let (donations, maintenance) = (&ddl.sharding.donations, &ddl.server.upkeep.maintenance);
    donations.record(migration.id, key, range, &migration.min, &migration.max)?;
    let limit = Duration::from_millis(limits::MIGRATION_LOCK_AWAITED_MS);
    let waited = ddl.ctx.env().timeout(limit, maintenance.await_writers(&migration.ns)).await;
    waited.ok_or_else(|| {
        let text = format!("operations that write to {} have not ended in time", migration.ns);
        Error::new(ErrorCode::LockTimeout, text)
    })?;
    donations.of(migration.id)?.begin_history(&ddl.server.sessions, range::keys(migration)?).await
}

pub(super) fn number(ddl: &Ddl<'_>, migration: &Migration) -> Result<DocBuf> {
    ddl.sharding.donor_commits(migration.id);
    let at = ddl.server.replication.note("a range moves", migration.ns.as_str())?;
    let mut b = DocBuilder::new();
    b.timestamp("timestamp", at);
    Ok(b.finish())
}

/// Who owns what is asked for anew. It is forgotten only where nobody answers: transactions that are open could not go on.
pub(super) async fn let_go(ddl: &Ddl<'_>, migration: &Migration, body: &RawDoc) -> Result<DocBuf> {
    let committed = body.get("committed").is_some_and(|v| v.is_truthy());
    ddl.sharding.donor_decides(migration.id, committed);
    ddl.sharding.donations.end(migration.id);
    if ddl.sharding.refresh_anew(&migration.ns).await.is_err() {
        ddl.sharding.forget(&migration.ns);
    }
    Ok(DocBuf::default())
}
