//! The real tables on a disk that dies at any write or sync: killed, out of power, failing once, or full.
//!
//! `LSM_CRASH_SEEDS=100..400` runs other seeds than the usual few.
#![allow(clippy::unwrap_used)]

mod power;

use pando_base::{ErrorCode, Result, Timestamp};
use pando_bson::{DocBuilder, RawDoc};
use pando_storage::testing::{self, RealDisk, SeededRng};
use pando_storage::{Backend, Dir, Ident, IdentKind, KeyCut, Options, ReadAt, Storage};
use power::Fault;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

const KEYS: u64 = 60;
/// Rows of a bulk load; they lie in an ident of their own.
const BULK_ROWS: u64 = 300;

fn open(root: &Path, seed: u64, key_cut: KeyCut) -> Result<Storage> {
    let (env, clock) = testing::env_on(Arc::new(RealDisk::new(root)), seed);
    let encrypted = root.to_string_lossy().contains("sealed");
    let keys = if encrypted { Some(testing::keys_of(&*env.disk)?) } else { None };
    clock.advance_ms(seed as i64 * 1000);
    let opts = Options {
        backend: Backend::Lsm,
        cache_bytes: 1 << 20,
        memtable_bytes: 1 << 20,
        oplog_bytes_max: 256 << 10,
        key_cut,
        keys,
        ..Options::default()
    };
    Storage::open(env, opts)
}

/// The writes of unit `n`: a function of `n`, so that the log's entry need only tell `n`.
fn writes(n: u64) -> Vec<(u64, Option<Vec<u8>>)> {
    let rng = SeededRng::new(n.wrapping_mul(77));
    let one = |_| {
        let key = rng.below(KEYS);
        let value = (rng.below(5) > 0).then(|| vec![n as u8; 1 + rng.below(300) as usize]);
        (key, value)
    };
    (0..1 + rng.below(4)).map(one).collect()
}

struct Idents {
    records: Ident,
    index: Ident,
}

fn idents(s: &Storage) -> Result<Idents> {
    // Numbers come in order, and a restart begins a new block: these two are always the first.
    if s.is_new() {
        let records = s.create_ident(IdentKind::Records)?;
        s.create_ident(IdentKind::Index)?;
        assert_eq!(records, Ident(Ident::FIRST_FREE));
    }
    Ok(Idents { records: Ident(Ident::FIRST_FREE), index: Ident(Ident::FIRST_FREE + 3) })
}

/// Carries unit `n` out at `ts`, or as a new entry of the log.
fn apply(s: &Storage, i: &Idents, n: u64, ts: Option<Timestamp>) -> Result<()> {
    let mut t = s.begin(if ts.is_some() { ReadAt::Applied } else { ReadAt::Latest })?;
    if let Some(ts) = ts {
        t.set_commit_ts(ts);
    }
    for (key, value) in writes(n) {
        let key = key.to_be_bytes();
        // A record that is ahead of the entry has its index entries.
        if ts.is_some() && t.newest_ts(i.records, &key)? >= ts {
            continue;
        }
        // As in a catalog: an index entry per record, taken out by what the old record says.
        if let Some(old) = t.get(i.records, &key)? {
            t.delete(i.index, &[&old[..1], &key].concat())?;
        }
        match value {
            Some(v) => {
                t.put(i.index, &[&v[..1], &key].concat(), b"")?;
                t.put(i.records, &key, &v)?;
            }
            None => t.delete(i.records, &key)?,
        }
    }
    if ts.is_none() {
        let mut doc = DocBuilder::new();
        doc.i64("n", n as i64);
        t.log_entry(s.log().reserve_one(), &doc.finish());
    }
    t.commit().map(drop)
}

/// What the log says was done, and the units' timestamps.
fn replay(s: &Storage, i: &Idents) -> Result<Vec<(Timestamp, u64)>> {
    let mut units = Vec::new();
    s.start_replay();
    let mut log = s.log().read(Bound::Unbounded, false);
    while let Some((ts, entry)) = log.next()? {
        let n = RawDoc::trusted(&entry).get("n").and_then(|v| v.as_i64()).unwrap() as u64;
        if ts > s.recovery_ts() {
            apply(s, i, n, Some(ts))?;
        }
        units.push((ts, n));
    }
    s.end_replay();
    s.log().publish(s.log().last());
    Ok(units)
}

