//! `getMore`: the next batch of a cursor.

use super::prelude::*;
use crate::cursors::Wanted;
use crate::cursors::reply::append_batch;
use pando_command::fail_get_more;
use pando_request::GetMoreArgs;
use pando_session::rights;

pub(super) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = GetMoreArgs::parse(&req)?;
    ctx.arguments_read()?;
    router.instance.metrics.op_counters.getmore.inc();
    let ns = Namespace::unchecked(req.db, args.coll);
    rights::check_reader(&router.cursors, ctx, args.id)?;
    let txn_number = ctx.txn_number.filter(|_| ctx.in_txn());
    let mut pin = router.cursors.pin(args.id, &ns, ctx.lsid.as_ref(), txn_number, ctx.op_id)?;
    let asked = (args.id, pin.info.asked.as_ref());
    if let Err(e) = rights::check_still_allowed(&router.registry, router, ctx, asked) {
        pin.park(ctx.env().clock.mono());
        return Err(e);
    }
    if pin.body().is_change_stream() {
        ctx.set_change_stream();
    }
    if let Some(wanted) = fail_get_more::after_checkout(ctx) {
        return Err(wanted);
    }
    let max_time_ms = ctx.max_time_ms.filter(|ms| *ms > 0);
    if ctx.max_time_ms.is_some() && !pin.info.await_data {
        pin.park(ctx.env().clock.mono());
        return Err(Error::bad_value("cannot set maxTimeMS on getMore command for a non-awaitData cursor"));
    }
    if let Some(left) = pin.info.time_left.filter(|_| !pin.info.await_data) {
        ctx.limit_to(ctx.started + left);
        ctx.check_interrupt()?;
    }
    let batch_size = args.batch_size.filter(|n| *n > 0);
    let docs_max = batch_size.unwrap_or(u64::MAX);
    let wanted = Wanted { docs_max, batch_size, wait_ms: max_time_ms, asks_nobody: false };
    let docs = pin.body().fill(router, ctx, wanted).await?;
    let resume = pin.body().resume_token().cloned();
    let invalidated = pin.body().is_invalidated();
    let n = docs.len() as u64;
    pin.info.batches += 1;
    pin.info.docs += n;
    pin.info.time_left = ctx
        .deadline()
        .filter(|_| pin.info.time_left.is_some())
        .map(|d| d.saturating_sub(ctx.env().clock.mono()));
    let now = ctx.env().clock.mono();
    let over = pin.body().is_over();
    match over {
        true => pin.end(now),
        false => {
            pin.info.held_bytes = pin.body().held_bytes();
            pin.park(now);
        }
    }
    let id = if over { 0 } else { args.id };
    let mut r = Reply::with_capacity(docs.iter().map(|d| d.byte_len() + 16).sum());
    append_batch(&mut r.body, "nextBatch", &docs, resume.as_ref(), id, ns.as_str(), |c| {
        if invalidated {
            c.bool("invalidated", true);
        }
    });
    router.instance.metrics.documents.returned.add(n);
    ctx.debug(|d| {
        d.op = "getmore";
        d.ns = ns.to_string();
        d.n_returned = Some(n);
        d.cursor_id = Some(args.id);
        d.cursor_exhausted = over;
    });
    Ok(r)
}
