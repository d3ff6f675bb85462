//! What a server does beside requests.
//!
//! | file | what |
//! |---|---|
//! | [`admission`] | what a write waits for |
//! | [`backups`] | checkpoints held still while somebody copies their files |
//! | [`checkpoints`] | tables reach the disk, up to the stable timestamp |
//! | [`flow_control`] | how fast a primary may write |
//! | [`fsync_lock`] | nobody writes while files are copied from outside |
//! | [`index_builds`] | this member's part in the set's index builds |
//! | [`repair`] | all data is read and compared |
//! | [`storage_step`] | flushing and compaction |
//! | [`ttl`] | documents whose time is over are deleted |
//!
//! Each is a type with a loop of its own, started by `lifecycle::tasks`; commands ask it or tell it something. They use
//! [`Replication`](crate::Replication), settings and sessions, never one another.

pub(crate) mod admission;
pub(crate) mod backups;
pub(crate) mod checkpoints;
pub(crate) mod flow_control;
pub(crate) mod fsync_lock;
pub(crate) mod index_builds;
pub(crate) mod repair;
pub(crate) mod storage_step;
pub(crate) mod ttl;

use crate::replication::role_changes::RoleChanges;
use admission::WriteAdmission;
use backups::Backups;
use checkpoints::Checkpoints;
use index_builds::IndexBuildsCoordinator;
use pando_access::Maintenance;
use std::sync::Arc;
use ttl::TtlMonitor;

pub(crate) struct Upkeep {
    /// Work on the data as a whole.
    pub(crate) maintenance: Maintenance,
    /// What the coordinator orders; the coordinator itself holds it weakly.
    pub(crate) role_changes: Arc<RoleChanges>,
    pub(crate) backups: Arc<Backups>,
    pub(crate) checkpoints: Arc<Checkpoints>,
    pub(crate) admission: Arc<WriteAdmission>,
    pub(crate) index_builds: Arc<IndexBuildsCoordinator>,
    pub(crate) ttl: Arc<TtlMonitor>,
}
