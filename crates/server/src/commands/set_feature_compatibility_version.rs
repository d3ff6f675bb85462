//! `setFeatureCompatibilityVersion`: which release's features may be used. All versions in reach keep the same form of
//! data here, so nothing has to be converted between the phases (see [`crate::settings::feature_version`]).

use super::prelude::*;
use crate::settings::feature_version::{FeatureVersion, known};
use pando_command::concern::Provenance;
use pando_command::{Node, W, WriteConcern};
use pando_request::SetFeatureVersionArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    const OWNER: &str = "setFeatureCompatibilityVersion";
    // Nothing on disk differs between the versions, so there is nothing to be downgraded there.
    let confirmed = SetFeatureVersionArgs::parse(&req)?.confirm == Some(true);
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
    // One at a time; who comes second sees what the first one left.
    let _one = ctx.interruptible(server.settings.feature_version_lock.exclusive(&ctx.env().clock)).await?;
    let now = server.settings.feature_version();
    let upgrade = wanted > now.version || (now.target.is_some() && now.previous.is_none());
    if !confirmed {
        return Err(Error::location(7_369_100, unconfirmed(wanted, upgrade)));
    }
    if now.is(wanted) {
        return Ok(Reply::new());
    }
    for step in now.way_to(wanted)? {
        if step.target.is_none() || step.cleaning {
            fail_if_told(server, ctx, upgrade)?;
        }
        enter(server, ctx, step).await?;
    }
    Ok(Reply::new())
}

/// Writes a phase down, from which it holds here, and waits until a majority has it.
async fn enter(server: &Server, ctx: &OpCtx, step: FeatureVersion) -> Result<()> {
    server.upkeep.admission.before_write(ctx).await?;
    server.settings.put(ctx, &crate::settings::versions_ns(), &step.to_doc()).await?;
    ctx.env().log.info(pando_env::Component::Command, 5_853_300, "setFCV progress", |a| {
        a.show("featureCompatibilityVersion", step);
    });
    if !server.replication.member.is_replicated() {
        return Ok(());
    }
    let majority = WriteConcern::of(W::Majority, Provenance::ClientSupplied);
    match server.await_write_concern(ctx, &majority).await {
        None => Ok(()),
        Some(e) => Err(Error::new(e.code, e.message)),
    }
}

/// Fail points between the first phase and the last.
fn fail_if_told(server: &Server, ctx: &OpCtx, upgrade: bool) -> Result<()> {
    let (name, code, what) = match upgrade {
        true => ("failUpgrading", 549_180, "upgrade"),
        false => ("failDowngrading", 549_181, "downgrade"),
    };
    match server.instance.fail_points.find(name)?.check(&*ctx.env().rng, |_| true) {
        Some(_) => Err(Error::location(code, format!("Failing {what} due to '{name}' failpoint set"))),
        None => Ok(()),
    }
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
