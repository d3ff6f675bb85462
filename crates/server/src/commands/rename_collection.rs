//! `renameCollection`: another name for a collection, in the same or another database.

use super::prelude::*;
use crate::by_ctx::ByCtx;
use pando_base::{DbName, Uuid};
use pando_command::request::missing;

/// `db.coll` as far as a name can be read from it; the catalog says what is wrong with the collection's part.
fn full_name(full: &str, which: &str) -> Result<Namespace> {
    let invalid = || Error::new(ErrorCode::InvalidNamespace, format!("Invalid {which} namespace: {full}"));
    if full.contains('\0') {
        let text = "namespaces cannot have embedded null characters";
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    match full.split_once('.') {
        Some((db, coll)) if !coll.is_empty() && DbName::parse(db).is_ok() => {
            Ok(Namespace::unchecked(db, coll))
        }
        _ => Err(invalid()),
    }
}

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    const OWNER: &str = "renameCollection";
    let from = req.coll()?;
    let (mut to, mut drop_target, mut target_uuid, mut has_uuid) = (None, false, None, false);
    for arg in req.args(OWNER) {
        match arg.name() {
            "to" if matches!(arg.value(), Value::Null | Value::Undefined) => {}
            "to" => to = Some(arg.str()?),
            // A UUID here names the target that may be dropped.
            "dropTarget" => match arg.value() {
                Value::Boolean(on) => drop_target = on,
                Value::Binary { subtype: 4, .. } => {
                    drop_target = true;
                    target_uuid = Some(Uuid(arg.uuid()?));
                }
                Value::Binary { .. } => {
                    let text = "uuid must be a 16-byte binary field with UUID (4) subtype";
                    return Err(Error::new(ErrorCode::InvalidUUID, text));
                }
                v => {
                    return Err(Error::type_mismatch(format!(
                        "BSON field '{OWNER}.dropTarget' is the wrong type '{}', expected types '[bool, binData']",
                        v.type_name()
                    )));
                }
            },
            "stayTemp" if matches!(arg.value(), Value::Null | Value::Undefined) => {}
            "stayTemp" => drop(arg.bool()?),
            "collectionUUID" => has_uuid = arg.uuid_or_none()?.is_some(),
            _ => return Err(arg.unknown()),
        }
    }
    let to = full_name(to.ok_or_else(|| missing(OWNER, "to"))?, "target")?;
    let from = full_name(from, "source")?;
    if from.db() != to.db() && (has_uuid || target_uuid.is_some()) {
        return Err(Error::new(
            ErrorCode::InvalidOptions,
            "Cannot provide an expected collection UUID when renaming between databases",
        ));
    }
    server.check_collection_uuid(OWNER, &req, &from)?;
    if let Some(uuid) = target_uuid {
        server.check_uuid(&to, uuid)?;
    }
    server.before_write(ctx).await?;
    let last = server.catalog.rename_collection(&from, &to, drop_target, &ByCtx(ctx)).await?;
    ctx.wrote(last);
    server.statistics.top.forget(from.as_str());
    Ok(Reply::new())
}
