//! `drop`: removes a collection or view. Since 7.0 a name that is not there is fine.

use super::prelude::*;
use pando_base::Uuid;
use pando_request::DropArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = DropArgs::parse(&req)?;
    let ns = req.ns()?;
    ctx.arguments_read()?;
    if let Some(uuid) = args.collection_uuid {
        server.access.check_uuid(&ns, Uuid(uuid))?;
    }
    server.upkeep.admission.before_write(ctx).await?;
    let mut r = Reply::new();
    match server.access.drop_collection(ctx, &ns).await {
        Ok(dropped) => {
            ctx.wrote(dropped.last);
            server.statistics.top.forget(ns.as_str());
            if let Some(n) = dropped.indexes_were {
                r.body.i32("nIndexesWas", n as i32);
            }
            // A time series that is dropped by its buckets is told by its name.
            let shown = ns.as_str().replacen(".system.buckets.", ".", 1);
            r.body.str("ns", &shown);
        }
        Err(e) if e.code == ErrorCode::NamespaceNotFound => {}
        Err(e) => return Err(e),
    }
    Ok(r)
}
