//! `find`: the first batch of a query, and a cursor for the rest.

use super::prelude::*;
use crate::cursors::batch::Batch;
use crate::cursors::body::CursorBody;
use crate::cursors::oplog_tail::{self, OplogTail};
use crate::cursors::query::QueryCursor;
use crate::cursors::reply::Open;
use crate::read::point::reads_latest;
use crate::read::query_ctx::simple_id;
use crate::views;
use pando_access::{Acquisition, Reading};
use pando_bson::Elem;
use pando_request::FindArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    // tour: find 3/9
    let args = FindArgs::read(req.args("FindCommandRequest"), ctx.api.strict)?;
    // A UUID is looked up last.
    let ns = server.access.ns_or_uuid(&req).or_else(|e| match e.code {
        ErrorCode::NamespaceNotFound => args.check().and(Err(e)),
        _ => Err(e),
    })?;
    args.check()?;
    ns.check_readable()?;
    if args.collection_uuid.is_some() {
        refuse_two_uuids("find", &req)?;
        server.access.check_collection_uuid("FindCommandRequest", &req, &ns)?;
    }
    server.instance.metrics.op_counters.query.inc();
    let reply = match &server.crud.reads.read(ctx, &ns)? {
        Reading::Missing => {
            // Mistakes are mistakes also where there is nothing to find.
            server.crud.reads.parse_find(ctx, &ns, None, &args)?;
            empty(&ns)
        }
        Reading::View(_) => find_on_view(server, ctx, &req, &ns, &args).await?,
        Reading::Collection(coll) => match only_id(ctx, coll, &args) {
            Some(id) => by_id(server, ctx, coll, id)?,
            None => find_in(server, ctx, &req, coll, &args).await?,
        },
    };
    server.statistics.time(&ns, crate::statistics::top::Kind::Query, false, ctx.elapsed());
    ctx.debug(|d| {
        d.op = "query";
        d.ns = ns.to_string();
    });
    Ok(reply)
}

/// The collection is named by one UUID already.
fn refuse_two_uuids(command: &str, req: &Request<'_>) -> Result<()> {
    match req.first().value() {
        Value::Binary { .. } => Err(Error::new(
            ErrorCode::InvalidOptions,
            format!(
                "When using the {command} command by UUID, the collectionUUID parameter cannot also be specified"
            ),
        )),
        _ => Ok(()),
    }
}

fn empty(ns: &Namespace) -> Reply {
    let mut r = Reply::new();
    Batch::begin(&mut r.body, "firstBatch", 0).end(0, ns.as_str(), |_| {});
    r
}

/// The `_id` of a query that one point get answers: no planner, no cursor.
fn only_id<'a>(ctx: &OpCtx, coll: &Acquisition, args: &FindArgs<'a>) -> Option<Elem<'a>> {
    let plain = args.projection.is_none()
        && args.collation.is_none()
        && args.hint.is_none()
        && args.skip == 0
        && args.batch_size != Some(0)
        && args.min.is_none()
        && args.max.is_none()
        && !args.return_key
        && !args.show_record_id
        && !args.tailable;
    // Without rows or an `_id` index (oplog, profile) there is nothing to get from.
    let reachable = coll.is_stored() && (coll.id_index().is_some() || coll.is_clustered());
    let id = simple_id(args.filter?)?;
    (plain && reachable && reads_latest(ctx)).then_some(id)
}

fn by_id(server: &Server, ctx: &OpCtx, coll: &Acquisition, id: Elem<'_>) -> Result<Reply> {
    let found = server.access.find_id(coll, id)?;
    let n = u64::from(found.is_some());
    let mut r = Reply::with_capacity(128 + found.as_ref().map_or(0, |doc| doc.len()));
    let mut batch = Batch::begin(&mut r.body, "firstBatch", 1);
    if let Some(doc) = &found {
        batch.push(doc);
    }
    batch.end(0, coll.ns.as_str(), |_| {});
    let documents = &server.instance.metrics.documents;
    documents.returned.add(n);
    documents.scanned_keys.add(n);
    documents.scanned_docs.add(n);
    if let Some(index) = coll.id_index() {
        index.used();
    }
    server.crud.cursors.open.count_unparked();
    ctx.debug(|d| {
        d.plan_summary.push_str("IDHACK");
        d.keys_examined = Some(n);
        d.docs_examined = Some(n);
        d.n_returned = Some(n);
    });
    Ok(r)
}

async fn find_in(
    server: &Server,
    ctx: &OpCtx,
    req: &Request<'_>,
    coll: &Acquisition,
    args: &FindArgs<'_>,
) -> Result<Reply> {
    if args.tailable && ctx.in_txn() {
        return Err(Error::new(
            ErrorCode::InvalidOptions,
            "It is illegal to open a tailable cursor in a transaction",
        ));
    }
    if args.tailable && !coll.is_capped() {
        return Err(server.crud.reads.parse_find(ctx, &coll.ns, Some(coll), args)?.not_capped());
    }
    server.access.check_oplog_readable(coll)?;
    let tail = if coll.is_oplog() { oplog_tail::start_of(args) } else { None };
    let (body, source) = match tail {
        Some(from) => {
            let tail = OplogTail::new(server.storage.log(), from, args);
            (CursorBody::Oplog(Box::new(tail)), None)
        }
        None => {
            let (cursor, source) = QueryCursor::open(&server.crud.reads, ctx, coll, args)?;
            (CursorBody::Query(Box::new(cursor)), Some(source))
        }
    };
    let open = Open {
        batch_size: args.batch_size,
        no_timeout: args.no_cursor_timeout,
        tailable: args.tailable,
        await_data: args.await_data,
        single_batch: args.single_batch,
        ..Open::new(coll.ns.clone())
    };
    server.crud.cursors.begin(ctx, req, open, body, source).await
}

async fn find_on_view(
    server: &Server,
    ctx: &OpCtx,
    req: &Request<'_>,
    view: &Namespace,
    args: &FindArgs<'_>,
) -> Result<Reply> {
    // What is wrong with a find is wrong before it becomes stages.
    server.crud.reads.parse_find(ctx, view, None, args)?;
    views::check_options(args)?;
    let open = Open { batch_size: args.batch_size, ..Open::new(view.clone()) };
    let agg = server.crud.aggregations.prepare(ctx, views::as_aggregation(view, args)?)?;
    super::aggregate::begin(server, ctx, req, open, agg).await
}
