//! `_configsvrSetAllowMigrations`: whether chunks of a collection may move (SH-MIG-18).

use super::prelude::*;
use pando_bson::fields::wrong_type;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::with_majority(server, ctx)?;
    let of = fields::own_text(&req)?;
    let allow = match fields::required(&req, "allowMigrations")? {
        Value::Boolean(b) => b,
        v => return Err(wrong_type(req.name, "allowMigrations", &v, &["bool"])),
    };
    let uuid = match req.body.get("collectionUUID") {
        None => None,
        Some(v) => match fields::uuid_of(&v) {
            Some(uuid) => Some(uuid),
            None => return Err(wrong_type(req.name, "collectionUUID", &v, &["binData"])),
        },
    };
    let version = match req.body.get("collectionVersion") {
        None => None,
        Some(_) => Some(fields::version(req.body, "collectionVersion")?),
    };
    call.config_server.manager.set_allow_migrations(&call.interrupt, of, uuid, version, allow).await?;
    call.done().await
}
