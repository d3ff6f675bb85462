//! The parts of a server, put together.

use crate::aggregation::Aggregations;
use crate::aggregation::collection_stats::CollectionStatsStages;
use crate::audit::definitions::Audited;
use crate::change_stream::ChangeStreams;
use crate::config_server::{ChunksObserver, ConfigServer, NoUserDatabases};
use crate::crud::Crud;
use crate::cursors::{ClientCursors, OpenCursors};
use crate::lifecycle::{Lifecycle, tasks};
use crate::object_id::new_object_id;
use crate::principals::Principals;
use crate::read::Reads;
use crate::replication::Replication;
use crate::replication::min_valid;
use crate::replication::role_changes::RoleChanges;
use crate::sessions::LogicalSessions;
use crate::settings::Settings;
use crate::settings::feature_version_guard::FeatureVersionGuard;
use crate::sharding::cached_metadata::CacheObserver;
use crate::sharding::deletions::DeletionObserver;
use crate::sharding::donations::DonationObserver;
use crate::sharding::identity::IdentityObserver;
use crate::sharding::sections::SectionObserver;
use crate::sharding::{OwnSteps, Sharding};
use crate::statistics::Statistics;
use crate::statistics::operations::Operations;
use crate::tenants::Tenants;
use crate::tenants::observer::TenantObserver;
use crate::timeseries::OpenBuckets;
use crate::transaction::Transactions;
use crate::upkeep::Upkeep;
use crate::upkeep::admission::WriteAdmission;
use crate::upkeep::checkpoints::Checkpoints;
use crate::upkeep::flow_control::FlowController;
use crate::upkeep::fsync_lock::FsyncLock;
use crate::upkeep::index_builds::IndexBuildsCoordinator;
use crate::upkeep::ttl::TtlMonitor;
use crate::write::Writes;
use crate::{Config, Server};
use pando_access::{Access, Maintenance, OpenOptions};
use pando_base::{Error, ErrorCode, Result};
use pando_command::Instance;
use pando_command::roles::ClusterRole;
use pando_env::{Component, Env};
use pando_logins::Logins;
use pando_repl::Repl;
use pando_repl::topology::MemberState;
use pando_session::Spills;
use pando_storage::{Storage, staging};
use std::sync::Arc;

/// Temporary files of sorts and groups, in the data folder.
const SPILLS: &str = "_tmp";

impl Server {
    /// Opens the data, recovers, takes its place in the replica set and starts the background tasks.
    pub async fn start(env: Env, config: Config) -> Result<Arc<Server>> {
        let server = Arc::new(Server::assemble(env, config)?);
        server.register_metrics();
        let maintenance = &server.upkeep.maintenance;
        maintenance.add_observer(Arc::new(FeatureVersionGuard(Arc::downgrade(&server.settings))));
        maintenance.add_observer(Arc::new(server.settings.user_writes.clone()));
        maintenance.add_observer(Arc::new(server.settings.principals.clone()));
        if let Some(sharding) = &server.sharding {
            maintenance.add_observer(IdentityObserver::of(sharding));
            maintenance.add_observer(CacheObserver::of(sharding));
            maintenance.add_observer(SectionObserver::of(sharding));
            maintenance.add_observer(DonationObserver::of(&sharding.donations));
            maintenance.add_observer(DeletionObserver::of(
                &server.instance.env,
                &server.replication,
                &sharding.metadata,
            ));
            sharding.take_steps(own_steps(&server));
            sharding.remember_identity(&server.access.internal_collections())?;
            sharding.read_sections(&server.access.internal_collections())?;
        }
        if let Some(tenants) = &server.tenants {
            maintenance.add_observer(Arc::new(TenantObserver(tenants.clone())));
        }
        if let Some(config_server) = &server.config_server {
            let weak = Arc::downgrade(config_server);
            maintenance.add_observer(Arc::new(ChunksObserver(weak.clone())));
            maintenance.add_observer(Arc::new(NoUserDatabases(weak)));
        }
        if let Some(log) = server.instance.audit() {
            maintenance.add_observer(Arc::new(Audited::new(log.clone())));
            let log = log.clone();
            server.storage.log().before_sync(move || log.sync());
        }
        if server.config.asks_for_logins {
            server.instance.ask_for_logins();
        }
        let replicated = server.config.is_replicated();
        if replicated {
            maintenance.judge_builds();
            server.sessions.show_tables()?;
            min_valid::show_table(maintenance)?;
        }
        tasks::spawn_all(&server);
        let stepped_up = server.replication.stepped_up.version();
        server.replication.take_back_identity().await?;
        server.upkeep.role_changes.take_place().await?;
        server.audit_startup();
        if maintenance.gate().is_read_only() {
            return Ok(server);
        }
        server.note_startup().await;
        if !replicated {
            if !server.replication.is_member_alone() {
                server.settings.write_feature_version().await?;
            }
            maintenance.drop_temp_collections().await?;
            maintenance.resume_builds().await?;
        } else if server.replication.member.is_alone() {
            server.replication.stepped_up.changed(stepped_up).await;
        }
        Ok(server)
    }

