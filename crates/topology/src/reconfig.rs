//! Changing the configuration (R-CONF-5..13): by command, or because another member has a newer one.
//!
//! ```text
//!   command ──► preconditions ──► quorum check ──┐
//!   heartbeat ──► which member am I? ────────────┴──► durable ──► in force ──► (command) on a majority ──► answer
//! ```
//! One change at a time, and none while an election runs. A safe change moves one vote at most and waits until the
//! present configuration, and what was committed under it, are on a majority: so any two quorums overlap.

use crate::action::{Action, Actions, CommandReply, ConfigNote, Note};
use crate::config::{Member, ReplSetConfig};
use crate::config_change::{ConfigChange, Stage};
use crate::config_order::ConfigId;
use crate::core::Core;
use crate::event::Token;
use crate::member::{Host, MemberId, MemberState};
use crate::message::{Failure, HeartbeatReply};
use crate::mutants::{Mutant, broken};
use crate::office::LeaderMode;
use crate::split;
use crate::timer::Timer;
use pando_base::{Error, ErrorCode, OpTime, Term};
use pando_bson::ObjectId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn incompatible(text: String) -> Error {
    Error::new(ErrorCode::NewReplicaSetConfigurationIncompatible, text)
}

fn not_initialized() -> Error {
    Error::new(ErrorCode::NotYetInitialized, "no replset config has been received")
}

fn in_progress() -> Error {
    Error::new(
        ErrorCode::ConfigurationInProgress,
        "Cannot run replSetReconfig because the node is currently updating its configuration",
    )
}

fn stepped_down() -> Error {
    Error::new(ErrorCode::PrimarySteppedDown, "Primary stepped down while the configuration changed")
}

impl Core {
    /// A step of it that an election must not overtake (R-CONF-9).
    pub(crate) fn is_changing_config(&self) -> bool {
        self.change.as_ref().is_some_and(|c| c.stage != Stage::Precondition) || self.is_leaving()
    }

    /// A configuration that may come into force here though nobody sees it yet.
    pub fn has_config_on_its_way(&self) -> bool {
        self.change.is_some()
    }

    // --- replSetInitiate

    pub(crate) fn on_initiate(
        &mut self,
        token: Token,
        config: Arc<ReplSetConfig>,
        self_index: usize,
        out: &mut Actions,
    ) {
        let refusal = if self.config.is_some() {
            Some(Error::new(ErrorCode::AlreadyInitialized, "already initialized"))
        } else if self.change.is_some() {
            Some(in_progress())
        } else {
            None
        };
        if let Some(e) = refusal {
            out.push(Action::Reply { token, result: Err(e) });
            return;
        }
        let mut change = ConfigChange::installing(config, Some(self_index), Some(token));
        change.initiate = true;
        self.start_quorum_check(change, out);
    }

    // --- replSetReconfig

    pub(crate) fn on_reconfig(
        &mut self,
        token: Token,
        config: Arc<ReplSetConfig>,
        self_index: Option<usize>,
        force: bool,
        bump: i64,
        out: &mut Actions,
    ) {
        let users = self.without_recipient(config);
        let next = users.and_then(|config| self.prepare_reconfig(&config, self_index, force, bump));
        self.begin_reconfig(token, next, self_index, force, out);
    }
    /// What a split has left of itself in the configuration may come back with it, and stays until then (SV-SPLIT-12).
    fn without_recipient(&self, mut config: Arc<ReplSetConfig>) -> Result<Arc<ReplSetConfig>, Error> {
        let kept = self.config.as_ref().and_then(|current| current.recipient_config.as_ref());
        if config.recipient_config.is_some() && config.recipient_config.as_ref() != kept {
            let text =
                "Cannot provide recipientConfig field during reconfig; only a shard split installs one.";
            return Err(Error::new(ErrorCode::InvalidReplicaSetConfig, text));
        }
        if config.recipient_config.is_some() {
            Arc::make_mut(&mut config).recipient_config = None;
        }
        Ok(config)
    }

