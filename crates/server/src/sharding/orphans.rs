//! Documents that are here and are another shard's: their ranges wait to be deleted (SH-RDEL-1).

use super::shard_key_indexes::range_in;
use pando_access::{Access, Collection};
use pando_base::{Result, limits};
use pando_routing::ShardKey;
use pando_storage::ReadAt;
use pando_workflows::migration::{self, Migration};

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
