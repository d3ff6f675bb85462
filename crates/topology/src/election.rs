//! Standing for election (R-ELEC-1..6, 10, 11).
//!
//! ```text
//!   reason ──► electable? ──► dry run ──majority──► vote for itself ──durable──► real run ──majority──► leader
//!                 │no           │lost: nothing changed      (term + 1)             │lost: wait
//! ```

use crate::action::{Action, Actions, CommandReply, Note};
pub use crate::candidacy::Reason;
use crate::candidacy::{Candidacy, Phase};
use crate::core::{Core, Pending};
pub use crate::election_record::{ElectionCounts, ElectionRecord};
use crate::event::Token;
use crate::member::{MemberId, MemberState};
use crate::message::{Failure, LastVote, VoteReply, VoteRequest};
use crate::mutants::{Mutant, broken};
use crate::office::LeaderMode;
use crate::timer::Timer;
use pando_base::{Error, ErrorCode, Term, Timestamp, limits};
use std::collections::BTreeMap;

/// Why this node may not stand (R-ELEC-3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unelectable {
    NotInitialized,
    ArbiterIAm,
    NoPriority,
    NoData,
    HeldMoreOnce,
    NotSecondary,
    CannotSeeMajority,
    StepDownPeriodActive,
    NotCloseEnoughForPriorityTakeover,
    NotFreshEnoughForCatchUpTakeover,
    ShuttingDown,
    NoTermLeft,
}

impl Unelectable {
    pub fn text(self) -> &'static str {
        match self {
            Unelectable::NotInitialized => "node is not a member of a valid replica set configuration",
            Unelectable::ArbiterIAm => "member is an arbiter",
            Unelectable::NoPriority => "member has zero priority",
            Unelectable::NoData => "node has no applied oplog entries",
            Unelectable::HeldMoreOnce => {
                "this member held more before it copied the set's data again, and others may count on that"
            }
            Unelectable::NotSecondary => "member is not currently a secondary",
            Unelectable::CannotSeeMajority => "I cannot see a majority",
            Unelectable::StepDownPeriodActive => "I am still waiting for stepdown period to end",
            Unelectable::NotCloseEnoughForPriorityTakeover => {
                "member is not caught up enough to the most up-to-date member to call for priority takeover"
            }
            Unelectable::NotFreshEnoughForCatchUpTakeover => {
                "member is either not the most up-to-date member or not ahead of the primary, and therefore cannot \
                 call for catchup takeover"
            }
            Unelectable::ShuttingDown => "node is shutting down",
            Unelectable::NoTermLeft => "no term is left above the present one",
        }
    }
}

/// What `replSetStepUp` says, whatever the reason; the log knows more.
fn election_failed() -> Error {
    Error::new(ErrorCode::CommandFailed, "Election failed.")
}

impl Core {
    pub(crate) fn is_standing(&self) -> bool {
        self.candidacy.is_some()
    }

    /// By configuration alone; without it no election timer runs.
    fn may_ever_stand(&self) -> bool {
        self.self_member().is_some_and(|m| m.is_electable())
    }

    pub(crate) fn unelectable(&self, reason: Reason) -> Option<Unelectable> {
        let Some(me) = self.self_member() else { return Some(Unelectable::NotInitialized) };
        if me.arbiter_only {
            return Some(Unelectable::ArbiterIAm);
        }
        if !me.is_electable() {
            return Some(Unelectable::NoPriority);
        }
        if self.me.applied.op.is_null() {
            return Some(Unelectable::NoData);
        }
        if self.me.written.op < self.promised && !broken(Mutant::StandWithLessThanPromised) {
            return Some(Unelectable::HeldMoreOnce);
        }
        if self.shut_down || self.quiesce_until.is_some() {
            return Some(Unelectable::ShuttingDown);
        }
        if self.term >= limits::TERM_MAX {
            return Some(Unelectable::NoTermLeft);
        }
        if self.state() != MemberState::Secondary {
            return Some(Unelectable::NotSecondary);
        }
        if self.step_down_until > self.now && !broken(Mutant::StandWhileFrozen) {
            return Some(Unelectable::StepDownPeriodActive);
        }
        if !self.sees_majority() {
            return Some(Unelectable::CannotSeeMajority);
        }
        match reason {
            Reason::PriorityTakeover if !self.is_close_enough_for_priority_takeover() => {
                Some(Unelectable::NotCloseEnoughForPriorityTakeover)
            }
            Reason::CatchUpTakeover if !self.is_fresh_enough_for_catch_up_takeover() => {
                Some(Unelectable::NotFreshEnoughForCatchUpTakeover)
            }
            _ => None,
        }
    }

