//! Tables as ordered maps: repeatable, without threads.
//!
//! Each run is also a file on the environment's disk, so a simulated crash finds the tables as real ones would
//! be: a run is there entirely or not at all. Opening reads the files back; now and then they become one.

use super::{Gc, Kv, KvBulk, KvIter, KvWalk, RunRow, Tree, TreeStats};
use crate::row;
use lsm_tree::Slice;
use pando_base::panics::poisoned;
use pando_base::sync::Mutex;
use pando_base::{Error, Result, limits};
use pando_encryption::{Keys, Purpose};
use pando_env::Disk;
use pando_env::disk::{make_folder, write_again};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};

type Map = BTreeMap<Slice, Slice>;

const DIR: &str = "tables";
/// A file that holds everything (later files add to it), or the rows of one run.
const WHOLE: &str = "whole";
const RUN: &str = "run";

/// A handle on the maps; clones share them.
#[derive(Clone)]
pub(crate) struct MemKv(Arc<Maps>);

pub(crate) struct Maps {
    disk: Arc<dyn Disk>,
    keys: Option<Arc<Keys>>,
    /// By number.
    trees: Vec<RwLock<Arc<Map>>>,
    /// Numbers of the files, ascending.
    files: Mutex<Vec<(String, u64)>>,
    /// Held by whoever changes the maps.
    changing: Mutex<()>,
    /// A file could not be written or synced. Nothing is written after it: its rest would no longer be the last file.
    failed: AtomicBool,
}

/// Walks a map that may be replaced meanwhile: keeps the old one and a position.
struct Walk {
    map: Arc<Map>,
    lower: Bound<Slice>,
    upper: Bound<Slice>,
    backward: bool,
    row: (Slice, Slice),
}

impl KvWalk for Walk {
    fn step(&mut self) -> Result<bool> {
        let bounds = (self.lower.as_ref().map(|k| &**k), self.upper.as_ref().map(|k| &**k));
        if crate::writes::empty_range(bounds.0, bounds.1) {
            return Ok(false);
        }
        let mut range = self.map.range::<[u8], _>(bounds);
        let next = if self.backward { range.next_back() } else { range.next() };
        let Some((key, value)) = next else { return Ok(false) };
        self.row = (key.clone(), value.clone());
        if self.backward {
            self.upper = Bound::Excluded(key.clone());
        } else {
            self.lower = Bound::Excluded(key.clone());
        }
        Ok(true)
    }
    fn key(&self) -> &[u8] {
        &self.row.0
    }
    fn value(&self) -> &[u8] {
        &self.row.1
    }
    fn share(&self) -> Slice {
        self.row.1.clone()
    }
}

const REMOVED: u32 = u32::MAX;

fn encode(out: &mut Vec<u8>, tree: Tree, key: &[u8], value: Option<&[u8]>) {
    out.push(tree.number());
    out.extend_from_slice(&(key.len() as u32).to_le_bytes());
    out.extend_from_slice(&value.map_or(REMOVED, |v| v.len() as u32).to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(value.unwrap_or_default());
}

fn opened(bytes: Vec<u8>, keys: Option<&Keys>) -> Option<Vec<u8>> {
    match keys {
        Some(keys) => keys.opened(Purpose::File, DIR.as_bytes(), &bytes),
        None => Some(bytes),
    }
}

/// The rows of a file; `None` when it is not whole.
fn decode(bytes: &[u8]) -> Option<Vec<(usize, Slice, Option<Slice>)>> {
    let (mut b, crc) = bytes.split_last_chunk::<4>()?;
    if crc32c::crc32c(b) != u32::from_le_bytes(*crc) {
        return None;
    }
    let mut rows = Vec::new();
    while let Some((tree, rest)) = b.split_first() {
        let (key_len, rest) = rest.split_first_chunk::<4>()?;
        let (value_len, rest) = rest.split_first_chunk::<4>()?;
        let value_len = u32::from_le_bytes(*value_len);
        let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*key_len) as usize)?;
        let (value, rest) =
            rest.split_at_checked(if value_len == REMOVED { 0 } else { value_len as usize })?;
        rows.push((*tree as usize, Slice::from(key), (value_len != REMOVED).then(|| Slice::from(value))));
        b = rest;
    }
    Some(rows)
}

