//! The TTL monitor: deletes documents whose time is over, one small unit after another.

use crate::lifecycle::Lifecycle;
use crate::replication::Replication;
use pando_access::{Interrupt, Maintenance};
use pando_base::{Error, ErrorCode, Result};
use pando_command::{Instance, Param};
use pando_env::Component;
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct TtlMonitor {
    instance: Arc<Instance>,
    maintenance: Maintenance,
    replication: Arc<Replication>,
    lifecycle: Arc<Lifecycle>,
    pub(crate) stats: TtlStats,
}

/// A pass ends when the server stops or may not write any more.
impl Interrupt for TtlMonitor {
    fn check(&self) -> Result<()> {
        if self.lifecycle.is_stopping() {
            return Err(Error::new(ErrorCode::InterruptedAtShutdown, "the server is shutting down"));
        }
        if !self.replication.member.accepts_writes() {
            return Err(Error::new(ErrorCode::NotWritablePrimary, "not primary"));
        }
        Ok(())
    }
}

pando_metrics::group! {
    /// `serverStatus.metrics.ttl`.
    pub(crate) struct TtlStats {
        /// Documents deleted because their time was over
        pub(crate) deleted: Counter = "deletedDocuments", "documents";
        /// Times the TTL monitor went through all collections
        pub(crate) passes: Counter = "passes", "passes";
    }
}

impl TtlMonitor {
    pub(crate) fn new(
        instance: Arc<Instance>,
        maintenance: Maintenance,
        replication: Arc<Replication>,
        lifecycle: Arc<Lifecycle>,
    ) -> TtlMonitor {
        let stats = TtlStats::default();
        TtlMonitor { instance, maintenance, replication, lifecycle, stats }
    }

    async fn pass(&self) {
        let env = &self.instance.env;
        match self.maintenance.ttl_pass(env.clock.wall_ms(), self).await {
            Ok(n) => self.stats.deleted.add(n),
            Err(e) => env.log.debug(1, Component::Index, 22528, "TTL pass was interrupted", |a| {
                a.data("error", &e);
            }),
        }
        self.stats.passes.inc();
    }
}

pub(crate) async fn run(ttl: Arc<TtlMonitor>) {
    let params = &ttl.instance.params;
    loop {
        let every = params.int(Param::ttlMonitorSleepSecs).max(1);
        if !ttl.lifecycle.pause(Duration::from_secs(every as u64)).await {
            return;
        }
        let replication = &ttl.replication;
        if params.bool(Param::ttlMonitorEnabled)
            && replication.member.accepts_writes()
            && !replication.is_member_alone()
        {
            ttl.pass().await;
        }
    }
}
