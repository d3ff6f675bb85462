//! The TTL monitor: deletes documents whose time is over, one small unit after another.

use crate::Server;
use pando_access::Interrupt;
use pando_base::{Error, ErrorCode, Result};
use pando_command::Param;
use pando_env::Component;
use std::sync::Arc;
use std::time::Duration;

/// A pass ends when the server stops or may not write any more.
struct WhilePrimary<'a>(&'a Server);

impl Interrupt for WhilePrimary<'_> {
    fn check(&self) -> Result<()> {
        if self.0.lifecycle.is_stopping() {
            return Err(Error::new(ErrorCode::InterruptedAtShutdown, "the server is shutting down"));
        }
        if !self.0.replication.member.accepts_writes() {
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

pub(crate) async fn run(server: Arc<Server>) {
    loop {
        let every = server.instance.params.int(Param::ttlMonitorSleepSecs).max(1);
        if !server.lifecycle.pause(Duration::from_secs(every as u64)).await {
            return;
        }
        if !server.instance.params.bool(Param::ttlMonitorEnabled)
            || !server.replication.member.accepts_writes()
            || server.replication.is_member_alone()
        {
            continue;
        }
        let now = server.env.clock.wall_ms();
        match server.maintenance.ttl_pass(now, &WhilePrimary(&server)).await {
            Ok(n) => server.ttl.deleted.add(n),
            Err(e) => server.env.log.debug(1, Component::Index, 22528, "TTL pass was interrupted", |a| {
                a.str("error", &e.message);
            }),
        }
        server.ttl.passes.inc();
    }
}
