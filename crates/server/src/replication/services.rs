//! This server's services: who is told of changes of role, of the commit point and of rollbacks, in which order, and the data
//! that workflows keep. When they are told, and of what in the reverse order, says [`pando_repl::services::aware`].
//!
//! | service | what it does |
//! |---|---|
//! | `transitions` | step-up: figures of the change, and of what was fetched since the election |
//! | `transactions` | step-up: transactions of earlier terms without an end are over; what is prepared holds its locks; step-down: no longer |
//! | `criticalSections` | at the start, with the first copy, step-up, rollback: what the collection of sections says is what the door goes by |
//! | `accessBlockers` | at the start, with the first copy, in a set of its own, step-up, rollback: what the state documents say is what tenants may do; commit point: a decision holds; step-down: nothing holds that no document says |
//! | `housekeeping` | step-up: a new primary's debts to earlier ones; rollback: what is kept in memory of documents is read again |
//! | `workflows` | step-up: they go on where their documents say; step-down, shutdown: they end here |

use super::Replication;
use super::role_changes::RoleChanges;
use super::service_host::Services;
use crate::tenants::copy::PeerSet;
use crate::tenants::{self, Tenants, donor_steps, recipient_steps, split_steps};
use crate::workflows::data::WorkflowData;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, Term, limits};
use pando_bson::DocBuf;
use pando_env::{BoxFuture, Component};
use pando_repl::services::{Guard, Hooks, Host, ReplicaSetAware, Service, Store};
use pando_routing::ShardId;
use pando_storage::ReadAt;
use pando_workflows::{Level, LocalWrite, Query, Resource, Restore, Section, Target, configsvr, ddl, demo};
use pando_workflows::{delete_range, donate_tenants, migration, move_range, receive_range};
use pando_workflows::{receive_tenants, shard_split};
use std::sync::{Arc, Weak};
use std::time::Duration;

impl Services {
    pub(crate) fn new(roles: &Arc<RoleChanges>) -> Services {
        let weak = || Arc::downgrade(roles);
        let demo = Service {
            name: demo::NAME,
            ns: Namespace::unchecked("config", demo::COLLECTION),
            restore: demo::restore,
            options: demo::options,
        };
        let definitions = Service {
            name: ddl::NAME,
            ns: Namespace::unchecked("config", ddl::COLLECTION),
            restore: ddl::restore,
            options: ddl::options,
        };
        let migrations = [
            (migration::DONOR, migration::DONOR_COLLECTION, move_range::restore as Restore),
            (migration::RECIPIENT, migration::RECIPIENT_COLLECTION, receive_range::restore),
            (migration::DELETER, migration::DELETIONS_COLLECTION, delete_range::restore),
        ];
        let migrations = migrations.map(|(name, collection, restore)| Service {
            name,
            ns: Namespace::unchecked("config", collection),
            restore,
            options: migration::options,
        });
        let of_shards = [definitions].into_iter().chain(migrations).filter(|_| roles.sharding.is_some());
        let of_config_servers = Service {
            name: configsvr::NAME,
            ns: Namespace::unchecked("config", configsvr::COLLECTION),
            restore: configsvr::restore,
            options: configsvr::options,
        };
        let of_config_servers = roles.config_server.is_some().then_some(of_config_servers);
        let of_tenants = of_tenants().into_iter().filter(|_| roles.tenants.is_some());
        let all = [demo].into_iter().chain(of_shards).chain(of_config_servers).chain(of_tenants).collect();
        let host = Host::new(roles.env.clone(), Arc::new(Documents(weak())), all);
        let hooks = Hooks::new(in_order(weak(), host.clone()));
        Services { hooks, host }
    }
}