    /// `replSetReconfig` of the donor's primary on itself (SV-SPLIT-10).
    pub(crate) fn on_split(
        &mut self,
        token: Token,
        tag: &str,
        set_name: &str,
        (replica_set_id, before): (ObjectId, Option<&str>),
        out: &mut Actions,
    ) {
        let in_force = self.config.as_ref().filter(|c| split::is_split_for(c, set_name).is_some());
        if let Some(config) = in_force.filter(|_| self.is_writable()) {
            self.config_waiters.push((token, config.id()));
            return self.look_at_reconfig(out);
        }
        let next = match &self.config {
            _ if !self.is_writable() => Err(self.not_writable()),
            _ if self.name_is_given => Err(Error::new(
                ErrorCode::CommandNotSupported,
                "A set is split only where its members run with --serverless",
            )),
            None => Err(not_initialized()),
            Some(current) => split::split_config(current, tag, set_name, replica_set_id, before),
        };
        let place = |c: &ReplSetConfig| c.members.iter().position(|m| m.id == self.self_id());
        let self_index = next.as_ref().ok().and_then(place);
        let next = next.and_then(|next| self.prepare_reconfig(&next, self_index, false, 0));
        self.begin_reconfig(token, next, self_index, false, out);
    }

    fn begin_reconfig(
        &mut self,
        token: Token,
        next: Result<ReplSetConfig, Error>,
        self_index: Option<usize>,
        force: bool,
        out: &mut Actions,
    ) {
        match next {
            Err(e) => out.push(Action::Reply { token, result: Err(e) }),
            Ok(next) => {
                let mut change = ConfigChange::installing(Arc::new(next), self_index, Some(token));
                change.force = force;
                change.stage = Stage::Precondition;
                self.change = Some(change);
                self.look_at_reconfig(out);
            }
        }
    }

    fn not_writable(&self) -> Error {
        let text = format!(
            "New config is rejected :: caused by :: replSetReconfig should only be run on a writable PRIMARY. Current \
             state {};",
            self.state().text()
        );
        Error::new(ErrorCode::NotWritablePrimary, text)
    }

    fn prepare_reconfig(
        &self,
        wanted: &ReplSetConfig,
        self_index: Option<usize>,
        force: bool,
        bump: i64,
    ) -> Result<ReplSetConfig, Error> {
        let Some(current) = &self.config else {
            return Err(not_initialized());
        };
        if !force && !self.is_writable() {
            return Err(self.not_writable());
        }
        if self.change.is_some() || self.is_leaving() {
            return Err(in_progress());
        }
        let mut next = wanted.clone();
        next.settings.replica_set_id = next.settings.replica_set_id.or(current.settings.replica_set_id);
        split::set_terms(&mut next, if force { -1 } else { self.term });
        if force {
            next.version = next.version.max(current.version) + bump;
        }
        mark_newly_added(current, &mut next, force);
        // First, then valid: members that do not vote yet do not count.
        next.validate().map_err(|e| incompatible(e.message.to_string()))?;
        current.check_successor(&next, force)?;
        current.check_no_empty_majority(wanted, force)?;
        let me = self_index.and_then(|i| next.members.get(i));
        match me {
            None => Err(Error::new(
                ErrorCode::NodeNotFound,
                format!(
                    "No host described in new configuration with {{version: {}, term: {}}} for replica set {} maps \
                     to this node",
                    next.version, next.term, next.name
                ),
            )),
            Some(m) if !force && !m.is_electable() => Err(Error::new(
                ErrorCode::NodeNotElectable,
                format!(
                    "This node, {}, with _id MemberId({}) is not electable under the new configuration with \
                     {{version: {}, term: {}}} for replica set {}",
                    m.host, m.id, next.version, next.term, next.name
                ),
            )),
            _ => Ok(next),
        }
    }

