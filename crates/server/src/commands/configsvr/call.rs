//! What all commands of config servers have in common: who asks, what must be given, and the wait for a majority.

use super::super::prelude::*;
use crate::config_server::ConfigServer;
use pando_access::ByCtx;
use pando_command::W;
use std::sync::Arc;

/// One command on its way.
pub(super) struct Call<'a> {
    server: &'a Server,
    ctx: &'a OpCtx,
    pub(super) config_server: &'a Arc<ConfigServer>,
    pub(super) interrupt: ByCtx<'a>,
    pub(super) client: String,
}

impl<'a> Call<'a> {
    pub(super) fn new(server: &'a Server, ctx: &'a OpCtx) -> Result<Call<'a>> {
        let config_server = server.config_server.as_ref().ok_or_else(|| {
            let text = format!("{} can only be run on config servers", ctx.command);
            Error::new(ErrorCode::IllegalOperation, text)
        })?;
        let client = ctx.client.remote.clone().unwrap_or_default();
        Ok(Call { server, ctx, config_server, interrupt: ByCtx(ctx), client })
    }
    /// The sender knows that the answer is for good.
    pub(super) fn with_majority(server: &'a Server, ctx: &'a OpCtx) -> Result<Call<'a>> {
        check_majority(ctx)?;
        Call::new(server, ctx)
    }
    /// Two commands of one session that were sent for the same do not cross.
    pub(super) fn as_retryable_write(&self, code: i32) -> Result<()> {
        if self.ctx.args.is_retryable_write() {
            return Ok(());
        }
        Err(Error::location(code, format!("{} must be run as a retryable write", self.ctx.command)))
    }
    /// What the answer rests on is on a majority, whether this command has written it or has found it.
    pub(super) async fn settled(&self) -> Result<()> {
        let upto = self.server.replication.last_applied();
        self.ctx.interruptible(self.server.replication.await_majority(upto)).await??;
        self.ctx.wrote(upto);
        self.config_server.topology_changed();
        Ok(())
    }
    pub(super) async fn done(&self) -> Result<Reply> {
        self.settled().await?;
        Ok(Reply::new())
    }
}

/// 72 where the sender would not know that the answer is for good.
pub(in super::super) fn check_majority(ctx: &OpCtx) -> Result<()> {
    let given = ctx.write_concern.as_ref();
    if given.is_some_and(|wc| wc.w == W::Majority) {
        return Ok(());
    }
    let mut said = DocBuilder::new();
    match given {
        Some(wc) => wc.append_to(&mut said),
        None => drop(said.i32("w", 1).i32("wtimeout", 0).str("provenance", "implicitDefault")),
    }
    let text =
        format!("\"{}\" must be called with majority writeConcern, got: {} ", ctx.command, said.finish());
    Err(Error::new(ErrorCode::InvalidOptions, text))
}
