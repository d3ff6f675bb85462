//! What every part of one server process shares: its world, parameters, fail points, clients, counters.

use crate::api_versions::ApiVersions;
use crate::client::{Client, Clients};
use crate::fail_point::FailPoints;
use crate::metrics::Metrics;
use crate::params::{Param, Params};
use crate::unfinished::Unfinished;
use pando_audit::AuditLog;
use pando_env::Env;
use pando_metrics::{Collector, Registry, Source};
use pando_wire::Compressors;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// One per server.
pub struct Instance {
    pub env: Env,
    pub params: Params,
    pub fail_points: FailPoints,
    pub clients: Clients,
    pub metrics: Arc<Metrics>,
    pub api_versions: ApiVersions,
    /// All metrics of this server, those that other parts of it count, too.
    pub registry: Registry,
    /// Messages on their way in.
    pub unfinished: Arc<Unfinished>,
    /// Monotonic and wall time of the start.
    pub started: Duration,
    pub started_wall_ms: i64,
    shutting_down: AtomicBool,
    asks_for_logins: AtomicBool,
    compressors: AtomicU8,
    audit: OnceLock<Arc<AuditLog>>,
}

impl Instance {
    pub fn new(env: Env, params: Params) -> Arc<Instance> {
        let instance = Arc::new(Instance {
            started: env.clock.mono(),
            started_wall_ms: env.clock.wall_ms(),
            env,
            params,
            fail_points: FailPoints::new(),
            clients: Clients::default(),
            metrics: Arc::default(),
            api_versions: ApiVersions::default(),
            registry: Registry::default(),
            unfinished: Arc::default(),
            shutting_down: AtomicBool::new(false),
            asks_for_logins: AtomicBool::new(false),
            compressors: AtomicU8::new(Compressors::ALL.bits()),
            audit: OnceLock::new(),
        });
        instance.register_metrics();
        instance.redact_as_told();
        instance
    }
    /// `redactClientLogData` takes effect.
    pub fn redact_as_told(&self) {
        self.env.log.sink().set_redaction(self.params.bool(Param::redactClientLogData));
    }
    /// Where in `serverStatus` the figures of [`Metrics`] are found.
    fn register_metrics(&self) {
        let r = |path, collect: fn(&Metrics, &mut Collector<'_>)| {
            self.registry.asked(path, &self.metrics, collect);
        };
        r("asserts", |m, to| m.asserts.collect(to));
        r("connections", |m, to| m.connections.collect(to));
        r("network", |m, to| m.network.collect(to));
        r("network.compression", |m, to| m.compression.collect(to));
        r("opLatencies", |m, to| m.latencies.collect(to));
        r("opcounters", |m, to| m.op_counters.collect(to));
        r("opcountersRepl", |m, to| m.op_counters_repl.collect(to));
        r("readConcernCounters.{scope=nonTransactionOps}", |m, to| m.read_concerns.collect(to));
        r("readConcernCounters.{scope=transactionOps}", |m, to| m.read_concerns_in_transactions.collect(to));
        r("transportSecurity", |m, to| m.transport_security.collect(to));
        r("metrics", |m, to| m.documents.collect(to));
        r("metrics.repl", |m, to| m.replication.collect(to));
    }
    /// A client for a new connection (`conn<N>`).
    pub fn connection(self: &Arc<Self>, remote: String, local: String) -> Arc<Client> {
        let id = self.clients.next_id();
        self.add(Client::new(id, format!("conn{id}"), Some(remote), Some(local), self.clone()))
    }
    /// A client for work of the server's own; remove it with [`Clients::remove`] when the task ends.
    pub fn internal_client(self: &Arc<Self>, desc: &str) -> Arc<Client> {
        self.add(Client::new(self.clients.next_id(), desc.to_owned(), None, None, self.clone()))
    }
    fn add(&self, client: Client) -> Arc<Client> {
        let client = Arc::new(client);
        self.clients.add(client.clone());
        client
    }
    pub fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Relaxed)
    }
    /// From now on new commands get 91 and `kill_all` is the caller's next step.
    pub fn begin_shutdown(&self) {
        self.shutting_down.store(true, Relaxed);
    }
    /// Clients may do what they have been granted, and have to log in for it (`--auth`).
    pub fn asks_for_logins(&self) -> bool {
        self.asks_for_logins.load(Relaxed)
    }
    pub fn ask_for_logins(&self) {
        self.asks_for_logins.store(true, Relaxed);
    }
    /// Where events are recorded; `None` where nobody asked for that.
    #[inline]
    pub fn audit(&self) -> Option<&Arc<AuditLog>> {
        self.audit.get()
    }
    /// From now on. It cannot be taken back.
    pub fn record_in(&self, audit: Arc<AuditLog>) {
        self.registry.asked("auditLog", &audit, AuditLog::collect);
        let _ = self.audit.set(audit);
    }
    /// Compressors this server offers (`--networkMessageCompressors`).
    pub fn compressors(&self) -> Compressors {
        Compressors::from_bits(self.compressors.load(Relaxed))
    }
    pub fn set_compressors(&self, set: Compressors) {
        self.compressors.store(set.bits(), Relaxed);
    }
    pub fn test_commands(&self) -> bool {
        self.params.bool(crate::params::Param::enableTestCommands)
    }
}
