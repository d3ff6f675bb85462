//! The parts of a server, put together.

use crate::cursors::parked::ParkedCursor;
use crate::cursors::spill::Spills;
use crate::lifecycle::{Lifecycle, tasks};
use crate::object_id::new_object_id;
use crate::replication::Replication;
use crate::replication::role_changes::RoleChanges;
use crate::sessions::LogicalSessions;
use crate::settings::Settings;
use crate::settings::feature_version_guard::FeatureVersionGuard;
use crate::statistics::Statistics;
use crate::timeseries::OpenBuckets;
use crate::upkeep::Upkeep;
use crate::upkeep::checkpoints::Checkpoints;
use crate::upkeep::flow_control::FlowController;
use crate::upkeep::fsync_lock::FsyncLock;
use crate::upkeep::index_builds::IndexBuildsCoordinator;
use crate::upkeep::ttl::TtlMonitor;
use crate::{Config, Server};
use pando_access::{Access, Maintenance, OpenOptions};
use pando_base::Result;
use pando_command::Instance;
use pando_env::{Component, Env};
use pando_repl::Repl;
use pando_repl::topology::MemberState;
use pando_session::Cursors;
use pando_storage::{Storage, staging};
use std::sync::Arc;

impl Server {
    /// Opens the data, recovers, takes its place in the replica set and starts the background tasks.
    pub async fn start(env: Env, config: Config) -> Result<Arc<Server>> {
        let server = Arc::new(Server::assemble(env, config)?);
        server.register_metrics();
        server.maintenance.add_observer(Arc::new(FeatureVersionGuard(Arc::downgrade(&server.settings))));
        server.maintenance.add_observer(Arc::new(server.settings.user_writes.clone()));
        let replicated = server.config.repl_set.is_some();
        if replicated {
            server.maintenance.judge_builds();
            server.sessions.show_tables()?;
        }
        tasks::spawn_all(&server);
        let stepped_up = server.replication.stepped_up.version();
        server.replication.take_back_identity().await?;
        server.role_changes.take_place().await?;
        if server.maintenance.gate().is_read_only() {
            return Ok(server);
        }
        if !replicated {
            server.maintenance.drop_temp_collections().await?;
            server.maintenance.resume_builds().await?;
        } else if server.replication.member.is_alone() {
            server.replication.stepped_up.changed(stepped_up).await;
        }
        Ok(server)
    }

    /// Opens the data, and puts the parts together.
    fn assemble(env: Env, mut config: Config) -> Result<Server> {
        let params = std::mem::take(&mut config.params);
        let instance = Instance::new(env.clone(), params);
        let retention = config.oplog_min_retention.as_millis() as u64;
        let (storage, member, access) = open_data(&env, &mut config, &instance)?;
        let maintenance = access.maintenance();
        let spills = Spills::open(&env)?;
        let internal = access.internal_collections();
        let settings = Settings::new(instance.clone(), storage.clone(), internal.clone(), retention);
        let lifecycle = Arc::new(Lifecycle::new(env.clone(), instance.clone()));
        let config = Arc::new(config);
        let replication = Replication::new(
            config.clone(),
            instance.clone(),
            storage.clone(),
            maintenance.clone(),
            internal.clone(),
            lifecycle.clone(),
            member,
        );
        let cursors: Arc<Cursors<Box<dyn ParkedCursor>>> = Arc::default();
        let sessions = Arc::new(LogicalSessions::new(
            config.clone(),
            instance.clone(),
            storage.clone(),
            maintenance.clone(),
            internal.clone(),
            replication.clone(),
            cursors.clone(),
        ));
        let index_builds = Arc::new(IndexBuildsCoordinator::new(
            access.clone(),
            internal.clone(),
            replication.clone(),
            lifecycle.clone(),
            env.clone(),
        ));
        let role_changes = Arc::new(RoleChanges {
            env: env.clone(),
            config: config.clone(),
            instance: instance.clone(),
            storage: storage.clone(),
            maintenance: maintenance.clone(),
            internal: internal.clone(),
            lifecycle: lifecycle.clone(),
            settings: settings.clone(),
            replication: replication.clone(),
            sessions: sessions.clone(),
            cursors: cursors.clone(),
            index_builds,
        });
        Ok(Server {
            upkeep: upkeep(&role_changes, spills),
            env,
            config,
            instance,
            registry: crate::commands::registry(),
            statistics: Statistics::new(access.clone()),
            storage,
            internal,
            access,
            maintenance,
            replication,
            role_changes,
            cursors,
            sessions,
            settings,
            lifecycle,
        })
    }
}

/// Tests stop or fail index builds by fail points.
fn hold_builds_while_asked(maintenance: &Maintenance, instance: &Arc<Instance>) {
    let (points, rng) = (instance.clone(), instance.env.rng.clone());
    maintenance.hold_builds_while(move || {
        let at = |name: &str| points.fail_points.get(name).and_then(|p| p.check(&*rng, |_| true));
        if let Some(data) = at("failIndexBuildWithError") {
            let code = data.get("error").and_then(|v| v.as_i64()).unwrap_or_default() as i32;
            return Err(pando_base::Error::new(
                pando_base::ErrorCode(code),
                "the fail point 'failIndexBuildWithError' is on",
            ));
        }
        Ok(at("hangAfterStartingIndexBuild").is_some())
    });
}

/// What is on disk, recovered.
fn open_data(
    env: &Env,
    config: &mut Config,
    instance: &Arc<Instance>,
) -> Result<(Storage, Arc<Repl>, Access)> {
    instance.metrics.connections.limit.set(i64::from(config.max_connections));
    let replset = config.repl_set.is_some();
    config.storage.replicated = true;
    if replset {
        crate::replication::member_alone::check_params(&instance.params)?;
    }
    if staging::adopt_staged(&*env.disk)? {
        env.log.info(Component::InitSync, 9100021, "The copied files are this node's data now", |_| {});
    }
    let storage = Storage::open(env.clone(), config.storage.clone())?;
    // Until it is known which transactions are prepared.
    storage.hold_log(replset);
    let member = Arc::new(Repl::new(config.repl_set.clone(), new_object_id(env)));
    let role = member.clone();
    // The log is open to reads unless this member cuts it or has not taken it up yet.
    let readable = move || !matches!(role.state().member, MemberState::Rollback | MemberState::Startup);
    let access = Access::open(env.clone(), storage.clone(), OpenOptions { replset }, readable)?;
    hold_builds_while_asked(&access.maintenance(), instance);
    Ok((storage, member, access))
}

fn upkeep(parts: &RoleChanges, spills: Arc<Spills>) -> Upkeep {
    let (instance, storage, maintenance) = (&parts.instance, &parts.storage, &parts.maintenance);
    let (replication, lifecycle) = (&parts.replication, &parts.lifecycle);
    Upkeep {
        backups: Arc::default(),
        checkpoints: Arc::new(Checkpoints::new(
            instance.clone(),
            storage.clone(),
            maintenance.clone(),
            lifecycle.clone(),
            parts.settings.clone(),
            replication.clone(),
            parts.sessions.clone(),
        )),
        flow_control: Arc::new(FlowController::new(
            instance.clone(),
            storage.clone(),
            replication.clone(),
            lifecycle.clone(),
        )),
        fsync_lock: FsyncLock::default(),
        index_builds: parts.index_builds.clone(),
        ttl: Arc::new(TtlMonitor::new(
            instance.clone(),
            maintenance.clone(),
            replication.clone(),
            lifecycle.clone(),
        )),
        spills,
        open_buckets: OpenBuckets::default(),
    }
}
