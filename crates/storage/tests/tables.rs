//! What checkpoints, history, drops, bulk loads and many idents do to the tables, on both backends.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, checkpoint, count, get, lsm, mem, open_on, put, record_tables, replay};
use pando_base::{ErrorCode, Timestamp};
use pando_bson::RawDoc;
use pando_env::Disk;
use pando_storage::testing::FaultyDisk;
use pando_storage::{Dir, Ident, IdentKind, Options, ReadAt, Storage};
use std::ops::Bound;
use std::sync::Arc;

/// Runs a test on both backends.
fn on_both(name: &str, test: impl Fn(Storage)) {
    test(open_on(Arc::new(FaultyDisk::new(1)), mem()).0);
    let folder = Folder::new(name);
    test(open_on(folder.0.clone(), lsm()).0);
}

#[test]
fn thousands_of_idents_share_the_same_files() {
    let folder = Folder::new("idents");
    let (s, _) = open_on(folder.0.clone(), lsm());
    let idents: Vec<_> = (0..2500)
        .flat_map(|_| {
            [s.create_ident(IdentKind::Records).unwrap(), s.create_ident(IdentKind::Index).unwrap()]
        })
        .collect();
    for i in &idents {
        put(&s, *i, b"k", Some(&i.0.to_be_bytes()));
    }
    checkpoint(&s);
    let files = record_tables(&folder).len();
    assert!(files <= 16, "{files}");
    for i in idents.iter().step_by(97) {
        assert_eq!(get(&s, ReadAt::Latest, *i, b"k").unwrap(), i.0.to_be_bytes());
        assert_eq!(count(&s, ReadAt::Latest, *i), 1);
    }
    drop(s);
    let (s, _) = open_on(folder.0.clone(), lsm());
    assert_eq!(get(&s, ReadAt::Latest, idents[4999], b"k").unwrap(), idents[4999].0.to_be_bytes());
    assert!(s.create_ident(IdentKind::Records).unwrap() > idents[4999]);
}

#[test]
fn tables_never_hold_a_row_above_stable() {
    let disk = Arc::new(FaultyDisk::new(1));
    let (s, _) = open_on(disk.clone(), mem());
    let i = s.create_ident(IdentKind::Records).unwrap();
    let a = put(&s, i, b"a", Some(b"1"));
    put(&s, i, b"a", Some(b"2"));
    put(&s, i, b"b", Some(b"1"));
    s.set_stable(a);
    assert_eq!(s.checkpoint().unwrap(), a);
    assert_eq!(get(&s, ReadAt::Latest, i, b"a").unwrap(), b"2");
    drop(s);
    disk.kill();
    let (s, _) = open_on(disk, mem());
    assert_eq!(s.recovery_ts(), a);
    assert_eq!(get(&s, ReadAt::Applied, i, b"a").unwrap(), b"1");
    assert_eq!(get(&s, ReadAt::Applied, i, b"b"), None);
    replay(&s);
    assert_eq!(get(&s, ReadAt::Latest, i, b"a").unwrap(), b"2");
}

#[test]
fn an_older_entry_replayed_over_a_newer_stored_row_is_void() {
    on_both("replay", |s| {
        let i = s.create_ident(IdentKind::Records).unwrap();
        let a = put(&s, i, b"k", Some(b"1"));
        let b = put(&s, i, b"k", Some(b"2"));
        checkpoint(&s);
        s.start_replay();
        for (ts, value) in [(a, &b"1"[..]), (b, b"other")] {
            let mut t = s.begin(ReadAt::Applied).unwrap();
            t.set_commit_ts(ts);
            t.put(i, b"k", value).unwrap();
            t.put_new(i, b"new", value).unwrap();
            t.commit().unwrap();
        }
        s.end_replay();
        assert_eq!(
            get(&s, ReadAt::Latest, i, b"k").unwrap(),
            b"2",
            "row by row, whatever else the unit holds"
        );
        assert_eq!(get(&s, ReadAt::Latest, i, b"new").unwrap(), b"other");
    });
}

