//! Replacing a dead primary in about a second (ours; parameter `fastFailureDetection`).
//!
//! A killed process does not fall silent: its kernel resets the connections and refuses new ones, to everyone, within
//! a millisecond. That is worth more than ten seconds of silence, but one broken connection proves little. So:
//!
//! ```text
//!   a connection to the primary is reset or refused
//!     └► probe it: one heartbeat, short limit
//!          answers, or is silent ──► nothing happens; silence is left to the election timeout
//!          refused again ──► this node claims "lost", tells everyone by a round of heartbeats
//!               └► who hears a claim probes for itself, and claims in its turn
//!                    └► voters with the claim make a majority ──► stand, best placed first, dry run first
//! ```
//! Refused means that nobody listens: a connection that was accepted and then closed is no more than silence (a server with
//! too many connections does that). A claim names the term of the office it is about. A voter that hears the primary
//! promises nothing, and after one early election the next within ten seconds is left to the election timeout: an
//! operation that kills each primary in turn must not go through the set faster than its users notice.
//! A slow or stopped primary still accepts connections and is never suspected; a member that alone cannot reach the
//! primary finds no majority; a claim ends with the first answer of any primary. Nothing here changes a term: only an
//! election that a majority has already promised to (dry run) does.

use crate::action::{Actions, Note};
use crate::candidacy::Reason;
use crate::core::Core;
use crate::early_signs::Suspicion;
use crate::member::{MemberId, MemberState};
use crate::message::LostPrimary;
use crate::mutants::{Mutant, broken};
use crate::timer::Timer;
use pando_base::{Millis, OpTime, Term, limits};

pub(crate) const PROBE_TIMEOUT_MS: Millis = limits::FAILOVER_PROBE_MS_MAX;
const STAGGER_MS: Millis = limits::FAILOVER_STAGGER_MS;
const SPREAD_MS: Millis = limits::FAILOVER_SPREAD_MS;
const RETRY_MS: Millis = limits::FAILOVER_RETRY_MS;
const TRIES_MAX: u32 = limits::FAILOVER_TRIES_MAX;
const COOLDOWN_MS: Millis = limits::FAILOVER_COOLDOWN_MS;

impl Core {
    /// What this node tells others (`lostPrimary`).
    pub(crate) fn lost_primary(&self) -> Option<LostPrimary> {
        let s = self.suspicion.as_ref().filter(|s| s.claimed)?;
        Some(LostPrimary { id: s.primary, term: s.term })
    }
    /// The last early election, about an office before this one, is not long ago.
    fn is_cooling(&self, office: Term) -> bool {
        self.fast_election.is_some_and(|(at, before)| office > before && self.now < at + COOLDOWN_MS)
    }
    pub fn suspects_primary(&self) -> bool {
        self.suspicion.is_some()
    }

    pub(crate) fn on_connection_lost(&mut self, to: MemberId, out: &mut Actions) {
        // An idle connection may be closed by a healthy member: only a probe tells.
        self.suspect(to, out);
    }

    /// A heartbeat was refused.
    pub(crate) fn on_refused(&mut self, from: MemberId, was_probe: bool, out: &mut Actions) {
        if !was_probe {
            self.suspect(from, out);
        }
    }

    fn suspect(&mut self, id: MemberId, out: &mut Actions) {
        let watching =
            self.params.fast_failover && !self.is_leader() && self.primary == Some(id) && !self.shut_down;
        if !watching || self.suspicion.as_ref().is_some_and(|s| s.primary == id) {
            return;
        }
        let term = self.members.get(&id).map_or(self.term, |m| m.term);
        self.suspicion = Some(Suspicion { primary: id, term, claimed: false, tries: 0, confirmed: None });
        self.counts.suspicions += 1;
        self.note(Note::PrimarySuspected { id }, out);
        self.send_heartbeat(id, true, out);
    }

    /// The probe is over; `take_heartbeat_reply` and `mark_down` have said what came of it.
    pub(crate) fn on_probe_ended(&mut self, id: MemberId, probe: bool, out: &mut Actions) {
        if !probe || self.suspicion.as_ref().is_none_or(|s| s.primary != id || s.claimed) {
            return;
        }
        if self.is_up(id) && !broken(Mutant::FastOnSilence) {
            // It answered, or was merely silent.
            self.suspicion = None;
            self.counts.suspicions_refuted += 1;
            return self.note(Note::PrimaryAnswers { id }, out);
        }
        if let Some(s) = &mut self.suspicion {
            s.claimed = true;
        }
        for other in self.other_ids() {
            if other != id {
                self.send_heartbeat(other, false, out);
            }
        }
        self.count_claims(out);
    }

    /// Another member says it lost the primary, or no longer says so.
    pub(crate) fn on_claim(&mut self, from: MemberId, claim: Option<LostPrimary>, out: &mut Actions) {
        let Some(data) = self.members.get_mut(&from) else { return };
        data.lost_primary = claim;
        if let Some(lost) = claim {
            // It may have been elected again since.
            let known = self.members.get(&lost.id).map_or(lost.term, |m| m.term);
            if lost.term >= known || broken(Mutant::FastClaimOfAnyTerm) {
                self.suspect(lost.id, out);
            }
            self.count_claims(out);
        }
    }

