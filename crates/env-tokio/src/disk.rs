//! A folder as a [`Disk`]. Calls block; the storage layer decides on which thread.

use crate::syncs;
use pando_env::{Disk, DiskFile};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct RealDisk {
    root: PathBuf,
}

impl RealDisk {
    pub fn new(root: &Path) -> io::Result<RealDisk> {
        fs::create_dir_all(root)?;
        Ok(RealDisk { root: root.to_owned() })
    }
    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }
}

impl Disk for RealDisk {
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let file =
            File::options().read(true).write(true).create(create).truncate(false).open(self.at(path))?;
        Ok(Arc::new(RealFile(file)))
    }
    fn exists(&self, path: &str) -> bool {
        self.at(path).exists()
    }
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.at(dir))? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    }
    fn create_dir_all(&self, dir: &str) -> io::Result<()> {
        fs::create_dir_all(self.at(dir))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.at(path))
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        let folder = File::open(self.at(dir))?;
        let _running = syncs::begin();
        folder.sync_all()
    }
    fn real_path(&self) -> Option<PathBuf> {
        Some(self.root.clone())
    }
    fn free_bytes(&self) -> io::Result<u64> {
        let s = rustix::fs::statvfs(&self.root)?;
        Ok(s.f_bavail.saturating_mul(s.f_frsize))
    }
}

struct RealFile(File);

impl DiskFile for RealFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.0.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }
    fn forget_cached(&self, from: u64, to: u64) {
        if let Some(len) = std::num::NonZeroU64::new(to.saturating_sub(from)) {
            // Only a hint: a file system that does not take it loses nothing.
            let _ = rustix::fs::fadvise(&self.0, from, Some(len), rustix::fs::Advice::DontNeed);
        }
    }
    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.0.write_all_at(buf, offset)
    }
    fn sync(&self) -> io::Result<()> {
        let _running = syncs::begin();
        self.0.sync_data()
    }
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
}
