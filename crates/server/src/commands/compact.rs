//! `compact`: rewrites the tables without what nobody can ask for any more. All collections share the tables, so
//! one collection's compaction is everybody's.

use super::prelude::*;
use pando_access::Named;
use pando_request::CompactArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns_of_ddl()?;
    let forced = CompactArgs::parse(&req)?.force == Some(true);
    if server.replication.member.is_replicated() && server.replication.member.is_primary() && !forced {
        return Err(Error::uncoded(
            "will not run compact on an active replica set primary as this is a slow blocking operation. use \
             force:true to force",
        ));
    }
    if ns.coll().starts_with("system.") {
        return Err(Error::uncoded("can't compact a system namespace"));
    }
    match server.access.definitions().named(&ns) {
        Some(Named::Collection(_)) => {}
        Some(Named::View(_)) => {
            return Err(Error::new(ErrorCode::CommandNotSupportedOnView, "can't compact a view"));
        }
        None => return Err(Error::new(ErrorCode::NamespaceNotFound, "collection does not exist")),
    }
    // What is still in memory has no table to be thrown out of.
    server.upkeep.checkpoints.take_now(ctx).await?;
    let storage = server.storage.clone();
    let before = table_bytes(server);
    let done = server.instance.env.offload(move || storage.compact_all()).await;
    done.unwrap_or_else(|| Err(Error::internal("the compaction failed")))?;
    let mut r = Reply::new();
    crate::statistics::sizes::int(&mut r.body, "bytesFreed", before.saturating_sub(table_bytes(server)));
    Ok(r)
}

fn table_bytes(server: &Server) -> u64 {
    let s = server.storage.stats();
    s.records.bytes + s.indexes.bytes + s.history.bytes
}
