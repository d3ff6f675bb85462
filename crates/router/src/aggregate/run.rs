//! Carries an aggregation out.

use super::foreign::{Foreign, OtherCollections};
use super::plan::{Plan, plan};
use super::wire;
use super::writing::Writing;
use crate::Router;
use crate::cursors::merge::{Order, Strip};
use crate::cursors::{Open, Remotes, RouterCursor, Shape};
use crate::remote::call::read_preference;
use crate::remote::envelope::{self, Kind};
use crate::remote::stale::Tries;
use crate::remote::{View, handed_on};
use pando_base::codes::class;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc};
use pando_command::{OpCtx, Param, ReadLevel, Reply, Request};
use pando_metadata_cache::{Route, Target};
use pando_query::QueryCtx;
use pando_query::stage::{
    Asked as Who, MergeHost, OrderedBy, Pipeline, PipelineSource, RunEnv, Split, check_first_stage,
    check_places, involved, place_of_first, sinks_of,
};
use pando_request::AggregateArgs;
use pando_rpc::Retry;
use std::collections::BTreeSet;
use std::sync::Arc;

/// An aggregation, whoever asks for it: the client's, or a read of a view that became one.
pub(crate) struct Asked<'a> {
    /// As the client named it, for its cursor.
    pub(crate) named: Namespace,
    /// Where the documents are.
    pub(crate) ns: Namespace,
    pub(crate) args: AggregateArgs<'a>,
    /// How much is to be told of it instead of running it.
    pub(crate) explains: Option<String>,
}

/// What became of an aggregation.
pub(crate) enum Done {
    Cursor(Box<RouterCursor>),
    /// Of an explain.
    Told(Reply),
}

/// Runs it to its first batch.
pub(crate) async fn run(router: &Router, ctx: &OpCtx, req: &Request<'_>, asked: &Asked<'_>) -> Result<Reply> {
    match begin(router, ctx, req, asked).await? {
        Done::Told(reply) => Ok(reply),
        Done::Cursor(cursor) => {
            let open = Open { batch_size: asked.args.batch_size, ..Open::new(asked.named.clone()) };
            router.begin(ctx, req, open, *cursor).await
        }
    }
}

/// The cursor of one on behalf of another; views are seen through.
pub(crate) async fn open(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    asked: &Asked<'_>,
) -> Result<Option<Box<RouterCursor>>> {
    let done = match begin(router, ctx, req, asked).await {
        Err(e) if e.code == ErrorCode::CommandOnShardedViewNotSupportedOnMongod => {
            let view = View::of(&e)?;
            view.check_collation(asked.args.collation, asked.named.as_str())?;
            let pipeline = view.with(asked.args.pipeline);
            let args = AggregateArgs { pipeline: &pipeline, ..asked.args.clone() };
            let below = Asked { named: asked.named.clone(), ns: view.ns.clone(), args, explains: None };
            begin(router, ctx, req, &below).await?
        }
        done => done?,
    };
    match done {
        Done::Cursor(cursor) => Ok(Some(cursor)),
        Done::Told(_) => Ok(None),
    }
}

/// Until it is answered, or has been routed often enough.
async fn begin(router: &Router, ctx: &OpCtx, req: &Request<'_>, asked: &Asked<'_>) -> Result<Done> {
    let mut tries = Tries::default();
    loop {
        let Some(route) = router.catalog.route_if_any(&asked.ns).await? else {
            if is_about_processes(asked) {
                return of_cluster(router, ctx, req, asked).await;
            }
            return without_database(router, ctx, req, asked);
        };
        match attempt(router, ctx, req, &route, asked, tries.elsewhere()).await {
            Err(e) if tries.again(router, ctx, &route, &e).await => {}
            done => return done,
        }
    }
}

/// Whether documents are about processes, wherever collections are.
fn is_about_processes(asked: &Asked<'_>) -> bool {
    let first = asked.args.pipeline.first();
    let is_of_sessions =
        first.and_then(|e| e.value().as_doc()?.first()).map(|e| e.name() == "$listLocalSessions");
    asked.ns.coll() == "$cmd.aggregate" && (asked.ns.db() == "admin" || is_of_sessions == Some(true))
}

