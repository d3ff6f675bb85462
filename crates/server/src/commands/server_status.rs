//! `serverStatus`: the counters that monitoring tools read.
//!
//! Sections can be left out (`{metrics: 0}`); some come only on request.

use super::prelude::*;
use crate::config::VERSION;
use pando_base::limits;
use pando_catalog::Phase;
use pando_command::locks::append_class;
use pando_command::metrics::{Compression, Latency, OpCounters};
use pando_env::op_locks::{Class, Taken};
use pando_repl::topology::election::Reason;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let wanted = |name: &str| req.body.get(name).is_none_or(|v| v.is_truthy());
    let mut r = Reply::with_capacity(16 << 10);
    let b = &mut r.body;
    append_head(server, ctx, b);
    for (name, append) in SECTIONS {
        let absent = *name == "repl" && !server.replication.member.is_replicated();
        if wanted(name) && !absent {
            b.doc(name, |d| append(server, d));
        }
    }
    Ok(r)
}

type Section = (&'static str, fn(&Server, &mut DocBuilder));

/// In the order they are printed.
const SECTIONS: &[Section] = &[
    ("activeIndexBuilds", active_index_builds),
    ("asserts", asserts),
    ("catalogStats", catalog_stats),
    ("connections", connections),
    ("defaultRWConcern", default_rw_concern),
    ("electionMetrics", election_metrics),
    ("extra_info", extra_info),
    ("flowControl", |s, d| s.append_flow_control(d)),
    ("globalLock", global_lock),
    ("locks", locks),
    ("logicalSessionRecordCache", session_cache),
    ("network", network),
    ("opLatencies", op_latencies),
    ("opcounters", |s, d| op_counters(d, &s.instance.metrics.op_counters)),
    ("opcountersRepl", |s, d| op_counters(d, &s.instance.metrics.op_counters_repl)),
    ("oplogTruncation", oplog_truncation),
    ("readConcernCounters", read_concern_counters),
    ("repl", repl),
    ("storageEngine", storage_engine),
    ("trafficRecording", |_, d| {
        d.bool("running", false);
    }),
    ("transactions", transactions),
    ("transportSecurity", transport_security),
    ("twoPhaseCommitCoordinator", two_phase_commit),
    ("wiredTiger", wired_tiger),
    ("mem", mem),
    ("metrics", metrics),
];

fn zeros(d: &mut DocBuilder, names: &[&str]) {
    for name in names {
        d.i64(name, 0);
    }
}

fn append_head(server: &Server, ctx: &OpCtx, b: &mut DocBuilder) {
    let up = ctx.env().clock.mono().saturating_sub(server.instance.started);
    b.str("host", &server.host_port());
    b.str("version", VERSION);
    b.str("process", "mongod");
    b.i64("pid", i64::from(server.config.host.facts().pid));
    b.f64("uptime", up.as_secs() as f64);
    b.i64("uptimeMillis", up.as_millis() as i64);
    b.i64("uptimeEstimate", up.as_secs() as i64);
    b.date("localTime", ctx.env().clock.wall_ms());
}

fn active_index_builds(server: &Server, d: &mut DocBuilder) {
    let phases = server.active_index_builds();
    let in_phase = |which: &[Phase]| phases.iter().filter(|p| which.contains(p)).count() as i32;
    d.i32("total", phases.len() as i32);
    d.doc("phases", |d| {
        d.i32("scanCollection", in_phase(&[Phase::Scanning, Phase::Loading]));
        d.i32("drainSideWritesTable", in_phase(&[Phase::Draining]));
        d.i32("waitForCommitQuorum", in_phase(&[Phase::Ready]));
    });
}

fn asserts(server: &Server, d: &mut DocBuilder) {
    let a = &server.instance.metrics.asserts;
    d.i32("regular", a.regular.get() as i32);
    d.i32("warning", a.warning.get() as i32);
    d.i32("msg", a.msg.get() as i32);
    d.i32("user", a.user.get() as i32);
    d.i32("tripwire", 0);
    d.i32("rollovers", 0);
}

fn catalog_stats(server: &Server, d: &mut DocBuilder) {
    let c = server.count_catalog();
    d.i32("collections", c.collections);
    d.i32("capped", c.capped);
    d.i32("clustered", c.clustered);
    d.i32("timeseries", c.timeseries);
    d.i32("views", c.views);
    d.i32("internalCollections", c.internal);
    d.i32("internalViews", c.internal_views);
}

fn connections(server: &Server, d: &mut DocBuilder) {
    let c = &server.instance.metrics.connections;
    let current = c.current.get();
    d.i32("current", current as i32);
    d.i32("available", (i64::from(server.config.max_connections) - current).max(0) as i32);
    d.i32("totalCreated", c.total_created.get() as i32);
    d.i32("rejected", c.rejected.get() as i32);
    d.i32("active", c.active.get() as i32);
    d.i32("threaded", current as i32);
    d.i32("exhaustIsMaster", c.exhaust_is_master.get() as i32);
    d.i32("exhaustHello", c.exhaust_hello.get() as i32);
    d.i32("awaitingTopologyChanges", c.awaiting_topology_changes.get() as i32);
}

fn default_rw_concern(server: &Server, d: &mut DocBuilder) {
    if server.replication.member.is_replicated() {
        super::rw_concern::append(server, d, false);
    }
}

fn election_metrics(server: &Server, d: &mut DocBuilder) {
    let counts = server
        .replication
        .coordinator
        .get()
        .map(|c| c.read(|core| core.election_counts().clone()))
        .unwrap_or_default();
    let reasons: [(&str, &[Reason]); 7] = [
        ("stepUpCmd", &[Reason::StepUpRequest, Reason::StepUpRequestSkipDryRun]),
        ("priorityTakeover", &[Reason::PriorityTakeover]),
        ("catchUpTakeover", &[Reason::CatchUpTakeover]),
        ("electionTimeout", &[Reason::ElectionTimeout]),
        ("freezeTimeout", &[Reason::SingleNodePromptElection]),
        ("primaryLost", &[Reason::PrimaryLost]),
        ("wholeSetStarted", &[Reason::WholeSetStarted]),
    ];
    for (name, reasons) in reasons {
        let sum = |by: &BTreeMap<Reason, u64>| reasons.iter().filter_map(|r| by.get(r)).sum::<u64>() as i64;
        d.doc(name, |x| {
            x.i64("called", sum(&counts.called));
            x.i64("successful", sum(&counts.successful));
        });
    }
    let c = &counts;
    let totals = [
        ("numStepDownsCausedByHigherTerm", c.step_downs_higher_term),
        ("numCatchUps", c.catch_ups),
        ("numCatchUpsSucceeded", c.catch_ups_succeeded),
        ("numCatchUpsAlreadyCaughtUp", c.catch_ups_already_caught_up),
        ("numCatchUpsSkipped", c.catch_ups_skipped),
        ("numCatchUpsTimedOut", c.catch_ups_timed_out),
        ("numCatchUpsFailedWithError", c.catch_ups_failed),
        ("numPrimarySuspicions", c.suspicions),
        ("numPrimarySuspicionsRefuted", c.suspicions_refuted),
    ];
    for (name, n) in totals {
        d.i64(name, n as i64);
    }
    let ended = c.catch_ups_succeeded + c.catch_ups_timed_out;
    let average = if ended == 0 { 0.0 } else { server.replication.catch_ups.total() as f64 / ended as f64 };
    d.f64("averageCatchUpOps", average);
}

fn extra_info(server: &Server, d: &mut DocBuilder) {
    let u = server.config.host.usage();
    d.str("note", "fields vary by platform");
    d.i64("user_time_us", u.user_cpu_us as i64);
    d.i64("system_time_us", u.system_cpu_us as i64);
    d.i64("maximum_resident_set_kb", (u.resident_bytes >> 10) as i64);
    d.i64("page_faults", u.page_faults as i64);
    d.i64("threads", u.threads as i64);
}

fn global_lock(server: &Server, d: &mut DocBuilder) {
    let up = server.env.clock.mono().saturating_sub(server.instance.started);
    d.i64("totalTime", up.as_micros() as i64);
    let (databases, collections) = server.catalog.lock_counts();
    // Nobody waits for a lock in order to read.
    let queued = (databases.queued + collections.queued) as i32;
    let active = server.instance.metrics.connections.active.get() as i32;
    d.doc("currentQueue", |x| {
        x.i32("total", queued).i32("readers", 0).i32("writers", queued);
    });
    // Which of them write is not counted.
    d.doc("activeClients", |x| {
        x.i32("total", active);
    });
}

/// Those that there are: definitions of a database change one at a time, writers of a collection share its lock, and all writes
/// pass a gate that a step-down closes. Readers take none.
fn locks(server: &Server, d: &mut DocBuilder) {
    let (databases, collections) = server.catalog.lock_counts();
    for (class, n) in [
        (Class::FeatureCompatibilityVersion, server.settings.feature_version_lock.counts()),
        (Class::ReplicationStateTransition, server.catalog.gate().counts()),
        (Class::Database, databases),
        (Class::Collection, collections),
    ] {
        let shared = Taken { acquired: n.shared, waits: n.shared_waits, micros: n.shared_us };
        let alone = Taken { acquired: n.exclusive, waits: n.exclusive_waits, micros: n.exclusive_us };
        append_class(d, class, [shared, alone]);
    }
}

fn session_cache(server: &Server, d: &mut DocBuilder) {
    d.i32("activeSessionsCount", server.sessions.count() as i32);
    server.session_rounds.append_to(d);
    d.i32("sessionCatalogSize", server.retryable.count() as i32);
    let (bytes, shed) = server.retryable.usage();
    d.i64("sessionCatalogBytes", bytes as i64).i64("sessionCatalogShed", shed as i64);
}

fn network(server: &Server, d: &mut DocBuilder) {
    let n = &server.instance.metrics.network;
    d.i64("bytesIn", n.bytes_in.get() as i64);
    d.i64("bytesOut", n.bytes_out.get() as i64);
    d.i64("physicalBytesIn", n.physical_bytes_in.get() as i64);
    d.i64("physicalBytesOut", n.physical_bytes_out.get() as i64);
    d.i64("numRequests", n.requests.get() as i64);
    d.doc("compression", |c| {
        for (name, id) in [("snappy", 1), ("zstd", 3), ("zlib", 2)] {
            c.doc(name, |x| append_compression(x, &n.compression[id]));
        }
    });
}

fn append_compression(x: &mut DocBuilder, c: &Compression) {
    x.doc("compressor", |y| {
        y.i64("bytesIn", c.compressor_bytes_in.get() as i64);
        y.i64("bytesOut", c.compressor_bytes_out.get() as i64);
    });
    x.doc("decompressor", |y| {
        y.i64("bytesIn", c.decompressor_bytes_in.get() as i64);
        y.i64("bytesOut", c.decompressor_bytes_out.get() as i64);
    });
}

fn op_latencies(server: &Server, d: &mut DocBuilder) {
    let l = &server.instance.metrics.latencies;
    let rows: [(&str, &Latency); 4] = [
        ("reads", &l.reads),
        ("writes", &l.writes),
        ("commands", &l.commands),
        ("transactions", &l.transactions),
    ];
    for (name, l) in rows {
        d.doc(name, |x| {
            x.i64("latency", l.micros.get() as i64);
            x.i64("ops", l.ops.get() as i64);
        });
    }
}

fn op_counters(d: &mut DocBuilder, c: &OpCounters) {
    d.i64("insert", c.insert.get() as i64);
    d.i64("query", c.query.get() as i64);
    d.i64("update", c.update.get() as i64);
    d.i64("delete", c.delete.get() as i64);
    d.i64("getmore", c.getmore.get() as i64);
    d.i64("command", c.command.get() as i64);
}

fn oplog_truncation(server: &Server, d: &mut DocBuilder) {
    d.str("processingMethod", "segments");
    let hours = server.settings.oplog_retention_ms.load(Relaxed) as f64 / 3_600_000.0;
    if hours > 0.0 {
        d.f64("oplogMinRetentionHours", hours);
    }
    d.i64("truncateCount", server.storage.stats().log_files_dropped as i64);
}

fn read_concern_counters(server: &Server, d: &mut DocBuilder) {
    let m = &server.instance.metrics;
    let kinds =
        [("nonTransactionOps", &m.read_concerns), ("transactionOps", &m.read_concerns_in_transactions)];
    for (name, n) in kinds {
        let levels =
            [("none", &n.none), ("local", &n.local), ("available", &n.available), ("majority", &n.majority)];
        d.doc(name, |x| {
            for (name, n) in levels {
                x.i64(name, n.get() as i64);
            }
            x.doc("snapshot", |s| {
                s.i64("withClusterTime", n.snapshot_at.get() as i64);
                s.i64("withoutClusterTime", n.snapshot.get() as i64);
            });
            x.i64("linearizable", n.linearizable.get() as i64);
        });
    }
}

/// `repl.userWriteBlockMode`.
const WRITES_ALLOWED: i32 = 1;
const WRITES_BLOCKED: i32 = 2;

fn repl(server: &Server, d: &mut DocBuilder) {
    server.replication.member.append_hello(d, false, server.replication.positions());
    if let Some(services) = server.replication.services() {
        d.doc("primaryOnlyServices", |x| {
            for (name, state, instances) in services.host.counts() {
                x.doc(name, |s| {
                    s.str("state", state).i64("numInstances", instances as i64);
                });
            }
        });
    }
    d.i32("rbid", server.replication.progress.rbid());
    d.i32(
        "userWriteBlockMode",
        if server.settings.user_writes.are_blocked() { WRITES_BLOCKED } else { WRITES_ALLOWED },
    );
}

fn storage_engine(server: &Server, d: &mut DocBuilder) {
    // Tools refuse names they do not know; the true one is in buildInfo.
    d.str("name", "wiredTiger");
    d.bool("supportsCommittedReads", server.config.majority_reads);
    d.timestamp("oldestRequiredTimestampForCrashRecovery", server.storage.stable());
    d.bool("supportsPendingDrops", true);
    d.i64("dropPendingIdents", server.storage.stats().drop_pending as i64);
    d.bool("supportsSnapshotReadConcern", true);
    d.bool("readOnly", server.catalog.gate().is_read_only());
    d.bool("persistent", true);
    d.bool("backupCursorOpen", server.backups.is_any_open());
}

fn transactions(server: &Server, d: &mut DocBuilder) {
    server.statistics.transactions.append_to(d, server.catalog.prepared_count());
}

fn transport_security(_: &Server, d: &mut DocBuilder) {
    zeros(d, &["1.0", "1.1", "1.2", "1.3", "unknown"]);
}

fn two_phase_commit(_: &Server, d: &mut DocBuilder) {
    zeros(
        d,
        &[
            "totalCreated",
            "totalStartedTwoPhaseCommit",
            "totalAbortedTwoPhaseCommit",
            "totalCommittedTwoPhaseCommit",
        ],
    );
}

/// Dashboards look for the cache's size here; the figures are this server's own.
fn wired_tiger(server: &Server, d: &mut DocBuilder) {
    d.doc("cache", |c| {
        c.i64("maximum bytes configured", server.config.storage.memory() as i64);
        let s = server.storage.stats();
        let in_memory = s.memtable_bytes as u64 + s.cached_bytes + s.pinned_bytes;
        c.i64("bytes currently in the cache", in_memory as i64);
        c.i64("tracked dirty bytes in the cache", s.memtable_bytes as i64);
    });
    let s = server.storage.stats();
    d.doc("pandodb", |p| {
        for (name, t) in [("records", s.records), ("indexes", s.indexes), ("history", s.history)] {
            p.doc(name, |x| {
                x.i64("tables", t.tables as i64);
                x.i64("runs", t.runs as i64);
                x.i64("bytes", t.bytes as i64);
            });
        }
        p.i64("cachedBytes", s.cached_bytes as i64);
        p.i64("cachedBytesMax", server.config.storage.cache_bytes as i64);
        p.i64("pinnedBytes", s.pinned_bytes as i64);
        p.i64("memtableBytes", s.memtable_bytes as i64);
        p.i64("memtableBytesMax", s.memtable_bytes_max as i64);
        p.i64("roomWaits", s.room_waits as i64);
        p.i64("refusedUnits", s.refused as i64);
        p.i64("historyBytesMax", server.config.storage.history_bytes_max as i64);
        p.i64("snapshotsGivenUp", s.snapshots_given_up as i64);
        p.i64("logBytes", s.log_bytes as i64);
        p.i64("logBytesMax", s.log_bytes_max as i64);
        p.i64("logFiles", s.log_files as i64);
        p.i64("logRecentBytes", s.log_recent_bytes as i64);
        p.i64("openSlots", s.open_slots as i64);
        p.i64("checkpoints", s.checkpoints as i64);
    });
}

fn mem(server: &Server, d: &mut DocBuilder) {
    let u = server.config.host.usage();
    d.i32("bits", 64);
    d.i32("resident", (u.resident_bytes >> 20) as i32);
    d.i32("virtual", (u.virtual_bytes >> 20) as i32);
    d.bool("supported", true);
}

fn metrics(server: &Server, d: &mut DocBuilder) {
    let docs = &server.instance.metrics.documents;
    d.doc("changeStreams", |c| server.statistics.change_streams.append(c));
    d.doc("commands", |c| {
        c.i64("<UNKNOWN>", server.registry.unknown.get() as i64);
        for spec in server.registry.commands() {
            if spec.handler.is_some() {
                c.doc(spec.name, |x| {
                    x.i64("failed", spec.counts.failed.get() as i64);
                    x.i64("total", spec.counts.total.get() as i64);
                });
            }
        }
    });
    d.doc("cursor", |c| append_cursor_metrics(server, c));
    d.doc("document", |x| {
        x.i64("deleted", docs.deleted.get() as i64);
        x.i64("inserted", docs.inserted.get() as i64);
        x.i64("returned", docs.returned.get() as i64);
        x.i64("updated", docs.updated.get() as i64);
    });
    d.doc("getLastError", |x| {
        let waits = &server.instance.metrics.write_concern_waits;
        x.doc("wtime", |w| {
            w.i64("num", waits.waited.ops.get() as i64);
            w.i64("totalMillis", waits.waited.millis());
        });
        x.i64("wtimeouts", waits.timed_out.get() as i64);
    });
    d.doc("operation", |x| {
        x.i64("scanAndOrder", docs.sorted_in_memory.get() as i64);
        x.i64("transactionTooLargeForCacheErrors", server.statistics.transactions.memory.too_large() as i64);
        x.i64("writeConflicts", docs.write_conflicts.get() as i64);
    });
    d.doc("queryExecutor", |x| {
        x.doc("collectionScans", |c| {
            c.i64("nonTailable", docs.collection_scans_not_tailing.get() as i64);
            c.i64("total", docs.collection_scans.get() as i64);
        });
        x.i64("scanned", docs.scanned_keys.get() as i64);
        x.i64("scannedObjects", docs.scanned_docs.get() as i64);
    });
    d.doc("repl", |x| {
        append_replication_metrics(server, x);
        x.doc("rollback", |r| server.replication.rollbacks.append(r));
        x.doc("stateTransition", |t| server.replication.transitions.append(t));
    });
    d.doc("ttl", |x| {
        x.i64("deletedDocuments", server.ttl.deleted.get() as i64);
        x.i64("passes", server.ttl.passes.get() as i64);
    });
}

/// What this member fetches and applies; MongoDB's names.
fn append_replication_metrics(server: &Server, d: &mut DocBuilder) {
    let m = &server.instance.metrics.replication;
    let times = |d: &mut DocBuilder, l: &Latency| {
        d.i64("num", l.ops.get() as i64).i64("totalMillis", l.millis());
    };
    d.doc("apply", |x| {
        x.doc("batches", |b| times(b, &m.applied_batches));
        x.i64("ops", m.applied_ops.get() as i64);
        // Ours: groups of entries that shared a unit, and those that fell back to one entry at a time.
        let applied = server.catalog.applied();
        x.i64("units", applied.units.load(Relaxed) as i64);
        x.i64("splitUnits", applied.split.load(Relaxed) as i64);
    });
    d.doc("buffer", |x| {
        x.i64("count", m.buffered_ops.get());
        x.i64("maxSizeBytes", (limits::FETCH_BUFFER_BYTES_MAX + limits::APPLY_BUFFER_BYTES_MAX) as i64);
        x.i64("sizeBytes", m.buffered_bytes.get());
    });
    d.doc("network", |x| {
        x.i64("bytes", m.fetched_bytes.get() as i64);
        x.doc("getmores", |g| {
            times(g, &m.batches);
            g.i64("numEmptyBatches", m.empty_batches.get() as i64);
        });
        x.i64("ops", m.fetched_ops.get() as i64);
        x.i64("readersCreated", m.readers_created.get() as i64);
        x.doc("replSetUpdatePosition", |u| {
            u.i64("num", m.position_updates.get() as i64);
        });
    });
}

fn append_cursor_metrics(server: &Server, c: &mut DocBuilder) {
    let s = server.cursors.stats();
    c.i64("moreThanOneBatch", s.more_than_one_batch as i64);
    c.i64("timedOut", s.timed_out as i64);
    c.i64("totalOpened", s.opened as i64);
    c.doc("lifespan", |l| {
        let names = [
            "lessThan1Second",
            "lessThan5Seconds",
            "lessThan15Seconds",
            "lessThan30Seconds",
            "lessThan1Minute",
            "lessThan10Minutes",
            "greaterThanOrEqual10Minutes",
        ];
        for (name, n) in names.iter().zip(s.lifespans) {
            l.i64(name, n as i64);
        }
    });
    c.doc("open", |o| {
        o.i64("noTimeout", s.no_timeout as i64);
        o.i64("pinned", s.pinned as i64);
        o.i64("total", s.open as i64);
    });
    // Ours: what they hold in memory, and how many new ones were refused for it or for their number.
    c.i64("heldBytes", s.held_bytes as i64);
    c.i64("refused", s.refused as i64);
}
