//! Giving up the office (R-STEP-1..7).
//!
//! A conditional step-down (`replSetStepDown`) stops writes, waits until a majority has everything and one of them can
//! be elected, then hands over; it may fail. An unconditional one (higher term, majority lost, forced configuration)
//! always ends as a secondary and makes a conditional one fail.
//!
//! ```text
//!   attempt ──► state lock ──► ready? ──yes──► follower, hand off
//!                  ▲             │no
//!                  └─ progress ──┴──deadline──► force? ──yes──► follower
//!                                                     └─no──► 262, primary as before
//! ```

use crate::action::{Action, Actions, CommandReply, Note};
use crate::core::Core;
use crate::event::Token;
use crate::member::{MemberId, MemberState};
use crate::message::StepDownRequest;
use crate::mutants::{Mutant, broken};
use crate::office::{LeaderMode, StepDownAttempt, StepDownCommand};
use crate::timer::Timer;
use pando_base::{Error, ErrorCode};

impl Core {
    pub(crate) fn on_step_down(&mut self, token: Token, request: StepDownRequest, out: &mut Actions) {
        let refusal = match self.mode {
            LeaderMode::NotLeader => {
                Some(Error::new(ErrorCode::NotWritablePrimary, "not primary so can't step down"))
            }
            LeaderMode::AttemptingStepDown | LeaderMode::SteppingDown => Some(Error::new(
                ErrorCode::ConflictingOperationInProgress,
                "This node is already in the process of stepping down",
            )),
            LeaderMode::LeaderElect | LeaderMode::WritablePrimary => None,
        };
        if let Some(e) = refusal {
            out.push(Action::Reply { token, result: Err(e) });
            return;
        }
        let (wait_until, until) = (self.after(request.catch_up_ms), self.after(request.period_ms));
        let command = StepDownCommand { token, request, wait_until, until, mode_before: self.mode };
        self.mode = LeaderMode::AttemptingStepDown;
        let lock = self.next_id();
        self.step_down = Some(StepDownAttempt { command: Some(command), lock: Some(lock) });
        self.timers.set(Timer::StepDown, wait_until);
        out.push(Action::TakeStateLock { id: lock });
    }

    /// R-STEP-6.
    pub(crate) fn step_down_unconditionally(&mut self, why: &str, out: &mut Actions) {
        if !self.is_leader() || self.mode == LeaderMode::SteppingDown {
            return;
        }
        self.note(Note::SteppingDown { why: why.to_owned() }, out);
        if self.pending_term.is_some() {
            self.counts.step_downs_higher_term += 1;
        }
        let mut lock = None;
        if let Some(attempt) = self.step_down.take() {
            self.timers.cancel(Timer::StepDown);
            lock = attempt.lock;
            if let Some(c) = attempt.command {
                let text =
                    "While waiting for secondaries to catch up, this node was stepped down by another event";
                let e = Error::new(ErrorCode::PrimarySteppedDown, text);
                out.push(Action::Reply { token: c.token, result: Err(e) });
            }
        }
        self.mode = LeaderMode::SteppingDown;
        // A lock already asked for serves this one.
        let id = lock.unwrap_or_else(|| {
            let id = self.next_id();
            out.push(Action::TakeStateLock { id });
            id
        });
        self.step_down = Some(StepDownAttempt { command: None, lock: Some(id) });
    }

    pub(crate) fn on_state_lock_held(&mut self, id: u64, out: &mut Actions) {
        let Some(attempt) = self.step_down.as_mut().filter(|a| a.lock == Some(id)) else {
            out.push(Action::ReleaseStateLock { id });
            return;
        };
        attempt.lock = None;
        let Some(command) = attempt.command.clone() else {
            self.become_follower(id, out);
            return;
        };
        let late = self.now >= command.wait_until;
        if self.may_step_down() || (late && command.request.force) {
            self.mode = LeaderMode::SteppingDown;
            self.step_down_until = command.until;
            self.timers.set(Timer::StepDownPeriod, command.until.max(self.now + 1));
            let hand_off = self.params.election_handoff && !command.request.force;
            let heir = self.heir().filter(|_| hand_off);
            self.become_follower(id, out);
            out.push(Action::Reply { token: command.token, result: Ok(CommandReply::Done) });
            if let Some(to) = heir.and_then(|h| self.peer(h)) {
                out.push(Action::SendStepUp { to });
            }
        } else {
            // Secondaries need the lock free to catch up.
            out.push(Action::ReleaseStateLock { id });
            if late {
                self.fail_step_down(out);
            }
        }
    }

    /// On every progress while an attempt waits.
    pub(crate) fn look_at_step_down(&mut self, out: &mut Actions) {
        let waits = self.step_down.as_ref().is_some_and(|a| a.command.is_some() && a.lock.is_none());
        if waits && self.may_step_down() {
            self.ask_for_state_lock(out);
        }
    }