/// Nothing is read, but stages may make documents of their own, and mistakes are mistakes.
fn without_database(router: &Router, ctx: &OpCtx, req: &Request<'_>, asked: &Asked<'_>) -> Result<Done> {
    let q = router.query_ctx(ctx, None, asked.args.collation, asked.args.let_vars)?;
    let pipeline = Pipeline::parse(asked.args.pipeline, &q)?;
    let docs = own_documents(&pipeline, &q)?;
    if pipeline.sink().is_some() {
        let text = format!("database {} not found", asked.ns.db());
        return Err(Error::new(ErrorCode::NamespaceNotFound, text));
    }
    let foreign = Foreign::new(router.shared()?, req);
    let runner = pipeline.start(&env_of(router, asked, &foreign))?;
    let shape = Shape { stages: Some(Box::new(runner)), wakes: Some(foreign.wakes()), ..Shape::default() };
    let cursor = RouterCursor::with_documents(Remotes::none(router, ctx), docs, shape)?;
    Ok(Done::Cursor(Box::new(cursor)))
}

/// What merging stages run with: they spill where the command, or else the parameter, lets them.
fn env_of(router: &Router, asked: &Asked<'_>, foreign: &Arc<Foreign>) -> RunEnv {
    let may = || router.instance.params.bool(Param::allowDiskUseByDefault);
    let spills = asked.args.allow_disk_use.unwrap_or_else(may);
    RunEnv {
        spill: spills.then(|| router.spills.clone() as _),
        collections: Some(Arc::new(OtherCollections(foreign.clone()))),
    }
}

/// Of a `$documents` in front.
fn own_documents(pipeline: &Pipeline, q: &QueryCtx) -> Result<Vec<DocBuf>> {
    match pipeline.source() {
        PipelineSource::Documents(docs) => docs.eval(q),
        _ => Ok(Vec::new()),
    }
}

async fn attempt(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    route: &Route,
    asked: &Asked<'_>,
    elsewhere: bool,
) -> Result<Done> {
    match cut_sink(asked).filter(|_| asked.explains.is_none()) {
        Some(cut) => merge(router, ctx, req, route, asked, cut, elsewhere).await,
        None => answer(router, ctx, req, route, asked, elsewhere).await,
    }
}

/// Results for whoever asked. `elsewhere`: what is read besides may lie on several shards, though it does not look so.
async fn answer(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    route: &Route,
    asked: &Asked<'_>,
    elsewhere: bool,
) -> Result<Done> {
    let args = &asked.args;
    if is_about_processes(asked) {
        return of_cluster(router, ctx, req, asked).await;
    }
    let table = route.table.as_deref();
    let spread = joins_sharded(router, &asked.ns, args.pipeline, elsewhere).await?;
    if table.is_none() && !spread {
        return whole(router, ctx, req, asked, &route.primary()).await;
    }
    let q = router.query_ctx(ctx, table, args.collation, args.let_vars)?;
    let pipeline = match parsed(asked, &q) {
        Ok(pipeline) => pipeline,
        Err(e) => return told_by_a_shard(router, ctx, req, route, asked, e).await,
    };
    let all = match table {
        None => vec![route.primary()],
        Some(t) => router.catalog.shards().await?.iter().map(|s| Route::part(t, &s.entry.id)).collect(),
    };
    match plan(&pipeline, route, &all, spread)? {
        Plan::Whole(target) => whole(router, ctx, req, asked, &target).await,
        Plan::Parts { split, targets } => {
            let own = own_documents(&pipeline, &q)?;
            parts(
                router,
                ctx,
                req,
                asked,
                Parted { split: *split, here: targets.is_empty(), targets, q, own },
            )
            .await
        }
    }
}

/// The pipeline, whose stages stand where they may.
fn parsed(asked: &Asked<'_>, q: &QueryCtx) -> Result<Pipeline> {
    let (ns, stages) = (&asked.ns, asked.args.pipeline);
    check_places(ns, stages, q)?;
    let pipeline = Pipeline::parse(stages, q).map_err(|e| place_of_first(ns, stages, e))?;
    check_first_stage(ns, stages)?;
    Ok(pipeline)
}

/// A pipeline that is wrong is told of by a shard, which looks at it in the order in which a single set does: of several mistakes this
/// router may have found another one first.
async fn told_by_a_shard(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    route: &Route,
    asked: &Asked<'_>,
    found: Error,
) -> Result<Done> {
    // In a transaction a failure would be that of a statement that nobody has asked for; what writes is not tried.
    if ctx.in_txn() || !sinks_of(asked.args.pipeline).is_empty() {
        return Err(found);
    }
    let Some(target) = route.owners().into_iter().next() else { return Err(found) };
    match whole(router, ctx, req, asked, &target).await {
        Err(told) if !told.code.is(class::STALE_ROUTING) && !told.code.is(class::RETRIABLE) => Err(told),
        _ => Err(found),
    }
}

