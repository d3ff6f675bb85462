//! Leaving a sync source after a batch or an error (R-SYNC-20..22), and what a batch's metadata teaches (R-META-2).

use crate::action::{Action, Actions};
use crate::core::Core;
use crate::member::{Host, MemberState};
use crate::message::{OplogQueryMetadata, ReplSetMetadata};
use crate::mutants::{Mutant, broken};
use crate::params::SourcePreference;
use pando_base::{Millis, OpTime};

const HOUR_MS: Millis = 3_600_000;
/// Answers per other member before round-trip times are believed.
const PINGS_PER_MEMBER: usize = 5;

impl Core {
    pub(crate) fn on_fetched(
        &mut self,
        from: &Host,
        repl: &ReplSetMetadata,
        oplog: OplogQueryMetadata,
        last_fetched: OpTime,
        out: &mut Actions,
    ) {
        // Who has left for another set meanwhile, or was left behind, says nothing of this one (SV-SPLIT-11).
        if self.is_of_another_set(repl) {
            let reason = "the sync source is a member of another set";
            return out.push(Action::ChangeSyncSource { reason });
        }
        self.see_term(repl.term, out);
        let now = self.now;
        if let Some(id) = self.member_by_host(from).map(|m| m.id)
            && let Some(data) = self.members.get_mut(&id)
        {
            data.last_update = now;
            data.stale = false;
        }
        self.learn_commit_point_from_source(oplog.committed, last_fetched);
        // Somebody this way sees a primary of our term: no election (R-META-2).
        if oplog.primary_index >= 0 && repl.term == self.term && !self.is_leader() {
            self.schedule_election();
        }
        self.last_oplog_metadata = Some(oplog);
        // The log goes on there: there is nothing to be asked any more.
        self.aside.forget_useless();
        self.tell_commit_point(out);
        if let Some(reason) = self.should_change_source(from, last_fetched) {
            out.push(Action::ChangeSyncSource { reason });
        }
    }

    /// R-SYNC-20 then R-SYNC-22; `None` = stay.
    pub fn should_change_source(&self, source: &str, last_fetched: OpTime) -> Option<&'static str> {
        self.self_index?;
        if self.params.only_sync_source.is_some() {
            return None;
        }
        if self.forced_source.is_some() {
            return Some("another sync source was requested");
        }
        let Some(member) = self.member_by_host(source) else {
            return Some("the sync source is not in the configuration");
        };
        let data = self.members.get(&member.id)?;
        let metadata = self.last_oplog_metadata.as_ref();
        let source_applied = metadata.map_or(data.heard.applied.op, |m| m.applied).max(data.heard.applied.op);
        let is_primary = self.primary == Some(member.id)
            || metadata.is_some_and(|m| {
                m.primary_index >= 0 && m.primary_index == self.index_of(member.id).map_or(-2, |i| i as i64)
            });
        if !is_primary && !self.chains() && !self.is_catching_up() && self.primary.is_some() {
            return Some("chaining is not allowed and another member is primary");
        }
        let ahead = source_applied > last_fetched;
        if let Some(m) = metadata {
            if !is_primary && m.sync_source_index < 0 && m.sync_source_host.is_empty() && !ahead {
                return Some("the sync source has none of its own and is not ahead");
            }
            let from_me = self.self_index.is_some_and(|i| m.sync_source_index == i as i64);
            if self.is_catching_up() && from_me && !ahead {
                return Some("the sync source syncs from this node");
            }
        }
        if self.someone_far_ahead(source_applied, last_fetched, member.id) {
            return Some("another member is far ahead of the sync source");
        }
        let me = self.self_member()?;
        let unfit = member.hidden
            || member.secondary_delay_secs > me.secondary_delay_secs
            || (me.is_voter() && !member.is_voter())
            || (me.build_indexes && !member.build_indexes);
        if unfit && self.first_pass_source(last_fetched, member.id) {
            return Some("the sync source no longer fits and another does");
        }
        self.nearer_source(member.id, last_fetched)
    }

    fn someone_far_ahead(&self, source_applied: OpTime, last_fetched: OpTime, source: i64) -> bool {
        let lag = self.params.sync_source_lag_secs;
        self.config.iter().flat_map(|c| &c.members).filter(|m| m.id != source).any(|m| {
            let Some(d) = self.members.get(&m.id) else { return false };
            let ahead = i64::from(d.heard.applied.op.ts.secs()) - i64::from(source_applied.ts.secs());
            ahead > lag && self.is_eligible(m, d, last_fetched)
        })
    }
    fn is_eligible(
        &self,
        m: &crate::config::Member,
        d: &crate::member::MemberData,
        last_fetched: OpTime,
    ) -> bool {
        d.is_up() && d.state.is_readable() && self.is_eligible_first(m, d, last_fetched)
    }

    /// R-SYNC-22.
    fn nearer_source(&self, source: i64, last_fetched: OpTime) -> Option<&'static str> {
        let me = self.self_member()?;
        let near = self.params.nearer_source_ms;
        let recent = self.source_changes.iter().filter(|at| **at + HOUR_MS > self.now).count();
        let pings: usize = self.members.values().map(|m| m.ping.count as usize).sum();
        if self.source_was_forced
            || self.follower_state == MemberState::Startup2
            || me.secondary_delay_secs > 0
            || (recent > self.params.source_changes_per_hour && !broken(Mutant::NearerWithoutLimit))
            || !self.chains()
            || near == 0
            || pings < PINGS_PER_MEMBER * self.members.len()
        {
            return None;
        }
        let held = self.members.get(&source)?.ping.mean_ms;
        let nearer = self.config.iter().flat_map(|c| &c.members).filter(|m| m.id != source).any(|m| {
            self.members
                .get(&m.id)
                .is_some_and(|d| self.is_eligible_first(m, d, last_fetched) && held - d.ping.mean_ms > near)
        });
        nearer.then_some("another member is much nearer")
    }

    pub(crate) fn is_eligible_first(
        &self,
        m: &crate::config::Member,
        d: &crate::member::MemberData,
        last_fetched: OpTime,
    ) -> bool {
        self.is_eligible_source(m, d, last_fetched, SourcePreference::Nearest, true)
    }

    /// After the fetcher failed (R-SYNC-21): worth leaving at once rather than trying again?
    pub fn should_change_source_on_error(&self, source: &str, last_fetched: OpTime) -> Option<&'static str> {
        if self.forced_source.is_some() {
            return Some("another sync source was requested");
        }
        let id = self.member_by_host(source).map(|m| m.id);
        if !self.chains() && self.primary.is_some() && self.primary != id {
            return Some("chaining is not allowed and another member is primary");
        }
        let better = self.first_pass_source(last_fetched, id.unwrap_or(-1));
        better.then_some("another member can be synced from")
    }
}
