//! A member that leaves its set for one of its own (SV-SPLIT-11).
//!
//! ```text
//!   offered: newer, and this node stands in its recipientConfig
//!     └► kept aside; the old configuration stays in force, members are asked on
//!          └► a majority of those that stay has it ──► nothing is fetched any more, what was fetched is applied
//!               └► the recipient's half on disk ──► in force: another name, no commit point, nobody known
//! ```
//! A majority counts that said, each within one answer, that it has this configuration and is in its term. Whoever is elected later
//! needs a vote of one of them, which they refuse to anybody with an older configuration: so every next primary of the donor goes
//! forward with the split, and nobody is left alone in a set that the donor knows nothing of.
//!
//! The disk decides: before the barrier a start finds the old configuration and learns the split one again, after it the new set.
//! Until then a newer configuration takes the place of the one kept aside.
//!
//! Nothing of the old set is heard from then on: its questions and answers carry another name, and what carries none (metadata of the
//! data path, positions) carries the set's `replicaSetId`.

use crate::action::{Action, Actions, ConfigNote, Note};
use crate::config::ReplSetConfig;
use crate::config_change::ConfigChange;
use crate::core::Core;
use crate::early_signs::Gathering;
use crate::member::{Host, MemberState, Position};
use crate::message::{HeartbeatReply, HeartbeatRequest, Peer, ReplSetMetadata};
use crate::mutants::{Mutant, broken};
use crate::sources_aside::SourcesAside;
use crate::timer::Timer;
use pando_base::OpTime;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A split configuration kept aside.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Leaving {
    config: Arc<ReplSetConfig>,
    /// This node's place in its recipient half.
    place: usize,
    /// Voters of those that stay that are known to have it.
    have: BTreeSet<String>,
    /// The drain that was asked for; no way back to fetching before its end.
    drain: Option<u64>,
}

impl Leaving {
    fn stays(&self, host: &str) -> bool {
        self.config.members.iter().any(|m| m.is_voter() && m.host == host)
    }
}

