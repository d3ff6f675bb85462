//! What a member says of itself.

use pando_base::{Millis, Timestamp, limits};
use pando_bson::{ObjectId, RawDoc, Value};
use std::collections::{BTreeMap, BTreeSet};

/// How a process counts changes of its own state. Counters of different processes cannot be compared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TopologyVersion {
    pub process: ObjectId,
    pub counter: i64,
}

impl TopologyVersion {
    pub fn parse(doc: &RawDoc) -> Option<TopologyVersion> {
        match (doc.get("processId"), doc.get("counter")) {
            (Some(Value::ObjectId(process)), Some(counter)) => {
                Some(TopologyVersion { process, counter: counter.as_i64()? })
            }
            _ => None,
        }
    }
    /// Whether what comes with `self` is older than what came with `other`.
    pub fn is_before(self, other: TopologyVersion) -> bool {
        self.process == other.process && self.counter < other.counter
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemberKind {
    /// Not heard of, or not reachable.
    Unknown,
    Primary,
    Secondary,
    Arbiter,
    /// Hidden, starting, rolling back: in the set, and not to be read from.
    Other,
    /// Started as a member, without a configuration.
    Ghost,
    Standalone,
    Router,
}

impl MemberKind {
    pub fn bears_data(self) -> bool {
        matches!(self, MemberKind::Primary | MemberKind::Secondary)
    }
}

/// A `hello` reply. Hosts are in lower case.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Hello {
    pub kind: MemberKind,
    pub set_name: Option<String>,
    pub me: Option<String>,
    pub hosts: BTreeSet<String>,
    pub primary: Option<String>,
    pub set_version: Option<i64>,
    pub election_id: Option<ObjectId>,
    pub tags: BTreeMap<String, String>,
    pub min_wire: i64,
    pub max_wire: i64,
    pub topology_version: Option<TopologyVersion>,
    /// When it applied its newest write, by the primary's clock.
    pub last_write_ms: Option<Millis>,
    /// ... and its time in the log.
    pub last_write: Option<Timestamp>,
}

impl Hello {
    pub fn parse(reply: &RawDoc) -> Hello {
        let text = |name: &str| reply.get(name).and_then(|v| v.as_str().map(str::to_owned));
        let host = |name: &str| text(name).map(|h| h.to_lowercase());
        let mut hosts = BTreeSet::new();
        for list in ["hosts", "passives", "arbiters"] {
            let all = reply.get(list).and_then(|v| v.as_array());
            hosts.extend(
                all.into_iter()
                    .flat_map(RawDoc::iter)
                    .filter_map(|e| e.value().as_str().map(str::to_lowercase))
                    .take(limits::MONITOR_HOSTS_MAX),
            );
        }
        let tags = reply.get("tags").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
        let tags =
            tags.iter().filter_map(|e| Some((e.utf8_name()?.to_owned(), e.value().as_str()?.to_owned())));
        let wrote = reply.get("lastWrite").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
        let date = |v: Value<'_>| match v {
            Value::DateTime(ms) => Some(ms),
            other => other.as_i64(),
        };
        let op_time = wrote.get("opTime").and_then(|v| v.as_doc()).and_then(|d| d.get("ts"));
        Hello {
            kind: kind(reply),
            set_name: text("setName"),
            me: host("me"),
            hosts,
            primary: host("primary"),
            set_version: reply.get("setVersion").and_then(|v| v.as_i64()),
            election_id: match reply.get("electionId") {
                Some(Value::ObjectId(id)) => Some(id),
                _ => None,
            },
            tags: tags.collect(),
            min_wire: reply.get("minWireVersion").and_then(|v| v.as_i64()).unwrap_or(0),
            max_wire: reply.get("maxWireVersion").and_then(|v| v.as_i64()).unwrap_or(0),
            topology_version: reply
                .get("topologyVersion")
                .and_then(|v| v.as_doc())
                .and_then(TopologyVersion::parse),
            last_write_ms: wrote.get("lastWriteDate").and_then(date),
            last_write: match op_time {
                Some(Value::Timestamp(ts)) => Some(ts),
                _ => None,
            },
        }
    }
}

fn kind(reply: &RawDoc) -> MemberKind {
    let says = |name: &str| reply.get(name).is_some_and(|v| v.is_truthy());
    if !says("ok") {
        return MemberKind::Unknown;
    }
    if reply.get("msg").and_then(|v| v.as_str()) == Some("isdbgrid") {
        return MemberKind::Router;
    }
    if says("isreplicaset") {
        return MemberKind::Ghost;
    }
    if reply.get("setName").is_none() {
        return MemberKind::Standalone;
    }
    if says("hidden") {
        MemberKind::Other
    } else if says("isWritablePrimary") || says("ismaster") {
        MemberKind::Primary
    } else if says("secondary") {
        MemberKind::Secondary
    } else if says("arbiterOnly") {
        MemberKind::Arbiter
    } else {
        MemberKind::Other
    }
}
