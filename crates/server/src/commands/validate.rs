//! `validate`: are a collection and its indexes what they claim to be?

use super::prelude::*;
use pando_access::Extent;
use pando_base::Term;
use pando_request::ValidateArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns_of_ddl()?;
    let args = ValidateArgs::parse(&req)?;
    args.check(server.replication.member.is_replicated())?;
    let how = match (args.metadata, args.background) {
        (Some(true), _) => Extent::Definitions,
        (_, Some(true)) => Extent::At(server.storage.log().visible()),
        _ if args.counted == Some(true) => Extent::Counted,
        _ => Extent::Latest,
    };
    let office = takes_writes(server);
    let report = server.access.validate(ctx, &ns, how).await?;
    // Where entries of another member were applied meanwhile the two counts are not of one moment.
    if how == Extent::Latest && office.is_some() && takes_writes(server) == office {
        server.upkeep.maintenance.mend_count(&report);
    }
    let mut r = Reply::with_capacity(1024);
    report.append_to(&mut r.body, &ns);
    Ok(r)
}

/// Since when this node takes writes itself, if it does.
fn takes_writes(server: &Server) -> Option<Term> {
    server.replication.member.accepts_writes().then(|| server.replication.member.term())
}
