//! What shards are told of sessions from time to time: which have open cursors here, so that their parts on shards live as long,
//! and which their clients have ended.

use crate::Router;
use pando_base::{Result, limits};
use pando_bson::{DocBuf, DocBuilder};
use pando_command::{Param, SessionId};
use pando_env::Env;
use pando_env::together;
use pando_fleet::Shard;
use pando_metadata_cache::limit;
use pando_monitor::ReadPreference;
use pando_rpc::Retry;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

impl Router {
    pub(crate) fn begin_session_rounds(self: &Arc<Self>, env: &Env) {
        if self.instance.params.bool(Param::disableLogicalSessionCacheRefresh) {
            return;
        }
        let router = Arc::downgrade(self);
        let clock = env.clock.clone();
        let every = self.instance.params.int(Param::logicalSessionRefreshMillis).max(1) as u64;
        env.spawn("router sessions", async move {
            loop {
                clock.sleep(Duration::from_millis(every)).await;
                let Some(router) = router.upgrade().filter(|r| !r.is_ending()) else { return };
                // What a shard was not told it is told the next time.
                let _ = router.tell_sessions().await;
            }
        });
    }

    /// One round.
    pub(crate) async fn tell_sessions(&self) -> Result<()> {
        let at = self.instance.env.clock.mono();
        let changes = self.sessions.changes();
        let held: BTreeSet<SessionId> =
            self.cursors.idle().into_iter().filter_map(|(_, info)| info.lsid).collect();
        let held: Vec<SessionId> = held.into_iter().collect();
        let shards = self.catalog.shards().await?;
        let tells = shards.iter().map(|shard| self.tell_shard(shard, &held, &changes.ended));
        // All but those that cannot be reached: the rest is told to all once more.
        for told in together(tells.collect()).await {
            told?;
        }
        self.sessions.told(&changes, at);
        Ok(())
    }
    async fn tell_shard(&self, shard: &Shard, held: &[SessionId], ended: &[SessionId]) -> Result<()> {
        let primary = ReadPreference::default();
        for (name, sessions) in [("refreshSessions", held), ("endSessions", ended)] {
            for some in sessions.chunks(limits::ROUTER_SESSIONS_TOLD_AT_ONCE) {
                let body = naming(name, some);
                self.fleet.call(&shard.monitor, &primary, &body, &[], Retry::Idempotent, limit()).await?;
            }
        }
        Ok(())
    }
}

fn naming(command: &str, sessions: &[SessionId]) -> DocBuf {
    let mut b = DocBuilder::new();
    b.array(command, |a| {
        for lsid in sessions {
            a.doc(|d| _ = d.uuid("id", &lsid.id).binary("uid", 0, &lsid.uid));
        }
    });
    b.str("$db", "admin");
    b.finish()
}
