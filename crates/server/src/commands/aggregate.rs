//! `aggregate`: a pipeline of stages.

use super::prelude::*;
use crate::agg_write::Writing;
use crate::aggregation::{AggSpec, Aggregation, collectionless, pipeline_array};
use crate::body::CursorBody;
use crate::cursor_reply::{Open, cursor_option};
use crate::find_args::{RUNTIME_CONSTANTS, bool_field};
use pando_bson::shape::{Field, Shape};
use pando_command::generic_args::check_max_time_of_aggregate;
use pando_command::request::missing;
use pando_query::collation::Collation;
use pando_query::plan::Hint;
use pando_query::stage::first_look;
use std::borrow::Cow;

/// The arguments.
#[derive(Default)]
pub(crate) struct Args<'a> {
    pipeline: Option<&'a RawDoc>,
    has_cursor: bool,
    batch_size: Option<u64>,
    explain: bool,
    allow_disk_use: Option<bool>,
    collation: Option<&'a RawDoc>,
    lets: Option<&'a RawDoc>,
    hint: Option<Hint>,
    from_mongos: bool,
    /// `needsMerge` was given, whatever it said.
    needs_merge: bool,
    bypass: bool,
}

/// Arguments that may be null, which counts as not given.
fn is_nullable(name: &str) -> bool {
    matches!(
        name,
        "let"
            | "collation"
            | "bypassDocumentValidation"
            | "collectionUUID"
            | "runtimeConstants"
            | "exchange"
            | "encryptionInformation"
            | "includeQueryStatsMetrics"
            | "querySettings"
    )
}

/// How a pipeline's results are dealt out to several consumers: for clusters.
const EXCHANGE: Shape = Shape::Fields(&[
    Field::required("policy", Shape::String),
    Field::required("consumers", Shape::Int),
    Field::optional("orderPreserving", Shape::Bool),
    Field::optional("bufferSize", Shape::Int),
    Field::optional("key", Shape::Object),
    Field::optional("boundaries", Shape::List(&Shape::Object)),
    Field::optional("consumerIds", Shape::List(&Shape::Int)),
]);

impl<'a> Args<'a> {
    pub(crate) fn parse(req: &Request<'a>) -> Result<Args<'a>> {
        let mut a = Args::default();
        for arg in req.args("aggregate").and(&["readConcern", "maxTimeMS"]) {
            let v = arg.value();
            match arg.name() {
                "readConcern" => arg.check(&Shape::Object)?,
                // A null is no number, but that is told late.
                "maxTimeMS" if arg.is_absent() => {}
                "maxTimeMS" => check_max_time_of_aggregate(&v)?,
                "pipeline" => a.pipeline = Some(pipeline_array(v)?),
                "cursor" => {
                    if !matches!(v, Value::Document(_)) {
                        return Err(Error::type_mismatch("cursor field must be missing or an object"));
                    }
                    a.has_cursor = true;
                    a.batch_size = cursor_option("aggregate", arg.elem())?;
                }
                "explain" => match v {
                    Value::Boolean(b) => a.explain = b,
                    _ => return Err(Error::type_mismatch("explain must be a boolean")),
                },
                "allowDiskUse" => a.allow_disk_use = Some(bool_field(&arg)?),
                "fromMongos" => a.from_mongos = bool_field(&arg)?,
                "needsMerge" => {
                    bool_field(&arg)?;
                    a.needs_merge = true;
                }
                name if arg.is_absent() && is_nullable(name) => {}
                "hint" => a.hint = Hint::parse(v)?,
                "let" => a.lets = Some(arg.doc()?),
                "collation" => a.collation = Some(arg.doc()?).filter(|d| !d.is_empty()),
                "bypassDocumentValidation" => a.bypass = arg.boolish()?,
                "encryptionInformation" => arg.no_encryption()?,
                "isMapReduceCommand" => drop(bool_field(&arg)?),
                "collectionUUID" => arg.check(&Shape::Uuid)?,
                "runtimeConstants" => arg.check(&RUNTIME_CONSTANTS)?,
                "exchange" => {
                    arg.check(&EXCHANGE)?;
                    return Err(Error::location(50967, "exchange is not supported by this server"));
                }
                "$_requestReshardingResumeToken" | "includeQueryStatsMetrics" | "querySettings" => {}
                _ => return Err(arg.unknown()),
            }
        }
        if a.pipeline.is_none() {
            return Err(missing("aggregate", "pipeline"));
        }
        if a.needs_merge && !a.from_mongos {
            return Err(Error::failed_to_parse("Cannot specify 'needsMerge' without 'fromMongos'"));
        }
        if !a.has_cursor && !a.explain {
            return Err(Error::failed_to_parse(
                "The 'cursor' option is required, except for aggregate with the explain argument",
            ));
        }
        Ok(a)
    }

    pub(crate) fn spec(&self, ns: Namespace) -> AggSpec<'a> {
        AggSpec {
            ns,
            pipeline: Cow::Borrowed(self.pipeline.unwrap_or(RawDoc::empty())),
            collation: self.collation,
            lets: self.lets,
            hint: self.hint.clone(),
            allow_disk_use: self.allow_disk_use,
        }
    }
}

