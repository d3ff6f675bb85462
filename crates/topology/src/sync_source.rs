//! Choosing whom to copy from (R-SYNC-1..12).
//!
//! Forced choices first; then, once enough heartbeats have measured the set, two passes over the members: the first
//! wants a fresh, visible, voting source that is no more delayed than this node, the second takes any that is ahead.
//! Among those the nearest, and the primary among equals; the primary too when nobody is ahead (ours: a follower is
//! then already listening when the next entry is written, which matters most right after an election).

use crate::action::{Action, Actions, CommandReply, SourceChoice, WhyCopyAgain};
use crate::config::Member;
use crate::core::Core;
use crate::event::Token;
use crate::member::{Host, MemberData, MemberId, MemberState};
use crate::message::Peer;
use crate::mutants::{Mutant, broken};
use crate::params::SourcePreference;
use pando_base::{Error, ErrorCode, OpTime};

/// Behind by more than this, `replSetSyncFrom` warns.
const WARN_LAG_SECS: i64 = pando_base::limits::SYNC_SOURCE_WARN_LAG_SECS;

impl Core {
    pub(crate) fn on_sync_source_needed(
        &mut self,
        token: Token,
        last_fetched: OpTime,
        initial_sync: bool,
        out: &mut Actions,
    ) {
        let choice = match self.choose_source(last_fetched, initial_sync) {
            Ok(peer) => {
                self.on_sync_source_chosen(Some(peer.host.clone()), out);
                SourceChoice::Use(peer)
            }
            Err(why) => {
                self.on_sync_source_chosen(None, out);
                match self.why_copy_again(last_fetched) {
                    Some(why) if !initial_sync => SourceChoice::CopyAgain(why),
                    _ => SourceChoice::None(why),
                }
            }
        };
        out.push(Action::SyncSource { token, choice });
    }

    fn why_copy_again(&self, last_fetched: OpTime) -> Option<WhyCopyAgain> {
        match self.nobody_can_tell(last_fetched) {
            Some(before) => Some(WhyCopyAgain::Parted { before }),
            None => self.too_stale_for_everybody(last_fetched).then_some(WhyCopyAgain::TooStale),
        }
    }

    pub(crate) fn on_sync_source_chosen(&mut self, host: Option<Host>, out: &mut Actions) {
        if self.sync_source == host {
            return;
        }
        if host.is_some() {
            self.source_changes.push_back(self.now);
            while self.source_changes.len() > self.params.source_changes_per_hour + 1 {
                self.source_changes.pop_front();
            }
        }
        self.sync_source = host;
        self.last_oplog_metadata = None;
        self.send_positions(out);
    }

    pub(crate) fn drop_sync_source(&mut self) {
        self.sync_source = None;
        self.last_oplog_metadata = None;
        self.source_was_forced = false;
    }

