//! `setFeatureCompatibilityVersion`: which release's features may be used. All versions in reach keep the same form of
//! data here, so nothing has to be converted between the phases (see [`crate::settings::feature_version`]). Sent to config servers it is that of
//! their whole cluster; a shard is told by them how far to go.

use super::configsvr;
use super::prelude::*;
use super::shardsvr::ddl::Ddl;
use crate::settings::feature_version::{Reach, known};
use crate::settings::versions_ns;
use pando_command::concern::Provenance;
use pando_command::roles::{ClusterRole, Roles};
use pando_command::{Node, W, WriteConcern};
use pando_request::SetFeatureVersionArgs;
use pando_workflows::feature_version;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    const OWNER: &str = "setFeatureCompatibilityVersion";
    // Nothing on disk differs between the versions, so there is nothing to be downgraded there.
    let args = SetFeatureVersionArgs::parse(&req)?;
    // Config servers have asked whoever asked them; those of 6.0 do not know the word.
    let confirmed = args.confirm == Some(true) || args.from_config_server == Some(true);
    let wanted = req.first_str(OWNER)?;
    let Some(wanted) = known(wanted) else {
        return Err(Error::location(
            4_926_900,
            format!(
                "Invalid feature compatibility version value '{wanted}'; expected '6.0' or '6.3' or '7.0'. See \
                 https://docs.mongodb.com/master/release-notes/6.0-compatibility/#feature-compatibility."
            ),
        ));
    };
    let now = server.settings.feature_version();
    if !confirmed {
        return Err(Error::location(7_369_100, unconfirmed(wanted, now.goes_up(wanted))));
    }
    match (server.config.cluster_role, args.phase) {
        (Some(ClusterRole::Shard), Some(phase)) => {
            let at = args.change_timestamp.ok_or_else(no_number)?;
            let ddl = Ddl::new(server, ctx)?;
            server.upkeep.admission.before_write(ctx).await?;
            let _part = ddl.take_part(&versions_ns(), Some(at), true).await?;
            advance(server, ctx, wanted, Reach::of_phase(phase)).await
        }
        // As a shard: what the config servers do themselves when all shards have done it is theirs.
        (Some(ClusterRole::Config), Some(_)) if server.roles().any(Roles::S) => {
            ctx.wrote(server.replication.last_applied());
            Ok(Reply::new())
        }
        (_, Some(_)) => {
            let text = "'phase' field is only valid to be specified on shards";
            Err(Error::location(5_563_600, text))
        }
        (Some(ClusterRole::Config), None) if server.replication.member.is_replicated() => {
            of_cluster(server, ctx, wanted).await
        }
        _ => advance(server, ctx, wanted, Reach::End).await,
    }
}

fn no_number() -> Error {
    let text = "The 'changeTimestamp' field is missing even though the node is running as a shard. This may indicate that the \
                'setFeatureCompatibilityVersion' command was invoked directly against the shard or that the config server has \
                not been upgraded to at least version 5.0.";
    Error::location(5_563_500, text)
}

/// The config servers have all shards do it, phase by phase.
async fn of_cluster(server: &Server, ctx: &OpCtx, wanted: &'static str) -> Result<Reply> {
    // What cannot be is begun nowhere.
    if server.settings.feature_version().next(wanted, Reach::End)?.is_none() {
        ctx.wrote(server.replication.last_applied());
        return Ok(Reply::new());
    }
    server.upkeep.admission.before_write(ctx).await?;
    configsvr::coordinate(server, ctx, &feature_version::begin(wanted)).await?;
    ctx.wrote(server.replication.last_applied());
    Ok(Reply::new())
}

/// One at a time; who comes second sees what the first one left. Each phase holds here when it is written down, and the next one begins when a
/// majority has it.
async fn advance(server: &Server, ctx: &OpCtx, wanted: &'static str, reach: Reach) -> Result<Reply> {
    let lock = server.settings.feature_version_lock.exclusive(&ctx.env().clock);
    let _one = ctx.interruptible(lock).await?;
    loop {
        server.upkeep.admission.before_write(ctx).await?;
        let Some(at) = server.settings.advance_feature_version(wanted, reach).await? else { break };
        ctx.wrote(at);
        if !server.replication.member.is_replicated() {
            continue;
        }
        let majority = WriteConcern::of(W::Majority, Provenance::ClientSupplied);
        if let Some(e) = server.await_write_concern(ctx, &majority).await {
            return Err(Error::new(e.code, e.message));
        }
    }
    // Also where it was so: it is to be on a majority.
    if server.replication.member.is_replicated() && reach == Reach::Start {
        ctx.wrote(server.replication.last_applied());
    }
    Ok(Reply::new())
}

fn unconfirmed(wanted: &str, upgrade: bool) -> String {
    match upgrade {
        true => format!(
            "Once you have upgraded to {wanted}, you will not be able to downgrade FCV and binary version without \
             support assistance. Please re-run this command with 'confirm: true' to acknowledge this and continue \
             with the FCV upgrade."
        ),
        false => "Once you have downgraded the FCV, if you choose to downgrade the binary version, it will require \
                  support assistance. Please re-run this command with 'confirm: true' to acknowledge this and \
                  continue with the FCV downgrade."
            .to_owned(),
    }
}
