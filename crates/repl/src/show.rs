//! The documents that `hello` and `replSetGetStatus` answer with.

use crate::config::ReplSetConfig;
use crate::state::{MemberState, Repl, State, election_id};
use pando_base::{Millis, OpTime, Timestamp};
use pando_bson::DocBuilder;
use pando_topology::Core;

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
        b.bool(writable, s.writable);
        // A primary that is still draining says it is a secondary.
        let drains = s.member == MemberState::Primary && !s.writable;
        b.bool("secondary", s.member == MemberState::Secondary || drains);
        let me = &config.members[s.self_index.min(config.members.len() - 1)];
        if let Some(primary) = s.primary.as_ref().filter(|_| !drains) {
            b.str("primary", primary);
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
        if s.writable {
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
}

impl Repl {
    /// The status of a node that follows one given member and has no core.
    pub fn append_followers_status(&self, b: &mut DocBuilder, at: &StatusAt) {
        let s = self.state();
        b.date("date", at.now_ms);
        b.i32("myState", s.member as i32);
        b.i64("term", s.term);
        append_optimes(b, &at.positions);
    }
}

fn append_optimes(b: &mut DocBuilder, p: &Positions) {
    b.doc("optimes", |d| {
        op_time(d, "lastCommittedOpTime", p.committed);
        d.date("lastCommittedWallTime", p.committed_wall_ms);
        op_time(d, "readConcernMajorityOpTime", p.committed.min(p.applied));
        op_time(d, "appliedOpTime", p.applied);
        op_time(d, "durableOpTime", p.durable);
        d.date("lastAppliedWallTime", p.applied_wall_ms);
        d.date("lastDurableWallTime", p.durable_wall_ms);
    });
}

/// What `replSetGetStatus` shows beside the core's state.
#[derive(Clone, Copy, Debug)]
pub struct StatusAt {
    pub positions: Positions,
    pub stable: Timestamp,
    pub now_ms: Millis,
    pub uptime_secs: i64,
    /// Entries fetched between the last election and its first own entry.
    pub catch_up_ops: Option<i64>,
}

/// The body of `replSetGetStatus` (R-STATE-4); the caller has checked that there is a configuration.
pub fn append_status(b: &mut DocBuilder, core: &Core, at: &StatusAt) {
    let Some(config) = core.config() else { return };
    let source = core.sync_source().map_or("", |h| h);
    let source_id = config.members.iter().find(|m| m.host == source).map_or(-1, |m| m.id as i32);
    b.str("set", &config.name);
    b.date("date", at.now_ms);
    b.i32("myState", core.state() as i32);
    b.i64("term", core.term());
    if core.is_too_stale() {
        b.bool("tooStale", true);
    }
    b.str("syncSourceHost", source);
    b.i32("syncSourceId", source_id);
    b.i64("heartbeatIntervalMillis", config.settings.heartbeat_interval_ms);
    b.i32("majorityVoteCount", config.majority_votes() as i32);
    b.i32("writeMajorityCount", config.write_majority() as i32);
    b.i32("votingMembersCount", config.voters() as i32);
    b.i32("writableVotingMembersCount", config.writable_voters() as i32);
    append_optimes(b, &at.positions);
    b.timestamp("lastStableRecoveryTimestamp", at.stable);
    if core.is_leader() {
        append_election(b, core, config, at);
    } else {
        append_participation(b, core);
    }
    b.array("members", |a| {
        for (i, m) in config.members.iter().enumerate() {
            a.doc(|d| {
                d.i32("_id", m.id as i32);
                d.str("name", &m.host);
                if core.self_index() == Some(i) {
                    append_self(d, core, config, at, (source, source_id));
                } else {
                    append_other(d, core, m, at);
                }
            });
        }
    });
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

fn append_election(b: &mut DocBuilder, core: &Core, config: &ReplSetConfig, at: &StatusAt) {
    let Some(e) = core.election() else { return };
    b.doc("electionCandidateMetrics", |d| {
        d.str("lastElectionReason", e.reason.text());
        d.date("lastElectionDate", e.date);
        d.i64("electionTerm", e.term);
        op_time(d, "lastCommittedOpTimeAtElection", e.last_committed);
        op_time(d, "lastSeenOpTimeAtElection", e.last_seen);
        d.i32("numVotesNeeded", e.votes_needed as i32);
        d.f64("priorityAtElection", core.self_member().map_or(1.0, |m| m.priority));
        d.i64("electionTimeoutMillis", config.settings.election_timeout_ms);
        if e.prior_primary >= 0 {
            d.i32("priorPrimaryMemberId", e.prior_primary as i32);
        }
        if let Some(n) = at.catch_up_ops {
            d.i64("numCatchUpOps", n);
        }
        if let Some(at) = e.new_term_start {
            d.date("newTermStartDate", at);
        }
        if let Some(at) = e.majority_available {
            d.date("wMajorityWriteAvailabilityDate", at);
        }
    });
}

/// The last real vote that this member was asked for.
fn append_participation(b: &mut DocBuilder, core: &Core) {
    let Some(v) = core.participant() else { return };
    b.doc("electionParticipantMetrics", |d| {
        d.bool("votedForCandidate", v.granted);
        d.i64("electionTerm", v.term);
        d.date("lastVoteDate", v.date);
        d.i32("electionCandidateMemberId", v.candidate as i32);
        d.str("voteReason", &v.reason);
        op_time(d, "lastAppliedOpTimeAtElection", v.last_applied);
        op_time(d, "maxAppliedOpTimeInSet", v.newest_in_set);
        d.f64("priorityAtElection", core.self_member().map_or(1.0, |m| m.priority));
        if let Some((written, applied)) = v.new_term {
            d.date("newTermStartDate", written);
            d.date("newTermAppliedDate", applied);
        }
    });
}

fn append_self(
    d: &mut DocBuilder,
    core: &Core,
    config: &ReplSetConfig,
    at: &StatusAt,
    (source, source_id): (&str, i32),
) {
    let p = &at.positions;
    d.f64("health", 1.0);
    d.i32("state", core.state() as i32);
    d.str("stateStr", core.state().text());
    d.i32("uptime", at.uptime_secs as i32);
    if !core.is_arbiter() {
        op_time(d, "optime", p.applied);
        d.date("optimeDate", date_of(p.applied));
        d.date("lastAppliedWallTime", p.applied_wall_ms);
        d.date("lastDurableWallTime", p.durable_wall_ms);
    }
    d.str("syncSourceHost", source);
    d.i32("syncSourceId", source_id);
    d.str("infoMessage", &info_of_self(core));
    if let Some(e) = core.election().filter(|_| core.is_leader()) {
        d.timestamp("electionTime", e.time);
        d.date("electionDate", i64::from(e.time.secs()) * 1000);
    }
    d.i32("configVersion", config.version as i32);
    d.i64("configTerm", config.term);
    d.bool("self", true);
    d.str("lastHeartbeatMessage", "");
}

fn info_of_self(core: &Core) -> String {
    match &Vec::from_iter(core.without_common_point())[..] {
        [] => String::new(),
        asked => format!(
            "the oplog has parted from those of {}, which do not show where; other members are asked",
            asked.join(", ")
        ),
    }
}

fn append_other(d: &mut DocBuilder, core: &Core, m: &crate::config::Member, at: &StatusAt) {
    let Some(data) = core.member(m.id) else { return };
    let down = data.up == Some(false);
    d.f64("health", if down { 0.0 } else { 1.0 });
    d.i32("state", data.state as i32);
    d.str("stateStr", if down { "(not reachable/healthy)" } else { data.state.text() });
    let up_ms = if data.is_up() { (at.now_ms - data.up_since).max(0) } else { 0 };
    d.i32("uptime", (up_ms / 1000) as i32);
    if !m.arbiter_only {
        op_time(d, "optime", data.heard.applied.op);
        op_time(d, "optimeDurable", data.heard.durable.op);
        d.date("optimeDate", date_of(data.heard.applied.op));
        d.date("optimeDurableDate", date_of(data.heard.durable.op));
        d.date("lastAppliedWallTime", data.heard.applied.wall);
        d.date("lastDurableWallTime", data.heard.durable.wall);
    }
    d.date("lastHeartbeat", data.last_heartbeat);
    d.date("lastHeartbeatRecv", data.last_heartbeat_recv);
    d.i64("pingMs", data.ping.mean_ms);
    d.str("lastHeartbeatMessage", &data.message);
    let source_id = core
        .config()
        .and_then(|c| c.members.iter().find(|o| o.host == data.sync_source).map(|o| o.id as i32))
        .unwrap_or(-1);
    d.str("syncSourceHost", &data.sync_source);
    d.i32("syncSourceId", source_id);
    d.str("infoMessage", "");
    if data.state == MemberState::Primary {
        d.timestamp("electionTime", data.election_time);
        d.date("electionDate", i64::from(data.election_time.secs()) * 1000);
    }
    d.i32("configVersion", data.config_version as i32);
    d.i64("configTerm", data.config_term);
}
