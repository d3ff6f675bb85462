//! Somebody between two members changes what a sync source says: its follower finds out, applies nothing of it, and goes
//! elsewhere for a while.

use crate::rows::initial_sync::{NEW, add, fill, hang, hash, is_secondary, pair_and_one};
use crate::rows::parted::log_of;
use pando_bson::{Bson, RawDoc, doc};
use pando_sim::Machine;
use pando_sim::rig::{Rig, words::*};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

const AVOIDED: i32 = 5_929_000;
/// Of a message with one document: header, flags and the kind of its section.
const BODY: usize = 21;

/// A reply's document, where one write is one message.
fn body(bytes: &[u8]) -> Option<&RawDoc> {
    let len = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    (len == bytes.len() && len > BODY).then(|| RawDoc::trusted(&bytes[BODY..]))
}
fn offset(bytes: &[u8], of: &[u8]) -> usize {
    of.as_ptr() as usize - bytes.as_ptr() as usize
}
/// Where the documents of a batch are.
fn entries(bytes: &[u8], batch: &str) -> Vec<Range<usize>> {
    let Some(array) = body(bytes).and_then(|d| d.get_path(batch)).and_then(|v| v.as_array()) else {
        return Vec::new();
    };
    let docs = array.iter().filter_map(|e| e.value().as_doc());
    docs.map(|d| offset(bytes, d.as_bytes())..offset(bytes, d.as_bytes()) + d.byte_len()).collect()
}
/// The eight bytes of a field of an entry.
fn field(bytes: &[u8], entry: &Range<usize>, name: &str) -> Range<usize> {
    let name = [name.as_bytes(), &[0]].concat();
    let at = bytes[entry.clone()].windows(name.len() + 1).position(|w| w[1..] == name[..]).expect("a field");
    let from = entry.start + at + 1 + name.len();
    from..from + 8
}

/// What is done to a batch with these entries.
type Change = fn(&mut [u8], &[Range<usize>]);

const CHANGES: [(&str, Change); 4] = [
    ("two entries in each other's place", |bytes, at| {
        let (a, b) = (bytes[at[1].clone()].to_vec(), bytes[at[2].clone()].to_vec());
        bytes[at[1].clone()].copy_from_slice(&b);
        bytes[at[2].clone()].copy_from_slice(&a);
    }),
    ("an entry twice", |bytes, at| bytes.copy_within(at[1].clone(), at[2].start)),
    ("an entry of an older term", |bytes, at| {
        let t = field(bytes, at.last().expect("entries"), "t");
        bytes[t].copy_from_slice(&0i64.to_le_bytes());
    }),
    ("an entry of a term that nobody can have", |bytes, at| {
        let t = field(bytes, at.last().expect("entries"), "t");
        bytes[t].copy_from_slice(&(1i64 << 60).to_le_bytes());
    }),
];

#[test]
fn a_batch_that_was_tampered_with_is_never_applied() {
    for (seed, (what, change)) in (431..).zip(CHANGES) {
        let rig = Rig::of(seed, 3);
        let [p, middle, last] = rig.chain();
        let (from, to) = (rig.nodes[middle].machine(), rig.nodes[last].machine());
        rig.wait_ms(1_000);
        rig.world.watch_lines(&[AVOIDED]);
        let changed = Arc::new(AtomicUsize::new(0));
        let counted = changed.clone();
        rig.world.net.tamper(move |a, b, bytes| {
            let at = entries(bytes, "cursor.nextBatch");
            if (a, b) == (from, to) && at.len() > 3 && at[1].len() == at[2].len() {
                change(bytes, &at);
                counted.fetch_add(1, SeqCst);
            }
        });
        // Entries of one size, in one batch.
        let docs: Vec<Bson> = (100..150).map(|i| doc! { "_id": i, "n": i }.into()).collect();
        let mut many = doc! { "insert": "c", "writeConcern": w(3) };
        many.push("documents", docs);
        rig.ok(p, many);
        assert_eq!(changed.load(SeqCst), 1, "{what}");
        let lines = rig.world.take_lines();
        assert!(lines.iter().any(|l| l.machine == to), "{what}: {lines:?}");
        assert_eq!(rig.source_of(last), Some(p), "{what}");
        assert_eq!(log_of(&rig, last), log_of(&rig, p), "{what}");
        assert_eq!(hash(&rig, last), hash(&rig, p), "{what}");
    }
}

/// The last of a chain loses the primary, and what the middle says of itself is changed.
fn avoids_the_middle(seed: u64, change: fn(&mut Vec<u8>) -> bool) {
    let rig = Rig::of(seed, 3);
    let p = rig.primary();
    let (middle, last) = (rig.others(p)[0], rig.others(p)[1]);
    rig.ok(p, insert(0, w(3)));
    let (from, to): (Machine, Machine) = (rig.nodes[middle].machine(), rig.nodes[last].machine());
    let changed = Arc::new(AtomicUsize::new(0));
    let counted = changed.clone();
    rig.world.watch_lines(&[AVOIDED]);
    rig.world.net.tamper(move |a, b, bytes| {
        if (a, b) == (from, to) && change(bytes) {
            counted.fetch_add(1, SeqCst);
        }
    });
    rig.part(p, last);
    // Something to fetch.
    rig.ok(p, insert(2, w(2)));
    let mut since = Duration::ZERO;
    rig.until("it is avoided", |rig| {
        since = rig.world.sim.now();
        rig.world.take_lines().iter().any(|l| l.machine == to && l.attr.contains(&rig.nodes[middle].addr()))
    });
    rig.world.net.stop_tampering();
    assert!(changed.load(SeqCst) > 0);
    rig.wait_ms(1_000);
    assert_eq!(rig.source_of(last), None);
    rig.until("it is asked again", |rig| rig.source_of(last) == Some(middle));
    let after = rig.world.sim.now() - since;
    let time = Duration::from_millis(pando_base::limits::DENY_PROBE_FAILED_MS);
    assert!(after + Duration::from_secs(1) >= time, "after {after:?}");
    rig.ok(p, insert(1, w(3)));
}