    /// R-SYNC-2, R-SYNC-3.
    fn choose_source(&mut self, last_fetched: OpTime, initial_sync: bool) -> Result<Peer, &'static str> {
        if self.self_index.is_none() {
            return Err("this node is not in the configuration");
        }
        self.aside.forget_denied_before(self.now);
        self.source_was_forced = false;
        let named = |core: &Core, host: &str| core.member_by_host(host).map(|m| (m.id, Host::from(host)));
        if let Some(host) = self.params.only_sync_source.clone() {
            self.source_was_forced = true;
            let found = named(self, &host).ok_or("the host of unsupportedSyncSource is not a member")?;
            if self.is_put_aside(&host) {
                return Err("the oplog of unsupportedSyncSource has no entry in common with this node's");
            }
            return Ok(Peer { id: found.0, host: found.1 });
        }
        if let Some(host) = self.forced_source.take()
            && let Some((id, host)) = named(self, &host)
        {
            self.source_was_forced = true;
            return Ok(Peer { id, host });
        }
        let pings: u32 = self.members.values().map(|m| m.ping.count).sum();
        if (pings as usize) < 2 * self.members.len() {
            return Err("too few heartbeats so far");
        }
        let preference = self.source_preference(initial_sync);
        if preference == SourcePreference::Primary {
            return self.primary_as_source(last_fetched).ok_or("the primary is not a valid sync source");
        }
        if preference == SourcePreference::PrimaryPreferred
            && let Some(peer) = self.primary_as_source(last_fetched)
        {
            return Ok(peer);
        }
        for first_pass in [true, false] {
            if let Some(id) = self.nearest_source(last_fetched, preference, first_pass) {
                return self.peer(id).ok_or("no member");
            }
        }
        // Nobody is ahead: follow the primary all the same, so that its next entry arrives at once.
        let at_primary =
            matches!(preference, SourcePreference::Nearest) && !initial_sync && !self.is_leader();
        match self.primary_as_source(last_fetched) {
            Some(peer) if at_primary => Ok(peer),
            _ => Err("no member is ahead and reachable"),
        }
    }

    /// R-SYNC-5.
    pub(crate) fn source_preference(&self, initial_sync: bool) -> SourcePreference {
        let primary_only = !self.chains() && !self.is_catching_up();
        if initial_sync {
            if let Some(p) = self.params.initial_sync_preference {
                return p;
            }
            return match (primary_only, self.self_member().is_some_and(|m| m.is_voter())) {
                (true, _) => SourcePreference::Primary,
                (false, true) => SourcePreference::PrimaryPreferred,
                (false, false) => SourcePreference::Nearest,
            };
        }
        if primary_only { SourcePreference::Primary } else { SourcePreference::Nearest }
    }

    pub(crate) fn chains(&self) -> bool {
        self.params.override_chaining || self.config.as_ref().is_none_or(|c| c.settings.chaining_allowed)
    }

    /// R-SYNC-4.
    fn primary_as_source(&self, last_fetched: OpTime) -> Option<Peer> {
        let peer = self.peer(self.primary?)?;
        let behind = self.members.get(&peer.id)?.heard.applied.op < last_fetched;
        (!behind && !self.is_denied(&peer.host)).then_some(peer)
    }
    fn is_denied(&self, host: &str) -> bool {
        self.aside.is_denied(host, self.now) && !broken(Mutant::SourceDenied) || self.is_put_aside(host)
    }

    /// R-SYNC-7.
    fn nearest_source(
        &self,
        last_fetched: OpTime,
        preference: SourcePreference,
        first_pass: bool,
    ) -> Option<MemberId> {
        let config = self.config.as_ref()?;
        let mut best: Option<(MemberId, i64)> = None;
        for m in &config.members {
            let Some(data) = self.members.get(&m.id) else { continue };
            if !self.is_eligible_source(m, data, last_fetched, preference, first_pass) {
                continue;
            }
            let ping = data.ping.mean_ms;
            let near = self.params.nearer_source_ms;
            let takes = match best {
                None => true,
                Some((_, held)) if self.primary == Some(m.id) && (ping - held).abs() <= near => true,
                Some((id, held)) if self.primary == Some(id) && (ping - held).abs() <= near => false,
                Some((_, held)) => ping < held,
            };
            if takes {
                best = Some((m.id, ping));
            }
        }
        best.map(|(id, _)| id)
    }

    /// R-SYNC-6, in its order.
    pub(crate) fn is_eligible_source(
        &self,
        m: &Member,
        data: &MemberData,
        last_fetched: OpTime,
        preference: SourcePreference,
        first_pass: bool,
    ) -> bool {
        self.could_be_source(m, data, last_fetched, preference, first_pass) && !self.is_denied(&m.host)
    }
    pub(crate) fn could_be_source(
        &self,
        m: &Member,
        data: &MemberData,
        last_fetched: OpTime,
        preference: SourcePreference,
        first_pass: bool,
    ) -> bool {
        let Some(me) = self.self_member() else { return false };
        if !data.is_up() || !data.state.is_readable() {
            return false;
        }
        let is_primary = data.state == MemberState::Primary;
        if is_primary
            && (preference == SourcePreference::Secondary
                || (preference == SourcePreference::SecondaryPreferred && first_pass))
        {
            return false;
        }
        if first_pass && !self.passes_first(me, m, data) {
            return false;
        }
        if me.build_indexes && !m.build_indexes {
            return false;
        }
        data.heard.applied.op > last_fetched || broken(Mutant::SourceNotAhead)
    }

    fn passes_first(&self, me: &Member, m: &Member, data: &MemberData) -> bool {
        let newest = self.primary.and_then(|id| self.members.get(&id)).map(|p| p.heard.applied.op.ts.secs());
        let too_far = newest.is_some_and(|secs| {
            i64::from(data.heard.applied.op.ts.secs()) < i64::from(secs) - self.params.sync_source_lag_secs
        });
        (!me.is_voter() || m.is_voter())
            && (!m.hidden || broken(Mutant::SourceHidden))
            && !too_far
            && m.secondary_delay_secs <= me.secondary_delay_secs
    }

    /// Would a better source than `held` pass now? For [`Core::should_change_source`].
    pub(crate) fn first_pass_source(&self, last_fetched: OpTime, except: MemberId) -> bool {
        self.config.iter().flat_map(|c| &c.members).filter(|m| m.id != except).any(|m| {
            self.members
                .get(&m.id)
                .is_some_and(|d| self.is_eligible_source(m, d, last_fetched, SourcePreference::Nearest, true))
        })
    }

    /// R-SYNC-12.
    pub(crate) fn on_sync_from(&mut self, token: Token, host: String, out: &mut Actions) {
        let result = self.check_sync_from(&host).map(|warning| {
            let previous = self.sync_source.as_deref().map(str::to_owned);
            self.forced_source = Some(host);
            CommandReply::SyncFrom { previous, warning }
        });
        out.push(Action::Reply { token, result });
    }

    fn check_sync_from(&self, host: &str) -> Result<Option<String>, Error> {
        let not_secondary = |text: &'static str| Err(Error::new(ErrorCode::NotSecondary, text));
        let Some(me) = self.self_member() else {
            return not_secondary("Removed and uninitialized nodes do not sync");
        };
        if me.arbiter_only {
            return not_secondary("arbiters don't sync");
        }
        if self.is_leader() {
            return not_secondary("primaries don't sync");
        }
        let Some(target) = self.member_by_host(host) else {
            let text = format!("Could not find member \"{host}\" in replica set");
            return Err(Error::new(ErrorCode::NodeNotFound, text));
        };
        let invalid = |why: &str| Err(Error::new(ErrorCode::InvalidOptions, why.to_owned()));
        if target.id == me.id {
            return invalid("I cannot sync from myself");
        }
        if target.arbiter_only {
            return invalid(&format!("Cannot sync from \"{host}\" because it is an arbiter"));
        }
        if me.build_indexes && !target.build_indexes {
            return invalid(&format!("Cannot sync from \"{host}\" because it does not build indexes"));
        }
        if me.is_voter() && !target.is_voter() {
            return invalid(&format!("Cannot sync from \"{host}\" because it is not a voter"));
        }
        let data = self.members.get(&target.id);
        if data.is_some_and(|d| d.auth_issue) {
            let text = format!("not authorized to communicate with {host}");
            return Err(Error::new(ErrorCode::Unauthorized, text));
        }
        let Some(data) = data.filter(|d| d.is_up()) else {
            let text = format!("I cannot reach the requested member: {host}");
            return Err(Error::new(ErrorCode::HostUnreachable, text));
        };
        let lag = i64::from(self.me.applied.op.ts.secs()) - i64::from(data.heard.applied.op.ts.secs());
        Ok((lag > WARN_LAG_SECS)
            .then(|| format!("requested member \"{host}\" is more than {WARN_LAG_SECS} seconds behind us")))
    }
}
