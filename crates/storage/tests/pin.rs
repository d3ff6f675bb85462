//! A pinned checkpoint is copied while the store goes on, and the copy opens as the store was.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, checkpoint, count, get, lsm, mem, open_on, put, replay};
use pando_env::Disk;
use pando_storage::staging::{Staging, adopt_staged, forget_kept, take_kept};
use pando_storage::testing::FaultyDisk;
use pando_storage::{Ident, IdentKind, Options, PinnedCheckpoint, PinnedKind, ReadAt, Storage};
use std::sync::Arc;

fn copy(pin: &PinnedCheckpoint, to: &dyn Disk) {
    for (i, f) in pin.files().iter().enumerate() {
        to.create_dir_all(f.path.rsplit_once('/').unwrap().0).unwrap();
        let file = to.open(&f.path, true).unwrap();
        let mut at = 0;
        loop {
            let part = pin.read(i, at, 1000).unwrap();
            if part.is_empty() {
                break;
            }
            file.write_at(at, &part).unwrap();
            at += part.len() as u64;
        }
        assert_eq!(at, f.bytes);
        let mut all = vec![0; at as usize];
        file.read_at(0, &mut all).unwrap();
        assert_eq!(crc32c::crc32c(&all), pin.checksum(i).unwrap());
    }
}

fn fill(s: &Storage, i: Ident, round: u8) {
    for n in 0..200u32 {
        put(s, i, &n.to_be_bytes(), Some(&[round; 300]));
    }
}

fn a_pinned_checkpoint_outlives_what_follows(opts: Options, from: Arc<dyn Disk>, to: Arc<dyn Disk>) {
    let opts = Options { oplog_bytes_max: 64 << 10, ..opts };
    let (s, _clock) = open_on(from, opts.clone());
    let i = s.create_ident(IdentKind::Records).unwrap();
    fill(&s, i, 1);
    checkpoint(&s);
    fill(&s, i, 2);
    // In the log, above the checkpoint.
    s.log().flush_once().unwrap();
    let pin = s.pin_checkpoint().unwrap();
    assert_eq!(pin.log_end, s.log().last());
    assert!(pin.at < pin.log_end);
    for round in 3..9 {
        fill(&s, i, round);
        put(&s, i, b"later", Some(b"row"));
        checkpoint(&s);
        s.set_oldest(s.stable());
        s.compact_all().unwrap();
    }
    let front = pin.files().iter().find_map(|f| match f.kind {
        PinnedKind::Oplog { first, .. } => Some(first),
        _ => None,
    });
    assert!(s.log().first() > front.unwrap(), "the pinned log's files are gone from the folder");
    copy(&pin, &*to);
    let (copied, _clock) = open_on(to, opts);
    replay(&copied);
    assert_eq!(copied.log().last(), pin.log_end);
    assert_eq!(count(&copied, ReadAt::Latest, i), 200);
    for n in 0..200u32 {
        assert_eq!(get(&copied, ReadAt::Latest, i, &n.to_be_bytes()), Some(vec![2; 300]));
        assert_eq!(get(&s, ReadAt::Latest, i, &n.to_be_bytes()), Some(vec![8; 300]));
    }
}

#[test]
fn a_pinned_checkpoint_of_files_outlives_what_follows() {
    let (from, to) = (Folder::new("pin-from"), Folder::new("pin-to"));
    a_pinned_checkpoint_outlives_what_follows(lsm(), from.0.clone(), to.0.clone());
}

#[test]
fn a_pinned_checkpoint_in_memory_outlives_what_follows() {
    a_pinned_checkpoint_outlives_what_follows(
        mem(),
        Arc::new(FaultyDisk::new(1)),
        Arc::new(FaultyDisk::new(2)),
    );
}

/// A rollback takes back entries that the pinned log holds: what was read of it so far is worth nothing.
#[test]
fn a_log_that_is_cut_back_spoils_the_pin() {
    let (s, _clock) = open_on(Arc::new(FaultyDisk::new(3)), mem());
    let i = s.create_ident(IdentKind::Records).unwrap();
    let first = put(&s, i, b"a", Some(b"1"));
    put(&s, i, b"b", Some(b"2"));
    s.log().flush_once().unwrap();
    let pin = s.pin_checkpoint().unwrap();
    let last = pin.files().len() - 1;
    assert!(pin.read(last, 0, 1000).is_ok());
    s.cut_log(first).unwrap();
    assert!(pin.read(last, 0, 1000).unwrap_err().message.contains("cut back"));
}

