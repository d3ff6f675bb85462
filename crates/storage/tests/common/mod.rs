//! Shared by the tests: opening on a disk, one-row units, replay.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use pando_base::Timestamp;
use pando_bson::{DocBuilder, RawDoc, Value};
use pando_env::Disk;
use pando_storage::testing::{self, ManualClock, RealDisk};
use pando_storage::{Backend, Dir, Ident, Options, ReadAt, Storage};
use std::ops::Bound;
use std::sync::Arc;

pub fn open_on(disk: Arc<dyn Disk>, opts: Options) -> (Storage, Arc<ManualClock>) {
    let (env, clock) = testing::env_on(disk, 5);
    (Storage::open(env, opts).unwrap(), clock)
}

pub fn mem() -> Options {
    Options { backend: Backend::Mem, ..Options::default() }
}
pub fn lsm() -> Options {
    Options { backend: Backend::Lsm, cache_bytes: 1 << 20, ..Options::default() }
}

/// A folder removed at the end of the test.
pub struct Folder(pub Arc<RealDisk>);
impl Folder {
    pub fn new(name: &str) -> Folder {
        Folder(Arc::new(RealDisk::fresh(name)))
    }
}
impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0.root());
    }
}

/// One row and its log entry, which is enough to replay it.
pub fn put(s: &Storage, i: Ident, key: &[u8], value: Option<&[u8]>) -> Timestamp {
    let mut t = s.begin(ReadAt::Latest).unwrap();
    match value {
        Some(v) => t.put(i, key, v).unwrap(),
        None => t.delete(i, key).unwrap(),
    }
    let mut doc = DocBuilder::new();
    doc.i64("i", i64::from(i.0)).binary("k", 0, key);
    if let Some(v) = value {
        doc.binary("v", 0, v);
    }
    t.log_entry(s.log().reserve_one(), &doc.finish());
    t.commit().unwrap()
}

pub fn replay(s: &Storage) {
    s.start_replay();
    let mut log = s.log().read(Bound::Excluded(s.recovery_ts()), false);
    while let Some((ts, entry)) = log.next().unwrap() {
        let entry = RawDoc::trusted(&entry);
        let bytes = |name: &str| match entry.get(name) {
            Some(Value::Binary { bytes, .. }) => Some(bytes.to_vec()),
            _ => None,
        };
        let mut t = s.begin(ReadAt::Applied).unwrap();
        t.set_commit_ts(ts);
        let i = Ident(entry.get("i").unwrap().as_i64().unwrap() as u32);
        match bytes("v") {
            Some(v) => t.put(i, &bytes("k").unwrap(), &v).unwrap(),
            None => t.delete(i, &bytes("k").unwrap()).unwrap(),
        }
        t.commit().unwrap();
    }
    s.end_replay();
    s.log().publish(s.log().last());
}

pub fn get(s: &Storage, at: ReadAt, i: Ident, key: &[u8]) -> Option<Vec<u8>> {
    s.begin(at).unwrap().get(i, key).unwrap().map(|b| b.to_vec())
}

pub fn count(s: &Storage, at: ReadAt, i: Ident) -> usize {
    let mut c = s.begin(at).unwrap().scan(i, Bound::Unbounded, Bound::Unbounded, Dir::Forward).unwrap();
    std::iter::from_fn(|| c.next().unwrap()).count()
}

pub fn checkpoint(s: &Storage) {
    s.set_stable(s.all_durable());
    s.checkpoint().unwrap();
}

/// The table files of all trees of records.
#[allow(dead_code)]
pub fn record_tables(folder: &Folder) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for tree in std::fs::read_dir(folder.0.root().join("tables")).unwrap() {
        let tree = tree.unwrap().path();
        if tree.file_name().unwrap().to_str().unwrap().starts_with("records") {
            found.extend(std::fs::read_dir(tree.join("tables")).unwrap().map(|f| f.unwrap().path()));
        }
    }
    found
}
