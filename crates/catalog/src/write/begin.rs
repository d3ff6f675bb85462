//! Units of work are begun here: logged ones behind the write gate, local ones, and those that apply entries.

use crate::Catalog;
use crate::schema::collection::Collection;
use crate::write::array_marks::Marks;
use crate::write::unit::WriteUnit;
use pando_base::{Result, Timestamp};
use pando_storage::{BeginOptions, OnPrepared, ReadAt};

impl Catalog {
    /// Begins a unit of work that writes to collections like `coll`.
    pub fn begin_write(&self, coll: &Collection) -> Result<WriteUnit> {
        self.begin_unit(coll.replicated)
    }
    /// The same for a write that must not look past what prepared transactions have written: it fails with
    /// [`PREPARE_CONFLICT`](pando_storage::PREPARE_CONFLICT) at the first of it.
    pub fn begin_write_waiting(&self, coll: &Collection) -> Result<WriteUnit> {
        if !coll.replicated {
            return self.begin_unit(false);
        }
        let entered = self.gate().enter()?;
        let waits = BeginOptions { on_prepared: OnPrepared::Conflict };
        Ok(WriteUnit::logged(self, self.storage().begin_with(ReadAt::Latest, waits)?, entered))
    }
    pub(crate) fn begin_unit(&self, replicated: bool) -> Result<WriteUnit> {
        if replicated {
            // The gate first: the snapshot must hold everything an earlier primary left behind.
            let entered = self.gate().enter()?;
            Ok(WriteUnit::logged(self, self.storage().begin(ReadAt::Latest)?, entered))
        } else {
            Ok(WriteUnit::local(self, self.storage().begin_local()?))
        }
    }
    /// Begins a unit whose rows carry the timestamp of an entry that is already in the log.
    pub(crate) fn begin_applied(&self, ts: Timestamp) -> Result<WriteUnit> {
        Ok(WriteUnit::applied(self, self.storage().begin(ReadAt::Applied)?, ts, None))
    }
    pub(crate) fn begin_applied_marking(&self, ts: Timestamp, marks: &Marks) -> Result<WriteUnit> {
        Ok(WriteUnit::applied(self, self.storage().begin(ReadAt::Applied)?, ts, Some(marks.clone())))
    }
}