/// Operations on the tenants of a set.
fn of_tenants() -> [Service; 3] {
    let split = Service {
        name: shard_split::SERVICE,
        ns: shard_split::collection(),
        restore: shard_split::restore,
        options: shard_split::options,
    };
    let donor = Service {
        name: donate_tenants::SERVICE,
        ns: donate_tenants::collection(),
        restore: donate_tenants::restore,
        options: donate_tenants::options,
    };
    let recipient = Service {
        name: receive_tenants::SERVICE,
        ns: receive_tenants::collection(),
        restore: receive_tenants::restore,
        options: receive_tenants::options,
    };
    [split, donor, recipient]
}

/// Locks are taken before anybody writes, debts are paid before workflows go on.
fn in_order(roles: Weak<RoleChanges>, host: Arc<dyn ReplicaSetAware>) -> Vec<Arc<dyn ReplicaSetAware>> {
    vec![
        Arc::new(Transitions(roles.clone())),
        Arc::new(Transactions(roles.clone())),
        Arc::new(CriticalSections(roles.clone())),
        Arc::new(AccessBlockers(roles.clone())),
        Arc::new(Housekeeping(roles)),
        host,
    ]
}

struct Transitions(Weak<RoleChanges>);

impl ReplicaSetAware for Transitions {
    fn name(&self) -> &'static str {
        "transitions"
    }
    fn on_step_up_begin(&self, _: Term) -> Result<()> {
        let Some(roles) = self.0.upgrade() else { return Ok(()) };
        roles.replication.transitions.note(&roles.instance.clients, "stepUp", 0);
        roles.replication.count_catch_up()
    }
}

struct Transactions(Weak<RoleChanges>);

impl ReplicaSetAware for Transactions {
    fn name(&self) -> &'static str {
        "transactions"
    }
    fn on_step_up_begin(&self, _: Term) -> Result<()> {
        let Some(roles) = self.0.upgrade() else { return Ok(()) };
        roles.sessions.retryable.abort_partial();
        roles.maintenance.lock_prepared()
    }
    /// Not while an attempt to step down may still fail: definitions must stand still on a primary.
    fn on_step_down(&self) {
        let Some(roles) = self.0.upgrade() else { return };
        roles.maintenance.yield_prepared();
        if let Some(sharding) = &roles.sharding {
            sharding.donations.end_all();
            sharding.forget_donor_times();
        }
    }
}

/// The door goes by what a collection says, on every member and at every time.
struct CriticalSections(Weak<RoleChanges>);

impl CriticalSections {
    fn read(&self) -> Result<()> {
        let Some(roles) = self.0.upgrade() else { return Ok(()) };
        roles.sharding.as_ref().map_or(Ok(()), |sharding| sharding.read_sections(&roles.internal))
    }
    fn must_read(&self) {
        if let (Err(e), Some(roles)) = (self.read(), self.0.upgrade()) {
            roles.lifecycle.fatal("The critical sections could not be read", &e.message);
        }
    }
}

impl ReplicaSetAware for CriticalSections {
    fn name(&self) -> &'static str {
        "criticalSections"
    }
    fn on_startup_recovery_complete(&self) {
        self.must_read();
    }
    fn on_initial_data_available(&self) {
        self.must_read();
    }
    fn on_step_up_begin(&self, _: Term) -> Result<()> {
        self.read()
    }
    fn on_rollback_end(&self, taken_back: bool) {
        if taken_back {
            self.must_read();
        }
    }
}

/// What tenants may do is what the state documents say, on every member and at every time (SV-MTAB-10).
struct AccessBlockers(Weak<RoleChanges>);

impl AccessBlockers {
    fn tenants(&self) -> Option<Arc<Tenants>> {
        self.0.upgrade()?.tenants.clone()
    }
    fn must_read(&self) {
        if let Some(Err(e)) = self.tenants().map(|tenants| tenants.read_documents())
            && let Some(roles) = self.0.upgrade()
        {
            roles.lifecycle.fatal("The state documents of tenants' operations could not be read", &e.message);
        }
    }
}

