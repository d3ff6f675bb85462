//! `_tenantSnapshot {migrationId, tenantId}` and what follows it: a tenant's data as of one time S. Everything at or before S is in it, and
//! S is on a majority when it is told, so nothing of it can be rolled back.

use super::prelude::*;
use super::{Args, tenants_of};
use crate::sessions::moving::{History, Moving, MovingHistory};
use crate::tenants::exports::Export;
use pando_access::{Collection, RangePlace};
use pando_base::{Uuid, limits};
use pando_command::request::missing;

/// `{at, collections: [{ns, uuid, options, indexes}, …], more}`, in the order of names; with `more` there are others.
pub(in crate::commands) async fn begin(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let tenants = tenants_of(server, &req)?;
    let args = Args::parse(&req)?;
    let (migration, whose) = (args.migration(&req)?, args.whose(&req)?);
    tenants.exports.end(migration);
    let term = server.upkeep.maintenance.term();
    // First what sessions have done until now: whatever of it may be told is before S, and so on a majority.
    let mut history =
        MovingHistory::begin(&server.sessions, Moving::Tenants(whose.clone().into_owned())).await?;
    let at = server.replication.write_noop("a tenant is copied to another set")?;
    history.end_at(at.ts);
    // Whoever took a slot before is done then.
    ctx.interruptible(server.storage.log().wait_applied(at.ts)).await?;
    let data = server.upkeep.maintenance.export_tenants(&whose, at.ts)?;
    ctx.interruptible(server.replication.await_majority(at)).await??;
    let now = server.instance.env.clock.mono();
    let export = tenants.exports.add(migration, Export::new(data, history), now)?;
    // A change of office in between has not ended this one.
    if server.upkeep.maintenance.term() != term || !server.replication.member.is_primary() {
        tenants.exports.end(migration);
        return Err(Error::new(ErrorCode::NotWritablePrimary, "not primary"));
    }
    let mut r = Reply::new();
    r.body.timestamp("at", at.ts);
    append_collections(&mut r.body, &export, "");
    Ok(r)
}

/// `_tenantCollections {migrationId, after: <the last name that was told>}` → `{collections, more}`.
pub(in crate::commands) async fn collections(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let (args, export) = export_of(server, &req)?;
    let after = args.after.and_then(|v| v.as_str()).ok_or_else(|| missing(req.name, "after"))?;
    let mut r = Reply::new();
    append_collections(&mut r.body, &export, after);
    Ok(r)
}

fn append_collections(b: &mut DocBuilder, export: &Export, after: &str) {
    let left = export.data.collections().into_iter().filter(|coll| coll.ns.as_str() > after);
    let (mut bytes, mut more) = (0, false);
    b.array("collections", |list| {
        for coll in left {
            if bytes > limits::MIGRATION_REPLY_BYTES_MAX {
                more = true;
                break;
            }
            let doc = told(coll);
            bytes += doc.byte_len();
            list.raw_doc(&doc);
        }
    });
    b.bool("more", more);
}

/// Options and indexes as they are stored.
fn told(coll: &Collection) -> DocBuf {
    let mut b = DocBuilder::new();
    b.str("ns", coll.ns.as_str()).uuid("uuid", &coll.uuid.0);
    b.raw_doc("options", &coll.options.to_doc());
    b.array("indexes", |list| coll.ready_indexes().iter().for_each(|i| _ = list.raw_doc(&i.spec.doc)));
    b.finish()
}

fn export_of<'a>(server: &Server, req: &Request<'a>) -> Result<(Args<'a>, std::sync::Arc<Export>)> {
    let tenants = tenants_of(server, req)?;
    let args = Args::parse(req)?;
    let export = tenants.exports.find(args.migration(req)?, server.instance.env.clock.mono())?;
    Ok((args, export))
}

/// `_tenantDocuments {migrationId, uuid, after?: <place>}` → `{docs, after?: <place>}`: of one collection as of S, in the order of its
/// records; without a place these are all. What has been dropped since S is there still.
pub(in crate::commands) async fn documents(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let (args, export) = export_of(server, &req)?;
    let uuid: Uuid = args.uuid.ok_or_else(|| missing(req.name, "uuid"))?;
    let after = match args.after {
        None => None,
        Some(place) => {
            let parsed = place.as_doc().and_then(RangePlace::parse);
            Some(parsed.ok_or_else(|| Error::bad_value("'after' is a place that was told before"))?)
        }
    };
    let (docs_max, bytes_max) = (limits::MIGRATION_HELPING_DOCUMENTS_MAX, limits::MIGRATION_REPLY_BYTES_MAX);
    let (docs, last) = export.data.documents(uuid, after.as_ref(), docs_max, bytes_max)?;
    let mut r = Reply::new();
    r.body.array("docs", |list| docs.iter().for_each(|doc| _ = list.raw_doc(doc)));
    if let Some(last) = last {
        r.body.raw_doc("after", &last.to_raw());
    }
    Ok(r)
}

/// `_tenantSessions {migrationId, number}` → `{entries, more}`: what sessions have done in the tenant's databases up to S. Numbers begin
/// with 1; the last one may be asked for again.
pub(in crate::commands) async fn sessions(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let (args, export) = export_of(server, &req)?;
    let number = args.number.ok_or_else(|| missing(req.name, "number"))?;
    let History { entries, more } = export.history().tell(&server.sessions, number)?;
    let mut r = Reply::new();
    r.body.array("entries", |list| entries.iter().for_each(|entry| _ = list.raw_doc(entry)));
    r.body.bool("more", more);
    Ok(r)
}

/// `_tenantSnapshotEnd {migrationId}`; nothing where there is none.
pub(in crate::commands) async fn end(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let tenants = tenants_of(server, &req)?;
    tenants.exports.end(Args::parse(&req)?.migration(&req)?);
    Ok(Reply::new())
}