#[test]
fn replaced_versions_go_once_oldest_has_passed_and_deleted_rows_leave_no_trace() {
    on_both("history", |s| {
        let i = s.create_ident(IdentKind::Records).unwrap();
        let mut at = Vec::new();
        for round in 0..10u8 {
            for k in 0..100u8 {
                at.push(put(&s, i, &[k], Some(&[round; 100])));
            }
            checkpoint(&s);
        }
        for k in 0..100u8 {
            put(&s, i, &[k], None);
        }
        checkpoint(&s);
        assert_eq!(get(&s, ReadAt::At(at[350]), i, &[50]).unwrap(), [3; 100]);
        assert_eq!(count(&s, ReadAt::At(at[999]), i), 100);
        assert_eq!(count(&s, ReadAt::Latest, i), 0);
        s.set_oldest(s.stable());
        put(&s, i, b"one more", Some(b"1"));
        checkpoint(&s);
        s.compact_all().unwrap();
        let stats = s.stats();
        assert_eq!(stats.history.bytes, 0, "{stats:?}");
        assert!(stats.records.bytes < 2000, "{stats:?}");
        assert_eq!(s.begin(ReadAt::At(at[350])).err().unwrap().code, ErrorCode::SnapshotTooOld);
    });
}

#[test]
fn an_open_snapshot_keeps_its_versions_though_oldest_passes_it() {
    on_both("pin", |s| {
        let i = s.create_ident(IdentKind::Records).unwrap();
        put(&s, i, b"k", Some(b"old"));
        let reader = s.begin(ReadAt::Latest).unwrap();
        for n in 0..50u8 {
            put(&s, i, b"k", Some(&[n]));
            if n % 10 == 0 {
                checkpoint(&s);
                s.set_oldest(s.stable());
            }
        }
        checkpoint(&s);
        s.compact_all().unwrap();
        assert_eq!(reader.get(i, b"k").unwrap().unwrap().to_vec(), b"old");
        drop(reader);
        put(&s, i, b"x", Some(b"1"));
        s.set_stable(s.all_durable());
        s.set_oldest(s.stable());
        checkpoint(&s);
        s.compact_all().unwrap();
        assert_eq!(s.stats().history.bytes, 0);
    });
}

#[test]
fn history_beyond_its_bound_is_given_up_and_its_readers_are_told() {
    let folder = Folder::new("bound");
    let (s, _) = open_on(folder.0.clone(), Options { history_bytes_max: 1 << 20, ..lsm() });
    let i = s.create_ident(IdentKind::Records).unwrap();
    put(&s, i, b"k", Some(b"0"));
    let old = s.begin(ReadAt::Latest).unwrap();
    for round in 0..40u8 {
        for k in 0..40u8 {
            put(&s, i, &[k], Some(&[round; 4000]));
        }
        checkpoint(&s);
        assert!(s.stats().history.bytes < 2 << 20, "{:?}", s.stats());
    }
    assert_eq!(old.get(i, b"k").unwrap_err().code, ErrorCode::SnapshotTooOld);
    assert!(old.scan(i, Bound::Unbounded, Bound::Unbounded, Dir::Forward).is_err());
    assert_eq!(get(&s, ReadAt::Latest, i, b"\x07").unwrap(), [39; 4000]);
}

#[test]
fn memory_is_bounded_when_stable_stands_still() {
    let disk = Arc::new(FaultyDisk::new(1));
    let (s, _) = open_on(disk, Options { memtable_bytes: 64 << 10, ..mem() });
    let i = s.create_ident(IdentKind::Records).unwrap();
    let mut refused = None;
    for n in 0..10_000u32 {
        let mut t = s.begin(ReadAt::Latest).unwrap();
        t.put(i, &n.to_be_bytes(), &[0; 1000]).unwrap();
        t.log_entry(s.log().reserve_one(), RawDoc::empty());
        if let Err(e) = t.commit() {
            refused = Some(e);
            break;
        }
        assert!(n < 100 || s.wants_checkpoint());
    }
    assert_eq!(refused.unwrap().code, ErrorCode(365));
    s.checkpoint().unwrap();
    assert!(s.wants_checkpoint(), "nothing may be flushed above stable");
    checkpoint(&s);
    assert!(!s.wants_checkpoint());
    put(&s, i, b"k", Some(b"1"));
}