/// A life: units, flushes, checkpoints, compaction and bulk loads until something fails or enough is done. Tells
/// the last unit that was durable, and whether anything failed.
fn live(s: &Storage, i: &Idents, first: u64, rng: &SeededRng, durable: &mut u64) -> Result<()> {
    for n in first..first + 150 {
        apply(s, i, n, None)?;
        match rng.below(40) {
            0..8 => {
                s.log().flush_once()?;
                *durable = n;
            }
            8..12 => {
                let lag = rng.below(3);
                let stable = Timestamp(s.log().durable().0.saturating_sub(lag));
                s.set_stable(stable.max(s.stable()));
                s.set_oldest(Timestamp(s.stable().0.saturating_sub(rng.below(20))));
            }
            12..17 => drop(s.checkpoint()?),
            17 => drop(s.checkpoint_past_stable()?),
            18..21 => drop(s.step()?),
            21 => s.compact_all()?,
            22 => bulk(s, rng)?,
            _ => {}
        }
    }
    Ok(())
}

/// A bulk load, given up half way one time in two.
fn bulk(s: &Storage, rng: &SeededRng) -> Result<()> {
    let ident = s.create_ident(IdentKind::Index)?;
    let mut load = s.bulk(ident, s.log().last())?;
    let rows = if rng.below(2) == 0 { BULK_ROWS } else { BULK_ROWS / 2 };
    for n in 0..rows {
        load.push(&n.to_be_bytes(), &[7; 50])?;
    }
    if rows < BULK_ROWS {
        drop(load);
        return Ok(());
    }
    load.finish()?;
    let t = s.begin(ReadAt::Latest)?;
    assert_eq!(count(&t, ident)?, BULK_ROWS);
    Ok(())
}

fn count(t: &pando_storage::Txn, ident: Ident) -> Result<u64> {
    let mut rows = t.scan(ident, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
    let mut n = 0;
    while rows.next()?.is_some() {
        n += 1;
    }
    Ok(n)
}

/// Rows and index entries are those of the units up to the log's end, and so they are a while back.
fn check(s: &Storage, i: &Idents, upto: &BTreeMap<u64, Timestamp>, what: &str) {
    let ends: Vec<(u64, Timestamp)> = upto.iter().map(|(n, ts)| (*n, *ts)).collect();
    let Some((last, _)) = ends.last().copied() else { return };
    let mut points = vec![(last, ReadAt::Latest)];
    let oldest = s.oldest().max(s.recovery_ts());
    points.extend(
        ends.iter()
            .rev()
            .step_by(7)
            .take(4)
            .filter(|(_, ts)| *ts > oldest)
            .map(|(n, ts)| (*n, ReadAt::At(*ts))),
    );
    for (n, at) in points {
        let mut model: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for unit in 1..=n {
            for (key, value) in writes(unit) {
                match value {
                    Some(v) => model.insert(key, v),
                    None => model.remove(&key),
                };
            }
        }
        let t = match s.begin(at) {
            Ok(t) => t,
            // Before the end of an interrupted checkpoint.
            Err(e) if n != last && e.code == ErrorCode::SnapshotTooOld => continue,
            Err(e) => panic!("{what}: {e}"),
        };
        let mut rows = t.scan(i.records, Bound::Unbounded, Bound::Unbounded, Dir::Forward).unwrap();
        let mut found = BTreeMap::new();
        while let Some((k, v)) = rows.next().unwrap() {
            found.insert(u64::from_be_bytes(k[..].try_into().unwrap()), v.to_vec());
        }
        assert!(found == model, "{what}: rows as of unit {n} differ");
        assert_eq!(count(&t, i.index).unwrap(), model.len() as u64, "{what}: index as of unit {n}");
        for (key, v) in &model {
            let entry = [&v[..1], &key.to_be_bytes()[..]].concat();
            assert!(t.get(i.index, &entry).unwrap().is_some(), "{what}: index entry of {key}");
        }
    }
}

fn run(seed: u64, lying: bool) {
    let rng = SeededRng::new(seed);
    // Every other seed: all keys are long ones, of five parts or more.
    let cut = if seed.is_multiple_of(2) { KeyCut { plain: 11, step: 2 } } else { KeyCut::TABLES };
    // Every second pair of seeds: encrypted.
    let kind = if seed % 4 > 1 { "sealed" } else { "plain" };
    let disk = RealDisk::fresh(&format!("lsm-crash-{kind}-{seed}"));
    let root = disk.root().to_owned();
    let mut known: BTreeMap<u64, Timestamp> = BTreeMap::new();
    let mut durable = 0;
    let mut calls = 400;
    for life in 0..6 {
        let what = format!("seed {seed}, life {life}");
        power::watch(&root);
        let fault = [Fault::Dead, Fault::Dead, Fault::Dead, Fault::Once, Fault::Full][rng.below(5) as usize];
        // The first life and every fourth run to their end: they tell how many calls there are to fail.
        let whole = life == 0 || rng.below(4) == 0;
        if lying && life > 0 {
            power::fail_at(0, Fault::Lies);
        } else if !whole {
            power::fail_at(1 + rng.below(calls), fault);
        }
        let outcome = open(&root, seed + life, cut).and_then(|s| {
            let i = idents(&s)?;
            for (ts, n) in replay(&s, &i)? {
                known.insert(n, ts);
            }
            let end = known.iter().rev().find(|(_, ts)| **ts <= s.log().last()).map_or(0, |(n, _)| *n);
            assert!(end >= durable, "{what}: unit {durable} was durable, {end} is the last");
            known.retain(|n, _| *n <= end);
            durable = end;
            check(&s, &i, &known, &what);
            let done = live(&s, &i, end + 1, &rng, &mut durable);
            if fault != Fault::Full && power::was_hit() && done.is_ok() {
                // Only a bulk load or the making of a file may have met it; nothing that was promised did.
                assert!(
                    s.log().poisoned().is_some() || fault == Fault::Once,
                    "{what}: {fault:?} went unnoticed"
                );
            }
            done
        });
        if let Err(e) = outcome {
            assert!(power::was_hit(), "{what}: {e} though the disk did as told");
        }
        if whole {
            calls = power::calls().max(1);
        }
        let power_lost = lying || rng.below(2) == 0 || fault == Fault::Once;
        power::end(power_lost, &rng);
    }
    let _ = std::fs::remove_dir_all(&root);
}

/// The watched folder is one for the whole program.
static ONE: Mutex<()> = Mutex::new(());

#[test]
fn tables_survive_a_disk_that_dies_at_any_write_or_sync() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = std::env::var("LSM_CRASH_SEEDS").unwrap_or_default();
    let (from, to) = wanted.split_once("..").unwrap_or_default();
    let seeds = match (from.parse(), to.parse()) {
        (Ok(from), Ok(to)) => from..to,
        _ => 1..9,
    };
    seeds.for_each(|seed| run(seed, false));
}

