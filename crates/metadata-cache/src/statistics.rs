//! `serverStatus.shardingStatistics.catalogCache`: what is kept of other nodes' knowledge, and what it costs to keep it new.

use crate::MetadataCache;
use pando_metrics::{Collector, Gauge, Source, group};

group! {
    /// Refreshes of routing tables.
    pub(crate) struct Refreshes {
        /// Operations that a shard sent away for what this node knew of a collection
        pub(crate) stale: Counter = "countStaleConfigErrors", "operations";
        /// Time that operations have waited for routing tables
        pub(crate) waited_us: Counter = "totalRefreshWaitTimeMicros", "microseconds";
        /// Refreshes under way that read what has changed
        pub(crate) incremental_now: Gauge = "numActiveIncrementalRefreshes", "refreshes";
        /// Refreshes that read what has changed
        pub(crate) incremental: Counter = "countIncrementalRefreshesStarted", "refreshes";
        /// Refreshes under way that read everything
        pub(crate) full_now: Gauge = "numActiveFullRefreshes", "refreshes";
        /// Refreshes that read everything
        pub(crate) full: Counter = "countFullRefreshesStarted", "refreshes";
        /// Refreshes that came to nothing
        pub(crate) failed: Counter = "countFailedRefreshes", "refreshes";
    }
}

/// A refresh that is under way.
pub(crate) struct UnderWay<'a>(&'a Gauge);

impl Refreshes {
    pub(crate) fn begin(&self, incremental: bool) -> UnderWay<'_> {
        let (begun, now) = match incremental {
            true => (&self.incremental, &self.incremental_now),
            false => (&self.full, &self.full_now),
        };
        begun.inc();
        now.add(1);
        UnderWay(now)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.sub(1);
    }
}

impl Source for MetadataCache {
    fn collect(&self, to: &mut Collector<'_>) {
        to.gauge("numDatabaseEntries", self.databases.len(), "databases", "Databases that are known");
        to.gauge("numCollectionEntries", self.collections.len(), "collections", "Collections that are known");
        self.refreshes.collect(to);
    }
}