impl MemKv {
    pub(crate) fn open(disk: Arc<dyn Disk>, keys: Option<Arc<Keys>>) -> Result<MemKv> {
        make_folder(&*disk, DIR)?;
        let mut files: Vec<(String, u64)> = Vec::new();
        for name in disk.list(DIR)? {
            if let Some((kind, number)) = name.split_once('.')
                && let Ok(number) = number.parse()
            {
                files.push((kind.to_owned(), number));
            }
        }
        files.sort_by_key(|(_, n)| *n);
        let mut maps = vec![Map::new(); Tree::ALL.len()];
        let mut good: Vec<(String, u64)> = Vec::new();
        let count = files.len();
        for (i, (kind, number)) in files.into_iter().enumerate() {
            let path = format!("{DIR}/{kind}.{number:08}");
            let file = disk.open(&path, false)?;
            let mut bytes = vec![0; file.len()? as usize];
            file.read_at(0, &mut bytes)?;
            let Some(rows) = opened(bytes, keys.as_deref()).and_then(|bytes| decode(&bytes)) else {
                // The last file may be an interrupted write; its caller never heard that it was done.
                if i + 1 == count {
                    disk.remove(&path)?;
                    break;
                }
                return Err(crate::damage::damaged(format!("table file {path}")));
            };
            if kind == WHOLE {
                maps = vec![Map::new(); Tree::ALL.len()];
            }
            for (tree, key, value) in rows {
                let Some(map) = maps.get_mut(tree) else { continue };
                match value {
                    Some(value) => map.insert(key, value),
                    None => map.remove(&key),
                };
            }
            good.push((kind, number));
        }
        // Each file is synced before the next is written, so only the last one may lie in the machine's memory alone. It is
        // about to be no longer the last.
        if let Some((kind, number)) = good.last() {
            write_again(&*disk.open(&format!("{DIR}/{kind}.{number:08}"), false)?, 0)?;
        }
        disk.sync_dir(DIR)?;
        let trees = maps.into_iter().map(|m| RwLock::new(Arc::new(m))).collect();
        Ok(MemKv(Arc::new(Maps {
            disk,
            keys,
            trees,
            files: Mutex::new(good),
            changing: Mutex::default(),
            failed: AtomicBool::new(false),
        })))
    }
    fn map(&self, tree: Tree) -> Arc<Map> {
        self.0.trees[usize::from(tree.number())].read().unwrap_or_else(poisoned).clone()
    }
    fn replace(&self, tree: Tree, map: Map) {
        *self.0.trees[usize::from(tree.number())].write().unwrap_or_else(poisoned) = Arc::new(map);
    }
    fn write_file(&self, kind: &str, bytes: Vec<u8>) -> Result<()> {
        if self.0.failed.load(Ordering::Acquire) {
            return Err(Error::internal("an earlier write of a table file failed"));
        }
        let done = self.try_write_file(kind, bytes);
        self.0.failed.store(done.is_err(), Ordering::Release);
        done
    }
    fn try_write_file(&self, kind: &str, mut bytes: Vec<u8>) -> Result<()> {
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        if let Some(keys) = &self.0.keys {
            let plain = std::mem::take(&mut bytes);
            keys.seal(Purpose::File, DIR.as_bytes(), &plain, &mut bytes);
        }
        let mut files = self.0.files.lock().unwrap_or_else(poisoned);
        let number = files.last().map_or(1, |(_, n)| n + 1);
        let file = self.0.disk.open(&format!("{DIR}/{kind}.{number:08}"), true)?;
        file.truncate(0)?;
        file.write_at(0, &bytes)?;
        file.sync()?;
        self.0.disk.sync_dir(DIR)?;
        if kind == WHOLE {
            for (kind, number) in files.drain(..) {
                self.0.disk.remove(&format!("{DIR}/{kind}.{number:08}"))?;
            }
            self.0.disk.sync_dir(DIR)?;
        }
        files.push((kind.to_owned(), number));
        Ok(())
    }
    fn write_whole(&self) -> Result<()> {
        let mut bytes = Vec::new();
        for tree in Tree::ALL {
            self.map(tree).iter().for_each(|(k, v)| encode(&mut bytes, tree, k, Some(v)));
        }
        self.write_file(WHOLE, bytes)
    }
}

/// Whether a compaction may drop this row.
pub(crate) fn is_garbage(tree: Tree, key: &[u8], value: &[u8], gc: &Gc) -> bool {
    let ident = row::ident_of(key);
    if gc.dead.contains(&ident) || (matches!(tree, Tree::Records(_)) && Tree::of(ident) != tree) {
        return true;
    }
    match tree {
        Tree::History => row::stop_of(key) <= gc.below,
        _ => row::header(value).is_ok_and(|(ts, deleted)| deleted && ts <= gc.below),
    }
}

