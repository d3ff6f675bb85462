//! What is known of a set's members.

use crate::hello::{Hello, MemberKind, TopologyVersion};
use pando_base::{Millis, Timestamp};
use pando_bson::ObjectId;
use std::collections::BTreeMap;

/// One member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Member {
    pub kind: MemberKind,
    pub tags: BTreeMap<String, String>,
    pub set_version: Option<i64>,
    pub election_id: Option<ObjectId>,
    pub topology_version: Option<TopologyVersion>,
    pub last_write_ms: Option<Millis>,
    pub last_write: Option<Timestamp>,
    /// When this was heard.
    pub heard: Millis,
    /// Weighted mean of the times that answers took, in microseconds; nothing while it is unknown.
    pub round_trip_us: Option<i64>,
    /// Counts how often connections to it were given up: errors of older ones say nothing.
    pub generation: u64,
    /// A secondary named it as the primary, and it has not answered yet.
    pub may_be_primary: bool,
}

impl Member {
    pub(crate) fn unknown() -> Member {
        Member {
            kind: MemberKind::Unknown,
            tags: BTreeMap::new(),
            set_version: None,
            election_id: None,
            topology_version: None,
            last_write_ms: None,
            last_write: None,
            heard: 0,
            round_trip_us: None,
            generation: 0,
            may_be_primary: false,
        }
    }
    /// Forgets what it said; how many connections were given up stays.
    pub(crate) fn forget(&mut self) {
        *self = Member { generation: self.generation, ..Member::unknown() };
    }
    pub(crate) fn take(&mut self, hello: &Hello, now: Millis) {
        *self = Member {
            kind: hello.kind,
            tags: hello.tags.clone(),
            set_version: hello.set_version,
            election_id: hello.election_id,
            topology_version: hello.topology_version,
            last_write_ms: hello.last_write_ms,
            last_write: hello.last_write,
            heard: now,
            round_trip_us: self.round_trip_us,
            generation: self.generation,
            may_be_primary: false,
        };
    }
    /// One more time that an answer took: a fifth of it counts (SH-REG-3).
    pub fn add_round_trip(&mut self, us: i64) {
        self.round_trip_us = Some(self.round_trip_us.map_or(us, |mean| (us + 4 * mean) / 5));
    }
}

/// All members, by host.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Set {
    pub name: String,
    pub members: BTreeMap<String, Member>,
    /// Of the newest primary: answers of older ones are passed over.
    pub max_election_id: Option<ObjectId>,
    pub max_set_version: Option<i64>,
}

impl Set {
    /// Hosts from a shard's entry, `name/host,host`.
    pub fn new<'a>(name: &str, seeds: impl IntoIterator<Item = &'a str>) -> Set {
        let members = seeds.into_iter().map(|host| (host.to_lowercase(), Member::unknown())).collect();
        Set { name: name.to_owned(), members, max_election_id: None, max_set_version: None }
    }
    pub fn primary(&self) -> Option<(&str, &Member)> {
        let primary = self.members.iter().find(|(_, m)| m.kind == MemberKind::Primary);
        primary.map(|(host, m)| (host.as_str(), m))
    }
    /// `name/host,host`, as the config servers store it.
    pub fn connection_string(&self) -> String {
        let hosts: Vec<&str> = self.members.keys().map(String::as_str).collect();
        format!("{}/{}", self.name, hosts.join(","))
    }
}
