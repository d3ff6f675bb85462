//! Routing tables that the catalog manager keeps, so that a decision costs what has changed since the last one and not all chunks of
//! the collection: a commit stands between a migration's blocked writes and their end.
//!
//! ```text
//!   entry (read each time) ─► kept table of its UUID ── same generation ──► chunks from its newest placement on, by the index ─► advanced
//!                                     └─ none, another generation, or they do not fit ─► all chunks
//! ```
//! Every change of a chunk has a placement newer than all others of its collection, with two exceptions, which are told: the mark of a chunk that is
//! too large ([`KeptTables::remark`]), and what somebody writes into `config.chunks` by hand ([`KeptTables::forget_all`]). Whoever becomes primary keeps
//! nothing of before.

use crate::metadata::Metadata;
use pando_base::{Result, Uuid, limits};
use pando_routing::{Chunk, CollectionEntry, RoutingTable};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(crate) struct KeptTables(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    tables: BTreeMap<Uuid, RoutingTable>,
    /// How often something changed without a newer placement: what was read before is not kept.
    told: u64,
}

impl KeptTables {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The table of what is stored now.
    ///
    /// # Errors
    /// 117 for chunks that do not tile all keys: somebody who holds no mutex has read them while they changed.
    pub(crate) fn table(&self, metadata: &Metadata, entry: CollectionEntry) -> Result<RoutingTable> {
        let (told, before) = {
            let kept = self.kept();
            (kept.told, kept.tables.get(&entry.uuid).cloned())
        };
        let before = before.filter(|table| table.collection.generation == entry.generation);
        let advanced = before.and_then(|table| advanced(&table, metadata, &entry).ok());
        let table = match advanced {
            Some(table) => table,
            None => whole(metadata, entry)?,
        };
        self.keep(table.clone(), told);
        Ok(table)
    }
    fn keep(&self, table: RoutingTable, told: u64) {
        let mut kept = self.kept();
        let of = table.collection.uuid;
        if kept.told != told || table.chunks.len() > limits::KEPT_CHUNKS_MAX {
            kept.tables.remove(&of);
            return;
        }
        let others = kept.tables.iter().filter(|(uuid, _)| **uuid != of);
        let chunks: usize = others.map(|(_, table)| table.chunks.len()).sum();
        if chunks + table.chunks.len() > limits::KEPT_CHUNKS_MAX {
            kept.tables.clear();
        }
        kept.tables.insert(of, table);
    }
    /// A chunk is marked as too large: it keeps its placement.
    pub(crate) fn remark(&self, of: Uuid, chunk: Chunk) {
        let mut kept = self.kept();
        kept.told += 1;
        let Some(table) = kept.tables.remove(&of) else { return };
        // Behind what is kept it is found like other changes; put in now, it would hide those between.
        if chunk.placement > table.placement() {
            kept.tables.insert(of, table);
        } else if let Ok(table) = table.advanced(table.collection.clone(), &[chunk]) {
            kept.tables.insert(of, table);
        }
    }
    /// The collection is no more.
    pub(crate) fn forget(&self, of: Uuid) {
        self.kept().tables.remove(&of);
    }
    /// How many chunks are kept.
    pub(crate) fn chunks(&self) -> usize {
        self.kept().tables.values().map(|table| table.chunks.len()).sum()
    }
    pub(crate) fn forget_all(&self) {
        let mut kept = self.kept();
        kept.told += 1;
        kept.tables.clear();
    }
}

fn advanced(table: &RoutingTable, metadata: &Metadata, entry: &CollectionEntry) -> Result<RoutingTable> {
    let changed = metadata.chunks_behind(entry.uuid, table.placement())?;
    let changed = changed.iter().map(|doc| Chunk::parse(doc)).collect::<Result<Vec<Chunk>>>()?;
    table.advanced(entry.clone(), &changed)
}

fn whole(metadata: &Metadata, entry: CollectionEntry) -> Result<RoutingTable> {
    let docs = metadata.chunks(entry.uuid)?;
    let chunks = docs.iter().map(|doc| Chunk::parse(doc)).collect::<Result<Vec<Chunk>>>()?;
    RoutingTable::new(entry, &chunks)
}
