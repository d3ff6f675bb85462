//! What a cluster looks like at its beginning: how many members its sets have, and the collections that users begin with.

use crate::set::Options;
use pando_bson::{Document, doc};
use pando_command::roles::ClusterRole;
use pando_env::Rng;
use pando_storage::testing::SeededRng;

/// Ports, and machines, of the routers count from here.
pub(super) const FIRST_ROUTER: u16 = 27100;
/// Of the config servers; those of the first shard follow ten later, and so on.
const FIRST_CONFIG: u16 = 27210;
pub(super) const ROUTERS: u16 = 2;
pub(super) const SHARDS: [&str; 2] = ["s0", "s1"];
/// Keys of documents in `m.ranged` are below this, and every quarter of them is another chunk.
pub(super) const KEYS: i64 = 1000;

pub(super) struct Set {
    pub(super) name: String,
    pub(super) role: ClusterRole,
    pub(super) first_port: u16,
    pub(super) members: u16,
}

pub(super) struct Shape {
    /// The config servers first.
    pub(super) sets: Vec<Set>,
    /// The shard where unsharded collections of users lie.
    primary: usize,
}

impl Shape {
    pub(super) fn of(seed: u64, options: &Options) -> Shape {
        let rng = SeededRng::new(seed ^ 0x3c3c_5a5a);
        let below = |n: u64| rng.next_u64() % n;
        let members = |usual: u16| match (options.members, below(4)) {
            (Some(n), _) => n,
            (None, 0) => 1 + below(3) as u16,
            (None, _) => usual,
        };
        let mut sets = vec![Set {
            name: "c".to_owned(),
            role: ClusterRole::Config,
            first_port: FIRST_CONFIG,
            members: members(3),
        }];
        for (i, name) in (1..).zip(SHARDS) {
            let (name, first_port) = (name.to_owned(), FIRST_CONFIG + 10 * i);
            sets.push(Set { name, role: ClusterRole::Shard, first_port, members: members(3) });
        }
        Shape { sets, primary: below(2) as usize }
    }

    /// What an operator does before there are users: commands to `admin`, one after the other.
    pub(super) fn beginning(&self) -> Vec<Document> {
        let mut all = vec![
            doc! { "addShardToZone": "s0", "zone": "a" },
            doc! { "addShardToZone": "s1", "zone": "b" },
            doc! { "enableSharding": "d", "primaryShard": format!("s{}", self.primary) },
            doc! { "enableSharding": "m", "primaryShard": format!("s{}", 1 - self.primary) },
        ];
        // Each user's documents are on a shard of their own.
        for ns in ["d.acked", "d.lateOnes"] {
            all.extend(zones(ns, "_id", &[1 << 32, 2 << 32, 3 << 32]));
            all.push(doc! { "shardCollection": ns, "key": { "_id": 1 } });
        }
        for ns in ["d.lists", "d.late", "d.registers"] {
            all.push(doc! { "shardCollection": ns, "key": { "_id": "hashed" } });
        }
        all.extend(zones("m.ranged", "k", &[KEYS / 4, KEYS / 2, KEYS * 3 / 4]));
        all.push(doc! { "shardCollection": "m.ranged", "key": { "k": 1 } });
        all.push(doc! { "shardCollection": "m.hashed", "key": { "k": "hashed" } });
        all
    }
}

/// Ranges between these bounds, which belong to the two zones in turn.
pub(super) fn zones(ns: &str, field: &str, bounds: &[i64]) -> Vec<Document> {
    let key = |at: Option<&i64>, end: pando_bson::Bson| {
        let mut key = Document::new();
        key.push(field, at.map_or(end, |n| (*n).into()));
        key
    };
    (0..=bounds.len())
        .map(|i| {
            let min = key(i.checked_sub(1).map(|i| &bounds[i]), pando_bson::Bson::MinKey);
            let max = key(bounds.get(i), pando_bson::Bson::MaxKey);
            let mut command = doc! { "updateZoneKeyRange": ns };
            command.push("min", min);
            command.push("max", max);
            command.push("zone", if i % 2 == 0 { "a" } else { "b" });
            command
        })
        .collect()
}
