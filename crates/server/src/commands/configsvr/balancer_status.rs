//! `_configsvrBalancerStatus`: whether the balancer may work, and what it does (SH-BAL-2).

use super::prelude::*;
use std::sync::atomic::Ordering::Relaxed;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let call = Call::new(server, ctx)?;
    let mode = call.config_server.manager.balancer_mode()?;
    let mut r = Reply::new();
    let rounds = &call.config_server.rounds;
    r.body.str("mode", mode).bool("inBalancerRound", rounds.in_round.load(Relaxed));
    r.body.i64("numBalancerRounds", rounds.done.load(Relaxed));
    r.body.i64("term", server.replication.member.term());
    Ok(r)
}
