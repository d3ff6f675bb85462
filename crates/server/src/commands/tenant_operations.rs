//! What the commands of operations on tenants begin with, whether a set splits or tenants move to another one: whether this node may be asked,
//! the operation with the id that they name, and the wait for what becomes of it.

use super::prelude::*;
use crate::tenants::Tenants;
use pando_base::Uuid;
use pando_command::request::missing;
use pando_repl::ReplSetConfig;
use pando_repl::services::{Host, Instance};
use std::sync::Arc;

/// What these commands work on.
pub(super) struct TenantOperations<'a> {
    host: &'a Arc<Host>,
    pub(super) tenants: &'a Arc<Tenants>,
    config: Arc<ReplSetConfig>,
}

impl<'a> TenantOperations<'a> {
    /// # Errors
    /// As of [`tenants_of`].
    pub(super) fn of(server: &'a Server, req: &Request<'_>) -> Result<TenantOperations<'a>> {
        let tenants = tenants_of(server, req)?;
        let config = server.replication.member.require_config()?;
        let services = server.replication.services();
        let services = services.ok_or_else(|| Error::internal("services have not started"))?;
        Ok(TenantOperations { host: &services.host, tenants, config })
    }
    /// This set's name.
    pub(super) fn set(&self) -> &str {
        &self.config.name
    }
    /// How others find it.
    pub(super) fn connection(&self) -> String {
        let bearing = self.config.members.iter().filter(|m| !m.arbiter_only);
        let hosts: Vec<&str> = bearing.map(|m| &*m.host).collect();
        format!("{}/{}", self.set(), hosts.join(","))
    }
    pub(super) async fn find(&self, ctx: &OpCtx, service: &str, id: &Uuid) -> Result<Option<Arc<Instance>>> {
        let mut key = DocBuilder::new();
        key.uuid("_id", &id.0);
        let key = key.finish();
        ctx.interruptible(self.host.find(service, &key)).await?
    }
    pub(super) async fn start(&self, ctx: &OpCtx, service: &str, state: &RawDoc) -> Result<Arc<Instance>> {
        ctx.interruptible(self.host.start(service, state)).await?
    }
}

/// # Errors
/// 115 on a server without `--serverless`, 10107 on a member that is no primary.
pub(super) fn tenants_of<'a>(server: &'a Server, req: &Request<'_>) -> Result<&'a Arc<Tenants>> {
    let tenants = server.tenants.as_ref().ok_or_else(|| {
        let text = format!("{} is only supported in serverless mode", req.name);
        Error::new(ErrorCode::CommandNotSupported, text)
    })?;
    match server.replication.member.is_primary() {
        true => Ok(tenants),
        false => Err(Error::new(ErrorCode::NotWritablePrimary, "not primary")),
    }
}

/// The one argument of those that name an operation.
pub(super) fn migration_id(req: &Request<'_>) -> Result<Uuid> {
    let mut id = None;
    for arg in req.args(req.name) {
        match arg.name() {
            "migrationId" => id = Some(Uuid(arg.uuid()?)),
            _ => return Err(arg.unknown()),
        }
    }
    id.ok_or_else(|| missing(req.name, "migrationId"))
}

/// Waits until the state on a majority looks so.
///
/// # Errors
/// Where the instance ends before, or the wait.
pub(super) async fn when(
    ctx: &OpCtx,
    instance: &Instance,
    looks_so: impl Fn(&RawDoc) -> bool + Send + Sync,
) -> Result<()> {
    if !ctx.interruptible(instance.when(looks_so)).await? {
        // The next primary goes on with it.
        ctx.interruptible(instance.result()).await??;
    }
    Ok(())
}
