//! Where collections lie: one on one shard, the others on three.

use crate::generated::chance::Chance;
use crate::generated::documents::{IDS, with_id};
use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Cluster};

/// A collection and those that belong to it. Of `NAME` there are `v_NAME` (a view), `m_NAME` (results are merged into it), `o_NAME`
/// (results take its place).
pub(crate) struct Place {
    pub(crate) name: &'static str,
    /// What it is joined with.
    pub(crate) side: &'static str,
    /// The fields of its key; none where it is not sharded.
    key: &'static [(&'static str, i32)],
    /// Of the index that lets no two documents have the same of several fields.
    unique: &'static [&'static str],
}

/// As a direction in a key.
const HASHED: i32 = 0;

const fn place(name: &'static str, side: &'static str, key: &'static [(&'static str, i32)]) -> Place {
    Place { name, side, key, unique: &[] }
}

/// The first is compared with the others.
pub(crate) const ALL: [Place; 7] = [
    place("plain", "side_plain", &[]),
    place("hashed", "side_sharded", &[("_id", HASHED)]),
    place("ranged", "side_sharded", &[("k", 1)]),
    place("compound", "side_plain", &[("g", 1), ("k", 1)]),
    place("range_hash", "side_sharded", &[("g", 1), ("k", HASHED)]),
    place("hash_range", "side_sharded", &[("k", HASHED), ("g", 1)]),
    place("nested", "side_sharded", &[("g", 1), ("k", 1), ("_id", 1)]),
];
/// Those whose keys allow an index that lets no two documents have the same `g`, `k` and `n`.
pub(crate) const KEYED: [Place; 3] = [
    Place { unique: &["n", "g", "k"], ..place("u_plain", "side_plain", &[]) },
    Place { unique: &["k", "g", "n"], ..place("u_ranged", "side_sharded", &[("k", 1)]) },
    Place { unique: &["g", "k", "n"], ..place("u_compound", "side_sharded", &[("g", 1), ("k", 1)]) },
];

impl Place {
    pub(crate) fn has_unique(&self) -> bool {
        !self.unique.is_empty()
    }
    fn pattern(&self) -> Document {
        let mut d = doc! {};
        for (field, direction) in self.key {
            match *direction {
                HASHED => d.push(*field, "hashed"),
                n => d.push(*field, n),
            }
        }
        d
    }
    /// Bounds of its first field, where its zones meet.
    fn cuts(&self) -> Option<[i32; 2]> {
        match self.key.first()? {
            (_, HASHED) => None,
            ("g", _) => Some([2, 5]),
            _ => Some([300, 650]),
        }
    }
    fn bound(&self, first: Bson) -> Document {
        let mut d = doc! {};
        let rest = if first == Bson::MaxKey { Bson::MaxKey } else { Bson::MinKey };
        for (i, (field, _)) in self.key.iter().enumerate() {
            d.push(*field, if i == 0 { first.clone() } else { rest.clone() });
        }
        d
    }
}

fn places() -> impl Iterator<Item = &'static Place> {
    ALL.iter().chain(&KEYED)
}

/// Zones, so that collections begin on all shards.
pub(crate) async fn zones(c: &mut Client) {
    c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
    for (shard, zone) in [("s0", "z0"), ("s1", "z1"), ("s2", "z2")] {
        c.ok(doc! { "addShardToZone": shard, "zone": zone, "$db": "admin" }).await;
    }
}

async fn ranges(c: &mut Client, place: &Place, name: &str) {
    let Some(cuts) = place.cuts() else { return };
    let bounds = [Bson::MinKey, Bson::Int32(cuts[0]), Bson::Int32(cuts[1]), Bson::MaxKey];
    for (i, pair) in bounds.windows(2).enumerate() {
        let (min, max) = (place.bound(pair[0].clone()), place.bound(pair[1].clone()));
        let (ns, zone) = (format!("test.{name}"), format!("z{i}"));
        c.ok(doc! { "updateZoneKeyRange": ns, "min": min, "max": max, "zone": zone, "$db": "admin" }).await;
    }
}

async fn shard(c: &mut Client, cluster: &Cluster, place: &Place, name: &str) {
    ranges(c, place, name).await;
    cluster.shard_collection(&format!("test.{name}"), place.pattern()).await;
}

