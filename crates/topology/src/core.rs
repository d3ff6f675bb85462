//! The state of a member, and what may be asked of it without changing anything.

use crate::action::{Action, Actions, ConfigNote, Note};
use crate::candidacy::Candidacy;
use crate::config::{Member, ReplSetConfig};
use crate::config_change::ConfigChange;
use crate::config_order::ConfigId;
use crate::early_signs::{Gathering, Suspicion};
use crate::election_record::{ElectionCounts, ElectionRecord, VoteRecord};
use crate::event::{PersistId, Token};
use crate::member::{Host, MemberData, MemberId, MemberState, Position, Positions};
use crate::message::{LastVote, OplogQueryMetadata, Peer, ReplSetMetadata, VoteReply, VoteRequest};
use crate::mutants::{Mutant, broken};
use crate::office::{CatchUp, LeaderMode, StepDownAttempt};
use crate::params::Params;
use crate::recipient::Leaving;
use crate::sources_aside::SourcesAside;
use crate::timer::{Timer, Timers};
use crate::up_to_date::UpToDate;
use crate::waiters::Waiters;
use pando_base::{Millis, OpTime, Term};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What was on disk when the node started.
#[derive(Clone, Debug)]
pub struct Boot {
    /// What the process was told; `None`: its configuration says it, and it learns it from its first one (SV-MODE-1).
    pub set_name: Option<String>,
    /// The stored configuration and this node's place in it (`None`: not in it).
    pub config: Option<(Arc<ReplSetConfig>, Option<usize>)>,
    pub last_vote: LastVote,
    pub positions: Positions,
    pub params: Params,
    /// As a follower; STARTUP2 where an initial sync is needed.
    pub state: MemberState,
    /// Told to be durable here by an earlier life, before this member gave its data up ([`crate::Event::Emptied`]). The
    /// highest there is: it came back from a backup, and nobody knows ([`crate::Event::CaughtUp`]).
    pub promised: OpTime,
}

/// Work that waits for the disk.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Pending {
    /// A vote for another, to be told once it cannot be forgotten.
    Vote {
        token: Token,
        reply: VoteReply,
    },
    /// This candidate's vote for itself in election `0`.
    OwnVote(u64),
    Config(ConfigChange),
}

/// One member of one replica set.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Core {
    /// Empty until it is learnt.
    pub(crate) set_name: String,
    /// The process was told the name of its set: it stays in that one.
    pub(crate) name_is_given: bool,
    pub(crate) params: Params,
    pub(crate) now: Millis,
    pub(crate) started: Millis,
    pub(crate) config: Option<Arc<ReplSetConfig>>,
    pub(crate) self_index: Option<usize>,
    pub(crate) term: Term,
    pub(crate) last_vote: LastVote,
    /// Numbers of elections, locks and disk barriers; and of heartbeats.
    pub(crate) sequence: u64,
    pub(crate) heartbeats: u64,
    pub(crate) pending: BTreeMap<PersistId, Pending>,
    pub(crate) timers: Timers,
    /// In thousandths of the random range; drawn anew after each try.
    pub(crate) draw: u64,

    /// While not leader.
    pub(crate) follower_state: MemberState,
    pub(crate) maintenance: u32,
    pub(crate) too_stale: bool,
    pub(crate) mode: LeaderMode,
    pub(crate) members: BTreeMap<MemberId, MemberData>,
    pub(crate) me: Positions,
    /// What this member once held and others may count on: nobody with less gets its vote.
    pub(crate) promised: OpTime,
    pub(crate) primary: Option<MemberId>,
    pub(crate) candidacy: Option<Candidacy>,
    pub(crate) election: Option<ElectionRecord>,
    pub(crate) participant: Option<VoteRecord>,
    /// The primary before this one.
    pub(crate) last_primary: MemberId,
    pub(crate) counts: ElectionCounts,
    pub(crate) catch_up: Option<CatchUp>,
    pub(crate) first_of_term: Option<OpTime>,
    pub(crate) step_down: Option<StepDownAttempt>,
    /// Heard while stepping down; taken afterwards.
    pub(crate) pending_term: Option<Term>,
    pub(crate) held_votes: Vec<(Token, VoteRequest)>,
    /// Not electable until then: step-down period, freeze, a higher term just seen.
    pub(crate) step_down_until: Millis,
    pub(crate) election_sleep_until: Millis,

    pub(crate) committed: Position,
    /// The commit point when the configuration in force was installed (R-CONF-6).
    pub(crate) committed_in_previous: OpTime,
    pub(crate) waiters: Waiters,

    pub(crate) sync_source: Option<Host>,
    pub(crate) forced_source: Option<String>,
    pub(crate) source_was_forced: bool,
    pub(crate) aside: SourcesAside,
    pub(crate) source_changes: VecDeque<Millis>,
    pub(crate) last_oplog_metadata: Option<OplogQueryMetadata>,

    pub(crate) suspicion: Option<Suspicion>,
    /// The last early election that this member took part in, and the term of the office that had been lost.
    pub(crate) fast_election: Option<(Millis, Term)>,
    /// The newest office that was seen, and when the last few began.
    pub(crate) office_seen: Term,
    pub(crate) offices: VecDeque<Millis>,
    pub(crate) change: Option<ConfigChange>,
    /// Another member's, not valid here, as the log has been told.
    pub(crate) refused_config: Option<ConfigId>,
    /// A configuration by which this node leaves for another set, until it does.
    pub(crate) leaving: Option<Leaving>,
    /// Reconfigurations in force, answered once they are on a majority.
    pub(crate) config_waiters: Vec<(Token, ConfigId)>,
    pub(crate) topology_version: i64,
    pub(crate) quiesce_until: Option<Millis>,
    pub(crate) shut_down: bool,
    /// What was told last, to tell only changes.
    pub(crate) told: (MemberState, bool),
    pub(crate) told_committed: OpTime,
    /// Initiated the set in this life; stands as soon as a majority has the configuration.
    pub(crate) initiator: bool,
    pub(crate) gathering: Gathering,
    pub(crate) up_to_date: UpToDate,
}