    fn ask_for_state_lock(&mut self, out: &mut Actions) {
        let id = self.next_id();
        if let Some(attempt) = &mut self.step_down {
            attempt.lock = Some(id);
            out.push(Action::TakeStateLock { id });
        }
    }

    pub(crate) fn on_step_down_due(&mut self, out: &mut Actions) {
        let Some(attempt) = &self.step_down else { return };
        let Some(command) = &attempt.command else { return };
        if attempt.lock.is_some() {
            return;
        }
        if command.request.force {
            self.ask_for_state_lock(out);
        } else {
            self.fail_step_down(out);
        }
    }

    fn fail_step_down(&mut self, out: &mut Actions) {
        let Some(command) = self.step_down.take().and_then(|a| a.command) else { return };
        self.timers.cancel(Timer::StepDown);
        self.mode = command.mode_before;
        let (secs, ms) = (self.now.div_euclid(1000), self.now.rem_euclid(1000));
        let date = pando_bson::extjson::date_text(secs * 1000).unwrap_or_default();
        let at = format!("{}.{ms:03}+00:00", date.trim_end_matches('Z'));
        let text = format!(
            "No electable secondaries caught up as of {at}. Please use the replSetStepDown command with the argument \
             {{force: true}} to force node to step down."
        );
        let e = Error::new(ErrorCode::ExceededTimeLimit, text);
        out.push(Action::Reply { token: command.token, result: Err(e) });
        self.check_catch_up(out);
    }

    /// R-STEP-4: a majority has all of it, and one of those can be elected. Nothing written in this term asks for
    /// nothing.
    fn may_step_down(&self) -> bool {
        let Some(config) = &self.config else { return false };
        if broken(Mutant::StepDownAtOnce) {
            return true;
        }
        let mine = self.me.applied.op;
        let written_in_term = mine.t == self.term;
        let caught_up =
            |id: MemberId| id == self.self_id() || !written_in_term || self.best_of(id).applied.op >= mine;
        let voters = config.members.iter().filter(|m| m.is_voter() && m.is_data_bearing());
        let majority = voters.filter(|m| caught_up(m.id)).count() >= config.write_majority();
        majority && self.heir().is_some()
    }

    /// The first entry of the term is written while an attempt waits: a failure of it leads to a writable primary.
    pub(crate) fn become_writable(&mut self) {
        match self.step_down.as_mut().and_then(|a| a.command.as_mut()) {
            Some(command) => command.mode_before = LeaderMode::WritablePrimary,
            None => self.mode = LeaderMode::WritablePrimary,
        }
    }

    /// Who is asked to step up: caught up and electable, highest priority, then first in the configuration.
    fn heir(&self) -> Option<MemberId> {
        let config = self.config.as_ref()?;
        let mine = self.me.applied.op;
        let mut heir: Option<(f64, MemberId)> = None;
        for m in config.members.iter().filter(|m| m.id != self.self_id() && m.is_electable()) {
            let Some(data) = self.members.get(&m.id) else { continue };
            let fit = data.is_up() && data.state == MemberState::Secondary && data.electable;
            if fit && data.best.applied.op >= mine && heir.is_none_or(|(p, _)| m.priority > p) {
                heir = Some((m.priority, m.id));
            }
        }
        heir.map(|(_, id)| id)
    }

    /// Is there anybody for whom a step-down could wait? Caught up or not.
    pub fn has_possible_heir(&self) -> bool {
        let Some(config) = &self.config else { return false };
        let others = config.members.iter().filter(|m| m.id != self.self_id() && m.is_electable());
        others.filter_map(|m| self.members.get(&m.id)).any(|data| data.is_up() && data.electable)
    }

    /// Under the state lock, the same for every kind.
    fn become_follower(&mut self, lock: u64, out: &mut Actions) {
        self.step_down = None;
        self.timers.cancel(Timer::StepDown);
        self.timers.cancel(Timer::Liveness);
        self.leave_catch_up();
        self.mode = LeaderMode::NotLeader;
        self.first_of_term = None;
        self.follower_state = MemberState::Secondary;
        let text = "Primary stepped down while waiting for replication";
        self.fail_all_waiters(&Error::new(ErrorCode::PrimarySteppedDown, text), out);
        self.drop_config_command(out);
        // The shell changes readability and writability before it lets go of the lock.
        self.tell_state(out);
        out.push(Action::ReleaseStateLock { id: lock });
        if let Some(term) = self.pending_term.take()
            && term > self.term
        {
            self.adopt_term(term, out);
        }
        self.recompute_primary();
        self.schedule_election();
        self.answer_held_votes(out);
        for id in self.other_ids() {
            if self.members.get(&id).is_some_and(|m| m.in_flight.is_none()) {
                self.send_heartbeat(id, false, out);
            }
        }
    }

    pub(crate) fn on_step_down_period_over(&mut self, out: &mut Actions) {
        self.schedule_election();
        self.stand_if_alone(out);
    }
}
