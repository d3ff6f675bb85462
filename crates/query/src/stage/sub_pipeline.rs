//! What holds for pipelines inside of stages: how deep they may nest, and what may not stand in them.

use super::sinks;
use crate::ctx::QueryCtx;
use pando_base::limits::SUB_PIPELINE_DEPTH_MAX;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{RawDoc, Value};
use std::sync::Arc;

/// The context inside a sub-pipeline; 232 when that is too deep.
pub(super) fn deeper(ctx: &QueryCtx) -> Result<QueryCtx> {
    let mut inner = ctx.clone();
    let vars = Arc::make_mut(&mut inner.vars);
    vars.depth += 1;
    if vars.depth > SUB_PIPELINE_DEPTH_MAX {
        return Err(Error::new(
            ErrorCode::MaxSubPipelineDepthExceeded,
            format!("Maximum number of nested sub-pipelines exceeded. Limit is {SUB_PIPELINE_DEPTH_MAX}"),
        ));
    }
    Ok(inner)
}

/// An array of objects, as sub-pipelines are given.
pub(super) fn stages_array<'v>(v: Value<'v>) -> Result<&'v RawDoc> {
    let Value::Array(stages) = v else {
        return Err(Error::type_mismatch("'pipeline' option must be specified as an array"));
    };
    if stages.iter().any(|s| !matches!(s.value(), Value::Document(_))) {
        return Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"));
    }
    Ok(stages)
}

/// The pipeline starts with `$documents`, so it reads no collection.
pub(super) fn starts_with_documents(stages: &RawDoc) -> bool {
    let first = stages.iter().next().and_then(|s| s.value().as_doc()?.first());
    first.is_some_and(|e| e.name() == "$documents")
}

/// Refuses stages that write or read what is no collection.
pub(super) fn refuse_stages(stages: &RawDoc, code: i32, stage: &str) -> Result<()> {
    for s in stages {
        let Some(name) = s.value().as_doc().and_then(|d| d.first()).map(|e| e.name()) else { continue };
        if sinks::is_sink(name) || name == "$changeStream" {
            return Err(Error::location(
                code,
                format!("{} is not allowed within a {stage}'s sub-pipeline", shown(name)),
            ));
        }
    }
    Ok(())
}

/// A change stream is told by the first of the stages that it stands for.
pub(super) fn shown(name: &str) -> &str {
    if name == "$changeStream" { "$_internalChangeStreamOplogMatch" } else { name }
}

/// Stages that are for one special namespace, where no sub-pipeline is.
pub(super) fn refuse_elsewhere(name: &str) -> Result<()> {
    let text = match name {
        "$currentOp" => "$currentOp must be run against the 'admin' database with {aggregate: 1}",
        "$listSessions" => "$listSessions may only be run against config.system.sessions",
        "$listLocalSessions" => {
            "$listLocalSessions must be run against the database with {aggregate: 1}, not a collection"
        }
        _ => return Ok(()),
    };
    Err(Error::new(ErrorCode::InvalidNamespace, text))
}
