//! The TTL monitor: deletes documents whose time is over, one small unit after another.

use crate::Server;
use crate::tasks::pause;
use pando_command::Param;
use pando_command::metrics::Counter;
use std::sync::Arc;
use std::time::Duration;

#[derive(Default)]
pub(crate) struct TtlStats {
    pub(crate) passes: Counter,
    pub(crate) deleted: Counter,
}

pub(crate) async fn run(server: Arc<Server>) {
    loop {
        let every = server.instance.params.int(Param::ttlMonitorSleepSecs).max(1);
        if !pause(&server, Duration::from_secs(every as u64)).await {
            return;
        }
        if !server.instance.params.bool(Param::ttlMonitorEnabled) || !server.repl.accepts_writes() {
            continue;
        }
        server.ttl.passes.inc();
    }
}
