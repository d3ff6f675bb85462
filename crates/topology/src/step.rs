//! What one event leads to: which file it goes to, then the timers that are due, and what is told of it.

use crate::action::{Action, Actions, Note, StateChange};
use crate::core::{Core, Pending};
use crate::event::{Event, PersistId};
use crate::member::{MemberState, Positions};
use crate::message::LastVote;
use crate::timer::Timer;
use pando_base::mutants::{Mutant as Planted, broken as planted};
use pando_base::{Millis, OpTime, limits};

impl Core {
    /// Takes one event at `now` (milliseconds that never go back; best close to Unix time, since replies show
    /// them) and appends what is to be done, in order.
    pub fn step(&mut self, now: Millis, event: Event, out: &mut Actions) {
        self.now = self.now.max(now);
        if self.started < 0 {
            self.started = self.now;
            self.start(out);
        }
        if let Some(event) = self.screen(event, out) {
            self.dispatch(event, out);
        }
        while let Some(timer) = self.timers.next_due(self.now) {
            self.fire(timer, out);
        }
        self.look_at_debt(out);
        self.tell_state(out);
        self.look_at_offices(out);
        self.check();
    }

    fn start(&mut self, out: &mut Actions) {
        out.push(Action::Draw);
        if self.config.is_some() {
            self.schedule_all_heartbeats();
            self.schedule_election();
            self.await_a_primary();
            self.stand_if_alone(out);
        }
    }

    fn dispatch(&mut self, event: Event, out: &mut Actions) {
        match event {
            Event::Tick => {}
            Event::Fire(timer) => self.fire(timer, out),
            Event::Random(n) => self.draw = n % 1000,
            Event::Params(params) => self.params = params,
            Event::Progress(positions) => self.on_progress(&positions, out),
            Event::Rewound(positions) => {
                if planted(Planted::PositionsSurviveRollback) {
                    self.me.forward_to(&positions);
                } else {
                    self.me = positions;
                }
                self.aside.forget_useless();
                self.on_rewound(out);
                self.on_positions_changed(out);
            }
            Event::Emptied { promised } => {
                self.promised = self.promised.max(promised);
                self.me = Positions::NULL;
                self.aside.forget_useless();
                self.on_follower_state(MemberState::Startup2, out);
                self.on_positions_changed(out);
            }
            Event::CaughtUp { term } => {
                self.promised = OpTime::NULL;
                if self.last_vote.term < term {
                    self.last_vote = LastVote { term, ..LastVote::NONE };
                }
            }
            Event::FollowerState(state) => self.on_follower_state(state, out),
            Event::Drained { term } => self.on_drained(term, out),
            Event::DrainedToLeave { id } => self.on_drained_to_leave(id, out),
            Event::FirstEntry { term, at } => self.on_first_entry(term, at, out),
            Event::StateLockHeld { id } => self.on_state_lock_held(id, out),
            Event::Persisted(id) => self.on_persisted(id, true, out),
            Event::PersistFailed(id) => self.on_persisted(id, false, out),
            Event::Heartbeat { token, request } => self.on_heartbeat(token, request, out),
            Event::HeartbeatReplied { from, seq, result } => {
                self.on_heartbeat_replied(from, seq, result, out);
            }
            Event::VoteRequested { token, request } => self.on_vote_requested(token, request, out),
            Event::VoteReplied { from, election, result } => {
                self.on_vote_replied(from, election, result, out)
            }
            Event::PositionsReceived { token, update } => self.on_positions_received(token, update, out),
            Event::ConnectionLost { to } => self.on_connection_lost(to, out),
            Event::Fetched { from, repl, oplog, last_fetched } => {
                self.on_fetched(&from, &repl, oplog, last_fetched, out);
            }
            Event::ConfigFetched { from, result } => self.on_config_fetched(&from, result, out),
            Event::SelfLocated { id, index } => self.on_self_located(id, index, out),
            Event::QuorumReplied { id, from, result } => self.on_quorum_replied(id, from, result, out),
            Event::SyncSourceNeeded { token, last_fetched, initial_sync } => {
                self.on_sync_source_needed(token, last_fetched, initial_sync, out);
            }
            Event::SyncSourceChosen(host) => self.on_sync_source_chosen(host, out),
            Event::SyncSourceDenied { host, for_ms } => {
                self.aside.deny(&host, self.now + for_ms);
            }
            Event::NoCommonPoint { host, reached } => self.on_no_common_point(&host, reached),
            Event::BeginsTooLate { host, oldest } => self.on_begins_too_late(&host, oldest),
            Event::TooStale(stale) => self.on_too_stale(stale, out),
            other => self.dispatch_command(other, out),
        }
    }

