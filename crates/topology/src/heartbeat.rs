//! Heartbeats (R-HB-1..9): each member asks each other one every two seconds, and learns from question and answer.
//!
//! ```text
//!   due ──► send ──► answer ──► member data, primary, config, takeovers ──► due again
//!            │  ▲
//!            │  └ failed: up to two retries within the timeout
//!            └──► overdue: the member is down
//! ```

use crate::action::{Action, Actions, Note};
use crate::config_order::ConfigId;
use crate::core::Core;
use crate::event::Token;
use crate::member::{InFlight, MemberId, MemberState, Positions};
use crate::message::{Failure, HeartbeatReply, HeartbeatRequest};
use crate::mutants::{Mutant, broken};
use crate::timer::Timer;
use pando_base::{Error, ErrorCode, Millis, Timestamp};

const RETRIES_MAX: u32 = pando_base::limits::HEARTBEAT_RETRIES_MAX;

impl Core {
    /// Heartbeats to everyone now, except where one is under way.
    pub(crate) fn schedule_all_heartbeats(&mut self) {
        for id in self.other_ids() {
            self.timers.set(Timer::Heartbeat(id), self.now);
        }
    }

    /// R-HB-7.
    fn heartbeat_interval_ms(&self) -> Millis {
        let Some(config) = &self.config else { return 2000 };
        let interval = config.settings.heartbeat_interval();
        let half = config.settings.election_timeout() / 2;
        let wanted = if self.is_arbiter() {
            interval.min(half)
        } else if !self.is_leader() && (self.sync_source.is_none() || self.leaving.is_some()) {
            (interval / 4).min(half)
        } else {
            interval
        };
        wanted.max(1)
    }

    pub(crate) fn heartbeat_request(&self, config: ConfigId) -> HeartbeatRequest {
        HeartbeatRequest {
            set_name: self.set_name.clone(),
            config,
            from_host: self.self_member().map_or_else(String::new, |m| m.host.clone()),
            from_id: self.self_id(),
            term: self.term,
            primary_id: self.primary().unwrap_or(-1),
            lost_primary: self.lost_primary(),
        }
    }

    /// A probe replaces a heartbeat that is under way and is not repeated.
    pub(crate) fn send_heartbeat(&mut self, id: MemberId, probe: bool, out: &mut Actions) {
        let timeout =
            if probe { crate::fast_failover::PROBE_TIMEOUT_MS } else { self.heartbeat_timeout_ms() };
        let first = InFlight { seq: 0, first_sent: self.now, sent: self.now, retries: 0, probe };
        self.send_heartbeat_try(id, first, timeout, out);
    }

    fn send_heartbeat_try(
        &mut self,
        id: MemberId,
        mut flight: InFlight,
        timeout_ms: Millis,
        out: &mut Actions,
    ) {
        let Some(to) = self.peer(id).filter(|_| self.members.contains_key(&id)) else { return };
        let request = self.heartbeat_request(self.config_id());
        self.heartbeats += 1;
        flight.seq = self.heartbeats;
        flight.sent = self.now;
        if let Some(data) = self.members.get_mut(&id) {
            data.in_flight = Some(flight);
        }
        self.timers.cancel(Timer::Heartbeat(id));
        self.timers.set(Timer::HeartbeatOverdue(id), self.now + timeout_ms);
        out.push(Action::SendHeartbeat { to, seq: flight.seq, request, timeout_ms });
    }

    pub(crate) fn on_heartbeat_overdue(&mut self, id: MemberId, out: &mut Actions) {
        if let Some(flight) = self.members.get(&id).and_then(|m| m.in_flight) {
            self.on_heartbeat_replied(id, flight.seq, Err(Failure::Timeout), out);
        }
    }

    pub(crate) fn on_heartbeat_replied(
        &mut self,
        from: MemberId,
        seq: u64,
        result: Result<HeartbeatReply, Failure>,
        out: &mut Actions,
    ) {
        let Some(data) = self.members.get_mut(&from) else { return };
        let Some(flight) = data.in_flight.filter(|f| f.seq == seq) else { return };
        data.in_flight = None;
        self.timers.cancel(Timer::HeartbeatOverdue(from));
        let rtt = self.now - flight.sent;
        match result {
            Ok(reply) if reply.set_name != self.set_name => {
                let text =
                    format!("replica set names do not match: {} and {}", self.set_name, reply.set_name);
                self.mark_down(from, text, out);
                self.timers.set(Timer::Heartbeat(from), self.now + self.heartbeat_interval_ms());
            }
            Ok(reply) => {
                self.take_heartbeat_reply(from, rtt, reply, out);
                self.timers.set(Timer::Heartbeat(from), self.now + self.heartbeat_interval_ms());
            }
            Err(failure) => self.on_heartbeat_failed(from, flight, rtt, &failure, out),
        }
        self.on_probe_ended(from, flight.probe, out);
    }

