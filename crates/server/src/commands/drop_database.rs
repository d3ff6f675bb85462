//! `dropDatabase`: removes all collections of a database.

use super::prelude::*;
use pando_base::{OpTime, limits};
use pando_command::args::safe_i64;
use pando_command::concern::Provenance;
use pando_command::request::{missing, wrong_type};
use pando_command::{Node, W, WriteConcern};

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    const OWNER: &str = "dropDatabase";
    let one = match req.first().value() {
        Value::Null | Value::Undefined => return Err(missing(OWNER, OWNER)),
        v => {
            safe_i64(&v).ok_or_else(|| wrong_type(OWNER, OWNER, &v, &["long", "int", "decimal", "double"]))?
        }
    };
    req.check(OWNER, &[])?;
    ctx.arguments_read()?;
    if one != 1 {
        return Err(Error::location(5_255_100, "Have to pass 1 as 'drop' parameter"));
    }
    server.before_write(ctx).await?;
    let dropping = ctx.interruptible(server.catalog.begin_drop_database(req.db)).await??;
    let (dropped, newest) = ctx.interruptible(dropping.collections()).await??;
    if dropped == 0 {
        return Ok(Reply::new());
    }
    server.wrote(ctx, newest);
    await_drops(server, ctx, dropped, newest).await?;
    let last = dropping.finish().await?;
    server.wrote(ctx, last);
    Ok(Reply::new())
}

/// The database goes once its collections are gone on a majority, or on as many members as the client asks for.
async fn await_drops(server: &Server, ctx: &OpCtx, dropped: usize, newest: OpTime) -> Result<()> {
    if !server.repl.is_replicated() {
        return Ok(());
    }
    let asked = ctx.args.write_concern.as_ref().filter(|wc| wc.w_given && !weaker_than_majority(&wc.w));
    let mut wc = asked.cloned().unwrap_or_else(|| WriteConcern::of(W::Majority, Provenance::ClientSupplied));
    let given = ctx.args.write_concern.as_ref().map_or(0, |wc| wc.wtimeout_ms);
    wc.wtimeout_ms = if given > 0 { given } else { limits::DROP_DATABASE_WAIT_MS };
    match server.await_write_concern(ctx, &wc).await {
        None => Ok(()),
        Some(e) => Err(Error::new(
            e.code,
            format!(
                "dropDatabase {} failed waiting for {dropped} collection drop(s) (most recent drop optime: {{ ts: {}, \
                 t: {} }}) to replicate. :: caused by :: {}",
                ctx.db, newest.ts, newest.t, e.message
            ),
        )),
    }
}

fn weaker_than_majority(w: &W) -> bool {
    matches!(w, W::Nodes(0 | 1))
}
