//! `testDeprecation`, `testVersion2` and their kin (test commands): do nothing, but stand in every relation to
//! the Stable API that a command can have. The reply shows the API parameters as they were understood.

use crate::{Node, OpCtx, Reply, Request};
use pando_base::Result;

pub async fn run<S: Node>(_: &S, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::new();
    if ctx.api.v1 {
        r.body.str("apiVersion", "1");
    }
    for (name, set) in [("apiStrict", ctx.api.strict), ("apiDeprecationErrors", ctx.api.deprecation_errors)] {
        if set {
            r.body.bool(name, true);
        }
    }
    Ok(r)
}
