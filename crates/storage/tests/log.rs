//! The log on a failing disk: torn tails, damage, failed syncs, cuts at both ends.

// Files are synced in real time.
#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

mod common;

use common::{checkpoint, count, get, mem, open_on, put, replay};
use pando_base::Timestamp;
use pando_bson::DocBuilder;
use pando_env::Disk;
use pando_storage::testing::{FaultyDisk, SeededRng};
use pando_storage::{Decision, Ident, IdentKind, Options, ReadAt, Storage};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

fn world(opts: Options) -> (Arc<FaultyDisk>, Storage, Ident) {
    let disk = Arc::new(FaultyDisk::new(11));
    let (s, _) = open_on(disk.clone(), opts);
    let i = s.create_ident(IdentKind::Records).unwrap();
    (disk, s, i)
}

fn small_log() -> Options {
    Options { oplog_bytes_max: 1 << 20, ..mem() }
}

fn newest_log_file(disk: &FaultyDisk) -> String {
    disk.paths().into_iter().rfind(|p| p.contains("oplog.")).unwrap()
}

/// A vote is told to others only after this sync, so it must not be called good by a second try, nor by a checkpoint
/// that has taken it along and failed.
#[test]
fn a_failed_sync_of_the_local_log_fails_for_ever() {
    for by_checkpoint in [false, true] {
        let (disk, s, i) = world(mem());
        let mut vote = s.begin_local().unwrap();
        vote.put(i, b"vote", b"term 7").unwrap();
        vote.commit().unwrap();
        disk.lose_sync_in(0);
        if by_checkpoint {
            assert!(s.checkpoint().is_err());
        } else {
            assert!(s.sync_local().is_err());
        }
        for _ in 0..2 {
            assert!(s.sync_local().is_err(), "the units that the first try took are not on disk");
            assert!(s.checkpoint().is_err() && s.note_log_ends().is_err());
        }
        assert!(s.begin_local().unwrap().commit().is_err());
        assert!(s.log().poisoned().is_some());
        drop(s);
        disk.crash();
        let (s, _) = open_on(disk.clone(), mem());
        assert_eq!(get(&s, ReadAt::Latest, i, b"vote"), None);
    }
}

#[test]
fn a_log_of_a_later_version_is_refused_with_what_to_do_and_left_alone() {
    let (disk, s, i) = world(mem());
    put(&s, i, b"k", Some(b"v"));
    s.log().flush_once().unwrap();
    drop(s);
    let path = newest_log_file(&disk);
    disk.open(&path, false).unwrap().write_at(7, b"3").unwrap();
    let before = disk.bytes(&path);
    let (env, _) = pando_storage::testing::env_on(disk.clone(), 1);
    let e = Storage::open(env, mem()).err().unwrap();
    assert_eq!(e.code, pando_base::ErrorCode::CannotUpgrade);
    assert!(e.message.contains(&path) && e.message.contains("Start the version that wrote it"), "{e}");
    assert_eq!(disk.bytes(&path), before);
}

/// The tables' rows without the log and checkpoint file that say what they are.
#[test]
fn tables_without_their_journal_are_refused() {
    let (disk, s, i) = world(mem());
    put(&s, i, b"k", Some(b"v"));
    s.set_stable(s.all_durable());
    s.checkpoint().unwrap();
    drop(s);
    for path in disk.paths().into_iter().filter(|p| p.starts_with("journal/")) {
        disk.remove(&path).unwrap();
    }
    let (env, _) = pando_storage::testing::env_on(disk.clone(), 1);
    let e = Storage::open(env, mem()).err().unwrap();
    assert!(e.message.contains("journal/checkpoint is missing"), "{e}");
}

/// A rollback's cut is told to the checkpoint file before the log is shorter: whenever the power goes, the next start
/// finds what it expects.
#[test]
fn power_lost_while_the_log_is_cut_leaves_a_log_that_opens() {
    for n in 0..6 {
        let (disk, s, i) = world(mem());
        for k in 0..20u8 {
            put(&s, i, &[k], Some(&[k; 100]));
        }
        s.log().flush_once().unwrap();
        s.note_log_ends().unwrap();
        let mut log = s.log().read(Bound::Unbounded, false);
        let cut = log.next().unwrap().unwrap().0;
        drop(log);
        disk.fail_sync_in(n);
        let done = s.cut_log(cut);
        drop(s);
        disk.crash();
        let (s, _) = open_on(disk.clone(), mem());
        assert!(done.is_err() || s.log().last() == cut, "sync {n}");
        assert!(s.log().last() >= cut);
    }
}

