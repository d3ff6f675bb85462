//! Writes: what is changed, whether a document may come in by it, and what is bypassed.

use super::{collection, each, is_on, may_write, split, text};
use crate::{Node, OpCtx, Request, has_unique_names};
use pando_auth::Action::{Find, Insert, Remove, Update};
use pando_auth::{Action, Authority, Target};
use pando_base::Result;

pub fn insert<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    Ok(may_write(who, req.body, Target::Collection(req.db, collection(req)), &[Insert]))
}

pub fn update<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let target = Target::Collection(req.db, collection(req));
    // Whoever may insert too may send any update: the statements need no look.
    if may_write(who, req.body, target, &[Update, Insert]) {
        return Ok(true);
    }
    let upserts = each(req, "updates").iter().any(|u| is_on(u, "upsert") || !has_unique_names(u));
    let actions: &[Action] = if upserts { &[Update, Insert] } else { &[Update] };
    Ok(may_write(who, req.body, target, actions))
}

pub fn find_and_modify<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let target = Target::Collection(req.db, collection(req));
    let actions: &[Action] = match (is_on(req.body, "remove"), is_on(req.body, "upsert")) {
        (true, _) => &[Find, Remove],
        (false, true) => &[Find, Update, Insert],
        (false, false) => &[Find, Update],
    };
    Ok(may_write(who, req.body, target, actions))
}

pub fn bulk_write<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    if !each(req, "nsInfo").iter().all(|d| has_unique_names(d)) {
        return Ok(who.may_everything());
    }
    let names: Vec<&str> = each(req, "nsInfo").iter().map(|d| text(d, "ns").unwrap_or_default()).collect();
    Ok(each(req, "ops").iter().all(|op| {
        let Some(first) = op.first() else { return true };
        if !has_unique_names(op) {
            return who.may_everything();
        }
        let at = first.value().as_i64().and_then(|n| usize::try_from(n).ok());
        let (db, coll) = split(at.and_then(|at| names.get(at)).copied().unwrap_or_default());
        let actions: &[Action] = match (first.name(), is_on(op, "upsert")) {
            ("insert", _) => &[Insert],
            ("delete", _) => &[Remove],
            (_, true) => &[Update, Insert],
            _ => &[Update],
        };
        may_write(who, req.body, Target::Collection(db, coll), actions)
    }))
}
