//! What is known of splits: what was asked for, and what commands said.

use pando_base::Timestamp;
use std::time::Duration;

/// How a command said that a split ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Said {
    Committed,
    Aborted,
    /// It was not begun, with this code.
    Refused(i64),
}

/// One split.
#[derive(Clone, Debug)]
pub(super) struct Split {
    pub(super) id: u8,
    pub(super) tenants: Vec<usize>,
    /// The name of the set that it makes.
    pub(super) set: &'static str,
    pub(super) begun: Duration,
    pub(super) said: Option<Said>,
    /// Somebody has called for its end.
    pub(super) called_off: bool,
    pub(super) block: Option<Timestamp>,
    pub(super) forgotten: bool,
    /// When whoever began it had nothing more to do.
    pub(super) over: Option<Duration>,
}

#[derive(Default)]
pub(super) struct Knowledge {
    pub(super) splits: Vec<Split>,
}

impl Knowledge {
    pub(super) fn split(&mut self, id: u8) -> Option<&mut Split> {
        self.splits.iter_mut().find(|s| s.id == id)
    }
    pub(super) fn committed(&self) -> Option<&Split> {
        self.splits.iter().find(|s| s.said == Some(Said::Committed))
    }
    /// Splits whose commands have not been answered.
    pub(super) fn undecided(&self) -> usize {
        self.splits.iter().filter(|s| s.said.is_none()).count()
    }
    pub(super) fn under_way(&self) -> usize {
        self.splits.iter().filter(|s| s.over.is_none()).count()
    }
    /// Whether a tenant is at the recipient in the end.
    pub(super) fn has_moved(&self, tenant: usize) -> bool {
        self.splits.iter().any(|s| s.said == Some(Said::Committed) && s.tenants.contains(&tenant))
    }
    pub(super) fn count(&self, is: impl Fn(&Said) -> bool) -> usize {
        self.splits.iter().filter(|s| s.said.as_ref().is_some_and(&is)).count()
    }
    /// Whether another split, not forgotten yet, was there since this one was asked for.
    pub(super) fn may_be_refused(&self, id: u8) -> bool {
        let begun = self.splits.iter().find(|s| s.id == id).map_or(Duration::ZERO, |s| s.begun);
        let there = |s: &Split| !s.forgotten || s.over.is_none_or(|over| over >= begun);
        self.splits.iter().any(|s| s.id != id && there(s))
    }
}
