//! The rows in which checkpoints keep the table of sessions.

use super::Maintenance;
use pando_base::{OpTime, Result, SessionId};
use pando_bson::DocBuf;
use pando_catalog::SessionRecords;

impl Maintenance {
    /// What was kept last.
    pub fn session_records(&self) -> Result<Option<SessionRecords>> {
        self.catalog.session_records()
    }
    /// Keeps what these sessions have done, and forgets others. Counts from [`Maintenance::set_sessions_upto`] on.
    pub fn store_session_records(
        &self,
        changed: impl Iterator<Item = (SessionId, DocBuf)>,
        gone: impl Iterator<Item = SessionId>,
    ) -> Result<()> {
        self.catalog.store_session_records(changed, gone)
    }
    /// Up to where what is kept counts.
    pub fn sessions_upto(&self) -> Result<Option<OpTime>> {
        self.catalog.sessions_upto()
    }
    /// The rows account for all entries up to this one. Durable at the next sync of such rows, and so are they.
    pub fn set_sessions_upto(&self, upto: OpTime) -> Result<()> {
        self.catalog.set_sessions_upto(upto)
    }
    /// The sessions that have rows.
    pub fn sessions_with_rows(&self) -> Result<Vec<SessionId>> {
        self.catalog.sessions_with_rows()
    }
}
