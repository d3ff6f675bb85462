//! `_shardsvrCollMod`: a router's `collMod`, for the primary shard of the database, which has every shard do it that owns a part.

use super::drop_indexes::renamed;
use crate::commands::prelude::*;
use crate::commands::shardsvr::ddl::Ddl;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    let ddl = Ddl::new(server, ctx)?;
    // Until it is over: there is no document by which it could be waited for.
    let _begins = if ddl.is_of_user(&ns) { Some(ddl.unless_blocked().await?) } else { None };
    let _locks = ddl.lock_collection(&ns).await?;
    let body = renamed(req.body, "collMod");
    // Here first: what is wrong with it is told before anybody else has done it.
    let is_authority = ddl.is_authority(&ns).await?;
    let reply = crate::commands::coll_mod::run(server, ctx, Ddl::request("collMod", req.db, &body)).await;
    if is_authority {
        reply.as_ref().map_err(Clone::clone)?;
    }
    ddl.on_other_owners(&ns, "collMod", req.body).await?;
    // What is here comes into line when a range does.
    if is_authority { reply } else { Ok(reply.unwrap_or_else(|_| Reply::new())) }
}
