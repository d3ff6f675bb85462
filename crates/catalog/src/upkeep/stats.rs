//! Sizes for `collStats`, `dbStats` and `listDatabases`.
//!
//! All collections share the engine's trees, so what one of them takes on disk is an estimate: its documents'
//! bytes, and for an index its number of entries times the mean size of a few.

use crate::Catalog;
use crate::schema::collection::Collection;
use crate::schema::tables::TableSource;
use pando_base::Result;
use pando_query::source::{Direction, RecordScan, Source};
use pando_storage::{Dir, ReadAt};
use std::ops::Bound;

/// Entries looked at to learn an index's mean entry size.
const SAMPLE: usize = 64;

/// Figures of one collection.
#[derive(Clone, Debug, Default)]
pub struct CollectionStats {
    pub count: u64,
    /// Bytes of documents.
    pub bytes: u64,
    /// Estimated bytes on disk.
    pub storage_bytes: u64,
    /// Name and estimated bytes of each ready index.
    pub index_bytes: Vec<(String, u64)>,
}

impl CollectionStats {
    pub fn total_index_bytes(&self) -> u64 {
        self.index_bytes.iter().map(|(_, b)| b).sum()
    }
}

impl Catalog {
    pub fn stats_of(&self, coll: &Collection) -> Result<CollectionStats> {
        if coll.is_oplog() {
            let bytes = self.storage().stats().log_bytes;
            return Ok(CollectionStats { bytes, storage_bytes: bytes, ..CollectionStats::default() });
        }
        if let Some(mut source) = TableSource::of(coll) {
            return stats_of_table(&mut source, coll);
        }
        let txn = self.storage().begin(ReadAt::Latest)?;
        let count = coll.count();
        let mut index_bytes = Vec::new();
        for i in coll.ready_indexes() {
            let mut cursor = txn.scan(i.ident, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
            let (mut n, mut bytes) = (0u64, 0u64);
            while n < SAMPLE as u64 {
                let Some((k, v)) = cursor.next()? else { break };
                n += 1;
                bytes += (k.len() + v.len()) as u64;
            }
            // Fewer than the sample: counted exactly; else as many entries as documents, at least.
            let total = if n < SAMPLE as u64 { bytes } else { bytes * count.max(n) / n };
            index_bytes.push((i.spec.name.clone(), total));
        }
        Ok(CollectionStats { count, bytes: coll.data_bytes(), storage_bytes: coll.data_bytes(), index_bytes })
    }
}

/// Counted: nothing keeps figures of what is not stored.
fn stats_of_table(source: &mut TableSource, coll: &Collection) -> Result<CollectionStats> {
    let mut stats = CollectionStats::default();
    let mut rows = source.scan_records(RecordScan::all(Direction::Forward))?;
    while let Some((_, row)) = rows.next()? {
        stats.count += 1;
        stats.bytes += row.len() as u64;
    }
    stats.index_bytes = coll.ready_indexes().iter().map(|i| (i.spec.name.clone(), 0)).collect();
    Ok(stats)
}
