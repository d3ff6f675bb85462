//! A command whose work a coordinator of the config servers does, whoever waits for it.

use super::super::prelude::*;
use pando_workflows::configsvr;

/// Begins it, or joins the one that runs for the same; returns when it is over.
///
/// # Errors
/// 117 where one of its kind runs for something else.
pub(in super::super) async fn coordinate(server: &Server, ctx: &OpCtx, state: &RawDoc) -> Result<()> {
    let services = server.replication.services();
    let host = &services.ok_or_else(|| Error::internal("services have not started"))?.host;
    let instance =
        ctx.interruptible(host.start(configsvr::NAME, state)).await?.map_err(|e| match e.code {
            ErrorCode::ConflictingOperationInProgress => {
                let text = "Another ConfigsvrCoordinator with different arguments is already running";
                Error::new(e.code, text)
            }
            _ => e,
        })?;
    ctx.interruptible(instance.result()).await?.map(drop)
}
