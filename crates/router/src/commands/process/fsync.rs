//! `fsync`: every shard writes everything to disk.

use super::super::prelude::*;
use crate::remote::own_fields;
use pando_metadata_cache::Target;
use pando_monitor::ReadPreference;
use pando_rpc::Retry;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    if req.body.get("lock").is_some_and(|v| v.is_truthy()) {
        return Err(Error::uncoded("can't do lock through mongos"));
    }
    let shards = router.catalog.shards().await?;
    let targets: Vec<Target> = shards.iter().map(|s| Target::unversioned(s.entry.id.clone())).collect();
    let body = |_: &Target| {
        let mut b = DocBuilder::new();
        b.i32("fsync", 1).str("$db", "admin");
        b.finish()
    };
    let primary = ReadPreference::default();
    let replies = router.gather(ctx, &targets, &primary, Retry::Idempotent, body).await?;
    let files = |reply: &DocBuf| reply.get("numFiles").and_then(|v| v.as_i64()).unwrap_or(0);
    let mut r = Reply::new();
    r.body.i32_or_i64("numFiles", replies.iter().map(|(_, reply)| files(reply)).sum());
    r.body.doc("all", |all| {
        for (shard, reply) in &replies {
            all.doc(shard.as_str(), |d| {
                own_fields(reply).for_each(|e| _ = d.elem(e));
                d.f64("ok", 1.0);
            });
        }
    });
    Ok(r)
}
