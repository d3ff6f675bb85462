//! A disk that says "synced" and is not: the simulator must notice. Used by its own tests.

use pando_env::{Disk, DiskFile};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Passes everything on but the syncs of files.
pub(crate) struct LyingDisk(pub(crate) Arc<dyn Disk>);

struct LyingFile(Arc<dyn DiskFile>);

impl DiskFile for LyingFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, buf)
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }
}

impl Disk for LyingDisk {
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(LyingFile(self.0.open(path, create)?)))
    }
    fn exists(&self, path: &str) -> bool {
        self.0.exists(path)
    }
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.0.list(dir)
    }
    fn create_dir_all(&self, dir: &str) -> io::Result<()> {
        self.0.create_dir_all(dir)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.0.remove(path)
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.0.sync_dir(dir)
    }
    fn real_path(&self) -> Option<PathBuf> {
        None
    }
    fn free_bytes(&self) -> io::Result<u64> {
        self.0.free_bytes()
    }
}