/// Collections, their indexes and views.
pub(crate) async fn create(c: &mut Client, cluster: &Cluster) {
    cluster.shard_collection("test.side_sharded", doc! { "r": "hashed" }).await;
    for place in places() {
        if !place.key.is_empty() {
            shard(c, cluster, place, place.name).await;
            shard(c, cluster, place, &format!("m_{}", place.name)).await;
        }
        let mut indexes = vec![
            doc! { "key": { "n": 1 }, "name": "n" },
            doc! { "key": { "a": 1, "n": -1 }, "name": "a_n" },
            doc! { "key": { "t": "text" }, "name": "t" },
            doc! { "key": { "p": "2dsphere" }, "name": "p" },
            doc! { "key": { "s": 1 }, "name": "s", "collation": { "locale": "en", "strength": 2 } },
            doc! { "key": { "f": 1 }, "name": "f", "partialFilterExpression": { "g": { "$gt": 2 } } },
        ];
        if place.has_unique() {
            let mut key = doc! {};
            place.unique.iter().for_each(|field| key.push(*field, 1));
            indexes.push(doc! { "key": key, "name": "unique", "unique": true });
        }
        let mut command = doc! { "createIndexes": place.name };
        command.push("indexes", indexes.into_iter().map(Bson::from).collect::<Vec<_>>());
        c.ok(command).await;
        let stages = vec![
            Bson::from(doc! { "$match": { "n": { "$lt": 40 } } }),
            doc! { "$set": { "m": { "$add": ["$n", 1] } } }.into(),
        ];
        let mut view = doc! { "create": format!("v_{}", place.name), "viewOn": place.name };
        view.push("pipeline", stages);
        c.ok(view).await;
    }
}

pub(crate) async fn drop_all(c: &mut Client) {
    for name in ["side_plain", "side_sharded"] {
        c.run(doc! { "drop": name }).await;
    }
    for place in places() {
        for prefix in ["v_", "m_", "o_", ""] {
            c.run(doc! { "drop": format!("{prefix}{}", place.name) }).await;
        }
    }
}

/// The same documents everywhere.
pub(crate) async fn fill(c: &mut Client, chance: &mut Chance) {
    let docs: Vec<Bson> = (0..IDS as i32).step_by(3).map(|id| with_id(chance, id).into()).collect();
    for place in places() {
        let mut command = doc! { "insert": place.name, "ordered": false };
        command.push("documents", docs.clone());
        c.run(command).await;
    }
    let side: Vec<Bson> = (0..60)
        .map(|r| doc! { "_id": r, "r": r % 13, "w": (r * 7) % 50, "next": (r * 3) % 60 }.into())
        .collect();
    for name in ["side_plain", "side_sharded"] {
        let mut command = doc! { "insert": name };
        command.push("documents", side.clone());
        c.ok(command).await;
    }
}

pub(crate) fn some_sharded(chance: &mut Chance) -> &'static str {
    let sharded: Vec<&Place> = places().filter(|p| !p.key.is_empty()).collect();
    sharded[chance.below(sharded.len() as u64) as usize].name
}

/// Splits a chunk or merges two; whether that was possible. Where chunks move meanwhile, two that were neighbours of one shard
/// when they were looked up may have parted before they are merged: that is refused then.
pub(crate) async fn change_chunks(c: &mut Client, chance: &mut Chance, amid_moves: bool) -> bool {
    let sharded: Vec<&Place> = places().filter(|p| !p.key.is_empty()).collect();
    let place = sharded[chance.below(sharded.len() as u64) as usize];
    let ns = format!("test.{}", place.name);
    if chance.once_in(3) {
        return merge(c, chance, &ns, amid_moves).await;
    }
    let mut split = doc! { "split": ns };
    match chance.below(2) {
        0 => split.push("find", crate::generated::documents::key_of(chance.below(IDS))),
        _ => {
            let mut middle = doc! {};
            for (field, direction) in place.key {
                let v = match (*direction, *field) {
                    (HASHED, _) => Bson::Int64(i64::from(chance.below(1 << 30) - (1 << 29)) << 33),
                    (_, "g") => Bson::Int32(chance.below(7)),
                    _ => Bson::Int32(chance.below(1000)),
                };
                middle.push(*field, v);
            }
            split.push("middle", middle);
        }
    }
    split.push("$db", "admin");
    c.run(split).await.get("ok").and_then(Bson::as_f64) == Some(1.0)
}

async fn merge(c: &mut Client, chance: &mut Chance, ns: &str, amid_moves: bool) -> bool {
    let entry = c.all(doc! { "find": "collections", "filter": { "_id": ns }, "$db": "config" }).await;
    let Some(uuid) = entry.first().and_then(|d| d.get("uuid")).cloned() else { return false };
    let mut find = doc! { "find": "chunks", "sort": { "min": 1 }, "$db": "config" };
    let mut filter = doc! {};
    filter.push("uuid", uuid);
    find.push("filter", filter);
    let chunks = c.all(find).await;
    let together: Vec<_> = chunks.windows(2).filter(|w| w[0].get("shard") == w[1].get("shard")).collect();
    if together.is_empty() {
        return false;
    }
    let pair = together[chance.below(together.len() as u64) as usize];
    let bounds = vec![pair[0].get("min").cloned().unwrap(), pair[1].get("max").cloned().unwrap()];
    let mut command = doc! { "mergeChunks": ns };
    command.push("bounds", bounds);
    command.push("$db", "admin");
    let reply = c.run(command).await;
    let merged = reply.get("ok").and_then(Bson::as_f64) == Some(1.0);
    assert!(merged || amid_moves, "chunks of one shard are merged while nothing moves: {reply:?}");
    merged
}