impl ReplicaSetAware for AccessBlockers {
    fn name(&self) -> &'static str {
        "accessBlockers"
    }
    fn on_startup_recovery_complete(&self) {
        self.must_read();
    }
    fn on_initial_data_available(&self) {
        self.must_read();
    }
    fn on_step_up_begin(&self, _: Term) -> Result<()> {
        self.tenants().map_or(Ok(()), |tenants| tenants.read_documents())
    }
    fn on_commit_point(&self, at: OpTime) {
        if let Some(tenants) = self.tenants() {
            tenants.blockers.commit_point(at);
        }
    }
    /// Its tenants are this set's now.
    fn on_recipient_config_installed(&self) {
        self.must_read();
    }
    fn on_step_down(&self) {
        if let Some(tenants) = self.tenants() {
            tenants.blockers.step_down();
            tenants.receptions.step_down();
            tenants.exports.end_all();
        }
    }
    fn on_rollback_end(&self, taken_back: bool) {
        if taken_back {
            self.must_read();
        }
    }
}

/// What a new primary owes to earlier ones once writes are permitted, and what a change of role leaves to do.
struct Housekeeping(Weak<RoleChanges>);

impl ReplicaSetAware for Housekeeping {
    fn name(&self) -> &'static str {
        "housekeeping"
    }
    fn on_step_up_complete(&self, _: Term) {
        let Some(roles) = self.0.upgrade() else { return };
        roles.env.clone().spawn("step-up", async move {
            let done = async {
                // Those of a tenant that is blocked stay, and nothing else waits for them.
                let dropped = roles.maintenance.drop_temp_collections().await;
                roles.settings.write_feature_version().await?;
                roles.index_builds.make_entries().await?;
                roles.maintenance.resume_builds().await?;
                roles.replication.make_cluster_time_keys().await?;
                if let Some(tenants) = &roles.tenants {
                    tenants.remove_those_of_donor().await?;
                }
                if let Some(config_server) = &roles.config_server {
                    config_server.step_up().await?;
                }
                dropped.map(drop)
            };
            // Whoever steps down meanwhile leaves it to the next primary.
            if let Err(e) = done.await {
                let text = "Work of a new primary was not finished";
                roles.env.log.info(Component::Repl, 21332, text, |a| {
                    a.data("error", &e);
                });
            }
            roles.replication.stepped_up.bump();
        });
    }
    /// What is kept in memory of the set's settings may be undone.
    fn on_rollback_end(&self, taken_back: bool) {
        let Some(roles) = self.0.upgrade().filter(|_| taken_back) else { return };
        roles.replication.cluster_time_keys.forget();
        roles.index_builds.rolled_back();
        if let Some(config_server) = &roles.config_server {
            config_server.rolled_back();
        }
        if let Some(sharding) = &roles.sharding {
            sharding.forget_all();
        }
        if let Err(e) = roles.settings.restore() {
            roles.lifecycle.fatal("The set's settings could not be read", &e.message);
        }
    }
}

/// State documents of workflows, in ordinary collections.
struct Documents(Weak<RoleChanges>);

impl Documents {
    fn roles(&self) -> Result<Arc<RoleChanges>> {
        self.0.upgrade().ok_or_else(|| Error::new(ErrorCode::ShutdownInProgress, "the server has stopped"))
    }
    fn replication(&self) -> Result<Arc<Replication>> {
        Ok(self.roles()?.replication.clone())
    }
    fn data(&self) -> Result<WorkflowData> {
        let roles = self.roles()?;
        Ok(WorkflowData {
            env: roles.env.clone(),
            internal: roles.internal.clone(),
            maintenance: roles.maintenance.clone(),
            sharding: roles.sharding.clone(),
            config_server: roles.config_server.clone(),
        })
    }
}

