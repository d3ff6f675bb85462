//! Collections, views, and lists of them.

use super::aggregation::Asked;
use super::{collection, is_on, split, text};
use crate::{Node, OpCtx, Request};
use pando_auth::Action::{
    CollMod, ConvertToCapped, CreateCollection, CreateIndex, DropCollection, Find, Insert, ListCollections,
    ListDatabases, RenameCollectionSameDB, SplitVector, Validate,
};
use pando_auth::{Authority, Target};
use pando_base::Result;
use pando_bson::Value;

pub fn create<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let target = Target::Collection(req.db, collection(req));
    if is_on(req.body, "capped") && !who.may(target, &[ConvertToCapped]) {
        return Ok(false);
    }
    let may = who.may(target, &[CreateCollection]);
    if req.body.get("viewOn").is_some() {
        return Ok(may && may_show(req, who));
    }
    Ok(may || who.may(target, &[Insert]))
}

pub fn coll_mod<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let may = who.may(Target::Collection(req.db, collection(req)), &[CollMod]);
    Ok(may && (req.body.get("viewOn").is_none() || may_show(req, who)))
}

/// Who can read a view must be allowed to read what it shows.
fn may_show(req: &Request<'_>, who: &Authority) -> bool {
    if !who.may(Target::Collection(req.db, collection(req)), &[Find]) {
        return true;
    }
    let asked = Asked { who, db: req.db, body: req.body };
    asked.may_run(text(req.body, "viewOn").unwrap_or_default(), req.body.get("pipeline"), true, 0)
}

pub fn clone_as_capped<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let to = text(req.body, "toCollection").unwrap_or_default();
    let reads = who.may(Target::Collection(req.db, collection(req)), &[Find]);
    Ok(reads && who.may(Target::Collection(req.db, to), &[Insert, CreateIndex, ConvertToCapped]))
}

/// Within a database by an action of its own, unless it would show somebody what it could not read before; else as if the documents were
/// copied and the source dropped.
pub fn rename<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let (from_db, from) = split(req.first().value().as_str().unwrap_or_default());
    let (to_db, to) = split(text(req.body, "to").unwrap_or_default());
    let (source, target) = (Target::Collection(from_db, from), Target::Collection(to_db, to));
    let is_system = from.starts_with("system.") || to.starts_with("system.");
    if is_on(req.body, "dropTarget") && !who.may(target, &[DropCollection]) {
        return Ok(false);
    }
    if from_db == to_db && !is_system && who.may(Target::Database(from_db), &[RenameCollectionSameDB]) {
        let shows_more = who.may(target, &[Find]) && !who.may(source, &[Find]);
        if !shows_more {
            return Ok(true);
        }
    }
    Ok(who.may(source, &[Find, DropCollection]) && who.may(target, &[Insert, CreateIndex]))
}

/// Names alone may be seen by who has something to do there.
pub fn list_collections<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let own_names = is_on(req.body, "nameOnly") && is_on(req.body, "authorizedCollections");
    let may = who.may(Target::Database(req.db), &[ListCollections]);
    Ok(may || own_names && who.has_anything_in(req.db))
}

/// Everybody sees the databases in which it may do something; all of them, who may list databases.
pub fn list_databases<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let all = matches!(req.body.get("authorizedDatabases"), Some(Value::Boolean(false)));
    Ok(!all || who.may_on_cluster(ListDatabases))
}

pub fn data_size<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let (db, coll) = split(req.first().value().as_str().unwrap_or_default());
    Ok(who.may(Target::Collection(db, coll), &[Find]))
}

pub fn split_vector<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let (db, coll) = split(req.first().value().as_str().unwrap_or_default());
    Ok(who.may(Target::Collection(db, coll), &[SplitVector]))
}

pub fn validate_metadata<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    Ok(match (text(req.body, "db"), text(req.body, "collection")) {
        (Some(db), Some(coll)) => who.may(Target::Collection(db, coll), &[Validate]),
        (Some(db), None) => who.may(Target::Database(db), &[Validate]),
        (None, _) => who.may_on_all_normal(&[Validate]),
    })
}
