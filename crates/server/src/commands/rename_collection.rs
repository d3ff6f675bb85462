//! `renameCollection`: another name for a collection, in the same or another database.

use super::prelude::*;
use crate::writes::ByCtx;
use pando_base::DbName;
use pando_command::request::{missing, wrong_type};

/// `db.coll` as far as a name can be read from it; the catalog says what is wrong with the collection's part.
fn full_name(full: &str, which: &str) -> Result<Namespace> {
    let invalid = || Error::new(ErrorCode::InvalidNamespace, format!("Invalid {which} namespace: {full}"));
    match full.split_once('.') {
        Some((db, coll)) if !coll.is_empty() && DbName::parse(db).is_ok() => {
            Ok(Namespace::unchecked(db, coll))
        }
        _ => Err(invalid()),
    }
}

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    const OWNER: &str = "renameCollection";
    let Value::String(from) = req.first().value() else {
        return Err(wrong_type(OWNER, OWNER, &req.first().value(), &["string"]));
    };
    let (mut to, mut drop_target) = (None, false);
    for arg in req.args(OWNER) {
        match arg.name() {
            "to" => to = Some(arg.str()?),
            // A UUID here names the target that may be dropped.
            "dropTarget" => {
                drop_target = match arg.value() {
                    Value::Binary { .. } => true,
                    _ => arg.boolish()?,
                }
            }
            "stayTemp" | "collectionUUID" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let to = full_name(to.ok_or_else(|| missing(OWNER, "to"))?, "target")?;
    let from = full_name(from, "source")?;
    server.check_collection_uuid(OWNER, &req, &from)?;
    server.before_write(ctx).await?;
    let last = server.catalog.rename_collection(&from, &to, drop_target, &ByCtx(ctx)).await?;
    server.wrote(ctx, last);
    server.top.forget(from.as_str());
    Ok(Reply::new())
}
