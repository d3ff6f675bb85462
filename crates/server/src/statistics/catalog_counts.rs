//! How many collections and views there are, of which kinds.

use pando_access::Definitions;
use pando_metrics::{Collector, Source};

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

impl CatalogCounts {
    pub(crate) fn of(definitions: &Definitions) -> CatalogCounts {
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
}
