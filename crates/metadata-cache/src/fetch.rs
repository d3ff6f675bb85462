//! What the config servers say of one database or one collection, read and put together (SH-CACHE-3).

use crate::ConfigServers;
use crate::reads::Ask;
use crate::statistics::Refreshes;
use crate::tables::{KnownCollection, KnownDatabase};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder};
use pando_routing::cache::Failure;
use pando_routing::{Chunk, CollectionEntry, DatabaseEntry, RoutingTable};
use std::sync::Arc;

pub(crate) fn by_id(id: &str) -> DocBuf {
    let mut b = DocBuilder::new();
    b.str("_id", id);
    b.finish()
}

/// Chunks that were read while others changed do not fit together, and are to be read again.
fn failure(e: Error) -> Failure {
    match e.code {
        ErrorCode::ConflictingOperationInProgress => Failure::Torn,
        code => Failure::Error(code, e.message.to_string()),
    }
}

pub(crate) async fn database(config: Arc<ConfigServers>, name: String) -> Result<KnownDatabase, Failure> {
    let read = async {
        let found = config.find_one("databases", by_id(&name)).await?;
        Ok(KnownDatabase(found.map(|doc| DatabaseEntry::parse(&doc).map(Arc::new)).transpose()?))
    };
    read.await.map_err(failure)
}

pub(crate) async fn collection(
    config: Arc<ConfigServers>,
    counts: Arc<Refreshes>,
    ns: String,
    since: Option<KnownCollection>,
) -> Result<KnownCollection, Failure> {
    let read = async {
        let Some(doc) = config.find_one("collections", by_id(&ns)).await? else {
            return Ok(KnownCollection(None));
        };
        let entry = CollectionEntry::parse(&doc)?;
        let known = since.and_then(|s| s.0).filter(|t| t.collection.generation == entry.generation);
        let _under_way = counts.begin(known.is_some());
        let chunks = chunks_of(&config, &entry, known.as_deref()).await?;
        let table = match known {
            Some(known) => known.advanced(entry, &chunks)?,
            None => RoutingTable::new(entry, &chunks)?,
        };
        Ok(KnownCollection(Some(Arc::new(table))))
    };
    read.await.map_err(|e| {
        counts.failed.inc();
        failure(e)
    })
}

/// Those that are as new as the newest one that is known, or newer; all where none are known.
async fn chunks_of(
    config: &ConfigServers,
    entry: &CollectionEntry,
    known: Option<&RoutingTable>,
) -> Result<Vec<Chunk>> {
    let mut filter = DocBuilder::new();
    filter.uuid("uuid", &entry.uuid.0);
    if let Some(known) = known {
        filter.doc("lastmod", |d| {
            d.timestamp("$gte", known.placement().timestamp());
        });
    }
    let mut sort = DocBuilder::new();
    sort.i32("lastmod", 1);
    let ask = Ask { sort: Some(sort.finish()), ..Ask::of("chunks", filter.finish()) };
    config.find(&ask).await?.iter().map(|doc| Chunk::parse(doc)).collect()
}
