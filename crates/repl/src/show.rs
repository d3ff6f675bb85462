//! The documents that `hello` and `replSetGetStatus` answer with.

use crate::config::ReplSetConfig;
use crate::state::{MemberState, Repl, State, election_id};
use pando_base::{Millis, OpTime};
use pando_bson::DocBuilder;

/// How far this node's log is, in the views the replies need.
#[derive(Clone, Copy, Debug)]
pub struct Positions {
    pub applied: OpTime,
    pub applied_wall_ms: Millis,
    pub durable: OpTime,
    pub durable_wall_ms: Millis,
    /// The majority commit point.
    pub committed: OpTime,
    pub committed_wall_ms: Millis,
}

fn op_time(b: &mut DocBuilder, name: &str, t: OpTime) {
    b.doc(name, |d| {
        d.timestamp("ts", t.ts);
        d.i64("t", t.t);
    });
}

/// Whole seconds of a position, as `lastWriteDate` shows them.
fn date_of(t: OpTime) -> Millis {
    i64::from(t.ts.secs()) * 1000
}

impl Repl {
    /// The replica set part of a `hello` reply (R-HELLO-4), from `topologyVersion` to `lastWrite`.
    /// `legacy` = asked by the name isMaster.
    pub fn append_hello(&self, b: &mut DocBuilder, legacy: bool, at: Positions) {
        let s = self.state();
        let writable = if legacy { "ismaster" } else { "isWritablePrimary" };
        if !self.is_replicated() {
            b.bool(writable, true);
            self.append_topology(b, &s);
            return;
        }
        self.append_topology(b, &s);
        let Some(config) = s.config.as_ref().filter(|_| s.member != MemberState::Removed) else {
            b.bool(writable, false);
            b.bool("secondary", false);
            b.str("info", "Does not have a valid replica set config");
            b.bool("isreplicaset", true);
            return;
        };
        append_hosts(b, config);
        b.str("setName", &config.name);
        b.i32("setVersion", config.version as i32);
        b.bool(writable, s.member == MemberState::Primary);
        b.bool("secondary", s.member == MemberState::Secondary);
        let me = &config.members[s.self_index.min(config.members.len() - 1)];
        if s.member == MemberState::Primary {
            b.str("primary", &me.host);
        }
        if me.arbiter_only {
            b.bool("arbiterOnly", true);
        }
        if me.priority == 0.0 {
            b.bool("passive", true);
        }
        if me.hidden {
            b.bool("hidden", true);
        }
        if !me.build_indexes {
            b.bool("buildIndexes", false);
        }
        if me.secondary_delay_secs > 0 {
            b.i32("secondaryDelaySecs", me.secondary_delay_secs as i32);
        }
        if !me.tags.is_empty() {
            b.doc("tags", |d| {
                for (k, v) in &me.tags {
                    d.str(k, v);
                }
            });
        }
        b.str("me", &me.host);
        if s.member == MemberState::Primary {
            b.object_id("electionId", election_id(s.term));
        }
        b.doc("lastWrite", |d| {
            op_time(d, "opTime", at.applied);
            d.date("lastWriteDate", date_of(at.applied));
            op_time(d, "majorityOpTime", at.committed);
            d.date("majorityWriteDate", date_of(at.committed));
        });
    }

    fn append_topology(&self, b: &mut DocBuilder, s: &State) {
        b.doc("topologyVersion", |t| {
            t.object_id("processId", self.process_id());
            t.i64("counter", s.counter);
        });
    }

