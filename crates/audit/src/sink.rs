//! Where records go.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Waits for the disk.
pub type Sync = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// A file, the console, syslog. Called by one at a time.
pub trait Sink: Send {
    /// Takes one record. It outlives the process when this returns.
    fn write(&mut self, record: &[u8]) -> io::Result<()>;
    /// What brings all records so far to the disk. It takes long, and is done beside further records; `None` where that is not ours to do.
    fn sync(&self) -> io::Result<Option<Sync>> {
        Ok(None)
    }
    /// Begins a new file. Where the old one is now, named by the time; `None` where there is no file, or somebody else has moved it.
    fn rotate(&mut self, _wall_ms: i64) -> io::Result<Option<PathBuf>> {
        Ok(None)
    }
    /// Whether a rotation begins something new, which is then told there first.
    fn rotates(&self) -> bool {
        false
    }
}

/// Keeps everything, for tests. Cheap to clone; clones share.
#[derive(Clone, Default)]
pub struct Memory {
    records: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Memory {
    /// What was written since the last call.
    pub fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.records.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Sink for Memory {
    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).push(record.to_vec());
        Ok(())
    }
    fn rotates(&self) -> bool {
        true
    }
}
