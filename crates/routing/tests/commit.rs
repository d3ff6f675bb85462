//! What the config servers write, beside what everybody who reads it makes of it.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Dice, doc, entry, key, shard};
use pando_base::{ErrorCode, Timestamp};
use pando_bson::DocBuf;
use pando_routing::commit::{Change, merge, move_range, split};
use pando_routing::initial::Beginning;
use pando_routing::zones::{ZoneRange, Zones};
use pando_routing::{Chunk, Placement, RoutingTable, ShardId, ShardKey};
use std::collections::BTreeMap;

/// `config.chunks` of one collection.
struct Store {
    key: ShardKey,
    docs: BTreeMap<Vec<u8>, Chunk>,
}

impl Store {
    fn new(key: &ShardKey, chunks: Vec<Chunk>) -> Store {
        let mut s = Store { key: key.clone(), docs: BTreeMap::new() };
        s.write(&Change { written: chunks, removed: Vec::new() });
        s
    }
    fn write(&mut self, change: &Change) {
        for min in &change.removed {
            assert!(self.docs.remove(&self.key.key_of_bound(min).unwrap()).is_some());
        }
        for c in &change.written {
            self.docs.insert(self.key.key_of_bound(&c.min).unwrap(), c.clone());
        }
    }
    fn table(&self) -> RoutingTable {
        RoutingTable::new(entry(&self.key, 1), &self.docs.values().cloned().collect::<Vec<_>>()).unwrap()
    }
    fn since(&self, placement: Placement) -> Vec<Chunk> {
        self.docs.values().filter(|c| c.placement >= placement).cloned().collect()
    }
}

