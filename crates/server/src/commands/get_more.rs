//! `getMore`: the next batch of a parked cursor.

use super::prelude::*;
use crate::cursors::batch::Batch;
use crate::cursors::parked::{More, ParkedCursor, Until};
use pando_base::OpTime;
use pando_command::{Next, fail_get_more};
use pando_repl::data::metadata::append_op_time;
use pando_request::GetMoreArgs;
use pando_session::{Pinned, rights};
use std::time::Duration;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = GetMoreArgs::parse(&req)?;
    let max_time_ms = ctx.max_time_ms.filter(|ms| *ms > 0);
    ctx.arguments_read()?;
    server.instance.metrics.op_counters.getmore.inc();
    let ns = Namespace::unchecked(req.db, args.coll);
    rights::check_reader(&server.crud.cursors.open, ctx, args.id)?;
    let txn_number = ctx.txn_number.filter(|_| ctx.in_txn());
    let mut pin = server.crud.cursors.open.pin(args.id, &ns, ctx.lsid.as_ref(), txn_number, ctx.op_id)?;
    let asked = (args.id, pin.info.asked.as_ref());
    if let Err(e) = rights::check_still_allowed(&server.registry, server, ctx, asked) {
        pin.park(ctx.env().clock.mono());
        return Err(e);
    }
    if pin.body().is_change_stream() {
        ctx.set_change_stream();
    }
    if let Some(wanted) = fail_get_more::after_checkout(ctx) {
        return Err(wanted);
    }
    if ctx.max_time_ms.is_some() && !pin.info.await_data {
        // A refused option leaves the cursor as it was.
        pin.park(ctx.env().clock.mono());
        return Err(Error::bad_value("cannot set maxTimeMS on getMore command for a non-awaitData cursor"));
    }
    if let Some(left) = pin.info.time_left.filter(|_| !pin.info.await_data) {
        ctx.limit_to(ctx.started + left);
        ctx.check_interrupt()?;
    }
    if let Some(scripts) = pin.body().scripts() {
        scripts.follow(crate::read::scripts::operation(ctx));
    }
    let mut r = next_batch(server, ctx, &args, max_time_ms, pin).await?;
    if req.exhaust_allowed && r.1 != 0 {
        r.0.next = Some(match args.known_committed {
            // The next wait must not end for the commit point that this reply tells.
            Some(_) => Next::With(with_committed(&req, server.replication.positions().committed)),
            None => Next::Again,
        });
    }
    Ok(r.0)
}

/// Fill, then park or end. The second value is the cursor's id, 0 when it is over.
async fn next_batch(
    server: &Server,
    ctx: &OpCtx,
    args: &GetMoreArgs<'_>,
    max_time_ms: Option<i64>,
    mut pin: Pinned<'_, Box<dyn ParkedCursor>>,
) -> Result<(Reply, i64)> {
    let mut r = Reply::with_capacity(4096);
    // A batch size of 0 means no limit here.
    let docs_max = args.batch_size.filter(|n| *n > 0).unwrap_or(u64::MAX);
    let mut batch = Batch::begin(&mut r.body, "nextBatch", docs_max);
    let mut more = pin.body().next_batch(&server.crud.reads, ctx, &mut batch).await?;
    if batch.len() == 0 && pin.info.await_data && more == More::Yes {
        let wait = Duration::from_millis(max_time_ms.unwrap_or(pando_base::limits::AWAIT_DATA_MS) as u64);
        let until = Until { deadline: ctx.started + wait, committed_after: args.known_committed };
        more = pin.body().await_batch(&server.crud.reads, ctx, &mut batch, until).await?;
    }
    let (token, invalidated) = (pin.body().resume_token(), pin.body().is_invalidated());
    batch.tell_resume_token(token);
    let docs = batch.len();
    pin.info.batches += 1;
    pin.info.docs += docs;
    pin.info.time_left = ctx
        .deadline()
        .filter(|_| pin.info.time_left.is_some())
        .map(|d| d.saturating_sub(ctx.env().clock.mono()));
    let (id, ns) = (pin.id, pin.info.ns.clone());
    let now = ctx.env().clock.mono();
    let (summary, command) = (pin.info.plan_summary.clone(), pin.info.command.clone());
    match more {
        More::Yes => {
            pin.info.held_bytes = pin.body().held_bytes();
            pin.park(now);
        }
        More::No => pin.end(now),
    }
    let id = told_id(more, id);
    batch.end(id, ns.as_str(), |c| {
        if invalidated {
            c.bool("invalidated", true);
        }
    });
    server.instance.metrics.documents.returned.add(docs);
    server.statistics.time(&ns, crate::statistics::top::Kind::GetMore, false, ctx.elapsed());
    ctx.debug(|d| {
        d.op = "getmore";
        d.ns = ns.to_string();
        d.plan_summary = summary;
        d.n_returned = Some(docs);
        d.cursor_id = Some(args.id);
        d.cursor_exhausted = id == 0;
        d.originating_command = Some(command.as_bytes().to_vec());
    });
    Ok((r, id))
}

/// Only a cursor that has come to its end is over for the client. One that was killed in the middle of this batch is told of
/// when the client asks again: an id of 0 would pass what it has for everything.
fn told_id(more: More, id: i64) -> i64 {
    match more {
        More::Yes => id,
        More::No => 0,
    }
}

/// The request again, with what its sender knows of the commit point by then.
fn with_committed(req: &Request<'_>, committed: OpTime) -> DocBuf {
    let mut b = DocBuilder::with_capacity(req.body.byte_len() + 16);
    for e in req.body {
        match e.name() {
            name @ "lastKnownCommittedOpTime" => append_op_time(&mut b, name, committed),
            _ => {
                b.elem(e);
            }
        }
    }
    b.finish()
}
