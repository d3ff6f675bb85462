//! A disk in memory that keeps the promises of [`Disk`] and not one more.
//!
//! Written bytes are durable after `sync` of their file, names after `sync_dir` of their folder. A crash keeps
//! what is durable and, of the rest, a random choice: each unsynced write is kept, lost, or torn at a sector;
//! unsynced name changes are kept up to a random point. Faults can be armed: sync fails (EIO), disk full (ENOSPC),
//! a flipped bit.

use super::SeededRng;
use pando_env::{Disk, DiskFile};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const SECTOR: usize = 512;

#[derive(Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

#[derive(Default)]
struct Content {
    live: Vec<u8>,
    synced: Vec<u8>,
    /// What happened since the last sync.
    pending: Vec<Change>,
}

impl Content {
    fn apply(bytes: &mut Vec<u8>, change: &Change) {
        match change {
            Change::Truncate(len) => bytes.resize(*len as usize, 0),
            Change::Write(at, data) => {
                let end = *at as usize + data.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*at as usize..end].copy_from_slice(data);
            }
        }
    }
}

type Node = Arc<Mutex<Content>>;

#[derive(Clone)]
enum NameChange {
    Link(String, Node),
    Unlink(String),
}

#[derive(Default)]
struct Faults {
    /// Syncs until one fails; `None` = never.
    sync_fails_in: Option<u64>,
    /// Syncs until one fails and drops what it should have written.
    sync_loses_in: Option<u64>,
    write_fails_in: Option<u64>,
    write_fails_once_in: Option<u64>,
    /// Syncs of folders until one, and every later one, fails.
    sync_dir_fails_in: Option<u64>,
    /// A crash keeps any of the unsynced changes of names, not the oldest of them.
    shuffles_names: bool,
    capacity: Option<u64>,
    /// Writes to files below this folder fail with ENOSPC.
    full_folder: Option<String>,
    /// Calls that failed since the disk was last mended.
    errors: u64,
    /// After a crash the old handles are dead.
    generation: u64,
}

#[derive(Default)]
struct State {
    names: BTreeMap<String, Node>,
    durable: BTreeMap<String, Node>,
    /// Folders whose names are not durable, and with them nothing below.
    new_folders: BTreeSet<String>,
    /// Those, and the durable ones.
    folders: BTreeSet<String>,
    /// Changes of names since their folder was last synced, in order.
    pending: Vec<NameChange>,
    faults: Faults,
    syncs: u64,
}

