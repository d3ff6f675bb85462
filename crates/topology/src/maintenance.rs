//! Being out of service without leaving, `replSetFreeze` and `replSetMaintenance`, and going.

use crate::action::{Action, Actions, CommandReply};
use crate::core::Core;
use crate::event::Token;
use crate::member::MemberState;
use crate::timer::Timer;
use pando_base::{Error, ErrorCode, Millis};

impl Core {
    /// Refuses to be elected for a while; 0 ends that.
    pub(crate) fn on_freeze(&mut self, token: Token, secs: i64, out: &mut Actions) {
        let role = if self.is_leader() {
            Some("Primary")
        } else if self.is_standing() {
            Some("Candidate")
        } else {
            None
        };
        let result = match role {
            Some(role) => Err(Error::new(
                ErrorCode::NotSecondary,
                format!("Cannot freeze node when primary or running for election, state: {role}"),
            )),
            None if secs == 0 => {
                self.step_down_until = self.now;
                self.timers.cancel(Timer::StepDownPeriod);
                self.stand_if_alone(out);
                Ok(CommandReply::Freeze { info: Some("unfreezing"), warning: None })
            }
            None => {
                self.step_down_until = self.step_down_until.max(self.after(secs.saturating_mul(1000)));
                self.timers.set(Timer::StepDownPeriod, self.step_down_until.max(self.after(1)));
                let warning = (secs == 1).then_some("you really want to freeze for only 1 second?");
                Ok(CommandReply::Freeze { info: None, warning })
            }
        };
        out.push(Action::Reply { token, result });
    }

    /// Counted: each `true` needs its `false`.
    pub(crate) fn on_maintenance(&mut self, token: Token, on: bool, out: &mut Actions) {
        let result = self.set_maintenance(on);
        if result.is_ok() {
            self.schedule_election();
        }
        out.push(Action::Reply { token, result });
    }

    fn set_maintenance(&mut self, on: bool) -> Result<CommandReply, Error> {
        if self.is_standing() {
            let text = "currently running for election";
            return Err(Error::new(ErrorCode::NotSecondary, text));
        }
        if self.is_leader() {
            return Err(Error::new(ErrorCode::NotSecondary, "primaries can't modify maintenance mode"));
        }
        match (on, self.maintenance) {
            (true, n) => self.maintenance = n + 1,
            (false, 0) => {
                return Err(Error::new(ErrorCode::OperationFailed, "already out of maintenance mode"));
            }
            (false, n) => self.maintenance = n - 1,
        }
        Ok(CommandReply::Done)
    }

    /// Only a secondary goes quietly: a primary has to step down first, and nobody reads from the others.
    pub(crate) fn on_quiesce(&mut self, until: Millis, out: &mut Actions) {
        if self.state() == MemberState::Secondary && self.quiesce_until.is_none() {
            self.quiesce_until = Some(until);
            self.cancel_elections();
            self.bump_topology(out);
        }
    }

    fn cancel_elections(&mut self) {
        for timer in [Timer::Election, Timer::PriorityTakeover, Timer::CatchUpTakeover, Timer::FastElection] {
            self.timers.cancel(timer);
        }
    }

    pub(crate) fn on_shut_down(&mut self, out: &mut Actions) {
        self.shut_down = true;
        self.end_gathering();
        self.fail_all_waiters(
            &Error::new(ErrorCode::ShutdownInProgress, "Replication is being shut down"),
            out,
        );
        self.cancel_elections();
    }

    pub fn is_in_maintenance(&self) -> bool {
        self.maintenance > 0 && self.follower_state == MemberState::Secondary
    }
}
