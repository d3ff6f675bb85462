//! `replSetRequestVotes`: a candidate asks for this member's vote (R-ELEC-6, R-ELEC-7). The answer comes when the vote
//! is on disk.

use super::prelude::*;
use pando_repl::Said;
use pando_repl::coordinator::wire;
use pando_repl::topology::Event;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    server.replication.admit_member(ctx, "replSetRequestVotes", None).await?;
    let request = wire::parse_vote_request(req.body)?;
    let coordinator = server.replication.coordinator()?;
    let said = ctx.interruptible(coordinator.ask(|token| Event::VoteRequested { token, request })).await?;
    match said {
        Said::Vote(reply) => {
            let mut r = Reply::new();
            wire::append_vote_reply(&mut r.body, &reply?);
            Ok(r)
        }
        other => other.waited().map(|()| Reply::new()),
    }
}