/// Killed in a compaction, before the name of its new list of tables was durable: the next start finds the new list and
/// removes the tables that it does not name. The power that fails then must not bring the old list back.
#[test]
fn a_list_of_tables_that_a_start_has_found_does_not_give_way_to_an_older_one() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut killed = 0;
    for call in 1.. {
        let rng = SeededRng::new(call);
        let disk = RealDisk::fresh("lsm-list");
        let root = disk.root().to_owned();
        power::watch(&root);
        let mut known = BTreeMap::new();
        {
            let s = open(&root, 0, KeyCut::TABLES).unwrap();
            let i = idents(&s).unwrap();
            for n in 1..=20 {
                apply(&s, &i, n, None).unwrap();
                known.insert(n, s.log().last());
                if n % 10 == 0 {
                    s.log().flush_once().unwrap();
                    s.set_stable(s.log().durable());
                    s.checkpoint().unwrap();
                }
            }
            power::fail_at(power::calls() + call, Fault::Dead);
            let done = s.compact_all();
            if done.is_ok() {
                break;
            }
        }
        killed += 1;
        power::end(false, &rng);
        power::watch(&root);
        power::fail_at(2 + rng.below(12), Fault::Dead);
        drop(open(&root, 1, KeyCut::TABLES));
        power::end(true, &rng);
        let s = open(&root, 2, KeyCut::TABLES).unwrap();
        let i = idents(&s).unwrap();
        replay(&s, &i).unwrap();
        check(&s, &i, &known, &format!("call {call}"));
    }
    power::end(true, &SeededRng::new(1));
    assert!(killed > 20, "{killed}");
}

#[test]
fn a_disk_that_lies_about_syncs_is_found_out() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let found = (1..4).filter(|seed| std::panic::catch_unwind(|| run(*seed, true)).is_err()).count();
    assert_eq!(found, 3);
}
