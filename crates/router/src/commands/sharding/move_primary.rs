//! `movePrimary`: what is not sharded goes to another shard.

use super::super::define::on_primary::OnPrimary;
use super::super::prelude::*;
use pando_rpc::Retry;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let db = req.first_str("movePrimary")?;
    let to = req.body.get("to").as_ref().and_then(|v| v.as_str()).map(str::to_owned);
    let to = to.ok_or_else(|| pando_command::request::missing("movePrimary", "to"))?;
    let name = "_shardsvrMovePrimary";
    let ns = Namespace::unchecked(db, "$cmd");
    let on = OnPrimary { ns, name, creates: false, retry: Retry::Idempotent };
    let reply = on.run_with(router, ctx, &req, |b| _ = b.str(name, db).str("to", &to)).await;
    router.catalog.forget_database(db);
    reply.map(|reply| handed_on(&reply))
}
