//! Units of work: visibility, conflicts, prepared transactions.
#![allow(clippy::unwrap_used)]

use pando_base::{ErrorCode, Timestamp};
use pando_bson::{RawDoc, doc};
use pando_storage::testing;
use pando_storage::{
    Backend, BeginOptions, Decision, Dir, Ident, IdentKind, OnPrepared, Options, PREPARE_CONFLICT,
    PreparedTxn, ReadAt, Slot, Storage,
};
use std::ops::Bound;

fn open() -> (Storage, Ident) {
    let opts = Options { backend: Backend::Mem, ..Options::default() };
    let s = Storage::open(testing::env(), opts).unwrap();
    let i = s.create_ident(IdentKind::Records).unwrap();
    (s, i)
}

fn put(s: &Storage, i: Ident, key: &[u8], value: &[u8]) -> Timestamp {
    let mut t = s.begin(ReadAt::Latest).unwrap();
    t.put(i, key, value).unwrap();
    t.log_entry(s.log().reserve_one(), RawDoc::empty());
    t.commit().unwrap()
}

fn get(s: &Storage, at: ReadAt, i: Ident, key: &[u8]) -> Option<Vec<u8>> {
    s.begin(at).unwrap().get(i, key).unwrap().map(|b| b.to_vec())
}

fn keys(s: &Storage, at: ReadAt, i: Ident, dir: Dir) -> Vec<Vec<u8>> {
    let mut c = s.begin(at).unwrap().scan(i, Bound::Unbounded, Bound::Unbounded, dir).unwrap();
    let mut out = Vec::new();
    while let Some((k, _)) = c.next().unwrap() {
        out.push(k.to_vec());
    }
    out
}

#[test]
fn a_writer_reads_its_own_commit_above_somebody_elses_hole() {
    let (s, i) = open();
    let hole: Slot = s.log().reserve_one();
    let ts = put(&s, i, b"k", b"v");
    assert!(hole.ts() < ts);
    assert_eq!(get(&s, ReadAt::Latest, i, b"k").as_deref(), Some(&b"v"[..]));
    assert_eq!(get(&s, ReadAt::AllDurable, i, b"k"), None);
    assert!(
        s.log().read(Bound::Unbounded, false).next().unwrap().is_none(),
        "oplog readers wait for the hole"
    );
    drop(hole);
    assert_eq!(get(&s, ReadAt::AllDurable, i, b"k").as_deref(), Some(&b"v"[..]));
    assert_eq!(s.log().read(Bound::Unbounded, false).next().unwrap().unwrap().0, ts);
}

#[test]
fn a_unit_that_fills_an_older_hole_stays_unseen_by_a_snapshot_taken_before() {
    let (s, i) = open();
    let hole = s.log().reserve_one();
    let mut slow = s.begin(ReadAt::Latest).unwrap();
    slow.put(i, b"slow", b"1").unwrap();
    put(&s, i, b"fast", b"1");
    let before = s.begin(ReadAt::Latest).unwrap();
    slow.log_entry(hole, RawDoc::empty());
    slow.commit().unwrap();
    assert!(before.exists(i, b"fast").unwrap());
    assert!(!before.exists(i, b"slow").unwrap());
    assert_eq!(keys(&s, ReadAt::Latest, i, Dir::Backward), [b"slow".to_vec(), b"fast".to_vec()]);
}

#[test]
fn the_first_updater_wins() {
    let (s, i) = open();
    put(&s, i, b"k", b"0");
    let mut a = s.begin(ReadAt::Latest).unwrap();
    let mut b = s.begin(ReadAt::Latest).unwrap();
    a.put(i, b"k", b"a").unwrap();
    assert_eq!(b.put(i, b"k", b"b").unwrap_err().code, ErrorCode::WriteConflict);
    a.log_entry(s.log().reserve_one(), RawDoc::empty());
    a.commit().unwrap();
    assert_eq!(b.delete(i, b"k").unwrap_err().code, ErrorCode::WriteConflict, "committed after the snapshot");
    drop(b);
    put(&s, i, b"k", b"c");
    assert_eq!(get(&s, ReadAt::Latest, i, b"k").as_deref(), Some(&b"c"[..]));
}

#[test]
fn an_aborted_unit_leaves_nothing_and_frees_its_keys() {
    let (s, i) = open();
    let mut a = s.begin(ReadAt::Latest).unwrap();
    a.put(i, b"k", b"a").unwrap();
    a.log_entry(s.log().reserve_one(), RawDoc::empty());
    a.abort();
    assert_eq!(get(&s, ReadAt::Latest, i, b"k"), None);
    assert!(s.log().read(Bound::Unbounded, false).next().unwrap().is_none());
    put(&s, i, b"k", b"b");
}

