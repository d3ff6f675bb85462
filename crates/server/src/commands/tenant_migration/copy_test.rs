//! `_tenantCopy {action, migrationId, tenantId, donor, start?, waitMS?}`: the steps of whoever takes a tenant over, one at a time, for tests.

use super::prelude::*;
use super::tenants_of;
use crate::tenants::copy::{Copier, PeerSet};
use pando_base::{TenantScope, Timestamp, Uuid};
use std::time::Duration;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    tenants_of(server, &req)?;
    let Value::String(action) = req.first().value() else {
        return Err(Error::bad_value("_tenantCopy needs an action: clear, copy or follow"));
    };
    let (mut id, mut tenant, mut donor) = (None, None, None);
    let (mut start, mut wait) = (Timestamp::ZERO, 0);
    for arg in req.args(req.name) {
        match (arg.name(), arg.value()) {
            ("migrationId", _) => id = Some(Uuid(arg.uuid()?)),
            ("tenantId", _) => tenant = Some(arg.str()?),
            ("donor", _) => donor = Some(PeerSet::parse(arg.str()?)?),
            ("start", Value::Timestamp(at)) => start = at,
            ("waitMS", _) => wait = arg.i64_at_least(0)? as u64,
            _ => return Err(arg.unknown()),
        }
    }
    let (Some(id), Some(tenant), Some(donor)) = (id, tenant, donor) else {
        return Err(Error::bad_value("_tenantCopy needs migrationId, tenantId and donor"));
    };
    let (roles, whose) = (&server.upkeep.role_changes, TenantScope::one(tenant));
    let copier = Copier { roles, id, tenants: &[tenant], whose, donor: &donor };
    let mut r = Reply::new();
    match action {
        "clear" => ctx.interruptible(copier.clear()).await??,
        "copy" => drop(r.body.timestamp("at", ctx.interruptible(copier.copy()).await??)),
        "follow" => {
            let followed = copier.follow(start, Duration::from_millis(wait));
            r.body.timestamp("at", ctx.interruptible(followed).await??);
        }
        other => return Err(Error::bad_value(format!("unknown action {other}"))),
    }
    Ok(r)
}
