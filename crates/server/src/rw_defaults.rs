//! Default read and write concerns (R-DWC-1..6): explicit on the command, then cluster-wide, then implicit.

use pando_base::{Millis, Timestamp};
use pando_command::WriteConcern;
use std::sync::{Arc, Mutex, PoisonError};

/// What `setDefaultRWConcern` has set; absent fields leave the implicit default in force.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterWide {
    pub(crate) read_level: Option<&'static str>,
    pub(crate) write: Option<WriteConcern>,
    pub(crate) update_op_time: Option<Timestamp>,
    pub(crate) update_wall_ms: Millis,
    /// When this process last read or wrote the setting.
    pub(crate) local_wall_ms: Millis,
}

#[derive(Default)]
pub(crate) struct RwDefaults(Mutex<Arc<ClusterWide>>);

impl RwDefaults {
    pub(crate) fn get(&self) -> Arc<ClusterWide> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    pub(crate) fn set(&self, v: ClusterWide) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(v);
    }
}
