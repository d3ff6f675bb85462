//! `collMod`: options of a collection, view or index.

use super::prelude::*;
use pando_base::Uuid;
use pando_request::CollModArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = CollModArgs::parse(&req)?;
    let ns = req.ns()?;
    args.check()?;
    let series = server.access.time_series(&ns);
    if let Some(uuid) = args.collection_uuid {
        server.access.check_uuid(series.as_ref().map_or(&ns, |s| &s.buckets), Uuid(uuid))?;
    }
    server.upkeep.admission.before_write(ctx).await?;
    let changes = args.changes(ns.coll());
    let done = server.access.coll_mod(ctx, &ns, &changes).await?;
    ctx.wrote(done.last);
    Ok(Reply::from_doc(&done.reply))
}
