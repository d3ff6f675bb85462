//! Logical sessions beyond one request.
//!
//! ```text
//!   cache      sessions in use            ─► refresh: the set's record of them, and what ends with them (abort)
//!   retryable  what each has carried out  ─► kept, restore: across restarts, rollbacks and copies
//!                                         ─► tables, retry_images: as clients read it
//!                                         ─► moving, moved: as a range takes it along to another shard
//! ```
//! [`LogicalSessions`] owns both tables. Commands take sessions out of them and put them back; who applies a primary's
//! entries, rolls back or copies a member says so here. The part uses [`Replication`], and cursors only to end them.

mod abort;
mod moved;
pub(crate) mod moving;
mod records;
pub(crate) mod refresh;
mod restore;
mod retry_images;
mod tables;

use crate::Config;
use crate::replication::Replication;
use pando_access::InternalCollections;
use pando_access::Maintenance;
use pando_command::Instance;
use pando_env::Env;
use pando_session::Sessions;
use pando_session::cursors::KillCursors;
use pando_session::retryable::Retryable;
use pando_storage::Storage;
use std::sync::Arc;

/// The sessions of this node's clients, and what they have done.
pub struct LogicalSessions {
    env: Env,
    config: Arc<Config>,
    instance: Arc<Instance>,
    storage: Storage,
    maintenance: Maintenance,
    internal: InternalCollections,
    replication: Arc<Replication>,
    cursors: Arc<dyn KillCursors>,
    /// Those in use.
    pub(crate) cache: Sessions,
    /// Statements and transactions that were carried out.
    pub retryable: Arc<Retryable>,
    pub(crate) rounds: refresh::Rounds,
    known: records::Known,
    rows: records::Rows,
    waiting: records::Waiting,
}

impl LogicalSessions {
    pub(crate) fn new(
        config: Arc<Config>,
        instance: Arc<Instance>,
        storage: Storage,
        maintenance: Maintenance,
        internal: InternalCollections,
        replication: Arc<Replication>,
        cursors: Arc<dyn KillCursors>,
    ) -> LogicalSessions {
        LogicalSessions {
            env: instance.env.clone(),
            config,
            instance,
            storage,
            maintenance,
            internal,
            replication,
            cursors,
            cache: Sessions::default(),
            retryable: Arc::default(),
            rounds: refresh::Rounds::default(),
            known: records::Known::default(),
            rows: records::Rows::default(),
            waiting: records::Waiting::default(),
        }
    }
}
