//! What a router with logins asks its config servers for again and again: whether users or roles have changed, and the keys of the
//! cluster's times.

use crate::Router;
use pando_base::redaction::WithCode;
use pando_base::{Result, limits};
use pando_command::Param;
use pando_env::{Component, Env};
use std::sync::Arc;
use std::time::Duration;

impl Router {
    pub(crate) async fn read_time_keys(&self) -> Result<()> {
        self.time_keys.read(&self.catalog.config).await
    }

    pub(crate) fn begin_following_principals(self: &Arc<Self>, env: &Env) {
        if !self.instance.asks_for_logins() {
            return;
        }
        let (router, clock) = (Arc::downgrade(self), env.clock.clone());
        env.spawn("user cache invalidation", async move {
            let mut looked = None;
            loop {
                let Some(router) = router.upgrade().filter(|r| !r.is_ending()) else { return };
                router.look_for_changes().await;
                let now = clock.mono();
                let every = Duration::from_secs(limits::CLUSTER_TIME_KEYS_CHECK_SECS);
                if looked.is_none_or(|looked| now >= looked + every) {
                    looked = Some(now);
                    // Whoever lacks one asks by itself.
                    let _ = router.read_time_keys().await;
                }
                let secs = router.instance.params.int(Param::userCacheInvalidationIntervalSecs).max(1);
                drop(router);
                clock.sleep(Duration::from_secs(secs as u64)).await;
            }
        });
    }
    /// One look at whether users or roles have changed.
    pub async fn look_for_changes(&self) {
        if let Err(e) = self.principals.look_for_changes().await {
            let text = "An error occurred while fetching current user cache generation from config servers";
            self.instance.env.log.warn(Component::Access, 20266, text, |a| {
                a.data("error", &WithCode(&e));
            });
        }
    }
}
