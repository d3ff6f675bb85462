//! `mapReduce`: documents into keys and values, the values of a key into one. Deprecated since 5.0 in favour of `aggregate`, which
//! carries it out.

use super::prelude::*;
use crate::aggregation::AggSpec;
use crate::aggregation::map_reduce::{EMIT_TAKES, MapReduce, Output, function_text};
use crate::aggregation::writing::Writing;
use pando_base::limits::BSON_USER_BYTES_MAX;
use pando_bson::ArrayBuilder;
use pando_catalog::Named;
use pando_command::args::Arg;
use pando_command::request::missing;
use pando_env::Component;
use pando_query::collation::Collation;
use std::borrow::Cow;
use std::sync::atomic::Ordering::Relaxed;

/// Of so many, one is told in the log.
const TOLD_EVERY: u64 = 128;
const CONTEXT: &str = "MapReduce internal error";

pub(super) struct Args<'a> {
    of: MapReduce<'a>,
    collation: Option<&'a RawDoc>,
    bypass: bool,
}

impl<'a> Args<'a> {
    pub(super) fn parse(req: &Request<'a>) -> Result<Args<'a>> {
        let (mut map, mut reduce, mut finalize, mut out) = (None, None, None, None);
        let (mut scope, mut query, mut sort, mut limit, mut collation) = (None, None, None, None, None);
        let mut bypass = false;
        for arg in req.args("mapReduce") {
            match arg.name() {
                "map" => map = Some(code(&arg)?),
                "reduce" => reduce = Some(code(&arg)?),
                "out" => out = Some(output(&arg)?),
                "finalize" | "scope" if matches!(arg.value(), Value::Null) => {}
                "query"
                | "sort"
                | "limit"
                | "collation"
                | "bypassDocumentValidation"
                | "verbose"
                | "jsMode"
                | "shardedFirstPass"
                    if arg.is_absent() => {}
                "finalize" => finalize = Some(code(&arg)?),
                "scope" => match arg.value() {
                    Value::Document(d) => scope = Some(d),
                    _ => return Err(Error::bad_value("'scope' must be an object")),
                },
                "query" => query = Some(arg.doc()?),
                "sort" => {
                    sort = Some(arg.doc()?);
                    if sort.is_some_and(RawDoc::is_empty) {
                        let text = "The mapReduce sort option must have at least one sort key";
                        return Err(Error::location(15976, text));
                    }
                }
                "limit" => limit = Some(at_least_one(&arg)?),
                "collation" => collation = Some(arg.doc()?).filter(|d| !d.is_empty()),
                "bypassDocumentValidation" => bypass = arg.bool()?,
                "verbose" | "jsMode" | "shardedFirstPass" => drop(arg.bool()?),
                "inputDB" => {}
                _ => return Err(arg.unknown()),
            }
        }
        let absent = |name| missing("mapReduce", name);
        let of = MapReduce {
            map: map.ok_or_else(|| absent("map"))?,
            reduce: reduce.ok_or_else(|| absent("reduce"))?,
            out: out.ok_or_else(|| absent("out"))?,
            finalize,
            scope,
            query,
            sort,
            limit,
        };
        collation.map(Collation::parse).transpose()?;
        Ok(Args { of, collation, bypass })
    }
    /// As the aggregation that answers.
    pub(super) fn spec(&self, ns: Namespace) -> AggSpec<'a> {
        AggSpec {
            ns,
            pipeline: Cow::Owned(self.of.pipeline()),
            collation: self.collation,
            let_vars: None,
            hint: None,
            allow_disk_use: Some(true),
        }
    }
}

fn code<'a>(arg: &Arg<'a>) -> Result<&'a str> {
    function_text(arg.value())
        .ok_or_else(|| Error::bad_value(format!("'{}' must be of string or code type", arg.name())))
}

fn at_least_one(arg: &Arg<'_>) -> Result<i64> {
    match arg.i64()? {
        n if n > 0 => Ok(n),
        _ => Err(Error::location(15958, "The limit specified to mapReduce must be positive")),
    }
}

