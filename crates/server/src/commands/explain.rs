//! `explain`: how a command would run, or ran.

use super::find_and_modify::check_shown;
use super::prelude::*;
use super::{aggregate, map_reduce};
pub(crate) use crate::explain::Verbosity;
use crate::explain::{self, Work};
use crate::views::as_aggregation;
use crate::write::statements::update_ctx;
use pando_access::Reading;
use pando_bson::ArrayBuilder;
use pando_command::Flags;
use pando_query::collation::Collation;
use pando_query::matcher::{Matcher, Place};
use pando_query::plan::{Hint, Query, natural_of};
use pando_query::projection::{Projection, check_path};
use pando_query::sort::SortPattern;
use pando_query::stage::first_look;
use pando_request::read::explain::Explained;
use pando_request::{
    AggregateArgs, DeleteStatement, ExplainArgs, FindAndModifyArgs, FindArgs, UpdateStatement,
};
use pando_storage::ReadAt;
use std::borrow::Cow;
use std::sync::Arc;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    if !req.sequences.is_empty() {
        let text = "The explain command does not support document sequences.";
        return Err(Error::location(40472, text));
    }
    let verbosity = match ExplainArgs::parse(&req)?.verbosity {
        Some("queryPlanner") => Verbosity::Planner,
        Some("executionStats") => Verbosity::Stats,
        _ => Verbosity::AllPlans,
    };
    let body = ExplainArgs::inner(&req)?;
    let invoked_as = body.first().map_or("", |e| e.name());
    let Some(spec) = server.registry.find(invoked_as) else {
        let text = format!("Explain failed due to unknown command: {invoked_as}");
        return Err(Error::new(ErrorCode::CommandNotFound, text));
    };
    ExplainArgs::check_database(body, req.db)?;
    // The command within says when its arguments are looked at.
    if !(spec.flags.has(Flags::ARGS_FIRST) && Explained::has(spec.name)) {
        ctx.arguments_read()?;
    }
    let inner = Request { name: spec.name, invoked_as, body, sequences: &[], ..req };
    let named = |inner: &Request<'_>| match inner.name {
        "aggregate" => aggregate::target(server, inner),
        "mapReduce" => map_reduce::target(server, inner),
        // Here a name of another type, a UUID among them, is a bad namespace.
        "find" | "count" | "distinct" => {
            let ns = inner.ns_of_ddl()?;
            ns.check_readable().map(|()| ns)
        }
        _ => inner.ns(),
    };
    let (ns, command) = Explained::parse(&inner, ctx.api.strict, named, || ctx.arguments_read())?;
    ctx.arguments_read()?;
    ctx.show(|op| op.ns = ns.to_string());
    match &command {
        Explained::Aggregate(args) => aggregation(server, ctx, &inner, ns, args, verbosity).await,
        Explained::MapReduce(args) => {
            map_reduce::check_target(&args.out.target, inner.db)?;
            let agg = server.crud.aggregations.prepare(ctx, map_reduce::spec_of(args, ns))?;
            finish_pipeline(server, ctx, &inner, agg, verbosity).await
        }
        Explained::Find(args) => query(server, ctx, &inner, &ns, [args, args], Work::Find, verbosity).await,
        Explained::Count(args) => {
            let args = [&args.find, &args.on_view()];
            query(server, ctx, &inner, &ns, args, Work::Count, verbosity).await
        }
        Explained::Distinct(args) => {
            let work = Work::Distinct(args.key.to_owned());
            query(server, ctx, &inner, &ns, [&args.find, &args.find], work, verbosity).await
        }
        Explained::Update(_, s) => write(server, ctx, &inner, &ns, &Write::update(s), verbosity).await,
        Explained::Delete(_, s) => write(server, ctx, &inner, &ns, &Write::delete(s), verbosity).await,
        Explained::FindAndModify(args) => {
            write(server, ctx, &inner, &ns, &Write::find_and_modify(args), verbosity).await
        }
    }
}

