//! Commands of members that a router refuses, and relics.

use super::super::prelude::*;

pub(in crate::commands) async fn of_members(_: &Router, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let text = format!("{} is not supported through mongos", req.name);
    let mut r = DocBuilder::new();
    r.str("info", "mongos");
    Err(Error::new(ErrorCode::CommandNotFound, text).with_extra(r.finish().into_bytes()))
}

pub(in crate::commands) async fn last_error(_: &Router, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let text = "getLastError command is not supported";
    Err(Error::location(5_739_000, text))
}

pub(in crate::commands) async fn echo(_: &Router, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut r = Reply::new();
    r.body.elems_of(req.body);
    Ok(r)
}