#[test]
fn own_writes_are_read_and_a_mark_undoes_what_follows_it() {
    let (s, i) = open();
    put(&s, i, b"a", b"0");
    let mut t = s.begin(ReadAt::Latest).unwrap();
    for n in 0..20u8 {
        t.put(i, &[b'm', n], &[n]).unwrap();
    }
    t.delete(i, b"a").unwrap();
    let mark = t.mark();
    t.put(i, &[b'm', 3], b"changed").unwrap();
    t.put(i, b"z", b"1").unwrap();
    t.log_entry(s.log().reserve_one(), RawDoc::empty());
    t.back_to(mark);
    assert_eq!(t.get(i, &[b'm', 3]).unwrap().unwrap().to_vec(), [3]);
    assert!(!t.exists(i, b"a").unwrap());
    let mut c = t.scan(i, Bound::Included(b"m\x0a"), Bound::Unbounded, Dir::Forward).unwrap();
    let mut seen = Vec::new();
    while let Some((k, _)) = c.next().unwrap() {
        seen.push(k[1]);
    }
    assert_eq!(seen, (10..20).collect::<Vec<u8>>());
    c.seek(&[b'm', 18]).unwrap();
    assert_eq!(c.next().unwrap().unwrap().0.to_vec(), [b'm', 18]);
    t.log_entry(s.log().reserve_one(), RawDoc::empty());
    let ts = t.commit().unwrap();
    assert_eq!(s.log().last(), ts, "the slot of the undone part left no hole");
    assert_eq!(s.all_durable(), ts);
}

#[test]
fn a_vectored_insert_has_one_commit_and_many_timestamps() {
    let (s, i) = open();
    let slots = s.log().reserve(3);
    let (first, last) = (slots.first_ts(), slots.last_ts());
    let mut t = s.begin(ReadAt::Latest).unwrap();
    for (n, slot) in slots.enumerate() {
        t.set_commit_ts(slot.ts());
        t.put_new(i, &[n as u8], b"v").unwrap();
        t.log_entry(slot, &doc! {"n": n as i32}.to_raw());
    }
    assert_eq!(t.commit().unwrap(), last);
    assert_eq!(keys(&s, ReadAt::At(first), i, Dir::Forward).len(), 1);
    assert_eq!(keys(&s, ReadAt::At(last), i, Dir::Forward).len(), 3);
    let mut log = s.log().read(Bound::Included(Timestamp(first.0 + 1)), false);
    let (ts, entry) = log.next().unwrap().unwrap();
    assert_eq!((ts.0, RawDoc::trusted(&entry).get("n").unwrap().as_i64()), (first.0 + 1, Some(1)));
    assert_eq!(s.log().read(Bound::Unbounded, true).next().unwrap().unwrap().0, last);
}

#[test]
fn hooks_run_with_the_outcome() {
    let (s, i) = open();
    let (tx, rx) = std::sync::mpsc::channel();
    let mut t = s.begin(ReadAt::Latest).unwrap();
    let (a, b) = (tx.clone(), tx.clone());
    t.on_commit(Box::new(move |ts| a.send(Some(ts)).unwrap()));
    t.on_abort(Box::new(move || b.send(None).unwrap()));
    drop(t);
    assert_eq!(rx.try_recv(), Ok(None));
    let mut t = s.begin(ReadAt::Latest).unwrap();
    t.put(i, b"k", b"v").unwrap();
    t.log_entry(s.log().reserve_one(), RawDoc::empty());
    t.on_commit(Box::new(move |ts| tx.send(Some(ts)).unwrap()));
    let ts = t.commit().unwrap();
    assert_eq!(rx.try_recv(), Ok(Some(ts)));
    assert!(rx.try_recv().is_err());
}

#[test]
fn untimestamped_rows_are_seen_by_every_snapshot() {
    let (s, i) = open();
    let old = s.begin(ReadAt::Latest).unwrap();
    let mut t = s.begin_local().unwrap();
    t.put(i, b"marker", b"1").unwrap();
    t.commit().unwrap();
    assert!(old.exists(i, b"marker").unwrap());
    let mut a = s.begin_local().unwrap();
    let mut b = s.begin_local().unwrap();
    a.put(i, b"marker", b"2").unwrap();
    a.commit().unwrap();
    assert_eq!(b.put(i, b"marker", b"3").unwrap_err().code, ErrorCode::WriteConflict);
}

