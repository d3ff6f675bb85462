//! `currentOp`: what is running, as one reply (the `$currentOp` stage tells the same).

use super::prelude::*;
use crate::statistics::operations::Want;
use pando_request::CurrentOpArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = CurrentOpArgs::parse(&req)?;
    let all = args.all == Some(true);
    let filter = args.filter();
    let matcher = pando_query::matcher::Matcher::parse(&filter, &pando_query::QueryCtx::default())?;
    let owner = ctx.owner().filter(|_| args.own_ops == Some(true));
    let want = Want { idle_connections: all, owner, ..Want::default() };
    let rows = server.statistics.operations.rows(ctx, want);
    let mut shown = Vec::with_capacity(rows.len());
    for row in &rows {
        if matcher.matches(row)? {
            shown.push(row);
        }
    }
    let mut r = Reply::with_capacity(8192);
    r.body.array("inprog", |a| {
        for row in &shown {
            a.raw_doc(row);
        }
    });
    if server.upkeep.admission.fsync_lock.is_locked() {
        r.body.bool("fsyncLock", true);
        r.body.str("info", "use db.fsyncUnlock() to terminate the fsync write/snapshot lock");
    }
    Ok(r)
}