    fn sees_majority(&self) -> bool {
        let Some(config) = &self.config else { return false };
        let up = config.members.iter().filter(|m| m.is_voter() && self.is_up(m.id)).count();
        up >= config.majority_votes()
    }
    pub(crate) fn is_up(&self, id: MemberId) -> bool {
        id == self.self_id() || self.members.get(&id).is_some_and(|m| m.is_up())
    }

    /// Restarts the wait for a primary; the random part keeps members apart (R-ELEC-2).
    pub(crate) fn schedule_election(&mut self) {
        if !self.may_ever_stand() || self.state() != MemberState::Secondary || self.shut_down {
            self.timers.cancel(Timer::Election);
            return;
        }
        let timeout = self.election_timeout_ms();
        let range = timeout * i64::from(self.params.election_offset_percent) / 100;
        let offset = range * self.draw as i64 / 1000;
        self.timers.set(Timer::Election, self.now + timeout + offset);
    }

    /// The only voter need not wait for anyone (R-ELEC-10).
    pub(crate) fn stand_if_alone(&mut self, out: &mut Actions) {
        let alone = self.config.as_ref().is_some_and(|c| c.voters() == 1 && self.may_ever_stand());
        if alone && self.state() == MemberState::Secondary && !self.is_standing() {
            let _ = self.stand(Reason::SingleNodePromptElection, None, out);
        }
    }

    pub(crate) fn on_election_timeout(&mut self, out: &mut Actions) {
        self.schedule_election();
        if self.is_leader() || self.is_standing() {
            return;
        }
        if self.election_sleep_until > self.now {
            self.timers.set(Timer::Election, self.election_sleep_until);
            return;
        }
        let _ = self.stand(Reason::ElectionTimeout, None, out);
    }

    pub(crate) fn on_step_up(&mut self, token: Token, skip_dry_run: bool, out: &mut Actions) {
        let reason = if skip_dry_run { Reason::StepUpRequestSkipDryRun } else { Reason::StepUpRequest };
        if self.is_writable() {
            out.push(Action::Reply { token, result: Ok(CommandReply::Done) });
        } else if self.stand(reason, Some(token), out).is_err() {
            out.push(Action::Reply { token, result: Err(election_failed()) });
        }
    }

    /// Begins an election, or says why not.
    pub(crate) fn stand(
        &mut self,
        reason: Reason,
        token: Option<Token>,
        out: &mut Actions,
    ) -> Result<(), Error> {
        if self.is_leader() || self.is_standing() {
            let text = "Not starting an election: this node is already a candidate or primary";
            return Err(Error::new(ErrorCode::NodeNotElectable, text));
        }
        if let Some(why) = self.unelectable(reason) {
            self.note(Note::NotElectable { why: why.text().to_owned() }, out);
            let text = format!("Not standing for election because {}", why.text());
            return Err(Error::new(ErrorCode::NodeNotElectable, text));
        }
        if self.is_changing_config() {
            let text = "Not standing for election because a configuration is being installed";
            return Err(Error::new(ErrorCode::ConfigurationInProgress, text));
        }
        *self.counts.called.entry(reason).or_default() += 1;
        let id = self.next_id();
        let candidacy = Candidacy {
            id,
            reason,
            phase: Phase::DryRun,
            term: self.term,
            answers: BTreeMap::new(),
            asked: 0,
            started: self.now,
            token,
        };
        self.candidacy = Some(candidacy);
        if reason == Reason::StepUpRequestSkipDryRun || broken(Mutant::NoDryRun) {
            self.vote_for_itself(out);
        } else {
            self.note(Note::ElectionStarted { reason, term: self.term, dry_run: true }, out);
            self.ask_for_votes(out);
        }
        Ok(())
    }

