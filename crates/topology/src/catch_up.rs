//! From winning an election to accepting writes (R-CATCH-1..5).
//!
//! ```text
//!   won ──► catch up (optional) ──► drain the buffer ──► first entry of the term ──► writable
//! ```
//! Not reaching the target never costs the office; a new term does.

use crate::action::{Action, Actions, CommandReply, ConfigNote, Note};
use crate::config_change::ConfigChange;
use crate::core::Core;
use crate::event::Token;
use crate::member::Position;
use crate::mutants::{Mutant, broken};
use crate::office::{CatchUp, LeaderMode};
use crate::timer::Timer;
use pando_base::{Error, ErrorCode, Millis, OpTime, Term};
use std::sync::Arc;

const ANSWERS_MS: Millis = pando_base::limits::CATCH_UP_ANSWERS_MS;

impl Core {
    pub(crate) fn start_catch_up(&mut self, out: &mut Actions) {
        self.counts.catch_ups += 1;
        let limit = self.config.as_ref().map_or(-1, |c| c.settings.catch_up_timeout());
        if limit == 0 {
            self.counts.catch_ups_skipped += 1;
            return self.start_drain(out);
        }
        self.catch_up = Some(CatchUp::Running { target: None, since: self.now });
        out.push(Action::CatchUp { term: self.term });
        self.timers.set(Timer::CatchUpAnswers, self.now + ANSWERS_MS);
        if limit > 0 {
            self.timers.set(Timer::CatchUp, self.now + limit);
        }
        self.check_catch_up(out);
    }

    pub(crate) fn is_catching_up(&self) -> bool {
        matches!(self.catch_up, Some(CatchUp::Running { .. }))
    }
    /// Elected, and nothing may change the configuration yet (R-HB-5).
    pub(crate) fn is_draining(&self) -> bool {
        self.catch_up.is_some()
    }

    /// The newest position of those who answered since the election; `None` until all who are up have, or had time to
    /// (ours: one silent member must not hold up the others; what it alone has is not committed).
    fn newest_since_election(&self) -> Option<OpTime> {
        let patient = match self.catch_up {
            Some(CatchUp::Running { since, .. }) => self.now < since + ANSWERS_MS,
            _ => true,
        };
        let mut newest = self.me.applied.op;
        for data in self.members.values() {
            let silent = data.up.is_none() || (data.is_up() && !data.heard_since_election);
            if silent && patient {
                return None;
            }
            if silent {
                continue;
            }
            if data.is_up() {
                newest = newest.max(data.heard.applied.op);
            }
        }
        Some(newest)
    }

    /// On every answer and every progress.
    pub(crate) fn check_catch_up(&mut self, out: &mut Actions) {
        if !self.is_catching_up() {
            return;
        }
        let Some(newest) = self.newest_since_election() else { return };
        let first_look = matches!(self.catch_up, Some(CatchUp::Running { target: None, .. }));
        if newest > self.me.applied.op {
            if let Some(CatchUp::Running { target, .. }) = &mut self.catch_up {
                *target = Some(newest);
            }
            let from = self.me.applied.op;
            if let Some(e) = &mut self.election {
                e.catch_up_from.get_or_insert(from);
            }
            return;
        }
        if first_look {
            self.counts.catch_ups_already_caught_up += 1;
        } else {
            self.counts.catch_ups_succeeded += 1;
        }
        self.end_catch_up(true, out);
    }

    fn end_catch_up(&mut self, complete: bool, out: &mut Actions) {
        self.note(Note::CaughtUp { to: self.me.applied.op, complete }, out);
        self.start_drain(out);
    }

    pub(crate) fn on_catch_up_timeout(&mut self, out: &mut Actions) {
        if self.is_catching_up() {
            self.counts.catch_ups_timed_out += 1;
            self.end_catch_up(false, out);
        }
    }

    pub(crate) fn on_abort_catch_up(&mut self, token: Token, out: &mut Actions) {
        let result = if self.is_catching_up() {
            self.end_catch_up(false, out);
            Ok(CommandReply::Done)
        } else {
            Err(Error::new(ErrorCode::IllegalOperation, "The node is not in catch-up mode."))
        };
        out.push(Action::Reply { token, result });
    }

    fn start_drain(&mut self, out: &mut Actions) {
        self.timers.cancel(Timer::CatchUp);
        self.timers.cancel(Timer::CatchUpAnswers);
        self.drop_sync_source();
        self.catch_up = Some(CatchUp::Draining);
        out.push(Action::Drain { term: self.term });
    }

    /// A signal of an older term comes too late (R-CATCH-3).
    pub(crate) fn on_drained(&mut self, term: Term, out: &mut Actions) {
        let present = term == self.term || broken(Mutant::StaleDrain);
        if self.catch_up == Some(CatchUp::Draining) && present && self.mode != LeaderMode::SteppingDown {
            self.catch_up = Some(CatchUp::Writing);
            out.push(Action::BecomeWritable { term });
        }
    }

    pub(crate) fn on_first_entry(&mut self, term: Term, at: Position, out: &mut Actions) {
        let stepping_down = self.mode == LeaderMode::SteppingDown;
        if self.catch_up != Some(CatchUp::Writing) || term != self.term || stepping_down {
            return;
        }
        self.catch_up = None;
        self.first_of_term = Some(at.op);
        self.me.written.forward_to(at);
        self.me.applied.forward_to(at);
        self.become_writable();
        if let Some(e) = &mut self.election {
            e.new_term_start = Some(self.now);
        }
        self.tell_state(out);
        self.take_term_into_config(out);
        self.on_positions_changed(out);
    }

    /// The configuration carries the term of the primary that stands behind it. One that was forced has none until the next one: by their
    /// versions the two would be equal, and no member that has the one would take the other.
    fn take_term_into_config(&mut self, out: &mut Actions) {
        let Some(config) = self.config.as_ref().filter(|c| c.term != self.term && c.term != -1) else {
            return;
        };
        if self.is_changing_config() {
            return;
        }
        let mut next = (**config).clone();
        next.term = self.term;
        let next = Arc::new(next);
        let change = ConfigChange::installing(next.clone(), self.self_index, None);
        self.change = Some(change.clone());
        self.persist_config(change, next, ConfigNote::Silent, out);
    }

    pub(crate) fn leave_catch_up(&mut self) {
        if self.catch_up.take().is_some() {
            self.counts.catch_ups_failed += 1;
        }
        self.timers.cancel(Timer::CatchUpAnswers);
        self.timers.cancel(Timer::CatchUp);
    }
}