impl Core {
    /// Give it a [`crate::Event::Tick`] first: that schedules heartbeats and elections.
    pub fn new(boot: Boot) -> Core {
        let mut core = Core {
            name_is_given: boot.set_name.is_some(),
            up_to_date: UpToDate::at_start(boot.set_name.is_some()),
            set_name: boot.set_name.unwrap_or_default(),
            params: boot.params,
            now: 0,
            started: -1,
            config: None,
            self_index: None,
            term: -1,
            last_vote: boot.last_vote,
            sequence: 0,
            heartbeats: 0,
            pending: BTreeMap::new(),
            timers: Timers::default(),
            draw: 0,
            follower_state: MemberState::Startup,
            maintenance: 0,
            too_stale: false,
            mode: LeaderMode::NotLeader,
            members: BTreeMap::new(),
            me: boot.positions,
            promised: boot.promised,
            primary: None,
            candidacy: None,
            election: None,
            participant: None,
            last_primary: -1,
            counts: ElectionCounts::default(),
            catch_up: None,
            first_of_term: None,
            step_down: None,
            pending_term: None,
            held_votes: Vec::new(),
            step_down_until: 0,
            election_sleep_until: 0,
            committed: Position::NULL,
            committed_in_previous: OpTime::NULL,
            waiters: Waiters::default(),
            sync_source: None,
            forced_source: None,
            source_was_forced: false,
            aside: SourcesAside::default(),
            source_changes: VecDeque::new(),
            last_oplog_metadata: None,
            suspicion: None,
            fast_election: None,
            office_seen: -1,
            offices: VecDeque::new(),
            change: None,
            refused_config: None,
            leaving: None,
            config_waiters: Vec::new(),
            topology_version: 0,
            quiesce_until: None,
            shut_down: false,
            told: (MemberState::Startup, false),
            told_committed: OpTime::NULL,
            initiator: false,
            gathering: Gathering::Over,
        };
        if let Some((config, index)) = boot.config {
            core.take_up(config, index, boot.state);
        }
        core
    }

    /// What a start finds on disk.
    fn take_up(&mut self, config: Arc<ReplSetConfig>, index: Option<usize>, state: MemberState) {
        self.term = self.last_vote.term.max(config.term).max(self.me.written.op.t).max(0);
        self.follower_state = state;
        self.set_name = config.name.clone();
        self.config = Some(config);
        self.gathering = Gathering::Waiting;
        self.self_index = index;
        self.reset_members();
    }