    /// Opens the data, and puts the parts together.
    fn assemble(env: Env, mut config: Config) -> Result<Server> {
        let instance = Instance::new(env.clone(), std::mem::take(&mut config.params));
        config.audit.iter().for_each(|log| instance.record_in(log.clone()));
        let (storage, member, mut access) = open_data(&env, &mut config, &instance)?;
        let sharding = sharding(&env, &config);
        if let Some(sharding) = &sharding {
            access = access.on_shard(sharding.metadata.clone());
        }
        let cursors: Arc<OpenCursors> = Arc::default();
        let role_changes =
            role_changes(Arc::new(config), instance, storage, &access, member, cursors.clone(), &sharding);
        if let Some(sharding) = &sharding {
            sharding.join_set(&role_changes.internal, &role_changes.replication);
        }
        let upkeep = upkeep(&role_changes);
        let statistics = statistics(&role_changes, &access, &cursors);
        Ok(Server {
            crud: crud(&role_changes, &access, &upkeep, cursors, &statistics)?,
            upkeep,
            config: role_changes.config.clone(),
            instance: role_changes.instance.clone(),
            registry: crate::commands::registry(),
            statistics,
            sharding,
            storage: role_changes.storage.clone(),
            access,
            replication: role_changes.replication.clone(),
            sessions: role_changes.sessions.clone(),
            settings: role_changes.settings.clone(),
            config_server: role_changes.config_server.clone(),
            principals: Principals::new(
                role_changes.internal.clone(),
                role_changes.settings.principals.clone(),
            ),
            logins: Logins::new(
                &role_changes.env,
                role_changes.config.cluster_auth.clone(),
                role_changes.config.certificates.clone(),
            ),
            tenants: role_changes.tenants.clone(),
            lifecycle: role_changes.lifecycle.clone(),
        })
    }
}

/// Steps of coordinators, as long as the server is there.
fn own_steps(server: &Arc<Server>) -> OwnSteps {
    let server = Arc::downgrade(server);
    Arc::new(move |body| {
        let server = server.upgrade();
        Box::pin(async move {
            let stopped = || Error::new(ErrorCode::ShutdownInProgress, "the server has stopped");
            crate::commands::own_step(&*server.ok_or_else(stopped)?, &body).await
        })
    })
}

/// For a process that was started as a shard, or may become one.
fn sharding(env: &Env, config: &Config) -> Option<Arc<Sharding>> {
    config.cluster_role.map(|role| {
        let options =
            pando_rpc::Options { name: "Sharding", login: config.member_login(), ..Default::default() };
        Arc::new(Sharding::new(env, options, Arc::default(), role == ClusterRole::Config))
    })
}

/// The parts that a change of role touches.
fn role_changes(
    config: Arc<Config>,
    instance: Arc<Instance>,
    storage: Storage,
    access: &Access,
    member: Arc<Repl>,
    cursors: Arc<OpenCursors>,
    sharding: &Option<Arc<Sharding>>,
) -> Arc<RoleChanges> {
    let env = instance.env.clone();
    let (maintenance, internal) = (access.maintenance(), access.internal_collections());
    let retention = config.oplog_min_retention.as_millis() as u64;
    let settings = Settings::new(instance.clone(), storage.clone(), internal.clone(), retention);
    let lifecycle = Arc::new(Lifecycle::new(env.clone(), instance.clone()));
    let replication = Replication::new(
        config.clone(),
        instance.clone(),
        storage.clone(),
        maintenance.clone(),
        internal.clone(),
        lifecycle.clone(),
        member,
    );
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
    let tenants = || Arc::new(Tenants::new(internal.clone(), replication.member.clone()));
    let tenants = config.serverless.then(tenants);
    let config_server = ConfigServer::new(&config, &internal, &replication, &sessions, &settings);
    Arc::new(RoleChanges {
        env,
        config,
        instance,
        storage,
        maintenance,
        internal,
        lifecycle,
        settings,
        replication,
        sessions,
        cursors,
        index_builds,
        backups: Arc::default(),
        config_server,
        sharding: sharding.clone(),
        tenants,
    })
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
    let replset = config.is_replicated();
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
    let member = Arc::new(Repl::new(config.membership(), new_object_id(env)));
    let role = member.clone();
    // The log is open to reads unless this member cuts it or has not taken it up yet.
    let readable = move || !matches!(role.state().member, MemberState::Rollback | MemberState::Startup);
    let access = Access::open(env.clone(), storage.clone(), OpenOptions { replset }, readable)?;
    hold_builds_while_asked(&access.maintenance(), instance);
    Ok((storage, member, access))
}

