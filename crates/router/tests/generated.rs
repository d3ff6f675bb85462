//! Reads, writes and pipelines by chance, on one collection that lies on one shard and on others that lie on three by different
//! keys: all answer the same, also after chunks were split.
//!
//! `GENERATED_OPERATIONS=n` does so many of them, `GENERATED_SEED=n` begins elsewhere.

#![allow(clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Cluster, run};

const OPERATIONS: u64 = 400;
/// Numbers that documents may have.
const IDS: u64 = 400;
/// The first is compared with the others.
const COLLECTIONS: [&str; 4] = ["plain", "hashed", "ranged", "compound"];

struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> i32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n) as i32
    }
    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

/// Everything that a key is made of follows from the `_id`: the same document goes to the same shard.
fn key_of(id: i32) -> Document {
    doc! { "_id": id, "k": (id * 37) % 1000, "g": id % 7 }
}
fn document(c: &mut Chance) -> Document {
    let mut d = key_of(c.below(IDS));
    d.push("n", c.below(50));
    d.push("s", c.one(&["a", "B", "b", "ab", ""]));
    if c.below(3) > 0 {
        let list: Vec<Bson> = (0..c.below(4)).map(|_| Bson::Int32(c.below(6))).collect();
        d.push("a", list);
    }
    if c.below(4) == 0 {
        d.push("x", c.one(&[Bson::Null, Bson::Int64(7), Bson::Double(2.5), Bson::from("t")]));
    }
    d
}
fn filter(c: &mut Chance) -> Document {
    let (a, b) = (c.below(1000), c.below(300));
    match c.below(12) {
        0 => doc! { "_id": c.below(IDS) },
        1 => doc! { "k": { "$gte": a, "$lt": a + b } },
        2 => doc! { "g": c.below(8) },
        3 => doc! { "g": c.below(7), "k": { "$gt": a } },
        4 => doc! { "a": c.below(6) },
        5 => doc! { "n": { "$in": [c.below(50), c.below(50), c.below(50)] } },
        6 => doc! { "$or": [{ "k": { "$lt": b } }, { "g": 3, "s": "b" }] },
        7 => doc! { "_id": { "$in": [c.below(IDS), c.below(IDS)] } },
        8 => doc! { "x": { "$exists": true } },
        9 => doc! { "k": { "$in": [a, (c.below(IDS) * 37) % 1000] }, "g": { "$gte": 2 } },
        10 => doc! { "$expr": { "$gt": ["$n", "$g"] } },
        _ => doc! {},
    }
}
fn stages(c: &mut Chance, coll: &str) -> Vec<Bson> {
    let by_id = doc! { "$sort": { "_id": 1 } };
    let mut out = vec![Bson::from(doc! { "$match": filter(c) })];
    let rest: Vec<Document> = match c.below(9) {
        0 => vec![
            doc! { "$group": { "_id": c.one(&["$g", "$s", "$x"]), "sum": { "$sum": "$n" }, "avg": { "$avg": "$n" }, "max": { "$max": "$k" } } },
            by_id,
        ],
        1 => vec![
            doc! { "$sort": { "n": -1, "_id": 1 } },
            doc! { "$skip": c.below(5) },
            doc! { "$limit": c.below(20) + 1 },
            doc! { "$project": { "n": 1, "double": { "$multiply": ["$n", 2] } } },
        ],
        2 => vec![
            doc! { "$unwind": "$a" },
            doc! { "$group": { "_id": "$a", "of": { "$addToSet": "$g" } } },
            doc! { "$set": { "of": { "$sortArray": { "input": "$of", "sortBy": 1 } } } },
            by_id,
        ],
        3 => vec![
            by_id,
            doc! { "$limit": 12 },
            doc! { "$lookup": { "from": coll, "localField": "g", "foreignField": "a", "as": "j" } },
            doc! { "$set": { "j": { "$sortArray": { "input": "$j._id", "sortBy": 1 } } } },
        ],
        4 => vec![
            doc! { "$facet": { "n": [{ "$count": "n" }], "top": [{ "$sort": { "k": -1, "_id": 1 } }, { "$limit": 3 }] } },
        ],
        5 => vec![
            doc! { "$setWindowFields": { "partitionBy": "$g", "sortBy": { "_id": 1 },
            "output": { "w": { "$sum": "$n", "window": { "documents": [-2, 0] } } } } },
            by_id,
        ],
        6 => vec![
            doc! { "$unionWith": { "coll": coll, "pipeline": [{ "$match": filter(c) }] } },
            doc! { "$sort": { "_id": 1, "k": 1 } },
        ],
        7 => vec![
            doc! { "$bucket": { "groupBy": "$k", "boundaries": [0, 250, 500, 1000], "output": { "n": { "$sum": 1 } } } },
        ],
        _ => vec![
            by_id,
            doc! { "$limit": 9 },
            doc! { "$graphLookup": { "from": coll, "startWith": "$n", "connectFromField": "n", "connectToField": "_id", "as": "way", "maxDepth": 3 } },
            doc! { "$project": { "way": { "$size": "$way" } } },
        ],
    };
    out.extend(rest.into_iter().map(Bson::from));
    out
}
fn with(mut command: Document, name: &str, list: Vec<Bson>) -> Document {
    command.push(name, list);
    command
}
fn change(c: &mut Chance) -> Bson {
    let (q, multi) = match c.below(3) {
        0 => (doc! { "_id": c.below(IDS) }, false),
        _ => (filter(c), true),
    };
    let u = match c.below(4) {
        0 => Bson::from(doc! { "$inc": { "n": c.below(9) } }),
        1 => doc! { "$push": { "a": c.below(6) } }.into(),
        2 => doc! { "$set": { "s": c.one(&["c", "a"]) }, "$unset": { "x": 1 } }.into(),
        _ => vec![Bson::from(doc! { "$set": { "n": { "$mod": ["$k", 50] } } })].into(),
    };
    let mut d = doc! { "q": q, "multi": multi };
    d.push("u", u);
    d.into()
}
/// One command about a collection.
fn command(c: &mut Chance, coll: &str) -> Document {
    match c.below(13) {
        0..=2 => {
            let mut d = doc! { "find": coll, "filter": filter(c), "sort": c.one(&[doc! { "n": 1, "_id": -1 }, doc! { "_id": 1 }, doc! { "k": -1, "_id": 1 }]) };
            if c.below(2) == 0 {
                d.push("limit", c.below(30) + 1);
                d.push("skip", c.below(10));
            }
            if c.below(3) == 0 {
                d.push("projection", c.one(&[doc! { "n": 1 }, doc! { "a": 0, "k": 0 }]));
            }
            d.push("batchSize", c.below(20) + 2);
            d
        }
        3..=5 => with(
            doc! { "aggregate": coll, "cursor": { "batchSize": c.below(9) + 1 } },
            "pipeline",
            stages(c, coll),
        ),
        6 => doc! { "count": coll, "query": filter(c) },
        7 => doc! { "distinct": coll, "key": c.one(&["g", "a", "s", "x"]), "query": filter(c) },
        8 => {
            let docs = (0..c.below(6) + 1).map(|_| document(c).into()).collect();
            with(doc! { "insert": coll, "ordered": c.below(2) == 0 }, "documents", docs)
        }
        9 | 10 => {
            let all = (0..c.below(3) + 1).map(|_| change(c)).collect();
            with(doc! { "update": coll }, "updates", all)
        }
        11 => {
            let gone = doc! { "q": filter(c), "n": c.below(50) }.get("q").cloned().unwrap();
            let mut one = doc! { "q": { "$and": [gone, { "n": c.below(50) }] } };
            one.push("limit", 0);
            with(doc! { "delete": coll }, "deletes", vec![one.into()])
        }
        _ => {
            let update = doc! { "$inc": { "n": 1 } };
            doc! { "findAndModify": coll, "query": key_of(c.below(IDS)), "update": update, "upsert": c.below(3) == 0, "new": true }
        }
    }
}