    pub(crate) fn bump_topology(&mut self, out: &mut Actions) {
        self.topology_version += 1;
        out.push(Action::TopologyVersion(self.topology_version));
    }
    pub(crate) fn next_id(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
    pub(crate) fn note(&self, note: Note, out: &mut Actions) {
        out.push(Action::Log(note));
    }

    // --- what others may ask without changing anything

    pub fn now(&self) -> Millis {
        self.now
    }
    pub fn started(&self) -> Millis {
        self.started.max(0)
    }
    pub fn params(&self) -> &Params {
        &self.params
    }
    pub fn set_name(&self) -> &str {
        &self.set_name
    }
    pub fn config(&self) -> Option<&Arc<ReplSetConfig>> {
        self.config.as_ref()
    }
    pub fn config_id(&self) -> ConfigId {
        self.config.as_ref().map_or(ConfigId::UNINITIALIZED, |c| c.id())
    }
    pub fn self_index(&self) -> Option<usize> {
        self.self_index
    }
    /// This node's entry in the configuration.
    pub fn self_member(&self) -> Option<&Member> {
        self.config.as_ref()?.members.get(self.self_index?)
    }
    pub fn self_id(&self) -> MemberId {
        self.self_member().map_or(-1, |m| m.id)
    }
    pub fn term(&self) -> Term {
        self.term
    }
    pub fn last_vote(&self) -> LastVote {
        self.last_vote
    }
    /// The last vote, once it is on disk: what may have been told.
    pub fn kept_vote(&self) -> Option<LastVote> {
        let on_its_way = |p: &Pending| matches!(p, Pending::Vote { .. } | Pending::OwnVote(_));
        (!self.pending.values().any(on_its_way)).then_some(self.last_vote)
    }
    pub fn mode(&self) -> LeaderMode {
        self.mode
    }
    pub fn is_leader(&self) -> bool {
        self.mode != LeaderMode::NotLeader
    }
    /// User writes may begin.
    pub fn is_writable(&self) -> bool {
        self.mode == LeaderMode::WritablePrimary
    }
    pub fn is_arbiter(&self) -> bool {
        self.self_member().is_some_and(|m| m.arbiter_only)
    }
    /// This node's member state (R-STATE-2).
    pub fn state(&self) -> MemberState {
        let Some(_) = &self.config else { return MemberState::Startup };
        let Some(me) = self.self_member() else { return MemberState::Removed };
        if self.is_leader() {
            return MemberState::Primary;
        }
        if me.arbiter_only {
            return MemberState::Arbiter;
        }
        if self.follower_state == MemberState::Secondary && (self.maintenance > 0 || self.too_stale) {
            return MemberState::Recovering;
        }
        self.follower_state
    }
    pub fn positions(&self) -> &Positions {
        &self.me
    }
    pub fn commit_point(&self) -> Position {
        self.committed
    }
    /// Up to here this node's own data is majority committed: never beyond what it has applied.
    pub fn committed_applied(&self) -> OpTime {
        self.committed.op.min(self.me.applied.op)
    }
    /// The member this node believes to be primary; itself included.
    pub fn primary(&self) -> Option<MemberId> {
        if self.is_leader() { Some(self.self_id()) } else { self.primary }
    }
    pub fn member(&self, id: MemberId) -> Option<&MemberData> {
        self.members.get(&id)
    }
    pub fn sync_source(&self) -> Option<&Host> {
        self.sync_source.as_ref()
    }
    pub fn timer(&self, timer: Timer) -> Option<Millis> {
        self.timers.get(timer)
    }
    pub fn timers(&self) -> impl Iterator<Item = (Timer, Millis)> + '_ {
        self.timers.iter()
    }
    /// When to come back with [`crate::Event::Tick`]; changes with every step.
    pub fn next_deadline(&self) -> Option<Millis> {
        self.timers.next_deadline()
    }
    pub fn topology_version(&self) -> i64 {
        self.topology_version
    }
    pub fn quiesce_until(&self) -> Option<Millis> {
        self.quiesce_until
    }
    pub fn election(&self) -> Option<&ElectionRecord> {
        self.election.as_ref()
    }
    pub fn participant(&self) -> Option<&VoteRecord> {
        self.participant.as_ref()
    }
    pub fn election_counts(&self) -> &ElectionCounts {
        &self.counts
    }
    pub fn first_of_term(&self) -> Option<OpTime> {
        self.first_of_term
    }

    /// Does this node copy from another now? Followers with data do, and a new primary until it drains.
    pub fn wants_to_fetch(&self) -> bool {
        let follower = matches!(self.state(), MemberState::Secondary | MemberState::Recovering);
        (follower && self.self_index.is_some() && !self.is_leaving()) || self.is_catching_up()
    }
    /// Elected and not yet writable.
    pub fn is_draining_or_catching_up(&self) -> bool {
        self.is_draining()
    }

    /// `$replData` for a reply of this node.
    pub fn metadata(&self) -> ReplSetMetadata {
        ReplSetMetadata {
            term: self.term,
            committed: self.committed,
            last_visible: self.me.written.op,
            config: self.config_id(),
            replica_set_id: self.config.as_ref().and_then(|c| c.settings.replica_set_id),
            sync_source_index: self.index_of_host(self.sync_source.as_deref()),
            is_primary: self.is_leader(),
        }
    }
    /// `$oplogQueryData` for a fetcher; the shell knows the rollback id.
    pub fn oplog_metadata(&self, rbid: i64) -> OplogQueryMetadata {
        OplogQueryMetadata {
            committed: self.committed,
            applied: self.me.applied.op,
            written: self.me.written.op,
            rbid,
            primary_index: self.primary().and_then(|id| self.index_of(id)).map_or(-1, |i| i as i64),
            sync_source_index: self.index_of_host(self.sync_source.as_deref()),
            sync_source_host: self.sync_source.as_deref().unwrap_or_default().to_owned(),
        }
    }