/// Killed after the checkpoint file was told of the cut and before its new name was durable: the next start finds the new
/// one, cuts the log, and a loss of power must not bring the old one back.
#[test]
fn a_checkpoint_file_that_a_start_has_found_does_not_give_way_to_an_older_one() {
    for seed in 0..20 {
        let disk = Arc::new(FaultyDisk::new(seed));
        let (s, _) = open_on(disk.clone(), mem());
        let i = s.create_ident(IdentKind::Records).unwrap();
        for k in 0..20u8 {
            put(&s, i, &[k], Some(&[k; 100]));
        }
        s.log().flush_once().unwrap();
        s.note_log_ends().unwrap();
        let cut = s.log().read(Bound::Unbounded, false).next().unwrap().unwrap().0;
        disk.fail_sync_dir_in(0);
        assert!(s.cut_log(cut).is_err());
        drop(s);
        disk.kill();
        disk.mend();
        let (s, _) = open_on(disk.clone(), mem());
        s.cut_log(cut).unwrap();
        drop(s);
        disk.crash();
        let (s, _) = open_on(disk.clone(), mem());
        assert_eq!(s.log().last(), cut, "seed {seed}");
    }
}

/// What the checkpoint file calls stable is taken for durable by the next start.
#[test]
fn a_checkpoint_never_notes_a_stable_timestamp_above_what_is_synced() {
    const STABLE_AT: usize = 32;
    let (disk, s, i) = world(mem());
    let stop = std::sync::atomic::AtomicBool::new(false);
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(relaxed) {
                put(&s, i, b"row", Some(b"value"));
                s.set_stable(s.all_durable());
                std::thread::sleep(std::time::Duration::from_micros(20));
            }
        });
        for _ in 0..500 {
            s.log().flush_once().unwrap();
            s.checkpoint().unwrap();
            let file = disk.bytes("journal/checkpoint");
            let noted = file.get(STABLE_AT..STABLE_AT + 8).and_then(|b| b.first_chunk());
            let noted = noted.map_or(0, |b| u64::from_le_bytes(*b));
            let durable = s.log().durable();
            if noted > durable.0 {
                stop.store(true, relaxed);
            }
            assert!(noted <= durable.0, "{} is not synced, {durable} is", Timestamp(noted));
        }
        stop.store(true, relaxed);
    });
}

#[test]
fn what_was_synced_survives_lost_power_and_what_was_not_is_gone_whole() {
    for seed in 0..40u64 {
        let disk = Arc::new(FaultyDisk::new(seed));
        let (s, _) = open_on(disk.clone(), mem());
        let i = s.create_ident(IdentKind::Records).unwrap();
        for n in 0..50u8 {
            put(&s, i, &[n], Some(&[n; 300]));
        }
        s.log().flush_once().unwrap();
        let durable = s.log().durable();
        for n in 50..100u8 {
            put(&s, i, &[n], Some(&[n; 300]));
        }
        if seed % 2 == 0 {
            // Written, perhaps torn, never acknowledged.
            disk.fail_sync_in(0);
            assert!(s.log().flush_once().is_err());
        }
        drop(s);
        disk.crash();
        let (s, _) = open_on(disk.clone(), mem());
        assert!(s.log().last() >= durable);
        replay(&s);
        let n = count(&s, ReadAt::Latest, i);
        assert!((50..=100).contains(&n), "{n}");
        for k in 0..n as u8 {
            assert_eq!(get(&s, ReadAt::Latest, i, &[k]).unwrap(), [k; 300], "a prefix survives");
        }
        // The log goes on after the cut.
        put(&s, i, b"more", Some(b"1"));
        s.log().flush_once().unwrap();
        disk.crash();
        let (s, _) = open_on(disk, mem());
        replay(&s);
        assert_eq!(count(&s, ReadAt::Latest, i), n + 1);
    }
}

#[test]
fn a_failed_sync_poisons_the_log_and_nothing_commits_after_it() {
    let (disk, s, i) = world(mem());
    put(&s, i, b"k", Some(b"1"));
    disk.fail_sync_in(0);
    assert!(s.log().flush_once().is_err());
    assert!(s.log().poisoned().is_some());
    assert!(s.log().flush_once().is_err(), "a later sync that works proves nothing");
    let mut t = s.begin(ReadAt::Latest).unwrap();
    t.put(i, b"k", b"2").unwrap();
    assert!(t.commit().is_err());
    assert!(s.log().durable() < s.log().last());
}

