//! `_configsvrCommitMovePrimary`: a database has another primary shard from now on (SH-DDL-11). Sent by the former one:
//! `{_configsvrCommitMovePrimary: <database>, expectedDatabaseVersion: <of before>, to: <shard>, writeConcern: {w: "majority"}}`.
//! With `giveUp: true` it is not to be committed any more, not by a command that comes late either ─► `{made}`: whether it was.

use super::prelude::*;
use pando_bson::fields::wrong_type;
use pando_routing::DatabaseVersion;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::with_majority(server, ctx)?;
    let name = fields::own_text(&req)?;
    let expected = DatabaseVersion::parse_argument(&fields::required(&req, "expectedDatabaseVersion")?)?;
    let to = fields::required(&req, "to")?;
    let to = to.as_str().ok_or_else(|| wrong_type(req.name, "to", &to, &["string"]))?;
    let manager = &call.config_server.manager;
    if req.body.get("giveUp").is_some_and(|v| v.is_truthy()) {
        let made = manager.give_up_move_primary(&call.interrupt, name, expected, to).await?;
        call.settled().await?;
        let mut r = Reply::new();
        r.body.bool("made", made);
        return Ok(r);
    }
    manager.commit_move_primary(&call.interrupt, &call.client, name, expected, to).await?;
    call.done().await
}
