//! The server parameters that the topology core obeys.

use pando_command::params::{Param, Params};
use pando_topology::params::SourcePreference;

/// Their present values, for [`pando_topology::Boot`] and, after a change, [`pando_topology::Event::Params`].
pub fn of(p: &Params) -> pando_topology::Params {
    let rows = |name: &str| p.find(name).map(|row| p.get(&row));
    let preference = match rows("initialSyncSourceReadPreference") {
        Some(pando_bson::Bson::String(text)) => SourcePreference::parse(&text),
        _ => None,
    };
    let only_sync_source = match rows("unsupportedSyncSource") {
        Some(pando_bson::Bson::String(host)) if !host.is_empty() => Some(host),
        _ => None,
    };
    pando_topology::Params {
        election_offset_percent: (p.double(Param::replElectionTimeoutOffsetLimitFraction) * 100.0).round()
            as u32,
        election_handoff: p.bool(Param::enableElectionHandoff),
        priority_freshness_secs: p.int(Param::priorityTakeoverFreshnessWindowSeconds),
        sync_source_lag_secs: p.int(Param::maxSyncSourceLagSecs),
        nearer_source_ms: p.int(Param::changeSyncSourceThresholdMillis),
        source_changes_per_hour: p.int(Param::maxNumSyncSourceChangesPerHour) as usize,
        override_chaining: p.bool(Param::enableOverrideClusterChainingSetting),
        initial_sync_preference: preference,
        only_sync_source,
        fast_failover: p.bool(Param::fastFailureDetection),
        prompt_start: p.bool(Param::fastFailureDetection),
        resync_when_too_stale: p.bool(Param::resyncWhenTooStale),
        allow_multiple_arbiters: p.bool(Param::allowMultipleArbiters),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cores_defaults_are_the_parameters() {
        assert_eq!(of(&Params::new()), pando_topology::Params::default());
    }
}
