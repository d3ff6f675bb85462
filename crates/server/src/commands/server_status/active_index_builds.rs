//! `activeIndexBuilds`: unfinished builds by what they are doing.

use crate::Server;
use pando_access::{Definitions, Phase};
use pando_metrics::Collector;
use std::collections::BTreeMap;

/// What each unfinished build is doing; one that nobody has taken up yet has all before it.
fn phases(definitions: &Definitions) -> Vec<Phase> {
    let indexes = definitions.all_collections().flat_map(|c| c.building_indexes());
    let builds: BTreeMap<_, _> = indexes
        .filter_map(|i| i.building.as_ref())
        .map(|build| (build.uuid, build.progress.phase()))
        .collect();
    builds.into_values().collect()
}

pub(super) fn collect(server: &Server, to: &mut Collector<'_>) {
    const UNIT: &str = "index builds";
    let phases = phases(&server.access.definitions());
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