impl Core {
    /// Nothing is fetched, no election begins: the drain is under way, or the configuration on its way to the disk.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.as_ref().is_some_and(|l| l.drain.is_some())
    }

    // --- offered

    /// Whether an offered configuration, newer than the one in force, is newer than the split one, too, and another one for this node.
    pub(crate) fn replaces_split(&self, config: &ReplSetConfig) -> bool {
        let Some(l) = &self.leaving else { return true };
        // The next primary's term does not change what is under way.
        let same = l.drain.is_some() && config.recipient_config == l.config.recipient_config;
        config.id().is_newer_than(l.config.id()) && !same
    }

    pub(crate) fn forget_split(&mut self, out: &mut Actions) {
        if broken(Mutant::SplitOutlivesNextConfig) {
            return;
        }
        if let Some(l) = self.leaving.take() {
            self.note(Note::SplitForgotten { id: l.config.id() }, out);
        }
    }

    /// This node's place in the recipient half of a configuration, if it may leave by it.
    pub(crate) fn place_of_recipient(&self, config: &ReplSetConfig) -> Option<usize> {
        let me = self.self_member()?;
        let recipient = config.recipient_config.as_ref()?;
        let may = !self.name_is_given || broken(Mutant::LeaveGivenName);
        recipient.members.iter().position(|m| m.host == me.host).filter(|_| may)
    }

    pub(crate) fn keep_split(&mut self, config: Arc<ReplSetConfig>, place: usize, out: &mut Actions) {
        let Some(recipient) = &config.recipient_config else { return };
        self.note(Note::SplitHeard { id: config.id(), set_name: recipient.name.clone() }, out);
        self.leaving = Some(Leaving { config, place, have: BTreeSet::new(), drain: None });
        self.schedule_all_heartbeats();
        self.look_at_leaving(out);
    }

    // --- until a majority has it

    /// A member has answered: does it have the split configuration?
    pub(crate) fn hear_of_split(&mut self, from: &Host, reply: &HeartbeatReply, out: &mut Actions) {
        let Some(l) = &mut self.leaving else { return };
        let id = l.config.id();
        // In a later term it may have voted for somebody without it before it got it.
        let in_its_term = reply.term == id.term || broken(Mutant::LeaveOnLaterTerm);
        let same_set = reply.set_name == self.set_name;
        if same_set && reply.config_id == id && in_its_term && l.stays(from) {
            l.have.insert(from.to_string());
        }
        self.ask_unknown_voters(out);
        self.look_at_leaving(out);
    }

    /// A member that asks has the configuration it names, as one that answers does.
    pub(crate) fn hear_asking_of_split(&mut self, request: &HeartbeatRequest, out: &mut Actions) {
        let Some(l) = &mut self.leaving else { return };
        let id = l.config.id();
        let in_its_term = request.term == id.term || broken(Mutant::LeaveOnLaterTerm);
        let same_set = request.set_name == self.set_name;
        if same_set && request.config == id && in_its_term && l.stays(&request.from_host) {
            l.have.insert(request.from_host.clone());
            self.look_at_leaving(out);
        }
    }

    // --- told, by members that stay

    /// By a configuration that is about to come into force: they are no members any more then.
    pub(crate) fn peers_that_leave(&self, change: &ConfigChange) -> Vec<Peer> {
        let recipient = change.config.recipient_config.as_ref().filter(|_| !change.leaves);
        let hosts = recipient.iter().flat_map(|r| &r.members).map(|m| m.host.as_str());
        hosts.filter_map(|host| self.peer(self.member_by_host(host)?.id)).collect()
    }
    /// Tenants wait until they have left: they hear of it now, not when they ask the next time. Nobody waits for their answers.
    pub(crate) fn tell_those_that_leave(&mut self, peers: Vec<Peer>, out: &mut Actions) {
        for to in peers.into_iter().filter(|to| !self.members.contains_key(&to.id)) {
            self.heartbeats += 1;
            let (seq, request) = (self.heartbeats, self.heartbeat_request(self.config_id()));
            out.push(Action::SendHeartbeat { to, seq, request, timeout_ms: self.heartbeat_timeout_ms() });
        }
    }

    /// Voters of the donor that came after the configuration in force here: no heartbeats go to them.
    fn ask_unknown_voters(&mut self, out: &mut Actions) {
        let Some(l) = self.leaving.as_ref().filter(|l| l.drain.is_none()) else { return };
        let unknown = |host: &str| self.member_by_host(host).is_none() && !l.have.contains(host);
        let hosts: Vec<Host> =
            l.config.members.iter().map(|m| m.host.as_str()).filter(|h| unknown(h)).map(Host::from).collect();
        for host in hosts {
            self.fetch_config_from_host(host, out);
        }
    }

    /// Only a secondary leaves: whoever copies, or rolls back, ends that first.
    fn may_leave_now(&self) -> bool {
        let busy = self.change.is_some() || self.is_leader() || self.is_standing() || self.shut_down;
        self.follower_state == MemberState::Secondary && self.self_index.is_some() && !busy
    }

    pub(crate) fn look_at_leaving(&mut self, out: &mut Actions) {
        let Some(l) = self.leaving.as_ref().filter(|l| l.drain.is_none()) else { return };
        let enough = l.have.len() >= l.config.majority_votes() || broken(Mutant::LeaveWithoutMajority);
        if !enough || !self.may_leave_now() {
            return;
        }
        let id = self.next_id();
        if let Some(l) = &mut self.leaving {
            l.drain = Some(id);
        }
        if broken(Mutant::LeaveUndrained) {
            return self.on_drained_to_leave(id, out);
        }
        out.push(Action::DrainToLeave { id });
    }

    /// What is applied is all that this node will ever take from the old set.
    pub(crate) fn on_drained_to_leave(&mut self, id: u64, out: &mut Actions) {
        let Some(l) = self.leaving.as_ref().filter(|l| l.drain == Some(id)) else { return };
        let (split, place) = (l.config.clone(), l.place);
        let Some(recipient) = split.recipient_config.as_ref().filter(|_| self.may_leave_now()) else {
            return self.stop_leaving();
        };
        let config = Arc::new((**recipient).clone());
        let mut change = ConfigChange::installing(config.clone(), Some(place), None);
        change.leaves = true;
        self.change = Some(change.clone());
        self.persist_config(change, config, ConfigNote::Silent, out);
    }

    /// It follows again, and tries once more when a member answers.
    pub(crate) fn stop_leaving(&mut self) {
        if let Some(l) = &mut self.leaving {
            l.drain = None;
        }
    }

    // --- left

    /// The recipient half is on disk: all that is known of the old set, but this node's own data and votes, is forgotten.
    pub(crate) fn leave_set(&mut self, config: &ReplSetConfig, out: &mut Actions) {
        self.note(Note::SetLeft { set_name: config.name.clone() }, out);
        self.leaving = None;
        self.term = self.term.max(config.term);
        if !broken(Mutant::LeaveWithCommitPoint) {
            self.committed = Position::NULL;
            self.told_committed = OpTime::NULL;
        }
        if !broken(Mutant::LeaveWithMembers) {
            self.members.clear();
        }
        self.timers.forget_members(|_| false);
        for timer in [Timer::Election, Timer::FastElection, Timer::WholeStart, Timer::KeepAlive] {
            self.timers.cancel(timer);
        }
        (self.primary, self.last_primary) = (None, -1);
        (self.election, self.participant) = (None, None);
        self.drop_sync_source();
        self.forced_source = None;
        self.aside = SourcesAside::default();
        self.source_changes.clear();
        (self.suspicion, self.fast_election) = (None, None);
        self.office_seen = -1;
        self.offices.clear();
        self.refused_config = None;
        // It begins without a primary, and who is to be the first one the donor says.
        self.gathering = Gathering::Over;
        out.push(Action::Term(self.term));
        out.push(Action::JoinedRecipientSet);
    }

    /// Whether what came with the data path, or with positions, is of another set: of one that this node, or the sender, has left.
    pub fn is_of_another_set(&self, metadata: &ReplSetMetadata) -> bool {
        let own = self.config.as_ref().and_then(|c| c.settings.replica_set_id);
        let differ = matches!((own, metadata.replica_set_id), (Some(own), Some(theirs)) if own != theirs);
        differ && !broken(Mutant::TakeFromOtherSet)
    }
}
