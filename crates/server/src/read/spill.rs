//! Temporary files for sorts and groups, in the data directory.

use pando_base::Result;
use pando_env::{Disk, DiskFile, Env};
use pando_query::sort::{SpillFile, SpillSpace};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const DIR: &str = "_tmp";

/// Where spills go. The folder is emptied at each start.
pub(crate) struct Spills {
    disk: Arc<dyn Disk>,
    next: AtomicU64,
}

impl Spills {
    pub(crate) fn open(env: &Env) -> Result<Arc<Spills>> {
        env.disk.create_dir_all(DIR)?;
        for name in env.disk.list(DIR)? {
            env.disk.remove(&format!("{DIR}/{name}"))?;
        }
        Ok(Arc::new(Spills { disk: env.disk.clone(), next: AtomicU64::new(0) }))
    }
}

impl SpillSpace for Spills {
    fn create(&self) -> Result<Box<dyn SpillFile>> {
        let path = format!("{DIR}/spill.{}", self.next.fetch_add(1, Relaxed));
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
