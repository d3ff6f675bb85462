//! Tables of another set are taken in by their files: all rows as of its checkpoint, as if they had always been here.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, checkpoint, count, get, lsm, mem, open_on, put, replay};
use pando_base::{ErrorCode, Result, Timestamp};
use pando_env::Disk;
use pando_storage::staging::Staging;
use pando_storage::testing::{FaultyDisk, RealDisk, keys_of};
use pando_storage::{
    Dir, ForeignCheckpoint, Ident, IdentKind, LoadedTable, Options, PinnedCheckpoint, ReadAt, Storage,
    discard_foreign, has_foreign, is_foreign_wanted,
};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn rows_at(s: &Storage, at: ReadAt, i: Ident) -> Rows {
    let mut c = s.begin(at).unwrap().scan(i, Bound::Unbounded, Bound::Unbounded, Dir::Forward).unwrap();
    std::iter::from_fn(|| c.next().unwrap().map(|(k, v)| (k.to_vec(), v.to_vec()))).collect()
}

struct Donor {
    storage: Storage,
    idents: Vec<Ident>,
    pin: PinnedCheckpoint,
    /// Of each ident, as of the checkpoint.
    expected: Vec<Rows>,
}

/// Two record stores and an index with rows that were written over and deleted, some of which have long keys; and what came
/// behind the checkpoint. Its times lie far ahead of everybody else's.
fn donor(disk: Arc<dyn Disk>, opts: Options) -> Donor {
    let (s, clock) = open_on(disk, opts);
    clock.advance_ms(1_000_000_000);
    let idents = vec![
        s.create_ident(IdentKind::Records).unwrap(),
        s.create_ident(IdentKind::Records).unwrap(),
        s.create_ident(IdentKind::Index).unwrap(),
    ];
    let others = s.create_ident(IdentKind::Records).unwrap();
    let young = s.create_ident(IdentKind::Index).unwrap();
    for round in 0..3u8 {
        for n in 0..150u32 {
            for (at, i) in idents.iter().enumerate() {
                put(&s, *i, &n.to_be_bytes(), Some(&[round, at as u8, n as u8].repeat(50)));
            }
            put(&s, others, &n.to_be_bytes(), Some(b"nobody asks for it"));
        }
        for n in (0..150u32).step_by(7) {
            put(&s, idents[0], &n.to_be_bytes(), None);
        }
        put(&s, idents[2], &[7; 70_000], Some(&[round; 40]));
        put(&s, idents[2], &[&[7; 70_000][..], b"x"].concat(), Some(b"long"));
        checkpoint(&s);
    }
    let mut expected: Vec<Rows> = idents.iter().map(|i| rows_at(&s, ReadAt::Latest, *i)).collect();
    // What is not stable is not in it, nor what comes later.
    let later = put(&s, idents[0], b"not stable", Some(b"1"));
    // An index that is completed just now has rows of that later time in the tables.
    let mut load = s.bulk(young, later).unwrap();
    load.push(b"k", b"v").unwrap();
    load.finish().unwrap();
    expected.push(Rows::new());
    let pin = s.pin_checkpoint().unwrap();
    put(&s, idents[1], &1u32.to_be_bytes(), Some(b"later"));
    checkpoint(&s);
    s.compact_all().unwrap();
    assert_eq!(count(&s, ReadAt::Latest, young), 1);
    let idents = idents.into_iter().chain([young]).collect();
    Donor { storage: s, idents, pin, expected }
}

fn stage(pin: &PinnedCheckpoint, disk: Arc<dyn Disk>) -> Result<()> {
    let wanted = || pin.files().iter().enumerate().filter(|(_, f)| is_foreign_wanted(&f.path));
    let staging = Staging::begin_foreign(disk, wanted().map(|(_, f)| f.path.as_str()))?;
    for (n, f) in wanted() {
        staging.write(&f.path, 0, &pin.read(n, 0, usize::MAX)?)?;
        staging.end_file(&f.path, f.bytes)?;
    }
    let files: Vec<_> = wanted().map(|(_, f)| (f.path.clone(), f.bytes)).collect();
    staging.complete_foreign(&files)
}

fn take_in(s: &Storage, disk: &Arc<dyn Disk>, opts: &Options, theirs: &[Ident]) -> Result<Vec<LoadedTable>> {
    let from = ForeignCheckpoint::open(disk, opts)?;
    let loaded = s.load_tables(&from, theirs, &mut || Ok(()))?;
    let tables = loaded.tables().to_vec();
    loaded.keep();
    Ok(tables)
}