/// Whoever keeps a file about units of its own writes it when a unit is certain, and brings it to the disk before the unit.
#[test]
fn what_is_told_of_a_unit_reaches_the_disk_before_it() {
    let (_disk, s, i) = world(mem());
    let told = Arc::new(AtomicU64::new(0));
    let synced: Arc<Mutex<Vec<(u64, Timestamp)>>> = Arc::default();
    let (log, seen, at_sync) = (s.log().clone(), told.clone(), synced.clone());
    s.log().before_sync(move || at_sync.lock().unwrap().push((seen.load(SeqCst), log.durable())));
    s.log().flush_once().unwrap();
    assert!(synced.lock().unwrap().is_empty(), "nothing was to be synced");
    let before = s.log().durable();
    let mut t = s.begin(ReadAt::Latest).unwrap();
    t.put(i, b"k", b"1").unwrap();
    let mut doc = DocBuilder::new();
    doc.i64("i", i64::from(i.0)).binary("k", 0, b"k").binary("v", 0, b"1");
    let slot = s.log().reserve_one();
    let ts = slot.ts();
    t.log_entry(slot, &doc.finish());
    t.commit_with(|| {
        assert_eq!(get(&s, ReadAt::Latest, i, b"k"), None, "nobody sees it yet");
        s.log().flush_once().unwrap();
        assert!(s.log().durable() < ts, "and the disk does not have it");
        told.store(1, SeqCst);
    })
    .unwrap();
    assert_eq!(get(&s, ReadAt::Latest, i, b"k").as_deref(), Some(&b"1"[..]));
    s.log().flush_once().unwrap();
    assert_eq!(*synced.lock().unwrap(), [(1, before)]);
    assert_eq!(s.log().durable(), ts);
}

#[test]
fn a_full_disk_is_reported_as_such() {
    let (disk, s, i) = world(mem());
    s.log().flush_once().unwrap();
    disk.set_capacity(Some(4096));
    put(&s, i, b"k", Some(&[1; 8192]));
    assert_eq!(s.log().flush_once().unwrap_err().code, pando_base::ErrorCode::OutOfDiskSpace);
}

#[test]
fn damage_before_synced_entries_is_an_error_that_names_the_file() {
    let (disk, s, i) = world(mem());
    for n in 0..10u8 {
        put(&s, i, &[n], Some(&[n; 100]));
        s.log().flush_once().unwrap();
    }
    drop(s);
    let path = newest_log_file(&disk);
    disk.damage(&path, 500);
    let (env, _) = pando_storage::testing::env_on(disk, 1);
    let e = Storage::open(env, mem()).err().expect("damage in the middle");
    assert!(e.message.contains(&path), "{e}");
}

#[test]
fn damage_in_the_last_unsynced_batch_is_a_torn_tail() {
    let (disk, s, i) = world(mem());
    put(&s, i, b"a", Some(b"1"));
    s.log().flush_once().unwrap();
    for n in 0..10u8 {
        put(&s, i, &[n], Some(&[n; 100]));
    }
    s.log().flush_once().unwrap();
    drop(s);
    let path = newest_log_file(&disk);
    let len = disk.file_len(&path);
    disk.damage(&path, len - 700);
    let (s, _) = open_on(disk, mem());
    replay(&s);
    let n = count(&s, ReadAt::Latest, i);
    assert!((2..9).contains(&n), "{n}: the entries before the damage are kept");
}