/// What has to be the same of an answer.
async fn answer(c: &mut Client, command: Document) -> String {
    if command.contains("cursor") || command.contains("find") {
        return format!("{:?}", c.all(command).await);
    }
    let reply = c.run(command).await;
    let kept = ["ok", "code", "n", "nModified", "values", "value", "upserted"];
    let mut out: Vec<String> = kept.iter().map(|f| format!("{f}: {:?}", reply.get(f))).collect();
    let errors = reply.get("writeErrors").and_then(Bson::as_array).unwrap_or_default();
    out.extend(
        errors.iter().filter_map(Bson::as_doc).map(|e| format!("{:?} {:?}", e.get("index"), e.get("code"))),
    );
    out.join(", ")
}

async fn collections(c: &mut Client, cluster: &Cluster) {
    c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
    for (shard, zone) in [("s0", "z0"), ("s1", "z1"), ("s2", "z2")] {
        c.ok(doc! { "addShardToZone": shard, "zone": zone, "$db": "admin" }).await;
    }
    for (ns, field, cuts) in [("test.ranged", "k", [300, 650]), ("test.compound", "g", [2, 5])] {
        let bounds = [Bson::MinKey, Bson::Int32(cuts[0]), Bson::Int32(cuts[1]), Bson::MaxKey];
        for (i, pair) in bounds.windows(2).enumerate() {
            let bound = |v: &Bson| match field {
                "g" => doc! { "g": v.clone(), "k": Bson::MinKey },
                _ => doc! { "k": v.clone() },
            };
            let max = match (&pair[1], field) {
                (Bson::MaxKey, "g") => doc! { "g": Bson::MaxKey, "k": Bson::MaxKey },
                (v, _) => bound(v),
            };
            let zone = format!("z{i}");
            c.ok(doc! { "updateZoneKeyRange": ns, "min": bound(&pair[0]), "max": max, "zone": zone, "$db": "admin" }).await;
        }
    }
    cluster.shard_collection("test.hashed", doc! { "_id": "hashed" }).await;
    cluster.shard_collection("test.ranged", doc! { "k": 1 }).await;
    cluster.shard_collection("test.compound", doc! { "g": 1, "k": 1 }).await;
}