fn a_table_is_taken_in_as_of_the_checkpoint(opts: Options, from: Arc<dyn Disk>, to: Arc<dyn Disk>) {
    let donor = donor(from, opts.clone());
    let (s, clock) = open_on(to.clone(), opts.clone());
    let own = s.create_ident(IdentKind::Records).unwrap();
    put(&s, own, b"mine", Some(b"1"));
    checkpoint(&s);
    let before = s.last_committed();
    stage(&donor.pin, to.clone()).unwrap();
    let tables = take_in(&s, &to, &opts, &donor.idents).unwrap();
    discard_foreign(&*to).unwrap();
    assert!(!has_foreign(&*to));
    let check = |s: &Storage, at: ReadAt| {
        for (table, expected) in tables.iter().zip(&donor.expected) {
            assert!(&rows_at(s, at, table.ours) == expected);
            let bytes = expected.values().map(|v| v.len() as u64).sum::<u64>();
            assert_eq!((table.rows, table.bytes), (expected.len() as u64, bytes));
        }
        assert_eq!(count(s, at, own), 1);
    };
    assert_ne!(donor.expected[0].len(), donor.expected[1].len());
    check(&s, ReadAt::Latest);
    assert!(donor.pin.at > s.last_committed(), "their times lie ahead of ours");
    // Rows are changed as if they had always been here: history, deletions and rollbacks have our times.
    clock.advance_ms(1000);
    let changed = tables[1].ours;
    put(&s, changed, &3u32.to_be_bytes(), Some(b"changed"));
    put(&s, changed, &4u32.to_be_bytes(), None);
    assert_eq!(get(&s, ReadAt::Latest, changed, &3u32.to_be_bytes()).unwrap(), b"changed");
    assert_eq!(get(&s, ReadAt::Latest, changed, &4u32.to_be_bytes()), None);
    check(&s, ReadAt::At(before));
    assert!(s.stable() <= before);
    s.recover_to_stable().unwrap();
    check(&s, ReadAt::Latest);
    s.cut_log(before).unwrap();
    // The same with rows that a checkpoint has taken past the stable timestamp.
    put(&s, changed, &3u32.to_be_bytes(), Some(b"again"));
    s.checkpoint_past_stable().unwrap();
    s.recover_to_stable().unwrap();
    s.cut_log(before).unwrap();
    check(&s, ReadAt::Latest);
    s.compact_all().unwrap();
    drop(s);
    let (s, _clock) = open_on(to, opts);
    replay(&s);
    let named = |i: Ident| i == own || tables.iter().any(|t| t.ours == i);
    assert_eq!(s.drop_unnamed(named).unwrap(), 0);
    s.compact_all().unwrap();
    check(&s, ReadAt::Applied);
    drop(donor.storage);
}

#[test]
fn a_table_of_files_is_taken_in_as_of_the_checkpoint() {
    let (from, to) = (Folder::new("foreign-from"), Folder::new("foreign-to"));
    a_table_is_taken_in_as_of_the_checkpoint(lsm(), from.0.clone(), to.0.clone());
}

#[test]
fn a_table_in_memory_is_taken_in_as_of_the_checkpoint() {
    let (from, to) = (Arc::new(FaultyDisk::new(1)), Arc::new(FaultyDisk::new(2)));
    a_table_is_taken_in_as_of_the_checkpoint(mem(), from, to);
}

#[test]
fn what_is_given_up_leaves_no_rows() {
    let (from, to) = (Folder::new("foreign-given-from"), Folder::new("foreign-given-to"));
    let (to, opts): (Arc<dyn Disk>, _) = (to.0.clone(), lsm());
    let donor = donor(from.0.clone(), opts.clone());
    let (s, _clock) = open_on(to.clone(), opts.clone());
    stage(&donor.pin, to.clone()).unwrap();
    let from = ForeignCheckpoint::open(&to, &opts).unwrap();
    let mut looks = 0;
    let e = s.load_tables(&from, &donor.idents, &mut || {
        looks += 1;
        if looks < 3 { Ok(()) } else { Err(pando_base::Error::new(ErrorCode::Interrupted, "enough")) }
    });
    assert_eq!(e.err().unwrap().code, ErrorCode::Interrupted);
    let loaded = s.load_tables(&from, &donor.idents, &mut || Ok(())).unwrap();
    let tables = loaded.tables().to_vec();
    // A rollback looks for what nobody names: what is being taken in is left alone.
    assert_eq!(s.drop_unnamed(|_| false).unwrap(), 0);
    drop(loaded);
    put(&s, s.create_ident(IdentKind::Records).unwrap(), b"k", Some(b"v"));
    checkpoint(&s);
    s.set_oldest(s.stable());
    checkpoint(&s);
    s.compact_all().unwrap();
    assert!(tables.iter().all(|t| count(&s, ReadAt::Latest, t.ours) == 0));
    drop(to);
}

