//! `shardingState`: which shard of which cluster this is, and the versions that it knows.

use crate::commands::prelude::*;

pub(in crate::commands) async fn run(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::new();
    let identity = server.sharding.as_ref().and_then(|s| Some((s, s.metadata.identity()?)));
    let Some((sharding, identity)) = identity else {
        r.body.bool("enabled", false);
        return Ok(r);
    };
    r.body.bool("enabled", true).str("configServer", &identity.config_servers());
    r.body.str("shardName", identity.shard.as_str()).object_id("clusterId", identity.cluster);
    r.body.doc("versions", |d| {
        for (ns, version) in sharding.metadata.versions() {
            version.append(ns.as_str(), d);
        }
    });
    Ok(r)
}
