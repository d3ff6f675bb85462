//! A disk whose unsynced bytes live in this process: killing it loses them, as losing power would.
//!
//! While the data folder holds a file `hold-syncs`, syncs do not come back; while it holds `fail-syncs`, they fail.
//!
//! For tests with real processes (`unsyncedWritesInMemory`). Names are kept as they are made; the table files of the
//! storage engine do not pass here: it syncs each before it is listed.

use crate::syncs;
use pando_env::{Disk, DiskFile};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

pub(crate) struct UnsyncedInMemory {
    disk: Arc<dyn Disk>,
    /// By name: whoever opens a file sees what others wrote.
    open: Mutex<BTreeMap<String, Weak<File>>>,
}

impl UnsyncedInMemory {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> UnsyncedInMemory {
        UnsyncedInMemory { disk, open: Mutex::default() }
    }
    fn names(&self) -> MutexGuard<'_, BTreeMap<String, Weak<File>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for UnsyncedInMemory {
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let mut names = self.names();
        if let Some(known) = names.get(path).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let inner = self.disk.open(path, create)?;
        let state = State { len: inner.len()?, steps: Vec::new() };
        let file = Arc::new(File { disk: self.disk.clone(), inner, state: Mutex::new(state) });
        names.insert(path.to_owned(), Arc::downgrade(&file));
        Ok(file)
    }
    fn exists(&self, path: &str) -> bool {
        self.disk.exists(path)
    }
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.disk.list(dir)
    }
    fn create_dir_all(&self, dir: &str) -> io::Result<()> {
        self.disk.create_dir_all(dir)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut names = self.names();
        self.disk.rename(from, to)?;
        match names.remove(from) {
            Some(file) => names.insert(to.to_owned(), file),
            None => names.remove(to),
        };
        Ok(())
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        let mut names = self.names();
        self.disk.remove(path)?;
        names.remove(path);
        Ok(())
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }
    fn real_path(&self) -> Option<PathBuf> {
        self.disk.real_path()
    }
    fn free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes()
    }
}

/// What was done and not synced.
enum Step {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

struct State {
    /// With all steps.
    len: u64,
    /// In order.
    steps: Vec<Step>,
}

struct File {
    disk: Arc<dyn Disk>,
    inner: Arc<dyn DiskFile>,
    state: Mutex<State>,
}

impl File {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskFile for File {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let state = self.lock();
        let wanted = state.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        let buf = &mut buf[..wanted];
        let there = self.inner.read_at(offset, buf)?;
        buf[there..].fill(0);
        for step in &state.steps {
            match step {
                Step::Write(at, bytes) => overlay(buf, offset, *at, bytes),
                Step::Truncate(len) => {
                    let kept = len.saturating_sub(offset).min(buf.len() as u64) as usize;
                    buf[kept..].fill(0);
                }
            }
        }
        Ok(wanted)
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        state.len = state.len.max(offset + bytes.len() as u64);
        state.steps.push(Step::Write(offset, bytes.to_vec()));
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        let running = syncs::begin();
        while self.disk.exists("hold-syncs") {
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(running);
        if self.disk.exists("fail-syncs") {
            return Err(io::Error::from_raw_os_error(5));
        }
        let mut state = self.lock();
        for step in std::mem::take(&mut state.steps) {
            match step {
                Step::Write(at, bytes) => self.inner.write_at(at, &bytes)?,
                Step::Truncate(len) => self.inner.truncate(len)?,
            }
        }
        self.inner.sync()
    }
    fn len(&self) -> io::Result<u64> {
        Ok(self.lock().len)
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut state = self.lock();
        state.len = len;
        state.steps.push(Step::Truncate(len));
        Ok(())
    }
}

/// Puts what `bytes`, which lie at `at`, share with `buf`, which lies at `offset`, into it.
fn overlay(buf: &mut [u8], offset: u64, at: u64, bytes: &[u8]) {
    let from = at.max(offset);
    let to = (at + bytes.len() as u64).min(offset + buf.len() as u64);
    if from < to {
        let source = &bytes[(from - at) as usize..(to - at) as usize];
        buf[(from - offset) as usize..(to - offset) as usize].copy_from_slice(source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RealDisk;

    fn content(file: &dyn DiskFile) -> Vec<u8> {
        let mut buf = vec![9; 64];
        let n = file.read_at(0, &mut buf).expect("bytes");
        buf.truncate(n);
        buf
    }

    #[test]
    fn what_is_not_synced_is_seen_here_and_nowhere_else() {
        let root = std::env::temp_dir().join(format!("pando-unsynced-{}", std::process::id()));
        let real: Arc<dyn Disk> = Arc::new(RealDisk::new(&root).expect("a folder"));
        let disk = UnsyncedInMemory::new(real.clone());
        let file = disk.open("a", true).expect("a file");
        file.write_at(0, b"abcdef").expect("a write");
        file.sync().expect("a sync");
        file.write_at(4, b"XYZ").expect("a write");
        file.truncate(6).expect("a cut");
        file.write_at(8, b"!").expect("a write");
        let under = real.open("a", false).expect("a file");
        assert_eq!(content(&*under), b"abcdef");
        assert_eq!(content(&*file), b"abcdXY\0\0!");
        assert_eq!(content(&*disk.open("a", false).expect("a file")), b"abcdXY\0\0!");
        disk.rename("a", "b").expect("a name");
        assert_eq!(content(&*disk.open("b", false).expect("a file")), b"abcdXY\0\0!");
        file.sync().expect("a sync");
        assert_eq!(content(&*under), b"abcdXY\0\0!");
        std::fs::remove_dir_all(root).expect("an end");
    }
}
