//! `oplogTruncation`: how the log's oldest part goes.

use crate::Server;
use pando_metrics::Collector;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn collect(server: &Server, to: &mut Collector<'_>) {
    to.text("processingMethod", "segments", "What is dropped in one step");
    let hours = server.settings.oplog_retention_ms.load(Relaxed) as f64 / 3_600_000.0;
    if hours > 0.0 {
        to.gauge("oplogMinRetentionHours", hours, "hours", "Age below which no entry is dropped");
    }
    let dropped = server.storage.stats().log_files_dropped;
    to.counter("truncateCount", dropped, "files", "Files dropped from the front of the log");
}
