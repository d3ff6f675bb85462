//! Change streams of a cluster: every shard tells of its own changes, and an event is given once no shard can have an earlier one.

use super::wire;
use crate::Router;
use crate::cursors::merge::{Order, Strip};
use crate::cursors::{Open, Remotes, RouterCursor, Shape, Watching};
use crate::remote::call::read_preference;
use crate::remote::envelope::{self, Kind};
use pando_base::{Error, Namespace, Result, Timestamp};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc, Value};
use pando_command::{OpCtx, Reply, Request};
use pando_metadata_cache::Target;
use pando_query::QueryCtx;
use pando_query::change_stream::{Token, check_stages};
use pando_query::sort::SortPattern;
use pando_query::stage::{Pipeline, RunEnv};
use pando_request::AggregateArgs;
use std::sync::Arc;

/// The options of a `$changeStream` that leads a pipeline.
pub(crate) fn spec_of(pipeline: &RawDoc) -> Option<&RawDoc> {
    let first = pipeline.first()?.value().as_doc()?.first()?;
    first.value().as_doc().filter(|_| first.name() == "$changeStream")
}

pub(crate) async fn run(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    ns: &Namespace,
    args: &AggregateArgs<'_>,
    spec: &RawDoc,
) -> Result<Reply> {
    ctx.set_change_stream();
    let q = router.query_ctx(ctx, None, args.collation, args.let_vars)?;
    let looks_up = spec.get("fullDocument").is_some_and(|v| v.as_str() == Some("updateLookup"));
    let resumes = Resumes::of(spec, args.pipeline)?;
    let all_here = looks_up || resumes.must_be_there;
    let Parts { shards: stages, merger, order } = parts(args.pipeline, all_here, &q)?;
    // Shards do not see all stages that they would refuse.
    check_stages(args.pipeline)?;
    let shards = router.catalog.refresh_shards().await?;
    let targets: Vec<Target> = shards.iter().map(|s| Target::unversioned(s.entry.id.clone())).collect();
    // All begin at one time; what changes from now on is newer than whatever anybody has told of.
    let now = router.times.cluster().0;
    let stages = beginning(&stages, Timestamp(now.0.saturating_add(1)));
    let body = |target: &Target| {
        let mut b = DocBuilder::new();
        match ns.coll() {
            "$cmd.aggregate" => b.i32("aggregate", 1),
            coll => b.str("aggregate", coll),
        };
        let told = AggregateArgs {
            pipeline: &stages,
            has_cursor: true,
            batch_size: Some(0),
            from_mongos: true,
            needs_merge: Some(true),
            ..args.clone()
        };
        told.spell(&mut b);
        envelope::append(&mut b, ctx, req, Kind::Pipeline, target);
        b.finish()
    };
    let (remotes, first, _) =
        Remotes::open(router, ctx, &targets, &read_preference(req.body)?, false, body).await?;
    let mut shape = Shape {
        order: Some(Order::fields(order, None)),
        strips: Strip::All,
        tailable: true,
        watching: Some(Watching::new(
            shards.iter().map(|s| s.entry.id.clone()),
            resumes.after,
            resumes.must_be_there,
            looks_up,
        )),
        ..Shape::default()
    };
    if !merger.is_empty() {
        shape.stages = Some(Box::new(merger.start(&RunEnv { spill: None, collections: None })?));
    }
    let cursor = RouterCursor::new(remotes, first, shape)?;
    let open = Open {
        batch_size: args.batch_size,
        await_data: true,
        waits_for_nothing: true,
        ..Open::new(ns.clone())
    };
    router.begin(ctx, req, open, cursor).await
}

/// Where a stream goes on.
struct Resumes<'a> {
    after: Option<&'a RawDoc>,
    /// It is an event, and some shard has to have it.
    must_be_there: bool,
}

