//! A folder of a disk as a disk of its own.

use pando_env::{Disk, DiskFile};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

pub(super) struct Folder {
    disk: Arc<dyn Disk>,
    root: &'static str,
}

impl Folder {
    pub(super) fn new(disk: Arc<dyn Disk>, root: &'static str) -> Folder {
        Folder { disk, root }
    }
    fn at(&self, path: &str) -> String {
        match path {
            "" => self.root.to_owned(),
            path => format!("{}/{path}", self.root),
        }
    }
}

impl Disk for Folder {
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(&self.at(path), create)
    }
    fn exists(&self, path: &str) -> bool {
        self.disk.exists(&self.at(path))
    }
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.disk.list(&self.at(dir))
    }
    fn create_dir_all(&self, dir: &str) -> io::Result<()> {
        self.disk.create_dir_all(&self.at(dir))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(&self.at(from), &self.at(to))
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(&self.at(path))
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.disk.sync_dir(&self.at(dir))
    }
    fn real_path(&self) -> Option<PathBuf> {
        Some(self.disk.real_path()?.join(self.root))
    }
    fn free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes()
    }
}