impl Store for Documents {
    fn before_action(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Ok(roles) = self.roles() {
                roles.lifecycle.hold("hangBeforeWorkflowAction").await;
            }
        })
    }
    fn load(&self, ns: &Namespace) -> Result<Vec<DocBuf>> {
        let mut all = self.data()?.internal.all(ns, ReadAt::Latest)?;
        if *ns == migration::deletions() {
            all.retain(|task| !migration::is_pending(task));
        }
        if let Some(tenants) = self.roles()?.tenants.as_ref().filter(|_| tenants::is_state(ns)) {
            all.retain(|doc| tenants.goes_on_with(ns, doc));
        }
        Ok(all)
    }
    fn first_of_term_committed(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let replication = self.replication()?;
            match replication.coordinator()?.read(|core| core.first_of_term()) {
                Some(first) => replication.await_majority(first).await,
                None => Err(Error::new(ErrorCode::NotWritablePrimary, "not primary")),
            }
        })
    }
    fn write<'a>(&'a self, write: &'a LocalWrite) -> BoxFuture<'a, Result<Option<OpTime>>> {
        Box::pin(async move { self.data()?.write(write).await })
    }
    fn await_majority(&self, upto: Option<OpTime>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let replication = self.replication()?;
            replication.await_majority(upto.unwrap_or_else(|| replication.last_applied())).await
        })
    }
    fn read(&self, query: &Query) -> Result<Vec<Namespace>> {
        Ok(self.data()?.read(query))
    }
    fn lock<'a>(&'a self, resource: &'a Resource, level: Level) -> BoxFuture<'a, Result<Guard>> {
        Box::pin(async move { self.data()?.lock(resource, level).await })
    }
    fn enter<'a>(&'a self, section: &'a Section) -> BoxFuture<'a, Result<Guard>> {
        Box::pin(async move { self.data()?.enter(section).await })
    }
    fn call<'a>(
        &'a self,
        service: &'static str,
        to: &'a Target,
        body: &'a DocBuf,
    ) -> BoxFuture<'a, Result<DocBuf>> {
        Box::pin(async move {
            let sharding = || {
                let none = || Error::internal("a definition of a cluster on a node that is no shard");
                self.roles()?.sharding.clone().ok_or_else(none)
            };
            let limit = Duration::from_millis(limits::WORKFLOW_CALL_MS_MAX);
            // Of config servers that are a shard, too, the other services are a shard's.
            if let Some(config_server) = &self.roles()?.config_server
                && service == configsvr::NAME
                && !matches!(to, Target::Host(_) | Target::Set(_))
            {
                return config_server.hear(to, body, limit).await;
            }
            match to {
                Target::Host(host) => {
                    let peers = &self.replication()?.peers;
                    peers.call(host, body, pando_rpc::Retry::Idempotent, limit).await.map_err(Error::from)
                }
                Target::Shard(shard) => sharding()?.cluster()?.on_shard(&ShardId::new(shard), body).await,
                Target::ConfigServers => {
                    let sharding = sharding()?;
                    let reply = sharding.cluster()?.on_config(body).await?;
                    sharding.keep_times(&self.data()?.internal).await?;
                    Ok(reply)
                }
                Target::Set(set) => {
                    // Whoever is asked for something that lasts is asked again.
                    let of_host = Duration::from_millis(limits::PEER_SET_TOLD_MS_MAX);
                    PeerSet::parse(set)?.call_within(&*self.roles()?, body, of_host, limit).await
                }
                Target::Own if service == shard_split::SERVICE => {
                    split_steps::run(&*self.roles()?, body).await
                }
                Target::Own if service == donate_tenants::SERVICE => {
                    donor_steps::run(&*self.roles()?, body).await
                }
                Target::Own if service == receive_tenants::SERVICE => {
                    recipient_steps::run(&*self.roles()?, body).await
                }
                Target::Own => sharding()?.own_step(body).await,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Workflows;
    impl ReplicaSetAware for Workflows {
        fn name(&self) -> &'static str {
            "workflows"
        }
    }

    #[test]
    fn services_stand_in_the_order_that_is_documented() {
        let rows = include_str!("services.rs").lines().filter_map(|l| l.strip_prefix("//! | `"));
        let documented: Vec<&str> = rows.filter_map(|row| Some(row.split_once('`')?.0)).collect();
        let hooks = Hooks::new(in_order(Weak::new(), Arc::new(Workflows)));
        assert_eq!(hooks.names(), documented);
    }
}
