//! A configuration's numbers: periods as they are added to the time of day, and its version.

use crate::config::{Settings, range};
use pando_base::{Millis, Result, limits};

/// As a time can be added to: a configuration may name any number.
fn period(ms: i64) -> Millis {
    ms.min(limits::REPL_PERIOD_MS_MAX)
}

/// A version that MongoDB can show.
pub(crate) fn check_version(version: i64) -> Result<i64> {
    if version > limits::REPLSET_VERSION_MAX {
        return Err(range("version", "<", &(limits::REPLSET_VERSION_MAX + 1).to_string(), version));
    }
    Ok(version)
}

impl Settings {
    pub fn election_timeout(&self) -> Millis {
        period(self.election_timeout_ms)
    }
    pub fn heartbeat_timeout(&self) -> Millis {
        period(self.heartbeat_timeout_secs.saturating_mul(1000))
    }
    pub fn heartbeat_interval(&self) -> Millis {
        period(self.heartbeat_interval_ms)
    }
    /// -1 = no limit.
    pub fn catch_up_timeout(&self) -> Millis {
        period(self.catch_up_timeout_ms)
    }
    /// -1 = no takeover.
    pub fn catch_up_takeover_delay(&self) -> Millis {
        period(self.catch_up_takeover_delay_ms)
    }
}