/// Refused where there is a boundary already.
async fn split(c: &mut Client, chance: &mut Chance) {
    let (k, g) = (chance.below(1000), chance.below(7));
    let (ns, middle) = match chance.below(2) {
        0 => ("test.ranged", doc! { "k": k }),
        _ => ("test.compound", doc! { "g": g, "k": k }),
    };
    c.run(doc! { "split": ns, "middle": middle, "$db": "admin" }).await;
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn whatever_is_done_to_collections_on_three_shards_comes_out_as_on_one() {
    run(async {
        let cluster = Cluster::of(3, 1).await;
        let mut c = cluster.router(0).await;
        collections(&mut c, &cluster).await;
        let mut chance = Chance(number("GENERATED_SEED", 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let (mut rows, mut failures) = (0, 0);
        for i in 0..number("GENERATED_OPERATIONS", OPERATIONS) {
            if i % 50 == 49 {
                split(&mut c, &mut chance).await;
            }
            let begin = chance.0;
            let mut wanted = None;
            for coll in COLLECTIONS {
                // The same for each, but for its name.
                chance.0 = begin;
                let command = command(&mut chance, coll);
                let shown = format!("{command:?}");
                let got = answer(&mut c, command).await;
                match &wanted {
                    None => {
                        rows += u64::from(got.starts_with("[D"));
                        failures += u64::from(got.contains("code: Some"));
                        wanted = Some(got);
                    }
                    Some(wanted) => assert_eq!(&got, wanted, "operation {i}: {shown}"),
                }
            }
        }
        println!("{rows} of the answers have rows, {failures} are failures");
        cluster.shut_down().await;
    });
}
