//! Databases that are being dropped: nothing can be created there meanwhile.

use pando_base::panics::poisoned;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

/// Databases that are on their way out.
#[derive(Default)]
pub(crate) struct Dropping(Mutex<BTreeSet<String>>);

impl Dropping {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(poisoned)
    }
}