#[test]
fn prepared_keys_block_those_who_ask_and_nobody_else() {
    let (s, i) = open();
    put(&s, i, b"k", b"0");
    put(&s, i, b"x", b"0");
    let mut t = s.begin(ReadAt::Latest).unwrap();
    t.put(i, b"k", b"1").unwrap();
    t.put_new(i, b"n", b"1").unwrap();
    let before = s.last_committed();
    t.log_entry(s.log().reserve_one(), RawDoc::empty());
    let prepared = t.prepare().unwrap();
    assert!(prepared.prepare_ts() > before);
    let strict = BeginOptions { on_prepared: OnPrepared::Conflict };
    let r = s.begin_with(ReadAt::Latest, strict).unwrap();
    assert_eq!(r.get(i, b"k").unwrap_err().code, PREPARE_CONFLICT);
    assert!(r.get(i, b"x").unwrap().is_some());
    let mut c = r.scan(i, Bound::Included(b"l"), Bound::Unbounded, Dir::Forward).unwrap();
    assert!(c.next().is_err(), "the prepared insert of n lies before x");
    let mut c = r.scan(i, Bound::Included(b"o"), Bound::Unbounded, Dir::Forward).unwrap();
    assert_eq!(c.next().unwrap().unwrap().0.to_vec(), b"x");
    assert!(c.next().unwrap().is_none());
    let old = s.begin_with(ReadAt::At(before), strict).unwrap();
    assert_eq!(old.get(i, b"k").unwrap().unwrap().to_vec(), b"0");
    assert_eq!(get(&s, ReadAt::Latest, i, b"k").as_deref(), Some(&b"0"[..]));
    let mut w = s.begin(ReadAt::Latest).unwrap();
    assert_eq!(w.put(i, b"n", b"2").unwrap_err().code, ErrorCode::WriteConflict);
    drop(w);
    let slot = s.log().reserve_one();
    let commit_ts = slot.ts();
    prepared.commit(commit_ts, Decision::Here(slot, RawDoc::empty())).unwrap();
    assert_eq!(get(&s, ReadAt::Latest, i, b"n").as_deref(), Some(&b"1"[..]));
    assert_eq!(get(&s, ReadAt::At(Timestamp(commit_ts.0 - 1)), i, b"n"), None);
}

#[test]
fn an_aborted_prepare_frees_its_keys() {
    let (s, i) = open();
    let mut t = s.begin(ReadAt::Latest).unwrap();
    t.put(i, b"k", b"1").unwrap();
    t.log_entry(s.log().reserve_one(), RawDoc::empty());
    let prepared = t.prepare().unwrap();
    prepared.abort(Decision::Here(s.log().reserve_one(), RawDoc::empty()));
    let strict = BeginOptions { on_prepared: OnPrepared::Conflict };
    assert!(s.begin_with(ReadAt::Latest, strict).unwrap().get(i, b"k").unwrap().is_none());
    put(&s, i, b"k", b"2");
}

#[test]
fn reading_below_oldest_is_refused() {
    let (s, i) = open();
    let a = put(&s, i, b"k", b"0");
    let b = put(&s, i, b"k", b"1");
    s.set_stable(b);
    s.set_oldest(b);
    assert_eq!(s.begin(ReadAt::At(a)).err().unwrap().code, ErrorCode::SnapshotTooOld);
    assert!(s.begin(ReadAt::At(b)).is_ok());
}

#[test]
fn a_prepared_unit_takes_effect_at_its_commit_timestamp_and_is_there_from_its_entry_on() {
    let (s, i) = open();
    put(&s, i, b"k", b"0");
    let mut t = s.begin(ReadAt::Latest).unwrap();
    t.put(i, b"k", b"1").unwrap();
    t.put(i, b"n", b"1").unwrap();
    t.log_entry(s.log().reserve_one(), RawDoc::empty());
    let prepared = t.prepare().unwrap();
    let at = prepared.prepare_ts();
    // What comes meanwhile is stable, and in the tables.
    put(&s, i, b"other", b"1");
    let between = put(&s, i, b"other", b"2");
    s.set_stable(between);
    s.checkpoint().unwrap();
    let strict = BeginOptions { on_prepared: OnPrepared::Conflict };
    let waits = s.begin_with(ReadAt::At(between), strict).unwrap();
    let ignores = s.begin(ReadAt::At(between)).unwrap();
    let begun_before = s.begin_with(ReadAt::At(Timestamp(at.0 - 1)), strict).unwrap();
    assert_eq!(waits.get(i, b"k").unwrap_err().code, PREPARE_CONFLICT);
    let slot = s.log().reserve_one();
    let entry = slot.ts();
    prepared.commit(at, Decision::Here(slot, RawDoc::empty())).unwrap();
    let see = |t: &pando_storage::Txn, key: &[u8]| t.get(i, key).unwrap().map(|b| b.to_vec());
    assert_eq!(see(&waits, b"k").as_deref(), Some(&b"1"[..]), "who waited sees it");
    assert_eq!(see(&ignores, b"k").as_deref(), Some(&b"0"[..]), "who does not wait sees no part of it");
    assert_eq!(see(&begun_before, b"n"), None);
    for ts in [at, between, entry] {
        assert_eq!(get(&s, ReadAt::At(ts), i, b"k").as_deref(), Some(&b"1"[..]), "{ts}");
    }
    assert_eq!(get(&s, ReadAt::At(Timestamp(at.0 - 1)), i, b"k").as_deref(), Some(&b"0"[..]));
    drop((waits, ignores, begun_before));
    // Replaced, and all of it in the tables: the history knows the same.
    let replaced = put(&s, i, b"k", b"2");
    s.set_stable(replaced);
    s.checkpoint().unwrap();
    assert_eq!(get(&s, ReadAt::At(between), i, b"k").as_deref(), Some(&b"1"[..]));
    assert_eq!(get(&s, ReadAt::At(Timestamp(at.0 - 1)), i, b"k").as_deref(), Some(&b"0"[..]));
}

