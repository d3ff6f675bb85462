//! A folder of the real file system as a [`Disk`].

use pando_env::{Disk, DiskFile};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct RealDisk {
    root: PathBuf,
}

impl RealDisk {
    pub fn new(root: impl Into<PathBuf>) -> RealDisk {
        RealDisk { root: root.into() }
    }
    /// A fresh folder under the system's temporary one.
    pub fn fresh(name: &str) -> RealDisk {
        let root = std::env::temp_dir().join(format!("pando-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let _ = fs::create_dir_all(&root);
        RealDisk { root }
    }
    pub fn root(&self) -> &Path {
        &self.root
    }
}

struct OpenFile(File);

impl DiskFile for OpenFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.0.read_at(&mut buf[done..], offset + done as u64)? {
                0 => break,
                n => done += n,
            }
        }
        Ok(done)
    }
    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.0.write_all_at(buf, offset)
    }
    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
}

impl Disk for RealDisk {
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(create)
            .truncate(false)
            .open(self.root.join(path))?;
        Ok(Arc::new(OpenFile(file)))
    }
    fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.root.join(dir))? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    }
    fn create_dir_all(&self, dir: &str) -> io::Result<()> {
        fs::create_dir_all(self.root.join(dir))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.root.join(from), self.root.join(to))
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.root.join(path))
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        File::open(self.root.join(dir))?.sync_all()
    }
    fn real_path(&self) -> Option<PathBuf> {
        Some(self.root.clone())
    }
    fn free_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX / 2)
    }
}
