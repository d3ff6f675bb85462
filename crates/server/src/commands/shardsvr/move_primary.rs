//! `_shardsvrMovePrimary`: a router's `movePrimary`, for the primary shard of the database (SH-DDL-11); and what the other shard takes.

use crate::commands::prelude::*;
use crate::commands::shardsvr::create_collection::number_of;
use crate::commands::shardsvr::ddl::Ddl;
use crate::commands::shardsvr::ddl::move_primary::{Fenced, Given};
use crate::commands::shardsvr::drop_database::check_may_go;
use pando_base::{Timestamp, Uuid};
use pando_bson::fields::wrong_type;
use pando_command::request::missing;
use pando_workflows::move_primary;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let db = req.first_str(req.name)?;
    let to = match req.body.get("to") {
        None => return Err(missing(req.name, "to")),
        Some(Value::String(to)) => to,
        Some(v) => return Err(wrong_type(req.name, "to", &v, &["string"])),
    };
    if to.is_empty() {
        let text = "you have to specify where you want to move it";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    if matches!(db, "admin" | "config" | "local") {
        let text = format!("Can't move primary for {db} database");
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    server.upkeep.admission.before_write(ctx).await?;
    let mut b = DocBuilder::new();
    b.str("toShard", to);
    Ddl::new(server, ctx)?.coordinate(db, move_primary::OPERATION, &b.finish()).await?;
    Ok(Reply::new())
}

/// `_shardsvrTakeMovedDocuments {<coll>, collectionUUID, timestamp, documents, deleted, oplog}`: what the former primary shard has of a
/// collection; what sessions have done is in `oplog`.
pub(in crate::commands) async fn take(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    check_may_go(ns.db())?;
    let uuid = match req.body.get("collectionUUID") {
        Some(Value::Binary { subtype: 4, bytes }) => Uuid::from_slice(bytes),
        _ => None,
    };
    let uuid = uuid.ok_or_else(|| missing(req.name, "collectionUUID"))?;
    let docs = |name: &str| -> Result<Vec<DocBuf>> {
        let docs = req.docs(req.name, name)?;
        Ok(docs.into_iter().flatten().map(RawDoc::to_buf).collect())
    };
    let (docs, gone, entries) = (docs("documents")?, docs("deleted")?, docs("oplog")?);
    server.upkeep.admission.before_write(ctx).await?;
    let given = Given { docs: &docs, gone: &gone, entries: &entries };
    Ddl::new(server, ctx)?.take_moved(&ns, uuid, number(&req)?, given).await?;
    Ok(Reply::new())
}

/// `_shardsvrFenceDatabase {1, timestamp, clean | given}`: nothing of the database is taken any more that has an older number; what is not
/// sharded goes, or is what was `given`: `[{name, uuid}]`.
pub(in crate::commands) async fn fence(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    check_may_go(req.db)?;
    server.upkeep.admission.before_write(ctx).await?;
    let given = req.body.get("given");
    let fenced = match (req.body.get("clean"), given.as_ref().and_then(|v| v.as_array())) {
        (Some(clean), _) if clean.is_truthy() => Fenced::Cleaned,
        (_, Some(given)) => Fenced::Sealed(given),
        _ => return Err(missing(req.name, "given")),
    };
    Ddl::new(server, ctx)?.fence_database(req.db, number(&req)?, fenced).await?;
    Ok(Reply::new())
}

fn number(req: &Request<'_>) -> Result<Timestamp> {
    number_of(req)?.ok_or_else(|| missing(req.name, "timestamp"))
}
