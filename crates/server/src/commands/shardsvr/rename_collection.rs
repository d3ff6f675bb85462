//! `_shardsvrRenameCollection`: a router's `renameCollection`, for the primary shard of the database; and what other shards do for it.

use crate::commands::prelude::*;
use crate::commands::shardsvr::create_collection::number_of;
use crate::commands::shardsvr::ddl::Ddl;
use pando_access::names;
use pando_base::Uuid;
use pando_bson::fields::{missing, wrong_type};
use pando_workflows::rename_collection;

fn target(req: &Request<'_>) -> Result<Namespace> {
    let to = req.body.get("to");
    let to = to.as_ref().and_then(|v| v.as_str()).ok_or_else(|| missing(req.name, "to"))?;
    Namespace::parse(to)
}

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    // What the others would refuse is refused before anything is begun.
    let (from, to) = names_of(&req)?;
    let mut b = DocBuilder::new();
    b.str("to", to.as_str());
    for option in ["dropTarget", "stayTemp", "collectionUUID"] {
        req.body.elem(option).into_iter().for_each(|e| _ = b.elem(e));
    }
    server.upkeep.admission.before_write(ctx).await?;
    let ddl = Ddl::new(server, ctx)?;
    ddl.coordinate(from.as_str(), rename_collection::OPERATION, &b.finish()).await?;
    Ok(Reply::new())
}

/// `{_shardsvrRenameCollectionParticipant: <collection>, to: <ns>, sourceUUID, timestamp, writeConcern: {w: "majority"}}`
pub(in crate::commands) async fn participant(
    server: &Server,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let (from, to) = names_of(&req)?;
    let uuid = req.body.get("sourceUUID").ok_or_else(|| missing(req.name, "sourceUUID"))?;
    let uuid = match uuid {
        Value::Binary { subtype: 4, bytes } => Uuid::from_slice(bytes),
        _ => None,
    };
    let uuid = uuid.ok_or_else(|| {
        let found = req.body.get("sourceUUID").unwrap_or(Value::Null);
        wrong_type(req.name, "sourceUUID", &found, &["binData"])
    })?;
    server.upkeep.admission.before_write(ctx).await?;
    Ddl::new(server, ctx)?.rename_part(&from, &to, uuid, number_of(&req)?).await?;
    Ok(Reply::new())
}

/// The same shard's sections of that definition go.
pub(in crate::commands) async fn unblock(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let (from, to) = names_of(&req)?;
    Ddl::new(server, ctx)?.unblock_part(&from, &to, number_of(&req)?).await?;
    Ok(Reply::new())
}

/// What a shard keeps of itself and of its cluster has the names that it has, whoever asks.
fn names_of(req: &Request<'_>) -> Result<(Namespace, Namespace)> {
    let (from, to) = (req.ns()?, target(req)?);
    for ns in [&from, &to] {
        if matches!(ns.db(), "admin" | "config" | "local") {
            return Err(Error::new(ErrorCode::IllegalOperation, format!("Cannot rename {ns}")));
        }
    }
    names::check_renamable(&from, &to)?;
    Ok((from, to))
}
