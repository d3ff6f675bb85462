//! `sharding` of a shard: the cluster that it belongs to.

use crate::Server;
use pando_bson::DocBuilder;

/// A set that is no shard, or not yet.
pub(super) fn is_absent(server: &Server) -> bool {
    server.sharding.as_ref().is_none_or(|s| s.shard_name().is_none())
}

pub(super) fn append(server: &Server, d: &mut DocBuilder) {
    let Some(sharding) = &server.sharding else { return };
    let Ok(cluster) = sharding.cluster() else { return };
    d.str(
        "configsvrConnectionString",
        &format!("{}/{}", cluster.identity.config_set, cluster.identity.config_hosts.join(",")),
    );
    let seen = cluster.catalog.config.times.config();
    d.doc("lastSeenConfigServerOpTime", |d| _ = d.timestamp("ts", seen).i64("t", -1));
}