    /// For models: forgets counters and measurements on which no decision about terms, votes and commit points
    /// depends, so that states which differ only in them are one.
    pub fn forget_history(&mut self) {
        self.heartbeats = 0;
        self.topology_version = 0;
        self.counts = ElectionCounts::default();
        self.election = None;
        self.participant = None;
        self.last_primary = -1;
        self.source_changes.clear();
        self.fast_election = None;
        self.offices.clear();
        self.office_seen = -1;
        // Time stands still in a model: whoever sleeps has slept.
        self.election_sleep_until = 0;
        for data in self.members.values_mut() {
            data.ping = crate::member::Ping::default();
            data.message.clear();
            data.in_flight = None;
            data.sync_source.clear();
        }
    }

    // --- small helpers of the rules

    pub(crate) fn election_timeout_ms(&self) -> Millis {
        self.config.as_ref().map_or(10_000, |c| c.settings.election_timeout())
    }
    pub(crate) fn heartbeat_timeout_ms(&self) -> Millis {
        self.config.as_ref().map_or(10_000, |c| c.settings.heartbeat_timeout())
    }
    pub(crate) fn config_member(&self, id: MemberId) -> Option<&Member> {
        self.config.as_ref()?.members.iter().find(|m| m.id == id)
    }
    pub(crate) fn index_of(&self, id: MemberId) -> Option<usize> {
        self.config.as_ref()?.members.iter().position(|m| m.id == id)
    }
    pub(crate) fn index_of_host(&self, host: Option<&str>) -> i64 {
        let found = self.config.as_ref().and_then(|c| c.members.iter().position(|m| Some(&*m.host) == host));
        found.map_or(-1, |i| i as i64)
    }
    pub(crate) fn member_by_host(&self, host: &str) -> Option<&Member> {
        self.config.as_ref()?.members.iter().find(|m| m.host == host)
    }
    pub(crate) fn peer(&self, id: MemberId) -> Option<Peer> {
        Some(Peer { id, host: self.config_member(id)?.host.as_str().into() })
    }
    /// Other members, in the configuration's order.
    pub(crate) fn other_ids(&self) -> Vec<MemberId> {
        let me = self.self_id();
        self.config
            .as_ref()
            .map_or_else(Vec::new, |c| c.members.iter().map(|m| m.id).filter(|id| *id != me).collect())
    }
    /// Keeps what is known of members that stay, forgets the others.
    pub(crate) fn reset_members(&mut self) {
        let ids = self.other_ids();
        self.members.retain(|id, _| ids.contains(id));
        for id in ids {
            self.members.entry(id).or_default();
        }
        self.timers.forget_members(|id| self.members.contains_key(&id));
    }
    pub(crate) fn persist(&mut self, pending: Pending) -> PersistId {
        let id = self.next_id();
        self.pending.insert(id, pending);
        id
    }
    pub(crate) fn persist_config(
        &mut self,
        change: ConfigChange,
        config: Arc<ReplSetConfig>,
        note: ConfigNote,
        out: &mut Actions,
    ) {
        let id = self.persist(Pending::Config(change));
        out.push(Action::PersistConfig { id, config, note });
    }
    /// A higher term was heard; says whether it was (R-ELEC-9).
    pub(crate) fn see_term(&mut self, term: Term, out: &mut Actions) -> bool {
        if term <= self.term || self.config.is_none() {
            return false;
        }
        if self.is_leader() && broken(Mutant::KeepOfficeInOldTerm) {
            return false;
        }
        if self.is_leader() {
            self.pending_term = Some(self.pending_term.map_or(term, |p| p.max(term)));
            self.step_down_unconditionally("a higher term was seen", out);
        } else {
            self.adopt_term(term, out);
        }
        true
    }
    pub(crate) fn adopt_term(&mut self, term: Term, out: &mut Actions) {
        self.term = term;
        self.election_sleep_until = self.now + self.election_timeout_ms();
        self.timers.cancel(Timer::PriorityTakeover);
        self.timers.cancel(Timer::CatchUpTakeover);
        out.push(Action::Term(term));
        self.recompute_primary();
        // An election of an older term can no longer be won, nor its dry run lead anywhere.
        self.lose("the term moved on", out);
    }
}
