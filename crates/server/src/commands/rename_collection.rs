//! `renameCollection`: another name for a collection, in the same or another database.

use super::prelude::*;
use pando_access::names;
use pando_base::Uuid;
use pando_request::RenameCollectionArgs;
use pando_request::define::rename_collection::Dropped;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let from = RenameCollectionArgs::source(&req)?;
    ctx.arguments_read()?;
    let args = RenameCollectionArgs::parse(&req)?;
    let to = args.target()?;
    names::check_renamable(&from, &to)?;
    args.check_uuids(&from, &to)?;
    if let Some(uuid) = args.collection_uuid {
        server.access.check_uuid(&from, Uuid(uuid))?;
    }
    let drop_target = match args.drop_target {
        None => false,
        Some(Dropped::Anything(on)) => on,
        Some(Dropped::Uuid(uuid)) => {
            server.access.check_uuid(&to, Uuid(uuid))?;
            true
        }
    };
    server.upkeep.admission.before_write(ctx).await?;
    let last = server.access.rename_collection(ctx, &from, &to, drop_target).await?;
    ctx.wrote(last);
    server.statistics.top.forget(from.as_str());
    Ok(Reply::new())
}
