//! `_migrateClone`, `_transferMods` and `_getNextSessionMods`: what a recipient is given.

use crate::commands::prelude::*;
use crate::commands::shardsvr::ddl::Ddl;
use crate::sessions::moving::History;
use crate::sharding::donations::{Changed, Donation};
use pando_base::Uuid;
use pando_command::request::missing;
use std::sync::Arc;

/// `{migrationId, receiver, number}`.
struct Turn {
    donation: Arc<Donation>,
    receiver: i64,
    number: u64,
}

impl Turn {
    fn of(server: &Server, ctx: &OpCtx, req: &Request<'_>) -> Result<Turn> {
        let number = |name: &'static str| {
            req.body.get(name).and_then(|v| v.as_i64()).ok_or_else(|| missing(req.name, name))
        };
        let donation = Ddl::new(server, ctx)?.sharding.donations.of(migration_id(req)?)?;
        let at = u64::try_from(number("number")?).unwrap_or(0);
        Ok(Turn { donation, receiver: number("receiver")?, number: at })
    }
}

pub(super) fn migration_id(req: &Request<'_>) -> Result<Uuid> {
    match req.body.get("migrationId") {
        Some(Value::Binary { subtype: 4, bytes }) => Uuid::from_slice(bytes),
        _ => None,
    }
    .ok_or_else(|| missing(req.name, "migrationId"))
}

/// `{objects: [<document>, …]}`; none at the end.
pub(in crate::commands) async fn documents(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let turn = Turn::of(server, ctx, &req)?;
    let docs = turn.donation.copy(&server.upkeep.maintenance, turn.receiver, turn.number)?;
    let mut r = Reply::new();
    r.body.array("objects", |list| docs.iter().for_each(|doc| _ = list.raw_doc(doc)));
    Ok(r)
}

/// `{deleted: [<document key>, …], reload: [<document>, …]}`; nothing where nothing was written.
pub(in crate::commands) async fn changes(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let turn = Turn::of(server, ctx, &req)?;
    let Changed { gone, written } =
        turn.donation.changed(&server.upkeep.maintenance, turn.receiver, turn.number)?;
    let mut r = Reply::new();
    r.body.array("deleted", |list| gone.iter().for_each(|key| _ = list.raw_doc(key)));
    r.body.array("reload", |list| written.iter().for_each(|doc| _ = list.raw_doc(doc)));
    Ok(r)
}

/// `{oplog: [<entry>, …], more}`: what sessions have done; nothing, and no more, where they have done nothing since.
pub(in crate::commands) async fn histories(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let turn = Turn::of(server, ctx, &req)?;
    let History { entries, more } = turn.donation.histories(&server.sessions, turn.receiver, turn.number)?;
    let mut r = Reply::new();
    r.body.array("oplog", |list| entries.iter().for_each(|entry| _ = list.raw_doc(entry)));
    r.body.bool("more", more);
    Ok(r)
}
