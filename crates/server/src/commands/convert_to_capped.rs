//! `convertToCapped` and `cloneCollectionAsCapped`: the newest documents that fit, in a capped collection.

use super::prelude::*;
use pando_request::{CloneAsCappedArgs, ConvertToCappedArgs};

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns_of_ddl()?;
    let size = ConvertToCappedArgs::parse(&req)?.size()?;
    server.upkeep.admission.before_write(ctx).await?;
    let last = server.access.convert_to_capped(ctx, &ns, size).await?;
    ctx.wrote(last);
    Ok(Reply::new())
}

pub(super) async fn clone(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = CloneAsCappedArgs::parse(&req)?;
    let (from, to) = args.names(&req)?;
    let size = args.size()?;
    server.upkeep.admission.before_write(ctx).await?;
    let last = server.access.clone_as_capped(ctx, &from, &to, size).await?;
    ctx.wrote(last);
    Ok(Reply::new())
}