#[test]
fn memory_stays_near_its_budget_while_stable_stands_still_and_a_rollback_finds_its_way_back() {
    const BUDGET: usize = 64 << 10;
    let folder = Folder::new("stuck");
    let (s, _) = open_on(folder.0.clone(), Options { memtable_bytes: BUDGET, ..lsm() });
    let i = s.create_ident(IdentKind::Records).unwrap();
    let before = put(&s, i, b"k", Some(b"old"));
    s.log().flush_once().unwrap();
    s.set_stable(before);
    let mut most = 0;
    for n in 0..4000u32 {
        // As a writer and the checkpoint task do together.
        while !s.has_room() {
            s.checkpoint().unwrap();
        }
        put(&s, i, &n.to_be_bytes(), Some(&[0; 1000]));
        put(&s, i, b"k", Some(&n.to_be_bytes()));
        most = most.max(s.stats().memtable_bytes);
    }
    assert!(most < 2 * BUDGET + 4096, "{most} bytes of rows in memory");
    assert_eq!(s.stats().refused, 0);
    assert_eq!(count(&s, ReadAt::Latest, i), 4001);
    assert_eq!(s.recover_to_stable().unwrap(), before);
    assert_eq!(count(&s, ReadAt::Latest, i), 1);
    assert_eq!(get(&s, ReadAt::Latest, i, b"k").unwrap(), b"old");
}

#[test]
fn rows_that_came_during_a_checkpoint_are_left_to_the_next_one() {
    let disk = Arc::new(FaultyDisk::new(1));
    let (s, _) = open_on(disk, Options { memtable_bytes: 64 << 10, ..mem() });
    let i = s.create_ident(IdentKind::Records).unwrap();
    let fill = |n: std::ops::Range<u32>| {
        n.fold(None, |_, n| Some(put(&s, i, &n.to_be_bytes(), Some(&[0; 1000])))).unwrap()
    };
    let first = fill(0..180);
    fill(180..330);
    s.log().flush_once().unwrap();
    s.set_stable(first);
    s.checkpoint().unwrap();
    assert!(!s.has_room(), "what came later stays");
    assert_eq!(s.checkpoint().unwrap(), first, "and is no reason to go past stable");
    assert!(s.checkpoint().unwrap() > first, "stable does stand still");
    assert!(s.has_room());
}

#[test]
fn a_scan_goes_on_though_compaction_has_replaced_the_tables_under_it() {
    let folder = Folder::new("scan-compact");
    let (s, _) = open_on(folder.0.clone(), lsm());
    let (i, other) =
        (s.create_ident(IdentKind::Records).unwrap(), s.create_ident(IdentKind::Records).unwrap());
    for round in 0..3u32 {
        (0..1000u32).for_each(|n| {
            put(&s, i, &(n * 3 + round).to_be_bytes(), Some(&[7; 1000]));
        });
        checkpoint(&s);
    }
    for dir in [Dir::Forward, Dir::Backward] {
        let t = s.begin(ReadAt::Latest).unwrap();
        let mut rows = t.scan(i, Bound::Unbounded, Bound::Unbounded, dir).unwrap();
        let mut n = 0;
        while rows.next().unwrap().is_some() {
            n += 1;
            // Old tables go when newer versions have replaced the ones that name them.
            for round in 0..if n == 5 { 4u8 } else { 0 } {
                put(&s, other, &[round], Some(b"x"));
                checkpoint(&s);
                s.compact_all().unwrap();
            }
        }
        assert_eq!(n, 3000);
    }
}

#[test]
fn a_bulk_load_given_up_takes_its_files_along() {
    let folder = Folder::new("bulk-files");
    let (s, _) = open_on(folder.0.clone(), lsm());
    let i = s.create_ident(IdentKind::Index).unwrap();
    let files = || std::fs::read_dir(folder.0.root().join("tables/indexes/tables")).map_or(0, |d| d.count());
    let mut load = s.bulk(i, put(&s, i, b"a", Some(b"1"))).unwrap();
    let row = vec![7; 1 << 20];
    for n in 0..40u32 {
        load.push(&n.to_be_bytes(), &row).unwrap();
    }
    assert!(files() > 0, "tables are written as rows come");
    drop(load);
    assert_eq!(files(), 0);
}

