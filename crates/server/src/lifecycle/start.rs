//! The parts of a server, put together.

use crate::cursors::spill::Spills;
use crate::lifecycle::{Lifecycle, tasks};
use crate::object_id::new_object_id;
use crate::replication::Replication;
use crate::settings::Settings;
use crate::settings::feature_version_guard::FeatureVersionGuard;
use crate::statistics::Statistics;
use crate::{Config, Server};
use pando_access::{Access, Maintenance, OpenOptions};
use pando_base::Result;
use pando_command::Instance;
use pando_env::{Component, Env};
use pando_repl::Repl;
use pando_repl::topology::MemberState;
use pando_session::{Cursors, Sessions};
use pando_storage::{Storage, staging};
use std::sync::Arc;

impl Server {
    /// Opens the data, recovers, takes its place in the replica set and starts the background tasks.
    pub async fn start(env: Env, mut config: Config) -> Result<Arc<Server>> {
        let params = std::mem::take(&mut config.params);
        let instance = Instance::new(env.clone(), params);
        instance.metrics.connections.limit.set(i64::from(config.max_connections));
        let replicated = config.repl_set.is_some();
        config.storage.replicated = true;
        if replicated {
            crate::replication::check_params(&instance.params)?;
        }
        let retention = config.oplog_min_retention.as_millis() as u64;
        if staging::adopt_staged(&*env.disk)? {
            env.log.info(Component::InitSync, 9100021, "The copied files are this node's data now", |_| {});
        }
        let storage = Storage::open(env.clone(), config.storage.clone())?;
        // Until it is known which transactions are prepared.
        storage.hold_log(replicated);
        let repl = Arc::new(Repl::new(config.repl_set.clone(), new_object_id(&env)));
        let access = open_access(&env, &storage, &repl, replicated)?;
        let maintenance = access.maintenance();
        let spills = Spills::open(&env)?;
        hold_builds(&maintenance, &instance);
        let internal = access.internal_collections();
        let settings = Arc::new(Settings::new(
            env.clone(),
            instance.clone(),
            storage.clone(),
            internal.clone(),
            retention,
        ));
        let statistics = Statistics::new(access.clone());
        let lifecycle = Arc::new(Lifecycle::new(env.clone(), instance.clone()));
        let config = Arc::new(config);
        let replication = Replication::new(
            config.clone(),
            instance.clone(),
            storage.clone(),
            maintenance.clone(),
            internal.clone(),
            lifecycle.clone(),
            repl,
        );
        let server = Arc::new(Server {
            env,
            config,
            instance,
            registry: crate::commands::registry(),
            storage,
            internal,
            access,
            maintenance,
            replication,
            cursors: Cursors::default(),
            sessions: Sessions::default(),
            sessions_known: Default::default(),
            session_rows: Default::default(),
            sessions_waiting: Default::default(),
            session_rounds: Default::default(),
            retryable: Arc::default(),
            settings,
            statistics,
            lifecycle,
            open_buckets: Default::default(),
            index_builds: Default::default(),
            fsync_lock: Default::default(),
            tickets: Default::default(),
            ttl: Default::default(),
            backups: Default::default(),
            spills,
        });
        server.register_metrics();
        server.maintenance.add_observer(Arc::new(FeatureVersionGuard(Arc::downgrade(&server.settings))));
        server.maintenance.add_observer(Arc::new(server.settings.user_writes.clone()));
        if replicated {
            server.maintenance.judge_builds();
            server.show_tables()?;
        }
        tasks::spawn_all(&server);
        let stepped_up = server.replication.stepped_up.version();
        server.replication.take_back_identity().await?;
        server.take_place().await?;
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
}

/// The log is open to reads unless this member cuts it or has not taken it up yet.
fn open_access(env: &Env, storage: &Storage, repl: &Arc<Repl>, replset: bool) -> Result<Access> {
    let role = repl.clone();
    let readable = move || !matches!(role.state().member, MemberState::Rollback | MemberState::Startup);
    Access::open(env.clone(), storage.clone(), OpenOptions { replset }, readable)
}

/// Fail points on index builds.
fn hold_builds(maintenance: &Maintenance, instance: &Arc<Instance>) {
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