    fn ask_for_votes(&mut self, out: &mut Actions) {
        let (Some(config), Some(index)) = (self.config.clone(), self.self_index) else { return };
        let me = self.self_id();
        let last_applied = self.me.written.op;
        let config_id = config.id();
        let timeout_ms = self.heartbeat_timeout_ms();
        let set_name = self.set_name.clone();
        let lost_primary = self.lost_primary();
        let Some(c) = &mut self.candidacy else { return };
        c.answers = BTreeMap::from([(me, true)]);
        c.asked = 0;
        let request = VoteRequest {
            set_name,
            dry_run: c.phase == Phase::DryRun,
            term: c.term,
            candidate_index: index,
            config: config_id,
            last_applied,
            lost_primary: lost_primary.filter(|_| c.reason == Reason::PrimaryLost),
        };
        for m in config.members.iter().filter(|m| m.is_voter() && m.id != me) {
            c.asked += 1;
            let to = crate::message::Peer { id: m.id, host: m.host.as_str().into() };
            out.push(Action::SendVoteRequest { to, election: c.id, request: request.clone(), timeout_ms });
        }
        self.timers.set(Timer::Votes, self.now + timeout_ms);
        self.count_votes(false, out);
    }

    pub(crate) fn on_vote_replied(
        &mut self,
        from: MemberId,
        election: u64,
        result: Result<VoteReply, Failure>,
        out: &mut Actions,
    ) {
        let higher = result.as_ref().is_ok_and(|r| r.term > self.candidacy_term());
        let Some(c) = self.candidacy.as_mut().filter(|c| c.id == election && c.phase != Phase::Voting) else {
            if let Ok(reply) = &result {
                self.see_term(reply.term, out);
            }
            return;
        };
        c.answers.insert(from, result.as_ref().is_ok_and(|r| r.granted));
        if let Ok(reply) = result {
            if higher {
                self.see_term(reply.term, out);
                self.lose("a higher term was seen", out);
                return;
            }
            let now = self.now;
            if let Some(data) = self.members.get_mut(&from) {
                data.last_update = now;
            }
        }
        self.count_votes(false, out);
    }

    fn candidacy_term(&self) -> Term {
        self.candidacy.as_ref().map_or(self.term, |c| c.term.max(self.term))
    }

    pub(crate) fn on_votes_overdue(&mut self, out: &mut Actions) {
        self.count_votes(true, out);
    }

    fn count_votes(&mut self, over: bool, out: &mut Actions) {
        let (Some(c), Some(config)) = (&self.candidacy, &self.config) else { return };
        if c.phase == Phase::Voting {
            return;
        }
        let votes = c.answers.values().filter(|v| **v).count();
        let everyone = c.answers.len() > c.asked;
        let enough = votes >= config.majority_votes();
        let takes_over = c.phase == Phase::DryRun && c.reason == Reason::CatchUpTakeover;
        if takes_over && !broken(Mutant::CatchUpTakeoverUnasked) {
            // The primary itself must agree that this node is further.
            match self.primary.map(|p| c.answers.get(&p)) {
                Some(Some(false)) => {
                    return self.lose("the primary did not agree to a catch-up takeover", out);
                }
                Some(None) if !over => return,
                _ => {}
            }
        }
        if enough {
            let (phase, term) = (c.phase, c.term);
            self.timers.cancel(Timer::Votes);
            if phase == Phase::DryRun { self.vote_for_itself(out) } else { self.win(term, votes, out) }
        } else if everyone || over {
            let why = format!("{votes} of {} votes needed", config.majority_votes());
            self.lose(&why, out);
        }
    }

