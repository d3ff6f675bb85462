//! `$replData` and `$oplogQueryData`: what replies between members say beside the answer (R-META-1, R-META-2).

use crate::data::progress::Position;
use pando_base::{OpTime, Term, Timestamp};
use pando_bson::{DocBuilder, ObjectId, RawDoc, Value};

/// `$replData`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplData {
    pub term: Term,
    pub committed: Position,
    pub visible: OpTime,
    pub config_version: i64,
    pub config_term: Term,
    pub replica_set_id: Option<ObjectId>,
    /// Place of the sender's sync source in its configuration; -1 = none.
    pub sync_source_index: i32,
    pub is_primary: bool,
}

/// `$oplogQueryData`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OplogQueryData {
    pub committed: Position,
    pub applied: OpTime,
    pub rbid: i32,
    pub primary_index: i32,
    pub sync_source_index: i32,
    pub sync_source_host: String,
    /// Somebody waits for the positions of those that follow: they report at once. Ours; when it is missing, yes.
    pub positions_awaited: bool,
}

/// Both, as a reply brought them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Metadata {
    pub repl: Option<ReplData>,
    pub query: Option<OplogQueryData>,
}

pub fn append_op_time(b: &mut DocBuilder, name: &str, t: OpTime) {
    b.doc(name, |d| {
        d.timestamp("ts", t.ts);
        d.i64("t", t.t);
    });
}

/// `{ts, t}`; missing parts are those of a null time.
pub fn op_time_of(v: Option<Value<'_>>) -> OpTime {
    let Some(d) = v.and_then(|v| v.as_doc()) else { return OpTime::NULL };
    let ts = match d.get("ts") {
        Some(Value::Timestamp(ts)) => ts,
        _ => Timestamp::ZERO,
    };
    OpTime::new(ts, d.get("t").and_then(|v| v.as_i64()).unwrap_or(-1))
}

pub fn date_of(v: Option<Value<'_>>) -> i64 {
    match v {
        Some(Value::DateTime(ms)) => ms,
        _ => 0,
    }
}

fn int(d: &RawDoc, name: &str, default: i64) -> i64 {
    d.get(name).and_then(|v| v.as_i64()).unwrap_or(default)
}

fn committed_of(d: &RawDoc) -> Position {
    Position { op_time: op_time_of(d.get("lastOpCommitted")), wall: date_of(d.get("lastCommittedWall")) }
}

impl ReplData {
    pub fn append_to(&self, b: &mut DocBuilder) {
        b.doc("$replData", |d| {
            d.i64("term", self.term);
            append_op_time(d, "lastOpCommitted", self.committed.op_time);
            d.date("lastCommittedWall", self.committed.wall);
            append_op_time(d, "lastOpVisible", self.visible);
            d.i64("configVersion", self.config_version);
            d.i64("configTerm", self.config_term);
            if let Some(id) = self.replica_set_id {
                d.object_id("replicaSetId", id);
            }
            d.i32("syncSourceIndex", self.sync_source_index);
            d.bool("isPrimary", self.is_primary);
        });
    }
    pub fn parse(d: &RawDoc) -> ReplData {
        ReplData {
            term: int(d, "term", -1),
            committed: committed_of(d),
            visible: op_time_of(d.get("lastOpVisible")),
            config_version: int(d, "configVersion", -1),
            config_term: int(d, "configTerm", -1),
            replica_set_id: match d.get("replicaSetId") {
                Some(Value::ObjectId(id)) => Some(id),
                _ => None,
            },
            sync_source_index: int(d, "syncSourceIndex", -1) as i32,
            is_primary: d.get("isPrimary").is_some_and(|v| v.is_truthy()),
        }
    }
}

impl OplogQueryData {
    pub fn append_to(&self, b: &mut DocBuilder) {
        b.doc("$oplogQueryData", |d| {
            append_op_time(d, "lastOpCommitted", self.committed.op_time);
            d.date("lastCommittedWall", self.committed.wall);
            append_op_time(d, "lastOpApplied", self.applied);
            d.i32("rbid", self.rbid);
            d.i32("primaryIndex", self.primary_index);
            d.i32("syncSourceIndex", self.sync_source_index);
            d.str("syncSourceHost", &self.sync_source_host);
            d.bool("positionsAwaited", self.positions_awaited);
        });
    }
    pub fn parse(d: &RawDoc) -> OplogQueryData {
        OplogQueryData {
            committed: committed_of(d),
            applied: op_time_of(d.get("lastOpApplied")),
            rbid: int(d, "rbid", -1) as i32,
            primary_index: int(d, "primaryIndex", -1) as i32,
            sync_source_index: int(d, "syncSourceIndex", -1) as i32,
            sync_source_host: d.get("syncSourceHost").and_then(|v| v.as_str()).unwrap_or_default().to_owned(),
            positions_awaited: d.get("positionsAwaited").is_none_or(|v| v.is_truthy()),
        }
    }
}

impl Metadata {
    pub fn of(reply: &RawDoc) -> Metadata {
        let part = |name| reply.get(name).and_then(|v: Value<'_>| v.as_doc());
        Metadata {
            repl: part("$replData").map(ReplData::parse),
            query: part("$oplogQueryData").map(OplogQueryData::parse),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_survive_the_way_through_a_reply() {
        let committed = Position { op_time: OpTime::new(Timestamp::new(5, 6), 2), wall: 99 };
        let m = Metadata {
            repl: Some(ReplData {
                term: 3,
                committed,
                visible: committed.op_time,
                config_version: 4,
                config_term: 2,
                replica_set_id: Some(ObjectId([7; 12])),
                sync_source_index: -1,
                is_primary: true,
            }),
            query: Some(OplogQueryData {
                committed,
                applied: committed.op_time,
                rbid: 1,
                primary_index: 0,
                sync_source_index: -1,
                sync_source_host: String::new(),
                positions_awaited: false,
            }),
        };
        let mut b = DocBuilder::new();
        m.repl.iter().for_each(|d| d.append_to(&mut b));
        m.query.iter().for_each(|d| d.append_to(&mut b));
        assert_eq!(Metadata::of(&b.finish()), m);
        assert_eq!(Metadata::of(RawDoc::empty()), Metadata::default());
    }
}
