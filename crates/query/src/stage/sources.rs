//! First stages whose documents come from somewhere else than a find plan: the caller supplies them.

use pando_base::{Error, Result};
use pando_bson::{DocBuf, Elem, Value};

/// Where the first stage reads.
#[derive(Clone, Debug, PartialEq)]
pub enum PipelineSource {
    /// The collection (or view) of the command.
    Collection,
    /// One document of statistics; the stage's specification.
    CollStats(DocBuf),
    /// One document per index.
    IndexStats,
    /// Operations in progress; the stage's specification.
    CurrentOp(DocBuf),
    /// Logical sessions of this node; the stage's specification.
    LocalSessions(DocBuf),
    /// Literal documents.
    Documents(Vec<DocBuf>),
}

pub(super) fn is_source(name: &str) -> bool {
    matches!(name, "$collStats" | "$indexStats" | "$currentOp" | "$documents" | "$listLocalSessions")
}

/// The source that a stage stands for; `None` for ordinary stages.
pub(super) fn parse(e: Elem<'_>) -> Result<Option<PipelineSource>> {
    Ok(Some(match (e.name(), e.value()) {
        ("$collStats", Value::Document(spec)) => {
            for f in spec {
                if !matches!(f.name(), "latencyStats" | "storageStats" | "count" | "queryExecStats") {
                    return Err(Error::location(
                        40415,
                        format!("BSON field '$collStats.{}' is an unknown field.", f.name()),
                    ));
                }
            }
            PipelineSource::CollStats(spec.to_buf())
        }
        ("$collStats", _) => {
            return Err(Error::location(
                5447000,
                format!("$collStats must take a nested object but found: {e:#}"),
            ));
        }
        ("$indexStats", Value::Document(spec)) if spec.is_empty() => PipelineSource::IndexStats,
        ("$indexStats", _) => {
            return Err(Error::location(
                28803,
                "The $indexStats stage specification must be an empty object",
            ));
        }
        ("$currentOp", Value::Document(spec)) => PipelineSource::CurrentOp(spec.to_buf()),
        ("$currentOp", v) => {
            return Err(Error::failed_to_parse(format!(
                "$currentOp options must be specified in an object, but found: {}",
                v.type_name()
            )));
        }
        ("$listLocalSessions", Value::Document(spec)) => {
            for f in spec {
                if !matches!(f.name(), "allUsers" | "users" | "$_internalPredicate") {
                    return Err(Error::location(
                        40415,
                        format!("BSON field '$listLocalSessions.{}' is an unknown field.", f.name()),
                    ));
                }
            }
            PipelineSource::LocalSessions(spec.to_buf())
        }
        ("$listLocalSessions", v) => {
            return Err(Error::type_mismatch(format!(
                "$listLocalSessions options must be specified in an object, but found: {}",
                v.type_name()
            )));
        }
        ("$documents", Value::Array(docs)) => {
            let mut out = Vec::new();
            for d in docs {
                match d.value() {
                    Value::Document(d) => out.push(d.to_buf()),
                    _ => {
                        return Err(Error::location(
                            5858203,
                            "an array is expected to contain only objects".to_owned(),
                        ));
                    }
                }
            }
            PipelineSource::Documents(out)
        }
        ("$documents", _) => {
            return Err(Error::location(5858202, "error during aggregation :: $documents must be an array"));
        }
        _ => return Ok(None),
    }))
}
