//! The arguments of `setFeatureCompatibilityVersion`.

use crate::declare::arguments;
use crate::declare::kinds::SafeBool;

arguments! {
    /// What `setFeatureCompatibilityVersion` asks for. Its first element is the version.
    pub struct SetFeatureVersionArgs of "setFeatureCompatibilityVersion" as "setFeatureCompatibilityVersion", refusing {
        /// Whoever asks knows that there is no easy way back.
        "confirm" confirm: optional SafeBool,
        /// Said by servers of a sharded cluster.
        "fromConfigServer" from_config_server: optional SafeBool,
        "downgradeOnDiskChanges" downgrade_on_disk_changes: optional SafeBool,
    }
}
