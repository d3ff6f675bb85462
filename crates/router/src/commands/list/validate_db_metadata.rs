//! `validateDBMetadata`: what of a database is outside the Stable API, on any shard.

use super::super::prelude::*;
use pando_metadata_cache::Target;
use pando_monitor::ReadPreference;
use pando_request::ValidateDbMetadataArgs;
use pando_rpc::Retry;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    ValidateDbMetadataArgs::parse(&req)?.check_api()?;
    ctx.arguments_read()?;
    let shards = router.catalog.shards().await?;
    let targets: Vec<Target> = shards.iter().map(|s| Target::unversioned(s.entry.id.clone())).collect();
    let body = |target: &Target| envelope::whole(ctx, &req, Kind::Plain, target);
    let primary = ReadPreference::default();
    let replies = router.gather(ctx, &targets, &primary, Retry::Idempotent, body).await?;
    let mut told: Vec<&RawDoc> = Vec::new();
    for (_, reply) in &replies {
        let list = reply.get("apiVersionErrors").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
        for e in list.iter().filter_map(|e| e.value().as_doc()) {
            // All shards have the indexes of a collection that is sharded.
            if !told.contains(&e) {
                told.push(e);
            }
        }
    }
    let mut r = Reply::new();
    r.body.array("apiVersionErrors", |a| told.iter().for_each(|e| _ = a.raw_doc(e)));
    Ok(r)
}
