//! How much of a chunk one migration moves, and which range is too large for it, by the documents that are here (SH-MIG-3, SH-MIG-19).

use super::{Ddl, range};
use pando_access::IndexRange;
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid, limits};
use pando_bson::{DocBuf, RawDoc};
use pando_routing::{ForceJumbo, RoutingTable};
use pando_workflows::migration::{ChunkSize, Migration};
use std::sync::Arc;

/// `None` where the collection is another one or none: somebody else finds that out.
fn chunk_size(ddl: &Ddl<'_>, ns: &Namespace, uuid: Uuid, max_bytes: u64) -> Option<ChunkSize> {
    let definitions = ddl.server.access.definitions();
    let coll = definitions.collection(ns).filter(|c| c.uuid == uuid)?;
    Some(ChunkSize::of(max_bytes, coll.data_bytes(), coll.count()))
}

/// Where a range that begins at `min` ends, so that it may move at once: the end of the chunk, if that is no more. Documents with one key
/// stay together.
///
/// # Errors
/// 118 where the collection is not sharded.
pub(super) async fn open_end(ddl: &Ddl<'_>, ns: &Namespace, min: &RawDoc, max_bytes: u64) -> Result<DocBuf> {
    let table = &*routed(ddl, ns).await?;
    let chunk = table.chunks.find(&table.collection.key.key_of_bound(min)?);
    let max = chunk.ok_or_else(|| Error::internal("no chunk holds a shard key"))?.max();
    let Some(size) = chunk_size(ddl, ns, table.collection.uuid, max_bytes) else { return Ok(max) };
    let range = range::bounded(ddl, ns, table, min, &max)?;
    let end = ddl.server.upkeep.maintenance.end_of_first(&range, size.cut_behind())?;
    Ok(end.unwrap_or(max))
}

/// Where a range that ends at `max` begins, so that it may move at once: the beginning of the chunk that holds the keys just below, if that
/// is no more. Documents with one key stay together.
///
/// # Errors
/// 118 where the collection is not sharded, 2 where no key is below.
pub(super) async fn open_start(
    ddl: &Ddl<'_>,
    ns: &Namespace,
    max: &RawDoc,
    max_bytes: u64,
) -> Result<DocBuf> {
    let table = &*routed(ddl, ns).await?;
    let chunk = table.chunks.find_below(&table.collection.key.key_of_bound(max)?);
    let below = || Error::bad_value(format!("no key lies below the bound {max}"));
    let min = chunk.ok_or_else(below)?.min().to_buf();
    let Some(size) = chunk_size(ddl, ns, table.collection.uuid, max_bytes) else { return Ok(min) };
    let range = range::bounded(ddl, ns, table, &min, max)?;
    let start = ddl.server.upkeep.maintenance.start_of_last(&range, size.cut_behind())?;
    Ok(start.unwrap_or(min))
}

/// As the config servers have it now.
async fn routed(ddl: &Ddl<'_>, ns: &Namespace) -> Result<Arc<RoutingTable>> {
    ddl.sharding.refresh_anew(ns).await?;
    ddl.sharding
        .metadata
        .known(ns)
        .table()
        .cloned()
        .ok_or_else(|| Error::new(ErrorCode::NamespaceNotSharded, format!("Collection {ns} is not sharded")))
}

/// # Errors
/// 153 where the range has more documents than may move at once, and nobody forces it.
pub(super) fn check(ddl: &Ddl<'_>, m: &Migration, range: &IndexRange, request: &RawDoc) -> Result<()> {
    let max_bytes = request.get("maxChunkSizeBytes").and_then(|v| v.as_i64());
    let Some(max_bytes) = max_bytes.and_then(|n| u64::try_from(n).ok()) else { return Ok(()) };
    if ForceJumbo::parse("request", request)?.is_forced() {
        return Ok(());
    }
    let Some(size) = chunk_size(ddl, &m.ns, m.uuid, max_bytes) else { return Ok(()) };
    let maintenance = &ddl.server.upkeep.maintenance;
    let few = size.documents_max().min(limits::MIGRATION_DOCUMENTS_MAX);
    if maintenance.records_in_range(range, few)?.len() <= few {
        return Ok(());
    }
    // All are counted only for who asks why.
    let found = maintenance.records_in_range(range, limits::MIGRATION_DOCUMENTS_MAX)?.len();
    Err(size.refusal(m, found))
}
