//! `mapReduce`: of a collection that is not sharded, by the primary shard. Its functions do not run here, so nothing merges what
//! several shards would give.

use super::prelude::*;
use crate::remote::stale::Tries;
use pando_request::MapReduceArgs;
use pando_rpc::Retry;

pub(super) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    MapReduceArgs::parse(&req)?;
    ctx.arguments_read()?;
    let mut tries = Tries::default();
    loop {
        let route = router.catalog.route(&ns).await?;
        if route.is_sharded() {
            let text = "mapReduce of a sharded collection is not supported by this router";
            return Err(Error::new(ErrorCode::CommandNotSupported, text));
        }
        // What is told writes nothing.
        let told = req.body.get_path("out.inline").is_some();
        let kind = if told { Kind::Plain } else { Kind::Write };
        let body = envelope::whole(ctx, &req, kind, &route.primary());
        let done = router.call_primary(ctx, &route.db.primary, &body, Retry::Never).await;
        match done.map_err(Error::from) {
            Err(e) if tries.again(router, ctx, &route, &e).await => {}
            done => return done.map(|answer| handed_on(&answer.reply)),
        }
    }
}
