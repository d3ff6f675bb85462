//! `_configsvrCommitDropDatabase`: a database is nobody's any more (SH-DDL-9). Sent by its primary shard:
//! `{_configsvrCommitDropDatabase: <name>, version: {uuid, timestamp, lastMod}, writeConcern: {w: "majority"}}`.

use super::prelude::*;
use pando_routing::DatabaseVersion;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::with_majority(server, ctx)?;
    let name = fields::own_text(&req)?;
    let version = DatabaseVersion::parse_argument(&fields::required(&req, "version")?)?;
    let manager = &call.config_server.manager;
    manager.commit_drop_database(&call.interrupt, &call.client, name, version).await?;
    call.done().await
}
