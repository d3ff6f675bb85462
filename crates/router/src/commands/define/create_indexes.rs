//! `createIndexes`: on every shard that has documents of the collection.

use super::super::prelude::*;
use super::super::raw;
use crate::remote::stale::Tries;
use pando_monitor::ReadPreference;
use pando_request::CreateIndexesArgs;
use pando_rpc::Retry;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    CreateIndexesArgs::parse(&req)?;
    ctx.arguments_read()?;
    let mut tries = Tries::default();
    loop {
        let route = router.route_for_write(ctx, &ns).await?;
        let body = |target: &pando_metadata_cache::Target| envelope::whole(ctx, &req, Kind::Write, target);
        let primary = ReadPreference::default();
        let said = router.scatter(ctx, &route.owners(), &primary, Retry::Idempotent, body).await;
        match raw::reply(router, said) {
            Err(e) if tries.again(router, ctx, &route, &e).await => {}
            done => return done,
        }
    }
}
