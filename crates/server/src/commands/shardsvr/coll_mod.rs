//! `_shardsvrCollMod`: a router's `collMod`, for the primary shard of the database; and what other shards do for it.

use super::drop_indexes::renamed;
use crate::commands::prelude::*;
use crate::commands::shardsvr::create_collection::number_of;
use crate::commands::shardsvr::ddl::Ddl;
use pando_command::generic_args::is_generic;
use pando_request::CollModArgs;
use pando_workflows::coll_mod;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    let body = renamed(req.body, "collMod");
    // What nobody would understand is refused before anything is begun.
    CollModArgs::parse(&Ddl::request("collMod", req.db, &body))?.check()?;
    server.upkeep.admission.before_write(ctx).await?;
    let mut b = DocBuilder::new();
    req.body.iter().skip(1).filter(|e| !is_generic(e.name_bytes())).for_each(|e| _ = b.elem(e));
    let ddl = Ddl::new(server, ctx)?;
    let told = ddl.coordinate(ns.as_str(), coll_mod::OPERATION, &b.finish()).await?;
    Ok(Reply::from_doc(&told))
}

/// `{_shardsvrCollModParticipant: <collection>, <arguments of collMod>, timestamp, shardVersion, writeConcern: {w: "majority"}}`
pub(in crate::commands) async fn participant(
    server: &Server,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let (ns, at) = (req.ns()?, number_of(&req)?);
    // What a shard keeps of itself and of its cluster is no part of anything; sessions lie on all shards.
    if matches!(ns.db(), "admin" | "config" | "local") && ns.as_str() != "config.system.sessions" {
        return Err(Error::new(ErrorCode::IllegalOperation, format!("Cannot modify {ns}")));
    }
    let mut b = DocBuilder::with_capacity(req.body.byte_len());
    let body = renamed(req.body, "collMod");
    body.iter().filter(|e| e.name() != "timestamp").for_each(|e| _ = b.elem(e));
    let told = Ddl::new(server, ctx)?.coll_mod_part(&ns, &b.finish(), at).await?;
    Ok(Reply::from_doc(&told))
}