#[test]
fn a_dropped_ident_can_be_read_until_oldest_passes_and_then_costs_nothing() {
    on_both("drop", |s| {
        let (i, j) =
            (s.create_ident(IdentKind::Records).unwrap(), s.create_ident(IdentKind::Records).unwrap());
        for n in 0..500u32 {
            put(&s, i, &n.to_be_bytes(), Some(&[1; 200]));
        }
        let before = put(&s, j, b"k", Some(b"1"));
        checkpoint(&s);
        let at = put(&s, j, b"catalog row gone", Some(b"1"));
        s.drop_ident(i, at);
        checkpoint(&s);
        assert_eq!(count(&s, ReadAt::At(before), i), 500);
        s.set_oldest(at);
        put(&s, j, b"more", Some(b"1"));
        checkpoint(&s);
        while s.step().unwrap() {}
        s.compact_all().unwrap();
        assert!(s.stats().records.bytes < 3000, "{:?}", s.stats());
        assert_eq!(count(&s, ReadAt::Latest, j), 3);
    });
}

#[test]
fn a_drop_is_remembered_through_a_restart() {
    let folder = Folder::new("drop-restart");
    let (s, _) = open_on(folder.0.clone(), lsm());
    let (i, j) = (s.create_ident(IdentKind::Records).unwrap(), s.create_ident(IdentKind::Records).unwrap());
    put(&s, i, b"k", Some(&[1; 5000]));
    let at = put(&s, j, b"k", Some(b"1"));
    s.drop_ident(i, at);
    checkpoint(&s);
    drop(s);
    let (s, _) = open_on(folder.0.clone(), lsm());
    let ts = put(&s, j, b"l", Some(b"1"));
    s.set_stable(ts);
    s.set_oldest(ts);
    s.checkpoint().unwrap();
    s.compact_all().unwrap();
    assert!(s.stats().records.bytes < 3000, "{:?}", s.stats());
}

#[test]
fn a_bulk_load_appears_whole_and_loses_against_rows_written_meanwhile() {
    on_both("bulk", |s| {
        let (i, j) = (s.create_ident(IdentKind::Index).unwrap(), s.create_ident(IdentKind::Records).unwrap());
        let from = put(&s, j, b"a", Some(b"1"));
        let mut load = s.bulk(i, from).unwrap();
        for n in 0..1000u32 {
            load.push(&n.to_be_bytes(), b"loaded").unwrap();
        }
        assert!(load.push(&5u32.to_be_bytes(), b"x").is_err(), "keys ascend");
        put(&s, i, &7u32.to_be_bytes(), Some(b"changed"));
        put(&s, i, &8u32.to_be_bytes(), None);
        checkpoint(&s);
        assert_eq!(count(&s, ReadAt::Latest, i), 1);
        load.finish().unwrap();
        assert_eq!(count(&s, ReadAt::Latest, i), 999);
        assert_eq!(count(&s, ReadAt::At(Timestamp(from.0 - 1)), i), 0);
        assert_eq!(count(&s, ReadAt::At(from), i), 1000);
        put(&s, j, b"b", Some(b"1"));
        checkpoint(&s);
        assert_eq!(get(&s, ReadAt::Latest, i, &7u32.to_be_bytes()).unwrap(), b"changed");
        assert_eq!(count(&s, ReadAt::Latest, i), 999);
        assert_eq!(count(&s, ReadAt::At(from), i), 1000);
    });
}

#[test]
fn a_bulk_load_given_up_leaves_nothing() {
    on_both("bulk-drop", |s| {
        let i = s.create_ident(IdentKind::Index).unwrap();
        let from = put(&s, i, b"a", Some(b"1"));
        let mut load = s.bulk(i, from).unwrap();
        load.push(b"x", b"1").unwrap();
        assert!(s.bulk(i, from).is_err(), "one load at a time");
        drop(load);
        assert_eq!(count(&s, ReadAt::Latest, i), 1);
        checkpoint(&s);
        assert_eq!(count(&s, ReadAt::Latest, i), 1);
    });
}

