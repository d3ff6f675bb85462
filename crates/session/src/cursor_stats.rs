//! What the cursor registry counts (`serverStatus.metrics.cursor`).

use pando_metrics::{Collector, Source};
use std::time::Duration;

/// Counters of `metrics.cursor`.
#[derive(Clone, Copy, Default, Debug)]
pub struct CursorStats {
    pub open: u64,
    pub pinned: u64,
    pub no_timeout: u64,
    pub opened: u64,
    pub timed_out: u64,
    pub more_than_one_batch: u64,
    /// Bytes in memory of all open ones, as of their last batches.
    pub held_bytes: u64,
    /// Refused because there were too many, or because they held too much.
    pub refused: u64,
    /// Lifespans: under 1 s, 5 s, 15 s, 30 s, 1 min, 10 min, and longer.
    pub lifespans: [u64; 7],
}

const LIFESPANS: [u64; 6] = [1, 5, 15, 30, 60, 600];
const LIFESPAN_NAMES: [&str; 7] = [
    "lessThan1Second",
    "lessThan5Seconds",
    "lessThan15Seconds",
    "lessThan30Seconds",
    "lessThan1Minute",
    "lessThan10Minutes",
    "greaterThanOrEqual10Minutes",
];

impl Source for CursorStats {
    fn collect(&self, to: &mut Collector<'_>) {
        const UNIT: &str = "cursors";
        to.counter(
            "moreThanOneBatch",
            self.more_than_one_batch,
            UNIT,
            "Cursors that were read beyond their first batch",
        )
        .counter("timedOut", self.timed_out, UNIT, "Cursors closed because nobody read them")
        .counter("totalOpened", self.opened, UNIT, "Cursors opened");
        to.within("lifespan", |to| {
            for (age, n) in LIFESPAN_NAMES.into_iter().zip(self.lifespans) {
                to.labelled_counter("age", age, n, UNIT, "Cursors that ended at this age");
            }
        });
        to.gauge("open.noTimeout", self.no_timeout, UNIT, "Open cursors that never time out")
            .gauge("open.pinned", self.pinned, UNIT, "Open cursors that an operation uses")
            .gauge("open.total", self.open, UNIT, "Open cursors")
            .gauge("heldBytes", self.held_bytes, "bytes", "What open cursors hold in memory")
            .counter(
                "refused",
                self.refused,
                UNIT,
                "Cursors refused for their number or for what they would hold",
            );
    }
}

impl CursorStats {
    pub(crate) fn count_end(&mut self, age: Duration) {
        let slot = LIFESPANS.iter().position(|limit| age.as_secs() < *limit).unwrap_or(LIFESPANS.len());
        self.lifespans[slot] += 1;
    }
}