fn append_tail(server: &Server, command: &RawDoc, db: Option<&str>, b: &mut DocBuilder) {
    explain::append_tail(&server.config, &server.instance.params, command, db, b);
}

fn begin() -> Reply {
    let mut r = Reply::with_capacity(4096);
    r.body.str("explainVersion", "1");
    r
}

/// find, count, distinct; on views they are aggregations.
async fn query(
    server: &Server,
    ctx: &OpCtx,
    req: &Request<'_>,
    ns: &Namespace,
    [args, on_view]: [&FindArgs<'_>; 2],
    work: Work,
    verbosity: Verbosity,
) -> Result<Reply> {
    let coll = match server.access.read(ctx, ns, ReadAt::Latest)? {
        Reading::View(_) => {
            if !matches!(work, Work::Count) {
                server.crud.reads.parse_find(ctx, ns, None, args)?;
            }
            if let Work::Distinct(key) = &work {
                check_path(key)?;
            }
            crate::views::check_options(args)?;
            let mut spec = as_aggregation(ns, on_view)?;
            if let Work::Count = work {
                spec.pipeline = Cow::Owned(counted(&spec.pipeline));
            }
            let agg = server.crud.aggregations.prepare(ctx, spec)?;
            return finish_pipeline(server, ctx, req, agg, verbosity).await;
        }
        Reading::Collection(c) => Some(c),
        Reading::Missing => None,
    };
    let mut r = begin();
    let parsed = server.crud.reads.parse_find(ctx, ns, coll.as_deref(), args)?;
    if coll.as_deref().is_some_and(|c| parsed.tailable && !c.is_capped()) {
        return Err(parsed.not_capped());
    }
    let everything = args.filter.is_none_or(RawDoc::is_empty) && args.hint.is_none();
    match (&coll, &work) {
        (Some(coll), Work::Count) if everything => {
            explain::fast_count(coll, args.limit, args.skip, verbosity, &mut r.body);
        }
        _ => {
            explain::query(&server.crud.reads, ctx, coll.as_ref(), parsed, work, verbosity, &mut r.body)
                .await?;
        }
    }
    append_tail(server, req.body, Some(req.db), &mut r.body);
    Ok(r)
}

/// The stages, and behind them a count.
fn counted(pipeline: &RawDoc) -> DocBuf {
    let mut b = ArrayBuilder::new();
    for stage in pipeline {
        b.value(stage.value());
    }
    b.doc(|d| {
        d.str("$count", "count");
    });
    b.finish()
}

pub(crate) async fn aggregation(
    server: &Server,
    ctx: &OpCtx,
    req: &Request<'_>,
    ns: Namespace,
    args: &AggregateArgs<'_>,
    verbosity: Verbosity,
) -> Result<Reply> {
    let seen = first_look(args.pipeline, Some(req.db))?;
    args.collation.map(Collation::parse).transpose()?;
    server.access.check_collection_uuid("aggregate", req, &ns)?;
    let agg = server.crud.aggregations.prepare(ctx, aggregate::spec_of(args, ns, seen))?;
    finish_pipeline(server, ctx, req, agg, verbosity).await
}

async fn finish_pipeline(
    server: &Server,
    ctx: &OpCtx,
    req: &Request<'_>,
    agg: crate::aggregation::Aggregation,
    verbosity: Verbosity,
) -> Result<Reply> {
    // A read of a view is shown as what it became.
    let below = agg.view.as_ref().map(|v| {
        let mut b = DocBuilder::new();
        b.str("aggregate", v.ns.coll());
        b.raw_array("pipeline", &agg.raw);
        b.doc("cursor", |_| {});
        match &v.collation {
            Some(c) => b.raw_doc("collation", c),
            None => b.doc("collation", |c| {
                c.str("locale", "simple");
            }),
        };
        b.finish()
    });
    let mut r = begin();
    explain::pipelines::pipeline(&server.crud.aggregations, ctx, agg, verbosity, &mut r.body).await?;
    match below {
        Some(command) => append_tail(server, &command, None, &mut r.body),
        None => append_tail(server, req.body, Some(req.db), &mut r.body),
    }
    Ok(r)
}

/// The parts of a write that its plan depends on.
struct Write<'a> {
    filter: &'a RawDoc,
    hint: Option<Hint>,
    collation: Option<&'a RawDoc>,
    let_vars: Option<&'a RawDoc>,
    sort: Option<&'a RawDoc>,
    /// `None` = a delete.
    update: Option<UpdateStatement<'a>>,
    multi: bool,
    upsert: bool,
    /// What a `findAndModify` shows of the document; empty = all.
    fields: Option<&'a RawDoc>,
}