    fn on_heartbeat_failed(
        &mut self,
        from: MemberId,
        flight: InFlight,
        rtt: Millis,
        failure: &Failure,
        out: &mut Actions,
    ) {
        if failure.hints_at_end() {
            self.on_refused(from, flight.probe, out);
        }
        // The suspicion may have begun a probe already.
        if self.members.get(&from).is_some_and(|m| m.in_flight.is_some()) {
            return;
        }
        if matches!(failure, Failure::Auth)
            && let Some(data) = self.members.get_mut(&from)
        {
            data.ping.hit(rtt);
            data.auth_issue = true;
        }
        let left = self.heartbeat_timeout_ms() - (self.now - flight.first_sent);
        let final_error = matches!(failure, Failure::Auth | Failure::Answer(..));
        if !flight.probe && !final_error && flight.retries < RETRIES_MAX && left > 0 {
            let again = InFlight { retries: flight.retries + 1, ..flight };
            self.send_heartbeat_try(from, again, left, out);
            return;
        }
        // A probe that timed out proves nothing: the next ordinary heartbeat decides.
        if !flight.probe || failure.is_refusal() || broken(Mutant::FastOnSilence) {
            self.mark_down(from, failure.text(), out);
        }
        self.timers.set(Timer::Heartbeat(from), self.now + self.heartbeat_interval_ms());
    }

    pub(crate) fn mark_down(&mut self, id: MemberId, why: String, out: &mut Actions) {
        let now = self.now;
        let Some(data) = self.members.get_mut(&id) else { return };
        let was_up = data.is_up();
        data.up = Some(false);
        data.state = MemberState::Down;
        data.up_since = now;
        data.message.clone_from(&why);
        data.electable = false;
        data.lost_primary = None;
        data.heard = Positions::NULL;
        data.heard_since_election = true;
        if was_up {
            self.note(Note::MemberDown { id, why }, out);
        }
        self.recompute_primary();
        self.look_at_whole_start();
        self.on_member_down(id, out);
    }

    /// R-HB-8, in its order.
    fn take_heartbeat_reply(
        &mut self,
        from: MemberId,
        rtt: Millis,
        reply: HeartbeatReply,
        out: &mut Actions,
    ) {
        if let Some(data) = self.members.get_mut(&from) {
            data.ping.hit(rtt);
        }
        self.see_term(reply.term, out);
        match &reply.config {
            Some(config) => self.on_config_offered(reply.config_id, config.clone(), out),
            None if reply.config_id.is_newer_than(self.config_id()) => {
                self.fetch_config_from_member(from, out);
            }
            None => {}
        }
        if let Some(peer) = self.peer(from) {
            self.hear_of_split(&peer.host, &reply, out);
        }
        self.update_member(from, &reply, out);
        let before = self.primary;
        self.recompute_primary();
        if self.primary == Some(from) && reply.term == self.term {
            self.on_primary_alive(out);
            self.hear_of_primary(&reply.positions);
            if before != self.primary && self.sync_source.is_none() && self.wants_to_fetch() {
                out.push(Action::ChangeSyncSource { reason: "there is a new primary" });
            }
        }
        self.learn_commit_point_by_heartbeat(reply.committed);
        self.consider_takeover(from, &reply, out);
        self.on_positions_changed(out);
        self.stand_after_initiate(out);
        self.look_at_whole_start();
    }

    fn update_member(&mut self, from: MemberId, reply: &HeartbeatReply, out: &mut Actions) {
        let now = self.now;
        let Some(data) = self.members.get_mut(&from) else { return };
        let was_up = data.is_up();
        if !was_up {
            data.up_since = now;
            data.up = Some(true);
        }
        data.auth_issue = false;
        data.message.clear();
        data.state = reply.state;
        data.last_heartbeat = now;
        data.last_update = now;
        data.stale = false;
        data.electable = reply.electable;
        data.election_time = reply.election_time;
        data.config_version = reply.config_id.version;
        data.config_term = reply.config_id.term;
        data.term = reply.term;
        data.heard = reply.positions;
        data.best.forward_to(&reply.positions);
        data.sync_source.clone_from(&reply.sync_source);
        data.primary_id = reply.primary_id;
        data.heard_since_election = true;
        if !was_up {
            // Whatever was wrong with it as a source may be over.
            if let Some(host) = self.config_member(from).map(|m| m.host.clone()) {
                self.aside.allow(&host);
            }
            self.note(Note::MemberUp { id: from, state: reply.state }, out);
        }
        self.on_claim(from, reply.lost_primary, out);
        self.on_member_state(from, reply.state, out);
    }

