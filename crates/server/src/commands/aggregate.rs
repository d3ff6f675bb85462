//! `aggregate`: a pipeline of stages.

use super::prelude::*;
use crate::aggregation::for_merge::marked;
use crate::aggregation::writing::Writing;
use crate::aggregation::{AggSpec, Aggregation, collectionless, watches};
use crate::cursors::body::CursorBody;
use crate::cursors::reply::Open;
use pando_query::collation::Collation;
use pando_query::stage::{Glance, first_look};
use pando_request::AggregateArgs;
use pando_request::read::read_concerns;
use std::borrow::Cow;

/// The pipeline of a command on `ns`, which may contain what was `seen`.
pub(crate) fn spec_of<'a>(args: &AggregateArgs<'a>, ns: Namespace, seen: Glance) -> AggSpec<'a> {
    let for_merge = args.from_mongos && args.needs_merge == Some(true);
    AggSpec {
        ns,
        for_merge,
        seen,
        pipeline: match for_merge {
            true => Cow::Owned(marked(args.pipeline)),
            false => Cow::Borrowed(args.pipeline),
        },
        collation: args.collation,
        let_vars: args.let_vars,
        hint: args.hint.clone(),
        allow_disk_use: args.allow_disk_use,
    }
}

/// The collection, or the stand-in for `aggregate: 1`.
pub(crate) fn target(server: &Server, req: &Request<'_>) -> Result<Namespace> {
    match req.first().value() {
        Value::String(_) => server.access.ns_or_uuid(req),
        v if v.is_number() && pando_bson::compare::cmp_values(v, Value::Int32(1)).is_eq() => {
            Ok(collectionless(req.db))
        }
        v if v.is_number() => Err(Error::failed_to_parse(
            "Invalid command format: the 'aggregate' field must specify a collection name or 1",
        )),
        v => Err(Error::type_mismatch(format!("collection name has invalid type: {}", v.type_name()))),
    }
}

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = target(server, &req)?;
    let args = AggregateArgs::parse(&req)?;
    let seen = first_look(args.pipeline, Some(req.db))?;
    ctx.arguments_read()?;
    if args.explain {
        if ctx.in_txn() {
            return Err(Error::new(
                ErrorCode::OperationNotSupportedInTransaction,
                "Operation not permitted in transaction :: caused by :: Explain for the aggregate command cannot run \
                 within a multi-document transaction",
            ));
        }
        if ctx.write_concern.is_some() {
            return Err(Error::failed_to_parse(
                "Aggregation explain does not support the'writeConcern' option",
            ));
        }
        let verbosity = super::explain::Verbosity::Planner;
        return Box::pin(super::explain::aggregation(server, ctx, &req, ns, &args, verbosity)).await;
    }
    read_concerns::check(ctx, args.pipeline)?;
    let streams = seen.watches && watches(args.pipeline);
    if args.collection_uuid.is_some() {
        check_names_a_collection(&ns, streams)?;
    }
    // A view that is watched is refused before that.
    if !streams {
        args.collation.map(Collation::parse).transpose()?;
    }
    if args.collection_uuid.is_some() {
        server.access.check_collection_uuid("aggregate", &req, &ns)?;
    }
    let open = Open { batch_size: args.batch_size, ..Open::new(ns.clone()) };
    let spec = spec_of(&args, ns.clone(), seen);
    let collation = spec.collation;
    let mut agg = server.crud.aggregations.prepare(ctx, spec)?;
    let reply = match agg.take_sink() {
        Some(_) if !server.replication.member.accepts_writes() => {
            Box::pin(server.replication.forward_to_primary(ctx, &req)).await?
        }
        Some(sink) => {
            ctx.will_write();
            let writing = Writing {
                sink,
                collation,
                bypass_validation: args.bypass_validation,
                let_vars: args.let_vars,
            };
            // What is seldom done makes no room for itself in what is done often.
            Box::pin(writing.run(&server.crud.aggregations, &server.crud.writes, ctx, &req, agg)).await?;
            Box::pin(open_nothing(server, ctx, &req, open)).await?
        }
        None => begin(server, ctx, &req, open, agg).await?,
    };
    server.statistics.time(&ns, crate::statistics::top::Kind::Command, false, ctx.elapsed());
    ctx.debug(|d| d.ns = ns.to_string());
    Ok(reply)
}

/// A UUID is that of a collection, and the command is about one.
fn check_names_a_collection(ns: &Namespace, streams: bool) -> Result<()> {
    if streams {
        return Err(Error::location(4_928_900, "collectionUUID is not supported for a change stream"));
    }
    if ns.coll() == "$cmd.aggregate" {
        let text = "collectionUUID is not supported for a collectionless aggregation";
        return Err(Error::location(4_928_901, text));
    }
    Ok(())
}

/// The reply of a pipeline that kept its results to itself: whatever the batch size, no cursor stays.
async fn open_nothing(server: &Server, ctx: &OpCtx, req: &Request<'_>, open: Open) -> Result<Reply> {
    let open = Open { batch_size: None, ..open };
    server.crud.cursors.begin(ctx, req, open, CursorBody::List(Vec::new().into_iter()), None).await
}

/// Runs an aggregation to its first batch.
pub(super) async fn begin(
    server: &Server,
    ctx: &OpCtx,
    req: &Request<'_>,
    open: Open,
    agg: Aggregation,
) -> Result<Reply> {
    let endless = agg.is_endless();
    let open = Open { tailable: open.tailable || endless, await_data: open.await_data || endless, ..open };
    let (body, source) = server.crud.aggregations.open(ctx, agg)?;
    server.crud.cursors.begin(ctx, req, open, body, source).await
}
