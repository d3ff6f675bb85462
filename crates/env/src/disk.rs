//! Files as the log and the checkpoint see them. The simulated disk can lose unsynced bytes, tear writes
//! and fail with EIO or ENOSPC, so callers must treat every error as final: after a failed
//! [`DiskFile::sync`] nothing is known about the file and the process must stop.

use std::io;
use std::sync::Arc;

/// A directory tree of files; paths are relative to the data directory and use `/`.
pub trait Disk: Send + Sync {
    /// Opens for reading and writing, creating the file when `create` says so.
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn DiskFile>>;
    fn exists(&self, path: &str) -> bool;
    /// File names (not folders) directly under `dir`, sorted.
    fn list(&self, dir: &str) -> io::Result<Vec<String>>;
    fn create_dir_all(&self, dir: &str) -> io::Result<()>;
    /// Atomic replace; durable only after `sync_dir`.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, path: &str) -> io::Result<()>;
    fn sync_dir(&self, dir: &str) -> io::Result<()>;
    /// The real folder behind this disk, for engines that do their own file I/O; `None` in simulation.
    fn real_path(&self) -> Option<std::path::PathBuf>;
    /// Bytes free for new data.
    fn free_bytes(&self) -> io::Result<u64>;
}

/// An open file. Positions are explicit; there is no shared cursor.
pub trait DiskFile: Send + Sync {
    /// Reads up to `buf.len()` bytes at `offset`; fewer only at the end of the file.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize>;
    /// Writes all of `buf` at `offset`, growing the file as needed.
    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()>;
    /// Makes content and length durable (fdatasync).
    fn sync(&self) -> io::Result<()>;
    fn len(&self) -> io::Result<u64>;
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    fn truncate(&self, len: u64) -> io::Result<()>;
    /// A hint: these bytes are synced and will hardly be read soon, so memory that caches them may be reused.
    fn forget_cached(&self, _from: u64, _to: u64) {}
}

/// Makes durable what a start has found in a file from `from` on. An earlier process may have been killed before its sync,
/// or have ended because its sync failed: after that the machine's memory still shows what the disk has not got, and a sync
/// alone says Ok and brings nothing there. So the bytes, and the length, are written once more. The name is the caller's:
/// [`Disk::sync_dir`].
pub fn write_again(file: &dyn DiskFile, from: u64) -> io::Result<()> {
    let len = file.len()?;
    let mut bytes = vec![0; len.saturating_sub(from) as usize];
    let got = file.read_at(from, &mut bytes)?;
    file.truncate(len)?;
    file.write_at(from, &bytes[..got])?;
    file.sync()
}

/// A whole file; `None` where there is none.
pub fn read_whole(disk: &dyn Disk, path: &str) -> io::Result<Option<Vec<u8>>> {
    if !disk.exists(path) {
        return Ok(None);
    }
    let file = disk.open(path, false)?;
    let mut bytes = vec![0; file.len()? as usize];
    let got = file.read_at(0, &mut bytes)?;
    bytes.truncate(got);
    Ok(Some(bytes))
}

/// Makes a folder and those above it, their names durable: what is synced in a folder whose own name is lost is lost too.
pub fn make_folder(disk: &dyn Disk, folder: &str) -> io::Result<()> {
    disk.create_dir_all(folder)?;
    let mut above = folder;
    while !above.is_empty() {
        above = above.rsplit_once('/').map_or("", |(dir, _)| dir);
        disk.sync_dir(above)?;
    }
    Ok(())
}
