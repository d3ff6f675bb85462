//! A real folder for tables whose engine does its own file I/O; all else stays on the simulated disk.
//!
//! The folder keeps whatever was written, also when power is lost: a disk may be that quick. It is gone with its machine.

use pando_env::{Disk, DiskFile};
use pando_storage::testing::{FaultyDisk, RealDisk};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Below this the engine works.
const TABLES: &str = "tables";
/// In memory where there is such a place: nothing in it outlives the run.
const MEMORY: &str = "/dev/shm";

static NUMBER: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        let memory = Path::new(MEMORY);
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let name = format!("pando-sim-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let folder = parent.join(name);
        std::fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        Folder(folder)
    }
    pub(crate) fn beside(&self, disk: Arc<FaultyDisk>) -> Beside {
        Beside { real: RealDisk::new(self.0.clone()), folder: self.0.clone(), disk }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Tables in the folder, the rest on the disk.
pub(crate) struct Beside {
    folder: PathBuf,
    real: RealDisk,
    disk: Arc<FaultyDisk>,
}

impl Beside {
    fn at(&self, path: &str) -> &dyn Disk {
        let of_tables = path == TABLES || path.strip_prefix(TABLES).is_some_and(|rest| rest.starts_with('/'));
        if of_tables { &self.real } else { &*self.disk }
    }
}

impl Disk for Beside {
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        self.at(path).open(path, create)
    }
    fn exists(&self, path: &str) -> bool {
        self.at(path).exists(path)
    }
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.at(dir).list(dir)
    }
    fn create_dir_all(&self, dir: &str) -> io::Result<()> {
        self.at(dir).create_dir_all(dir)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.at(from).rename(from, to)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.at(path).remove(path)
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.at(dir).sync_dir(dir)
    }
    fn real_path(&self) -> Option<PathBuf> {
        Some(self.folder.clone())
    }
    fn free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes()
    }
}