/// The taking node loses its power, or is killed, at any sync: it has none of the tables or all of them, and its own rows.
#[test]
fn whoever_dies_has_none_of_the_tables_or_all() {
    let donor = donor(Arc::new(FaultyDisk::new(7)), mem());
    let name = b"named".as_slice();
    let (mut none, mut all) = (0, 0);
    for seed in 0..120u64 {
        let disk = Arc::new(FaultyDisk::new(seed));
        let shared: Arc<dyn Disk> = disk.clone();
        let (s, _clock) = open_on(shared.clone(), mem());
        let own = s.create_ident(IdentKind::Records).unwrap();
        put(&s, own, b"mine", Some(b"1"));
        checkpoint(&s);
        match seed % 3 {
            0 => disk.lose_sync_in(seed / 3),
            1 => disk.fail_sync_in(seed / 3),
            _ => disk.fail_sync_dir_in(seed / 3),
        }
        // The name of a table is a local row, as in a catalog.
        let named = || -> Result<()> {
            stage(&donor.pin, shared.clone())?;
            let tables = take_in(&s, &shared, &mem(), &donor.idents)?;
            let mut unit = s.begin_local()?;
            for t in &tables {
                unit.put(Ident::META, &[name, &t.ours.0.to_be_bytes()].concat(), &t.theirs.0.to_be_bytes())?;
            }
            unit.commit()?;
            s.sync_local()?;
            discard_foreign(&*shared)
        };
        let done = named().is_ok();
        drop(s);
        if seed % 2 == 0 {
            disk.crash()
        } else {
            disk.kill()
        }
        disk.mend();
        let (s, _clock) = open_on(shared.clone(), mem());
        replay(&s);
        let (low, high) = (Bound::Included(name), Bound::Excluded(b"namee".as_slice()));
        let mut c = s.begin(ReadAt::Latest).unwrap().scan(Ident::META, low, high, Dir::Forward).unwrap();
        let ident = |b: &[u8]| Ident(u32::from_be_bytes(*b.last_chunk().unwrap()));
        let found: Vec<(Ident, Ident)> =
            std::iter::from_fn(|| c.next().unwrap().map(|(k, v)| (ident(&k), ident(&v)))).collect();
        let is_named = |i: Ident| i == own || found.iter().any(|(ours, _)| *ours == i);
        s.drop_unnamed(is_named).unwrap();
        discard_foreign(&*shared).unwrap();
        assert!(!disk.paths().iter().any(|p| p.starts_with("foreign/")), "seed {seed}: {:?}", disk.paths());
        s.set_stable(s.log().last());
        s.set_oldest(s.stable());
        put(&s, own, b"more", Some(b"1"));
        checkpoint(&s);
        s.set_oldest(s.stable());
        s.checkpoint().unwrap();
        s.compact_all().unwrap();
        assert_eq!(count(&s, ReadAt::Latest, own), 2, "seed {seed}");
        assert!(found.is_empty() || found.len() == donor.idents.len(), "seed {seed}");
        assert!(!done || !found.is_empty(), "seed {seed}: what was durable is gone");
        for (ours, theirs) in &found {
            let at = donor.idents.iter().position(|i| i == theirs).unwrap();
            assert!(rows_at(&s, ReadAt::Latest, *ours) == donor.expected[at], "seed {seed}");
        }
        if found.is_empty() {
            none += 1;
            // Nothing of what was begun is left in the tables.
            assert_eq!(s.drop_unnamed(is_named).unwrap(), 0, "seed {seed}");
        } else {
            all += 1;
        }
    }
    assert!(none > 20 && all > 5, "{none} without, {all} with");
}

/// A staged folder of files that tests spoil.
struct Staged {
    folder: Folder,
    opts: Options,
    idents: Vec<Ident>,
    files: Vec<PathBuf>,
}

fn staged(name: &str) -> Staged {
    let from = Folder::new(&format!("{name}-from"));
    let donor = donor(from.0.clone(), lsm());
    let folder = Folder::new(name);
    stage(&donor.pin, folder.0.clone()).unwrap();
    let files = donor.pin.files().iter().filter(|f| is_foreign_wanted(&f.path));
    let files = files.map(|f| folder.0.root().join("foreign").join(&f.path)).collect();
    Staged { folder, opts: lsm(), idents: donor.idents.clone(), files }
}

impl Staged {
    fn read(&self) -> Result<u64> {
        let disk: Arc<dyn Disk> = self.folder.0.clone();
        let from = ForeignCheckpoint::open(&disk, &self.opts)?;
        let mut n = 0;
        for i in &self.idents {
            let mut rows = from.rows(*i);
            while rows.next()?.is_some() {
                n += 1;
            }
        }
        Ok(n)
    }
}

