//! `explain`: how a command would run, or ran.

use super::prelude::*;
use super::{aggregate, map_reduce};
pub(crate) use crate::explain::Verbosity;
use crate::explain::Work;
use crate::views::as_aggregation;
use crate::write::statements::parse_update;
use pando_bson::ArrayBuilder;
use pando_bson::shape::Shape;
use pando_catalog::Named;
use pando_command::concern::had_wrong_type;
use pando_command::generic_args::{check_max_time_of_aggregate, parse_max_time_ms};
use pando_command::request::{missing, wrong_type};
use pando_query::matcher::Matcher;
use pando_query::plan::{Hint, Query, natural_of};
use pando_query::sort::SortPattern;
use pando_request::{
    AggregateArgs, CountArgs, DeleteStatement, DistinctArgs, FindAndModifyArgs, FindArgs, UpdateStatement,
    WriteArgs,
};
use std::borrow::Cow;
use std::sync::Arc;

fn parse<'a>(req: &Request<'a>) -> Result<(&'a RawDoc, Verbosity)> {
    let inner = match req.first().value() {
        Value::Document(inner) => inner,
        Value::Null | Value::Undefined => return Err(missing("explain", "explain")),
        v => return Err(wrong_type("explain", "explain", &v, &["object"])),
    };
    let mut verbosity = Verbosity::AllPlans;
    for arg in req.args("explain") {
        match arg.name() {
            "verbosity" if arg.is_absent() => {}
            "verbosity" => {
                verbosity = match arg.str()? {
                    "queryPlanner" => Verbosity::Planner,
                    "executionStats" => Verbosity::Stats,
                    "allPlansExecution" => Verbosity::AllPlans,
                    other => {
                        return Err(Error::bad_value(format!(
                            "Enumeration value '{other}' for field 'explain.verbosity' is not a valid value."
                        )));
                    }
                }
            }
            _ => return Err(arg.unknown()),
        }
    }
    Ok((inner, verbosity))
}

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let (body, verbosity) = parse(&req)?;
    let invoked_as = body.first().map_or("", |e| e.name());
    let Some(spec) = server.registry.find(invoked_as) else {
        let text = format!("Explain failed due to unknown command: {invoked_as}");
        return Err(Error::new(ErrorCode::CommandNotFound, text));
    };
    if let Some(db) = body.get("$db").and_then(|v| v.as_str())
        && db != req.db
    {
        let text = format!("Mismatched $db in explain command. Expected {} but got {db}", req.db);
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let inner = Request { name: spec.name, invoked_as, body, sequences: &[], ..req };
    check_envelope(spec.name, body)?;
    match spec.name {
        "aggregate" => {
            let ns = aggregate::target(server, &inner)?;
            let args = AggregateArgs::parse(&inner)?;
            aggregation(server, ctx, &inner, ns, &args, verbosity).await
        }
        "mapReduce" => {
            let ns = map_reduce::target(server, &inner)?;
            let args = map_reduce::Args::parse(&inner)?;
            let agg = server.prepare_aggregation(ctx, args.spec(ns))?;
            finish_pipeline(server, ctx, &inner, agg, verbosity).await
        }
        "find" => {
            let ns = server.readable_ns_or_uuid(&inner)?;
            let args = FindArgs::parse(inner.args("FindCommandRequest"), ctx.api.strict)?;
            query(server, ctx, &inner, &ns, &args, Work::Find, verbosity).await
        }
        "count" => {
            let ns = server.readable_ns_or_uuid(&inner)?;
            let args = CountArgs::parse(&inner)?.find;
            query(server, ctx, &inner, &ns, &args, Work::Count, verbosity).await
        }
        "distinct" => {
            let ns = server.readable_ns_or_uuid(&inner)?;
            let args = DistinctArgs::parse(&inner)?;
            let work = Work::Distinct(args.key.to_owned());
            query(server, ctx, &inner, &ns, &args.find, work, verbosity).await
        }
        "update" => {
            WriteArgs::parse(&inner, "update", "updates")?;
            let docs = one_statement(&inner, "updates")?;
            let s = UpdateStatement::parse(docs)?;
            let let_vars = inner.body.get("let").and_then(|v| v.as_doc());
            write(server, ctx, &inner, &Write::update(&UpdateStatement { let_vars, ..s }), verbosity).await
        }
        "delete" => {
            WriteArgs::parse(&inner, "delete", "deletes")?;
            let s = DeleteStatement::parse(one_statement(&inner, "deletes")?)?;
            let w = Write::delete(&s);
            write(server, ctx, &inner, &w, verbosity).await
        }
        "findAndModify" => {
            let args = FindAndModifyArgs::parse(&inner)?;
            write(server, ctx, &inner, &Write::find_and_modify(&args), verbosity).await
        }
        "explain" => Err(Error::new(ErrorCode::IllegalOperation, "Explain cannot explain itself.")),
        name => Err(Error::new(ErrorCode::IllegalOperation, format!("Cannot explain cmd: {name}"))),
    }
}

