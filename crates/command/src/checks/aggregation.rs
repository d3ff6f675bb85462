//! Pipelines read what their stages name, and write where they end.

use super::{collection, is_on, may_write, target_of, text};
use crate::{Node, OpCtx, Registry, Request, has_unique_names};
use pando_auth::Action::{
    ChangeStream, CollStats, Find, IndexStats, Inprog, Insert, ListSessions, PlanCacheRead, Remove, Update,
};
use pando_auth::{Action, Authority, Target};
use pando_base::Result;
use pando_base::limits::BSON_DEPTH_MAX;
use pando_bson::{RawDoc, Value};

pub fn aggregate<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let coll = match req.first().value() {
        Value::String(name) => name,
        _ => "$cmd.aggregate",
    };
    let asked = Asked { who, db: req.db, body: req.body };
    Ok(asked.may_run(coll, req.body.get("pipeline"), true, 0))
}

/// What the command within needs. It is not run where it would write, and asks for the same.
pub fn explain<S: Node>(
    registry: &Registry<S>,
    node: &S,
    ctx: &OpCtx,
    req: &Request<'_>,
    who: &Authority,
) -> Result<bool> {
    let Some(inner) = req.first().value().as_doc() else { return Ok(true) };
    let Some(first) = inner.first() else { return Ok(true) };
    let Some(command) = registry.find(first.name()) else { return Ok(true) };
    let of_inner = Request {
        name: command.name,
        invoked_as: first.name(),
        db: text(inner, "$db").unwrap_or(req.db),
        body: inner,
        sequences: &[],
        exhaust_allowed: false,
        legacy: false,
    };
    if command.name == "explain" {
        return Ok(true);
    }
    Registry::may_run(command, node, ctx, &of_inner, who)
}

pub fn map_reduce<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let reads = who.may(Target::Collection(req.db, collection(req)), &[Find]);
    let (to, actions): (_, &[Action]) = match req.body.get("out") {
        Some(Value::String(name)) => (Target::Collection(req.db, name), &[Insert, Remove]),
        Some(Value::Document(out)) if !has_unique_names(out) => return Ok(who.may_everything()),
        Some(Value::Document(out)) => {
            let db = text(out, "db").unwrap_or(req.db);
            // Which of several counts is the command's matter: all have to be allowed.
            return Ok(reads
                && [("replace", Remove), ("merge", Update), ("reduce", Update)].iter().all(
                    |(mode, action)| {
                        text(out, mode).is_none_or(|name| {
                            may_write(who, req.body, Target::Collection(db, name), &[Insert, *action])
                        })
                    },
                ));
        }
        _ => return Ok(reads),
    };
    Ok(reads && may_write(who, req.body, to, actions))
}

/// Stages that say where or whose they read or write: each in one field.
const NAMES_PLACES: &[&str] = &[
    "$changeStream",
    "$currentOp",
    "$graphLookup",
    "$listLocalSessions",
    "$listSessions",
    "$lookup",
    "$merge",
    "$out",
    "$unionWith",
];

/// A pipeline, and who asks for it.
pub(super) struct Asked<'a> {
    pub(super) who: &'a Authority,
    pub(super) db: &'a str,
    /// The command's, for what goes for all of it.
    pub(super) body: &'a RawDoc,
}