    /// The term begins here; nobody is asked before the own vote cannot be forgotten.
    fn vote_for_itself(&mut self, out: &mut Actions) {
        let Some(index) = self.self_index else { return };
        let term = self.term + 1;
        // A late promise of the dry run is no vote: the real run has its own number.
        let id = self.next_id();
        let Some(c) = &mut self.candidacy else { return };
        c.id = id;
        c.phase = Phase::Voting;
        c.term = term;
        let reason = c.reason;
        self.term = term;
        out.push(Action::Term(term));
        self.recompute_primary();
        self.last_vote = LastVote { term, candidate_index: index as i64 };
        self.note(Note::ElectionStarted { reason, term, dry_run: false }, out);
        let persist = self.persist(Pending::OwnVote(id));
        out.push(Action::PersistVote { id: persist, vote: self.last_vote });
        if broken(Mutant::AskBeforeOwnVote) {
            self.on_own_vote_durable(id, true, out);
        }
    }

    pub(crate) fn on_own_vote_durable(&mut self, election: u64, ok: bool, out: &mut Actions) {
        let Some(c) = self.candidacy.as_mut().filter(|c| c.id == election && c.phase == Phase::Voting) else {
            return;
        };
        if !ok {
            return self.lose("the vote for itself could not be written", out);
        }
        if c.term != self.term {
            return self.lose("the term moved on while the vote was written", out);
        }
        c.phase = Phase::Real;
        self.ask_for_votes(out);
    }

    /// Waits for the next timeout (R-ELEC-10), except where the loss of the primary is confirmed.
    pub(crate) fn lose(&mut self, why: &str, out: &mut Actions) {
        let Some(c) = self.candidacy.take() else { return };
        self.timers.cancel(Timer::Votes);
        self.note(Note::ElectionLost { term: c.term, why: why.to_owned() }, out);
        if let Some(token) = c.token {
            out.push(Action::Reply { token, result: Err(election_failed()) });
        }
        out.push(Action::Draw);
        self.schedule_election();
        self.retry_fast_election();
    }

    fn win(&mut self, term: Term, votes: usize, out: &mut Actions) {
        let Some(c) = self.candidacy.take() else { return };
        for id in c.answers.keys() {
            let now = self.now;
            if let Some(data) = self.members.get_mut(id) {
                data.last_update = now;
                data.stale = false;
            }
        }
        *self.counts.successful.entry(c.reason).or_default() += 1;
        if let Some(lost) = self.lost_primary().filter(|_| c.reason == Reason::PrimaryLost) {
            self.saw_fast_election(lost);
        }
        self.note(Note::ElectionWon { term, votes }, out);
        self.election = Some(ElectionRecord {
            reason: c.reason,
            term,
            time: Timestamp::new((self.now / 1000) as u32, 1).max(Timestamp(self.me.written.op.ts.0 + 1)),
            date: self.now,
            last_committed: self.committed.op,
            last_seen: self.me.written.op,
            votes_needed: self.config.as_ref().map_or(1, |c| c.majority_votes()),
            prior_primary: self.last_primary,
            catch_up_from: None,
            new_term_start: None,
            majority_available: None,
        });
        if let Some(token) = c.token {
            out.push(Action::Reply { token, result: Ok(CommandReply::Done) });
        }
        self.become_leader(out);
    }

    fn become_leader(&mut self, out: &mut Actions) {
        self.mode = LeaderMode::LeaderElect;
        self.last_primary = self.self_id();
        self.first_of_term = None;
        self.primary = None;
        self.drop_sync_source();
        for timer in [Timer::Election, Timer::PriorityTakeover, Timer::CatchUpTakeover, Timer::FastElection] {
            self.timers.cancel(timer);
        }
        self.suspicion = None;
        // Drawn for the time after.
        out.push(Action::Draw);
        self.restart_heartbeats(out);
        self.timers.set(Timer::Liveness, self.now + self.election_timeout_ms());
        self.tell_state(out);
        self.start_catch_up(out);
    }

    /// Tells everyone who won, and learns how far everyone is.
    fn restart_heartbeats(&mut self, out: &mut Actions) {
        let now = self.now;
        for id in self.other_ids() {
            if let Some(data) = self.members.get_mut(&id) {
                data.heard_since_election = false;
                data.in_flight = None;
                // Counted from the victory on.
                data.last_update = data.last_update.max(now);
            }
            self.send_heartbeat(id, false, out);
        }
    }
}