    /// On a majority of its own voters.
    pub fn is_config_committed(&self) -> bool {
        let Some(config) = &self.config else { return false };
        let id = config.id();
        let have = config.members.iter().filter(|m| m.is_voter()).filter(|m| {
            m.id == self.self_id()
                || self
                    .members
                    .get(&m.id)
                    .is_some_and(|d| d.config_version == id.version && d.config_term == id.term)
        });
        have.count() >= config.majority_votes()
    }

    /// R-CONF-6, on every answer and every advance of the commit point.
    pub(crate) fn look_at_reconfig(&mut self, out: &mut Actions) {
        self.answer_when_config_committed(out);
        let Some(change) = self.change.as_ref().filter(|c| c.stage == Stage::Precondition) else { return };
        let ready = change.force
            || broken(Mutant::ReconfigBeforeCommitted)
            || (self.is_config_committed() && self.is_all_committed_here());
        if ready && let Some(change) = self.change.take() {
            self.start_quorum_check(change, out);
        }
    }

    // --- quorum check (R-CONF-7)

    fn start_quorum_check(&mut self, mut change: ConfigChange, out: &mut Actions) {
        let id = self.next_id();
        change.id = id;
        change.stage = Stage::Quorum;
        let config = change.config.clone();
        let me = change.self_index;
        self.change = Some(change);
        let timeout_ms = self.heartbeat_timeout_ms();
        let mut request = self.heartbeat_request(config.id());
        request.from_host = me.map_or_else(String::new, |i| config.members[i].host.clone());
        request.from_id = me.map_or(-1, |i| config.members[i].id);
        for (_, m) in config.members.iter().enumerate().filter(|(i, _)| Some(*i) != me) {
            let to = crate::message::Peer { id: m.id, host: m.host.as_str().into() };
            out.push(Action::CheckQuorum { id, to, request: request.clone(), timeout_ms });
        }
        self.timers.set(Timer::Quorum, self.now + timeout_ms);
        self.count_quorum(false, out);
    }

    pub(crate) fn on_quorum_replied(
        &mut self,
        id: u64,
        from: MemberId,
        result: Result<HeartbeatReply, Failure>,
        out: &mut Actions,
    ) {
        let Some(change) = self.change.as_mut().filter(|c| c.id == id && c.stage == Stage::Quorum) else {
            return;
        };
        change.take_answer(from, result);
        self.count_quorum(false, out);
    }

    pub(crate) fn on_quorum_overdue(&mut self, out: &mut Actions) {
        self.count_quorum(true, out);
    }

    fn count_quorum(&mut self, over: bool, out: &mut Actions) {
        let Some(change) = self.change.as_ref().filter(|c| c.stage == Stage::Quorum) else { return };
        let Some(passed) = change.quorum(over) else { return };
        self.timers.cancel(Timer::Quorum);
        if passed {
            let Some(mut change) = self.change.take() else { return };
            change.stage = Stage::Persisting;
            let (config, initiate) = (change.config.clone(), change.initiate);
            self.change = Some(change.clone());
            let note = match (initiate, self.is_writable()) {
                (true, _) => ConfigNote::Initiate,
                (false, true) => ConfigNote::Reconfig,
                (false, false) => ConfigNote::Silent,
            };
            self.persist_config(change, config, note, out);
        } else {
            self.fail_quorum(out);
        }
    }

    fn fail_quorum(&mut self, out: &mut Actions) {
        let Some(change) = self.change.take() else { return };
        if let Some(token) = change.token {
            out.push(Action::Reply { token, result: Err(change.quorum_failure()) });
        }
    }

    // --- by heartbeat (R-CONF-10)

    pub(crate) fn fetch_config_from_member(&mut self, from: MemberId, out: &mut Actions) {
        if let Some(peer) = self.peer(from) {
            self.fetch_config_from_host(peer.host, out);
        }
    }
    pub(crate) fn fetch_config_from_host(&mut self, from: Host, out: &mut Actions) {
        if self.change.is_none() && !self.shut_down {
            let request = self.heartbeat_request(self.config_id());
            out.push(Action::FetchConfig { from, request });
        }
    }

