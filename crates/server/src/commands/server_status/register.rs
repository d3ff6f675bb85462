//! Who tells which metrics of this server, and where.

use super::{
    active_index_builds, election_metrics, extra_info, global_lock, locks, mem, oplog_truncation,
    storage_engine, traffic_recording, two_phase_commit_coordinator,
};
use crate::Server;
use crate::sharding::Sharding;
use crate::statistics::catalog_counts::CatalogCounts;
use pando_metrics::{Collector, Source};
use std::sync::Arc;

impl Server {
    /// What a server adds to the metrics of its [`Instance`](pando_command::Instance): who tells what, and where.
    pub(crate) fn register_metrics(self: &Arc<Self>) {
        let r = &self.instance.registry;
        let section = |path, collect: fn(&Server, &mut Collector<'_>)| r.asked(path, self, collect);
        section("activeIndexBuilds", active_index_builds::collect);
        section("catalogStats", |s, to| CatalogCounts::of(&s.access.definitions()).collect(to));
        section("electionMetrics", election_metrics::collect);
        section("extra_info", extra_info::collect);
        section("flowControl", |s, to| s.upkeep.admission.flow_control.collect(to));
        section("globalLock", global_lock::collect);
        section("locks", locks::collect);
        section("logicalSessionRecordCache", |s, to| s.sessions.collect_metrics(to));
        section("oplogTruncation", oplog_truncation::collect);
        section("security", |s, to| s.logins.counts.collect(to));
        section("shardingStatistics", |s, to| {
            // Config servers tell once they are a shard.
            let told =
                |sharding: &&Arc<Sharding>| s.config_server.is_none() || sharding.shard_name().is_some();
            s.sharding.iter().filter(told).for_each(|s| s.collect(to));
        });
        section("storageEngine", storage_engine::collect);
        section("shardSplits", |s, to| s.tenants.iter().for_each(|t| t.blockers.splits.collect(to)));
        section("tenantMigrations", |s, to| s.tenants.iter().for_each(|t| t.blockers.migrations.collect(to)));
        section("tenantMigrationAccessBlocker", |s, to| {
            s.tenants.iter().for_each(|t| t.blockers.counts.collect(to));
        });
        section("trafficRecording", traffic_recording::collect);
        section("transactions", |s, to| {
            s.statistics.transactions.collect(s.upkeep.maintenance.prepared_count(), to)
        });
        section("twoPhaseCommitCoordinator", two_phase_commit_coordinator::collect);
        section("wiredTiger", |s, to| s.storage.collect(to));
        section("mem", mem::collect);
        section("metrics", |s, to| {
            s.statistics.named.collect(to);
            if let Some(config_server) = &s.config_server {
                to.within("configServer", |to| config_server.collect(to));
            }
        });
        section("metrics.changeStreams", |s, to| s.statistics.change_streams.collect(to));
        section("metrics.commands", |s, to| s.registry.collect(to));
        section("metrics.cursor", |s, to| s.crud.cursors.open.stats().collect(to));
        section("metrics.dotsAndDollarsFields", |s, to| {
            let (met, help) = (
                s.upkeep.maintenance.dollar_inserts(),
                "Documents to insert with a field whose name begins with a dollar",
            );
            to.counter("inserts", met, "documents", help);
        });
        section("metrics.operation", |s, to| s.statistics.transactions.collect_too_large(to));
        section("metrics.operation", |s, to| {
            let (met, help) =
                (s.storage.write_conflicts().get(), "Writes that met a write of another transaction");
            to.counter("writeConflicts", met, "conflicts", help);
        });
        section("metrics.repl.apply", |s, to| s.upkeep.maintenance.applied().collect(to));
        section("metrics.repl.refusedMembers", |s, to| s.replication.member_door.refused.collect(to));
        section("metrics.repl.rollback", |s, to| s.replication.rollbacks.collect(to));
        section("metrics.repl.stateTransition", |s, to| s.replication.transitions.collect(to));
        section("metrics.tls", |s, to| pando_logins::status::collect(&s.logins, to));
        section("metrics.ttl", |s, to| s.upkeep.ttl.stats.collect(to));
    }
}
