//! Commands that the config servers carry out under a name of their own.

use super::super::prelude::*;
use crate::remote::envelope::append_majority;
use pando_request::SetClusterParameterArgs;
use pando_request::settings::cluster_parameters::parameter_to_set;
use pando_rpc::Retry;

/// The client's command, as the config servers know it; waits for a majority.
pub(in crate::commands) async fn run(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    name: &str,
) -> Result<DocBuf> {
    let mut b = DocBuilder::with_capacity(req.body.byte_len() + 128);
    envelope::renamed(&mut b, req, name);
    send(router, ctx, b, Retry::Idempotent).await
}

/// The rest of such a command, and its reply.
pub(in crate::commands) async fn send(
    router: &Router,
    ctx: &OpCtx,
    mut b: DocBuilder,
    retry: Retry,
) -> Result<DocBuf> {
    append_majority(&mut b);
    b.str("$db", "admin");
    Ok(router.call_config(ctx, &b.finish(), retry).await?.reply)
}

macro_rules! forwarded {
    ($($(#[$about:meta])* $function:ident as $name:literal;)*) => {$(
        $(#[$about])*
        pub(in crate::commands) async fn $function(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
            let reply = run(router, ctx, &req, $name).await?;
            Ok(handed_on(&reply))
        }
    )*};
}

forwarded! {
    add_shard_to_zone as "_configsvrAddShardToZone";
    remove_shard_from_zone as "_configsvrRemoveShardFromZone";
    update_zone_key_range as "_configsvrUpdateZoneKeyRange";
}

/// Every member of the cluster has it when this returns.
pub(in crate::commands) async fn set_cluster_parameter(
    router: &Router,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    SetClusterParameterArgs::parse(&req)?;
    parameter_to_set(&req)?;
    ctx.arguments_read()?;
    let reply = run(router, ctx, &req, "_configsvrSetClusterParameter").await?;
    Ok(handed_on(&reply))
}

/// Commands that wait by themselves, and take no write concern.
async fn ask(router: &Router, ctx: &OpCtx, req: &Request<'_>, name: &str) -> Result<Reply> {
    let mut b = DocBuilder::with_capacity(req.body.byte_len() + 64);
    envelope::renamed(&mut b, req, name);
    b.str("$db", "admin");
    let reply = router.call_config(ctx, &b.finish(), Retry::Idempotent).await?.reply;
    Ok(handed_on(&reply))
}

macro_rules! asked {
    ($($function:ident as $name:literal;)*) => {$(
        pub(in crate::commands) async fn $function(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
            ask(router, ctx, &req, $name).await
        }
    )*};
}

asked! {
    configure_collection_balancing as "_configsvrConfigureCollectionBalancing";
    balancer_start as "_configsvrBalancerStart";
    balancer_stop as "_configsvrBalancerStop";
    balancer_status as "_configsvrBalancerStatus";
    balancer_collection_status as "_configsvrBalancerCollectionStatus";
}
