//! `explain`: what each shard would do, in the shape of a sharded cluster.

use super::prelude::*;
use crate::aggregate::run::Asked;
use crate::config::{GIT_VERSION, VERSION};
use crate::remote::call::read_preference;
use crate::remote::own_fields;
use crate::remote::stale::Tries;
use crate::write::targeting::{Goes, of_delete, of_point, of_update};
use pando_command::explained;
use pando_metadata_cache::{Route, Target};
use pando_request::read::explain::Explained;
use pando_request::{ExplainArgs, FindArgs};
use pando_routing::ShardId;
use pando_rpc::Retry;

pub(super) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let verbosity = ExplainArgs::parse(&req)?.verbosity.unwrap_or("allPlansExecution").to_owned();
    let body = ExplainArgs::inner(&req)?;
    let invoked_as = body.first().map_or("", |e| e.name());
    let Some(spec) = router.registry.find(invoked_as) else {
        let text = format!("Explain failed due to unknown command: {invoked_as}");
        return Err(Error::new(ErrorCode::CommandNotFound, text));
    };
    ExplainArgs::check_database(body, req.db)?;
    let inner = Request { name: spec.name, invoked_as, body, sequences: &[], ..req };
    let named = |inner: &Request<'_>| match inner.name {
        "aggregate" => super::aggregate::target(inner),
        _ => inner.ns(),
    };
    let (ns, command) = Explained::parse(&inner, ctx.api.strict, named, || ctx.arguments_read())?;
    ctx.arguments_read()?;
    if let Explained::Aggregate(args) = &command {
        let asked = Asked { named: ns.clone(), ns, args: args.clone(), explains: Some(verbosity) };
        return match crate::aggregate::run::run(router, ctx, &inner, &asked).await {
            Err(e) if e.code == ErrorCode::CommandOnShardedViewNotSupportedOnMongod => {
                super::views::aggregate(router, ctx, &inner, &asked, &e).await
            }
            done => done,
        };
    }
    let mut tries = Tries::default();
    loop {
        let route = router.catalog.route(&ns).await?;
        let targets = targets(router, ctx, &route, &command)?;
        let body = |target: &Target| {
            envelope::explained(ctx, &req, &verbosity, target, |b| envelope::own_arguments(b, &inner))
        };
        let preference = read_preference(req.body)?;
        match router.gather(ctx, &targets, &preference, Retry::Idempotent, body).await {
            Err(e) if tries.again(router, ctx, &route, &e).await => {}
            Err(e) if e.code == ErrorCode::CommandOnShardedViewNotSupportedOnMongod => {
                return super::views::explain(router, ctx, &inner, &command, e, &verbosity).await;
            }
            Err(e) => return Err(e),
            // On a view it is a pipeline, which one shard explains.
            Ok(replies) if replies.iter().any(|(_, r)| r.elem("stages").is_some()) => {
                return Ok(replies.first().map(|(_, r)| handed_on(r)).unwrap_or_default());
            }
            Ok(replies) => return Ok(reply(router, &inner, stage_of(&command, replies.len()), &replies)),
        }
    }
}

fn targets(router: &Router, ctx: &OpCtx, route: &Route, command: &Explained<'_>) -> Result<Vec<Target>> {
    let table = route.table.as_deref();
    let of_find = |a: &FindArgs<'_>| {
        route.concerned(router.condition(ctx, table, a.filter, a.collation, a.let_vars).as_ref())
    };
    let of_write = |goes: Goes| match goes {
        Goes::To(targets) => targets,
        Goes::Anywhere => route.owners(),
    };
    Ok(match command {
        Explained::Find(a) => of_find(a),
        Explained::Count(a) => of_find(&a.find),
        Explained::Distinct(a) => of_find(&a.find),
        Explained::Update(_, s) => of_write(of_update(router, ctx, route, s)?),
        Explained::Delete(_, s) => of_write(of_delete(router, ctx, route, s)?),
        Explained::FindAndModify(a) => {
            let matcher = router.condition(ctx, table, a.query, a.collation, a.let_vars);
            match table {
                Some(table) => of_point(table, matcher.as_ref())?.map_or_else(|| route.owners(), |t| vec![t]),
                None => vec![route.primary()],
            }
        }
        Explained::Aggregate(_) | Explained::MapReduce(_) => route.owners(),
    })
}

