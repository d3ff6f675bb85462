//! `_configsvrBalancerStatus`: whether the balancer may work, and what it does (SH-BAL-2).

use super::prelude::*;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let call = Call::new(server, ctx)?;
    let mode = call.config_server.manager.balancer_mode()?;
    let mut r = Reply::new();
    // There are no rounds yet.
    r.body.str("mode", mode).bool("inBalancerRound", false).i64("numBalancerRounds", 0);
    r.body.i64("term", server.replication.member.term());
    Ok(r)
}
