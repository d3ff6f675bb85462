//! Where sorts and groups put what does not fit in memory.

use pando_base::Result;

/// Where a sort or group may put what does not fit in memory. Implemented over the environment's disk.
pub trait SpillSpace: Send + Sync {
    /// A new empty temporary file, removed when dropped.
    fn create(&self) -> Result<Box<dyn SpillFile>>;
}

/// One temporary file: written once from front to back, then read at any offset.
pub trait SpillFile: Send + Sync {
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
    /// Reads up to `buf.len()` bytes at `offset`; fewer only at the end.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize>;
    fn len(&self) -> u64;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