/// What the router does with what shards give.
fn stage_of(command: &Explained<'_>, shards: usize) -> &'static str {
    match command {
        Explained::Update(..) | Explained::Delete(..) | Explained::FindAndModify(_) if shards > 1 => {
            "SHARD_WRITE"
        }
        _ if shards == 1 => "SINGLE_SHARD",
        Explained::Find(a) if a.sort.is_some() => "SHARD_MERGE_SORT",
        _ => "SHARD_MERGE",
    }
}

fn reply(router: &Router, inner: &Request<'_>, stage: &str, replies: &[(ShardId, DocBuf)]) -> Reply {
    let mut r = Reply::with_capacity(4096);
    let b = &mut r.body;
    b.doc("queryPlanner", |d| {
        d.i32("mongosPlannerVersion", 1);
        d.doc("winningPlan", |d| {
            d.str("stage", stage);
            d.array("shards", |a| {
                for (shard, reply) in replies {
                    a.doc(|d| planner_of(router, d, shard, reply));
                }
            });
        });
    });
    if replies.iter().any(|(_, r)| r.elem("executionStats").is_some()) {
        b.doc("executionStats", |d| execution(d, stage, replies));
    }
    append_process(router, b);
    append_command(b, inner);
    r
}

/// Who explains: this router.
pub(crate) fn append_process(router: &Router, b: &mut DocBuilder) {
    let facts = router.config.host.facts();
    let process = explained::Process {
        host: &facts.hostname,
        port: router.config.port,
        version: VERSION,
        git_version: GIT_VERSION,
        params: &router.instance.params,
    };
    process.append(b);
}

/// The command that is explained.
pub(crate) fn append_command(b: &mut DocBuilder, inner: &Request<'_>) {
    b.doc("command", |d| {
        let generic = |name: &[u8]| name != b"$db" && pando_command::generic_args::is_generic(name);
        inner.body.iter().filter(|e| !generic(e.name_bytes())).for_each(|e| _ = d.elem(e));
        if inner.body.elem("$db").is_none() {
            d.str("$db", inner.db);
        }
    });
}

fn planner_of(router: &Router, d: &mut DocBuilder, shard: &ShardId, reply: &RawDoc) {
    reply.elem("explainVersion").into_iter().for_each(|e| _ = d.elem(e));
    d.str("shardName", shard.as_str()).str("connectionString", &super::raw::address(router, shard));
    reply.elem("serverInfo").into_iter().for_each(|e| _ = d.elem(e));
    if let Some(planner) = reply.get("queryPlanner").and_then(|v| v.as_doc()) {
        d.elems_of(planner);
    }
}

fn execution(d: &mut DocBuilder, stage: &str, replies: &[(ShardId, DocBuf)]) {
    let stats = |r: &DocBuf| r.get("executionStats").and_then(|v| v.as_doc()).map(RawDoc::to_buf);
    let all: Vec<(&ShardId, DocBuf)> = replies.iter().filter_map(|(s, r)| Some((s, stats(r)?))).collect();
    let number = |s: &DocBuf, name: &str| s.get(name).and_then(|v| v.as_i64()).unwrap_or(0);
    let sums = |d: &mut DocBuilder| {
        for name in ["nReturned", "executionTimeMillis", "totalKeysExamined", "totalDocsExamined"] {
            let values = all.iter().map(|(_, s)| number(s, name));
            let n = if name == "executionTimeMillis" { values.max().unwrap_or(0) } else { values.sum() };
            d.i32_or_i64(name, n);
        }
    };
    sums(d);
    d.doc("executionStages", |d| {
        d.str("stage", stage);
        sums(d);
        d.i64("totalChildMillis", all.iter().map(|(_, s)| number(s, "executionTimeMillis")).sum());
        d.array("shards", |a| {
            for (shard, stats) in &all {
                a.doc(|d| {
                    d.str("shardName", shard.as_str());
                    own_fields(stats).filter(|e| e.name() != "allPlansExecution").for_each(|e| _ = d.elem(e));
                });
            }
        });
    });
    if all.iter().any(|(_, s)| s.elem("allPlansExecution").is_some()) {
        d.array("allPlansExecution", |a| {
            for (shard, stats) in &all {
                a.doc(|d| {
                    d.str("shardName", shard.as_str());
                    let plans = stats.get("allPlansExecution").and_then(|v| v.as_array());
                    d.raw_array("allPlans", plans.unwrap_or(RawDoc::empty()));
                });
            }
        });
    }
}
