//! Operations, sessions, cursors and figures of the server.

use super::text;
use crate::{Client, Node, OpCtx, Request};
use pando_auth::Action::{
    CollStats, EnableProfiler, Find, Impersonate, Inprog, KillAnySession, Killop, ReplSetGetStatus,
    ServerStatus,
};
use pando_auth::{Authority, Target};
use pando_base::Result;
use std::sync::Arc;

/// What it looks at is its own: the command looks at whose each is.
pub fn of_its_own<S: Node>(_: &S, _: &OpCtx, _: &Request<'_>, _: &Authority) -> Result<bool> {
    Ok(true)
}

/// The files of a backup hold everything, so whoever gets them must be allowed to read everything: as `backup` and `root` are.
pub fn backup<S: Node>(_: &S, _: &OpCtx, _: &Request<'_>, who: &Authority) -> Result<bool> {
    let apart = [
        ("admin", "system.users"),
        ("admin", "system.roles"),
        ("local", "oplog.rs"),
        ("config", "transactions"),
    ];
    Ok(who.may_on_all_normal(&[Find])
        && apart.iter().all(|(db, coll)| who.may(Target::Collection(db, coll), &[Find])))
}

pub fn current_op<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let own = req.body.get("$ownOps").is_some_and(|v| v.is_truthy());
    Ok(own || who.may_on_cluster(Inprog))
}

/// Everybody may end what it began itself.
pub fn kill_op<S: Node>(node: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    if who.may_on_cluster(Killop) {
        return Ok(true);
    }
    let wanted = req.body.get("op").and_then(|v| v.as_i64()).and_then(|n| u32::try_from(n).ok());
    let is_it = |c: &&Arc<Client>| c.active_op().is_some_and(|op| Some(op.op_id) == wanted);
    let running = node.instance().clients.all();
    let its_client = running.iter().find(is_it);
    Ok(its_client.is_some_and(|c| {
        let login = c.login();
        login.user().is_some_and(|u| Some(&u.name) == who.user())
    }))
}

pub fn kill_by_pattern<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let patterns = req.first().value().as_array();
    let acts_for_others = patterns.into_iter().flatten().filter_map(|e| e.value().as_doc());
    let acts_for_others =
        acts_for_others.into_iter().any(|d| d.get("users").is_some() || d.get("roles").is_some());
    Ok(who.may_on_cluster(KillAnySession) && (!acts_for_others || who.may_on_cluster(Impersonate)))
}

/// To look at the level is to read what is profiled.
pub fn profile<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let looks = req.first().value().as_i64() == Some(-1)
        && ["slowms", "sampleRate", "filter"].iter().all(|name| req.body.get(name).is_none());
    let may_look = looks && who.may(Target::Collection(req.db, "system.profile"), &[Find]);
    Ok(may_look || who.may(Target::Database(req.db), &[EnableProfiler]))
}

pub fn profiling_filter<S: Node>(_: &S, _: &OpCtx, _: &Request<'_>, who: &Authority) -> Result<bool> {
    Ok(who.may_on_all_normal(&[EnableProfiler]))
}

pub fn file_md5<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let chunks = format!("{}.chunks", text(req.body, "root").unwrap_or("fs"));
    Ok(who.may(Target::Collection(req.db, &chunks), &[Find]))
}

pub fn diagnostic_data<S: Node>(_: &S, _: &OpCtx, _: &Request<'_>, who: &Authority) -> Result<bool> {
    Ok(who.may(Target::Cluster, &[ServerStatus, ReplSetGetStatus])
        && who.may(Target::Collection("local", "oplog.rs"), &[CollStats]))
}