    pub(crate) fn on_config_fetched(
        &mut self,
        from: &Host,
        result: Result<HeartbeatReply, Failure>,
        out: &mut Actions,
    ) {
        let Ok(reply) = result else { return };
        if let Some(config) = &reply.config {
            self.on_config_offered(reply.config_id, config.clone(), out);
        }
        self.hear_of_split(from, &reply, out);
    }

    /// A newer build may have one that this one cannot read, or finds invalid; stored, it would refuse the next start.
    /// This member goes on with the one it has, and says so once.
    pub(crate) fn on_config_offered(
        &mut self,
        id: ConfigId,
        config: Result<Arc<ReplSetConfig>, String>,
        out: &mut Actions,
    ) {
        let valid = config.and_then(|c| match c.validate() {
            Err(e) if !broken(Mutant::AnyConfigInstalled) => Err(e.message.to_string()),
            _ => Ok(c),
        });
        match valid {
            Ok(config) => self.on_newer_config(config, out),
            Err(why) if id.is_newer_than(self.config_id()) && self.refused_config != Some(id) => {
                self.refused_config = Some(id);
                self.note(Note::ConfigRefused { id, why }, out);
            }
            Err(_) => {}
        }
    }

    fn on_newer_config(&mut self, config: Arc<ReplSetConfig>, out: &mut Actions) {
        let newer = (config.id().is_newer_than(self.config_id()) && self.replaces_split(&config))
            || broken(Mutant::OlderConfigInstalled);
        let is_ours = self.set_name.is_empty() || config.name == self.set_name;
        if !newer || !is_ours || self.is_draining() || self.is_standing() {
            return;
        }
        match &self.change {
            // What a command is waiting to do is overtaken.
            Some(c) if c.stage == Stage::Precondition => self.drop_config_command(out),
            Some(_) => return,
            None => {}
        }
        self.forget_split(out);
        // The same address is surely this node.
        if let Some(place) = self.place_of_recipient(&config) {
            return self.keep_split(config, place, out);
        }
        let mut change = ConfigChange::installing(config.clone(), None, None);
        // The same address under the same id is surely this node.
        let known = self
            .self_member()
            .and_then(|me| config.members.iter().position(|m| m.id == me.id && m.host == me.host));
        if known.is_some() {
            change.self_index = known;
            self.change = Some(change.clone());
            self.persist_config(change, config, ConfigNote::Silent, out);
            return;
        }
        change.id = self.next_id();
        change.stage = Stage::Locating;
        out.push(Action::LocateSelf { id: change.id, config });
        self.change = Some(change);
    }

    pub(crate) fn on_self_located(&mut self, id: u64, index: Option<usize>, out: &mut Actions) {
        let Some(mut change) = self.change.take() else { return };
        if change.id != id || !matches!(change.stage, Stage::Locating | Stage::LocatingRecipient) {
            self.change = Some(change);
            return;
        }
        // A node without a configuration does not take one that is not about it.
        if index.is_none() && self.config.is_none() {
            return;
        }
        if let (Stage::LocatingRecipient, Some(place)) = (change.stage, index) {
            return self.keep_split(change.config, place, out);
        }
        if let (Stage::Locating, None, Some(recipient)) =
            (change.stage, index, &change.config.recipient_config)
        {
            if !self.name_is_given {
                let config = Arc::new((**recipient).clone());
                change.id = self.next_id();
                change.stage = Stage::LocatingRecipient;
                out.push(Action::LocateSelf { id: change.id, config });
                self.change = Some(change);
                return;
            }
            self.note(Note::SplitRefused { set_name: recipient.name.clone() }, out);
        }
        change.self_index = index;
        change.stage = Stage::Persisting;
        let config = change.config.clone();
        self.change = Some(change.clone());
        self.persist_config(change, config, ConfigNote::Silent, out);
    }

