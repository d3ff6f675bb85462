//! What this process knows of its rollbacks.

use pando_base::{Millis, OpTime};
use pando_metrics::{Collector, Counter, Source, Value as MetricValue};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

/// What this process knows of its rollbacks.
#[derive(Default)]
pub(crate) struct Rollbacks {
    running: AtomicBool,
    pub(super) count: Counter,
    /// Sources that could not tell where the logs parted.
    pub(super) without_common_point: Counter,
    /// Times the set's data was copied again, for want of a way back.
    pub(crate) copied_again: Counter,
    /// Number of the next rollback file.
    pub(crate) files: Arc<AtomicU64>,
    pub(super) last: Mutex<Option<Last>>,
}

#[derive(Clone, Copy)]
pub(super) struct Last {
    pub(super) ended: Millis,
    pub(super) millis: i64,
    pub(super) common: OpTime,
    pub(super) entries: u64,
    pub(super) documents: u64,
}

impl Rollbacks {
    /// False when one is under way.
    pub(crate) fn begin(&self) -> bool {
        !self.running.swap(true, SeqCst)
    }
    pub(crate) fn end(&self) {
        self.running.store(false, SeqCst);
    }
    pub(crate) fn is_running(&self) -> bool {
        self.running.load(SeqCst)
    }
    pub(super) fn note(&self, last: Last) {
        self.count.inc();
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
    }
}

/// `serverStatus.metrics.repl.rollback`.
impl Source for Rollbacks {
    fn collect(&self, to: &mut Collector<'_>) {
        let without = self.without_common_point.get();
        to.counter("count", self.count.get(), "rollbacks", "Rollbacks of this member")
            .counter(
                "sourcesWithoutCommonPoint",
                without,
                "sync sources",
                "Sync sources whose logs do not show a common point",
            )
            .counter(
                "copiedAgain",
                self.copied_again.get(),
                "copies",
                "Times this member copied the set's data again",
            );
        let Some(last) = *self.last.lock().unwrap_or_else(PoisonError::into_inner) else { return };
        to.gauge("lastEnd", MetricValue::Date(last.ended), "date", "When the last rollback ended")
            .gauge("lastMillis", last.millis, "milliseconds", "How long the last rollback took")
            .gauge(
                "lastCommonPoint",
                last.common.ts,
                "timestamp",
                "The last entry that the last rollback kept",
            )
            .gauge(
                "lastEntriesRolledBack",
                last.entries,
                "log entries",
                "Log entries that the last rollback undid",
            )
            .gauge(
                "lastDocumentsInFiles",
                last.documents,
                "documents",
                "Documents that the last rollback wrote to files",
            );
    }
}
