//! Sources that cannot tell where this member's log has parted from theirs, and what then (R-RB-2).
//!
//! A log that begins after the parting shows that there was one and not where. Such a source is put aside and another
//! asked. Once nobody is left who might know, the set's data is copied again:
//!
//! ```text
//!   every other member with data has been asked ──────────────────────► copy again
//!   everybody ahead of this member has, others are down or behind ─ after a while ─► copy again
//!   somebody ahead has not been asked ────────────────────────────────► wait for it
//! ```

use crate::core::Core;
use crate::member::{Host, MemberId};
use crate::mutants::{Mutant, broken};
use crate::params::SourcePreference;
use pando_base::{Millis, OpTime, limits};

impl Core {
    pub(crate) fn on_no_common_point(&mut self, host: &Host, reached: OpTime) {
        self.aside.add_cannot_tell(host, self.now, reached);
    }

    pub(crate) fn is_put_aside(&self, host: &str) -> bool {
        !broken(Mutant::AskAgainWhoCannotTell) && self.aside.cannot_tell(host)
    }

    /// Whose logs have no entry in common with this member's.
    pub fn without_common_point(&self) -> impl Iterator<Item = &str> {
        self.aside.who_cannot_tell()
    }

    /// Nobody can tell: the parting lies before the entry returned.
    pub(crate) fn nobody_can_tell(&self, last_fetched: OpTime) -> Option<OpTime> {
        let (since, reached) = self.aside.parted()?;
        self.asked_in_vain(|host| self.aside.cannot_tell(host), since, last_fetched).then_some(reached)
    }

    /// Everybody ahead of this member has been asked, there is somebody to copy from, and who is down or behind has had
    /// time to come `since` the first answer.
    pub(crate) fn asked_in_vain(
        &self,
        asked: impl Fn(&str) -> bool,
        since: Millis,
        last_fetched: OpTime,
    ) -> bool {
        let Some(config) = &self.config else { return false };
        let others = || config.members.iter().filter(|m| m.id != self.self_id() && !m.arbiter_only);
        let mut ahead = others().filter(|m| self.may_tell(m.id, last_fetched)).peekable();
        if ahead.peek().is_none() || (!ahead.all(|m| asked(&m.host)) && !broken(Mutant::CopyAgainUnasked)) {
            return false;
        }
        let waited = self.now - since >= limits::COPY_AGAIN_WAIT_MS;
        waited || others().all(|m| asked(&m.host)) || broken(Mutant::CopyAgainAtOnce)
    }

    /// A source, were it not put aside or denied for a while.
    fn may_tell(&self, id: MemberId, last_fetched: OpTime) -> bool {
        let preference = self.source_preference(false);
        if preference == SourcePreference::Primary && self.primary != Some(id) {
            return false;
        }
        if self
            .params
            .only_sync_source
            .as_ref()
            .is_some_and(|host| self.peer(id).is_none_or(|p| *p.host != **host))
        {
            return false;
        }
        let (Some(m), Some(data)) = (self.config_member(id), self.members.get(&id)) else { return false };
        self.could_be_source(m, data, last_fetched, preference, false)
    }
}