    // --- in force

    pub(crate) fn on_config_durable(&mut self, change: ConfigChange, ok: bool, out: &mut Actions) {
        self.change = None;
        if !ok {
            self.stop_leaving();
            if let Some(token) = change.token {
                let e =
                    Error::new(ErrorCode::InternalError, "the configuration could not be written to disk");
                out.push(Action::Reply { token, result: Err(e) });
            }
            return;
        }
        self.install(&change, out);
        match change.token {
            Some(token) if change.initiate || change.force => {
                out.push(Action::Reply { token, result: Ok(CommandReply::Done) });
            }
            // Others elect whom they like meanwhile: it is in force here, and may be nowhere else, ever.
            Some(token)
                if !self.leads_in(change.config.term)
                    && !broken(Mutant::ReconfigAcknowledgedByWhoSteppedDown) =>
            {
                out.push(Action::Reply { token, result: Err(stepped_down()) });
            }
            Some(token) => {
                self.config_waiters.push((token, change.config.id()));
                self.look_at_reconfig(out);
            }
            None => {}
        }
    }
    fn leads_in(&self, term: Term) -> bool {
        self.is_leader() && self.term == term
    }

    fn install(&mut self, change: &ConfigChange, out: &mut Actions) {
        let first = self.config.is_none();
        if !broken(Mutant::SplitOutlivesNextConfig) {
            self.leaving = None;
        }
        if change.leaves {
            self.leave_set(&change.config, out);
        }
        self.remember_commit_point();
        let leaving = self.peers_that_leave(change);
        self.set_name = change.config.name.clone();
        self.config = Some(change.config.clone());
        self.self_index = change.self_index;
        self.fail_replaced_config_commands(out);
        if change.force {
            // Whoever forces a configuration takes what may be lost.
            self.promised = OpTime::NULL;
        }
        self.reset_members();
        if first {
            // What a configuration names has been reached.
            self.term = change.config.term.max(0);
            out.push(Action::Term(self.term));
            self.initiator = change.initiate;
            // Whoever initiates has the data of the set; the others copy it.
            self.follower_state =
                if change.initiate { MemberState::Secondary } else { MemberState::Startup2 };
        }
        out.push(Action::Config { config: change.config.clone(), self_index: change.self_index });
        self.timers.cancel(Timer::PriorityTakeover);
        self.timers.cancel(Timer::CatchUpTakeover);
        let source_gone = self.sync_source.as_deref().is_some_and(|h| self.member_by_host(h).is_none());
        if source_gone {
            self.drop_sync_source();
            out.push(Action::ChangeSyncSource {
                reason: "the sync source is no longer in the configuration",
            });
        }
        self.recompute_primary();
        if self.is_leader() && !self.self_member().is_some_and(|m| m.is_electable()) {
            self.step_down_unconditionally("it is not electable in the new configuration", out);
        }
        self.bump_topology(out);
        self.schedule_all_heartbeats();
        self.tell_those_that_leave(leaving, out);
        self.schedule_election();
        self.recheck_waiters(out);
        self.on_positions_changed(out);
        self.stand_if_alone(out);
    }

    /// Commands that wait for a majority that has theirs: a forced configuration has taken its place.
    fn fail_replaced_config_commands(&mut self, out: &mut Actions) {
        let now = self.config_id();
        let kept = |(_, id): &(Token, ConfigId)| *id == now;
        let (waiters, replaced) = std::mem::take(&mut self.config_waiters).into_iter().partition(kept);
        self.config_waiters = waiters;
        for (token, id) in replaced {
            let text = format!("The configuration with {id} was replaced before a majority had it");
            let e = Error::new(ErrorCode::InterruptedDueToReplStateChange, text);
            out.push(Action::Reply { token, result: Err(e) });
        }
    }

