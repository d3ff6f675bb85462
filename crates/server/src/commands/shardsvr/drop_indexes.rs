//! `_shardsvrDropIndexes`: a router's `dropIndexes`, for the primary shard of the database, which has every shard do it that owns a part.

use crate::commands::prelude::*;
use crate::commands::shardsvr::ddl::Ddl;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    let ddl = Ddl::new(server, ctx)?;
    let _locks = ddl.lock_collection(&ns).await?;
    let body = renamed(req.body, "dropIndexes");
    let is_authority = ddl.is_authority(&ns).await?;
    if is_authority {
        crate::commands::drop_indexes::check(server, ctx, Ddl::request("dropIndexes", req.db, &body)).await?;
    }
    let others = ddl.on_other_owners(&ns, "dropIndexes", req.body).await?;
    let here =
        crate::commands::drop_indexes::run(server, ctx, Ddl::request("dropIndexes", req.db, &body)).await;
    match others.into_iter().next() {
        // What is here comes into line when a range does.
        Some((_, reply)) if !is_authority => {
            let mut r = Reply::new();
            reply.get("nIndexesWas").iter().for_each(|n| _ = r.body.value("nIndexesWas", *n));
            Ok(r)
        }
        _ => here,
    }
}

/// The same command under the name that it has everywhere.
pub(super) fn renamed(body: &RawDoc, name: &str) -> DocBuf {
    let mut b = DocBuilder::with_capacity(body.byte_len());
    for (i, e) in body.iter().enumerate() {
        match i {
            0 => _ = b.value(name, e.value()),
            _ => _ = b.elem(e),
        }
    }
    b.finish()
}
