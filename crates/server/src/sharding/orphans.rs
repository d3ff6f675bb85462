//! Documents that are here and are another shard's: their ranges wait to be deleted (SH-RDEL-1).

use super::shard_key_indexes::serves;
use pando_access::{Access, Collection, IndexRange};
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid, limits};
use pando_routing::{KeyRange, ShardKey};
use pando_storage::ReadAt;
use pando_workflows::migration::{self, Migration};

/// A range of a collection by the index over its shard key, if there is one.
///
/// # Errors
/// 26 where the collection is another one or none.
pub(crate) fn range_in(
    access: &Access,
    ns: &Namespace,
    uuid: Uuid,
    key: ShardKey,
    keys: &KeyRange,
) -> Result<IndexRange> {
    let coll = access.definitions().collection(ns).filter(|c| c.uuid == uuid).cloned();
    let coll = coll.ok_or_else(|| {
        Error::new(ErrorCode::NamespaceNotFound, format!("there is no collection {ns} with UUID {uuid} here"))
    })?;
    let index = coll.ready_indexes().iter().find(|i| serves(i, &key)).map(|i| i.spec.name.clone());
    let (start, end) = (keys.start.clone(), keys.index_end().to_vec());
    Ok(IndexRange { ns: ns.clone(), uuid, index, key, start, end })
}

/// What is here and not this shard's: it is to be deleted, or comes just now.
pub(crate) fn tasks(access: &Access, own: &str) -> Result<Vec<Migration>> {
    let docs = access.internal_collections().all(&migration::deletions(), ReadAt::Latest)?;
    let parsed = docs.iter().filter_map(|doc| Some((migration::is_pending(doc), Migration::parse(doc)?)));
    // Until it is decided it is the donor's.
    Ok(parsed.filter(|(pending, m)| !pending || m.donor != own).map(|(_, m)| m).collect())
}

/// How many of a collection, counted by the index.
pub(crate) fn of_collection(access: &Access, coll: &Collection, tasks: &[Migration]) -> Result<u64> {
    let mut found = 0;
    for task in tasks.iter().filter(|task| task.uuid == coll.uuid) {
        let key = ShardKey::parse(&task.key)?;
        let keys = key.range(&task.min, &task.max)?;
        let range = range_in(access, &coll.ns, coll.uuid, key, &keys)?;
        found += access.maintenance().records_in_range(&range, limits::MIGRATION_DOCUMENTS_MAX)?.len() as u64;
    }
    Ok(found)
}

/// The same, as statistics of a shard tell it; none of a set that is no shard.
pub(crate) fn counted(access: &Access, shard: Option<&str>, coll: &Collection) -> Result<u64> {
    match shard {
        Some(own) => of_collection(access, coll, &tasks(access, own)?),
        None => Ok(0),
    }
}