impl Asked<'_> {
    /// Whether it may be run on a collection. What is no pipeline is the command's to refuse, once reading is allowed.
    pub(super) fn may_run(&self, coll: &str, pipeline: Option<Value<'_>>, reads: bool, depth: usize) -> bool {
        let stages = pipeline.and_then(|p| p.as_array());
        let own = Target::Collection(self.db, coll);
        let first = stages.and_then(|s| s.iter().next()).and_then(|e| e.value().as_doc());
        let source = first.and_then(|d| d.first());
        let source = source.and_then(|e| self.may_begin(e.name(), e.value(), coll));
        let may_read = source.unwrap_or_else(|| !reads || self.who.may(own, &[Find]));
        may_read
            && depth <= BSON_DEPTH_MAX
            && stages
                .into_iter()
                .flatten()
                .filter_map(|e| e.value().as_doc())
                .all(|stage| stage.first().is_none_or(|e| self.may_stage(e.name(), e.value(), coll, depth)))
    }

    /// Stages that read something else than the collection's documents ask for something else.
    fn may_begin(&self, stage: &str, v: Value<'_>, coll: &str) -> Option<bool> {
        let own = Target::Collection(self.db, coll);
        let who = self.who;
        let of_all = |action| {
            let all = v.as_doc().is_some_and(|d| is_on(d, "allUsers"));
            !all || who.may_on_cluster(action)
        };
        Some(match stage {
            "$collStats" => who.may(own, &[CollStats]),
            "$indexStats" => who.may(own, &[IndexStats]),
            "$planCacheStats" => who.may(own, &[PlanCacheRead]),
            "$currentOp" => of_all(Inprog),
            "$listLocalSessions" | "$listSessions" => of_all(ListSessions) && self.may_list_users(v),
            "$changeStream" => {
                let of_cluster = v.as_doc().is_some_and(|d| is_on(d, "allChangesForCluster"));
                match coll {
                    _ if of_cluster => who.may_on_all_normal(&[Find, ChangeStream]),
                    "$cmd.aggregate" => who.may(Target::Database(self.db), &[Find, ChangeStream]),
                    _ => who.may(own, &[Find, ChangeStream]),
                }
            }
            _ => return None,
        })
    }

    /// Sessions of users that are named: only one's own are for everybody.
    fn may_list_users(&self, v: Value<'_>) -> bool {
        let users = v.as_doc().and_then(|d| d.get("users")).and_then(|v| v.as_array());
        let is_own = |d: &RawDoc| {
            has_unique_names(d)
                && self.who.user().is_some_and(|own| {
                    text(d, "user") == Some(own.user.as_str()) && text(d, "db") == Some(own.db.as_str())
                })
        };
        let mut named = users.into_iter().flatten().filter_map(|e| e.value().as_doc());
        named.all(is_own) || self.who.may_on_cluster(ListSessions)
    }

    /// What a stage reads or writes beside its input.
    fn may_stage(&self, stage: &str, v: Value<'_>, coll: &str, depth: usize) -> bool {
        let (db, who) = (self.db, self.who);
        let spec = v.as_doc();
        if spec.is_some_and(|d| NAMES_PLACES.contains(&stage) && !has_unique_names(d)) {
            return who.may_everything();
        }
        let reads = |from: Option<Value<'_>>| {
            target_of(from, db, "coll").is_none_or(|target| who.may(target, &[Find]))
        };
        let below = |from: Option<Value<'_>>, pipeline: Option<Value<'_>>| {
            let coll = match target_of(from, db, "coll") {
                Some(Target::Collection(_, coll)) => coll,
                _ => return self.may_run("$cmd.aggregate", pipeline, false, depth + 1),
            };
            self.may_run(coll, pipeline, true, depth + 1)
        };
        match stage {
            "$lookup" => spec.is_none_or(|d| reads(d.get("from")) && below(d.get("from"), d.get("pipeline"))),
            "$graphLookup" => spec.is_none_or(|d| reads(d.get("from"))),
            "$unionWith" => match spec {
                Some(d) => below(d.get("coll"), d.get("pipeline")),
                None => reads(Some(v)),
            },
            "$facet" => {
                spec.is_none_or(|d| d.iter().all(|e| self.may_run(coll, Some(e.value()), false, depth + 1)))
            }
            "$out" => target_of(Some(v), db, "coll")
                .is_none_or(|to| may_write(who, self.body, to, &[Insert, Remove])),
            "$merge" => self.may_merge(v),
            _ => true,
        }
    }

    fn may_merge(&self, v: Value<'_>) -> bool {
        let into = v.as_doc().and_then(|d| d.get("into")).unwrap_or(v);
        if into.as_doc().is_some_and(|d| !has_unique_names(d)) {
            return self.who.may_everything();
        }
        let Some(to) = target_of(Some(into), self.db, "coll") else { return true };
        let mode = |name: &str| v.as_doc().and_then(|d| text(d, name));
        let inserts = mode("whenNotMatched").is_none_or(|m| m == "insert");
        let updates = mode("whenMatched") != Some("fail");
        let actions: &[Action] = match (inserts, updates) {
            (true, true) => &[Insert, Update],
            (true, false) => &[Insert],
            (false, _) => &[Update],
        };
        may_write(self.who, self.body, to, actions)
    }
}