#[test]
fn a_source_without_entries_is_avoided_for_a_while() {
    // The probe asks for the oldest entry, of which it wants the time only.
    avoids_the_middle(441, |bytes| {
        let at = entries(bytes, "cursor.firstBatch");
        let [one] = &at[..] else { return false };
        if RawDoc::trusted(&bytes[one.clone()]).get("op").is_some() {
            return false;
        }
        let ts = field(bytes, one, "ts");
        bytes[ts].fill(0);
        true
    });
}

#[test]
fn a_source_that_rolls_back_while_it_is_chosen_is_avoided_for_a_while() {
    avoids_the_middle(442, |bytes| {
        let probed = body(bytes).is_some_and(|d| d.get("rbid").is_some() && d.get("cursor").is_none());
        if probed {
            let n = field(bytes, &(BODY..bytes.len()), "rbid").start;
            bytes[n] ^= 1;
        }
        probed
    });
}

/// The name of a field of this type is another, so that nobody finds it.
fn rename(bytes: &mut [u8], ty: u8, name: &str) {
    let name = [&[ty], name.as_bytes(), &[0]].concat();
    let at = bytes.windows(name.len()).position(|w| w == name).expect("the field");
    bytes[at + 1] = b'X';
}

/// What cannot be read is not nothing: a collection would be copied as an empty one.
#[test]
fn a_copy_from_who_cannot_be_understood_begins_again() {
    for (seed, batch, ty, field) in [
        (446, "firstBatch", 4, "firstBatch"),
        (447, "nextBatch", 4, "nextBatch"),
        (448, "firstBatch", 0x12, "id"),
        (449, "firstBatch", 2, "ns"),
    ] {
        let (rig, p) = pair_and_one(seed);
        fill(&rig, p, "copied", 1_000);
        let new = rig.nodes[NEW].machine();
        // A few batches of a collection, told by a field of its documents.
        let server = rig.nodes[NEW].server().unwrap();
        server.instance.params.set_at_startup("collectionClonerBatchSize", "100").unwrap();
        let changed = Arc::new(AtomicUsize::new(0));
        let counted = changed.clone();
        rig.world.net.tamper(move |_, to, bytes| {
            let at = entries(bytes, &format!("cursor.{batch}"));
            let copied = at.first().is_some_and(|e| RawDoc::trusted(&bytes[e.clone()]).get("pad").is_some());
            if to == new && copied && counted.fetch_add(1, SeqCst) == 0 {
                rename(bytes, ty, field);
            }
        });
        add(&rig, p, &doc! { "votes": 0, "priority": 0 });
        rig.until("the member", |rig| is_secondary(rig, NEW));
        assert!(changed.load(SeqCst) > 0, "{batch}");
        rig.ok(p, insert(1, w(3)));
        assert_eq!(hash(&rig, p), hash(&rig, NEW), "{batch} {field}");
    }
}

/// The primary has a hole in its log, and the middle applies nothing: neither shows what lies behind its end, so the last
/// member has none of it.
#[test]
fn the_end_of_a_chain_never_has_what_its_source_does_not_show() {
    for seed in [443, 444, 445] {
        let rig = Rig::of(seed, 3);
        let [p, middle, last] = rig.chain();
        let log = |rig: &Rig, i: usize| rig.nodes[i].server().unwrap().storage.log().clone();
        let mut next = 1;
        for round in 0..6 {
            hang(&rig, middle, "rsSyncApplyStop", round % 2 == 1);
            next += 1;
            rig.ok(p, insert(next, doc! { "w": 1 }));
            let hole = log(&rig, p).reserve_one();
            for _ in 0..10 {
                next += 1;
                rig.ok(p, insert(next, doc! { "w": 1 }));
                rig.wait_ms(50);
                assert!(log(&rig, p).visible() < hole.ts(), "the primary shows what lies behind its hole");
                let (shown, end) = (log(&rig, middle).visible(), log(&rig, last).last());
                assert!(end <= shown && shown < hole.ts(), "{end} here, {shown} shown by its source");
            }
            drop(hole);
            rig.until("what lay behind the hole", |rig| log(rig, last).last() == log(rig, p).last());
            assert_eq!(rig.source_of(last), Some(middle));
        }
        hang(&rig, middle, "rsSyncApplyStop", false);
        rig.ok(p, insert(-1, w(3)));
        assert_eq!(log_of(&rig, last), log_of(&rig, p));
    }
}