fn statistics(parts: &RoleChanges, access: &Access, cursors: &Arc<OpenCursors>) -> Statistics {
    let operations = Operations {
        config: parts.config.clone(),
        instance: parts.instance.clone(),
        maintenance: parts.maintenance.clone(),
        cursors: cursors.clone(),
        retryable: parts.sessions.retryable.clone(),
        tenants: parts.tenants.clone(),
    };
    Statistics::new(access.clone(), operations)
}

fn crud(
    parts: &RoleChanges,
    access: &Access,
    upkeep: &Upkeep,
    cursors: Arc<OpenCursors>,
    statistics: &Statistics,
) -> Result<Crud> {
    let (config, instance, storage) = (&parts.config, &parts.instance, &parts.storage);
    let replication = &parts.replication;
    let reads = Arc::new(Reads::new(
        config,
        instance.clone(),
        storage.clone(),
        access.clone(),
        replication.clone(),
        Spills::emptied(&parts.env, SPILLS)?,
        statistics.named.clone(),
    ));
    let change_streams = ChangeStreams {
        env: parts.env.clone(),
        storage: storage.clone(),
        access: access.clone(),
        replication: replication.clone(),
        settings: parts.settings.clone(),
        metrics: statistics.change_streams.clone(),
        tenants: parts.tenants.clone(),
    };
    let open_buckets = Arc::<OpenBuckets>::default();
    let about = CollectionStatsStages {
        access: access.clone(),
        top: statistics.top.clone(),
        clock: parts.env.clock.clone(),
        config: config.clone(),
        sharding: parts.sharding.clone(),
        open_buckets: open_buckets.clone(),
    };
    Ok(Crud {
        transactions: Arc::new(Transactions {
            config: config.clone(),
            instance: instance.clone(),
            storage: storage.clone(),
            access: access.clone(),
            maintenance: parts.maintenance.clone(),
            replication: replication.clone(),
            sessions: parts.sessions.clone(),
            settings: parts.settings.clone(),
            cursors: cursors.clone(),
            admission: upkeep.admission.clone(),
            metrics: statistics.transactions.clone(),
        }),
        cursors: ClientCursors { reads: reads.clone(), open: cursors },
        aggregations: Aggregations {
            reads: reads.clone(),
            sessions: parts.sessions.clone(),
            operations: statistics.operations.clone(),
            change_streams: Arc::new(change_streams),
            about: Arc::new(about),
        },
        writes: Writes {
            reads: reads.clone(),
            admission: upkeep.admission.clone(),
            retryable: parts.sessions.retryable.clone(),
            transactions: statistics.transactions.clone(),
            open_buckets,
        },
        reads,
    })
}

fn upkeep(parts: &Arc<RoleChanges>) -> Upkeep {
    let (instance, storage, maintenance) = (&parts.instance, &parts.storage, &parts.maintenance);
    let (replication, lifecycle) = (&parts.replication, &parts.lifecycle);
    Upkeep {
        maintenance: maintenance.clone(),
        role_changes: parts.clone(),
        backups: parts.backups.clone(),
        checkpoints: Arc::new(Checkpoints::new(
            instance.clone(),
            storage.clone(),
            maintenance.clone(),
            lifecycle.clone(),
            parts.settings.clone(),
            replication.clone(),
            parts.sessions.clone(),
        )),
        admission: Arc::new(WriteAdmission {
            storage: storage.clone(),
            fsync_lock: FsyncLock::default(),
            flow_control: Arc::new(FlowController::new(
                instance.clone(),
                storage.clone(),
                replication.clone(),
                lifecycle.clone(),
            )),
        }),
        index_builds: parts.index_builds.clone(),
        ttl: Arc::new(TtlMonitor::new(
            instance.clone(),
            maintenance.clone(),
            replication.clone(),
            lifecycle.clone(),
        )),
    }
}
