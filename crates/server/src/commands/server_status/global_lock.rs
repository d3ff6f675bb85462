//! `globalLock`: who waits for locks, and who runs.

use crate::Server;
use pando_metrics::Collector;

pub(super) fn collect(server: &Server, to: &mut Collector<'_>) {
    const UNIT: &str = "operations";
    let up = server.instance.env.clock.mono().saturating_sub(server.instance.started);
    let (databases, collections) = server.upkeep.maintenance.lock_counts();
    // Nobody waits for a lock in order to read.
    let queued = (databases.queued + collections.queued) as i32;
    // Which of them write is not counted.
    let active = server.instance.metrics.connections.active.get() as i32;
    to.counter("totalTime", up.as_micros() as i64, "microseconds", "Time since the server started")
        .gauge("currentQueue.total", queued, UNIT, "Operations that wait for a lock")
        .gauge("currentQueue.readers", 0, UNIT, "Operations that wait for a lock in order to read")
        .gauge("currentQueue.writers", queued, UNIT, "Operations that wait for a lock in order to write")
        .gauge("activeClients.total", active, UNIT, "Connections with an operation running");
}
