//! An entry every `periodicNoopIntervalSecs` of an idle primary, so that time moves on.

use super::Replication;
use pando_command::Param;
use pando_env::Component;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

pub(crate) async fn run(replication: Arc<Replication>) {
    let last = AtomicU64::new(0);
    loop {
        let every = replication.instance.params.int(Param::periodicNoopIntervalSecs).max(1);
        if !replication.lifecycle.pause(Duration::from_secs(every as u64)).await {
            return;
        }
        let newest = replication.storage.log().last();
        let idle = last.swap(newest.0, Relaxed) == newest.0;
        if idle
            && replication.member.is_primary()
            && replication.instance.params.bool(Param::writePeriodicNoops)
        {
            match replication.write_noop("periodic noop") {
                Ok(at) => last.store(at.ts.0, Relaxed),
                Err(e) => replication.env.log.warn(
                    Component::Repl,
                    21220,
                    "Could not write the periodic noop",
                    |a| {
                        a.data("error", &e);
                    },
                ),
            }
        }
    }
}
