//! `serverStatus`: what monitoring tools read.
//!
//! Nearly all of it is the metrics of the instance's registry, in the order in which their owners tell them. What is no metric
//! stands in a file of its section. Sections can be left out (`{metrics: 0}`).

mod active_index_builds;
mod election_metrics;
mod encryption_at_rest;
mod extra_info;
mod global_lock;
mod head;
mod locks;
mod mem;
mod oplog_truncation;
mod register;
mod repl;
mod sharding;
mod storage_engine;
mod traffic_recording;
mod two_phase_commit_coordinator;

use super::prelude::*;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let wanted = |name: &str| req.body.get(name).is_none_or(|v| v.is_truthy());
    let mut r = Reply::with_capacity(16 << 10);
    let b = &mut r.body;
    head::append(server, ctx, b);
    for section in SECTIONS {
        let absent = match section.name {
            "auditLog" => server.instance.audit().is_none(),
            "repl" => !server.replication.member.is_replicated(),
            "encryptionAtRest" => encryption_at_rest::is_absent(server),
            "sharding" | "shardingStatistics" => sharding::is_absent(server),
            "shardSplits" | "tenantMigrations" | "tenantMigrationAccessBlocker" => server.tenants.is_none(),
            _ => false,
        };
        if wanted(section.name) && !absent {
            b.doc(section.name, |d| section.append(server, d));
        }
    }
    Ok(r)
}

struct Section {
    name: &'static str,
    /// Places below it where several owners tell something; they are shown in alphabetical order.
    sorted: &'static [&'static str],
    /// What is no metric; it follows the metrics.
    rest: Option<fn(&Server, &mut DocBuilder)>,
}

impl Section {
    const fn of(name: &'static str) -> Section {
        Section { name, sorted: &[], rest: None }
    }
    const fn with(name: &'static str, rest: fn(&Server, &mut DocBuilder)) -> Section {
        Section { name, sorted: &[], rest: Some(rest) }
    }
    fn append(&self, server: &Server, d: &mut DocBuilder) {
        let mut tree = server.instance.registry.section(self.name);
        self.sorted.iter().for_each(|path| tree.sort(path));
        tree.append_to(d);
        if let Some(rest) = self.rest {
            rest(server, d);
        }
    }
}

/// In the order in which they are shown.
const SECTIONS: &[Section] = &[
    Section::of("activeIndexBuilds"),
    Section::of("asserts"),
    Section::of("auditLog"),
    Section::of("catalogStats"),
    Section::of("connections"),
    Section::with("defaultRWConcern", default_rw_concern),
    Section::of("electionMetrics"),
    Section::with("encryptionAtRest", encryption_at_rest::append),
    Section::of("extra_info"),
    Section::of("flowControl"),
    Section::of("globalLock"),
    Section::of("locks"),
    Section::of("logicalSessionRecordCache"),
    Section::of("network"),
    Section::of("opLatencies"),
    Section::of("opcounters"),
    Section::of("opcountersRepl"),
    Section::of("oplogTruncation"),
    Section::of("readConcernCounters"),
    Section::with("repl", repl::append),
    Section::with("security", |server, d| pando_logins::status::append(&server.logins, d)),
    Section::of("shardSplits"),
    Section::with("sharding", sharding::append),
    Section::of("shardingStatistics"),
    Section::of("storageEngine"),
    Section::of("tenantMigrationAccessBlocker"),
    Section::of("tenantMigrations"),
    Section::of("trafficRecording"),
    Section::with("transactions", |server, d| server.statistics.transactions.append_last(d)),
    Section::of("transportSecurity"),
    Section::of("twoPhaseCommitCoordinator"),
    Section::of("wiredTiger"),
    Section::of("mem"),
    Section { name: "metrics", sorted: &["", "operation"], rest: Some(api_versions) },
];

fn default_rw_concern(server: &Server, d: &mut DocBuilder) {
    if server.replication.member.is_replicated() {
        super::rw_concern::append(server, d, false);
    }
}

fn api_versions(server: &Server, d: &mut DocBuilder) {
    let apps = server.instance.api_versions.shown(server.instance.env.clock.mono());
    d.doc("apiVersions", |d| {
        for (app, versions) in &apps {
            d.array(app, |a| {
                for version in versions {
                    a.str(version);
                }
            });
        }
    });
}
