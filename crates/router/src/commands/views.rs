//! Views of sharded collections: the primary shard says what a view stands for, and the read becomes an aggregation of that.

use super::prelude::*;
use crate::aggregate::run::{Asked, run};
use crate::remote::View;
use pando_bson::ArrayBuilder;
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

/// The values of a field, those of arrays on the way each by itself.
pub(super) async fn distinct(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    args: &DistinctArgs<'_>,
    e: &Error,
) -> Result<Reply> {
    let mut stages = stages_of(&args.find);
    let mut path = String::new();
    for part in args.key.split('.') {
        path = if path.is_empty() { part.to_owned() } else { format!("{path}.{part}") };
        let field = format!("${path}");
        stages.doc(|d| {
            d.doc("$unwind", |d| _ = d.str("path", &field).bool("preserveNullAndEmptyArrays", true));
        });
    }
    // What is not there is no value.
    stages.doc(|d| {
        d.doc("$match", |d| {
            d.doc(args.key, |d| _ = d.bool("$exists", true));
        });
    });
    let field = format!("${path}");
    stages.doc(|d| {
        d.doc("$group", |d| {
            d.null("_id");
            d.doc("distinct", |d| _ = d.str("$addToSet", &field));
        });
    });
    let stages = stages.finish();
    let found =
        only(on_view(router, ctx, req, req.ns()?, e, as_aggregation(&args.find, &stages), None).await?);
    let mut r = Reply::new();
    let values = found.as_ref().and_then(|d| d.get("distinct")?.as_array()).unwrap_or(RawDoc::empty());
    r.body.raw_array("values", values);
    Ok(r)
}