fn output<'a>(arg: &Arg<'a>) -> Result<Output<'a>> {
    let spec = match arg.value() {
        Value::String(coll) => return Ok(Output::Replace(None, coll)),
        Value::Document(spec) => spec,
        _ => return Err(Error::bad_value("'out' must be either a string or an object")),
    };
    let text = |name: &str| spec.get(name).and_then(|v| v.as_str());
    if let Some(inline) = spec.get("inline") {
        if spec.count() > 1 {
            return Err(Error::new(ErrorCode::InvalidOptions, "'inline' must be specified alone"));
        }
        return match inline.as_f64() {
            Some(1.0) => Ok(Output::Inline),
            _ => Err(Error::bad_value("'inline' takes only numeric '1'")),
        };
    }
    if spec.get("nonAtomic").is_some_and(|v| !v.is_truthy()) {
        return Err(Error::bad_value("nonAtomic field value must be true"));
    }
    let db = text("db");
    let sharded = spec.get("sharded").is_some_and(|v| v.is_truthy());
    match (text("replace"), text("merge"), text("reduce")) {
        (Some(_), None, None) if sharded => Err(Error::new(
            ErrorCode::InvalidOptions,
            "Combination of 'out.sharded' and 'replace' output mode is not supported. Cannot replace an existing sharded \
             collection or create a new sharded collection. Please create the sharded collection first and use a \
             different output mode or consider using an unsharded collection.",
        )
        .context(CONTEXT)),
        (Some(coll), None, None) => Ok(Output::Replace(db, coll)),
        (None, Some(coll), None) => Ok(Output::Merge(db, coll)),
        (None, None, Some(coll)) => Ok(Output::Reduce(db, coll)),
        _ => Err(Error::bad_value("'out' requires 'replace', 'merge' or 'reduce'")),
    }
}

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = target(server, &req)?;
    let args = Args::parse(&req)?;
    if server.statistics.map_reduces.fetch_add(1, Relaxed).is_multiple_of(TOLD_EVERY) {
        let text = "The map reduce command is deprecated. For more information, see \
                    https://docs.mongodb.com/manual/core/map-reduce/";
        server.env.log.warn(Component::Command, 5_725_801, text, |_| {});
    }
    let mut reply = Reply::new();
    match &args.of.out {
        Output::Inline => {
            if ctx.write_concern.is_some() {
                return Err(Error::new(ErrorCode::InvalidOptions, "Command does not support writeConcern"));
            }
            let results = results(server, ctx, args.spec(ns.clone())).await.map_err(in_map_reduce)?;
            reply.body.raw_array("results", &results);
        }
        Output::Replace(db, coll) | Output::Merge(db, coll) | Output::Reduce(db, coll) => {
            check_target(db.unwrap_or(req.db), coll)?;
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
    let ns = server.readable_ns_or_uuid(req)?;
    match server.catalog.snapshot().get(&ns) {
        Some(Named::View(_)) => {
            Err(Error::new(ErrorCode::CommandNotSupportedOnView, "mapReduce on a view is not supported"))
        }
        _ => Ok(ns),
    }
}

fn check_target(db: &str, coll: &str) -> Result<()> {
    if coll.is_empty() {
        let text = format!("Invalid output namespace {db}. for MapReduce");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    if coll.starts_with("system.") {
        let text = format!("Can't output mapReduce results to special collection {coll}");
        return Err(Error::location(17385, text));
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
    server.for_each_of(ctx, spec, &mut each).await?;
    Ok(all.finish())
}

async fn write(
    server: &Server,
    ctx: &OpCtx,
    req: &Request<'_>,
    args: &Args<'_>,
    ns: Namespace,
) -> Result<()> {
    let mut agg = server.prepare_aggregation(ctx, args.spec(ns))?;
    let Some(sink) = agg.take_sink() else {
        return Err(Error::internal("a pipeline without its $out or $merge"));
    };
    ctx.will_write();
    let writing = Writing { sink, collation: args.collation, bypass_validation: args.bypass, let_vars: None };
    server.write_aggregation(ctx, req, agg, writing).await
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
