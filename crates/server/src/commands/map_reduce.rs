//! `mapReduce`: documents into keys and values, the values of a key into one. Deprecated since 5.0 in favour of `aggregate`, which
//! carries it out.

use super::prelude::*;
use crate::aggregation::AggSpec;
use crate::aggregation::writing::Writing;
use pando_access::Named;
use pando_base::limits::BSON_USER_BYTES_MAX;
use pando_bson::ArrayBuilder;
use pando_env::Component;
use pando_query::stage::Glance;
use pando_request::MapReduceArgs;
use pando_request::read::map_reduce::{CONTEXT, Output};
use pando_request::read::map_reduce_pipeline::EMIT_TAKES;
use std::borrow::Cow;
use std::sync::atomic::Ordering::Relaxed;

/// Of so many, one is told in the log.
const TOLD_EVERY: u64 = 128;

/// The aggregation that answers.
pub(super) fn spec_of<'a>(args: &MapReduceArgs<'a>, ns: Namespace) -> AggSpec<'a> {
    AggSpec {
        ns,
        pipeline: Cow::Owned(args.pipeline()),
        collation: args.collation(),
        let_vars: None,
        hint: None,
        allow_disk_use: Some(true),
        for_merge: false,
        seen: Glance::ANYTHING,
    }
}

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = MapReduceArgs::parse(&req)?;
    let ns = target(server, &req)?;
    args.check()?;
    if server.statistics.map_reduces.fetch_add(1, Relaxed).is_multiple_of(TOLD_EVERY) {
        let text = "The map reduce command is deprecated. For more information, see \
                    https://docs.mongodb.com/manual/core/map-reduce/";
        server.instance.env.log.warn(Component::Command, 5_725_801, text, |_| {});
    }
    let mut reply = Reply::new();
    match &args.out.target {
        Output::Inline => {
            if ctx.write_concern.is_some() {
                return Err(Error::new(ErrorCode::InvalidOptions, "Command does not support writeConcern"));
            }
            let results = results(server, ctx, spec_of(&args, ns.clone())).await.map_err(in_map_reduce)?;
            reply.body.raw_array("results", &results);
        }
        Output::Replace(db, coll) | Output::Merge(db, coll) | Output::Reduce(db, coll) => {
            check_target(&args.out.target, req.db)?;
            if !server.replication.member.accepts_writes() {
                return server.replication.forward_to_primary(ctx, &req).await;
            }
            write(server, ctx, &req, &args, ns.clone()).await.map_err(in_map_reduce)?;
            match db {
                None => reply.body.str("result", coll),
                Some(db) => reply.body.doc("result", |r| {
                    r.str("db", db).str("collection", coll);
                }),
            };
        }
    }
    server.statistics.time(&ns, crate::statistics::top::Kind::Command, false, ctx.elapsed());
    ctx.debug(|d| d.ns = ns.to_string());
    Ok(reply)
}

/// Views have no place of their own to read from (166).
pub(super) fn target(server: &Server, req: &Request<'_>) -> Result<Namespace> {
    req.coll()?;
    let ns = server.access.readable_ns_or_uuid(req)?;
    match server.access.definitions().named(&ns) {
        Some(Named::View(_)) => {
            Err(Error::new(ErrorCode::CommandNotSupportedOnView, "mapReduce on a view is not supported"))
        }
        _ => Ok(ns),
    }
}

/// What a target of results may not be; `db` is that of the command.
pub(super) fn check_target(target: &Output<'_>, db: &str) -> Result<()> {
    let (given, coll, codes) = match target {
        Output::Inline => return Ok(()),
        Output::Replace(given, coll) => (*given, *coll, [31321, 17385]),
        Output::Merge(given, coll) | Output::Reduce(given, coll) => (*given, *coll, [31320, 31319]),
    };
    let internal = |db: &str| matches!(db, "admin" | "config" | "local");
    let into = given.unwrap_or(db);
    if given.is_some_and(internal) {
        let text = "cannot target internal database as output";
        return Err(Error::new(ErrorCode::CommandNotSupported, text));
    }
    if coll.is_empty() {
        let text = format!("Invalid output namespace {into}. for MapReduce");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    if internal(into) {
        let text = format!("Can't output mapReduce results to internal DB {into}");
        return Err(Error::location(codes[0], text));
    }
    if coll.starts_with("system.") {
        let text = format!("Can't output mapReduce results to special collection {coll}");
        return Err(Error::location(codes[1], text));
    }
    Ok(())
}

async fn results(server: &Server, ctx: &OpCtx, spec: AggSpec<'_>) -> Result<DocBuf> {
    let mut all = ArrayBuilder::new();
    let mut bytes = 0;
    let mut each = |doc: &RawDoc| {
        bytes += doc.byte_len();
        if bytes > BSON_USER_BYTES_MAX {
            let text = "mapReduce results do not fit into a reply: use 'out' with a collection";
            return Err(Error::new(ErrorCode::BSONObjectTooLarge, text));
        }
        all.raw_doc(doc);
        Ok(())
    };
    server.crud.aggregations.each(ctx, spec, &mut each).await?;
    Ok(all.finish())
}

async fn write(
    server: &Server,
    ctx: &OpCtx,
    req: &Request<'_>,
    args: &MapReduceArgs<'_>,
    ns: Namespace,
) -> Result<()> {
    if let Output::Replace(db, coll) = &args.out.target {
        let to = Namespace::unchecked(db.unwrap_or(req.db), coll);
        if server.access.time_series(&to).is_some() {
            let text = format!("Namespace {to} is a timeseries collection");
            return Err(Error::new(ErrorCode::CommandNotSupportedOnView, text));
        }
    }
    let mut agg = server.crud.aggregations.prepare(ctx, spec_of(args, ns))?;
    let Some(sink) = agg.take_sink() else {
        return Err(Error::internal("a pipeline without its $out or $merge"));
    };
    ctx.will_write();
    let writing = Writing {
        sink,
        collation: args.collation(),
        bypass_validation: args.bypass_validation == Some(true),
        let_vars: None,
    };
    writing.run(&server.crud.aggregations, &server.crud.writes, ctx, req, agg).await
}

/// The client knows nothing of pipelines.
fn in_map_reduce(mut e: Error) -> Error {
    let of_pipeline = format!("{} :: caused by :: ", crate::cursors::pipeline::ERROR_CONTEXT);
    if let Some(text) = e.message.strip_prefix(&of_pipeline) {
        e.message = text.to_owned().into();
    }
    if e.message.contains(EMIT_TAKES) {
        e.code = ErrorCode(31220);
    }
    e.context(CONTEXT)
}