fn refused(read: Result<u64>, what: &str) {
    let e = read.expect_err(what);
    assert_eq!(e.code, ErrorCode::InvalidSyncSource, "{what}: {e}");
    assert!(!e.message.contains("Empty it"), "{e}");
}

#[test]
fn files_that_are_not_what_was_copied_are_refused() {
    let s = staged("foreign-spoilt");
    assert!(s.read().unwrap() > 400);
    for path in &s.files {
        let whole = std::fs::read(path).unwrap();
        let name = path.display().to_string();
        let at = whole.len() / 2;
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        for (spoilt, what) in [(&flipped[..], "flipped"), (&whole[..at], "cut"), (&whole[..0], "empty")] {
            std::fs::write(path, spoilt).unwrap();
            refused(s.read(), &format!("{name} {what}"));
        }
        std::fs::remove_file(path).unwrap();
        refused(s.read(), &format!("{name} is missing"));
        std::fs::write(path, &whole).unwrap();
    }
    assert!(s.read().is_ok());
    std::fs::remove_file(s.folder.0.root().join("foreign/state")).unwrap();
    refused(s.read(), "not complete");
}

/// What was damaged at the donor already, so that the sums are those of damaged files.
#[test]
fn tables_that_were_damaged_before_are_refused() {
    let s = staged("foreign-damaged");
    let disk: Arc<dyn Disk> = s.folder.0.clone();
    let mut found = 0;
    for path in s.files.iter().filter(|p| p.to_string_lossy().contains("/tables/") && !p.ends_with("current"))
    {
        let whole = std::fs::read(path).unwrap();
        for at in (0..whole.len()).step_by(whole.len() / 5 + 1) {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x10;
            std::fs::write(path, &flipped).unwrap();
            let root = s.folder.0.root().join("foreign");
            let names: Vec<(String, u64)> = s
                .files
                .iter()
                .map(|p| {
                    let name = p.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                    (name, std::fs::metadata(p).unwrap().len())
                })
                .collect();
            let sums: String = names
                .iter()
                .map(|(name, bytes)| {
                    let sum = crc32c::crc32c(&std::fs::read(root.join(name)).unwrap());
                    format!("{sum:08x} {bytes} {name}\n")
                })
                .collect();
            std::fs::write(root.join("sums"), sums).unwrap();
            match s.read() {
                Err(e) => {
                    assert_eq!(e.code, ErrorCode::InvalidSyncSource, "{e}");
                    found += 1;
                }
                // Bytes of other collections in the same file, or such as nobody reads: then nothing is missing.
                Ok(n) => assert!(n > 400),
            }
        }
        std::fs::write(path, &whole).unwrap();
    }
    assert!(found > 5, "{found}");
    drop(disk);
}

/// Whose memory was full while nothing became stable has brought rows to the tables that a rollback may take back.
#[test]
fn a_checkpoint_that_may_be_rolled_back_is_refused() {
    for past_stable in [false, true] {
        let (s, _clock) = open_on(Arc::new(FaultyDisk::new(1)), mem());
        let i = s.create_ident(IdentKind::Records).unwrap();
        put(&s, i, b"stable", Some(b"1"));
        checkpoint(&s);
        put(&s, i, b"not stable", Some(b"1"));
        if past_stable {
            s.checkpoint_past_stable().unwrap();
        }
        let disk: Arc<dyn Disk> = Arc::new(FaultyDisk::new(2));
        stage(&s.pin_checkpoint().unwrap(), disk.clone()).unwrap();
        match ForeignCheckpoint::open(&disk, &mem()) {
            Err(e) => assert!(past_stable && e.message.contains("rolled back"), "{e}"),
            Ok(from) => assert!(!past_stable && from.rows(i).next().unwrap().is_some()),
        }
    }
}

#[test]
fn encrypted_folders_neither_give_nor_take() {
    let (from, to) = (Folder::new("foreign-sealed-from"), Folder::new("foreign-sealed-to"));
    let sealed = Options { keys: Some(keys_of(&*from.0).unwrap()), ..lsm() };
    let theirs = donor(from.0.clone(), sealed);
    stage(&theirs.pin, to.0.clone()).unwrap();
    let disk: Arc<dyn Disk> = to.0.clone();
    let e = ForeignCheckpoint::open(&disk, &lsm()).err().unwrap();
    assert!(e.message.contains("encrypted"), "{e}");
    let keys = Some(keys_of(&RealDisk::new(to.0.root())).unwrap());
    let e = ForeignCheckpoint::open(&disk, &Options { keys, ..lsm() }).err().unwrap();
    assert_eq!(e.code, ErrorCode::InvalidOptions);
    assert!(e.message.contains("where data is encrypted"), "{e}");
    assert!(theirs.pin.at > Timestamp::ZERO);
}
