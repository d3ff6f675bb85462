//! The range of a migration in this shard's collection, and whose it is.

use super::Ddl;
use crate::sharding::shard_key_indexes::range_in;
use pando_access::IndexRange;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_routing::{KeyRange, RoutingTable, ShardKey};
use pando_workflows::migration::Migration;
use std::sync::Arc;

pub(super) fn key(migration: &Migration) -> Result<ShardKey> {
    ShardKey::parse(&migration.key)
}
pub(super) fn keys(migration: &Migration) -> Result<KeyRange> {
    key(migration)?.range(&migration.min, &migration.max)
}
/// The range among the chunks of a collection whose key may have got more fields since the migration began.
pub(super) fn keys_among(table: &RoutingTable, migration: &Migration) -> Result<KeyRange> {
    let key = &table.collection.key;
    key.range(&key.extend_bound(&migration.min), &key.extend_bound(&migration.max))
}

/// The range by the index over the shard key; clustered collections are in the order of their `_id`.
///
/// # Errors
/// 26 where the collection is another one or none, 27 where no index has the shard key in front.
pub(super) fn by_index(ddl: &Ddl<'_>, migration: &Migration) -> Result<IndexRange> {
    let range = whatever_there_is(ddl, migration)?;
    if range.index.is_some() || is_clustered_by(ddl, &range) {
        return Ok(range);
    }
    let text = format!("can't find index with prefix {} in collection {}", range.key.pattern(), range.ns);
    Err(Error::new(ErrorCode::IndexNotFound, text))
}
fn is_clustered_by(ddl: &Ddl<'_>, range: &IndexRange) -> bool {
    let coll = ddl.server.access.definitions().collection(&range.ns).cloned();
    let by_id = range.key.fields().first().is_some_and(|f| &*f.path == "_id") && !range.key.is_hashed();
    by_id && coll.is_some_and(|c| c.is_clustered())
}

/// The same, also where no index is there: what is to be deleted is found by looking at everything then.
///
/// # Errors
/// 26 where the collection is another one or none.
pub(in crate::commands::shardsvr) fn whatever_there_is(
    ddl: &Ddl<'_>,
    migration: &Migration,
) -> Result<IndexRange> {
    range_in(&ddl.server.access, &migration.ns, migration.uuid, key(migration)?, &keys(migration)?)
}
/// The same before there is a migration.
pub(super) fn bounded(
    ddl: &Ddl<'_>,
    ns: &Namespace,
    table: &RoutingTable,
    min: &RawDoc,
    max: &RawDoc,
) -> Result<IndexRange> {
    let key = table.collection.key.clone();
    let keys = key.range(min, max)?;
    range_in(&ddl.server.access, ns, table.collection.uuid, key, &keys)
}

/// What the config servers say of the collection now, if it is the one that the migration is of.
pub(super) async fn as_routed(ddl: &Ddl<'_>, migration: &Migration) -> Result<Option<Arc<RoutingTable>>> {
    ddl.sharding.refresh_anew(&migration.ns).await?;
    let known = ddl.sharding.metadata.known(&migration.ns);
    Ok(known.table().filter(|t| t.collection.uuid == migration.uuid).cloned())
}

/// `{moved}`: whether the recipient owns the range.
pub(super) async fn resolve(ddl: &Ddl<'_>, migration: &Migration) -> Result<DocBuf> {
    let moved = match as_routed(ddl, migration).await? {
        None => false,
        Some(table) => {
            let start = keys_among(&table, migration)?.start;
            table.chunks.find(&start).is_some_and(|chunk| chunk.shard().as_str() == migration.recipient)
        }
    };
    let mut b = DocBuilder::new();
    b.bool("moved", moved);
    Ok(b.finish())
}