/// What every command carries must be right within, too: the parts that a command has among its own arguments by the
/// words of those.
fn check_envelope(name: &str, body: &RawDoc) -> Result<()> {
    let owner = if name == "find" { "FindCommandRequest" } else { name };
    for field in ["readConcern", "writeConcern"] {
        let owns = field == "readConcern" && matches!(name, "find" | "aggregate" | "count")
            || field == "writeConcern" && matches!(name, "aggregate" | "findAndModify");
        if let Some(v) = body.get(field).filter(|_| owns) {
            Shape::Object.check(&format!("{owner}.{field}"), &v)?;
        }
    }
    // The others take it as they are told it outside.
    if let Some(v) = body.get("readConcern").filter(|v| v.as_doc().is_none())
        && name == "distinct"
    {
        return Err(had_wrong_type("readConcern", "object", &v));
    }
    match body.get("maxTimeMS") {
        Some(v) if name == "aggregate" => check_max_time_of_aggregate(&v),
        Some(v) if matches!(name, "find" | "count" | "distinct") => parse_max_time_ms(&v).map(drop),
        _ => Ok(()),
    }
}

fn one_statement<'a>(req: &Request<'a>, field: &str) -> Result<&'a RawDoc> {
    let mut docs = req.required_docs(req.name, field)?;
    match (docs.next(), docs.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(Error::new(ErrorCode::InvalidLength, "explained write batches must be of size 1")),
    }
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
    args: &FindArgs<'_>,
    work: Work,
    verbosity: Verbosity,
) -> Result<Reply> {
    let snapshot = server.catalog.snapshot();
    let coll = match snapshot.get(ns) {
        Some(Named::View(_)) => {
            crate::views::check_options(args)?;
            let mut spec = as_aggregation(ns, args)?;
            if let Work::Count = work {
                spec.pipeline = Cow::Owned(counted(&spec.pipeline));
            }
            let agg = server.prepare_aggregation(ctx, spec)?;
            return finish_pipeline(server, ctx, req, agg, verbosity).await;
        }
        Some(Named::Collection(c)) => Some(c),
        None => None,
    };
    let mut r = begin();
    let parsed = server.parse_find(ctx, ns, coll.map(|c| &**c), args)?;
    let everything = args.filter.is_none_or(RawDoc::is_empty) && args.hint.is_none();
    match (coll, &work) {
        (Some(coll), Work::Count) if everything => {
            server.explain_fast_count(coll, args.limit, args.skip, verbosity, &mut r.body);
        }
        _ => {
            server.explain_query(ctx, coll, parsed, work, verbosity, &mut r.body).await?;
        }
    }
    server.append_explain_tail(req.body, Some(req.db), &mut r.body);
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
    let agg = server.prepare_aggregation(ctx, aggregate::spec_of(args, ns))?;
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
    server.explain_pipeline(ctx, agg, verbosity, &mut r.body).await?;
    match below {
        Some(command) => server.append_explain_tail(&command, None, &mut r.body),
        None => server.append_explain_tail(req.body, Some(req.db), &mut r.body),
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
    w: &Write<'_>,
    verbosity: Verbosity,
) -> Result<Reply> {
    let ns = req.ns()?;
    let coll = server.existing_collection(&ns)?;
    let q = server.query_ctx(ctx, coll.as_deref(), w.collation, w.let_vars)?;
    let gives = w.fields.map(RawDoc::to_buf);
    let work = match &w.update {
        Some(s) => {
            Work::Update { plan: Box::new(parse_update(s, &q)?), multi: w.multi, upsert: w.upsert, gives }
        }
        None => Work::Delete { multi: w.multi, gives },
    };
    let mut query = Query::new(ns.as_str(), Arc::new(Matcher::parse(w.filter, &q)?), q);
    query.hint = w.hint.clone();
    if let Some(sort) = w.sort {
        query.natural = natural_of(sort)?;
        if query.natural.is_none() {
            query.sort = Some(Arc::new(SortPattern::parse(sort)?)).filter(|s| !s.is_empty());
            query.limit = query.sort.is_some().then_some(1);
        }
    }
    let mut r = begin();
    server.explain_query(ctx, coll.as_ref(), query, work, verbosity, &mut r.body).await?;
    server.append_explain_tail(req.body, Some(req.db), &mut r.body);
    Ok(r)
}