/// The stages before what writes, and it alone, where this router has to write: a `$merge`, whose documents may live on any shard, and an
/// `$out` into another database, which may have another primary shard.
fn cut_sink(asked: &Asked<'_>) -> Option<(DocBuf, DocBuf)> {
    let stages: Vec<&RawDoc> = asked.args.pipeline.iter().filter_map(|e| e.value().as_doc()).collect();
    let (last, front) = stages.split_last()?;
    let is_ours = match last.first()?.name() {
        "$merge" => true,
        "$out" => last.get_path("$out.db").and_then(|v| v.as_str()).is_some_and(|db| db != asked.named.db()),
        _ => false,
    };
    is_ours.then(|| {
        let array = |stages: &[&RawDoc]| {
            let mut a = ArrayBuilder::new();
            stages.iter().for_each(|stage| _ = a.raw_doc(stage));
            a.finish()
        };
        (array(front), array(&[last]))
    })
}

/// Who merges is who knows where the target's documents live.
async fn merge(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    route: &Route,
    asked: &Asked<'_>,
    (front, last): (DocBuf, DocBuf),
    elsewhere: bool,
) -> Result<Done> {
    let level = &ctx.read_concern;
    for sink in sinks_of(&last) {
        sink.check_level(level.level() == ReadLevel::Linearizable, &level.shell_text())?;
    }
    let q = router.query_ctx(ctx, route.table.as_deref(), asked.args.collation, asked.args.let_vars)?;
    Pipeline::parse(asked.args.pipeline, &q)?;
    let sink = Pipeline::parse(&last, &q)?.take_sink();
    let args = AggregateArgs { pipeline: &front, ..asked.args.clone() };
    let reading = Asked { named: asked.named.clone(), ns: asked.ns.clone(), args, explains: None };
    match (answer(router, ctx, req, route, &reading, elsewhere).await?, sink) {
        (Done::Cursor(cursor), Some(sink)) => {
            Writing { router, ctx, req, asked, q: &q }.run(sink, *cursor).await?;
            nothing(router, ctx)
        }
        (done, _) => Ok(done),
    }
}

/// Results were written, and none are told.
fn nothing(router: &Router, ctx: &OpCtx) -> Result<Done> {
    let none = RouterCursor::with_documents(Remotes::none(router, ctx), Vec::new(), Shape::default())?;
    Ok(Done::Cursor(Box::new(none)))
}

/// Stages that are about processes rather than collections: this one, or all shards.
async fn of_cluster(router: &Router, ctx: &OpCtx, req: &Request<'_>, asked: &Asked<'_>) -> Result<Done> {
    let q = router.query_ctx(ctx, None, asked.args.collation, asked.args.let_vars)?;
    let pipeline = Pipeline::parse(asked.args.pipeline, &q)?;
    if ctx.api.strict {
        pipeline.source().check_stable()?;
    }
    let split = pipeline.split(&|_| false)?;
    let shards = router.catalog.shards().await?;
    let all = || shards.iter().map(|s| Target::unversioned(s.entry.id.clone()));
    let (targets, own) = match (split.asked, pipeline.source()) {
        (Who::Nobody, PipelineSource::CurrentOp(spec)) => (Vec::new(), router.running_operations(ctx, spec)),
        (Who::Nobody, PipelineSource::LocalSessions(spec)) => {
            (Vec::new(), pando_session::listed(&router.sessions, ctx, "$listLocalSessions", spec)?)
        }
        (Who::Nobody, _) => (Vec::new(), own_documents(&pipeline, &q)?),
        _ => (all().collect(), Vec::new()),
    };
    let here = targets.is_empty();
    parts(router, ctx, req, asked, Parted { split, targets, q, own, here }).await
}

