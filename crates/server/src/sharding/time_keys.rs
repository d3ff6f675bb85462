//! The keys of a cluster's times: a shard makes none of its own, it reads those of the config servers.

use super::Sharding;
use crate::lifecycle::Lifecycle;
use crate::replication::Replication;
use pando_base::limits;
use pando_env::Component;
use pando_metadata_cache::time_keys_of_cluster;
use std::sync::Arc;
use std::time::Duration;

/// Asks often until there are keys, and seldom from then on: the next one is made months before it is used.
pub(crate) async fn follow(
    sharding: Arc<Sharding>,
    replication: Arc<Replication>,
    lifecycle: Arc<Lifecycle>,
) {
    if !replication.signs_cluster_times() {
        return;
    }
    let mut known = false;
    loop {
        let pause = match known {
            true => Duration::from_secs(limits::CLUSTER_TIME_KEYS_CHECK_SECS),
            false => Duration::from_millis(limits::CLUSTER_TIME_KEYS_READ_MS),
        };
        if !lifecycle.pause(pause).await {
            return;
        }
        let Ok(cluster) = sharding.cluster() else { continue };
        match time_keys_of_cluster(&cluster.catalog.config).await {
            Ok(keys) => {
                known = !keys.is_empty();
                replication.cluster_time_keys.take_over(keys);
            }
            Err(e) => {
                let text = "The keys of the cluster could not be read; will try again";
                replication.env().log.warn(Component::Sharding, 9_100_096, text, |a| {
                    a.data("error", &e);
                });
            }
        }
    }
}
