//! `whatsmysni`: the TLS server name the client asked for.

use crate::{Node, OpCtx, Reply, Request};
use pando_base::Result;

pub async fn run<S: Node>(_: &S, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::new();
    match ctx.client.secured().and_then(|s| s.server_name.as_deref()) {
        Some(name) => r.body.str("sni", name),
        None => r.body.bool("sni", false),
    };
    Ok(r)
}
