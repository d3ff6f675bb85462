//! `storageEngine`: what storage can do and what it is kept from.

use crate::Server;
use pando_metrics::Collector;

pub(super) fn collect(server: &Server, to: &mut Collector<'_>) {
    const FLAG: &str = "boolean";
    let pending = server.storage.stats().drop_pending;
    // Tools refuse names they do not know; the true one is in buildInfo.
    to.text("name", "wiredTiger", "The storage engine that tools expect")
        .gauge("supportsCommittedReads", server.config.majority_reads, FLAG, "Whether majority reads are on")
        .gauge(
            "oldestRequiredTimestampForCrashRecovery",
            server.storage.stable(),
            "timestamp",
            "Where the log is needed from after a crash",
        )
        .gauge("supportsPendingDrops", true, FLAG, "Whether dropped data stays until nobody needs it")
        .gauge(
            "dropPendingIdents",
            pending,
            "idents",
            "Dropped collections and indexes whose rows somebody may need",
        )
        .gauge("supportsSnapshotReadConcern", true, FLAG, "Whether snapshot reads are there")
        .gauge(
            "readOnly",
            server.upkeep.maintenance.gate().is_read_only(),
            FLAG,
            "Whether nothing is written",
        )
        .gauge("persistent", true, FLAG, "Whether data outlives the process")
        .gauge(
            "backupCursorOpen",
            server.upkeep.backups.is_any_open(),
            FLAG,
            "Whether a backup is under way",
        );
}
