//! One bounded step of flushing or compaction after the other, when there is something to do.

use crate::lifecycle::Lifecycle;
use pando_env::Component;
use pando_env::Env;
use pando_storage::Storage;
use std::sync::Arc;
use std::time::Duration;

pub(crate) async fn run(storage: Storage, env: Env, lifecycle: Arc<Lifecycle>) {
    const IDLE: Duration = Duration::from_millis(100);
    loop {
        let storage = storage.clone();
        let more = env.offload(move || storage.step()).await;
        let wait = match more {
            Some(Ok(true)) => Duration::from_millis(1),
            Some(Ok(false)) => IDLE,
            Some(Err(e)) => {
                env.log.error(Component::Storage, 22436, "Storage maintenance failed", |a| {
                    a.data("error", &e);
                });
                Duration::from_secs(1)
            }
            None => return lifecycle.fatal("Storage maintenance failed", "panic"),
        };
        if !lifecycle.pause(wait).await {
            return;
        }
    }
}