    /// The up member in PRIMARY with the highest term (R-HB-8), of a term not older than ours.
    pub(crate) fn recompute_primary(&mut self) {
        self.primary = self
            .members
            .iter()
            .filter(|(_, m)| m.is_up() && m.state == MemberState::Primary && m.term >= self.term)
            .max_by_key(|(_, m)| m.term)
            .map(|(id, _)| *id);
        self.last_primary = self.primary.unwrap_or(self.last_primary);
    }

    /// A primary was seen: no election for now (R-HB-9).
    pub(crate) fn on_primary_alive(&mut self, out: &mut Actions) {
        self.schedule_election();
        self.clear_suspicion(out);
    }

    /// Another member asks (R-HB-4, R-HB-5).
    pub(crate) fn on_heartbeat(&mut self, token: Token, request: HeartbeatRequest, out: &mut Actions) {
        let result = self.heartbeat_error(&request).map_or_else(|| Ok(self.heartbeat_reply(&request)), Err);
        // A removed member refuses, and still looks whether it was taken back.
        let go_on =
            matches!(&result, Err(e) if e.code == ErrorCode::InvalidReplicaSetConfig) || result.is_ok();
        out.push(Action::HeartbeatReply { token, result });
        if !go_on {
            return;
        }
        let now = self.now;
        if let Some(data) = self.members.get_mut(&request.from_id) {
            data.last_heartbeat_recv = now;
            data.last_update = now;
            data.stale = false;
            // Sooner than by its next answer: a reconfiguration or an initiation may wait for it.
            data.config_version = request.config.version;
            data.config_term = request.config.term;
        }
        self.see_term(request.term, out);
        if request.config.is_newer_than(self.config_id())
            && !self.is_draining()
            && !request.from_host.is_empty()
        {
            self.fetch_config_from_host(request.from_host.as_str().into(), out);
        }
        self.hear_asking_of_split(&request, out);
        self.on_claim(request.from_id, request.lost_primary, out);
        self.hear_of_new_primary(&request, out);
        self.look_at_reconfig(out);
        // Who asks is there: a member thought down, or not heard of yet, is asked back at once.
        // But two that ask each other must wait for their answers.
        if self.members.get(&request.from_id).is_some_and(|m| !m.is_up() && m.in_flight.is_none()) {
            self.send_heartbeat(request.from_id, false, out);
        }
    }

    /// A member says it is primary: ask it, so that this node knows too.
    fn hear_of_new_primary(&mut self, request: &HeartbeatRequest, out: &mut Actions) {
        let from = request.from_id;
        let new = request.primary_id == from && request.term >= self.term && self.primary() != Some(from);
        if new && !self.is_leader() && self.members.contains_key(&from) {
            // One under way may have been answered before the election was won: its answer no longer counts.
            self.send_heartbeat(from, false, out);
        }
    }

    fn heartbeat_error(&self, request: &HeartbeatRequest) -> Option<Error> {
        // Whoever has no name yet may be anybody's; and anybody may be asked by whoever has none.
        if !self.set_name.is_empty() && !request.set_name.is_empty() && request.set_name != self.set_name {
            return Some(Error::new(
                ErrorCode::InconsistentReplicaSetNames,
                format!(
                    "Our set name of {} does not match name {} reported by remote node",
                    self.set_name, request.set_name
                ),
            ));
        }
        if self.config.is_some() && self.self_index.is_none() {
            let text = "replica set configuration is invalid or does not include us";
            return Some(Error::new(ErrorCode::InvalidReplicaSetConfig, text));
        }
        if self.config.is_some() && request.from_id == self.self_id() && request.from_id >= 0 {
            let text = format!(
                "Received heartbeat from member with the same member ID as ourself: {}",
                request.from_id
            );
            return Some(Error::bad_value(text));
        }
        None
    }

    fn heartbeat_reply(&self, request: &HeartbeatRequest) -> HeartbeatReply {
        let state = self.state();
        let newer = self.config_id().is_newer_than(request.config);
        HeartbeatReply {
            set_name: if self.set_name.is_empty() { request.set_name.clone() } else { self.set_name.clone() },
            state,
            config_id: self.config_id(),
            config: self.config.clone().filter(|_| newer).map(Ok),
            positions: if state == MemberState::Startup2 { Positions::NULL } else { self.me },
            term: self.term,
            primary_id: self.primary().unwrap_or(-1),
            sync_source: self.sync_source.as_deref().unwrap_or_default().to_owned(),
            election_time: match &self.election {
                Some(e) if self.is_leader() => e.time,
                _ => Timestamp::ZERO,
            },
            electable: self.unelectable(crate::candidacy::Reason::ElectionTimeout).is_none(),
            lost_primary: self.lost_primary(),
            committed: self.committed,
        }
    }
}
