//! `_configsvrCreateDatabase`: a database gets its primary shard (SH-DDL-6).

use super::prelude::*;
use pando_bson::fields::wrong_type;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::with_majority(server, ctx)?;
    let name = fields::own_text(&req)?;
    let primary = match req.body.get("primaryShardId") {
        None => None,
        Some(Value::String(id)) => Some(id),
        Some(v) => return Err(wrong_type(req.name, "primaryShardId", &v, &["string"])),
    };
    let version = call.config_server.manager.create_database(&call.interrupt, name, primary).await?;
    call.settled().await?;
    let mut r = Reply::new();
    version.append("databaseVersion", &mut r.body);
    Ok(r)
}
