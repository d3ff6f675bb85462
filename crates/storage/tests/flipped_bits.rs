//! A bit that changes in any file: every read is right or an error, never a wrong answer.
#![allow(clippy::unwrap_used)]

mod common;

use common::{checkpoint, lsm, put};
use pando_bson::{RawDoc, Value};
use pando_storage::testing::{self, RealDisk, SeededRng};
use pando_storage::{Dir, Ident, IdentKind, Options, ReadAt, Storage};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a reader may find: rows of each ident, and the log.
#[derive(PartialEq, Eq, Debug, Default)]
struct Truth {
    rows: BTreeMap<u32, Vec<(Vec<u8>, Vec<u8>)>>,
    log: Vec<u64>,
    local: Option<Vec<u8>>,
}

fn open(dir: &Path, encrypted: bool) -> pando_base::Result<Storage> {
    let (env, _) = testing::env_on(Arc::new(RealDisk::new(dir)), 5);
    let keys = if encrypted { Some(testing::keys_of(&*env.disk)?) } else { None };
    Storage::open(env, Options { keys, ..lsm() })
}

fn look(s: &Storage, idents: &[Ident]) -> pando_base::Result<Truth> {
    let mut truth = Truth::default();
    let mut log = s.log().read(Bound::Unbounded, false);
    while let Some((ts, _)) = log.next()? {
        truth.log.push(ts.0);
    }
    truth.local = s.begin(ReadAt::Latest)?.get(Ident::META, b"a")?.map(|v| v.to_vec());
    for i in idents {
        let txn = s.begin(ReadAt::Latest)?;
        let mut rows = Vec::new();
        let mut c = txn.scan(*i, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
        while let Some((k, v)) = c.next()? {
            rows.push((k.to_vec(), v.to_vec()));
        }
        // Backward, and one by one, through other blocks of the index.
        let mut c = txn.scan(*i, Bound::Unbounded, Bound::Unbounded, Dir::Backward)?;
        let mut back = Vec::new();
        while let Some((k, v)) = c.next()? {
            back.push((k.to_vec(), v.to_vec()));
        }
        back.reverse();
        assert_eq!(rows, back, "forward and backward differ");
        for n in 0..600u32 {
            let key = n.to_be_bytes();
            let found = txn.get(*i, &key)?.map(|v| v.to_vec());
            let scanned = rows.iter().find(|(k, _)| k[..] == key).map(|(_, v)| v.clone());
            assert_eq!(found, scanned, "a lookup and a scan differ");
        }
        truth.rows.insert(i.0, rows);
    }
    Ok(truth)
}

/// Records, index rows, replaced versions, several tables, a log of several files, rows that are only in the log.
fn filled(dir: &Path, encrypted: bool) -> Vec<Ident> {
    let s = open(dir, encrypted).unwrap();
    let idents = vec![s.create_ident(IdentKind::Records).unwrap(), s.create_ident(IdentKind::Index).unwrap()];
    for round in 0..3u8 {
        for n in 0..400u32 {
            let n = n + u32::from(round) * 60;
            for i in &idents {
                put(&s, *i, &n.to_be_bytes(), Some(&[round.wrapping_add(n as u8); 120]));
            }
        }
        s.log().flush_once().unwrap();
        checkpoint(&s);
        while s.step().unwrap() {}
    }
    for n in 0..50u32 {
        put(&s, idents[0], &n.to_be_bytes(), (n % 3 > 0).then_some(&[7; 30]));
    }
    let mut local = s.begin_local().unwrap();
    local.put(Ident::META, b"a", b"b").unwrap();
    local.commit().unwrap();
    s.sync_local().unwrap();
    s.log().flush_once().unwrap();
    s.note_log_ends().unwrap();
    idents
}

fn replay(s: &Storage) -> pando_base::Result<()> {
    s.start_replay();
    let mut log = s.log().read(Bound::Excluded(s.recovery_ts()), false);
    while let Some((ts, entry)) = log.next()? {
        let entry = RawDoc::trusted(&entry);
        let bytes = |name: &str| match entry.get(name) {
            Some(Value::Binary { bytes, .. }) => Some(bytes.to_vec()),
            _ => None,
        };
        let ident = Ident(entry.get("i").unwrap().as_i64().unwrap() as u32);
        let mut t = s.begin(ReadAt::Applied)?;
        t.set_commit_ts(ts);
        match bytes("v") {
            Some(v) => t.put(ident, &bytes("k").unwrap(), &v)?,
            None => t.delete(ident, &bytes("k").unwrap())?,
        }
        t.commit()?;
    }
    s.end_replay();
    s.log().publish(s.log().last());
    Ok(())
}

fn files(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, into) } else { into.push(path) }
    }
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    let mut all = Vec::new();
    files(from, &mut all);
    for path in all {
        let target = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(path, target).unwrap();
    }
}

