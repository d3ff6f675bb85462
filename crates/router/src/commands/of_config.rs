//! Commands that the config servers answer for the whole cluster, under the same name.

use super::prelude::*;
use pando_command::W;
use pando_routing::ShardId;
use pando_rpc::Retry;

async fn forward(router: &Router, ctx: &OpCtx, req: &Request<'_>, kind: Kind, retry: Retry) -> Result<Reply> {
    let target = pando_metadata_cache::Target::unversioned(ShardId::config());
    let body = envelope::whole(ctx, req, kind, &target);
    let answer = router.call_config(ctx, &body, retry).await?;
    Ok(handed_on(&answer.reply))
}

pub(super) async fn read(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    ctx.arguments_read()?;
    forward(router, ctx, &req, Kind::Plain, Retry::Idempotent).await
}

/// `setDefaultRWConcern`: this router's clients go by it at once, those of others within half a minute.
pub(super) async fn set_concern_defaults(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let reply = write(router, ctx, req).await?;
    router.refresh_concern_defaults().await?;
    Ok(reply)
}

/// What is not known to a majority would not be there after a failover: who asks for less gets more, and nothing else can be asked for.
pub(super) async fn write_by_majority(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    ctx.arguments_read()?;
    let given = ctx.args.write_concern.as_ref();
    if let Some(wc) = given.filter(|wc| wc.w_given && !matches!(wc.w, W::Nodes(1) | W::Majority)) {
        let mut shown = DocBuilder::new();
        wc.append_to(&mut shown);
        let text = format!(
            "Invalid replication write concern. User management write commands may only use w:1 or w:majority, got: {}",
            shown.finish()
        );
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    let target = pando_metadata_cache::Target::unversioned(ShardId::config());
    let mut b = DocBuilder::with_capacity(req.body.byte_len() + 256);
    envelope::own_arguments(&mut b, &req);
    b.doc("writeConcern", |d| {
        _ = d.str("w", "majority").i64("wtimeout", given.map_or(0, |wc| wc.wtimeout_ms))
    });
    envelope::append(&mut b, ctx, &req, Kind::Plain, &target);
    let answer = router.call_config(ctx, &b.finish(), Retry::NotIdempotent).await?;
    Ok(handed_on(&answer.reply))
}

pub(super) async fn write(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    ctx.arguments_read()?;
    forward(router, ctx, &req, Kind::Write, Retry::NotIdempotent).await
}

/// Of what the config servers go on with by themselves: whoever asks again joins it.
pub(super) async fn write_again(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    ctx.arguments_read()?;
    forward(router, ctx, &req, Kind::Write, Retry::Idempotent).await
}