    fn dispatch_command(&mut self, event: Event, out: &mut Actions) {
        match event {
            Event::StepDown { token, request } => self.on_step_down(token, request, out),
            Event::StepUp { token, skip_dry_run } => self.on_step_up(token, skip_dry_run, out),
            Event::Freeze { token, secs } => self.on_freeze(token, secs, out),
            Event::Maintenance { token, on } => self.on_maintenance(token, on, out),
            Event::SyncFrom { token, host } => self.on_sync_from(token, host, out),
            Event::AbortCatchUp { token } => self.on_abort_catch_up(token, out),
            Event::Initiate { token, config, self_index } => self.on_initiate(token, config, self_index, out),
            Event::Reconfig { token, config, self_index, force, bump } => {
                self.on_reconfig(token, config, self_index, force, bump, out);
            }
            Event::Split { token, tag, set_name, replica_set_id, before } => {
                self.on_split(token, &tag, &set_name, (replica_set_id, before.as_deref()), out);
            }
            Event::Await(waiter) => self.on_await(waiter, out),
            Event::CancelAwait { id } => self.waiters.cancel(id),
            Event::Quiesce { until } => self.on_quiesce(until, out),
            Event::ShutDown => self.on_shut_down(out),
            _ => {}
        }
    }

    pub(crate) fn fire(&mut self, timer: Timer, out: &mut Actions) {
        self.timers.cancel(timer);
        match timer {
            Timer::Election => self.on_election_timeout(out),
            Timer::PriorityTakeover | Timer::CatchUpTakeover => self.on_takeover_due(timer, out),
            Timer::FastElection => self.on_fast_election_due(out),
            Timer::WholeStart => self.on_whole_start_due(out),
            Timer::Votes => self.on_votes_overdue(out),
            Timer::Heartbeat(id) => self.send_heartbeat(id, false, out),
            Timer::HeartbeatOverdue(id) => self.on_heartbeat_overdue(id, out),
            Timer::Liveness => self.on_liveness_due(out),
            Timer::CatchUp => self.on_catch_up_timeout(out),
            Timer::CatchUpAnswers => self.check_catch_up(out),
            Timer::StepDown => self.on_step_down_due(out),
            Timer::StepDownPeriod => self.on_step_down_period_over(out),
            Timer::KeepAlive => self.send_positions(out),
            Timer::Quorum => self.on_quorum_overdue(out),
            Timer::UpToDate => self.on_no_primary_in_time(out),
        }
    }

    fn on_persisted(&mut self, id: PersistId, ok: bool, out: &mut Actions) {
        match self.pending.remove(&id) {
            None => {}
            Some(Pending::Vote { token, reply }) => self.on_vote_durable(token, reply, ok, out),
            Some(Pending::OwnVote(election)) => self.on_own_vote_durable(election, ok, out),
            Some(Pending::Config(change)) => self.on_config_durable(change, ok, out),
        }
    }

    fn on_follower_state(&mut self, state: MemberState, out: &mut Actions) {
        if self.follower_state == state {
            return;
        }
        self.follower_state = state;
        if self.state() != MemberState::Secondary {
            // Elected with a log that is about to be cut, it would lead with another one than was voted for.
            self.lose("this member is no secondary any more", out);
        }
        self.schedule_election();
        self.stand_if_alone(out);
        self.look_at_whole_start();
        self.look_at_leaving(out);
    }

    /// Says what changed since the last time.
    pub(crate) fn tell_state(&mut self, out: &mut Actions) {
        let now = (self.state(), self.is_writable());
        if now != self.told {
            let change = StateChange { from: self.told.0, to: now.0, term: self.term, writable: now.1 };
            self.told = now;
            out.push(Action::State(change));
            self.bump_topology(out);
        }
    }

    /// A set that changes its primary again and again has something that its operator should know of.
    fn look_at_offices(&mut self, out: &mut Actions) {
        let office = match self.primary {
            _ if self.is_leader() => self.term,
            Some(id) => self.members.get(&id).map_or(-1, |m| m.term),
            None => return,
        };
        if office <= self.office_seen {
            return;
        }
        self.office_seen = office;
        let now = self.now;
        self.offices.push_back(now);
        self.offices.retain(|at| *at + limits::ELECTIONS_WARN_MS > now);
        if self.offices.len() >= limits::ELECTIONS_WARN {
            self.note(Note::ManyElections { offices: self.offices.len() }, out);
            self.offices.truncate(limits::ELECTIONS_WARN * 10);
        }
    }
}
