//! `collMod`: options of a collection, view or index.

use super::prelude::*;
use pando_command::generic_args::is_generic;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    // The UUID is checked by itself and no change.
    let aside = |name: &str| is_generic(name.as_bytes()) || name == "collectionUUID";
    let fields = pando_catalog::checked_coll_mod(req.body, aside)?;
    if let Some(arg) = req.args("collMod").find(|a| a.name() == "collectionUUID") {
        arg.uuid_or_none()?;
    }
    ctx.arguments_read()?;
    let series = server.time_series(&ns);
    server.uuid_of_write(true, "collMod", &req, &ns, series.as_ref())?;
    server.before_write(ctx).await?;
    let done = ctx.interruptible(server.catalog.coll_mod(&ns, &fields, |_| false)).await??;
    ctx.wrote(done.last);
    Ok(Reply::from_doc(&done.reply))
}
