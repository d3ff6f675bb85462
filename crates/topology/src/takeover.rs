//! Taking over from a primary that is worse placed (R-TAKE-1..4): one of lower priority, or one that catches up
//! longer than this node would.

use crate::action::{Actions, Note};
use crate::candidacy::Reason;
use crate::core::Core;
use crate::member::MemberId;
use crate::message::HeartbeatReply;
use crate::mutants::{Mutant, broken};
use crate::timer::Timer;
use pando_base::OpTime;

/// Increments within one second that count as "close enough" (R-TAKE-3).
const INCREMENTS_CLOSE: u32 = 1000;

impl Core {
    /// After an answer of the current primary.
    pub(crate) fn consider_takeover(&mut self, from: MemberId, reply: &HeartbeatReply, out: &mut Actions) {
        if self.primary != Some(from) || reply.term != self.term || self.is_leader() {
            if self.primary != Some(from) && self.primary.is_none() {
                self.timers.cancel(Timer::PriorityTakeover);
                self.timers.cancel(Timer::CatchUpTakeover);
            }
            return;
        }
        let (Some(config), Some(me)) = (self.config.clone(), self.self_member()) else { return };
        if !me.is_electable() {
            return;
        }
        let primary_priority = self.config_member(from).map_or(0.0, |m| m.priority);
        let mine = self.me.applied.op;
        let catch_up = config.settings.catch_up_timeout() != 0
            && config.settings.catch_up_takeover_delay() != -1
            && reply.positions.applied.op < mine
            && mine.t < self.term;
        let priority = me.priority > primary_priority;
        let rank = config.members.iter().filter(|m| m.priority > me.priority).count() as i64;
        if priority && (!catch_up || rank == 0) {
            let at = self.now + config.settings.election_timeout() * (rank + 1);
            self.schedule_takeover(Timer::PriorityTakeover, Reason::PriorityTakeover, at, out);
        } else if catch_up {
            let at = self.now + config.settings.catch_up_takeover_delay();
            self.schedule_takeover(Timer::CatchUpTakeover, Reason::CatchUpTakeover, at, out);
        }
    }

    fn schedule_takeover(&mut self, timer: Timer, reason: Reason, at: pando_base::Millis, out: &mut Actions) {
        if !self.timers.is_set(timer) {
            self.timers.set(timer, at);
            self.note(Note::Takeover { reason, at }, out);
        }
    }

    pub(crate) fn on_takeover_due(&mut self, timer: Timer, out: &mut Actions) {
        let reason = match timer {
            Timer::PriorityTakeover => Reason::PriorityTakeover,
            _ => Reason::CatchUpTakeover,
        };
        // Without a primary the election timeout decides.
        if self.primary.is_some() && !self.is_leader() {
            let _ = self.stand(reason, None, out);
        }
    }

    pub(crate) fn newest_known(&self) -> OpTime {
        self.members
            .values()
            .filter(|m| m.is_up())
            .map(|m| m.heard.applied.op)
            .fold(self.me.applied.op, OpTime::max)
    }

    /// Same term as the newest position known, and within two seconds of it.
    pub(crate) fn is_close_enough_for_priority_takeover(&self) -> bool {
        let (mine, newest) = (self.me.applied.op, self.newest_known());
        if broken(Mutant::StalePriorityTakeover) {
            return true;
        }
        if mine.t != newest.t {
            return false;
        }
        if mine.ts.secs() == newest.ts.secs() {
            return mine.ts.inc() + INCREMENTS_CLOSE >= newest.ts.inc();
        }
        i64::from(mine.ts.secs()) + self.params.priority_freshness_secs >= i64::from(newest.ts.secs())
    }

    /// Nobody is further, the primary is behind, and it has not written in its term yet.
    pub(crate) fn is_fresh_enough_for_catch_up_takeover(&self) -> bool {
        let Some(primary) = self.primary.and_then(|id| self.members.get(&id)) else { return false };
        let mine = self.me.applied.op;
        mine >= self.newest_known() && mine > primary.heard.applied.op && mine.t < self.term
    }
}
