//! What a set looks like at its beginning: how many members of which kinds, their settings, logs and tables.

use super::options::Options;
use pando_bson::{Bson, Document, doc};
use pando_env::Rng;
use pando_storage::testing::SeededRng;

/// Members' ports, and machines, count from here.
pub(super) const FIRST_PORT: u16 = 27017;
/// Of so many seeds one has log-structured tables.
const LSM_ONE_IN: u64 = 10;
/// Of so many seeds in one members and users log in.
const LOGINS_ONE_IN: u64 = 3;
/// Of so many seeds in one some members are encrypted, and others not.
const ENCRYPTION_ONE_IN: u64 = 4;
/// Files of the logs: small, so that they are sealed and dropped within a run.
pub(super) const LOG_SEGMENT_BYTES: u64 = 64 << 10;
/// Sizes of the oplog.
const OPLOG_BYTES: [u64; 3] = [512 << 10, 1 << 20, 64 << 20];
/// The write concern that asks for members in two places.
pub(super) const TWO_PLACES: &str = "twoPlaces";

pub(super) struct Shape {
    /// What each member has of its own in the configuration.
    pub(super) members: Vec<Document>,
    pub(super) oplog_bytes: u64,
    pub(super) lsm: bool,
    pub(super) asks_for_logins: bool,
    pub(super) encryption: bool,
}

/// A data-bearing voter that can be elected.
fn voter() -> Document {
    Document::new()
}
fn arbiter() -> Document {
    doc! { "arbiterOnly": true, "priority": 0 }
}
fn without_vote() -> Document {
    doc! { "votes": 0, "priority": 0 }
}
fn hidden() -> Document {
    doc! { "hidden": true, "priority": 0 }
}
fn delayed(secs: i32) -> Document {
    doc! { "hidden": true, "priority": 0, "votes": 0, "secondaryDelaySecs": secs }
}

impl Shape {
    pub(super) fn of(seed: u64, options: &Options) -> Shape {
        let rng = SeededRng::new(seed ^ 0x5a5a_0f0f);
        let below = |n: u64| rng.next_u64() % n;
        let mut members = match options.members {
            Some(n) => vec![voter(); n.into()],
            None => match below(12) {
                0..=3 => vec![voter(); 3],
                4 => vec![voter(), voter(), arbiter()],
                5 | 6 => vec![voter(), voter(), voter(), without_vote()],
                7 => vec![voter(), voter(), hidden()],
                8 => vec![voter(), voter(), voter(), delayed(3 + below(10) as i32)],
                9 => vec![voter(), voter(), hidden(), without_vote(), without_vote()],
                10 => vec![voter(), voter(), voter(), hidden(), arbiter()],
                _ => vec![voter(); 5],
            },
        };
        for (i, m) in members.iter_mut().enumerate().filter(|(_, m)| !m.contains("arbiterOnly")) {
            m.push("tags", doc! { "place": if i % 2 == 0 { "a" } else { "b" } });
        }
        let oplog_bytes = OPLOG_BYTES[below(3) as usize];
        Shape {
            members,
            oplog_bytes,
            lsm: seed % LSM_ONE_IN == 7,
            asks_for_logins: seed % LOGINS_ONE_IN == 1,
            encryption: seed % ENCRYPTION_ONE_IN == 3,
        }
    }
    pub(super) fn holds_data(&self, who: usize) -> bool {
        !self.members[who].contains("arbiterOnly")
    }
    /// What a write waits for that does not say: with an arbiter one member that is away would keep it from a majority.
    pub(super) fn default_concern(&self) -> Document {
        let arbiters = self.members.iter().any(|m| m.contains("arbiterOnly"));
        if arbiters {
            doc! { "w": 1 }
        } else {
            doc! { "w": "majority" }
        }
    }
    /// A member's part of a configuration.
    pub(super) fn member(&self, who: usize, id: i32, host: &str) -> Document {
        let mut m = doc! { "_id": id, "host": host };
        self.members[who].iter().for_each(|(k, v)| m.push(k, v.clone()));
        m
    }
    /// The first configuration.
    pub(super) fn config(&self, addrs: &[String]) -> Document {
        let members: Vec<Bson> =
            addrs.iter().enumerate().map(|(i, host)| self.member(i, i as i32, host).into()).collect();
        let mut config = doc! { "_id": "rs0" };
        config.push("members", members);
        let mut modes = Document::new();
        modes.push(TWO_PLACES, doc! { "place": 2 });
        config.push("settings", doc! { "getLastErrorModes": modes });
        config
    }
}