    fn answer_when_config_committed(&mut self, out: &mut Actions) {
        if self.config_waiters.is_empty() || !self.is_config_committed() {
            return;
        }
        // Whoever has it now may have voted for somebody who will lead without it.
        if self.mode == LeaderMode::SteppingDown && !broken(Mutant::ReconfigAcknowledgedWhileSteppingDown) {
            return;
        }
        for (token, _) in std::mem::take(&mut self.config_waiters) {
            out.push(Action::Reply { token, result: Ok(CommandReply::Done) });
        }
    }

    /// A step-down: commands that have not installed anything fail, those that wait for a majority do too, though
    /// their configuration is in force (R-CONF-7).
    pub(crate) fn drop_config_command(&mut self, out: &mut Actions) {
        let mut tokens: Vec<Token> =
            std::mem::take(&mut self.config_waiters).into_iter().map(|(t, _)| t).collect();
        if self
            .change
            .as_ref()
            .is_some_and(|c| !c.force && matches!(c.stage, Stage::Precondition | Stage::Quorum))
        {
            self.timers.cancel(Timer::Quorum);
            tokens.extend(self.change.take().and_then(|c| c.token));
        }
        for token in tokens {
            out.push(Action::Reply { token, result: Err(stepped_down()) });
        }
    }

    // --- newlyAdded (R-CONF-11)

    /// A new member has its data: from now on it votes.
    pub(crate) fn on_member_state(&mut self, id: MemberId, state: MemberState, out: &mut Actions) {
        let has_data =
            matches!(state, MemberState::Secondary | MemberState::Recovering | MemberState::Rollback)
                || broken(Mutant::NewMemberVotesWithoutData);
        let waiting = self.config_member(id).is_some_and(|m| m.newly_added);
        if !has_data || !waiting || !self.is_writable() || self.change.is_some() {
            return;
        }
        let Some(config) = &self.config else { return };
        let mut next = (**config).clone();
        next.version += 1;
        next.term = self.term;
        for m in next.members.iter_mut().filter(|m| m.id == id) {
            m.newly_added = false;
        }
        // Beyond the seventh it goes on copying and serving, without a vote.
        if next.validate().is_err() {
            return;
        }
        let mut change = ConfigChange::installing(Arc::new(next), self.self_index, None);
        change.stage = Stage::Precondition;
        self.change = Some(change);
        self.look_at_reconfig(out);
    }

    /// The node that initiated the set need not wait for an election timeout: nobody else can be primary yet.
    pub(crate) fn stand_after_initiate(&mut self, out: &mut Actions) {
        if self.initiator
            && self.term == 0
            && self.primary.is_none()
            && !self.is_standing()
            && self.is_config_committed()
        {
            self.initiator = false;
            let _ = self.stand(crate::candidacy::Reason::ElectionTimeout, None, out);
        }
    }
}

/// New voters do not vote before they have the data, and who waited for it goes on waiting. A forced configuration takes
/// members as they are given.
fn mark_newly_added(current: &ReplSetConfig, next: &mut ReplSetConfig, force: bool) {
    if broken(Mutant::NewMemberVotesAtOnce) {
        return;
    }
    let old: BTreeMap<(MemberId, &str), bool> =
        current.members.iter().map(|m| ((m.id, m.host.as_str()), m.newly_added)).collect();
    for m in &mut next.members {
        m.newly_added = match old.get(&(m.id, m.host.as_str())) {
            Some(waiting) => *waiting && !force,
            None => m.votes != 0 && !m.arbiter_only && !force,
        };
    }
}

