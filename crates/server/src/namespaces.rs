//! Finding what a command's first element names, and sizes of what is there.

use crate::Server;
use crate::timeseries::Series;
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid};
use pando_bson::{DocBuilder, Value};
use pando_catalog::{Catalog, CatalogSnapshot, Collection, Named, Phase};
use pando_command::Request;
use pando_metrics::{Collector, Source};
use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// `db.coll` of the first element, which may be the collection's UUID instead of its name.
    pub(crate) fn ns_or_uuid(&self, req: &Request<'_>) -> Result<Namespace> {
        let Value::Binary { subtype: 4, bytes } = req.first().value() else { return req.ns() };
        let uuid = Uuid::from_slice(bytes)
            .ok_or_else(|| Error::new(ErrorCode::InvalidUUID, "uuid must be a 16-byte binary field"))?;
        match self.catalog.lookup_uuid(uuid) {
            Some(c) if c.ns.db() == req.db => Ok(c.ns.clone()),
            _ => Err(Error::new(ErrorCode::NamespaceNotFound, format!("Unable to resolve {uuid}"))),
        }
    }
    /// The same for commands that refuse a `$` in the name.
    pub(crate) fn readable_ns_or_uuid(&self, req: &Request<'_>) -> Result<Namespace> {
        let ns = self.ns_or_uuid(req)?;
        ns.check_readable()?;
        Ok(ns)
    }
    /// 361 when the command names a UUID and no collection of that name has it. Called by commands that have met
    /// the argument.
    pub(crate) fn check_collection_uuid(
        &self,
        owner: &'static str,
        req: &Request<'_>,
        ns: &Namespace,
    ) -> Result<()> {
        let Some(arg) = req.args(owner).find(|a| a.name() == "collectionUUID") else { return Ok(()) };
        match arg.value() {
            Value::Null | Value::Undefined => Ok(()),
            _ => self.check_uuid(ns, Uuid(arg.uuid()?)),
        }
    }
    /// The same for writes and definitions: a time series goes by the UUID of its buckets.
    pub(crate) fn uuid_of_write(
        &self,
        given: bool,
        owner: &'static str,
        req: &Request<'_>,
        ns: &Namespace,
        series: Option<&Series>,
    ) -> Result<()> {
        match given {
            true => self.check_collection_uuid(owner, req, series.map_or(ns, |s| &s.buckets)),
            false => Ok(()),
        }
    }
    /// 361 when the collection `ns` is not the one with that UUID.
    pub(crate) fn check_uuid(&self, ns: &Namespace, wanted: Uuid) -> Result<()> {
        if self.catalog.lookup(ns).is_some_and(|c| c.uuid == wanted) {
            return Ok(());
        }
        let actual = self.catalog.lookup_uuid(wanted).filter(|c| c.ns.db() == ns.db());
        let mut b = DocBuilder::new();
        b.str("db", ns.db());
        b.uuid("collectionUUID", &wanted.0);
        b.str("expectedCollection", ns.coll());
        match actual {
            Some(c) => b.str("actualCollection", c.ns.coll()),
            None => b.null("actualCollection"),
        };
        Err(Error::new(ErrorCode::CollectionUUIDMismatch, "Collection UUID does not match that specified")
            .with_extra(b.finish().into_bytes()))
    }
    /// The collection of that name, if any; 166 when it is a view.
    pub(crate) fn existing_collection(&self, ns: &Namespace) -> Result<Option<Arc<Collection>>> {
        match self.catalog.snapshot().get(ns) {
            Some(Named::Collection(c)) => Ok(Some(c.clone())),
            Some(Named::View(v)) => Err(pando_catalog::is_a_view(v)),
            None => Ok(None),
        }
    }
    /// Bytes that a database takes: documents and an estimate of its index entries.
    pub(crate) fn database_bytes(&self, snapshot: &CatalogSnapshot, db: &str) -> Result<u64> {
        let mut total = 0;
        for c in snapshot.collections(db) {
            let space = self.space_of(&c)?;
            total += space.storage + space.index_total();
        }
        Ok(total)
    }
    pub(crate) fn count_catalog(&self) -> CatalogCounts {
        let snapshot = self.catalog.snapshot();
        let mut n = CatalogCounts::default();
        for db in snapshot.databases() {
            let internal_db = matches!(db.as_str(), "admin" | "config" | "local");
            for view in snapshot.views(&db) {
                let kind = match view.buckets() {
                    _ if internal_db => &mut n.internal_views,
                    Some(_) => &mut n.timeseries,
                    None => &mut n.views,
                };
                *kind += 1;
            }
            for c in snapshot.collections(&db) {
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
        let snapshot = self.catalog.snapshot();
        let indexes = snapshot.all_collections().flat_map(|c| c.building_indexes());
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
        space_of(&self.catalog, c)
    }
}

pub(crate) fn space_of(catalog: &Catalog, c: &Collection) -> Result<Space> {
    let s = catalog.stats_of(c)?;
    let indexes = s.index_bytes.into_iter().map(|(name, n)| (name, pages(n))).collect();
    Ok(Space { count: s.count, data: s.bytes, storage: pages(s.storage_bytes), indexes })
}
