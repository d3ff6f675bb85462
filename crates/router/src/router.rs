//! One router: what its commands hold and ask.

use crate::concern_defaults::KnownDefaults;
use crate::config::Config;
use crate::cursors::cursor::RouterCursor;
use crate::principals::Principals;
use crate::remote::Shards;
use crate::transactions::Transactions;
use pando_audit::Event;
use pando_auth::Authority;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::ObjectId;
use pando_command::{Instance, Node, OpCtx, Registry};
use pando_env::sync::Notify;
use pando_logins::Logins;
use pando_metadata_cache::{TimeKeys, Times};
use pando_metrics::Source;
use pando_session::Sessions;
use pando_session::Spills;
use pando_session::cursors::Cursors;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Weak};

/// A stateless node between clients and shards.
pub struct Router {
    pub instance: Arc<Instance>,
    pub registry: Registry<Router>,
    pub config: Config,
    pub(crate) shards: Shards,
    pub(crate) transactions: Transactions,
    pub(crate) concern_defaults: KnownDefaults,
    pub(crate) principals: Principals,
    pub(crate) logins: Logins,
    /// What times are signed with, where clients log in.
    pub(crate) time_keys: TimeKeys,
    pub(crate) cursors: Cursors<RouterCursor>,
    /// What merging parts of pipelines hold beyond their memory.
    pub(crate) spills: Arc<Spills>,
    /// Sessions of this router's clients.
    pub(crate) sessions: Sessions,
    /// This process, in `topologyVersion`.
    pub(crate) process_id: ObjectId,
    /// Itself, for tasks that outlive a command.
    pub(crate) me: Weak<Router>,
    pub(crate) ending: AtomicBool,
    pub(crate) changed: Notify,
}

impl Deref for Router {
    type Target = Shards;
    fn deref(&self) -> &Shards {
        &self.shards
    }
}

impl Router {
    /// For a task of its own.
    pub(crate) fn shared(&self) -> Result<Arc<Router>> {
        self.me
            .upgrade()
            .ok_or_else(|| Error::new(ErrorCode::InterruptedAtShutdown, "interrupted at shutdown"))
    }

    /// What it has heard of the cluster's times.
    pub fn times(&self) -> &Times {
        &self.shards.times
    }

    /// Where in `serverStatus` figures of logins are found.
    pub(crate) fn register_metrics(self: &Arc<Self>) {
        let registry = &self.instance.registry;
        registry.asked("security", self, |router, to| router.logins.counts.collect(to));
        registry.asked("metrics.commands", self, |router, to| router.registry.collect(to));
        registry.asked("metrics.cursor", self, |router, to| router.cursors.stats().collect(to));
        registry.asked("shardingStatistics.catalogCache", self, |router, to| router.catalog.collect(to));
        registry.asked("metrics.tls", self, |router, to| pando_logins::status::collect(&router.logins, to));
    }
    /// What whoever asks may do; `None` where nobody has to log in.
    pub(crate) fn authority_of_asker(&self, ctx: &OpCtx) -> Result<Option<Arc<Authority>>> {
        let asked = ctx.instance().asks_for_logins() && ctx.client.is_connection();
        asked.then(|| self.authority(&ctx.client)).transpose()
    }

    /// Records something that the router does, for whoever this thread works for.
    pub(crate) fn audit(&self, event: impl FnOnce() -> Event) {
        if let Some(log) = self.instance.audit() {
            log.record(&log.originator(), &event());
        }
    }
    /// Begins a new file of the audit log; nothing where there is none.
    pub fn rotate_audit_log(&self) -> Result<()> {
        pando_logins::audit::rotate(&self.instance, &*self.config.host)
    }

    /// Asks the process to end.
    pub fn request_shutdown(&self) {
        self.ending.store(true, SeqCst);
        self.changed.bump();
    }
    pub fn is_ending(&self) -> bool {
        self.ending.load(SeqCst)
    }
    pub async fn wait_shutdown_requested(&self) {
        loop {
            let seen = self.changed.version();
            if self.is_ending() {
                return;
            }
            self.changed.changed(seen).await;
        }
    }
    /// New commands are refused, and those that run are interrupted.
    pub fn stop(&self) {
        self.request_shutdown();
        self.audit(Event::shutdown);
        self.instance.begin_shutdown();
        self.instance.clients.kill_where(ErrorCode::InterruptedAtShutdown, |_, _| true);
    }
}
