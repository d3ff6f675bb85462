//! What two sets look like between which tenants move: their members, how quick they are, and how patient.

use super::super::{FIRST_PORT, Home};
use super::SETS;
use crate::FaultyDisk;
use crate::node::Node;
use crate::world::World;
use pando_bson::{Bson, Document, doc};
use pando_env::Rng;
use pando_storage::testing::SeededRng;

/// Of so many seeds one has log-structured tables.
const LSM_ONE_IN: u64 = 10;
/// Of so many seeds in one members and users log in.
const LOGINS_ONE_IN: u64 = 5;
/// Files of the logs: small, so that they are sealed and dropped within a run.
const LOG_SEGMENT_BYTES: u64 = 64 << 10;

pub(super) struct Shape {
    lsm: bool,
    pub(super) asks_for_logins: bool,
    /// Milliseconds between two heartbeats, and without one before an election.
    pace: (i32, i32),
    /// How long the documents of a forgotten migration stay.
    forget_ms: u64,
    /// How long tenants may be blocked.
    blocked_ms: u64,
}

impl Shape {
    /// Merges take tables in by files of a real disk, which is not the one that the simulator stages them on: their sets have tables in memory.
    pub(super) fn of(seed: u64, merges: bool) -> Shape {
        let rng = SeededRng::new(seed ^ 0x3117_9a7e);
        let below = |n: u64| rng.next_u64() % n;
        let paces = [(2000, 10_000), (500, 3000), (500, 3000), (250, 2000)];
        Shape {
            lsm: !merges && seed % LSM_ONE_IN == 7,
            asks_for_logins: seed % LOGINS_ONE_IN == 1,
            pace: paces[below(4) as usize],
            forget_ms: 200 + below(2000),
            blocked_ms: [5000, 60_000, 60_000][below(3) as usize],
        }
    }
    pub(super) fn node(&self, world: &World, seed: u64, i: u16) -> Node {
        let disk = FaultyDisk::new(seed.wrapping_mul(64).wrapping_add(u64::from(i)));
        let mut node = Node::member(world, disk, FIRST_PORT + i);
        node.contains_panics = true;
        node.serverless = true;
        node.params = vec![
            ("tenantMigrationGarbageCollectionDelayMS", self.forget_ms.to_string()),
            ("tenantMigrationBlockingStateTimeoutMS", self.blocked_ms.to_string()),
        ];
        node.storage.log_segment_bytes = Some(LOG_SEGMENT_BYTES);
        if self.lsm {
            node.use_lsm();
        }
        node.asks_for_logins = self.asks_for_logins;
        node.boot();
        node
    }
    /// The first configuration of one of the sets.
    pub(super) fn config(&self, home: Home, addrs: &[String]) -> Document {
        let member =
            |(i, host): (usize, &String)| Bson::from(doc! { "_id": i as i32, "host": host.as_str() });
        let mut config = doc! { "_id": SETS[home as usize] };
        config.push("members", addrs.iter().enumerate().map(member).collect::<Vec<_>>());
        let (heartbeat, election) = self.pace;
        config.push(
            "settings",
            doc! { "heartbeatIntervalMillis": heartbeat, "electionTimeoutMillis": election },
        );
        config
    }
}
