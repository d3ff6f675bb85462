//! `collMod`: options of a collection, view or index.

use super::prelude::*;
use pando_command::generic_args::is_generic;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    server.before_write(ctx).await?;
    let done = server.catalog.coll_mod(&ns, req.body, |name| is_generic(name.as_bytes())).await?;
    server.wrote(ctx, done.last);
    Ok(Reply::from_doc(&done.reply))
}