#[test]
fn the_log_is_read_from_any_place_across_files_and_memory_in_both_directions() {
    let (disk, s, i) = world(small_log());
    let mut all: Vec<Timestamp> = Vec::new();
    for n in 0..4000u32 {
        all.push(put(&s, i, &n.to_be_bytes(), Some(&[1; 200])));
        if n % 97 == 0 {
            s.log().flush_once().unwrap();
        }
    }
    assert!(s.stats().log_files > 5);
    let check = |s: &Storage| {
        for at in (0..all.len()).step_by(331) {
            let mut c = s.log().read(Bound::Included(all[at]), false);
            for want in all[at..].iter().take(400) {
                assert_eq!(c.next().unwrap().unwrap().0, *want);
            }
            let mut c = s.log().read(Bound::Excluded(all[at]), true);
            for want in all[..at].iter().rev().take(400) {
                assert_eq!(c.next().unwrap().unwrap().0, *want);
            }
            let between = Timestamp(all[at].0 - 1);
            assert_eq!(s.log().read(Bound::Excluded(between), false).next().unwrap().unwrap().0, all[at]);
        }
        let mut c = s.log().read(Bound::Unbounded, false);
        assert_eq!(std::iter::from_fn(|| c.next().unwrap()).map(|(t, _)| t).collect::<Vec<_>>(), all);
    };
    check(&s);
    s.log().flush_once().unwrap();
    drop(s);
    let (s, _) = open_on(disk, small_log());
    check(&s);
    let mut tail = s.log().read(Bound::Excluded(*all.last().unwrap()), false);
    assert!(tail.next().unwrap().is_none());
    let ts = put(&s, i, b"new", Some(b"1"));
    assert!(tail.next().unwrap().is_none(), "a walk ends where it was made");
    tail.refresh();
    assert_eq!(tail.next().unwrap().unwrap().0, ts);
}

#[test]
fn the_front_goes_by_whole_files_never_past_the_checkpoint_or_a_prepared_unit() {
    let (_, s, i) = world(small_log());
    let fill = |from: u32| {
        for n in from..from + 4000 {
            put(&s, i, &n.to_be_bytes(), Some(&[1; 500]));
            if n % 100 == 0 {
                s.log().flush_once().unwrap();
            }
        }
        s.log().flush_once().unwrap();
    };
    fill(0);
    let first = s.log().first();
    assert!(s.log().bytes() > 1 << 20);
    assert_eq!(s.log().first(), first, "no checkpoint, no cut");
    checkpoint(&s);
    assert!(s.log().first() > first);
    let cut = s.log().bytes();
    assert!((1 << 20..(1 << 20) + (1 << 18)).contains(&cut), "{cut}");
    let mut t = s.begin(ReadAt::Latest).unwrap();
    t.put(i, b"prepared", b"1").unwrap();
    let entry = pando_bson::doc! {"i": 0}.to_raw();
    t.log_entry(s.log().reserve_one(), &entry);
    let prepared = t.prepare().unwrap();
    let at = prepared.prepare_ts();
    fill(10_000);
    checkpoint(&s);
    assert!(s.log().first() <= at, "the prepare entry is kept");
    let decided = s.log().reserve_one();
    prepared.abort(Decision::Here(decided, &entry));
    fill(20_000);
    checkpoint(&s);
    assert!(s.log().first() > at);
}

#[test]
fn cutting_the_end_leaves_a_log_that_goes_on_from_there() {
    let (disk, s, i) = world(small_log());
    let mut all = Vec::new();
    for n in 0..3000u32 {
        all.push(put(&s, i, &n.to_be_bytes(), Some(&[1; 300])));
        if n % 50 == 0 {
            s.log().flush_once().unwrap();
        }
    }
    let stable = all[100];
    s.set_stable(stable);
    assert_eq!(s.recover_to_stable().unwrap(), stable);
    s.cut_log(all[700]).unwrap();
    assert_eq!(count(&s, ReadAt::Applied, i), 101);
    assert_eq!(s.log().last(), all[700]);
    assert_eq!(s.log().durable(), all[700]);
    let again = put(&s, i, b"again", Some(b"1"));
    assert!(again > *all.last().unwrap(), "time does not run back");
    s.log().flush_once().unwrap();
    drop(s);
    disk.crash();
    let (s, _) = open_on(disk.clone(), small_log());
    assert_eq!(s.log().last(), again);
    let mut c = s.log().read(Bound::Unbounded, false);
    assert_eq!(std::iter::from_fn(|| c.next().unwrap()).count(), 702);
    s.cut_log(Timestamp(0)).unwrap();
    assert!(s.log().first().is_zero() && s.log().last().is_zero());
    put(&s, i, b"first", Some(b"1"));
    s.log().flush_once().unwrap();
    assert!(disk.list("journal").unwrap().len() <= 3);
}

#[test]
fn an_unused_reservation_is_no_hole_for_durability() {
    let (_, s, i) = world(mem());
    put(&s, i, b"k", Some(b"1"));
    let slot = s.log().reserve_one();
    let ts = slot.ts();
    drop(slot);
    s.log().flush_once().unwrap();
    assert!(s.log().durable() >= ts);
}