fn outcome(dir: &Path, idents: &[Ident], encrypted: bool) -> Result<Truth, String> {
    let read = catch_unwind(AssertUnwindSafe(|| {
        let s = open(dir, encrypted)?;
        replay(&s)?;
        look(&s, idents)
    }));
    match read {
        Ok(read) => read.map_err(|e| e.message.to_string()),
        Err(p) => Err(format!(
            "panic: {:?}",
            p.downcast_ref::<String>().cloned().or_else(|| p.downcast_ref::<&str>().map(|s| (*s).to_owned()))
        )),
    }
}

/// The file itself, or the one that says what it should be.
fn names(message: &str, kind: &str) -> bool {
    let folder = kind.rsplit_once('/').map_or(kind, |(dir, _)| dir.trim_end_matches("/tables"));
    message.contains(kind) || message.contains(folder)
}

#[test]
fn a_flipped_bit_anywhere_is_an_error_or_harmless() {
    flip("plain", false);
}

#[test]
fn a_flipped_bit_in_an_encrypted_folder_is_an_error_or_harmless() {
    flip("sealed", true);
}

fn flip(kind: &str, encrypted: bool) {
    let root = std::env::temp_dir().join(format!("pando-flips-{kind}-{}", std::process::id()));
    let (whole, broken) = (root.join("whole"), root.join("broken"));
    fs::create_dir_all(&whole).unwrap();
    let idents = filled(&whole, encrypted);
    copy(&whole, &broken);
    let truth = outcome(&broken, &idents, encrypted).unwrap();
    let rng = SeededRng::new(3);
    let mut all = Vec::new();
    files(&whole, &mut all);
    all.sort();
    let mut tally: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    let mut wrong = Vec::new();
    let rounds: u64 = std::env::var("FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    for path in &all {
        let name = path.strip_prefix(&whole).unwrap();
        let len = fs::metadata(path).unwrap().len();
        // The ends of the logs most of all: damage there looks like a write that was cut off.
        let is_log = name.starts_with("journal");
        for n in 0..if is_log { 4 * rounds } else { rounds } {
            copy(&whole, &broken);
            let mut bytes = fs::read(path).unwrap();
            let last = if is_log && n % 2 == 0 { len.min(200) } else { len };
            let at = (len - 1 - rng.below(last)) as usize;
            bytes[at] ^= 1 << rng.below(8);
            fs::write(broken.join(name), bytes).unwrap();
            let kind = name.display().to_string();
            let (errors, same) = tally.entry(kind.clone()).or_default();
            match outcome(&broken, &idents, encrypted) {
                Ok(found) if found == truth => *same += 1,
                Ok(_) => wrong.push(format!("{kind} byte {at} of {len}: a wrong answer")),
                Err(e) if e.starts_with("panic") => wrong.push(format!("{kind} byte {at} of {len}: {e}")),
                Err(e) => {
                    let told = e.contains("directory is damaged")
                        || e.contains("key store journal/keystore is damaged");
                    assert!(told && names(&e, &kind), "{kind} byte {at}: {e}");
                    *errors += 1;
                }
            }
        }
    }
    let _ = fs::remove_dir_all(&root);
    for (kind, (errors, same)) in &tally {
        println!("{kind}: {errors} errors, {same} harmless");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
