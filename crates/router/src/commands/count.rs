//! `count`: the sum of what shards count.

use super::prelude::*;
use crate::remote::call::read_preference;
use crate::remote::stale::Tries;
use pando_metadata_cache::{Route, Target};
use pando_request::CountArgs;
use pando_rpc::Retry;

pub(super) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns_of_ddl()?;
    let args = CountArgs::parse(&req)?;
    let mut tries = Tries::default();
    loop {
        let Some(route) = router.catalog.route_if_any(&ns).await? else { return Ok(counted(0)) };
        match attempt(router, ctx, &req, &route, &args).await {
            Err(e) if tries.again(router, ctx, &route, &e).await => {}
            Err(e) if e.code == ErrorCode::CommandOnShardedViewNotSupportedOnMongod => {
                return super::views::count(router, ctx, &req, &args, &e).await;
            }
            done => return done.map(counted),
        }
    }
}

fn counted(n: i64) -> Reply {
    let mut r = Reply::new();
    r.body.i32_or_i64("n", n);
    r
}

async fn attempt(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    route: &Route,
    args: &CountArgs<'_>,
) -> Result<i64> {
    let find = &args.find;
    let matcher = router.condition(ctx, route.table.as_deref(), find.filter, find.collation, None);
    let targets = route.concerned(matcher.as_ref());
    let several = targets.len() > 1;
    let mut told = args.clone();
    if several {
        told.find.limit = find.limit.map(|n| n.saturating_add(find.skip));
        told.find.skip = 0;
    }
    let body = |target: &Target| {
        let mut b = DocBuilder::with_capacity(req.body.byte_len() + 256);
        b.elem(req.first());
        told.spell(&mut b);
        envelope::append(&mut b, ctx, req, Kind::Read, target);
        b.finish()
    };
    let replies = router.gather(ctx, &targets, &read_preference(req.body)?, Retry::Idempotent, body).await?;
    let n = |reply: &DocBuf| reply.get("n").and_then(|v| v.as_i64()).unwrap_or(0);
    let sum: i64 = replies.iter().map(|(_, reply)| n(reply)).sum();
    Ok(if several { cut(sum, find.skip, find.limit) } else { sum })
}

/// What is left of so many documents behind `skip` and `limit`.
fn cut(n: i64, skip: u64, limit: Option<u64>) -> i64 {
    let left = n.saturating_sub(i64::try_from(skip).unwrap_or(i64::MAX)).max(0);
    left.min(limit.and_then(|l| i64::try_from(l).ok()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_and_limit_are_of_the_whole() {
        assert_eq!((cut(10, 3, None), cut(10, 3, Some(4)), cut(2, 3, Some(4))), (7, 4, 0));
    }
}
