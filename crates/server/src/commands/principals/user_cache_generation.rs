//! `_getUserCacheGeneration`: how this config server calls the state of its users and roles. Routers ask again and again, and read anew
//! what they know of users when the answer is another one; that of another process always is.

use crate::commands::prelude::*;

pub(in crate::commands) async fn run(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.check("_getUserCacheGeneration", &[])?;
    let process = server.replication.member.topology_version().process_id;
    let mut r = Reply::new();
    r.body.object_id("cacheGeneration", server.principals.generation(process));
    Ok(r)
}
