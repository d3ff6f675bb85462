//! Temporary files for sorts and groups, in a folder of their own.

use pando_base::Result;
use pando_env::{Disk, DiskFile, Env};
use pando_query::sort::{SpillFile, SpillSpace};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Where spills go. The folder is made, and emptied, when the first one is.
pub struct Spills {
    disk: Arc<dyn Disk>,
    folder: String,
    next: AtomicU64,
    /// The folder is there and was emptied.
    begun: Mutex<bool>,
}

impl Spills {
    /// In a folder that nobody else uses.
    pub fn new(env: &Env, folder: &str) -> Arc<Spills> {
        let (disk, folder) = (env.disk.clone(), folder.to_owned());
        Arc::new(Spills { disk, folder, next: AtomicU64::new(0), begun: Mutex::new(false) })
    }
    /// The same, emptied at once of what an earlier process has left.
    pub fn emptied(env: &Env, folder: &str) -> Result<Arc<Spills>> {
        let spills = Spills::new(env, folder);
        spills.begin()?;
        Ok(spills)
    }
    fn begin(&self) -> Result<()> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if *begun {
            return Ok(());
        }
        self.disk.create_dir_all(&self.folder)?;
        for name in self.disk.list(&self.folder)? {
            self.disk.remove(&format!("{}/{name}", self.folder))?;
        }
        *begun = true;
        Ok(())
    }
}

impl SpillSpace for Spills {
    fn create(&self) -> Result<Box<dyn SpillFile>> {
        self.begin()?;
        let path = format!("{}/spill.{}", self.folder, self.next.fetch_add(1, Relaxed));
        let file = self.disk.open(&path, true)?;
        Ok(Box::new(Spill { disk: self.disk.clone(), path, file, len: 0 }))
    }
}

struct Spill {
    disk: Arc<dyn Disk>,
    path: String,
    file: Arc<dyn DiskFile>,
    len: u64,
}

impl SpillFile for Spill {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_at(self.len, bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        Ok(self.file.read_at(offset, buf)?)
    }
    fn len(&self) -> u64 {
        self.len
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        // A file that stays is removed at the next start.
        let _ = self.disk.remove(&self.path);
    }
}
