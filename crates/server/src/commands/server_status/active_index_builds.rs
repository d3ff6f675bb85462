//! `activeIndexBuilds`: unfinished builds by what they are doing.

use crate::Server;
use pando_access::Phase;
use pando_metrics::Collector;

pub(super) fn collect(server: &Server, to: &mut Collector<'_>) {
    const UNIT: &str = "index builds";
    let phases = server.active_index_builds();
    let in_phase = |which: &[Phase]| phases.iter().filter(|p| which.contains(p)).count() as i32;
    to.gauge("total", phases.len() as i32, UNIT, "Unfinished index builds").within("phases", |to| {
        let scanning = in_phase(&[Phase::Scanning, Phase::Loading]);
        to.gauge(
            "scanCollection",
            scanning,
            UNIT,
            "Index builds that make keys of the collection's documents",
        )
        .gauge(
            "drainSideWritesTable",
            in_phase(&[Phase::Draining]),
            UNIT,
            "Index builds that catch up with writes",
        )
        .gauge(
            "waitForCommitQuorum",
            in_phase(&[Phase::Ready]),
            UNIT,
            "Index builds that wait for other members",
        );
    });
}
