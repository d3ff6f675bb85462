//! A disk around a disk: whatever is written through it lies encrypted on the inner one.
//!
//! Left as they are: files that seal what they hold themselves, or hold none of users' data.

use crate::file::SealedFile;
use crate::keys::Keys;
use pando_env::{Disk, DiskFile, Env};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Logs seal their records and tables their blocks; the checkpoint file holds timestamps and numbers, the key store is sealed
/// with the master key. Copies of such files on their way.
const PASSED_THROUGH: [&str; 3] = ["journal/", "tables/", "filecopy/"];

/// See the module text. Files that are read and written through it count when they are whole and synced: a crash may leave
/// the last page that was written unreadable.
pub struct SealedDisk {
    inner: Arc<dyn Disk>,
    keys: Arc<Keys>,
}

impl SealedDisk {
    pub fn new(inner: Arc<dyn Disk>, keys: Arc<Keys>) -> SealedDisk {
        SealedDisk { inner, keys }
    }
    /// The same world with a disk that encrypts.
    pub fn around(env: Env, keys: Arc<Keys>) -> Env {
        Env { disk: Arc::new(SealedDisk::new(env.disk.clone(), keys)), ..env }
    }
}

impl Disk for SealedDisk {
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.inner.open(path, create)?;
        if PASSED_THROUGH.iter().any(|dir| path.starts_with(dir)) {
            return Ok(file);
        }
        Ok(Arc::new(SealedFile::open(file, self.keys.clone(), path)?))
    }
    fn exists(&self, path: &str) -> bool {
        self.inner.exists(path)
    }
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }
    fn create_dir_all(&self, dir: &str) -> io::Result<()> {
        self.inner.create_dir_all(dir)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.inner.remove(path)
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }
    fn real_path(&self) -> Option<PathBuf> {
        self.inner.real_path()
    }
    fn free_bytes(&self) -> io::Result<u64> {
        self.inner.free_bytes()
    }
}
