//! The arguments of `setFeatureCompatibilityVersion`.

use crate::declare::arguments;
use crate::declare::kinds::{SafeBool, Text, Timestamp, kind};
use pando_bson::shape::Shape;

kind! { pub Phase like Text { SHAPE: Shape::Word(&["start", "prepare", "complete"]) } }

arguments! {
    /// What `setFeatureCompatibilityVersion` asks for. Its first element is the version.
    pub struct SetFeatureVersionArgs of "setFeatureCompatibilityVersion" as "setFeatureCompatibilityVersion", refusing {
        /// Whoever asks knows that there is no easy way back.
        "confirm" confirm: optional SafeBool,
        /// Said by servers of a sharded cluster.
        "fromConfigServer" from_config_server: optional SafeBool,
        /// How far a shard is to go, and by which operation of its cluster.
        "phase" phase: optional Phase,
        "changeTimestamp" change_timestamp: optional Timestamp,
        "downgradeOnDiskChanges" downgrade_on_disk_changes: optional SafeBool,
    }
}
