//! Collections of another set that are taken in by their files: the steps of a shard merge's copy, each asked for by the recipient's
//! primary. `_takeInCollections` of every member, `_importCollections` of itself, `_forgetImport` of every member.

use super::prelude::*;
use crate::tenants::{Tenants, merge};
use pando_access::ImportOrder;
use pando_base::patience::Operation;
use pando_base::{Timestamp, Uuid};
use pando_command::request::missing;
use pando_workflows::shard_split::op_time;
use std::sync::Arc;

fn tenants_of<'a>(server: &'a Server, req: &Request<'_>) -> Result<&'a Arc<Tenants>> {
    let none = || {
        let text = format!("{} is only supported in serverless mode", req.name);
        Error::new(ErrorCode::CommandNotSupported, text)
    };
    server.tenants.as_ref().ok_or_else(none)
}

fn import_of(req: &Request<'_>) -> Result<Uuid> {
    let id = match req.first().value() {
        Value::Binary { subtype: 4, bytes } => Uuid::from_slice(bytes),
        _ => None,
    };
    id.ok_or_else(|| Error::bad_value(format!("{} takes a UUID", req.name)))
}

/// `_takeInCollections: <UUID>, donor: <host>, backup: <number>, migration: <UUID>, since: {ts, t}`: copies the files that the donor holds still,
/// and takes the tenants' collections in; nobody sees them. This member has to have everything up to `since` before. Answers what there is when it is all
/// there.
pub(super) async fn take_in(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let (mut donor, mut backup, mut migration, mut since) = (None, None, None, None);
    for arg in req.args("_takeInCollections") {
        match arg.name() {
            "migration" => migration = Some(Uuid(arg.uuid()?)),
            "since" => {
                since = Some(op_time(arg.doc()?).ok_or_else(|| Error::bad_value("'since' is an optime"))?)
            }
            "donor" => donor = Some(arg.str()?),
            "backup" => backup = Some(arg.i64_at_least(0)?),
            _ => return Err(arg.unknown()),
        }
    }
    let (tenants, import) = (tenants_of(server, &req)?, import_of(&req)?);
    let host = donor.ok_or_else(|| missing(req.name, "donor"))?;
    let backup = backup.ok_or_else(|| missing(req.name, "backup"))?;
    let migration = migration.ok_or_else(|| missing(req.name, "migration"))?;
    let since = since.ok_or_else(|| missing(req.name, "since"))?;
    if !server.replication.member.is_readable() {
        let text = "node is not in primary or secondary state";
        return Err(Error::new(ErrorCode::NotPrimaryOrSecondary, text));
    }
    let maintenance = &server.upkeep.maintenance;
    let imported = match maintenance.imported(import)? {
        Some(there) => there,
        None => {
            // What was here before, as of an attempt that came to nothing, has gone by then.
            server.replication.await_op_time(ctx, since).await?;
            let taken = tenants.taking.begin()?;
            let env = &server.instance.env;
            let donor = merge::Donor { env, pool: &server.replication.data_pool, host, backup };
            ctx.interruptible(merge::fetch(&donor, &taken)).await??;
            let watch = ctx.watch();
            let order = ImportOrder { import, migration, since: since.ts };
            let work = merge::take_in(env, maintenance, order, &taken, move || watch.check());
            ctx.interruptible(work).await??
        }
    };
    let mut r = Reply::with_capacity(128 * imported.collections.len());
    r.body.timestamp("checkpoint", imported.at);
    r.body.array("collections", |a| {
        for c in &imported.collections {
            a.doc(|d| {
                d.str("ns", c.ns.as_str()).uuid("uuid", &c.uuid.0);
                d.i64("documents", c.documents as i64).i64("bytes", c.bytes as i64);
            });
        }
    });
    Ok(r)
}

/// `_importCollections: <UUID>`: what was taken in on every member comes into being.
pub(super) async fn import(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.check("_importCollections", &[])?;
    tenants_of(server, &req)?;
    let (n, last) = merge::publish(&server.upkeep.maintenance, import_of(&req)?, |_| true).await?;
    ctx.wrote(last);
    let mut r = Reply::new();
    r.body.i32_or_i64("n", n as i64);
    Ok(r)
}

/// `_forgetImport: <UUID of a merge> | "all", upto: <timestamp>`: nothing need be remembered of what was taken in for it before `upto`, once this
/// member's tables stand there. `forgotten: false` where a majority, and so a checkpoint, is not there yet.
pub(super) async fn forget(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut upto: Option<Timestamp> = None;
    for arg in req.args("_forgetImport") {
        match (arg.name(), arg.value()) {
            ("upto", Value::Timestamp(ts)) => upto = Some(ts),
            ("upto", _) => return Err(arg.wrong_type(&["timestamp"])),
            _ => return Err(arg.unknown()),
        }
    }
    tenants_of(server, &req)?;
    let upto = upto.ok_or_else(|| missing(req.name, "upto"))?;
    let maintenance = &server.upkeep.maintenance;
    let migration = match req.first().value() {
        Value::String("all") => None,
        _ => Some(import_of(&req)?),
    };
    let imports = maintenance.imports_before(migration, upto)?;
    if !imports.is_empty() {
        server.upkeep.checkpoints.take_now(ctx).await?;
    }
    let mut forgotten = true;
    for import in imports {
        forgotten &= merge::forget(maintenance, import, upto)?;
    }
    let mut r = Reply::new();
    r.body.bool("forgotten", forgotten);
    Ok(r)
}
