//! Chunk maps that are changed step by step beside maps made anew, and beside plain lists.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Dice, Truth, doc, entry, key, shard};
use pando_base::ErrorCode;
use pando_bson::DocBuf;
use pando_routing::{Chunk, ChunkMap, Placement, RoutingTable, ShardKey, ShardSet};

fn number(n: usize) -> DocBuf {
    doc(&format!(r#"{{"a": {n}}}"#))
}
fn truth(chunks: usize, shards: usize) -> (ShardKey, Truth) {
    let key = key(r#"{"a": 1}"#);
    let bounds: Vec<DocBuf> = (1..chunks).map(|i| number(i * 1000)).collect();
    let truth = Truth::new(&key, &bounds, shards);
    (key, truth)
}

fn check_alike(map: &ChunkMap, truth: &Truth) {
    let key = map.key();
    assert_eq!(map.len(), truth.chunks.len());
    assert_eq!(map.placement(), truth.newest);
    for (mine, theirs) in map.iter().zip(&truth.chunks) {
        assert_eq!(&mine.to_chunk(), theirs);
        assert_eq!(mine.start(), key.key_of_bound(&theirs.min).unwrap());
        assert_eq!(mine.end(), key.key_of_bound(&theirs.max).unwrap());
    }
    for part in map.parts() {
        let theirs = truth.chunks.iter().filter(|c| c.shard == part.shard);
        assert_eq!(part.chunks, theirs.clone().count());
        assert_eq!(part.placement, theirs.map(|c| c.placement).max().unwrap_or(Placement::NONE));
    }
}

fn check_finds(map: &ChunkMap, truth: &Truth, dice: &mut Dice) {
    let key = map.key();
    let ends: Vec<(Vec<u8>, &Chunk)> =
        truth.chunks.iter().map(|c| (key.key_of_bound(&c.min).unwrap(), c)).collect();
    for _ in 0..20 {
        let (from, to) = (dice.roll(400_000), dice.roll(400_000));
        let (from, to) = (from.min(to), from.max(to) + 1);
        let (start, end) = (key.key_of_bound(&number(from)).unwrap(), key.key_of_bound(&number(to)).unwrap());
        let at = ends.partition_point(|(k, _)| *k <= start) - 1;
        assert_eq!(map.find(&start).unwrap().min(), &*ends[at].1.min);
        let mut owners = ShardSet::new();
        map.add_owners(&start, &end, &mut owners);
        let mut expected: Vec<&str> = ends[at..]
            .iter()
            .take_while(|(k, _)| *k < end || *k <= start)
            .map(|(_, c)| c.shard.as_str())
            .collect();
        expected.sort_unstable();
        expected.dedup();
        let mut got: Vec<&str> = owners.iter().map(|n| map.parts()[n as usize].shard.as_str()).collect();
        got.sort_unstable();
        assert_eq!(got, expected, "[{from}, {to})");
    }
}

#[test]
fn changed_step_by_step_it_is_what_it_would_be_made_anew() {
    for seed in 1..40 {
        let mut dice = Dice(seed * 0x9E37_79B9);
        let (key, mut truth) = truth(2 + dice.roll(900), 1 + dice.roll(5));
        let mut map = ChunkMap::new(&key, &truth.chunks).unwrap();
        for _ in 0..30 {
            let before = map.placement();
            for _ in 0..=dice.roll(6) {
                let i = dice.roll(truth.chunks.len());
                match dice.roll(4) {
                    0 => truth.move_chunk(i, shard(dice.roll(7))),
                    1 | 2 => truth.merge(i),
                    _ => {
                        let low = truth.chunks[i].min.get("a").and_then(|v| v.as_i64()).unwrap_or(0);
                        let at = low as usize + 1;
                        if truth.chunks[i]
                            .max
                            .get("a")
                            .and_then(|v| v.as_i64())
                            .is_none_or(|max| max > at as i64)
                        {
                            truth.split(i, number(at));
                        }
                    }
                }
            }
            map = map.with(&truth.since(before)).unwrap();
            check_alike(&map, &truth);
            check_finds(&map, &truth, &mut dice);
        }
        check_alike(&ChunkMap::new(&key, &truth.chunks).unwrap(), &truth);
    }
}

#[test]
fn blocks_in_which_nothing_changed_are_shared() {
    let (key, mut truth) = truth(20_000, 3);
    let map = ChunkMap::new(&key, &truth.chunks).unwrap();
    let before = map.placement();
    truth.move_chunk(10_000, shard(1));
    let next = map.with(&truth.since(before)).unwrap();
    let (all, shared) = next.shared_blocks(&map);
    assert!(all > 50 && shared >= all - 3, "{shared} of {all}");
    assert!(map.heap_bytes() < 150 * map.len(), "{} bytes a chunk", map.heap_bytes() / map.len());
}

#[test]
fn many_merges_leave_no_map_of_crumbs() {
    let (key, mut truth) = truth(5_000, 1);
    let mut map = ChunkMap::new(&key, &truth.chunks).unwrap();
    for i in (0..4_900).rev() {
        let before = map.placement();
        truth.merge(i % truth.chunks.len().saturating_sub(1).max(1));
        map = map.with(&truth.since(before)).unwrap();
    }
    check_alike(&map, &truth);
    assert!(map.shared_blocks(&map).0 < 10, "{} blocks for {} chunks", map.shared_blocks(&map).0, map.len());
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let (key, truth) = truth(5, 2);
    let torn = |chunks: &[Chunk]| ChunkMap::new(&key, chunks).unwrap_err().code;
    let all = &truth.chunks;
    assert_eq!(torn(&[]), ErrorCode::ConflictingOperationInProgress);
    assert_eq!(torn(&all[1..]), ErrorCode::ConflictingOperationInProgress);
    assert_eq!(torn(&all[..4]), ErrorCode::ConflictingOperationInProgress);
    assert_eq!(
        torn(&[all[0].clone(), all[2].clone(), all[3].clone(), all[4].clone()]),
        ErrorCode::ConflictingOperationInProgress
    );
    let map = ChunkMap::new(&key, all).unwrap();
    let with = |min: usize, max: usize| {
        let mut c = all[2].clone();
        (c.min, c.max, c.placement) = (number(min), number(max), Placement::new(9, 0));
        map.with(&[c]).map(|m| m.len()).map_err(|e| e.code)
    };
    // A whole chunk and two as one fit; half a chunk leaves a hole.
    assert_eq!(with(2000, 3000), Ok(5));
    assert_eq!(with(2000, 4000), Ok(4));
    for (min, max) in [(2000, 2500), (2500, 3000), (2500, 3500), (3000, 3000), (3000, 2000)] {
        assert_eq!(with(min, max), Err(ErrorCode::ConflictingOperationInProgress), "{min} to {max}");
    }
    let table = RoutingTable::new(entry(&key, 5), all).unwrap();
    assert_eq!(
        table.advanced(entry(&key, 6), &[]).unwrap_err().code,
        ErrorCode::ConflictingOperationInProgress
    );
    assert!(table.advanced(entry(&key, 5), &truth.since(table.placement())).is_ok());
}

#[test]
fn who_owned_a_chunk_is_remembered() {
    use pando_base::Timestamp;
    use pando_routing::history::owner_at;
    let (key, mut truth) = truth(3, 1);
    truth.move_chunk(1, shard(1));
    truth.move_chunk(1, shard(2));
    let map = ChunkMap::new(&key, &truth.chunks).unwrap();
    let chunk = map.find(&key.key_of_bound(&number(1500)).unwrap()).unwrap();
    let at =
        |secs| owner_at(chunk, Timestamp::new(secs, 2)).map(|s| s.as_str().to_owned()).map_err(|e| e.code);
    assert_eq!(at(9), Ok("s2".to_owned()));
    assert_eq!(at(3), Ok("s2".to_owned()));
    assert_eq!(at(2), Ok("s1".to_owned()));
    assert_eq!(at(1), Ok("s0".to_owned()));
    assert_eq!(at(0), Err(ErrorCode::StaleChunkHistory));
}

#[test]
fn a_shard_answers_for_what_it_owns_and_for_nothing_else() {
    use pando_bson::keystring::KeyBuilder;
    use pando_routing::Ownership;
    use std::sync::Arc;
    let mut dice = Dice(77);
    for shards in 1..5 {
        let (key, mut truth) = truth(700, shards);
        for _ in 0..200 {
            truth.move_chunk(dice.roll(700), shard(dice.roll(6)));
        }
        let table = Arc::new(RoutingTable::new(entry(&key, 1), &truth.chunks).unwrap());
        for me in 0..7 {
            let owned = Ownership::new(table.clone(), shard(me));
            let ranges = owned.ranges();
            assert!(ranges.windows(2).all(|two| two[0].1 < two[1].0), "neighbours are one");
            let mut scratch = KeyBuilder::default();
            for _ in 0..100 {
                let (from, to) = (dice.roll(700_000), dice.roll(700_000));
                let (from, to) = (from.min(to), from.max(to) + 1);
                let (start, end) =
                    (key.key_of_bound(&number(from)).unwrap(), key.key_of_bound(&number(to)).unwrap());
                let is_mine = table.chunks.find(&start).unwrap().shard() == &shard(me);
                assert_eq!(owned.owns(&number(from), &mut scratch), is_mine);
                assert_eq!(ranges.iter().any(|(low, high)| *low <= start && start < *high), is_mine);
                let overlaps = ranges.iter().any(|(low, high)| *low < end && start < *high);
                assert_eq!(owned.overlaps(&start, &end), overlaps);
            }
            assert!(!owned.owns(&doc(r#"{"a": [1]}"#), &mut scratch), "it has no place");
            assert_eq!(owned.chunks(), truth.chunks.iter().filter(|c| c.shard == shard(me)).count());
        }
    }
}