/// Whether a collection that stages name is sharded, or may be.
async fn joins_sharded(router: &Router, ns: &Namespace, pipeline: &RawDoc, may_be: bool) -> Result<bool> {
    let mut names = BTreeSet::new();
    involved(pipeline, &mut names);
    if may_be {
        return Ok(!names.is_empty());
    }
    for name in names {
        let Ok(other) = Namespace::new(ns.db(), name) else { continue };
        if router.catalog.route_if_any(&other).await?.is_some_and(|r| r.is_sharded()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// One shard does everything.
async fn whole(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    asked: &Asked<'_>,
    target: &Target,
) -> Result<Done> {
    let args = &asked.args;
    let own = |b: &mut DocBuilder| {
        append_name(b, &asked.ns);
        AggregateArgs { from_mongos: true, has_cursor: true, explain: false, ..args.clone() }.spell(b);
    };
    let preference = read_preference(req.body)?;
    let targets = std::slice::from_ref(target);
    if let Some(verbosity) = &asked.explains {
        let body = |target: &Target| envelope::explained(ctx, req, verbosity, target, own);
        let mut replies = router.gather(ctx, targets, &preference, Retry::Idempotent, body).await?;
        let reply = replies.pop().map(|(_, reply)| reply).unwrap_or_default();
        return Ok(Done::Told(handed_on(&reply)));
    }
    let body = |target: &Target| {
        let mut b = DocBuilder::with_capacity(req.body.byte_len() + 256);
        own(&mut b);
        envelope::append(&mut b, ctx, req, Kind::Pipeline, target);
        b.finish()
    };
    let (remotes, first, _) = Remotes::open(router, ctx, targets, &preference, false, body).await?;
    Ok(Done::Cursor(Box::new(RouterCursor::new(remotes, first, Shape::default())?)))
}

/// The collection, or 1 where there is none.
fn append_name(b: &mut DocBuilder, ns: &Namespace) {
    match ns.coll() {
        "$cmd.aggregate" => drop(b.i32("aggregate", 1)),
        coll => drop(b.str("aggregate", coll)),
    }
}

struct Parted {
    split: Split,
    targets: Vec<Target>,
    q: QueryCtx,
    /// Documents that the pipeline brings along.
    own: Vec<DocBuf>,
    /// There are no others.
    here: bool,
}

/// Shards do their part, and this router merges.
async fn parts(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    asked: &Asked<'_>,
    parted: Parted,
) -> Result<Done> {
    let Parted { mut split, targets, q, own, here } = parted;
    refuse_what_cannot_be_merged(ctx, &split)?;
    if let Some(verbosity) = &asked.explains {
        let told = super::explain::parts(router, ctx, req, asked, verbosity, &split, &targets).await;
        return told.map(Done::Told);
    }
    // Whoever merges writes.
    let sink = split.merger.take_sink().or_else(|| split.shards.take_sink());
    let stages = wire::stages(&split.shards.spelled());
    let body = |target: &Target| part_command(ctx, req, asked, &stages, &q, target);
    let (remotes, first, _) = match targets.is_empty() {
        true => (Remotes::none(router, ctx), Vec::new(), false),
        false => Remotes::open(router, ctx, &targets, &read_preference(req.body)?, false, body).await?,
    };
    let order = split.order.as_ref().map(|order| match order.by {
        OrderedBy::Carried => Order::carried(&order.pattern),
        OrderedBy::Fields => Order::fields(order.pattern.clone(), q.collation.clone()),
    });
    let mut shape = Shape { order, strips: Strip::All, ..Shape::default() };
    if !split.merger.is_empty() {
        let foreign = Foreign::new(router.shared()?, req);
        shape.stages = Some(Box::new(split.merger.start(&env_of(router, asked, &foreign))?));
        shape.wakes = Some(foreign.wakes());
    }
    let cursor = match here {
        false => RouterCursor::new(remotes, first, shape)?,
        true => RouterCursor::with_documents(remotes, own, shape)?,
    };
    if let Some(sink) = sink {
        Writing { router, ctx, req, asked, q: &q }.run(sink, cursor).await?;
        return nothing(router, ctx);
    }
    Ok(Done::Cursor(Box::new(cursor)))
}

fn refuse_what_cannot_be_merged(ctx: &OpCtx, split: &Split) -> Result<()> {
    let refuse = |text: &'static str| Err(Error::new(ErrorCode::CommandNotSupported, text));
    match split.host {
        // What is read besides would not be of the transaction.
        MergeHost::AnyShard | MergeHost::Primary if ctx.in_txn() => refuse(
            "joins of what lies on several shards are not supported in a transaction by this router yet",
        ),
        _ => Ok(()),
    }
}

/// The command for one shard's part.
fn part_command(
    ctx: &OpCtx,
    req: &Request<'_>,
    asked: &Asked<'_>,
    stages: &RawDoc,
    q: &QueryCtx,
    target: &Target,
) -> DocBuf {
    let mut b = DocBuilder::with_capacity(req.body.byte_len() + 256);
    append_part(&mut b, asked, stages, q);
    envelope::append(&mut b, ctx, req, Kind::Pipeline, target);
    b.finish()
}

pub(super) fn append_part(b: &mut DocBuilder, asked: &Asked<'_>, stages: &RawDoc, q: &QueryCtx) {
    let args = &asked.args;
    append_name(b, &asked.ns);
    // Merged by one order everywhere: the collection's own is said, too.
    let collation = q.collation.as_ref().map(|c| c.spec());
    let told = AggregateArgs {
        pipeline: stages,
        has_cursor: true,
        batch_size: None,
        explain: false,
        from_mongos: true,
        needs_merge: Some(true),
        collation: args.collation.or(collation),
        ..args.clone()
    };
    told.spell(b);
}
