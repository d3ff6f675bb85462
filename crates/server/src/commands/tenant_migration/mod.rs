//! Commands of tenants that move from one set to another (SV-OUT-1, SV-OUT-2), on both sides.
//!
//! ```text
//!   whoever wants it:  donorStartMigration … donorStartMigration ─► {state: "committed"} ─► donorForgetMigration
//!                      donorAbortMigration
//!   donor's machine ─► recipientSyncData … recipientSyncData ─► _recipientCommitMigration ─► recipientForgetMigration
//! ```
//! All of them may be sent again, to whoever is primary by then.

pub(in crate::commands) mod abort;
pub(in crate::commands) mod copy_test;
pub(in crate::commands) mod donor;
pub(in crate::commands) mod forget;
pub(in crate::commands) mod recipient_commit;
pub(in crate::commands) mod recipient_forget;
pub(in crate::commands) mod start;
pub(in crate::commands) mod sync_data;

use super::prelude;
use super::prelude::*;
use crate::tenants::Tenants;
use pando_base::Uuid;
use pando_command::request::missing;
use pando_repl::services::{Host, Instance};
use pando_workflows::{donate_tenants, receive_tenants};
use std::sync::Arc;
use std::time::Duration;

/// What these commands work on.
struct Migrations<'a> {
    host: &'a Arc<Host>,
    tenants: &'a Arc<Tenants>,
    /// This set's name, and how others find it.
    set: String,
    connection: String,
}

impl<'a> Migrations<'a> {
    fn of(server: &'a Server, req: &Request<'_>) -> Result<Migrations<'a>> {
        let tenants = tenants_of(server, req)?;
        let config = server.replication.member.require_config()?;
        let hosts: Vec<&str> = config.members.iter().filter(|m| !m.arbiter_only).map(|m| &*m.host).collect();
        let connection = format!("{}/{}", config.name, hosts.join(","));
        let services = server.replication.services();
        let services = services.ok_or_else(|| Error::internal("services have not started"))?;
        Ok(Migrations { host: &services.host, tenants, set: config.name.clone(), connection })
    }
    async fn find(&self, ctx: &OpCtx, service: &str, id: &Uuid) -> Result<Option<Arc<Instance>>> {
        let mut key = DocBuilder::new();
        key.uuid("_id", &id.0);
        let key = key.finish();
        ctx.interruptible(self.host.find(service, &key)).await?
    }
    async fn donation(&self, ctx: &OpCtx, id: &Uuid) -> Result<Option<Arc<Instance>>> {
        self.find(ctx, donate_tenants::SERVICE, id).await
    }
    async fn reception(&self, ctx: &OpCtx, id: &Uuid) -> Result<Option<Arc<Instance>>> {
        self.find(ctx, receive_tenants::SERVICE, id).await
    }
}

/// Waits until the state on a majority looks so, for as long as a call of the other side lasts at most.
///
/// # Errors
/// Where the instance ends before, or the wait.
async fn when(
    ctx: &OpCtx,
    instance: &Instance,
    looks_so: impl Fn(&RawDoc) -> bool + Send + Sync,
) -> Result<()> {
    if !ctx.interruptible(instance.when(looks_so)).await? {
        ctx.interruptible(instance.result()).await??;
    }
    Ok(())
}
/// The same, which ends without an error where it takes long: whoever asked asks again.
async fn when_soon(
    ctx: &OpCtx,
    instance: &Instance,
    looks_so: impl Fn(&RawDoc) -> bool + Send + Sync,
) -> Result<bool> {
    let limit = Duration::from_millis(pando_base::limits::TENANT_MIGRATION_ANSWER_MS);
    match ctx.env().timeout(limit, when(ctx, instance, &looks_so)).await {
        Some(done) => done.map(|()| looks_so(&instance.state())),
        None => Ok(false),
    }
}

/// Nothing is known here of a migration that the donor has committed: it is over, and its document has gone. Whoever does not know yet that another
/// one is primary could say so of one that it has not heard of, so a majority is asked.
async fn check_is_over(server: &Server, ctx: &OpCtx) -> Result<()> {
    let at = server.replication.write_noop("a tenant migration is over")?;
    ctx.interruptible(server.replication.await_majority(at)).await??;
    Ok(())
}

/// The one argument of those that name a migration.
fn migration_id(req: &Request<'_>) -> Result<Uuid> {
    let mut id = None;
    for arg in req.args(req.name) {
        match arg.name() {
            "migrationId" => id = Some(Uuid(arg.uuid()?)),
            _ => return Err(arg.unknown()),
        }
    }
    id.ok_or_else(|| missing(req.name, "migrationId"))
}
fn not_known(id: &Uuid) -> Error {
    let text = format!("Could not find tenant migration with id {id}");
    Error::new(ErrorCode::NoSuchTenantMigration, text)
}

/// # Errors
/// 115 on a server without `--serverless`, 10107 on a member that is no primary.
fn tenants_of<'a>(server: &'a Server, req: &Request<'_>) -> Result<&'a Arc<Tenants>> {
    let tenants = server.tenants.as_ref().ok_or_else(|| {
        let text = format!("{} is only supported in serverless mode", req.name);
        Error::new(ErrorCode::CommandNotSupported, text)
    })?;
    if !server.replication.member.is_primary() {
        return Err(Error::new(ErrorCode::NotWritablePrimary, "not primary"));
    }
    Ok(tenants)
}