impl ReplSetConfig {
    /// Whether `next` may follow this one (R-CONF-4, R-CONF-6).
    pub fn check_successor(&self, next: &ReplSetConfig, force: bool) -> Result<(), Error> {
        if next.name != self.name {
            return Err(Error::new(
                ErrorCode::InvalidReplicaSetConfig,
                format!(
                    "Rejecting reconfig where new config set name differs from command line set name, new config set \
                     name: {}, old config set name: {}",
                    next.name, self.name
                ),
            ));
        }
        if next.version <= self.version {
            return Err(incompatible(format!(
                "New replica set configuration version and term must be greater than old, but {} is not greater than {} \
                 for replica set {}",
                next.id(),
                self.id(),
                next.name
            )));
        }
        if let (Some(old), Some(new)) = (self.settings.replica_set_id, next.settings.replica_set_id)
            && old != new
        {
            return Err(incompatible(format!(
                "New and old configurations differ in replica set ID; old was {}, and new is {}",
                old.to_hex(),
                new.to_hex()
            )));
        }
        for n in &next.members {
            for o in &self.members {
                if n.host == o.host && n.id != o.id {
                    return Err(incompatible(format!(
                        "New and old configurations both have members with host of {} but in the new configuration \
                         the _id field is MemberId({}) and in the old configuration it is MemberId({}) for replica set {}",
                        n.host, n.id, o.id, next.name
                    )));
                }
                if n.id == o.id && n.arbiter_only != o.arbiter_only {
                    return Err(incompatible(format!(
                        "New and old configurations differ in the setting of the arbiterOnly field for member {}; to \
                         make this change, remove then re-add the member",
                        n.host
                    )));
                }
                if n.id == o.id && n.build_indexes != o.build_indexes {
                    return Err(incompatible(format!(
                        "New and old configurations differ in the setting of the buildIndexes field for member {}; \
                         to make this change, remove then re-add the member",
                        n.host
                    )));
                }
            }
        }
        if !force { self.check_single_voter_change(next) } else { Ok(()) }
    }

    /// Arbiters and a newcomer without data must not be able to elect it: what a majority of the voters with data has committed so far
    /// could be held by nobody who votes. MongoDB looks at one member with data that gets an arbiter and another one (also where the
    /// change is forced); here it is any number of them, unless forced. `next` is as the user wants it, newcomers with their votes.
    fn check_no_empty_majority(&self, next: &ReplSetConfig, force: bool) -> Result<(), Error> {
        let with_data = |c: &ReplSetConfig| -> BTreeSet<MemberId> {
            c.members.iter().filter(|m| m.is_voter() && m.is_data_bearing()).map(|m| m.id).collect()
        };
        let (old, new) = (with_data(self), with_data(next));
        let lacks_data = |m: &Member| !old.contains(&m.id);
        let newcomer = next.members.iter().any(|m| m.is_electable() && lacks_data(m));
        let voters = next.voters();
        let arbiters = voters - new.len();
        let is_psa = voters == 3 && arbiters == 1 && old.len() == 1;
        // Everybody who may have none of what was committed last.
        let empty = new.len().saturating_sub(self.write_majority().min(new.intersection(&old).count()));
        let unsafe_now = arbiters > 0 && arbiters + empty >= next.majority_votes();
        if newcomer && (is_psa || (unsafe_now && !force)) && !broken(Mutant::ArbitersElectNewcomer) {
            return Err(incompatible(
                "Rejecting reconfig where the new config has a PSA topology and the secondary is electable, but the old \
                 config contains only one writable node. Refer to \
                 https://docs.mongodb.com/manual/reference/method/rs.reconfigForPSASet/ for next steps on reconfiguring \
                 a PSA set."
                    .to_owned(),
            ));
        }
        Ok(())
    }

    fn check_single_voter_change(&self, next: &ReplSetConfig) -> Result<(), Error> {
        let voters = |c: &ReplSetConfig| -> BTreeSet<MemberId> {
            c.members.iter().filter(|m| m.is_voter()).map(|m| m.id).collect()
        };
        let (old, new) = (voters(self), voters(next));
        if old.symmetric_difference(&new).count() > 1 && !broken(Mutant::ManyVotersAtOnce) {
            let text = "Non force replica set reconfig can only add or remove at most 1 voting member.";
            return Err(incompatible(text.to_owned()));
        }
        Ok(())
    }
}
