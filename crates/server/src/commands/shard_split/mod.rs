//! Commands of a set that splits (SV-CMD): begin it or join it, call it off, have it forgotten.

pub(in crate::commands) mod abort;
pub(in crate::commands) mod commit;
pub(in crate::commands) mod forget;

use super::prelude;
use super::prelude::*;
use crate::tenants::Tenants;
use pando_base::Uuid;
use pando_command::request::missing;
use pando_repl::services::{Host, Instance};
use pando_workflows::shard_split;
use std::sync::Arc;

/// What these commands work on.
struct Splits<'a> {
    host: &'a Arc<Host>,
    tenants: &'a Arc<Tenants>,
    /// The set that would split.
    set: String,
}

impl<'a> Splits<'a> {
    fn of(server: &'a Server, req: &Request<'_>) -> Result<Splits<'a>> {
        let none = || {
            let text = format!("{} is only supported in serverless mode", req.name);
            Error::new(ErrorCode::CommandNotSupported, text)
        };
        let tenants = server.tenants.as_ref().ok_or_else(none)?;
        let set = server.replication.member.require_config()?.name.clone();
        let services = server.replication.services();
        let services = services.ok_or_else(|| Error::internal("services have not started"))?;
        Ok(Splits { host: &services.host, tenants, set })
    }
    fn begin(&self, id: &Uuid, tenants: &[&str], tag: &str, recipient: &str) -> DocBuf {
        shard_split::of_donor(&shard_split::begin(id, tenants, tag, recipient), &self.set)
    }
    async fn find(&self, ctx: &OpCtx, id: &Uuid) -> Result<Option<Arc<Instance>>> {
        let mut key = DocBuilder::new();
        key.uuid("_id", &id.0);
        let key = key.finish();
        ctx.interruptible(self.host.find(shard_split::SERVICE, &key)).await?
    }
}

/// Returns when the split is decided: `None` where it has committed, or why it was aborted.
async fn decision(ctx: &OpCtx, instance: &Instance) -> Result<Option<Error>> {
    let is_decided = |state: &RawDoc| shard_split::decided(state).is_some();
    if ctx.interruptible(instance.when(is_decided)).await? {
        return Ok(shard_split::decided(&instance.state()).and_then(Result::err));
    }
    // It has ended before: the next primary goes on with it.
    ctx.interruptible(instance.result()).await??;
    Err(Error::internal("a shard split has ended without a decision"))
}

/// The one argument of those that name a split.
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