    fn count_claims(&mut self, out: &mut Actions) {
        let (Some(s), Some(config)) = (&self.suspicion, &self.config) else { return };
        if !s.claimed || self.is_leader() || self.primary.is_some() {
            return;
        }
        let (lost, office) = (s.primary, s.term);
        if self.is_cooling(office) && !broken(Mutant::FastWithoutCooldown) {
            return;
        }
        let counts = |claim: LostPrimary| {
            claim.id == lost && (claim.term == office || broken(Mutant::FastClaimOfAnyTerm))
        };
        let claims = config
            .members
            .iter()
            .filter(|m| m.is_voter() && m.id != lost)
            .filter(|m| {
                m.id == self.self_id()
                    || self.members.get(&m.id).is_some_and(|d| d.lost_primary.is_some_and(counts))
            })
            .count();
        let too_few = claims < config.majority_votes() && !broken(Mutant::FastWithoutMajority);
        if too_few || self.is_standing() || s.tries > 0 || self.unelectable(Reason::PrimaryLost).is_some() {
            return;
        }
        let rank = self.fast_rank();
        let spread = SPREAD_MS * self.draw as i64 / 1000;
        let now = self.now;
        let Some(s) = &mut self.suspicion else { return };
        // What was heard since may have changed the order.
        if s.confirmed.is_none_or(|(_, r)| r != rank) {
            let since = s.confirmed.map_or(now, |(since, _)| since);
            s.confirmed = Some((since, rank));
            self.timers.set(Timer::FastElection, since + rank * STAGGER_MS + spread);
            self.note(Note::PrimaryGone { id: lost, claims }, out);
        }
    }

    /// How many electable members that are up are better placed: fresher, or as fresh and of higher priority, or
    /// earlier in the configuration.
    pub(crate) fn fast_rank(&self) -> i64 {
        let Some(config) = &self.config else { return 0 };
        let Some(me) = self.self_member() else { return 0 };
        let mine = (self.me.written.op, me.priority, self.self_index.unwrap_or_default());
        let better = |theirs: (OpTime, f64, usize)| {
            theirs.0 > mine.0
                || (theirs.0 == mine.0 && (theirs.1 > mine.1 || (theirs.1 == mine.1 && theirs.2 < mine.2)))
        };
        let ahead = config.members.iter().enumerate().filter(|(i, m)| {
            let data = self.members.get(&m.id);
            m.is_electable()
                && data.is_some_and(|d| {
                    d.is_up()
                        && d.state == MemberState::Secondary
                        && better((d.heard.written.op, m.priority, *i))
                })
        });
        ahead.count() as i64
    }

    pub(crate) fn on_fast_election_due(&mut self, out: &mut Actions) {
        let Some(s) = &mut self.suspicion else { return };
        if self.primary.is_some() {
            return;
        }
        s.tries += 1;
        if self.stand(Reason::PrimaryLost, None, out).is_err() {
            self.retry_fast_election();
        }
    }

    /// Why this voter promises nothing to a candidate that would not wait for the election timeout.
    pub(crate) fn refuse_fast_vote(&self, lost: LostPrimary) -> Option<String> {
        if self.primary == Some(lost.id) && !broken(Mutant::FastVoteDespitePrimary) {
            return Some(format!("can hear the primary (member {}) that the candidate has lost", lost.id));
        }
        if self.is_cooling(lost.term) && !broken(Mutant::FastVoteWithoutCooldown) {
            return Some("the last early election is not long ago".to_owned());
        }
        None
    }

    /// This member voted in an early election, or won one.
    pub(crate) fn saw_fast_election(&mut self, lost: LostPrimary) {
        self.fast_election = Some((self.now, lost.term));
    }

    /// After a lost election.
    pub(crate) fn retry_fast_election(&mut self) {
        let Some(s) = &self.suspicion else { return };
        if s.claimed && s.tries < TRIES_MAX && self.primary.is_none() && !self.is_leader() {
            let pause = RETRY_MS / 2 + self.fast_rank() * STAGGER_MS + RETRY_MS * self.draw as i64 / 1000;
            self.timers.set(Timer::FastElection, self.now + pause);
        }
    }

    /// Somebody else asked for a vote and got it: that one first.
    pub(crate) fn yield_fast_election(&mut self) {
        if self.timers.is_set(Timer::FastElection) {
            self.timers.set(Timer::FastElection, self.now + 2 * RETRY_MS);
        }
    }

    /// A primary answered.
    pub(crate) fn clear_suspicion(&mut self, out: &mut Actions) {
        if let Some(s) = self.suspicion.take() {
            self.timers.cancel(Timer::FastElection);
            if self.primary == Some(s.primary) {
                self.counts.suspicions_refuted += 1;
                self.note(Note::PrimaryAnswers { id: s.primary }, out);
            }
        }
    }
}