impl<'a> Write<'a> {
    fn update(s: &UpdateStatement<'a>) -> Write<'a> {
        Write {
            filter: s.filter,
            hint: s.hint.clone(),
            collation: s.collation,
            let_vars: s.let_vars,
            sort: None,
            update: Some(s.clone()),
            multi: s.multi,
            upsert: s.upsert,
            fields: None,
        }
    }
    fn delete(s: &DeleteStatement<'a>) -> Write<'a> {
        Write {
            filter: s.filter,
            hint: s.hint.clone(),
            collation: s.collation,
            let_vars: s.let_vars,
            sort: None,
            update: None,
            multi: s.multi,
            upsert: false,
            fields: None,
        }
    }
    fn find_and_modify(a: &FindAndModifyArgs<'a>) -> Write<'a> {
        let filter = a.query.unwrap_or(RawDoc::empty());
        let statement = UpdateStatement {
            filter,
            update: a.update.unwrap_or(Value::Null),
            array_filters: a.array_filters,
            collation: a.collation,
            let_vars: a.let_vars,
            upsert: a.upsert,
            ..UpdateStatement::default()
        };
        Write {
            filter,
            hint: a.hint.clone(),
            collation: a.collation,
            let_vars: a.let_vars,
            sort: a.sort,
            update: (!a.remove).then_some(statement),
            multi: false,
            upsert: a.upsert,
            fields: Some(a.fields.unwrap_or(RawDoc::empty())),
        }
    }
}

async fn write(
    server: &Server,
    ctx: &OpCtx,
    req: &Request<'_>,
    ns: &Namespace,
    w: &Write<'_>,
    verbosity: Verbosity,
) -> Result<Reply> {
    // What is wrong with the statement comes before what its collection is not.
    let (coll, refused) = match server.access.collection(ctx, ns) {
        Err(e) if e.code == ErrorCode::CommandNotSupportedOnView => (None, Some(e)),
        other => (other?, None),
    };
    let q = match &w.update {
        Some(s) => update_ctx(&server.crud.reads, ctx, coll.as_deref(), s)?,
        None => server.crud.reads.query_ctx(ctx, coll.as_deref(), w.collation, w.let_vars)?,
    };
    let place = w.update.as_ref().map_or(Place::Query, |s| s.place());
    let gives = w.fields.map(RawDoc::to_buf);
    let work = match &w.update {
        Some(s) => Work::Update { plan: Box::new(s.plan(&q)?), multi: w.multi, upsert: w.upsert, gives },
        None => Work::Delete { multi: w.multi, gives },
    };
    let mut query = Query::new(ns.as_str(), Arc::new(Matcher::parse_in(place, w.filter, &q)?), q);
    query.hint = w.hint.clone();
    if let Some(sort) = w.sort {
        query.natural = natural_of(sort)?;
        if query.natural.is_none() {
            query.sort = Some(Arc::new(SortPattern::parse(sort)?)).filter(|s| !s.is_empty());
            query.limit = query.sort.is_some().then_some(1);
        }
    }
    if let Some(e) = refused {
        return Err(e);
    }
    if let (Some(spec), Some(_)) = (w.fields, &coll) {
        check_shown(&Projection::parse(spec, &query.ctx)?)?;
    }
    let mut r = begin();
    explain::query(&server.crud.reads, ctx, coll.as_ref(), query, work, verbosity, &mut r.body).await?;
    append_tail(server, req.body, Some(req.db), &mut r.body);
    Ok(r)
}
