//! How many index builds that clients wait for run at once (`maxNumActiveUserIndexBuilds`).

use crate::Catalog;
use crate::write::crud::Interrupt;
use pando_base::Result;
use pando_env::sync::Notify;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Taken slots and their bound (0 = none).
#[derive(Default)]
pub(crate) struct Slots {
    active: AtomicUsize,
    max: AtomicUsize,
    ended: Notify,
}

/// The right to run one of the builds that clients may have running at once.
pub(crate) struct Slot(Catalog);

impl Drop for Slot {
    fn drop(&mut self) {
        let slots = &self.0.0.builds.slots;
        slots.active.fetch_sub(1, Ordering::AcqRel);
        slots.ended.bump();
    }
}

impl Catalog {
    /// `maxNumActiveUserIndexBuilds`.
    pub fn set_active_builds_max(&self, n: usize) {
        self.0.builds.slots.max.store(n, Ordering::Relaxed);
    }
    /// A slot for one more build, if there is room.
    pub(crate) fn take_build_slot(&self) -> Option<Slot> {
        let slots = &self.0.builds.slots;
        let max = match slots.max.load(Ordering::Relaxed) {
            0 => usize::MAX,
            n => n,
        };
        let more = |n: usize| (n < max).then_some(n + 1);
        slots.active.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok().map(|_| Slot(self.clone()))
    }
    /// Waits until a build ends (or a moment, for a bound that was raised).
    pub(crate) async fn wait_build_slot(&self, interrupt: &dyn Interrupt) -> Result<()> {
        let slots = &self.0.builds.slots;
        loop {
            let seen = slots.ended.version();
            interrupt.check()?;
            let max = slots.max.load(Ordering::Relaxed);
            if max == 0 || slots.active.load(Ordering::Acquire) < max {
                return Ok(());
            }
            self.env().timeout(Duration::from_millis(100), slots.ended.changed(seen)).await;
        }
    }
}