impl Kv for MemKv {
    fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Slice>> {
        Ok(self.map(tree).get(key).cloned())
    }
    fn range(&self, tree: Tree, lower: Bound<&[u8]>, upper: Bound<&[u8]>, backward: bool) -> KvIter {
        let (lower, upper) = (lower.map(Slice::from), upper.map(Slice::from));
        Box::new(Walk { map: self.map(tree), lower, upper, backward, row: Default::default() })
    }
    fn write_run(&self, tree: Tree, rows: &mut dyn Iterator<Item = Result<RunRow>>) -> Result<()> {
        let _one = self.0.changing.lock().unwrap_or_else(poisoned);
        let mut bytes = Vec::new();
        let mut map = Map::clone(&self.map(tree));
        for row in rows {
            let (key, value) = row?;
            encode(&mut bytes, tree, &key, value.as_deref());
            match value {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        if !bytes.is_empty() {
            self.write_file(RUN, bytes)?;
            self.replace(tree, map);
        }
        Ok(())
    }
    fn compact(&self, gc: &Gc) -> Result<bool> {
        let _one = self.0.changing.lock().unwrap_or_else(poisoned);
        let files = self.0.files.lock().unwrap_or_else(poisoned).len();
        if files <= limits::MEM_BACKEND_FILES_MAX {
            return Ok(false);
        }
        for tree in Tree::ALL {
            let map = Map::clone(&self.map(tree));
            self.replace(tree, map.into_iter().filter(|(k, v)| !is_garbage(tree, k, v, gc)).collect());
        }
        self.write_whole()?;
        Ok(true)
    }
    fn compact_all(&self, tree: Tree, gc: &Gc) -> Result<()> {
        let _one = self.0.changing.lock().unwrap_or_else(poisoned);
        let map = Map::clone(&self.map(tree));
        self.replace(tree, map.into_iter().filter(|(k, v)| !is_garbage(tree, k, v, gc)).collect());
        self.write_whole()
    }
    fn has_rows(&self, tree: Tree, ident: u32) -> Result<bool> {
        let low = ident.to_be_bytes();
        let high = row::ident_end(ident);
        let upper = high.as_ref().map_or(Bound::Unbounded, |h| Bound::Excluded(&h[..]));
        self.range(tree, Bound::Included(&low), upper, false).step()
    }

    fn stats(&self, tree: Tree) -> TreeStats {
        let map = self.map(tree);
        let bytes = map.iter().map(|(k, v)| (k.len() + v.len()) as u64).sum();
        TreeStats { tables: 1, runs: 1, bytes }
    }
    fn memory(&self) -> (u64, u64) {
        (0, Tree::ALL.into_iter().map(|t| self.stats(t).bytes).sum())
    }
    fn pin(&self, each: &mut dyn FnMut(String) -> Result<()>) -> Result<()> {
        let _one = self.0.changing.lock().unwrap_or_else(poisoned);
        let files = self.0.files.lock().unwrap_or_else(poisoned);
        files.iter().try_for_each(|(kind, number)| each(format!("{DIR}/{kind}.{number:08}")))
    }
    fn bulk(&self, tree: Tree) -> Result<Box<dyn KvBulk>> {
        Ok(Box::new(Bulk { kv: self.clone(), tree, rows: Vec::new() }))
    }
}

struct Bulk {
    kv: MemKv,
    tree: Tree,
    rows: Vec<(Slice, Slice)>,
}

impl KvBulk for Bulk {
    fn push(&mut self, key: Slice, value: Slice) -> Result<()> {
        self.rows.push((key, value));
        Ok(())
    }
    fn finish(self: Box<Self>) -> Result<()> {
        self.kv.write_run(self.tree, &mut self.rows.into_iter().map(|(k, v)| Ok((k, Some(v)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FaultyDisk;

    /// What a failed sync left behind must stay the last file: only there is it taken for an interrupted write.
    #[test]
    fn nothing_is_written_after_a_failed_write() {
        let disk = Arc::new(FaultyDisk::new(1));
        let kv = MemKv::open(disk.clone(), None).unwrap();
        let put = |n: u8| {
            let row = (Slice::from([0, 0, 0, 1, n]), Some(Slice::from([0; 12])));
            kv.write_run(Tree::Indexes, &mut std::iter::once(Ok(row)))
        };
        put(1).unwrap();
        disk.lose_sync_in(0);
        assert!(put(2).is_err());
        let gc = Gc { below: u64::MAX, dead: Default::default() };
        assert!(put(3).is_err() && kv.compact_all(Tree::Indexes, &gc).is_err());
        disk.crash();
        let again = MemKv::open(disk, None).unwrap();
        assert_eq!(again.map(Tree::Indexes).len(), 1);
    }

    /// Killed between the write and the sync of a file, or after a sync that failed and lost it: the next process finds
    /// the file whole in the machine's memory and writes others after it. From then on no loss of power may take it away.
    #[test]
    fn a_file_that_was_never_synced_is_durable_once_it_is_found() {
        for seed in 0..20 {
            for lost in [false, true] {
                let disk = Arc::new(FaultyDisk::new(seed));
                let put = |kv: &MemKv, n: u8| {
                    let row = (Slice::from([0, 0, 0, 1, n]), Some(Slice::from([0; 12])));
                    kv.write_run(Tree::Indexes, &mut std::iter::once(Ok(row)))
                };
                let kv = MemKv::open(disk.clone(), None).unwrap();
                put(&kv, 1).unwrap();
                if lost {
                    disk.lose_sync_in(0)
                } else {
                    disk.fail_sync_in(0)
                }
                assert!(put(&kv, 2).is_err());
                disk.kill();
                disk.mend();
                let kv = MemKv::open(disk.clone(), None).unwrap();
                assert_eq!(kv.map(Tree::Indexes).len(), 2);
                disk.crash();
                let kv = MemKv::open(disk.clone(), None).unwrap();
                assert_eq!(kv.map(Tree::Indexes).len(), 2, "seed {seed}");
                put(&kv, 3).unwrap();
                disk.crash();
                assert_eq!(MemKv::open(disk, None).unwrap().map(Tree::Indexes).len(), 3);
            }
        }
    }
}
