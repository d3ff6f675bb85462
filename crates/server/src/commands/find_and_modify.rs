//! `findAndModify`: changes one document and returns it, as it was or as it is now.

use super::prelude::*;
use crate::write::find_one::{Lookup, Told};
use crate::write::statements::{Updated, check_filter, in_plan, update_ctx};
use crate::write::writes::Retry;
use pando_access::Missing;
use pando_bson::Bson;
use pando_oplog::entry::ImageKind;
use pando_query::QueryCtx;
use pando_query::facts::MetaField;
use pando_query::matcher::{Matcher, Place};
use pando_query::plan::natural_of;
use pando_query::projection::Projection;
use pando_query::sort::SortPattern;
use pando_request::{FindAndModifyArgs, UpdateStatement};
use pando_session::retryable::{Done, Kind};

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = FindAndModifyArgs::parse(&req)?;
    let ns = req.ns()?;
    ctx.arguments_read()?;
    args.check()?;
    pando_access::check_writable(&ns)?;
    server.access.check_collection_uuid("findAndModify", &req, &ns)?;
    server.upkeep.admission.before_write(ctx).await?;
    let mut retry = Retry::begin(&server.crud.writes, ctx, req.body).await?;
    if let Some(done) = retry.done(0)? {
        let shown =
            server.sessions.retried_find_and_modify(&req, args.remove, args.new, args.upsert, &done)?;
        return retried(server, ctx, &args, &done, shown, &retry);
    }
    retry.image = Some(if args.new { ImageKind::Post } else { ImageKind::Pre });
    let outcome = if args.remove {
        remove(server, ctx, &ns, &args, &mut retry).await
    } else {
        update(server, ctx, &ns, &args, &mut retry).await
    };
    server.statistics.time(&ns, crate::statistics::top::Kind::Command, true, ctx.elapsed());
    ctx.debug(|d| {
        d.op = "command";
        d.ns = ns.to_string();
    });
    let (last_error, value) = match outcome {
        // What is wrong with the statement comes before what its collection is not.
        Err(e) if e.code == ErrorCode::CommandNotSupportedOnView => {
            check_statement(server, ctx, &ns, &args)?;
            return Err(e);
        }
        other => other?,
    };
    let mut r = Reply::with_capacity(256 + value.as_ref().map_or(0, |v| v.byte_len()));
    append(&mut r.body, &last_error, value.as_deref());
    Ok(r)
}

/// `lastErrorObject`.
struct LastError {
    n: i32,
    /// `None` for removals.
    updated_existing: Option<bool>,
    upserted: Option<Bson>,
}

fn append(b: &mut DocBuilder, last: &LastError, value: Option<&RawDoc>) {
    b.doc("lastErrorObject", |d| {
        d.i32("n", last.n);
        if let Some(existing) = last.updated_existing {
            d.bool("updatedExisting", existing);
        }
        if let Some(id) = &last.upserted {
            d.bson("upserted", id);
        }
    });
    match value {
        Some(v) => b.raw_doc("value", v),
        None => b.null("value"),
    };
}

async fn remove(
    server: &Server,
    ctx: &OpCtx,
    ns: &Namespace,
    args: &FindAndModifyArgs<'_>,
    retry: &mut Retry,
) -> Result<(LastError, Option<DocBuf>)> {
    let nothing = LastError { n: 0, updated_existing: None, upserted: None };
    let filter = args.query.unwrap_or(RawDoc::empty());
    let Some(coll) = server.access.write(ctx, ns, Missing::Nothing).await? else {
        // Mistakes are mistakes also where there is nothing to remove.
        check_statement(server, ctx, ns, args)?;
        return Ok((nothing, None));
    };
    let q = server.crud.reads.query_ctx(ctx, Some(coll.collection()), args.collation, args.let_vars)?;
    if args.fields.is_some() {
        // Mistakes in the query come before those in what is shown.
        Matcher::parse(filter, &q)?;
    }
    let projection = projection(args, &q)?;
    let metas = projection.as_ref().map_or(&[][..], Projection::metas);
    let lookup =
        Lookup::new(Place::Query, filter, args.hint.clone(), args.sort, q.clone(), coll.collection())?
            .saying_collation()
            .tell(metas)?;
    let deleted = server.crud.writes.delete_one(ctx, &coll, &lookup, 0, retry).await.map_err(in_plan)?;
    let Some((found, _)) = deleted else { return Ok((nothing, None)) };
    let value = project(projection.as_ref(), filter, &q, RawDoc::trusted(&found.doc), found.told.as_deref())?;
    server.instance.metrics.documents.deleted.inc();
    Ok((LastError { n: 1, updated_existing: None, upserted: None }, Some(value)))
}