/// See the module text.
pub struct FaultyDisk {
    state: Arc<Mutex<State>>,
    rng: SeededRng,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

fn dir_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

fn eio() -> io::Error {
    io::Error::from_raw_os_error(5)
}

impl FaultyDisk {
    pub fn new(seed: u64) -> FaultyDisk {
        FaultyDisk { state: Arc::default(), rng: SeededRng::new(seed) }
    }
    /// Power is lost: handles die, what was not synced is kept, lost or torn at random.
    pub fn crash(&self) {
        let mut state = lock(&self.state);
        state.faults.generation += 1;
        state.faults.sync_fails_in = None;
        state.faults.sync_loses_in = None;
        state.faults.write_fails_in = None;
        state.faults.write_fails_once_in = None;
        state.faults.sync_dir_fails_in = None;
        let kept = self.rng.below(state.pending.len() as u64 + 1) as usize;
        let shuffles = state.faults.shuffles_names;
        let pending = state.pending.drain(..).enumerate();
        let keeps = |i: usize| if shuffles { self.rng.below(2) == 0 } else { i < kept };
        let changes: Vec<NameChange> = pending.filter(|(i, _)| keeps(*i)).map(|(_, c)| c).collect();
        for change in changes {
            match change {
                NameChange::Link(name, node) => state.durable.insert(name, node),
                NameChange::Unlink(name) => state.durable.remove(&name),
            };
        }
        let lost: Vec<String> = std::mem::take(&mut state.new_folders).into_iter().collect();
        let lost: Vec<String> = lost.into_iter().filter(|_| self.rng.below(2) == 0).collect();
        let below = |path: &str, folder: &str| path.strip_prefix(folder).is_some_and(|p| p.starts_with('/'));
        for folder in &lost {
            state.folders.retain(|f| f != folder && !below(f, folder));
            state.durable.retain(|name, _| !below(name, folder));
        }
        state.names = state.durable.clone();
        for node in state.names.values() {
            let mut content = lock(node);
            let mut bytes = std::mem::take(&mut content.synced);
            for change in std::mem::take(&mut content.pending) {
                match (self.rng.below(4), &change) {
                    (0, _) => {}
                    (1, Change::Write(at, data)) => {
                        let sectors = data.len().div_ceil(SECTOR) as u64;
                        let cut = (self.rng.below(sectors + 1) as usize * SECTOR).min(data.len());
                        Content::apply(&mut bytes, &Change::Write(*at, data[..cut].to_vec()));
                    }
                    _ => Content::apply(&mut bytes, &change),
                }
            }
            content.synced = bytes.clone();
            content.live = bytes;
        }
    }
    /// The process dies, the machine does not: everything written stays.
    pub fn kill(&self) {
        lock(&self.state).faults.generation += 1;
    }
    /// The `n`-th sync from now (0 = the next), and every later one, fails with EIO.
    pub fn fail_sync_in(&self, n: u64) {
        lock(&self.state).faults.sync_fails_in = Some(n);
    }
    /// The `n`-th sync from now fails with EIO and its bytes will never be durable, though later syncs succeed:
    /// what some operating systems do.
    pub fn lose_sync_in(&self, n: u64) {
        lock(&self.state).faults.sync_loses_in = Some(n);
    }
    /// The `n`-th write from now, and every later one, fails with EIO.
    pub fn fail_write_in(&self, n: u64) {
        lock(&self.state).faults.write_fails_in = Some(n);
    }
    /// The `n`-th write from now fails with EIO; later ones succeed.
    pub fn fail_write_once_in(&self, n: u64) {
        lock(&self.state).faults.write_fails_once_in = Some(n);
    }
    /// The `n`-th sync of a folder from now, and every later one, fails with EIO.
    pub fn fail_sync_dir_in(&self, n: u64) {
        lock(&self.state).faults.sync_dir_fails_in = Some(n);
    }
    /// Whether a crash keeps any of the unsynced changes of names, in place of the oldest of them.
    pub fn shuffle_names(&self, on: bool) {
        lock(&self.state).faults.shuffles_names = on;
    }
    /// Writes that would take more than this in all fail with ENOSPC.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        lock(&self.state).faults.capacity = bytes;
    }
    /// Files below this folder take no more bytes (ENOSPC).
    pub fn set_full_folder(&self, folder: Option<&str>) {
        lock(&self.state).faults.full_folder = folder.map(|f| format!("{f}/"));
    }
    /// Nothing fails any more.
    pub fn mend(&self) {
        let mut state = lock(&self.state);
        state.faults = Faults { generation: state.faults.generation, ..Faults::default() };
    }
    /// Calls that failed since [`FaultyDisk::mend`].
    pub fn errors(&self) -> u64 {
        lock(&self.state).faults.errors
    }
    /// Bytes of all files.
    pub fn used_bytes(&self) -> u64 {
        FaultyDisk::used(&lock(&self.state))
    }
    /// All bytes of a file.
    pub fn bytes(&self, path: &str) -> Vec<u8> {
        let node = lock(&self.state).names.get(path).cloned();
        node.map_or_else(Vec::new, |n| lock(&n).live.clone())
    }
    /// Syncs of files so far.
    pub fn syncs(&self) -> u64 {
        lock(&self.state).syncs
    }
    /// Flips a bit of a stored byte, durably.
    pub fn damage(&self, path: &str, at: usize) {
        let node = lock(&self.state).names.get(path).cloned();
        if let Some(node) = node {
            let mut content = lock(&node);
            for bytes in [true, false] {
                let bytes = if bytes { &mut content.live } else { &mut content.synced };
                if let Some(b) = bytes.get_mut(at) {
                    *b ^= 0x10;
                }
            }
        }
    }
    /// Paths of all files, sorted.
    pub fn paths(&self) -> Vec<String> {
        lock(&self.state).names.keys().cloned().collect()
    }
    pub fn file_len(&self, path: &str) -> usize {
        let node = lock(&self.state).names.get(path).cloned();
        node.map_or(0, |n| lock(&n).live.len())
    }
    fn used(state: &State) -> u64 {
        state.names.values().map(|n| lock(n).live.len() as u64).sum()
    }
}

struct File {
    path: String,
    node: Node,
    state: Arc<Mutex<State>>,
    generation: u64,
}

impl File {
    fn alive(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = lock(&self.state);
        if state.faults.generation == self.generation { Ok(state) } else { Err(eio()) }
    }
}

