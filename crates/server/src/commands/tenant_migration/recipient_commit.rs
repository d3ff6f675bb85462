//! `_recipientCommitMigration {migrationId}`: the donor has decided, on a majority of its set, that the tenants are this set's.

use super::prelude::*;
use super::{TenantOperations, check_is_over, when};
use pando_base::Uuid;
use pando_command::request::missing;
use pando_workflows::receive_tenants::{Progress, progress};

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let migrations = TenantOperations::of(server, &req)?;
    let id = id_of_donor(&req)?;
    let Some(instance) = migrations.reception(ctx, &id).await? else {
        // Nobody decides before a majority here has the document, and it is there until this set is told to forget. A donor's primary that has
        // come since does not know that it was.
        check_is_over(server, ctx).await?;
        return Ok(Reply::new());
    };
    migrations.tenants.receptions.tell(id, |told| told.committed = true);
    instance.nudge();
    when(ctx, &instance, |state| progress(state) >= Progress::Committed).await?;
    match progress(&instance.state()) {
        Progress::Committed => Ok(Reply::new()),
        _ => {
            let text = format!("tenant migration {id} was aborted here");
            Err(Error::new(ErrorCode::TenantMigrationAborted, text))
        }
    }
}

/// What a donor sends along with the id is for those that begin.
pub(super) fn id_of_donor(req: &Request<'_>) -> Result<Uuid> {
    let mut id = None;
    for arg in req.args(req.name) {
        match arg.name() {
            "migrationId" => id = Some(Uuid(arg.uuid()?)),
            "tenantId" | "tenantIds" | "protocol" | "decision" => {}
            "donorConnectionString" | "donorSetName" | "recipientSetName" => {}
            _ => return Err(arg.unknown()),
        }
    }
    id.ok_or_else(|| missing(req.name, "migrationId"))
}
