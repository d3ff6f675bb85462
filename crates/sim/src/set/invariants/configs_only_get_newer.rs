//! A member's configuration is only ever replaced by a newer one, also across restarts (INV-33).

use super::{Invariant, Problems};
use crate::set::look::Look;
use pando_repl::topology::ConfigId;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Rule {
    installed: BTreeMap<usize, ConfigId>,
}

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (who, now, _) in look.running() {
            let before = self.installed.insert(who, now.config);
            if let Some(before) = before.filter(|b| now.config.is_older_than(*b)) {
                problems.push(format!("member {who} went from {before:?} back to {:?}", now.config));
            }
        }
    }
    fn forget(&mut self, who: usize) {
        self.installed.remove(&who);
    }
}
