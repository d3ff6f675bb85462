//! `_shardsvrRenameCollection`: a router's `renameCollection`, for the primary shard of the database. What is not sharded is here alone;
//! to rename what other shards own parts of is not built.

use crate::commands::prelude::*;
use crate::commands::shardsvr::ddl::Ddl;
use pando_bson::fields::missing;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let from = req.ns()?;
    let to = req.body.get("to");
    let to = to.as_ref().and_then(|v| v.as_str()).ok_or_else(|| missing(req.name, "to"))?;
    let target = Namespace::parse(to)?;
    let ddl = Ddl::new(server, ctx)?;
    let (first, second) = if from.as_str() <= to { (&from, &target) } else { (&target, &from) };
    let _locks = ddl.lock_collections(&[first, second]).await?;
    for ns in [&from, &target] {
        ddl.sharding.refresh_anew(ns).await?;
        if ddl.sharding.metadata.known(ns).table().is_some() {
            let text = format!("renaming the sharded collection {ns} is not supported by this server");
            return Err(Error::new(ErrorCode::CommandNotSupported, text));
        }
    }
    let mut b = DocBuilder::new();
    b.str("renameCollection", from.as_str()).str("to", to);
    for option in ["dropTarget", "stayTemp"] {
        req.body.elem(option).into_iter().for_each(|e| _ = b.elem(e));
    }
    let body = b.finish();
    let request = Ddl::request("renameCollection", "admin", &body);
    crate::commands::rename_collection::run(server, ctx, request).await
}
