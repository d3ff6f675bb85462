//! `locks`: those that there are. Definitions of a database change one at a time, writers of a collection share its lock, and all
//! writes pass a gate that a step-down closes. Readers take none. A lock that nobody took is not shown.

use crate::Server;
use pando_access::Counts;
use pando_env::op_locks::{Class, Mode};
use pando_metrics::Collector;

pub(super) fn collect(server: &Server, to: &mut Collector<'_>) {
    let (databases, collections) = server.upkeep.maintenance.lock_counts();
    for (class, n) in [
        (Class::FeatureCompatibilityVersion, server.settings.feature_version_lock.counts()),
        (Class::ReplicationStateTransition, server.upkeep.maintenance.gate().counts()),
        (Class::Database, databases),
        (Class::Collection, collections),
    ] {
        collect_one(class, &n, to);
    }
}

fn collect_one(class: Class, n: &Counts, to: &mut Collector<'_>) {
    for (name, unit, help, by_mode) in [
        (
            "acquireCount",
            "acquisitions",
            "Times locks of this kind were taken, by mode",
            [n.shared, n.exclusive],
        ),
        (
            "acquireWaitCount",
            "acquisitions",
            "Times somebody had to wait for a lock of this kind, by mode",
            [n.shared_waits, n.exclusive_waits],
        ),
        (
            "timeAcquiringMicros",
            "microseconds",
            "Time that was waited for locks of this kind, by mode",
            [n.shared_us, n.exclusive_us],
        ),
    ] {
        for (mode, n) in Mode::ALL.into_iter().zip(by_mode).filter(|(_, n)| *n > 0) {
            to.labelled("lock", class.name(), |to| {
                to.within(name, |to| {
                    to.labelled_counter("mode", mode.letter(), n, unit, help);
                });
            });
        }
    }
}
