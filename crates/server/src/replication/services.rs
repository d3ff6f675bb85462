//! This server's services: who is told of changes of role, of the commit point and of rollbacks, in which order, and the data
//! that workflows keep. When they are told, and of what in the reverse order, says [`pando_repl::services::aware`].
//!
//! | service | what it does |
//! |---|---|
//! | `transitions` | step-up: figures of the change, and of what was fetched since the election |
//! | `transactions` | step-up: transactions of earlier terms without an end are over; what is prepared holds its locks; step-down: no longer |
//! | `housekeeping` | step-up: a new primary's debts to earlier ones; rollback: what is kept in memory of documents is read again |
//! | `workflows` | step-up: they go on where their documents say; step-down, shutdown: they end here |

use super::Replication;
use crate::Server;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, Term, limits};
use pando_bson::DocBuf;
use pando_env::{BoxFuture, Component};
use pando_repl::services::{Guard, Hooks, Host, ReplicaSetAware, Service, Store};
use pando_repl::topology::write_concern::{Concern, Waiter, Want};
use pando_repl::topology::{Event, index_builds};
use pando_storage::ReadAt;
use pando_workflows::{Level, LocalWrite, Query, Resource, Section, Target, demo};
use std::sync::{Arc, Weak};
use std::time::Duration;

pub(crate) struct Services {
    pub(crate) hooks: Hooks,
    pub(crate) host: Arc<Host>,
}

impl Services {
    pub(crate) fn new(server: &Arc<Server>) -> Services {
        let weak = || Arc::downgrade(server);
        let demo = Service {
            name: demo::NAME,
            ns: Namespace::unchecked("config", demo::COLLECTION),
            restore: demo::restore,
            options: demo::options,
        };
        let host = Host::new(server.env.clone(), Arc::new(Documents(weak())), vec![demo]);
        let hooks = Hooks::new(in_order(weak(), host.clone()));
        Services { hooks, host }
    }
}

/// Locks are taken before anybody writes, debts are paid before workflows go on.
fn in_order(server: Weak<Server>, host: Arc<dyn ReplicaSetAware>) -> Vec<Arc<dyn ReplicaSetAware>> {
    vec![
        Arc::new(Transitions(server.clone())),
        Arc::new(Transactions(server.clone())),
        Arc::new(Housekeeping(server)),
        host,
    ]
}

struct Transitions(Weak<Server>);

impl ReplicaSetAware for Transitions {
    fn name(&self) -> &'static str {
        "transitions"
    }
    fn on_step_up_begin(&self, _: Term) -> Result<()> {
        let Some(server) = self.0.upgrade() else { return Ok(()) };
        server.replication.transitions.note(&server.instance.clients, "stepUp", 0);
        server.replication.count_catch_up()
    }
}

struct Transactions(Weak<Server>);

impl ReplicaSetAware for Transactions {
    fn name(&self) -> &'static str {
        "transactions"
    }
    fn on_step_up_begin(&self, _: Term) -> Result<()> {
        let Some(server) = self.0.upgrade() else { return Ok(()) };
        server.retryable.abort_partial();
        server.maintenance.lock_prepared()
    }
    /// Not while an attempt to step down may still fail: definitions must stand still on a primary.
    fn on_step_down(&self) {
        let Some(server) = self.0.upgrade() else { return };
        server.maintenance.yield_prepared();
    }
}

/// What a new primary owes to earlier ones once writes are permitted, and what a change of role leaves to do.
struct Housekeeping(Weak<Server>);

impl ReplicaSetAware for Housekeeping {
    fn name(&self) -> &'static str {
        "housekeeping"
    }
    fn on_step_up_complete(&self, _: Term) {
        let Some(server) = self.0.upgrade() else { return };
        server.env.clone().spawn("step-up", async move {
            let done = async {
                server.maintenance.drop_temp_collections().await?;
                server.make_index_build_entries().await?;
                server.maintenance.resume_builds().await?;
                server.replication.make_cluster_time_keys().await
            };
            // Whoever steps down meanwhile leaves it to the next primary.
            if let Err(e) = done.await {
                let text = "Work of a new primary was not finished";
                server.env.log.info(Component::Repl, 21332, text, |a| {
                    a.str("error", &e.message);
                });
            }
            server.replication.stepped_up.bump();
        });
    }
    /// What is kept in memory of the set's settings may be undone.
    fn on_rollback_end(&self, taken_back: bool) {
        let Some(server) = self.0.upgrade().filter(|_| taken_back) else { return };
        server.replication.cluster_time_keys.forget();
        server.index_builds.tell(index_builds::Event::RolledBack);
        if let Err(e) = server.settings.restore() {
            server.lifecycle.fatal("The set's settings could not be read", &e.message);
        }
    }
}

/// State documents of workflows, in ordinary collections.
struct Documents(Weak<Server>);

impl Documents {
    fn server(&self) -> Result<Arc<Server>> {
        self.0.upgrade().ok_or_else(|| Error::new(ErrorCode::ShutdownInProgress, "the server has stopped"))
    }
}

impl Store for Documents {
    fn load(&self, ns: &Namespace) -> Result<Vec<DocBuf>> {
        let server = self.server()?;
        server.internal.all(ns, ReadAt::Latest)
    }
    fn first_of_term_committed(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let server = self.server()?;
            match server.replication.coordinator()?.read(|core| core.first_of_term()) {
                Some(first) => server.replication.await_majority(first).await,
                None => Err(Error::new(ErrorCode::NotWritablePrimary, "not primary")),
            }
        })
    }
    fn write<'a>(&'a self, write: &'a LocalWrite) -> BoxFuture<'a, Result<Option<OpTime>>> {
        Box::pin(async move { self.server()?.write_for_workflow(write).await })
    }
    fn await_majority(&self, upto: Option<OpTime>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let server = self.server()?;
            server.replication.await_majority(upto.unwrap_or_else(|| server.replication.last_applied())).await
        })
    }
    fn read(&self, query: &Query) -> Result<Vec<Namespace>> {
        Ok(self.server()?.read_for_workflow(query))
    }
    fn lock<'a>(&'a self, resource: &'a Resource, level: Level) -> BoxFuture<'a, Result<Guard>> {
        Box::pin(async move { Ok(self.server()?.lock_for_workflow(resource, level).await) })
    }
    fn enter<'a>(&'a self, section: &'a Section) -> BoxFuture<'a, Result<Guard>> {
        Box::pin(async move { self.server()?.enter_for_workflow(section).await })
    }
    fn call<'a>(&'a self, to: &'a Target, body: &'a DocBuf) -> BoxFuture<'a, Result<DocBuf>> {
        Box::pin(async move {
            let Target::Host(host) = to;
            let limit = Duration::from_millis(limits::WORKFLOW_CALL_MS_MAX);
            self.server()?.replication.peers.call(host, body, limit).await.map_err(Error::from)
        })
    }
}

impl Replication {
    /// None on a standalone node.
    pub(crate) fn services(&self) -> Option<&Services> {
        self.services.get()
    }

    /// Returns when a majority holds the entry at `target`; fails when this node is primary no more.
    pub(crate) async fn await_majority(&self, target: OpTime) -> Result<()> {
        let log = self.storage.log();
        log.ask_flush(target.ts);
        if self.member.is_alone() {
            return log.wait_durable(target.ts).await;
        }
        let journaled =
            self.member.config().is_some_and(|config| config.write_concern_majority_journal_default);
        let concern = Concern { want: Want::Majority, journaled };
        let waiter = |id| Event::Await(Waiter { id, target, concern });
        self.coordinator()?.ask(waiter).await.waited()
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