    /// The body of `replSetGetStatus` (R-STATE-4); the caller has checked that there is a configuration.
    pub fn append_status(&self, b: &mut DocBuilder, at: Positions, now_ms: Millis, uptime_secs: i64) {
        let s = self.state();
        let Some(config) = &s.config else { return };
        b.str("set", &config.name);
        b.date("date", now_ms);
        b.i32("myState", s.member as i32);
        b.i64("term", s.term);
        b.str("syncSourceHost", "");
        b.i32("syncSourceId", -1);
        b.i64("heartbeatIntervalMillis", config.settings.heartbeat_interval_ms);
        b.i32("majorityVoteCount", config.majority_votes() as i32);
        b.i32("writeMajorityCount", config.write_majority() as i32);
        b.i32("votingMembersCount", config.voters() as i32);
        b.i32("writableVotingMembersCount", config.writable_voters() as i32);
        b.doc("optimes", |d| {
            op_time(d, "lastCommittedOpTime", at.committed);
            d.date("lastCommittedWallTime", at.committed_wall_ms);
            op_time(d, "readConcernMajorityOpTime", at.committed);
            op_time(d, "appliedOpTime", at.applied);
            op_time(d, "durableOpTime", at.durable);
            d.date("lastAppliedWallTime", at.applied_wall_ms);
            d.date("lastDurableWallTime", at.durable_wall_ms);
        });
        b.timestamp("lastStableRecoveryTimestamp", at.committed.ts);
        if s.member == MemberState::Primary {
            append_election(b, &s, config);
        }
        b.array("members", |a| {
            for (i, m) in config.members.iter().enumerate() {
                a.doc(|d| {
                    d.i32("_id", m.id as i32);
                    d.str("name", &m.host);
                    if i == s.self_index {
                        append_self(d, &s, config, at, uptime_secs);
                    } else {
                        append_unreachable(d);
                    }
                });
            }
        });
    }
}

fn append_hosts(b: &mut DocBuilder, config: &ReplSetConfig) {
    type Pick = fn(&crate::config::Member) -> bool;
    let lists: [(&str, Pick); 3] = [
        ("hosts", |m| !m.hidden && !m.arbiter_only && m.priority > 0.0),
        ("passives", |m| !m.hidden && !m.arbiter_only && m.priority == 0.0),
        ("arbiters", |m| !m.hidden && m.arbiter_only),
    ];
    for (name, pick) in lists {
        if config.members.iter().any(pick) {
            b.array(name, |a| {
                for m in config.members.iter().filter(|m| pick(m)) {
                    a.str(&m.host);
                }
            });
        }
    }
}

fn append_election(b: &mut DocBuilder, s: &State, config: &ReplSetConfig) {
    let Some(e) = &s.election else { return };
    b.doc("electionCandidateMetrics", |d| {
        d.str("lastElectionReason", e.reason);
        d.date("lastElectionDate", e.date_ms);
        d.i64("electionTerm", e.term);
        op_time(d, "lastCommittedOpTimeAtElection", e.last_committed);
        op_time(d, "lastSeenOpTimeAtElection", e.last_seen);
        d.i32("numVotesNeeded", config.majority_votes() as i32);
        d.f64("priorityAtElection", config.members.get(s.self_index).map_or(1.0, |m| m.priority));
        d.i64("electionTimeoutMillis", config.settings.election_timeout_ms);
        d.date("newTermStartDate", e.new_term_start_ms);
        d.date("wMajorityWriteAvailabilityDate", e.writable_ms);
    });
}

fn append_self(d: &mut DocBuilder, s: &State, config: &ReplSetConfig, at: Positions, uptime_secs: i64) {
    d.f64("health", 1.0);
    d.i32("state", s.member as i32);
    d.str("stateStr", s.member.text());
    d.i32("uptime", uptime_secs as i32);
    op_time(d, "optime", at.applied);
    d.date("optimeDate", date_of(at.applied));
    d.date("lastAppliedWallTime", at.applied_wall_ms);
    d.date("lastDurableWallTime", at.durable_wall_ms);
    d.str("syncSourceHost", "");
    d.i32("syncSourceId", -1);
    d.str("infoMessage", "");
    if let Some(e) = s.election.as_ref().filter(|_| s.member == MemberState::Primary) {
        d.timestamp("electionTime", e.time);
        d.date("electionDate", i64::from(e.time.secs()) * 1000);
    }
    d.i32("configVersion", config.version as i32);
    d.i64("configTerm", config.term);
    d.bool("self", true);
    d.str("lastHeartbeatMessage", "");
}

/// Members other than this one cannot be spoken to yet.
fn append_unreachable(d: &mut DocBuilder) {
    d.f64("health", 0.0);
    d.i32("state", MemberState::Down as i32);
    d.str("stateStr", "(not reachable/healthy)");
}
