//! Real threads: writers, readers, checkpoints and compactions at once; every snapshot must add up.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod common;

use common::{Folder, lsm, mem, open_on};
use pando_base::ErrorCode;
use pando_bson::RawDoc;
use pando_env::Rng;
use pando_storage::testing::{FaultyDisk, SeededRng};
use pando_storage::{Dir, Ident, IdentKind, Options, ReadAt, Storage};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const ACCOUNTS: u64 = 500;
const START: i64 = 100;

fn key(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}
fn amount(b: &[u8]) -> i64 {
    i64::from_le_bytes(b[..8].try_into().unwrap())
}

/// Moves money between two accounts and notes the new balances in an index.
fn transfer(s: &Storage, accounts: Ident, index: Ident, rng: &SeededRng) -> Result<(), ErrorCode> {
    let (from, to) = (rng.below(ACCOUNTS), rng.below(ACCOUNTS));
    if from == to {
        return Ok(());
    }
    let mut t = s.begin(ReadAt::Latest).unwrap();
    let sum = rng.below(10) as i64;
    for (account, change) in [(from, -sum), (to, sum)] {
        let old = amount(&t.get(accounts, &key(account)).unwrap().expect("account"));
        let entry = |a: i64| [&a.to_be_bytes()[..], &key(account)].concat();
        let mut value = (old + change).to_le_bytes().to_vec();
        value.resize(100, 7);
        t.put(accounts, &key(account), &value).map_err(|e| e.code)?;
        t.delete(index, &entry(old)).map_err(|e| e.code)?;
        t.put(index, &entry(old + change), b"").map_err(|e| e.code)?;
    }
    t.log_entry(s.log().reserve_one(), RawDoc::empty());
    t.commit().unwrap();
    Ok(())
}

fn audit(s: &Storage, accounts: Ident, index: Ident, dir: Dir) {
    let t = s.begin(ReadAt::Latest).unwrap();
    let mut rows = t.scan(accounts, Bound::Unbounded, Bound::Unbounded, dir).unwrap();
    let (mut n, mut total) = (0, 0);
    while let Some((_, v)) = rows.next().unwrap() {
        n += 1;
        total += amount(&v);
    }
    assert_eq!((n, total), (ACCOUNTS, START * ACCOUNTS as i64), "{dir:?} at {}", t.read_ts());
    let mut rows = t.scan(index, Bound::Unbounded, Bound::Unbounded, dir).unwrap();
    let mut n = 0;
    while let Some((k, _)) = rows.next().unwrap() {
        n += 1;
        let balance = amount(&t.get(accounts, &k[8..]).unwrap().expect("account"));
        assert_eq!(k[..8], balance.to_be_bytes(), "index and record agree at {}", t.read_ts());
    }
    assert_eq!(n, ACCOUNTS);
}

struct OnDrop<F: FnMut()>(F);
impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn bank(s: Storage, transfers: u64) {
    let (accounts, index) =
        (s.create_ident(IdentKind::Records).unwrap(), s.create_ident(IdentKind::Index).unwrap());
    let mut t = s.begin(ReadAt::Latest).unwrap();
    for n in 0..ACCOUNTS {
        let mut value = START.to_le_bytes().to_vec();
        value.resize(100, 7);
        t.put_new(accounts, &key(n), &value).unwrap();
        t.put_new(index, &[&START.to_be_bytes()[..], &key(n)].concat(), b"").unwrap();
    }
    t.log_entry(s.log().reserve_one(), RawDoc::empty());
    t.commit().unwrap();
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|threads| {
        for seed in 1..=2 {
            let (s, done, stop) = (&s, &done, &stop);
            threads.spawn(move || {
                let rng = SeededRng::new(seed);
                let _failed = OnDrop(|| {
                    if std::thread::panicking() {
                        stop.store(true, Ordering::Relaxed)
                    }
                });
                while !stop.load(Ordering::Relaxed) && done.fetch_add(1, Ordering::Relaxed) < transfers {
                    while let Err(code) = transfer(s, accounts, index, &rng) {
                        assert_eq!(code, ErrorCode::WriteConflict);
                    }
                }
            });
        }
        for dir in [Dir::Forward, Dir::Backward] {
            let (s, stop) = (&s, &stop);
            threads.spawn(move || {
                let _failed = OnDrop(|| {
                    if std::thread::panicking() {
                        stop.store(true, Ordering::Relaxed)
                    }
                });
                while !stop.load(Ordering::Relaxed) {
                    audit(s, accounts, index, dir);
                }
            });
        }
        let rng = SeededRng::new(9);
        // A writer or reader that panics must not leave the others waiting.
        let _stop = OnDrop(|| stop.store(true, Ordering::Relaxed));
        while !stop.load(Ordering::Relaxed) && done.load(Ordering::Relaxed) < transfers {
            s.set_stable(s.all_durable());
            if rng.next_u64().is_multiple_of(2) {
                s.set_oldest(s.stable());
            }
            s.checkpoint().unwrap();
            while s.step().unwrap() {}
            std::thread::sleep(std::time::Duration::from_millis(rng.below(5)));
        }
        stop.store(true, Ordering::Relaxed);
    });
    audit(&s, accounts, index, Dir::Forward);
}

#[test]
fn every_snapshot_adds_up_while_tables_change_in_memory() {
    bank(open_on(Arc::new(FaultyDisk::new(1)), mem()).0, 8_000);
}

#[test]
fn every_snapshot_adds_up_while_tables_change_on_disk() {
    let folder = Folder::new("bank");
    bank(open_on(folder.0.clone(), Options { memtable_bytes: 4 << 20, ..lsm() }).0, 8_000);
}
