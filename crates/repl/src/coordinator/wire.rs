//! The protocol's messages as MongoDB's documents, and back (R-HB-2, R-HB-3, R-ELEC-6, R-UPOS-1, R-META-1..2).
//!
//! Three fields are ours: `lostPrimary` and `lostPrimaryTerm` in heartbeats, their answers and requests for votes, and
//! `lastOpCommitted` in answers. Other
//! servers ignore both.

use crate::data::metadata::{
    OplogQueryData, ReplData, append_op_time as op_time, date_of as date, op_time_of,
};
use crate::data::progress::Position as DataPosition;
use crate::data::update_position::{self, MemberPosition};
use pando_base::{Error, ErrorCode, OpTime, Result, Term, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_command::request::missing;
use pando_topology::message::{
    Failure, HeartbeatReply, HeartbeatRequest, LostPrimary, MemberPosition as CorePosition,
    OplogQueryMetadata, ReplSetMetadata, UpdatePosition, VoteReply, VoteRequest,
};
use pando_topology::{ConfigId, MemberState, Position, Positions, ReplSetConfig};
use std::sync::Arc;

pub fn to_data(p: Position) -> DataPosition {
    DataPosition { op_time: p.op, wall: p.wall }
}
pub fn of_data(p: DataPosition) -> Position {
    Position::new(p.op_time, p.wall)
}

fn int(d: &RawDoc, name: &str, default: i64) -> i64 {
    d.get(name).and_then(|v| v.as_i64()).unwrap_or(default)
}
fn text(d: &RawDoc, name: &str) -> String {
    d.get(name).and_then(|v| v.as_str()).unwrap_or_default().to_owned()
}
fn flag(d: &RawDoc, name: &str) -> bool {
    d.get(name).is_some_and(|v| v.is_truthy())
}
fn position(d: &RawDoc, op: &str, wall: &str) -> Position {
    Position::new(op_time_of(d.get(op)), date(d.get(wall)))
}
fn append_position(b: &mut DocBuilder, p: Position, op: &str, wall: &str) {
    op_time(b, op, p.op);
    b.date(wall, p.wall);
}

/// Members of an older build do not say of which term: of the one they are in.
fn lost(d: &RawDoc) -> Option<LostPrimary> {
    let id = d.get("lostPrimary")?.as_i64()?;
    Some(LostPrimary { id, term: int(d, "lostPrimaryTerm", int(d, "term", -1)) })
}
fn append_lost(b: &mut DocBuilder, lost: Option<LostPrimary>) {
    if let Some(lost) = lost {
        b.i64("lostPrimary", lost.id);
        b.i64("lostPrimaryTerm", lost.term);
    }
}

// --- replSetHeartbeat

pub fn heartbeat(r: &HeartbeatRequest) -> DocBuf {
    let mut b = DocBuilder::with_capacity(300);
    b.str("replSetHeartbeat", &r.set_name);
    b.i64("configVersion", r.config.version);
    b.i64("configTerm", r.config.term);
    b.i64("hbv", 1);
    b.str("from", &r.from_host);
    b.i64("fromId", r.from_id);
    b.i64("term", r.term);
    b.i64("primaryId", r.primary_id);
    append_lost(&mut b, r.lost_primary);
    b.str("$db", "admin");
    b.finish()
}

pub fn parse_heartbeat(d: &RawDoc) -> Result<HeartbeatRequest> {
    let Some(Value::String(set_name)) = d.get("replSetHeartbeat") else {
        return Err(Error::bad_value("Expected the name of the replica set as a string"));
    };
    Ok(HeartbeatRequest {
        set_name: set_name.to_owned(),
        config: ConfigId { version: int(d, "configVersion", -2), term: int(d, "configTerm", -1) },
        from_host: text(d, "from"),
        from_id: int(d, "fromId", -1),
        term: int(d, "term", -1),
        primary_id: int(d, "primaryId", -1),
        lost_primary: lost(d),
    })
}

pub fn append_heartbeat_reply(b: &mut DocBuilder, r: &HeartbeatReply) {
    if !r.election_time.is_zero() {
        // MongoDB shows a timestamp's 64 bits as a date here.
        b.date("electionTime", r.election_time.0 as i64);
    }
    b.i32("state", r.state as i32);
    b.i64("v", r.config_id.version);
    b.i64("configTerm", r.config_id.term);
    b.str("set", &r.set_name);
    b.i64("term", r.term);
    b.i64("primaryId", r.primary_id);
    if !r.sync_source.is_empty() {
        b.str("syncingTo", &r.sync_source);
    }
    append_position(b, r.positions.durable, "durableOpTime", "durableWallTime");
    append_position(b, r.positions.applied, "opTime", "wallTime");
    append_position(b, r.positions.written, "writtenOpTime", "writtenWallTime");
    b.bool("electable", r.electable);
    append_position(b, r.committed, "lastOpCommitted", "lastCommittedWall");
    append_lost(b, r.lost_primary);
    if let Some(Ok(config)) = &r.config {
        b.doc("config", |d| config.append_to(d));
    }
}

pub fn parse_heartbeat_reply(d: &RawDoc) -> std::result::Result<HeartbeatReply, Failure> {
    let config = match d.get("config") {
        // One that this build cannot read says nothing against the member.
        Some(Value::Document(c)) => {
            Some(ReplSetConfig::parse(c).map(Arc::new).map_err(|e| e.message.to_string()))
        }
        _ => None,
    };
    let applied = position(d, "opTime", "wallTime");
    // Older members do not tell what is written and not yet applied.
    let written = if d.get("writtenOpTime").is_some() {
        position(d, "writtenOpTime", "writtenWallTime")
    } else {
        applied
    };
    let election_time = match d.get("electionTime") {
        Some(Value::DateTime(bits)) => Timestamp(bits as u64),
        Some(Value::Timestamp(ts)) => ts,
        _ => Timestamp::ZERO,
    };
    Ok(HeartbeatReply {
        set_name: text(d, "set"),
        state: MemberState::from_number(int(d, "state", 6)).unwrap_or(MemberState::Unknown),
        config_id: ConfigId { version: int(d, "v", -2), term: int(d, "configTerm", -1) },
        config,
        positions: Positions { written, applied, durable: position(d, "durableOpTime", "durableWallTime") },
        term: int(d, "term", -1),
        primary_id: int(d, "primaryId", -1),
        sync_source: text(d, "syncingTo"),
        election_time,
        electable: flag(d, "electable"),
        lost_primary: lost(d),
        committed: position(d, "lastOpCommitted", "lastCommittedWall"),
    })
}

// --- replSetRequestVotes

pub fn vote_request(r: &VoteRequest) -> DocBuf {
    let mut b = DocBuilder::with_capacity(200);
    b.i32("replSetRequestVotes", 1);
    b.str("setName", &r.set_name);
    b.bool("dryRun", r.dry_run);
    b.i64("term", r.term);
    b.i64("candidateIndex", r.candidate_index as i64);
    b.i64("configVersion", r.config.version);
    b.i64("configTerm", r.config.term);
    op_time(&mut b, "lastAppliedOpTime", r.last_applied);
    append_lost(&mut b, r.lost_primary);
    b.str("$db", "admin");
    b.finish()
}

pub fn parse_vote_request(d: &RawDoc) -> Result<VoteRequest> {
    const OWNER: &str = "replSetRequestVotes";
    let needed = |name| d.get(name).and_then(|v| v.as_i64()).ok_or_else(|| missing(OWNER, name));
    let index = needed("candidateIndex")?;
    Ok(VoteRequest {
        set_name: text(d, "setName"),
        dry_run: flag(d, "dryRun"),
        term: needed("term")?,
        candidate_index: usize::try_from(index)
            .map_err(|_| Error::new(ErrorCode::BadValue, format!("Invalid candidateIndex: {index}")))?,
        config: ConfigId { version: needed("configVersion")?, term: int(d, "configTerm", -1) },
        last_applied: op_time_of(d.get("lastAppliedOpTime").or_else(|| d.get("lastWrittenOpTime"))),
        lost_primary: lost(d),
    })
}

pub fn append_vote_reply(b: &mut DocBuilder, r: &VoteReply) {
    b.i64("term", r.term);
    b.bool("voteGranted", r.granted);
    b.str("reason", &r.reason);
}

pub fn parse_vote_reply(d: &RawDoc) -> VoteReply {
    VoteReply { term: int(d, "term", -1), granted: flag(d, "voteGranted"), reason: text(d, "reason") }
}

// --- replSetUpdatePosition

pub fn update_position(u: &UpdatePosition) -> DocBuf {
    let members: Vec<MemberPosition> = u
        .optimes
        .iter()
        .map(|m| MemberPosition {
            member_id: m.member_id,
            config_version: m.config_version,
            applied: to_data(m.positions.applied),
            durable: to_data(m.positions.durable),
            written: Some(to_data(m.positions.written)),
        })
        .collect();
    let mut b = DocBuilder::with_capacity(400);
    b.elems_of(&update_position::command(&members));
    repl_data(&u.metadata).append_to(&mut b);
    b.finish()
}

pub fn parse_update_position(d: &RawDoc) -> Result<UpdatePosition> {
    let optimes = update_position::parse(d)?
        .into_iter()
        .map(|m| CorePosition {
            member_id: m.member_id,
            config_version: m.config_version,
            positions: Positions {
                written: of_data(m.written.unwrap_or(m.applied)),
                applied: of_data(m.applied),
                durable: of_data(m.durable),
            },
        })
        .collect();
    let metadata = match d.get("$replData") {
        Some(Value::Document(m)) => repl_metadata(&ReplData::parse(m)),
        _ => no_metadata(),
    };
    Ok(UpdatePosition { optimes, metadata })
}

// --- metadata

/// What a message without `$replData` says: nothing.
fn no_metadata() -> ReplSetMetadata {
    const NO_TERM: Term = -1;
    ReplSetMetadata {
        term: NO_TERM,
        committed: Position::NULL,
        last_visible: OpTime::NULL,
        config: ConfigId::UNINITIALIZED,
        replica_set_id: None,
        sync_source_index: -1,
        is_primary: false,
    }
}

pub fn repl_metadata(d: &ReplData) -> ReplSetMetadata {
    ReplSetMetadata {
        term: d.term,
        committed: of_data(d.committed),
        last_visible: d.visible,
        config: ConfigId { version: d.config_version, term: d.config_term },
        replica_set_id: d.replica_set_id,
        sync_source_index: i64::from(d.sync_source_index),
        is_primary: d.is_primary,
    }
}
pub fn repl_data(m: &ReplSetMetadata) -> ReplData {
    ReplData {
        term: m.term,
        committed: to_data(m.committed),
        visible: m.last_visible,
        config_version: m.config.version,
        config_term: m.config.term,
        replica_set_id: m.replica_set_id,
        sync_source_index: m.sync_source_index as i32,
        is_primary: m.is_primary,
    }
}
pub fn oplog_metadata(d: &OplogQueryData) -> OplogQueryMetadata {
    OplogQueryMetadata {
        committed: of_data(d.committed),
        applied: d.applied,
        written: d.applied,
        rbid: i64::from(d.rbid),
        primary_index: i64::from(d.primary_index),
        sync_source_index: i64::from(d.sync_source_index),
        sync_source_host: d.sync_source_host.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u32) -> Position {
        Position::new(OpTime::new(Timestamp::new(n, 1), 4), i64::from(n) * 1000)
    }

    #[test]
    fn a_heartbeat_survives_both_ways() {
        let r = HeartbeatRequest {
            set_name: "rs".to_owned(),
            config: ConfigId { version: 3, term: 2 },
            from_host: "a:1".to_owned(),
            from_id: 7,
            term: 4,
            primary_id: -1,
            lost_primary: Some(LostPrimary { id: 2, term: 3 }),
        };
        assert_eq!(parse_heartbeat(&heartbeat(&r)).unwrap(), r);
        let reply = HeartbeatReply {
            set_name: "rs".to_owned(),
            state: MemberState::Secondary,
            config_id: r.config,
            config: Some(Ok(Arc::new(ReplSetConfig::single("rs", "a:1")))),
            positions: Positions { written: at(3), applied: at(2), durable: at(1) },
            term: 4,
            primary_id: 1,
            sync_source: "b:1".to_owned(),
            election_time: Timestamp::new(9, 9),
            electable: true,
            lost_primary: None,
            committed: at(1),
        };
        let mut b = DocBuilder::new();
        append_heartbeat_reply(&mut b, &reply);
        assert_eq!(parse_heartbeat_reply(&b.finish()).unwrap(), reply);
    }

    #[test]
    fn a_vote_survives_both_ways_and_needs_its_fields() {
        let r = VoteRequest {
            set_name: "rs".to_owned(),
            dry_run: true,
            term: 5,
            candidate_index: 2,
            config: ConfigId { version: 3, term: 2 },
            last_applied: at(4).op,
            lost_primary: Some(LostPrimary { id: 2, term: 3 }),
        };
        assert_eq!(parse_vote_request(&vote_request(&r)).unwrap(), r);
        assert_eq!(parse_vote_request(RawDoc::empty()).unwrap_err().code.0, 40414);
        let reply = VoteReply { term: 5, granted: false, reason: "no".to_owned() };
        let mut b = DocBuilder::new();
        append_vote_reply(&mut b, &reply);
        assert_eq!(parse_vote_reply(&b.finish()), reply);
    }

    #[test]
    fn positions_bring_their_metadata() {
        let u = UpdatePosition {
            optimes: vec![CorePosition {
                member_id: 1,
                config_version: 3,
                positions: Positions { written: at(3), applied: at(2), durable: at(1) },
            }],
            metadata: ReplSetMetadata { term: 4, is_primary: false, ..no_metadata() },
        };
        assert_eq!(parse_update_position(&update_position(&u)).unwrap(), u);
    }
}