/// The collection, or the stand-in for `aggregate: 1`.
pub(crate) fn target(server: &Server, req: &Request<'_>) -> Result<Namespace> {
    match req.first().value() {
        Value::String(_) => server.ns_or_uuid(req),
        v if v.is_number() && v.as_f64() == Some(1.0) => Ok(collectionless(req.db)),
        v if v.is_number() => Err(Error::failed_to_parse(
            "Invalid command format: the 'aggregate' field must specify a collection name or 1",
        )),
        v => Err(Error::type_mismatch(format!("collection name has invalid type: {}", v.type_name()))),
    }
}

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = target(server, &req)?;
    let args = Args::parse(&req)?;
    first_look(args.pipeline.unwrap_or(RawDoc::empty()))?;
    ctx.arguments_read()?;
    if args.explain {
        if ctx.write_concern.is_some() {
            return Err(Error::failed_to_parse(
                "Aggregation explain does not support the'writeConcern' option",
            ));
        }
        return super::explain::aggregation(server, ctx, &req, ns, &args, super::explain::Verbosity::Planner)
            .await;
    }
    args.collation.map(Collation::parse).transpose()?;
    server.check_collection_uuid("aggregate", &req, &ns)?;
    let open = Open { batch_size: args.batch_size, ..Open::new(ns.clone()) };
    let spec = args.spec(ns.clone());
    let collation = spec.collation;
    let mut agg = server.prepare_aggregation(ctx, spec)?;
    let reply = match agg.take_sink() {
        Some(_) if !server.repl.accepts_writes() => server.pass_on(ctx, &req).await?,
        Some(sink) => {
            ctx.will_write();
            let writing = Writing { sink, collation, bypass_validation: args.bypass, lets: args.lets };
            server.write_aggregation(ctx, &req, agg, writing).await?;
            open_nothing(server, ctx, &req, open).await?
        }
        None => server.open_prepared(ctx, &req, open, agg).await?,
    };
    server.time(&ns, crate::top::Kind::Command, false, ctx.elapsed());
    ctx.debug(|d| d.ns = ns.to_string());
    Ok(reply)
}

/// The reply of a pipeline that kept its results to itself: whatever the batch size, no cursor stays.
async fn open_nothing(server: &Server, ctx: &OpCtx, req: &Request<'_>, open: Open) -> Result<Reply> {
    let open = Open { batch_size: None, ..open };
    server.open_cursor(ctx, req, open, CursorBody::List(Vec::new().into_iter()), None).await
}

impl Server {
    /// Runs an aggregation to its first batch.
    pub(crate) async fn aggregate(
        &self,
        ctx: &OpCtx,
        req: &Request<'_>,
        open: Open,
        spec: AggSpec<'_>,
    ) -> Result<Reply> {
        let agg = self.prepare_aggregation(ctx, spec)?;
        self.open_prepared(ctx, req, open, agg).await
    }
    async fn open_prepared(
        &self,
        ctx: &OpCtx,
        req: &Request<'_>,
        open: Open,
        agg: Aggregation,
    ) -> Result<Reply> {
        let endless = agg.is_endless();
        let open =
            Open { tailable: open.tailable || endless, await_data: open.await_data || endless, ..open };
        let (body, source) = self.open_aggregation(ctx, agg)?;
        self.open_cursor(ctx, req, open, body, source).await
    }
}
