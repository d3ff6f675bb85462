//! This node as a member of a replica set.
//!
//! ```text
//!   membership, quiesce, restored, ...   its place in the set          ┐
//!   positions, stable                    how far its log is            ├ Replication: what everybody may ask
//!   await_read_concern, await_write_concern, admission                 ┘
//!   effects, transitions, rollback, resync, services                   - RoleChanges: what changes when its role does
//! ```
//! [`Replication`] owns the member state, the coordinator, the positions and the data path. Commands and other parts hold it
//! and ask: may I write, how far is the log, wait for a majority. It knows nothing of sessions, cursors or transactions;
//! what has to happen to those at a change of role, [`role_changes`] does, which only the coordinator calls.

mod admission;
mod ask_for_note;
mod await_read_concern;
mod await_write_concern;
mod before_resync;
mod cluster_clock;
pub(crate) mod cluster_time_keys;
mod data_path;
mod effects;
mod follower;
mod forward_to_primary;
mod local_identity;
pub(crate) mod log_flusher;
pub(crate) mod member_alone;
mod member_door;
mod membership;
pub(crate) mod min_valid;
pub(crate) mod noop_writer;
mod positions;
mod quiesce;
mod quiet_down;
mod refused_members;
mod restored;
mod resync;
pub(crate) mod role_changes;
mod rollback;
mod rollback_files;
mod rollback_id;
mod rollback_sources;
mod rollback_stats;
mod rollback_summary;
mod service_host;
mod services;
mod shard_split;
mod stable;
mod state_lock;
mod transitions;

use crate::Config;
use crate::lifecycle::Lifecycle;
use cluster_clock::ClusterClock;
use cluster_time_keys::ClusterTimeKeys;
use member_door::MemberDoor;
use pando_access::{InternalCollections, Maintenance};
use pando_command::{FailPoints, Instance};
use pando_env::Env;
use pando_env::sync::Notify;
use pando_repl::data::initial_sync::InitialSync;
use pando_repl::data::{DataPath, Progress};
use pando_repl::topology::Core;
use pando_repl::{Coordinator, Repl};
use pando_storage::Storage;
use rollback_stats::Rollbacks;
use service_host::Services;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use transitions::{CatchUps, Transitions};

/// What this node is in its set, and how far it is.
pub struct Replication {
    env: Env,
    config: Arc<Config>,
    instance: Arc<Instance>,
    storage: Storage,
    maintenance: Maintenance,
    internal: InternalCollections,
    lifecycle: Arc<Lifecycle>,
    /// May this node write, be read, what does `hello` say.
    pub member: Arc<Repl>,
    /// How far this node is, with terms; how far others say they are.
    pub progress: Arc<Progress>,
    /// None on a standalone node.
    pub(crate) coordinator: OnceLock<Arc<Coordinator>>,
    services: OnceLock<Services>,
    /// A new primary has finished what it owes to earlier ones.
    pub(crate) stepped_up: Notify,
    data_path: Mutex<Option<Arc<DataPath>>>,
    /// Connections of the data path.
    pub(crate) data_pool: pando_rpc::Pool,
    /// Connections for commands to other nodes; they hand on the cluster time.
    pub(crate) peers: pando_rpc::Pool,
    /// Somebody asks the primary for a note now.
    asks_for_note: AtomicBool,
    /// What calls to other nodes tell and hear of the cluster time.
    pub(crate) clock: Arc<ClusterClock>,
    initial_sync: Mutex<Option<InitialSync>>,
    pub(crate) transitions: Transitions,
    pub(crate) catch_ups: CatchUps,
    pub(crate) rollbacks: Rollbacks,
    /// Came back from a backup and has not caught up.
    restored: AtomicBool,
    /// Standalone, on the data of a set's member.
    member_alone: AtomicBool,
    pub(crate) member_door: MemberDoor,
    /// Set while another member's files take the place of this one's: what is voted now would be forgotten.
    identity_is_staged: AtomicBool,
    pub(crate) cluster_time_keys: ClusterTimeKeys,
}

impl Replication {
    pub(crate) fn new(
        config: Arc<Config>,
        instance: Arc<Instance>,
        storage: Storage,
        maintenance: Maintenance,
        internal: InternalCollections,
        lifecycle: Arc<Lifecycle>,
        member: Arc<Repl>,
    ) -> Arc<Replication> {
        let env = instance.env.clone();
        let options = pando_rpc::Options { login: config.member_login(), ..Default::default() };
        let data_pool = pando_rpc::Pool::new(env.clone(), options.clone());
        let (clock, peers) = ClusterClock::with_pool(&env, options);
        let replication = Arc::new(Replication {
            env,
            config,
            instance,
            storage,
            maintenance,
            internal,
            lifecycle,
            member,
            progress: Arc::default(),
            coordinator: OnceLock::new(),
            services: OnceLock::new(),
            stepped_up: Notify::new(),
            data_path: Mutex::default(),
            data_pool,
            peers,
            asks_for_note: AtomicBool::new(false),
            initial_sync: Mutex::default(),
            transitions: Transitions::default(),
            catch_ups: CatchUps::default(),
            rollbacks: Rollbacks::default(),
            restored: AtomicBool::new(false),
            member_alone: AtomicBool::new(false),
            member_door: MemberDoor::default(),
            identity_is_staged: AtomicBool::new(false),
            cluster_time_keys: ClusterTimeKeys::default(),
            clock: clock.clone(),
        });
        clock.serve(&replication);
        replication
    }

    pub(crate) fn env(&self) -> &Env {
        &self.env
    }
    pub(crate) fn params(&self) -> &pando_command::Params {
        &self.instance.params
    }
    pub(crate) fn fail_points(&self) -> &FailPoints {
        &self.instance.fail_points
    }
    /// Shows the replication core to those who watch from outside; `None` on a standalone node.
    pub fn inspect<T>(&self, ask: impl FnOnce(&Core) -> T) -> Option<T> {
        self.coordinator.get().map(|c| c.read(ask))
    }
}
