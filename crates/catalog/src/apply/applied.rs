//! Figures of what was applied.

use std::sync::atomic::AtomicU64;

/// What was applied from other members' logs, since the start.
#[derive(Default)]
pub struct Applied {
    /// Groups of entries that shared a unit.
    pub units: AtomicU64,
    /// Of those, who met a key that another worker held: their entries were applied one by one.
    pub split: AtomicU64,
}
