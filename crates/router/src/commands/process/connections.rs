//! `connPoolStats` and `connPoolSync`: connections to shards and config servers.

use super::super::prelude::*;

pub(in crate::commands) async fn stats(router: &Router, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let all = router.fleet.pool.connections();
    let mut r = Reply::new();
    let sum = |of: fn(&pando_rpc::HostConnections) -> usize| all.iter().map(|(_, h)| of(h)).sum::<usize>();
    r.body.i64("totalInUse", sum(|h| h.in_use) as i64).i64("totalAvailable", sum(|h| h.available) as i64);
    r.body.doc("hosts", |d| {
        for (host, now) in &all {
            d.doc(&**host, |d| _ = d.i64("inUse", now.in_use as i64).i64("available", now.available as i64));
        }
    });
    Ok(r)
}

pub(in crate::commands) async fn sync(router: &Router, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    router.fleet.pool.forget_all();
    Ok(Reply::new())
}