impl<'a> Resumes<'a> {
    fn of(spec: &'a RawDoc, pipeline: &RawDoc) -> Result<Resumes<'a>> {
        let after = ["resumeAfter", "startAfter"].iter().find_map(|f| spec.get(*f)?.as_doc());
        let token = after.map(Token::parse).transpose()?;
        // A fragment is found by whoever cuts events.
        let splits = |stage: &RawDoc| stage.elem("$changeStreamSplitLargeEvent").is_some();
        let cut = pipeline.iter().filter_map(|e| e.value().as_doc()).any(splits);
        let must_be_there = token.is_some_and(|t| t.is_event && !t.from_invalidate && !cut);
        Ok(Resumes { after, must_be_there })
    }
}

/// What shards do, what is done with what they send, and by what that is merged.
struct Parts {
    shards: DocBuf,
    merger: Pipeline,
    order: Arc<SortPattern>,
}

/// Where documents are looked up, the stages behind see them, and where an event has to be there, they might hide it: all but the first
/// are done here.
fn parts(pipeline: &RawDoc, all_here: bool, q: &QueryCtx) -> Result<Parts> {
    let split = Pipeline::parse(pipeline, q)?.split(&|_| true)?;
    let mut by = DocBuilder::new();
    by.i32("_id._data", 1);
    let order = Arc::new(SortPattern::parse(&by.finish())?);
    if !all_here {
        return Ok(Parts { shards: wire::stages(&split.shards.spelled()), merger: split.merger, order });
    }
    let (mut first, mut rest) = (ArrayBuilder::new(), ArrayBuilder::new());
    for (i, stage) in pipeline.iter().filter_map(|e| e.value().as_doc()).enumerate() {
        _ = if i == 0 { first.raw_doc(stage) } else { rest.raw_doc(stage) };
    }
    Ok(Parts { shards: first.finish(), merger: Pipeline::parse(&rest.finish(), q)?, order })
}

/// The stages with a time to begin at, unless they say where.
fn beginning(stages: &RawDoc, now: Timestamp) -> DocBuf {
    const SAYS: [&str; 3] = ["resumeAfter", "startAfter", "startAtOperationTime"];
    let mut out = ArrayBuilder::new();
    for stage in stages.iter().filter_map(|e| e.value().as_doc()) {
        match stage.get("$changeStream") {
            Some(Value::Document(spec)) if !SAYS.iter().any(|f| spec.elem(*f).is_some()) => {
                let mut b = DocBuilder::new();
                b.doc("$changeStream", |d| _ = d.elems_of(spec).timestamp("startAtOperationTime", now));
                out.raw_doc(&b.finish());
            }
            _ => _ = out.raw_doc(stage),
        }
    }
    out.finish()
}

/// A stream is of a collection, a database or a cluster.
pub(crate) fn check_place(ns: &Namespace, spec: &RawDoc) -> Result<()> {
    let all = spec.get("allChangesForCluster").is_some_and(|v| v.is_truthy());
    if all && !(ns.db() == "admin" && ns.coll() == "$cmd.aggregate") {
        let text = "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and \
                    with no collection name";
        return Err(Error::new(pando_base::ErrorCode::InvalidOptions, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_metadata_cache::testing::doc;

    #[test]
    fn all_shards_begin_at_one_time_unless_the_client_says_where() {
        let stages =
            doc(r#"{"0": {"$changeStream": {"fullDocument": "updateLookup"}}, "1": {"$match": {}}}"#);
        let begun = beginning(&stages, Timestamp::new(5, 1));
        let at = begun.get_path("0.$changeStream.startAtOperationTime");
        assert!(matches!(at, Some(Value::Timestamp(t)) if t == Timestamp::new(5, 1)));
        let resumed = doc(r#"{"0": {"$changeStream": {"resumeAfter": {"_data": "82"}}}}"#);
        assert_eq!(beginning(&resumed, Timestamp::new(5, 1)), resumed);
    }
}
