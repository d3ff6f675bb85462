//! Commands about a collection that every shard with documents of it answers for itself: `validate`, remembered plans.

use super::prelude::*;
use super::raw;
use crate::remote::call::read_preference;
use crate::remote::own_fields;
use crate::remote::stale::Tries;
use pando_metadata_cache::Target;
use pando_rpc::Retry;

pub(super) async fn validate(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns_of_ddl()?;
    let mut tries = Tries::default();
    loop {
        let route = router.catalog.route(&ns).await?;
        let body = |target: &Target| envelope::whole(ctx, &req, Kind::Plain, target);
        let preference = read_preference(req.body)?;
        match router.gather(ctx, &route.owners(), &preference, Retry::Idempotent, body).await {
            Err(e) if tries.again(router, ctx, &route, &e).await => {}
            Err(e) => return Err(e),
            Ok(replies) => {
                let valid = |r: &DocBuf| r.get("valid").is_none_or(|v| v.is_truthy());
                let mut r = Reply::new();
                r.body.bool("valid", replies.iter().all(|(_, reply)| valid(reply)));
                r.body.doc("raw", |d| {
                    for (shard, reply) in &replies {
                        let address = raw::address(router, shard);
                        d.doc(&*address, |d| own_fields(reply).for_each(|e| _ = d.elem(e)));
                    }
                });
                return Ok(r);
            }
        }
    }
}

pub(super) async fn plan_cache(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns_of_ddl()?;
    let mut tries = Tries::default();
    loop {
        let route = router.catalog.route(&ns).await?;
        let body = |target: &Target| envelope::whole(ctx, &req, Kind::Plain, target);
        let preference = read_preference(req.body)?;
        let said = router.scatter(ctx, &route.owners(), &preference, Retry::Idempotent, body).await;
        match raw::reply(router, said) {
            Err(e) if tries.again(router, ctx, &route, &e).await => {}
            done => return done,
        }
    }
}