fn at(n: i64) -> DocBuf {
    doc(&format!(r#"{{"a": {n}}}"#))
}

fn begin(key: &ShardKey, shards: &[ShardId], is_empty: bool, chunks: Option<usize>) -> Vec<Chunk> {
    let (zones, of_zone) = (Zones::default(), BTreeMap::new());
    let primary = &shards[0];
    Beginning {
        key,
        shards,
        primary,
        is_empty,
        chunks,
        presplit: false,
        zones: &zones,
        of_zone: &of_zone,
        at: Timestamp::new(1, 1),
    }
    .chunks()
    .unwrap()
}

#[test]
fn whatever_is_changed_everybody_learns_of_it_by_what_is_newer() {
    let key = key(r#"{"a": 1}"#);
    for seed in 1..60u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let shards: Vec<ShardId> = (0..4).map(shard).collect();
        let mut store = Store::new(&key, begin(&key, &shards, false, None));
        let mut known = store.table();
        for step in 0..80u32 {
            let table = store.table();
            let n = dice.roll(table.chunks.len());
            let chunk = table.chunks.iter().nth(n).unwrap();
            let (min, max, owner) = (chunk.min().to_buf(), chunk.max(), chunk.shard().clone());
            let low = min.get("a").and_then(|v| v.as_i64()).unwrap_or(-10_000);
            let high = max.get("a").and_then(|v| v.as_i64()).unwrap_or(10_000);
            let to = shard(dice.roll(4));
            let time = Timestamp::new(10 + step, 1);
            let (done, moves) = match dice.roll(4) {
                0 if high - low > 3 => {
                    (split(&table, &owner, &min, &max, &[at(low + 1), at(low + 3)]), false)
                }
                1 => match chunk.next().filter(|next| *next.shard() == owner) {
                    Some(next) => (merge(&table, &owner, &min, &next.max()), false),
                    None => continue,
                },
                2 if to != owner => (move_range(&table, &owner, &to, &min, &max, time), true),
                3 if to != owner && high - low > 4 => {
                    (move_range(&table, &owner, &to, &at(low + 1), &at(low + 2), time), true)
                }
                _ => continue,
            };
            let change = done.unwrap();
            assert!(
                change.written.iter().all(|c| c.placement > table.placement()),
                "everything written is newer"
            );
            store.write(&change);
            let next = store.table();
            // Who has given or got something is at another major version, whoever has not, is where it was.
            for s in &shards {
                let (before, after) = (table.shard_version(s), next.shard_version(s));
                let concerned = moves && (*s == owner || *s == to) && after.placement != Placement::NONE;
                if concerned {
                    assert!(!after.places_as(before), "{s} at {before:?} and {after:?}");
                }
                if *s != owner && (!moves || *s != to) {
                    assert_eq!(before, after);
                }
            }
            if dice.roll(3) == 0 {
                // A refresh by what is newer comes to the same as reading everything.
                known = known.advanced(entry(&key, 1), &store.since(known.placement())).unwrap();
                let all = |t: &RoutingTable| t.chunks.iter().map(|c| c.to_chunk()).collect::<Vec<_>>();
                assert_eq!(all(&known), all(&next));
            }
        }
    }
}

#[test]
fn placements_are_those_of_a_real_server() {
    let key = key(r#"{"a": 1}"#);
    let (sa, sb) = (ShardId::new("sa"), ShardId::new("sb"));
    let mut store = Store::new(&key, begin(&key, &[sa.clone(), sb.clone()], true, None));
    let (least, greatest) = (key.least(), key.greatest());
    let placements = |s: &Store| s.docs.values().map(|c| c.placement.to_string()).collect::<Vec<_>>();
    assert_eq!(placements(&store), ["1|0"]);
    let points = [at(0), at(10), at(20)];
    store.write(&split(&store.table(), &sa, &least, &greatest, &points).unwrap());
    assert_eq!(placements(&store), ["1|1", "1|2", "1|3", "1|4"]);
    // Sent once more it changes nothing.
    assert!(split(&store.table(), &sa, &least, &greatest, &points).unwrap().is_nothing());
    store.write(&merge(&store.table(), &sa, &at(0), &at(20)).unwrap());
    assert_eq!(placements(&store), ["1|1", "1|5", "1|4"]);
    assert!(merge(&store.table(), &sa, &at(0), &at(20)).unwrap().is_nothing());
    store.write(&move_range(&store.table(), &sa, &sb, &at(0), &at(20), Timestamp::new(5, 1)).unwrap());
    assert_eq!(placements(&store), ["2|1", "2|0", "1|4"]);
    assert!(
        move_range(&store.table(), &sa, &sb, &at(0), &at(20), Timestamp::new(6, 1)).unwrap().is_nothing()
    );
    store.write(&move_range(&store.table(), &sa, &sb, &at(20), &greatest, Timestamp::new(7, 1)).unwrap());
    store.write(&move_range(&store.table(), &sa, &sb, &least, &at(0), Timestamp::new(8, 1)).unwrap());
    // The donor's last chunk leaves none behind that could tell.
    assert_eq!(placements(&store), ["4|0", "2|0", "3|0"]);
    let owners = &store.docs.values().next().unwrap().history;
    assert_eq!(owners.iter().map(|o| o.shard.as_str()).collect::<Vec<_>>(), ["sb", "sa"]);
}

#[test]
fn what_cannot_be_done_is_refused_in_the_words_of_a_real_server() {
    let key = key(r#"{"a": 1}"#);
    let (sa, sb) = (ShardId::new("sa"), ShardId::new("sb"));
    let mut store = Store::new(&key, begin(&key, std::slice::from_ref(&sa), true, None));
    store
        .write(&split(&store.table(), &sa, &key.least(), &key.greatest(), &[at(0), at(10), at(20)]).unwrap());
    let table = store.table();
    let refused = |points: &[DocBuf]| {
        let e = split(&table, &sa, &at(0), &at(10), points).unwrap_err();
        assert_eq!(e.code, ErrorCode::InvalidOptions);
        e.message.to_string()
    };
    assert_eq!(refused(&[at(30)]), "Split key { a: 30 } not contained within chunk [{ a: 0 }, { a: 10 })");
    assert_eq!(refused(&[at(10)]), "Split key { a: 10 } not contained within chunk [{ a: 0 }, { a: 10 })");
    assert_eq!(refused(&[at(0)]), "Split on lower bound of chunk [{ a: 0 }, { a: 0 }] is not allowed");
    assert_eq!(refused(&[at(5), at(5)]), "Split on lower bound of chunk [{ a: 5 }, { a: 5 }] is not allowed");
    assert_eq!(
        refused(&[at(5), at(3)]),
        "Split keys must be specified in strictly increasing order. Key { a: 3 } was specified after { a: 5 }."
    );
    // These end a real server, or tear its chunks.
    refused(&[]);
    refused(&[doc(r#"{"a": 5, "b": 1}"#)]);
    let no_merge = |min: i64, max: i64| merge(&table, &sa, &at(min), &at(max)).unwrap_err();
    let e = no_merge(3, 20);
    assert_eq!(e.code, ErrorCode::IllegalOperation);
    assert_eq!(
        e.message,
        "could not merge chunks, shard sa does not contain a sequence of chunks that exactly fills the range [{ a: 3 }, { a: 20 })"
    );
    assert_eq!(no_merge(0, 21).code, ErrorCode::IllegalOperation);
    assert_eq!(no_merge(20, 0).message, "min: { a: 20 } should be less than max: { a: 0 }");
    let moved = |from: &ShardId, min: i64, max: i64| {
        move_range(&table, from, &sb, &at(min), &at(max), Timestamp::new(9, 1))
    };
    assert_eq!(moved(&sb, 0, 10).unwrap_err().code, ErrorCode::ConflictingOperationInProgress);
    assert_eq!(moved(&sa, 5, 15).unwrap_err().code, ErrorCode::BadValue);
    assert_eq!(moved(&sa, 9, 3).unwrap_err().code, ErrorCode::BadValue);
}

#[test]
fn collections_begin_spread_where_that_can_be_known() {
    let shards: Vec<ShardId> = (0..3).map(shard).collect();
    let owners = |chunks: &[Chunk]| chunks.iter().map(|c| c.shard.to_string()).collect::<Vec<_>>();
    let (plain, hashed) = (key(r#"{"a": 1}"#), key(r#"{"a": "hashed"}"#));
    assert_eq!(owners(&begin(&plain, &shards, true, None)), ["s0"]);
    assert_eq!(owners(&begin(&hashed, &shards, true, None)), ["s0", "s0", "s1", "s1", "s2", "s2"]);
    assert_eq!(owners(&begin(&hashed, &shards, false, None)), ["s0"]);
    let seven = begin(&hashed, &shards, true, Some(7));
    assert_eq!(seven.iter().map(|c| c.placement.minor).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
    RoutingTable::new(entry(&hashed, 1), &seven).unwrap();
    let range = |min: i64, max: i64, zone: &str| ZoneRange {
        ns: "d.c".to_owned(),
        min: at(min),
        max: at(max),
        zone: zone.to_owned(),
    };
    let zones = Zones::new(&plain, &[range(0, 10, "x"), range(20, 30, "y"), range(30, 40, "x")]).unwrap();
    let mut of_zone =
        BTreeMap::from([("x".to_owned(), vec![shard(1), shard(2)]), ("y".to_owned(), vec![shard(2)])]);
    let zoned = |of_zone: &BTreeMap<String, Vec<ShardId>>| {
        let (chunks, at) = (None, Timestamp::new(1, 1));
        Beginning {
            key: &plain,
            shards: &shards,
            primary: &shards[0],
            is_empty: true,
            chunks,
            presplit: false,
            zones: &zones,
            of_zone,
            at,
        }
        .chunks()
    };
    assert_eq!(owners(&zoned(&of_zone).unwrap()), ["s0", "s1", "s1", "s2", "s2", "s2"]);
    of_zone.remove("y");
    assert_eq!(zoned(&of_zone).unwrap_err().code, ErrorCode::CannotCreateCollection);
}

#[test]
fn zones_are_cut_at_hashes_where_somebody_asks_for_it() {
    let shards: Vec<ShardId> = (0..4).map(shard).collect();
    let (compound, hashed) = (key(r#"{"x": 1, "h": "hashed", "y": 1}"#), key(r#"{"a": "hashed"}"#));
    let range = |min: &str, max: &str, zone: &str| ZoneRange {
        ns: "d.c".to_owned(),
        min: doc(min),
        max: doc(max),
        zone: zone.to_owned(),
    };
    let of_zone = BTreeMap::from([
        ("east".to_owned(), vec![shard(1), shard(2)]),
        ("west".to_owned(), vec![shard(2), shard(3)]),
    ]);
    let presplit = |key: &ShardKey, ranges: &[ZoneRange], chunks: Option<usize>, is_empty: bool| {
        let zones = Zones::new(key, ranges).unwrap();
        Beginning {
            key,
            shards: &shards,
            primary: &shards[0],
            is_empty,
            chunks,
            presplit: true,
            zones: &zones,
            of_zone: &of_zone,
            at: Timestamp::new(1, 1),
        }
        .chunks()
    };
    let two = [range(r#"{"x": 0}"#, r#"{"x": 10}"#, "east"), range(r#"{"x": 10}"#, r#"{"x": 20}"#, "west")];
    // Two for each of three shards: the one of both zones has one in each.
    let chunks = presplit(&compound, &two, None, true).unwrap();
    let owners: Vec<&str> = chunks.iter().map(|c| c.shard.as_str()).collect();
    assert_eq!(owners, ["s0", "s1", "s1", "s2", "s2", "s3", "s3", "s1"]);
    assert_eq!(chunks[1].min, doc(r#"{"x": 0, "h": {"$minKey": 1}, "y": {"$minKey": 1}}"#));
    assert!(chunks[2].min.to_string().starts_with("{ x: 0, h: -"), "{}", chunks[2].min);
    assert_eq!(chunks[4].min, doc(r#"{"x": 10, "h": {"$minKey": 1}, "y": {"$minKey": 1}}"#));
    let table = Store::new(&compound, chunks).table();
    assert_eq!(table.chunks.len(), 8, "they tile all keys");
    assert_eq!(presplit(&compound, &two, Some(60), true).unwrap().len(), 62);
    // One zone of everything.
    let all = [range(r#"{"a": {"$minKey": 1}}"#, r#"{"a": {"$maxKey": 1}}"#, "east")];
    let chunks = presplit(&hashed, &all, Some(8), true).unwrap();
    let owners: Vec<&str> = chunks.iter().map(|c| c.shard.as_str()).collect();
    assert_eq!(owners, ["s1", "s1", "s1", "s1", "s2", "s2", "s2", "s2"]);
    let refused = |key: &ShardKey, ranges: &[ZoneRange], is_empty: bool| {
        presplit(key, ranges, None, is_empty).unwrap_err().code.0
    };
    assert_eq!(refused(&compound, &two, false), 31387);
    assert_eq!(refused(&compound, &[], true), 31387);
    assert_eq!(refused(&key(r#"{"x": 1, "h": 1}"#), &two, true), 31387);
    let half = [range(r#"{"a": {"$minKey": 1}}"#, r#"{"a": {"$numberLong": "0"}}"#, "east")];
    assert_eq!(refused(&hashed, &half, true), 31412);
    let within = [range(r#"{"x": 5}"#, r#"{"x": 5, "h": {"$numberLong": "7"}}"#, "east")];
    assert_eq!(refused(&compound, &within, true), 31390);
    let begun = [range(r#"{"x": 5, "h": {"$numberLong": "7"}}"#, r#"{"x": 6}"#, "east")];
    assert_eq!(refused(&compound, &begun, true), 31391);
    let nobodys = [range(r#"{"x": 5}"#, r#"{"x": 6}"#, "south")];
    assert_eq!(
        presplit(&compound, &nobodys, None, true).unwrap_err().code,
        ErrorCode::CannotCreateCollection
    );
}

/// What is left of it may be small enough; a chunk that only gets another version is as large as before.
#[test]
fn a_split_and_a_move_take_the_mark_of_a_chunk_that_was_too_large_away() {
    let key = key(r#"{"a": 1}"#);
    let (here, there) = (shard(0), shard(1));
    let mut chunks = begin(&key, std::slice::from_ref(&here), false, None);
    chunks[0].jumbo = true;
    let table = Store::new(&key, chunks).table();
    let (min, max) = (key.least(), key.greatest());
    let marks = |change: &Change| change.written.iter().map(|c| c.jumbo).collect::<Vec<_>>();
    let cut = split(&table, &here, &min, &max, &[at(0), at(5)]).unwrap();
    assert_eq!(marks(&cut), [false; 3]);
    let time = Timestamp::new(10, 1);
    let whole = move_range(&table, &here, &there, &min, &max, time).unwrap();
    assert_eq!(marks(&whole), [false]);
    let part = move_range(&table, &here, &there, &at(1), &at(2), time).unwrap();
    assert_eq!(marks(&part), [false; 3]);
    // Beside the one that moves.
    let mut store = Store::new(&key, table.chunks.iter().map(|c| c.to_chunk()).collect());
    store.write(&cut);
    let mut last = store.docs.values().next_back().unwrap().clone();
    last.jumbo = true;
    store.write(&Change { written: vec![last], removed: Vec::new() });
    let first = move_range(&store.table(), &here, &there, &at(0), &at(5), time).unwrap();
    let both = move_range(&store.table(), &here, &there, &min, &at(0), time).unwrap();
    for change in [first, both] {
        assert_eq!(change.written.len(), 2);
        assert!(!change.written[0].jumbo);
        let other = &change.written[1];
        assert_eq!(other.jumbo, other.max == max, "{other:?}");
    }
}
