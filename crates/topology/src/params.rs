//! Server parameters that the protocol obeys.

use pando_base::Millis;

/// Values of this node's parameters; a change comes as [`crate::Event::Params`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Params {
    /// `replElectionTimeoutOffsetLimitFraction`, in percent: the random part of an election timeout.
    pub election_offset_percent: u32,
    /// `enableElectionHandoff`.
    pub election_handoff: bool,
    /// `priorityTakeoverFreshnessWindowSeconds`.
    pub priority_freshness_secs: i64,
    /// `maxSyncSourceLagSecs`.
    pub sync_source_lag_secs: i64,
    /// `changeSyncSourceThresholdMillis`; 0 = never for a nearer one.
    pub nearer_source_ms: Millis,
    /// `maxNumSyncSourceChangesPerHour`.
    pub source_changes_per_hour: usize,
    /// `enableOverrideClusterChainingSetting`.
    pub override_chaining: bool,
    /// `initialSyncSourceReadPreference`.
    pub initial_sync_preference: Option<SourcePreference>,
    /// `unsupportedSyncSource`: always this one.
    pub only_sync_source: Option<String>,
    /// `fastFailureDetection` (ours): a primary that refuses connections is replaced without waiting for the
    /// election timeout.
    pub fast_failover: bool,
    /// The same parameter: a set that starts as a whole elects at once.
    pub prompt_start: bool,
    /// `resyncWhenTooStale` (ours): a member that is too stale for everybody copies the set's data again by itself.
    pub resync_when_too_stale: bool,
    /// `allowMultipleArbiters`.
    pub allow_multiple_arbiters: bool,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            election_offset_percent: 15,
            election_handoff: true,
            priority_freshness_secs: 2,
            sync_source_lag_secs: 30,
            nearer_source_ms: 5,
            source_changes_per_hour: 3,
            override_chaining: false,
            initial_sync_preference: None,
            only_sync_source: None,
            fast_failover: true,
            prompt_start: true,
            resync_when_too_stale: true,
            allow_multiple_arbiters: false,
        }
    }
}

/// Which members may be a sync source (R-SYNC-5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SourcePreference {
    Primary,
    PrimaryPreferred,
    Secondary,
    SecondaryPreferred,
    Nearest,
}

impl SourcePreference {
    /// The names of read preferences.
    pub fn parse(text: &str) -> Option<SourcePreference> {
        Some(match text {
            "primary" => SourcePreference::Primary,
            "primaryPreferred" => SourcePreference::PrimaryPreferred,
            "secondary" => SourcePreference::Secondary,
            "secondaryPreferred" => SourcePreference::SecondaryPreferred,
            "nearest" => SourcePreference::Nearest,
            _ => return None,
        })
    }
}
