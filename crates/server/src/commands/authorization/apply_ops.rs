//! `applyOps`: entries of an oplog, each of which needs what it would need as a command.

use super::{is_on, split, text};
use crate::Server;
use pando_auth::Action::{AppendOplogNote, ApplyOps, ForceUUID, Insert, Remove, Update, UseUUID};
use pando_auth::{Authority, Target};
use pando_base::limits::BSON_DEPTH_MAX;
use pando_base::{Namespace, Result, Uuid};
use pando_bson::{RawDoc, Value};
use pando_command::{OpCtx, Registry, Request, has_unique_names};

/// Entries of an oplog: what each would need as a command. Nothing that is not understood is let in but by who may everything.
pub(super) fn run(server: &Server, ctx: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let Value::Array(ops) = req.first().value() else { return Ok(true) };
    let plain = !is_on(req.body, "alwaysUpsert") && req.body.get("preCondition").is_none();
    if ops.is_empty() || !plain {
        return Ok(who.may_everything());
    }
    Ok(who.may_on_cluster(ApplyOps) && may_apply(server, ctx, ops, who, 0)?)
}

fn may_apply(server: &Server, ctx: &OpCtx, ops: &RawDoc, who: &Authority, depth: usize) -> Result<bool> {
    for op in ops.iter().filter_map(|e| e.value().as_doc()) {
        if !has_unique_names(op) && !who.may_everything() {
            return Ok(false);
        }
        let (db, coll) = split(text(op, "ns").unwrap_or_default());
        let target = Target::Collection(db, coll);
        let by_uuid = op.get("ui").is_none() || who.may_on_cluster(UseUUID);
        let named = named_by_command(op).unwrap_or((db, coll));
        let elsewhere = named_by_uuid(server, op).filter(|ns| (ns.db(), ns.coll()) != named);
        // An entry is carried out on the collection of its UUID, whatever it is called.
        if elsewhere.is_some() && !who.may_everything() {
            return Ok(false);
        }
        let may = match text(op, "op") {
            Some("i") => who.may(target, &[Insert]),
            Some("u") if is_on(op, "b") => who.may(target, &[Update, Insert]),
            Some("u") => who.may(target, &[Update]),
            Some("d") => who.may(target, &[Remove]),
            Some("c") => may_apply_command(server, ctx, op, db, who, depth)?,
            Some("n") => who.may_on_cluster(AppendOplogNote),
            None => who.may_everything(),
            Some(_) => true,
        };
        if !may || !by_uuid {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What the command of an entry names: its first value, in the entry's database or in full.
fn named_by_command(op: &RawDoc) -> Option<(&str, &str)> {
    let first = op.get("o").filter(|_| text(op, "op") == Some("c"))?.as_doc()?.first()?;
    let name = first.value().as_str()?;
    match first.name() {
        "renameCollection" => Some(split(name)),
        _ => Some((split(text(op, "ns")?).0, name)),
    }
}

/// The collection that an entry's UUID is of.
fn named_by_uuid(server: &Server, op: &RawDoc) -> Option<Namespace> {
    let Some(Value::Binary { bytes, .. }) = op.get("ui") else { return None };
    server.access.definitions().name_of(Uuid(bytes.try_into().ok()?))
}

fn may_apply_command(
    server: &Server,
    ctx: &OpCtx,
    op: &RawDoc,
    db: &str,
    who: &Authority,
    depth: usize,
) -> Result<bool> {
    let Some(body) = op.get("o").and_then(|v| v.as_doc()) else { return Ok(who.may_everything()) };
    let Some(first) = body.first() else { return Ok(who.may_everything()) };
    if op.get("ui").is_some() && !who.may_on_cluster(ForceUUID) {
        return Ok(false);
    }
    if first.name() == "applyOps" {
        let Value::Array(ops) = first.value() else { return Ok(true) };
        return Ok(depth < BSON_DEPTH_MAX && may_apply(server, ctx, ops, who, depth + 1)?);
    }
    let Some(command) = server.registry.find(first.name()) else { return Ok(who.may_everything()) };
    let req = Request {
        name: command.name,
        invoked_as: first.name(),
        db,
        body,
        sequences: &[],
        exhaust_allowed: false,
        legacy: false,
    };
    Registry::may_run(command, server, ctx, &req, who)
}
