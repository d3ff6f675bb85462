//! `renameCollection`: within a database, coordinated by its primary shard.

use super::super::prelude::*;
use super::on_primary::OnPrimary;
use pando_request::RenameCollectionArgs;
use pando_rpc::Retry;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let from = RenameCollectionArgs::source(&req)?;
    ctx.arguments_read()?;
    let args = RenameCollectionArgs::parse(&req)?;
    let to = args.target()?;
    args.check_uuids(&from, &to)?;
    if from.db() != to.db() {
        let text = "Source and destination collections must be on the same database.";
        return Err(Error::new(ErrorCode::CommandFailed, text));
    }
    // On the database that it is about, not on `admin`.
    let within = Request { db: from.db(), ..req };
    let name = "_shardsvrRenameCollection";
    // A second time it would take what was made under the old name meanwhile, and drop what the first has renamed.
    let on = OnPrimary { ns: from.clone(), name, creates: false, retry: Retry::NotIdempotent };
    let arguments = |b: &mut DocBuilder| {
        b.str(name, from.coll()).str("to", to.as_str());
        for option in ["dropTarget", "stayTemp"] {
            req.body.elem(option).into_iter().for_each(|e| _ = b.elem(e));
        }
    };
    let reply = on.run_with(router, ctx, &within, arguments).await?;
    for ns in [&from, &to] {
        router.catalog.forget_collection(ns.as_str());
    }
    Ok(handed_on(&reply))
}
