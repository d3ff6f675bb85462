//! `refineCollectionShardKey`: fields are added to a shard key.

use super::super::define::on_primary::OnPrimary;
use super::super::prelude::*;
use pando_routing::ShardKey;
use pando_rpc::Retry;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = Namespace::parse(req.first_str("refineCollectionShardKey")?)?;
    let key = req.body.get("key").and_then(|v| v.as_doc());
    let key = key.ok_or_else(|| pando_command::request::missing("refineCollectionShardKey", "key"))?;
    ShardKey::parse(key)?;
    let name = "_shardsvrRefineCollectionShardKey";
    let within = Request { db: ns.db(), ..req };
    let on = OnPrimary { ns: ns.clone(), name, creates: false, retry: Retry::Idempotent };
    let arguments = |b: &mut DocBuilder| _ = b.str(name, ns.coll()).raw_doc("newShardKey", key);
    let reply = on.run_with(router, ctx, &within, arguments).await?;
    Ok(handed_on(&reply))
}
