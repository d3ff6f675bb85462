//! Views of sharded collections: the primary shard says what a view stands for, and the read becomes an aggregation of that.

use super::prelude::*;
use crate::aggregate::run::{Asked, open, run};
use crate::cursors::Wanted;
use crate::remote::View;
use pando_base::limits;
use pando_bson::ArrayBuilder;
use pando_query::distinct_values::{DistinctValues, projection_on_root};
use pando_query::projection::check_path;
use pando_request::read::explain::Explained;
use pando_request::{AggregateArgs, CountArgs, DistinctArgs, FindArgs};

async fn on_view(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    named: Namespace,
    e: &Error,
    args: AggregateArgs<'_>,
    explains: Option<String>,
) -> Result<Reply> {
    let view = View::of(e)?;
    view.check_collation(args.collation, "")?;
    let pipeline = view.with(args.pipeline);
    let collation = view.collation.as_deref().or(args.collation);
    let args = AggregateArgs { pipeline: &pipeline, collation, ..args };
    let asked = Asked { named, ns: view.ns.clone(), args, explains };
    run(router, ctx, req, &asked).await
}

pub(super) async fn aggregate(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    asked: &Asked<'_>,
    e: &Error,
) -> Result<Reply> {
    let explains = asked.explains.clone();
    on_view(router, ctx, req, asked.named.clone(), e, asked.args.clone(), explains).await
}

/// A query as stages.
fn stages_of(args: &FindArgs<'_>) -> ArrayBuilder {
    let mut a = ArrayBuilder::new();
    let mut doc = |name: &str, value: Option<&RawDoc>| {
        if let Some(value) = value {
            a.doc(|d| _ = d.raw_doc(name, value));
        }
    };
    doc("$match", args.filter.filter(|f| !f.is_empty()));
    doc("$sort", args.sort.filter(|s| s.elem("$natural").is_none()));
    for (name, n) in [("$skip", Some(args.skip).filter(|n| *n > 0)), ("$limit", args.limit)] {
        if let Some(n) = n {
            a.doc(|d| _ = d.i64(name, n as i64));
        }
    }
    if let Some(projection) = args.projection {
        a.doc(|d| _ = d.raw_doc("$project", projection));
    }
    a
}

fn as_aggregation<'a>(args: &FindArgs<'a>, stages: &'a RawDoc) -> AggregateArgs<'a> {
    AggregateArgs {
        pipeline: stages,
        has_cursor: true,
        batch_size: args.batch_size,
        collation: args.collation,
        let_vars: args.let_vars,
        hint: args.hint.clone(),
        allow_disk_use: args.allow_disk_use,
        ..AggregateArgs::default()
    }
}

pub(super) async fn find(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    args: &FindArgs<'_>,
    e: &Error,
) -> Result<Reply> {
    if args.tailable {
        let text = "Tailable cursors are not supported in aggregation.";
        return Err(Error::new(ErrorCode::InvalidPipelineOperator, text));
    }
    let stages = stages_of(args).finish();
    on_view(router, ctx, req, req.ns()?, e, as_aggregation(args, &stages), None).await
}

/// What a read of a view would be: the aggregation is explained.
pub(super) async fn explain(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    command: &Explained<'_>,
    e: Error,
    verbosity: &str,
) -> Result<Reply> {
    let root;
    let find = match command {
        Explained::Find(find) => find.clone(),
        Explained::Count(count) => count.on_view(),
        Explained::Distinct(distinct) => {
            root = projection_on_root(distinct.key);
            FindArgs { projection: Some(&root), ..distinct.find.clone() }
        }
        _ => return Err(e),
    };
    let mut stages = stages_of(&find);
    if matches!(command, Explained::Count(_)) {
        stages.doc(|d| _ = d.str("$count", "n"));
    }
    let stages = stages.finish();
    let told = as_aggregation(&find, &stages);
    on_view(router, ctx, req, req.ns()?, &e, told, Some(verbosity.to_owned())).await
}

/// What an aggregation of one result gives.
fn only(reply: Reply) -> Option<DocBuf> {
    let doc = reply_document(reply);
    let batch = doc.get("cursor")?.as_doc()?.get("firstBatch")?.as_array()?;
    batch.first()?.value().as_doc().map(RawDoc::to_buf)
}

fn reply_document(reply: Reply) -> DocBuf {
    let bytes = reply.body.into_buffer();
    RawDoc::trusted(bytes.get(pando_command::reply::HEADROOM..).unwrap_or_default()).to_buf()
}

pub(super) async fn count(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    args: &CountArgs<'_>,
    e: &Error,
) -> Result<Reply> {
    let find = args.on_view();
    let mut stages = stages_of(&find);
    stages.doc(|d| _ = d.str("$count", "n"));
    let stages = stages.finish();
    let found = only(on_view(router, ctx, req, req.ns()?, e, as_aggregation(&find, &stages), None).await?);
    let mut r = Reply::new();
    let n = found.and_then(|d| d.get("n").and_then(|v| v.as_i64())).unwrap_or(0);
    r.body.i32_or_i64("n", n);
    Ok(r)
}

/// The values of a field, of all that the view shows.
pub(super) async fn distinct(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    args: &DistinctArgs<'_>,
    e: &Error,
) -> Result<Reply> {
    let view = View::of(e)?;
    view.check_collation(args.find.collation, "")?;
    check_path(args.key)?;
    let only = projection_on_root(args.key);
    let stages = stages_of(&FindArgs { projection: Some(&only), ..args.find.clone() }).finish();
    let pipeline = view.with(&stages);
    let collation = view.collation.as_deref().or(args.find.collation);
    let told = AggregateArgs { pipeline: &pipeline, collation, ..as_aggregation(&args.find, &stages) };
    let asked = Asked { named: req.ns()?, ns: view.ns.clone(), args: told, explains: None };
    let mut values = DistinctValues::new(args.key);
    values.on_view(router.query_ctx(ctx, None, collation, None)?, None)?;
    let wanted = Wanted { docs_max: limits::INSERT_UNIT_DOCS_MAX as u64, ..Wanted::default() };
    let mut results = open(router, ctx, req, &asked).await?;
    while let Some(results) = results.as_mut().filter(|r| !r.is_over()) {
        for doc in results.fill(router, ctx, wanted).await? {
            values.add(&doc)?;
        }
    }
    let mut r = Reply::with_capacity(values.bytes + 64);
    r.body.array("values", |a| values.iter().for_each(|v| _ = a.bson(v)));
    Ok(r)
}
