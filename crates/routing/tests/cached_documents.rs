//! What a shard's primary writes down for its secondaries is what they read.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Dice, Truth, doc, entry, key, shard};
use pando_base::ErrorCode;
use pando_bson::{DocBuf, RawDoc};
use pando_routing::cached_documents::{CachedCollection, Changes};
use pando_routing::{Chunk, RoutingTable};
use std::collections::BTreeMap;

/// The collection of chunks, by `_id`.
type Stored = BTreeMap<Vec<u8>, DocBuf>;

fn id(doc: &RawDoc) -> Vec<u8> {
    doc.get("_id").unwrap().as_doc().unwrap().as_bytes().to_vec()
}
fn apply(stored: &mut Stored, changes: &Changes) {
    for gone in &changes.gone {
        assert!(stored.remove(&id(gone)).is_some(), "only what is there goes");
    }
    changes.put.iter().for_each(|doc| drop(stored.insert(id(doc), doc.clone())));
}
fn chunks(table: &RoutingTable) -> Vec<Chunk> {
    table.chunks.iter().map(|c| c.to_chunk()).collect()
}
fn first(chunks: usize) -> (RoutingTable, Truth) {
    let key = key(r#"{"a": 1}"#);
    let bounds: Vec<DocBuf> = (1..chunks).map(|i| doc(&format!(r#"{{"a": {}}}"#, i * 1000))).collect();
    let truth = Truth::new(&key, &bounds, 3);
    (RoutingTable::new(entry(&key, 7), &truth.chunks).unwrap(), truth)
}
fn change(truth: &mut Truth, dice: &mut Dice) {
    let i = dice.roll(truth.chunks.len());
    let bound = |doc: &DocBuf| doc.get("a").and_then(|v| v.as_i64());
    let at = bound(&truth.chunks[i].min).unwrap_or(0) + 1;
    match dice.roll(3) {
        0 => truth.move_chunk(i, shard(dice.roll(4))),
        1 => truth.merge(i),
        _ if bound(&truth.chunks[i].max).is_none_or(|max| max > at) => {
            truth.split(i, doc(&format!(r#"{{"a": {at}}}"#)))
        }
        _ => {}
    }
}

#[test]
fn changes_make_of_what_is_kept_what_is_known_now() {
    for seed in 1..60 {
        let mut dice = Dice(seed * 0x9E37_79B9);
        let (mut table, mut truth) = first(2 + dice.roll(600));
        let mut stored = Stored::new();
        apply(&mut stored, &Changes::between(None, &table));
        for _ in 0..20 {
            (0..dice.roll(5)).for_each(|_| change(&mut truth, &mut dice));
            let next = table.advanced(table.collection.clone(), &truth.since(table.placement())).unwrap();
            let changes = Changes::between(Some(&table), &next);
            assert!(changes.put.len() <= truth.since(table.placement()).len());
            apply(&mut stored, &changes);
            table = next;
            let kept: Vec<DocBuf> = stored.values().cloned().collect();
            let entry = CachedCollection::parse(&CachedCollection::of(&table, false).to_doc()).unwrap();
            assert_eq!(entry.placement, table.placement());
            let again = entry.into_table(&kept).unwrap();
            assert_eq!(chunks(&again), truth.chunks, "seed {seed}");
            assert_eq!(again.collection, table.collection);
        }
    }
}

#[test]
fn nobody_reads_what_is_half_written() {
    let (table, _) = first(4);
    let half = CachedCollection::parse(&CachedCollection::of(&table, true).to_doc()).unwrap();
    assert_eq!(half.into_table(&[]).unwrap_err().code, ErrorCode::ConflictingOperationInProgress);
}

/// The bounds of a collection that was dropped and sharded anew may have other fields, and yet be the same places in the order of keys.
#[test]
fn of_another_generation_nothing_stays() {
    let (table, _) = first(4);
    let bounds: Vec<DocBuf> = (1..4).map(|i| doc(&format!(r#"{{"b": {}}}"#, i * 1000))).collect();
    let other = key(r#"{"b": 1}"#);
    let again = RoutingTable::new(entry(&other, 8), &Truth::new(&other, &bounds, 3).chunks).unwrap();
    let mut stored = Stored::new();
    apply(&mut stored, &Changes::between(None, &table));
    apply(&mut stored, &Changes::between(Some(&table), &again));
    let kept: Vec<DocBuf> = stored.values().cloned().collect();
    let entry = CachedCollection::parse(&CachedCollection::of(&again, false).to_doc()).unwrap();
    assert_eq!(chunks(&entry.into_table(&kept).unwrap()), chunks(&again));
    let none = Changes::between(Some(&table), &table);
    assert!(none.put.is_empty() && none.gone.is_empty());
}
