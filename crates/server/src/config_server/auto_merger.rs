//! Chunks that a collection need not have become fewer by and by (SH-SPLIT-2): every hour, shard by shard, with a pause behind each, while the balancer may work.
//! Moves cut chunks, so without it there would be more and more of them.

use super::ConfigServer;
use crate::lifecycle::Lifecycle;
use pando_base::{Result, limits};
use pando_bson::DocBuilder;
use pando_command::Param;
use pando_env::Component;
use pando_routing::ShardId;
use std::sync::Arc;
use std::time::Duration;

pub(crate) async fn run(config_server: Arc<ConfigServer>, lifecycle: Arc<Lifecycle>) {
    let clock = config_server.replication.env().clock.clone();
    // When a turn begins; a new primary's does at once.
    let mut due = clock.mono();
    while lifecycle.pause(Duration::from_millis(limits::AUTO_MERGER_LOOK_MS)).await {
        let member = &config_server.replication.member;
        if !member.accepts_writes() || !member.is_replicated() {
            due = clock.mono();
            continue;
        }
        if clock.mono() < due || !config_server.may_merge() {
            continue;
        }
        config_server.merge_everywhere(&lifecycle).await;
        let secs = config_server.replication.params().int(Param::autoMergerIntervalSecs);
        due = clock.mono() + Duration::from_secs(secs.cast_unsigned());
    }
}

impl ConfigServer {
    fn may_merge(&self) -> bool {
        self.manager.balancer_settings().is_ok_and(|settings| {
            settings.merges
                && settings.may_balance_at(self.minute_of_day())
                && self.replication.member.accepts_writes()
        })
    }
    /// Until there is nothing left that could be merged, or it may not go on.
    async fn merge_everywhere(&self, lifecycle: &Lifecycle) {
        let collections = self.manager.collections_to_merge().unwrap_or_default();
        for ns in collections {
            for shard in self.manager.shards_to_merge_on(&ns).unwrap_or_default() {
                loop {
                    let params = self.replication.params();
                    let pause = params.int(Param::autoMergerThrottlingMS).cast_unsigned();
                    let merged = match self.may_merge() {
                        true => self.merge_some(&ns, &shard).await,
                        false => return,
                    };
                    if !lifecycle.pause(Duration::from_millis(pause)).await {
                        return;
                    }
                    match merged {
                        Ok(n) if n > 0 => {}
                        Ok(_) => break,
                        Err(e) => {
                            self.failed("Chunks of a shard were not merged", &ns, &e);
                            break;
                        }
                    }
                }
            }
        }
    }
    /// How many chunks became fewer.
    async fn merge_some(&self, ns: &str, shard: &ShardId) -> Result<i64> {
        let max = self.replication.params().int(Param::autoMergerMaxNumberOfChunksToMerge);
        let mut b = DocBuilder::new();
        b.str("_shardsvrMergeAllChunksOnShard", ns).str("shard", shard.as_str());
        b.i64("maxNumberOfChunksToMerge", max);
        b.doc("writeConcern", |d| _ = d.str("w", "majority").i32("wtimeout", 0)).str("$db", "admin");
        let reply = self.on_shard(shard, &b.finish()).await?;
        let merged = reply.get("numMergedChunks").and_then(|v| v.as_i64()).unwrap_or(0);
        if merged > 0 {
            self.replication.env().log.info(Component::Sharding, 7_341_900, "Chunks were merged", |a| {
                a.str("namespace", ns).str("shard", shard.as_str()).i64("chunks", merged);
            });
        }
        Ok(merged)
    }
}