#[test]
fn untimestamped_rows_survive_a_kill_once_synced_and_a_checkpoint_moves_them_to_tables() {
    let disk = Arc::new(FaultyDisk::new(1));
    let (s, _) = open_on(disk.clone(), mem());
    let i = s.create_ident(IdentKind::Records).unwrap();
    let local = |s: &Storage, k: &[u8], v: Option<&[u8]>| {
        let mut t = s.begin_local().unwrap();
        match v {
            Some(v) => t.put(i, k, v).unwrap(),
            None => t.delete(i, k).unwrap(),
        }
        t.commit().unwrap();
    };
    local(&s, b"vote", Some(b"1"));
    local(&s, b"gone", Some(b"1"));
    s.checkpoint().unwrap();
    local(&s, b"vote", Some(b"2"));
    local(&s, b"gone", None);
    s.sync_local().unwrap();
    local(&s, b"vote", Some(b"3"));
    drop(s);
    disk.crash();
    let (s, _) = open_on(disk.clone(), mem());
    assert_eq!(get(&s, ReadAt::Latest, i, b"vote").unwrap(), b"2", "the third was never synced");
    assert_eq!(get(&s, ReadAt::Latest, i, b"gone"), None);
    s.checkpoint().unwrap();
    drop(s);
    disk.crash();
    let (s, _) = open_on(disk.clone(), mem());
    assert_eq!(get(&s, ReadAt::Latest, i, b"vote").unwrap(), b"2");
    for n in 0..3000u32 {
        local(&s, b"vote", Some(&[n as u8; 200]));
        if n % 500 == 0 {
            s.checkpoint().unwrap();
        }
    }
    s.checkpoint().unwrap();
    s.checkpoint().unwrap();
    let bytes: usize = disk.paths().iter().filter(|p| p.contains("local.")).map(|p| disk.file_len(p)).sum();
    assert!(bytes < 600_000, "the local log is cut at checkpoints: {bytes}");
    assert!(disk.list("journal").is_ok());
}

#[test]
fn long_and_odd_keys_are_stored() {
    on_both("keys", |s| {
        let i = s.create_ident(IdentKind::Index).unwrap();
        let keys: Vec<Vec<u8>> = vec![
            vec![],
            vec![0],
            vec![0, 0],
            vec![0xff; 300],
            vec![0; 30_000],
            vec![0; 70_000],
            [vec![b'x'; 65_531], vec![0]].concat(),
            vec![b'x'; 65_531],
            vec![b'x'; 65_532],
            [vec![b'x'; 120_000], vec![1, 2]].concat(),
            [vec![b'x'; 120_000], vec![0xff]].concat(),
            vec![b'x'; 120_000],
            vec![b'y'; 1 << 20],
            vec![0, 0xff, 0],
            b"plain".to_vec(),
        ];
        let mut at = Vec::new();
        for round in 0..3u8 {
            for k in &keys {
                at.push(put(&s, i, k, Some(&[round])));
            }
            checkpoint(&s);
        }
        for k in &keys {
            assert_eq!(get(&s, ReadAt::At(at[keys.len() - 1]), i, k).unwrap(), [0]);
            assert_eq!(get(&s, ReadAt::Latest, i, k).unwrap(), [2]);
        }
        let mut t = s.begin(ReadAt::Latest).unwrap();
        assert!(t.put(i, b"empty value", b"").is_ok());
        t.log_entry(s.log().reserve_one(), RawDoc::empty());
        t.commit().unwrap();
        checkpoint(&s);
        assert_eq!(get(&s, ReadAt::Latest, i, b"empty value").unwrap(), b"");
    });
}

/// Keys of many lengths, most of which begin like another one.
fn long_and_short() -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    for n in [0usize, 1, 40_000, 59_999, 60_000, 60_001, 65_531, 65_532, 119_999, 120_000, 120_001, 1 << 20] {
        for end in [&b""[..], b"\0", b"a", b"b", b"\xff"] {
            keys.push([&vec![b'k'; n], end].concat());
        }
    }
    keys.sort();
    keys.dedup();
    keys
}

fn all(s: &Storage, at: ReadAt, i: Ident, from: &[u8], dir: Dir) -> Vec<Vec<u8>> {
    let t = s.begin(at).unwrap();
    let mut rows = t.scan(i, Bound::Excluded(from), Bound::Unbounded, dir).unwrap();
    std::iter::from_fn(|| rows.next().unwrap().map(|(k, _)| k.to_vec())).collect()
}

