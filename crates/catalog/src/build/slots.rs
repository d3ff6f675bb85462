//! How many index builds that clients wait for run at once (`maxNumActiveUserIndexBuilds`).

use crate::write::interrupt::Interrupt;
use pando_base::Result;
use pando_env::Env;
use pando_env::sync::Notify;
use std::sync::Arc;
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
pub(crate) struct Slot(Arc<Slots>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::AcqRel);
        self.0.ended.bump();
    }
}

impl Slots {
    /// 0 is no bound.
    pub(crate) fn set_max(&self, n: usize) {
        self.max.store(n, Ordering::Relaxed);
    }
    /// A slot for one more build, if there is room.
    pub(crate) fn take(self: &Arc<Slots>) -> Option<Slot> {
        let max = match self.max.load(Ordering::Relaxed) {
            0 => usize::MAX,
            n => n,
        };
        let more = |n: usize| (n < max).then_some(n + 1);
        let taken = self.active.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        taken.ok().map(|_| Slot(self.clone()))
    }
    /// Waits until a build ends (or a moment, for a bound that was raised).
    pub(crate) async fn wait(&self, env: &Env, interrupt: &dyn Interrupt) -> Result<()> {
        loop {
            let seen = self.ended.version();
            interrupt.check()?;
            let max = self.max.load(Ordering::Relaxed);
            if max == 0 || self.active.load(Ordering::Acquire) < max {
                return Ok(());
            }
            env.timeout(Duration::from_millis(100), self.ended.changed(seen)).await;
        }
    }
}
