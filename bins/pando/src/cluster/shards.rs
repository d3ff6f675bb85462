//! What is asked through a router: shards are added to the cluster, chunks are counted.

use crate::set::{self, CALL, command};
use pando_base::limits;
use pando_bson::{Bson, doc};
use pando_env::Env;
use pando_rpc::{CallResult, Pool, Retry};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Adds those that the cluster does not know yet.
pub(super) async fn add(pool: &Pool, router: &str, shards: &[set::Plan]) -> Result<(), String> {
    let limit = Duration::from_millis(limits::SET_START_MS);
    let listed = pool.call(router, &command(doc! { "listShards": 1 }), Retry::Idempotent, limit).await;
    let listed = listed.map_err(|f| format!("the shards cannot be listed: {f}"))?;
    let known: Vec<&str> = listed
        .get("shards")
        .and_then(|v| v.as_array())
        .map(|list| list.iter().filter_map(|e| e.value().as_doc()?.get("_id")?.as_str()).collect())
        .unwrap_or_default();
    for shard in shards.iter().filter(|s| !known.contains(&s.set.as_str())) {
        let hosts = format!("{}/{}", shard.set, shard.hosts().join(","));
        let ask = command(doc! { "addShard": hosts, "name": shard.set.as_str() });
        pool.call(router, &ask, Retry::NotIdempotent, limit)
            .await
            .map_err(|f| format!("{} cannot be added to the cluster: {f}", shard.set))?;
    }
    Ok(())
}

/// How many chunks each shard has, by the last answer of a router.
#[derive(Default)]
pub(super) struct Chunks(Mutex<Option<BTreeMap<String, i64>>>);

impl Chunks {
    /// `None` before the first answer.
    pub(super) fn of(&self, shard: &str) -> Option<i64> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.as_ref().map(|c| c.get(shard).copied().unwrap_or(0))
    }
    /// Asks again and again. A router that is silent says nothing about chunks.
    pub(super) fn follow(self: Arc<Self>, env: &Env, pool: Pool, router: String) {
        let clock = env.clock.clone();
        env.spawn("chunks", async move {
            loop {
                if let Ok(counts) = count(&pool, &router).await {
                    *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(counts);
                }
                clock.sleep(Duration::from_millis(limits::SET_STATUS_MS)).await;
            }
        });
    }
}

async fn count(pool: &Pool, router: &str) -> CallResult<BTreeMap<String, i64>> {
    let group = doc! { "$group": { "_id": "$shard", "n": { "$sum": 1 } } };
    // All groups come with the first reply: a cluster of this machine has few shards.
    let ask = doc! {
        "aggregate": "chunks", "pipeline": vec![Bson::from(group)], "cursor": {}, "$db": "config"
    };
    let reply = pool.call(router, &ask.to_raw(), Retry::Idempotent, CALL).await?;
    let mut counts = BTreeMap::new();
    if let Some(batch) = reply.get_path("cursor.firstBatch").and_then(|v| v.as_array()) {
        for group in batch.iter().filter_map(|e| e.value().as_doc()) {
            let shard = group.get("_id").and_then(|v| v.as_str());
            if let (Some(shard), Some(n)) = (shard, group.get("n").and_then(|v| v.as_i64())) {
                counts.insert(shard.to_owned(), n);
            }
        }
    }
    Ok(counts)
}