#[test]
fn a_commit_above_the_stable_timestamp_is_forgotten_by_a_rollback_whatever_its_own_timestamp() {
    let (s, i) = open();
    put(&s, i, b"k", b"0");
    let mut t = s.begin(ReadAt::Latest).unwrap();
    t.put(i, b"k", b"1").unwrap();
    t.log_entry(s.log().reserve_one(), RawDoc::empty());
    let prepared = t.prepare().unwrap();
    let at = prepared.prepare_ts();
    let stable = put(&s, i, b"other", b"1");
    s.set_stable(stable);
    prepared.commit(at, Decision::Here(s.log().reserve_one(), RawDoc::empty())).unwrap();
    s.checkpoint().unwrap();
    assert_eq!(s.recover_to_stable().unwrap(), stable);
    assert_eq!(get(&s, ReadAt::At(stable), i, b"k").as_deref(), Some(&b"0"[..]));
}

/// Three units of one key each: what one worker after the other has prepared of one transaction.
fn three_units(s: &Storage, i: Ident) -> PreparedTxn {
    let at = s.log().reserve_one().ts();
    let unit = |key: &[u8]| {
        let mut t = s.begin(ReadAt::Applied).unwrap();
        t.put(i, key, b"1").unwrap();
        t.prepare_again(at, at).unwrap()
    };
    let mut prepared = unit(b"a");
    prepared.join(unit(b"b")).unwrap();
    prepared.join(unit(b"c")).unwrap();
    assert_eq!(prepared.units(), 3);
    prepared
}
const KEYS: [&[u8]; 3] = [b"a", b"b", b"c"];

#[test]
fn one_decision_commits_all_units_of_a_prepared_transaction_in_one_moment() {
    let (s, i) = open();
    let before = put(&s, i, b"a", b"0");
    let prepared = three_units(&s, i);
    let at = prepared.prepare_ts();
    put(&s, i, b"other", b"1");
    let strict = BeginOptions { on_prepared: OnPrepared::Conflict };
    for key in KEYS {
        let waits = s.begin_with(ReadAt::Latest, strict).unwrap();
        assert_eq!(waits.get(i, key).unwrap_err().code, PREPARE_CONFLICT);
        let mut w = s.begin(ReadAt::Latest).unwrap();
        assert_eq!(w.put(i, key, b"2").unwrap_err().code, ErrorCode::WriteConflict);
    }
    let slot = s.log().reserve_one();
    let entry = slot.ts();
    prepared.commit(at, Decision::Here(slot, RawDoc::empty())).unwrap();
    for key in KEYS {
        for ts in [at, entry] {
            assert_eq!(get(&s, ReadAt::At(ts), i, key).as_deref(), Some(&b"1"[..]), "{ts}");
        }
        put(&s, i, key, b"2");
    }
    assert_eq!(get(&s, ReadAt::At(before), i, b"a").as_deref(), Some(&b"0"[..]));
}

#[test]
fn one_decision_gives_up_all_units_of_a_prepared_transaction() {
    let (s, i) = open();
    let by_entry = three_units(&s, i);
    by_entry.abort(Decision::Here(s.log().reserve_one(), RawDoc::empty()));
    let by_nothing = three_units(&s, i);
    drop(by_nothing);
    let strict = BeginOptions { on_prepared: OnPrepared::Conflict };
    for key in KEYS {
        assert_eq!(s.begin_with(ReadAt::Latest, strict).unwrap().get(i, key).unwrap(), None);
        put(&s, i, key, b"2");
    }
}

#[test]
fn units_of_two_prepared_transactions_are_not_joined() {
    let (s, i) = open();
    let mut one = three_units(&s, i);
    let mut t = s.begin(ReadAt::Applied).unwrap();
    t.put(i, b"d", b"1").unwrap();
    let at = s.log().reserve_one().ts();
    assert!(one.join(t.prepare_again(at, at).unwrap()).is_err());
    put(&s, i, b"d", b"2");
}
