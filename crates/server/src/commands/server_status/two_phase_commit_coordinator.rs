//! `twoPhaseCommitCoordinator`: a server that is no shard coordinates no transactions of several shards.

use crate::Server;
use pando_metrics::Collector;

pub(super) fn collect(_: &Server, to: &mut Collector<'_>) {
    const UNIT: &str = "transactions";
    to.counter("totalCreated", 0i64, UNIT, "Transactions of several shards that this server coordinated")
        .counter("totalStartedTwoPhaseCommit", 0i64, UNIT, "Of those, the ones whose commit began")
        .counter("totalAbortedTwoPhaseCommit", 0i64, UNIT, "Of those, the ones that were aborted")
        .counter("totalCommittedTwoPhaseCommit", 0i64, UNIT, "Of those, the ones that were committed");
}
