//! `setAllowMigrations`: whether chunks of a collection may move.

use super::super::define::on_primary::OnPrimary;
use super::super::prelude::*;
use pando_bson::fields::{missing, wrong_type};
use pando_rpc::Retry;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = Namespace::parse(req.first_str(req.name)?)?;
    let allow = match req.body.get("allowMigrations") {
        None => return Err(missing(req.name, "allowMigrations")),
        Some(Value::Boolean(allow)) => allow,
        Some(v) => return Err(wrong_type(req.name, "allowMigrations", &v, &["bool"])),
    };
    let name = "_shardsvrSetAllowMigrations";
    let within = Request { db: ns.db(), ..req };
    let on = OnPrimary { ns: ns.clone(), name, creates: false, retry: Retry::Idempotent };
    let arguments = |b: &mut DocBuilder| _ = b.str(name, ns.coll()).bool("allowMigrations", allow);
    let reply = on.run_with(router, ctx, &within, arguments).await?;
    Ok(handed_on(&reply))
}