impl DiskFile for File {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        drop(self.alive()?);
        let content = lock(&self.node);
        let from = content.live.get(offset as usize..).unwrap_or_default();
        let n = from.len().min(buf.len());
        buf[..n].copy_from_slice(&from[..n]);
        Ok(n)
    }
    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        let mut state = self.alive()?;
        match &mut state.faults.write_fails_in {
            Some(0) => {
                state.faults.errors += 1;
                return Err(eio());
            }
            Some(n) => *n -= 1,
            None => {}
        }
        match &mut state.faults.write_fails_once_in {
            Some(0) => {
                state.faults.write_fails_once_in = None;
                state.faults.errors += 1;
                return Err(eio());
            }
            Some(n) => *n -= 1,
            None => {}
        }
        let full_folder = state.faults.full_folder.as_ref().is_some_and(|f| self.path.starts_with(f));
        let full = |capacity: u64| FaultyDisk::used(&state) + buf.len() as u64 > capacity;
        if full_folder || state.faults.capacity.is_some_and(full) {
            state.faults.errors += 1;
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut content = lock(&self.node);
        let change = Change::Write(offset, buf.to_vec());
        Content::apply(&mut content.live, &change);
        content.pending.push(change);
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        let mut state = self.alive()?;
        state.syncs += 1;
        match &mut state.faults.sync_fails_in {
            Some(0) => {
                state.faults.errors += 1;
                return Err(eio());
            }
            Some(n) => *n -= 1,
            None => {}
        }
        let mut content = lock(&self.node);
        let content = &mut *content;
        match &mut state.faults.sync_loses_in {
            Some(0) => {
                state.faults.sync_loses_in = None;
                state.faults.errors += 1;
                content.pending.clear();
                return Err(eio());
            }
            Some(n) => *n -= 1,
            None => {}
        }
        for change in content.pending.drain(..) {
            Content::apply(&mut content.synced, &change);
        }
        Ok(())
    }
    fn len(&self) -> io::Result<u64> {
        drop(self.alive()?);
        Ok(lock(&self.node).live.len() as u64)
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        drop(self.alive()?);
        let mut content = lock(&self.node);
        let change = Change::Truncate(len);
        Content::apply(&mut content.live, &change);
        content.pending.push(change);
        Ok(())
    }
}

impl Disk for FaultyDisk {
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = lock(&self.state);
        let generation = state.faults.generation;
        let node = match state.names.get(path) {
            Some(node) => node.clone(),
            None if create => {
                let node = Node::default();
                state.names.insert(path.to_owned(), node.clone());
                state.pending.push(NameChange::Link(path.to_owned(), node.clone()));
                node
            }
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        let (path, state) = (path.to_owned(), self.state.clone());
        Ok(Arc::new(File { path, node, state, generation }))
    }
    fn exists(&self, path: &str) -> bool {
        lock(&self.state).names.contains_key(path)
    }
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let state = lock(&self.state);
        let here = state.names.keys().filter(|p| dir_of(p) == dir);
        Ok(here.map(|p| p.rsplit('/').next().unwrap_or(p).to_owned()).collect())
    }
    fn create_dir_all(&self, dir: &str) -> io::Result<()> {
        let mut state = lock(&self.state);
        let mut folder = dir;
        while !folder.is_empty() && state.folders.insert(folder.to_owned()) {
            state.new_folders.insert(folder.to_owned());
            folder = dir_of(folder);
        }
        Ok(())
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = lock(&self.state);
        let node = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), node.clone());
        // One change: a crash shows both names or neither.
        state.pending.push(NameChange::Link(to.to_owned(), node));
        state.pending.push(NameChange::Unlink(from.to_owned()));
        Ok(())
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.names.remove(path).ok_or(io::ErrorKind::NotFound)?;
        state.pending.push(NameChange::Unlink(path.to_owned()));
        Ok(())
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        let mut state = lock(&self.state);
        match &mut state.faults.sync_dir_fails_in {
            Some(0) => return Err(eio()),
            Some(n) => *n -= 1,
            None => {}
        }
        state.new_folders.retain(|folder| dir_of(folder) != dir);
        let pending = std::mem::take(&mut state.pending);
        for change in pending {
            let name = match &change {
                NameChange::Link(n, _) | NameChange::Unlink(n) => n,
            };
            if dir_of(name) != dir {
                state.pending.push(change);
                continue;
            }
            match change {
                NameChange::Link(name, node) => state.durable.insert(name, node),
                NameChange::Unlink(name) => state.durable.remove(&name),
            };
        }
        Ok(())
    }
    fn real_path(&self) -> Option<std::path::PathBuf> {
        None
    }
    fn free_bytes(&self) -> io::Result<u64> {
        let state = lock(&self.state);
        Ok(state.faults.capacity.unwrap_or(u64::MAX / 2).saturating_sub(FaultyDisk::used(&state)))
    }
}
