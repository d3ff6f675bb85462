//! `movePrimary`: what is not sharded goes to another shard.

use super::super::define::on_primary::OnPrimary;
use super::super::prelude::*;
use pando_bson::fields::wrong_type;
use pando_routing::ShardId;
use pando_rpc::Retry;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let db = req.first_str("movePrimary")?;
    let to = match req.body.get("to") {
        None => return Err(pando_command::request::missing("movePrimary", "to")),
        Some(Value::String(to)) => to,
        Some(v) => return Err(wrong_type("movePrimary", "to", &v, &["string"])),
    };
    let shards = router.catalog.refresh_shards().await?;
    if shards.get(&ShardId::new(to)).is_some_and(|shard| shard.entry.draining) {
        let text = format!("Requested primary shard {to} is draining");
        return Err(Error::new(ErrorCode::ShardNotFound, text));
    }
    let name = "_shardsvrMovePrimary";
    let ns = Namespace::unchecked(db, "$cmd");
    let on = OnPrimary { ns, name, creates: false, retry: Retry::Idempotent };
    let reply = on.run_with(router, ctx, &req, |b| _ = b.str(name, db).str("to", to)).await;
    router.catalog.forget_database(db);
    reply.map(|reply| handed_on(&reply))
}
