//! `replSetReconfig`: a new configuration for a running set (R-CONF-5..8).

use super::prelude::*;
use pando_audit::Event as AuditEvent;
use pando_repl::ReplSetConfig;
use pando_repl::topology::Event;
use std::sync::Arc;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let present = server.replication.member.require_config()?;
    let Value::Document(d) = req.first().value() else {
        return Err(Error::uncoded("no configuration specified"));
    };
    let force = req.body.get("force").is_some_and(|v| v.is_truthy());
    let next = ReplSetConfig::parse(d).map_err(|mut e| {
        // A number of members is no mistake of form.
        if e.message.starts_with("Replica set configuration contains") {
            e.code = ErrorCode::NewReplicaSetConfigurationIncompatible;
        }
        e
    })?;
    if next.members.iter().any(|m| m.newly_added) {
        return Err(Error::new(
            ErrorCode::InvalidReplicaSetConfig,
            "Cannot provide newlyAdded field to member config during reconfig.",
        ));
    }
    let formula = ReplSetConfig::implicit_write_concern_is_majority;
    if server.settings.rw_defaults.get().write.is_none() && formula(&present) != formula(&next) {
        return Err(Error::new(
            ErrorCode::NewReplicaSetConfigurationIncompatible,
            "Reconfig attempted to install a config that would change the implicit default write concern. Use the \
             setDefaultRWConcern command to set a cluster-wide write concern and try the reconfig again.",
        ));
    }
    if let Some(tenants) = server.tenants.as_ref().filter(|_| !force) {
        tenants.check_may_reconfigure()?;
    }
    let own = server.replication.own_members(&next).await;
    check_one_of_them(&next, &own)?;
    let self_index = own.first().copied();
    // A forced version leaps ahead, so that two forced ones on two sides of a partition differ.
    let bump = if force { 10_000 + (ctx.env().rng.next_u64() % 100_000) as i64 } else { 0 };
    let config = Arc::new(next);
    let asked = server.replication.coordinator()?.command(|token| Event::Reconfig {
        token,
        config,
        self_index,
        force,
        bump,
    });
    ctx.interruptible(asked).await??;
    if ctx.instance().audit().is_some() {
        let now = server.replication.member.require_config()?;
        ctx.client.audit(|| AuditEvent::repl_set_reconfig(&present.to_doc(), &now.to_doc()));
    }
    Ok(Reply::new())
}

/// One process cannot be two members.
pub(super) fn check_one_of_them(config: &ReplSetConfig, own: &[usize]) -> Result<()> {
    let [a, b, ..] = *own else { return Ok(()) };
    Err(Error::new(
        ErrorCode::InvalidReplicaSetConfig,
        format!(
            "The hosts {} and {} all map to this node in new configuration with {} for replica set {}",
            config.members[a].host,
            config.members[b].host,
            config.id(),
            config.name
        ),
    ))
}
