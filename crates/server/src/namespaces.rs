//! What exists, counted, and the sizes of it as statistics show them.

use crate::Server;
use pando_access::{Access, Collection, Definitions, Phase};
use pando_base::Result;
use pando_metrics::{Collector, Source};
use std::collections::BTreeMap;

/// Counts of `serverStatus.catalogStats`.
#[derive(Default)]
pub(crate) struct CatalogCounts {
    pub(crate) collections: i32,
    pub(crate) capped: i32,
    pub(crate) clustered: i32,
    pub(crate) timeseries: i32,
    pub(crate) views: i32,
    pub(crate) internal: i32,
    pub(crate) internal_views: i32,
}

impl Source for CatalogCounts {
    fn collect(&self, to: &mut Collector<'_>) {
        const UNIT: &str = "collections";
        to.gauge("collections", self.collections, UNIT, "Collections of users")
            .gauge("capped", self.capped, UNIT, "Capped collections of users")
            .gauge("clustered", self.clustered, UNIT, "Clustered collections of users")
            .gauge("timeseries", self.timeseries, UNIT, "Time-series collections")
            .gauge("views", self.views, "views", "Views of users")
            .gauge("internalCollections", self.internal, UNIT, "Collections of the server itself")
            .gauge("internalViews", self.internal_views, "views", "Views in the server's own databases");
    }
}

impl Server {
    /// Bytes that a database takes: documents and an estimate of its index entries.
    pub(crate) fn database_bytes(&self, definitions: &Definitions, db: &str) -> Result<u64> {
        let mut total = 0;
        for c in definitions.collections(db) {
            let space = self.space_of(&c)?;
            total += space.storage + space.index_total();
        }
        Ok(total)
    }
    pub(crate) fn count_catalog(&self) -> CatalogCounts {
        let definitions = self.access.definitions();
        let mut n = CatalogCounts::default();
        for db in definitions.databases() {
            let internal_db = matches!(db.as_str(), "admin" | "config" | "local");
            for view in definitions.views(&db) {
                let kind = match view.buckets() {
                    _ if internal_db => &mut n.internal_views,
                    Some(_) => &mut n.timeseries,
                    None => &mut n.views,
                };
                *kind += 1;
            }
            for c in definitions.collections(&db) {
                if internal_db || c.ns.coll().starts_with("system.") {
                    n.internal += 1;
                    continue;
                }
                n.collections += 1;
                n.capped += i32::from(c.is_capped());
                n.clustered += i32::from(c.is_clustered());
            }
        }
        n
    }
    /// What each unfinished build is doing; one that nobody has taken up yet has all before it.
    pub(crate) fn active_index_builds(&self) -> Vec<Phase> {
        let definitions = self.access.definitions();
        let indexes = definitions.all_collections().flat_map(|c| c.building_indexes());
        let builds: BTreeMap<_, _> = indexes
            .filter_map(|i| i.building.as_ref())
            .map(|build| (build.uuid, build.progress.phase()))
            .collect();
        builds.into_values().collect()
    }
}

/// Smallest unit of space that statistics show.
const PAGE: u64 = 4096;

/// Bytes of one collection as statistics show them. (Compression and versions not yet compacted make what is on
/// disk differ.)
pub(crate) struct Space {
    pub(crate) count: u64,
    /// Of the documents.
    pub(crate) data: u64,
    /// The same in whole pages.
    pub(crate) storage: u64,
    /// Name and estimated bytes of each ready index.
    pub(crate) indexes: Vec<(String, u64)>,
}

impl Space {
    pub(crate) fn index_total(&self) -> u64 {
        self.indexes.iter().map(|(_, n)| n).sum()
    }
}

fn pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE).max(PAGE)
}

impl Server {
    pub(crate) fn space_of(&self, c: &Collection) -> Result<Space> {
        space_of(&self.access, c)
    }
}

pub(crate) fn space_of(access: &Access, c: &Collection) -> Result<Space> {
    let s = access.stats_of(c)?;
    let indexes = s.index_bytes.into_iter().map(|(name, n)| (name, pages(n))).collect();
    Ok(Space { count: s.count, data: s.bytes, storage: pages(s.storage_bytes), indexes })
}