#[test]
fn an_entry_of_another_member_where_a_place_was_given_back_reaches_the_disk() {
    let (disk, s, i) = world(mem());
    let last = put(&s, i, b"k", Some(b"1"));
    let given_back = s.log().reserve(3).last_ts();
    s.log().flush_once().unwrap();
    assert!(s.log().durable() >= given_back && s.log().last() == last);
    assert_eq!(s.log().durable_entry(), last, "a position names an entry");
    // This member steps down; the next primary has never heard of those places.
    s.log().follow().unwrap();
    let entry = DocBuilder::new().finish();
    let at = Timestamp(last.0 + 1);
    s.log().append_foreign([(at, entry.as_bytes().into())]).unwrap();
    assert!(s.log().durable() < at && s.all_durable() < at, "neither durable nor applied yet");
    s.log().flush_once().unwrap();
    assert!(s.log().durable() >= at);
    drop(s);
    disk.crash();
    let (s, _) = open_on(disk, mem());
    assert_eq!(s.log().last(), at);
}

fn commit_in(s: &Storage, i: Ident, slot: pando_storage::Slot, n: u8) -> Timestamp {
    let ts = slot.ts();
    let mut t = s.begin(ReadAt::Latest).unwrap();
    t.put(i, &ts.0.to_be_bytes(), &[n]).unwrap();
    let mut doc = DocBuilder::new();
    doc.i64("n", i64::from(n));
    t.log_entry(slot, &doc.finish());
    t.commit().unwrap();
    ts
}

/// Writers leave holes: reserved places that are still open when power is lost. Nothing after the first of them is kept.
#[test]
fn no_entry_after_a_lost_hole_is_kept() {
    let mut holes = 0;
    for seed in 0..60u64 {
        let disk = Arc::new(FaultyDisk::new(seed));
        let rng = SeededRng::new(seed + 7);
        let (s, _) = open_on(disk.clone(), small_log());
        let i = s.create_ident(IdentKind::Records).unwrap();
        let mut open = Vec::new();
        let mut entries = Vec::new();
        for n in 0..120u8 {
            match rng.below(8) {
                0 | 1 => open.push(s.log().reserve_one()),
                2 if !open.is_empty() => {
                    // Filled late, or given back.
                    let slot = open.swap_remove(rng.below(open.len() as u64) as usize);
                    if rng.below(2) == 0 {
                        entries.push(commit_in(&s, i, slot, n));
                    }
                }
                3 => s.log().flush_once().unwrap(),
                _ => {
                    let slot = s.log().reserve_one();
                    entries.push(commit_in(&s, i, slot, n));
                }
            }
        }
        if rng.below(2) == 0 {
            s.log().flush_once().unwrap();
        }
        let hole = open.iter().map(|slot| slot.ts()).min();
        let synced = entries.iter().copied().filter(|ts| *ts <= s.log().durable()).max();
        holes += usize::from(hole.is_some());
        // Lost with the process, not given back in order.
        open.into_iter().for_each(std::mem::forget);
        drop(s);
        disk.crash();
        let (s, _) = open_on(disk, small_log());
        let mut log = s.log().read(Bound::Unbounded, false);
        let mut kept = Vec::new();
        while let Some((ts, _)) = log.next().unwrap() {
            kept.push(ts);
        }
        entries.sort_unstable();
        let last = kept.last().copied().unwrap_or_default();
        let expected: Vec<Timestamp> = entries.into_iter().take_while(|ts| *ts <= last).collect();
        assert_eq!(kept, expected, "seed {seed}: a gap");
        assert!(hole.is_none_or(|h| last < h), "seed {seed}: an entry after a hole");
        assert!(synced.is_none_or(|at| last >= at), "seed {seed}: a synced entry is gone");
    }
    assert!(holes > 20, "{holes}");
}

/// What is told as of a checkpoint is stored after it: until then nothing behind it may be taken for told.
#[test]
fn what_is_counted_stays_behind_a_checkpoint_under_way() {
    let (_disk, s, i) = world(mem());
    let first = put(&s, i, b"k", Some(b"1"));
    s.log().flush_once().unwrap();
    s.set_stable(first);
    let under_way = s.begin_checkpoint();
    let second = put(&s, i, b"k", Some(b"2"));
    s.log().flush_once().unwrap();
    s.set_stable(second);
    assert_eq!(s.counted(), first);
    drop(under_way);
    assert_eq!(s.counted(), second);
}
