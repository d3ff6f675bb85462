//! What a set that will split looks like at its beginning: its members, how quick it is, and its tenants.

use super::super::{EACH, FIRST_PORT};
use crate::FaultyDisk;
use crate::node::Node;
use crate::world::World;
use pando_bson::{Bson, Document, doc};
use pando_env::Rng;
use pando_storage::testing::SeededRng;

/// The first of the members stay, the others may leave.
pub(super) const STAY: usize = EACH;
pub(super) const TENANTS: usize = 8;
pub(super) const DONOR: &str = "donor";
pub(super) const RECIPIENT: &str = "recipient";
pub(super) const TAG: &str = "leaves";
/// The tag of another split of the same set, for the same members.
pub(super) const OTHER_TAG: &str = "alsoLeaves";
/// The set that the other tag's split would make.
pub(super) const OTHER_RECIPIENT: &str = "another";

/// Of so many seeds one has log-structured tables.
const LSM_ONE_IN: u64 = 10;
/// Of so many seeds in one members and users log in.
const LOGINS_ONE_IN: u64 = 5;
/// Files of the logs: small, so that they are sealed and dropped within a run.
const LOG_SEGMENT_BYTES: u64 = 64 << 10;

pub(super) struct Shape {
    pub(super) lsm: bool,
    pub(super) asks_for_logins: bool,
    /// Milliseconds between two heartbeats, and without one before an election.
    pub(super) pace: (i32, i32),
    /// How long the document of a forgotten split stays.
    pub(super) forget_ms: u64,
    /// How long a split may take.
    pub(super) timeout_ms: u64,
    /// It is over when some split has committed; otherwise what was begun is called off.
    pub(super) commits: bool,
}

impl Shape {
    pub(super) fn of(seed: u64) -> Shape {
        let rng = SeededRng::new(seed ^ 0x5eed_5911);
        let below = |n: u64| rng.next_u64() % n;
        let paces = [(2000, 10_000), (500, 3000), (500, 3000), (250, 2000)];
        Shape {
            lsm: seed % LSM_ONE_IN == 7,
            asks_for_logins: seed % LOGINS_ONE_IN == 1,
            pace: paces[below(4) as usize],
            forget_ms: 200 + below(3000),
            timeout_ms: if below(6) == 0 { 1000 + below(20_000) } else { 3_600_000 },
            commits: below(12) != 0,
        }
    }
    pub(super) fn node(&self, world: &World, seed: u64, i: u16) -> Node {
        let disk = FaultyDisk::new(seed.wrapping_mul(64).wrapping_add(u64::from(i)));
        let mut node = Node::member(world, disk, FIRST_PORT + i);
        node.contains_panics = true;
        node.serverless = true;
        node.params = vec![
            ("shardSplitGarbageCollectionDelayMS", self.forget_ms.to_string()),
            ("shardSplitTimeoutMS", self.timeout_ms.to_string()),
        ];
        node.storage.log_segment_bytes = Some(LOG_SEGMENT_BYTES);
        if self.lsm {
            node.use_lsm();
        }
        node.asks_for_logins = self.asks_for_logins;
        node.boot();
        node
    }
    /// The first configuration: voters, and hidden members that no write waits for.
    pub(super) fn config(&self, addrs: &[String]) -> Document {
        let member = |(i, host): (usize, &String)| {
            let mut m = doc! { "_id": i as i32, "host": host.as_str() };
            if i >= STAY {
                m.push("votes", 0);
                m.push("priority", 0);
                m.push("hidden", true);
                let mut tags = Document::new();
                tags.push(TAG, format!("m{i}"));
                tags.push(OTHER_TAG, format!("m{i}"));
                m.push("tags", tags);
            }
            Bson::from(m)
        };
        let mut config = doc! { "_id": DONOR };
        config.push("members", addrs.iter().enumerate().map(member).collect::<Vec<_>>());
        let (heartbeat, election) = self.pace;
        config.push(
            "settings",
            doc! { "heartbeatIntervalMillis": heartbeat, "electionTimeoutMillis": election },
        );
        config
    }
}
