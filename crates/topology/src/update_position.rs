//! How far everyone is, told towards the primary (R-UPOS-1..4): each member sends what it knows of all to its sync
//! source, which passes on what was new to it. So a member needs no connection to the primary to be counted.

use crate::action::{Action, Actions};
use crate::core::Core;
use crate::event::Token;
use crate::member::{MemberState, Positions};
use crate::message::{MemberPosition, UpdatePosition};
use crate::timer::Timer;
use pando_base::{Error, ErrorCode};

impl Core {
    /// What `replSetUpdatePosition` says now.
    pub fn update_position(&self) -> UpdatePosition {
        let config_version = self.config_id().version;
        let mut optimes = Vec::new();
        for m in self.config.iter().flat_map(|c| &c.members) {
            let positions = if m.id == self.self_id() {
                if self.is_arbiter() { Positions::NULL } else { self.me }
            } else {
                match self.members.get(&m.id) {
                    Some(d) if d.is_up() && !d.best.written.op.is_null() => d.best,
                    _ => continue,
                }
            };
            optimes.push(MemberPosition { member_id: m.id, config_version, positions });
        }
        UpdatePosition { optimes, metadata: self.metadata() }
    }

    fn reports_positions(&self) -> bool {
        !self.is_leader()
            && self.self_index.is_some()
            && !matches!(self.state(), MemberState::Startup | MemberState::Startup2 | MemberState::Removed)
    }

    /// To the sync source: on progress, on news from others, and twice per election timeout.
    pub(crate) fn send_positions(&mut self, out: &mut Actions) {
        if !self.reports_positions() {
            self.timers.cancel(Timer::KeepAlive);
            return;
        }
        let Some(to) = self.sync_source.clone() else { return };
        self.timers.set(Timer::KeepAlive, self.now + (self.election_timeout_ms() / 2).max(1));
        out.push(Action::SendPositions { to, update: self.update_position() });
    }

    pub(crate) fn on_positions_received(&mut self, token: Token, update: UpdatePosition, out: &mut Actions) {
        let result = if self.is_of_another_set(&update.metadata) {
            let text = "Received replSetUpdatePosition from a member of another set";
            Err(Error::new(ErrorCode::InvalidReplicaSetConfig, text))
        } else {
            self.see_term(update.metadata.term, out);
            self.take_positions(&update, out)
        };
        out.push(Action::PositionsReply { token, result });
    }

    fn take_positions(&mut self, update: &UpdatePosition, out: &mut Actions) -> Result<(), Error> {
        if self.config.is_none() || self.self_index.is_none() {
            let text = "Received replSetUpdatePosition command but we are in state REMOVED";
            return Err(Error::new(ErrorCode::NotPrimaryOrSecondary, text));
        }
        let (now, me) = (self.now, self.self_id());
        let mut news = false;
        for entry in update.optimes.iter().filter(|e| e.member_id != me) {
            let arbiter = self.config_member(entry.member_id).is_some_and(|m| m.arbiter_only);
            let Some(data) = self.members.get_mut(&entry.member_id) else {
                // One that has left with a split: who reports it may not know yet (SV-SPLIT-12).
                if self.config.as_ref().is_some_and(|c| c.recipient_config.is_some()) {
                    continue;
                }
                let text = format!(
                    "Received replSetUpdatePosition for node which doesn't exist in our config, memberId: MemberId({})",
                    entry.member_id
                );
                return Err(Error::new(ErrorCode::NodeNotFound, text));
            };
            let mut positions = entry.positions;
            if arbiter {
                positions.durable = crate::member::Position::NULL;
            }
            data.last_update = now;
            data.stale = false;
            news |= data.best.forward_to(&positions);
        }
        if news {
            self.on_positions_changed(out);
            self.send_positions(out);
        }
        Ok(())
    }
}
