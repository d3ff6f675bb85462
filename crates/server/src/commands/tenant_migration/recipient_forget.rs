//! `recipientForgetMigration {migrationId, decision}`: the donor's migration is over. Where it was aborted, whatever was copied goes first; one that nobody
//! has begun here will not begin.

use super::prelude::*;
use super::recipient_commit::id_of_donor;
use super::{TenantOperations, check_is_over, when};
use pando_workflows::receive_tenants::{self, Progress, is_forgotten, progress};

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let migrations = TenantOperations::of(server, &req)?;
    let id = id_of_donor(&req)?;
    let aborted = match req.body.get("decision").and_then(|v| v.as_str()) {
        None | Some("committed") => false,
        Some("aborted") => true,
        Some(other) => {
            let text = format!(
                "Enumeration value '{other}' for field '{}.decision' is not a valid value.",
                req.name
            );
            return Err(Error::bad_value(text));
        }
    };
    let instance = match migrations.reception(ctx, &id).await? {
        Some(there) => there,
        // Its document has gone already.
        None if !aborted => {
            check_is_over(server, ctx).await?;
            return Ok(Reply::new());
        }
        None => {
            let state = receive_tenants::called_off(&id, migrations.set());
            migrations.start(ctx, receive_tenants::SERVICE, &state).await?
        }
    };
    migrations.tenants.receptions.tell(id, |told| {
        told.committed |= !aborted;
        told.forgotten = true;
    });
    if aborted {
        instance.abort(Error::new(ErrorCode::TenantMigrationAborted, "the donor has aborted the migration"));
    }
    instance.nudge();
    when(ctx, &instance, is_forgotten).await?;
    if aborted && progress(&instance.state()) == Progress::Committed {
        let text = format!("tenant migration {id} has been committed");
        return Err(Error::new(ErrorCode::TenantMigrationCommitted, text));
    }
    Ok(Reply::new())
}