async fn update(
    server: &Server,
    ctx: &OpCtx,
    ns: &Namespace,
    args: &FindAndModifyArgs<'_>,
    retry: &mut Retry,
) -> Result<(LastError, Option<DocBuf>)> {
    let s = statement(args);
    let q = server.crud.reads.query_ctx(ctx, None, args.collation, args.let_vars)?;
    let mut shows = true;
    if args.fields.is_some() {
        // Mistakes in the update and its query come before those in what is shown.
        let q = update_ctx(&server.crud.reads, ctx, None, &s)?;
        s.plan(&q)?;
        Matcher::parse_in(s.place(), s.filter, &q)?;
        // Where there is nothing to show, nobody reads what is to be shown.
        let exists = server.access.collection(ctx, ns)?.is_some();
        shows = exists || args.upsert;
    }
    let projection = if shows { projection(args, &q)? } else { None };
    if args.new && projection.as_ref().is_some_and(Projection::needs_array_index) {
        return Err(Error::bad_value("cannot use a positional projection and return the new document"));
    }
    let metas = projection.as_ref().map_or(&[][..], Projection::metas);
    let (done, images) = server.crud.writes.find_and_update(ctx, ns, &s, args.sort, metas, retry).await?;
    let Updated { matched, modified, upserted } = done;
    server.instance.metrics.documents.updated.add(modified);
    let last = LastError {
        n: i32::from(matched > 0 || upserted.is_some()),
        updated_existing: Some(matched > 0),
        upserted: upserted.clone(),
    };
    let told = images.told.as_deref();
    let shown = match (args.new, images.new, images.old) {
        (true, Some(new), _) => Some(project(projection.as_ref(), s.filter, &q, &new, told)?),
        // Nothing changed: the old document is the new one.
        (true, None, Some(old)) | (false, _, Some(old)) => {
            Some(project(projection.as_ref(), s.filter, &q, RawDoc::trusted(&old), told)?)
        }
        _ => None,
    };
    Ok((last, shown))
}

fn statement<'a>(args: &FindAndModifyArgs<'a>) -> UpdateStatement<'a> {
    UpdateStatement {
        filter: args.query.unwrap_or(RawDoc::empty()),
        update: args.update.unwrap_or(Value::Null),
        array_filters: args.array_filters,
        collation: args.collation,
        let_vars: args.let_vars,
        hint: args.hint.clone(),
        upsert: args.upsert,
        bypass_validation: args.bypass_validation,
        ..UpdateStatement::default()
    }
}

/// What is wrong with the statement by itself.
fn check_statement(server: &Server, ctx: &OpCtx, ns: &Namespace, args: &FindAndModifyArgs<'_>) -> Result<()> {
    let s = statement(args);
    let q = update_ctx(&server.crud.reads, ctx, None, &s)?;
    if !args.remove {
        s.plan(&q)?;
    }
    check_filter(ns, s.filter, s.hint.as_ref(), &q)?;
    check_sort(args)
}

/// The projection of the reply.
fn projection(args: &FindAndModifyArgs<'_>, q: &QueryCtx) -> Result<Option<Projection>> {
    let Some(spec) = args.fields else { return Ok(None) };
    // What is wrong with the sort comes first.
    check_sort(args)?;
    let projection = Projection::parse(spec, q)?;
    check_shown(&projection)?;
    Ok(Some(projection))
}

/// What `fields` cannot ask for.
pub(super) fn check_shown(projection: &Projection) -> Result<()> {
    match projection.metas().contains(&MetaField::SortKey) {
        true => Err(Error::bad_value("Cannot use a $meta sortKey projection in findAndModify commands.")),
        false => Ok(()),
    }
}

fn check_sort(args: &FindAndModifyArgs<'_>) -> Result<()> {
    match args.sort.filter(|s| !matches!(natural_of(s), Ok(Some(_)))) {
        Some(sort) => SortPattern::parse(sort).map(drop),
        None => Ok(()),
    }
}

/// The document as `fields` shows it. A positional projection asks the filter again which element matched.
fn project(
    projection: Option<&Projection>,
    filter: &RawDoc,
    q: &QueryCtx,
    doc: &RawDoc,
    told: Option<&Told>,
) -> Result<DocBuf> {
    let Some(p) = projection else { return Ok(doc.to_buf()) };
    let mut row = told.map(Told::row).unwrap_or_default();
    if p.needs_array_index() {
        let details = Matcher::parse(filter, q)?.matches_position(doc)?;
        row.array_index = details.and_then(|d| d.array_index);
    }
    p.apply(doc, &row).map_err(in_plan)
}

/// The reply of the first try, told again.
fn retried(
    server: &Server,
    ctx: &OpCtx,
    args: &FindAndModifyArgs<'_>,
    done: &Done,
    shown: Option<DocBuf>,
    retry: &Retry,
) -> Result<Reply> {
    let q = server.crud.reads.query_ctx(ctx, None, args.collation, args.let_vars)?;
    let projection = projection(args, &q)?;
    let filter = args.query.unwrap_or(RawDoc::empty());
    let shown = shown.map(|doc| project(projection.as_ref(), filter, &q, &doc, None)).transpose()?;
    let is_upsert = done.kind == Kind::Insert;
    let last = LastError {
        n: 1,
        updated_existing: (done.kind != Kind::Delete).then_some(!is_upsert),
        upserted: server.sessions.upserted_id(done)?,
    };
    let mut r = Reply::with_capacity(256 + shown.as_ref().map_or(0, |v| v.byte_len()));
    append(&mut r.body, &last, shown.as_deref());
    r.body.i32("retriedStmtId", retry.retried.first().copied().unwrap_or(0));
    Ok(r)
}