#[test]
fn keys_of_any_length_lie_in_one_order() {
    on_both("any-length", |s| {
        let loaded = s.create_ident(IdentKind::Index).unwrap();
        let i = s.create_ident(IdentKind::Index).unwrap();
        let mut keys = long_and_short();
        keys.retain(|k| !k.is_empty());
        let before = put(&s, i, b"before", Some(b""));
        for k in keys.iter().rev() {
            put(&s, i, k, Some(&k[k.len() - 1..]));
        }
        let then = put(&s, i, b"before", None);
        checkpoint(&s);
        let mut load = s.bulk(loaded, before).unwrap();
        keys.iter().for_each(|k| load.push(k, b"v").unwrap());
        load.finish().unwrap();
        for ident in [i, loaded] {
            for from in [&b""[..], &keys[7], &keys[20], &keys[keys.len() - 2]] {
                let mut expected: Vec<_> = keys.iter().filter(|k| &k[..] > from).cloned().collect();
                assert!(all(&s, ReadAt::Latest, ident, from, Dir::Forward) == expected);
                expected.reverse();
                assert!(all(&s, ReadAt::Latest, ident, from, Dir::Backward) == expected);
            }
        }
        // Every other key goes; those who look back still see it.
        let (gone, kept): (Vec<_>, Vec<_>) = keys.iter().enumerate().partition(|(n, _)| n % 2 == 0);
        for (_, k) in &gone {
            put(&s, i, k, None);
        }
        checkpoint(&s);
        for round in 0..2 {
            for (_, k) in &gone {
                assert_eq!(get(&s, ReadAt::Latest, i, k), None);
                assert_eq!(get(&s, ReadAt::At(then), i, k).unwrap(), k[k.len() - 1..]);
            }
            assert!(
                all(&s, ReadAt::Latest, i, b"", Dir::Forward)
                    == kept.iter().map(|(_, k)| (*k).clone()).collect::<Vec<_>>()
            );
            assert!(all(&s, ReadAt::At(then), i, b"", Dir::Forward) == keys);
            if round == 0 {
                s.compact_all().unwrap();
            }
        }
    });
}

#[test]
fn tables_with_long_keys_open_again_and_leave_nothing_behind() {
    let folder = Folder::new("long-again");
    let (s, _) = open_on(folder.0.clone(), lsm());
    let i = s.create_ident(IdentKind::Records).unwrap();
    let key = |n: u8| [vec![b'k'; 200_000], vec![n]].concat();
    for n in 0..20 {
        put(&s, i, &key(n), Some(&[n]));
    }
    checkpoint(&s);
    drop(s);
    let (s, _) = open_on(folder.0.clone(), lsm());
    replay(&s);
    for n in 20..40 {
        put(&s, i, &key(n), Some(&[n]));
    }
    for n in 0..30 {
        put(&s, i, &key(n), None);
    }
    checkpoint(&s);
    drop(s);
    let (s, _) = open_on(folder.0.clone(), lsm());
    replay(&s);
    assert_eq!(all(&s, ReadAt::Latest, i, b"", Dir::Forward), (30..40).map(key).collect::<Vec<_>>());
    s.set_oldest(s.stable());
    s.drop_ident(i, s.stable());
    put(&s, Ident(i.0 + 1), b"k", Some(b""));
    checkpoint(&s);
    put(&s, Ident(i.0 + 1), b"k", Some(b"2"));
    checkpoint(&s);
    s.compact_all().unwrap();
    let left: u64 = [s.stats().records, s.stats().history].iter().map(|t| t.bytes).sum();
    assert!(left < 100_000, "{left}");
}

#[test]
fn appended_records_are_written_to_a_table_once_however_often_the_servers_own_rows_change() {
    let folder = Folder::new("appended");
    let (s, _) = open_on(folder.0.clone(), lsm());
    let i = s.create_ident(IdentKind::Records).unwrap();
    let files = || -> std::collections::BTreeSet<_> { record_tables(&folder).into_iter().collect() };
    let mut before = std::collections::BTreeSet::new();
    for round in 0..12u32 {
        for n in 0..50u32 {
            put(&s, i, &(round * 50 + n).to_be_bytes(), Some(&[7; 500]));
        }
        for own in [Ident::CATALOG, Ident::META] {
            put(&s, own, b"a", Some(&round.to_be_bytes()));
            put(&s, own, &round.to_be_bytes(), Some(b"1"));
        }
        checkpoint(&s);
        while s.step().unwrap() {}
        let now = files();
        assert!(now.is_superset(&before) && now.len() == before.len() + 1, "{round}: {before:?} {now:?}");
        before = now;
    }
    assert_eq!(s.stats().records.runs, 1);
    assert_eq!(count(&s, ReadAt::Latest, i), 600);
    assert_eq!(get(&s, ReadAt::Latest, Ident::META, b"a").unwrap(), 11u32.to_be_bytes());
}

