//! `renameCollection`: another name for a collection, in the same or another database.

use super::prelude::*;
use crate::writes::ByCtx;
use pando_command::request::{missing, wrong_type};

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
    let to = Namespace::parse(to.ok_or_else(|| missing(OWNER, "to"))?)?;
    let from = Namespace::parse(from)?;
    server.before_write(ctx).await?;
    let last = server.catalog.rename_collection(&from, &to, drop_target, &ByCtx(ctx)).await?;
    server.wrote(ctx, last);
    server.top.forget(from.as_str());
    Ok(Reply::new())
}
