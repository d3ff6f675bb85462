//! The size that `replSetResizeOplog` gave the log: it outlives the process, and wins over what the next one is started
//! with.

use crate::Catalog;
use crate::read::oplog_source;
use crate::schema::snapshot::Named;
use pando_base::Result;
use pando_storage::{Ident, ReadAt};

/// Key of the row that holds it.
const OPLOG_SIZE: &[u8] = b"oplogBytes";

impl Catalog {
    /// Changes the bound at once and durably.
    pub fn resize_oplog(&self, bytes: u64) -> Result<()> {
        let mut unit = self.storage().begin_local()?;
        unit.put(Ident::META, OPLOG_SIZE, &bytes.to_le_bytes())?;
        unit.commit()?;
        self.storage().sync_local()?;
        self.storage().log().set_bytes_max(bytes);
        self.show_oplog()
    }

    /// At the start: the log as a collection, with the size it was given last.
    pub(crate) fn restore_oplog(&self) -> Result<()> {
        let stored = self.storage().begin(ReadAt::Applied)?.get(Ident::META, OPLOG_SIZE)?;
        if let Some(bytes) = stored.and_then(|row| row.first_chunk::<8>().map(|b| u64::from_le_bytes(*b))) {
            self.storage().log().set_bytes_max(bytes);
        }
        self.show_oplog()
    }

    fn show_oplog(&self) -> Result<()> {
        let size = i64::try_from(self.storage().log().bytes_max()).unwrap_or(i64::MAX);
        let oplog = oplog_source::collection(size)?;
        self.publish(|s| s.put(Named::Collection(oplog)));
        Ok(())
    }
}