#[test]
fn tables_of_dropped_idents_go_without_being_merged_and_those_of_living_ones_stay() {
    let folder = Folder::new("drops-in-rows");
    let (s, _) = open_on(folder.0.clone(), lsm());
    let stays = s.create_ident(IdentKind::Records).unwrap();
    put(&s, stays, b"k", Some(b"1"));
    checkpoint(&s);
    for _ in 0..20 {
        // Each checkpoint's tables hold many idents, all of them dropped by the next.
        let idents: Vec<_> = (0..40).map(|_| s.create_ident(IdentKind::Records).unwrap()).collect();
        for i in &idents {
            put(&s, *i, b"k", Some(&[1; 500]));
        }
        checkpoint(&s);
        let at = put(&s, idents[0], b"gone", Some(b"1"));
        idents.iter().for_each(|i| s.drop_ident(*i, at));
        s.set_oldest(at);
        checkpoint(&s);
        while s.step().unwrap() {}
    }
    let later = s.create_ident(IdentKind::Records).unwrap();
    let at = put(&s, later, b"k", Some(b"2"));
    s.set_oldest(at);
    put(&s, later, b"l", Some(b"2"));
    checkpoint(&s);
    while s.step().unwrap() {}
    checkpoint(&s);
    let stats = s.stats();
    assert!(stats.records.tables <= 16 && stats.records.bytes < 100_000, "{stats:?}");
    assert_eq!(stats.drop_pending, 0, "{stats:?}");
    drop(s);
    let (s, _) = open_on(folder.0.clone(), lsm());
    assert_eq!(get(&s, ReadAt::Latest, stays, b"k").unwrap(), b"1");
    assert_eq!(get(&s, ReadAt::Latest, later, b"k").unwrap(), b"2");
}

#[test]
fn a_small_load_stays_in_memory_and_a_checkpoint_takes_it_along() {
    on_both("small-load", |s| {
        let (i, j) = (s.create_ident(IdentKind::Index).unwrap(), s.create_ident(IdentKind::Records).unwrap());
        let from = put(&s, j, b"a", Some(b"1"));
        let tables = s.stats().indexes.tables;
        let mut load = s.bulk(i, from).unwrap().small_in_memory();
        put(&s, i, &5u32.to_be_bytes(), Some(b"newer"));
        for n in 0..100u32 {
            load.push(&n.to_be_bytes(), b"loaded").unwrap();
        }
        load.finish().unwrap();
        assert_eq!(s.stats().indexes.tables, tables, "no table of its own");
        for _ in 0..2 {
            assert_eq!(get(&s, ReadAt::Latest, i, &7u32.to_be_bytes()).unwrap(), b"loaded");
            assert_eq!(get(&s, ReadAt::Latest, i, &5u32.to_be_bytes()).unwrap(), b"newer");
            assert_eq!(get(&s, ReadAt::At(from), i, &5u32.to_be_bytes()).unwrap(), b"loaded");
            assert_eq!(count(&s, ReadAt::Latest, i), 100);
            checkpoint(&s);
        }
        assert!(s.stats().memtable_bytes < 2000, "{:?}", s.stats());
    });
}

#[test]
fn a_load_that_outgrows_memory_goes_to_tables_whole() {
    on_both("outgrown-load", |s| {
        let (i, j) = (s.create_ident(IdentKind::Index).unwrap(), s.create_ident(IdentKind::Records).unwrap());
        let from = put(&s, j, b"a", Some(b"1"));
        let mut load = s.bulk(i, from).unwrap().small_in_memory();
        for n in 0..5000u32 {
            load.push(&n.to_be_bytes(), &[3; 200]).unwrap();
        }
        load.finish().unwrap();
        assert!(s.stats().memtable_bytes < 2000, "{:?}", s.stats());
        assert_eq!(count(&s, ReadAt::Latest, i), 5000);
    });
}
