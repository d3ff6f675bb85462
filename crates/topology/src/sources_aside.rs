//! Members that are not asked for entries at present, and what they told (R-SYNC-11, R-RB-2).

use pando_base::{Millis, OpTime};
use std::collections::BTreeMap;

/// What a source without a common entry told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct CannotTell {
    since: Millis,
    /// Both logs were compared from their ends down to here: the parting lies before.
    reached: OpTime,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct SourcesAside {
    /// Something was wrong with them: not before then.
    denied: BTreeMap<String, Millis>,
    /// Their logs have parted from this one's and do not show where.
    cannot_tell: BTreeMap<String, CannotTell>,
    /// Whose log begins after this member's ends, and since when that is known.
    begins_too_late: BTreeMap<String, Millis>,
}

impl SourcesAside {
    pub(crate) fn deny(&mut self, host: &str, until: Millis) {
        self.denied.insert(host.to_owned(), until);
    }
    pub(crate) fn allow(&mut self, host: &str) {
        self.denied.remove(host);
    }
    pub(crate) fn forget_denied_before(&mut self, now: Millis) {
        self.denied.retain(|_, until| *until > now);
    }
    pub(crate) fn is_denied(&self, host: &str, now: Millis) -> bool {
        self.denied.get(host).is_some_and(|until| *until > now)
    }

    /// The first word counts.
    pub(crate) fn add_cannot_tell(&mut self, host: &str, since: Millis, reached: OpTime) {
        self.cannot_tell.entry(host.to_owned()).or_insert(CannotTell { since, reached });
    }
    pub(crate) fn cannot_tell(&self, host: &str) -> bool {
        self.cannot_tell.contains_key(host)
    }
    pub(crate) fn who_cannot_tell(&self) -> impl Iterator<Item = &str> {
        self.cannot_tell.keys().map(String::as_str)
    }
    /// Since when there is one that cannot tell, and down to where any of them was compared.
    pub(crate) fn parted(&self) -> Option<(Millis, OpTime)> {
        let since = self.cannot_tell.values().map(|told| told.since).min()?;
        let reached = self.cannot_tell.values().map(|told| told.reached).min()?;
        Some((since, reached))
    }

    /// The first word counts.
    pub(crate) fn add_too_late(&mut self, host: &str, since: Millis) {
        self.begins_too_late.entry(host.to_owned()).or_insert(since);
    }
    pub(crate) fn begins_too_late(&self, host: &str) -> bool {
        self.begins_too_late.contains_key(host)
    }
    pub(crate) fn too_late_since(&self) -> Option<Millis> {
        self.begins_too_late.values().min().copied()
    }
    pub(crate) fn forget_too_late(&mut self) {
        self.begins_too_late.clear();
    }

    /// This member's log is another one now, or goes on at a source.
    pub(crate) fn forget_useless(&mut self) {
        self.cannot_tell.clear();
        self.begins_too_late.clear();
    }
}