/// The copying node dies at any moment of the change: it is the one store or the other, and comes to the new one.
#[test]
fn a_copy_takes_the_place_of_a_store_whenever_the_power_fails() {
    let (theirs, _clock) = open_on(Arc::new(FaultyDisk::new(7)), mem());
    let i = theirs.create_ident(IdentKind::Records).unwrap();
    fill(&theirs, i, 1);
    checkpoint(&theirs);
    let pin = theirs.pin_checkpoint().unwrap();
    for seed in 0..60 {
        let disk = Arc::new(FaultyDisk::new(seed));
        let (mine, _clock) = open_on(disk.clone(), mem());
        mine.create_ident(IdentKind::Records).unwrap();
        put(&mine, i, b"mine", Some(b"1"));
        checkpoint(&mine);
        drop(mine);
        let staging = Staging::begin(disk.clone(), pin.files().iter().map(|f| f.path.as_str())).unwrap();
        for (n, f) in pin.files().iter().enumerate() {
            staging.write(&f.path, 0, &pin.read(n, 0, usize::MAX).unwrap()).unwrap();
            staging.end_file(&f.path, f.bytes).unwrap();
        }
        staging.keep(b"own").unwrap();
        if seed % 2 == 0 {
            staging.complete().unwrap();
        } else {
            drop(staging);
        }
        // Dies at some sync of the change, again and again.
        for step in 0..40 {
            disk.lose_sync_in((seed + step) % 12);
            let done = adopt_staged(&*disk);
            disk.crash();
            if done.is_ok() {
                break;
            }
        }
        let whole = adopt_staged(&*disk).is_ok();
        let (now, _clock) = open_on(disk.clone(), mem());
        replay(&now);
        let rows = count(&now, ReadAt::Latest, i);
        assert!(whole && rows == if seed % 2 == 0 { 200 } else { 1 }, "seed {seed}: {rows} rows");
        assert_eq!(take_kept(&*disk).unwrap().is_some(), seed % 2 == 0);
        forget_kept(&*disk).unwrap();
    }
}

/// The process is killed before the name of a state file is durable, and the next one acts on what it finds: from then on
/// no loss of power may show the state before, with files already gone or moved.
#[test]
fn a_change_of_stores_that_was_killed_goes_on_from_a_state_that_lasts() {
    let (theirs, _clock) = open_on(Arc::new(FaultyDisk::new(7)), mem());
    let i = theirs.create_ident(IdentKind::Records).unwrap();
    fill(&theirs, i, 1);
    checkpoint(&theirs);
    let pin = theirs.pin_checkpoint().unwrap();
    let mut found = [0, 0];
    for seed in 0..400 {
        let disk = Arc::new(FaultyDisk::new(seed));
        let (mine, _clock) = open_on(disk.clone(), mem());
        mine.create_ident(IdentKind::Records).unwrap();
        put(&mine, i, b"mine", Some(b"1"));
        checkpoint(&mine);
        drop(mine);
        let staging = Staging::begin(disk.clone(), pin.files().iter().map(|f| f.path.as_str())).unwrap();
        for (n, f) in pin.files().iter().enumerate() {
            staging.write(&f.path, 0, &pin.read(n, 0, usize::MAX).unwrap()).unwrap();
            staging.end_file(&f.path, f.bytes).unwrap();
        }
        let killed_at = |n: u64, step: &dyn Fn() -> pando_base::Result<()>| {
            disk.fail_sync_dir_in(n);
            let _ = step();
            disk.kill();
            disk.mend();
        };
        let staging = std::cell::Cell::new(Some(staging));
        killed_at(seed % 7, &|| staging.take().map_or(Ok(()), Staging::complete));
        killed_at(seed / 7 % 7, &|| adopt_staged(&*disk).map(drop));
        disk.fail_sync_dir_in(seed / 49);
        let _ = adopt_staged(&*disk);
        disk.crash();
        adopt_staged(&*disk).unwrap();
        let (now, _clock) = open_on(disk.clone(), mem());
        replay(&now);
        let rows = count(&now, ReadAt::Latest, i);
        assert!(rows == 1 || rows == 200, "seed {seed}: {rows} rows");
        found[usize::from(rows == 200)] += 1;
    }
    assert!(found.iter().all(|n| *n > 0), "{found:?}");
}
