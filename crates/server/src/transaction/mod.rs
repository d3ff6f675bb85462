//! Multi-document transactions on a member of a replica set.
//!
//! ```text
//!  statement ─► check_out ─► handler ─► check_in ─► (parked on its session) ─► next statement …
//!               session lent                   └ an error: aborted
//!               locks of what it names         commitTransaction: one unit, one log entry
//! ```
//! What is open lies on the session between statements ([`pando_access::OpenTxn`]), and the door to collections finds it there. A
//! step-down, the lifetime limit, `killSessions` and a shutdown end it from outside ([`ends`]).

mod checkout;
mod ends;
mod prepares;

use crate::Config;
use crate::cursors::OpenCursors;
use crate::replication::Replication;
use crate::sessions::LogicalSessions;
use crate::settings::Settings;
use crate::upkeep::admission::WriteAdmission;
use pando_access::transaction::metrics::Metrics;
use pando_access::{Access, Maintenance};
use pando_command::{Instance, WriteConcern};
use pando_storage::Storage;
use std::sync::Arc;

pub(crate) use ends::{expire, has_only_read, lsid_doc, parked, write_failed};

/// What transactions of clients begin, go on and end with.
pub(crate) struct Transactions {
    pub(crate) config: Arc<Config>,
    pub(crate) instance: Arc<Instance>,
    pub(crate) storage: Storage,
    pub(crate) access: Access,
    pub(crate) maintenance: Maintenance,
    pub(crate) replication: Arc<Replication>,
    pub(crate) sessions: Arc<LogicalSessions>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) cursors: Arc<OpenCursors>,
    pub(crate) admission: Arc<WriteAdmission>,
    pub(crate) metrics: Arc<Metrics>,
}

impl Transactions {
    /// What the client waits for when it does not say so.
    fn default_write_concern(&self) -> WriteConcern {
        let set = self.settings.rw_defaults.write_concern();
        set.unwrap_or_else(|| self.replication.implicit_write_concern())
    }
}
