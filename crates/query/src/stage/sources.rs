//! First stages whose documents come from somewhere else than a find plan: the caller supplies them.

use crate::ctx::QueryCtx;
use crate::expr::{Expr, ParseCtx};
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};

/// Where the first stage reads.
#[derive(Clone, Debug, PartialEq)]
pub enum PipelineSource {
    /// The collection (or view) of the command.
    Collection,
    /// One document of statistics; the stage's specification.
    CollStats(DocBuf),
    /// The oplog as events; the stage's specification.
    ChangeStream(DocBuf),
    /// One document per index.
    IndexStats,
    /// Operations in progress; the stage's specification.
    CurrentOp(DocBuf),
    /// Logical sessions of this node; the stage's specification.
    LocalSessions(DocBuf),
    /// Logical sessions of the set; the stage's specification.
    Sessions(DocBuf),
    /// Remembered plan choices of the collection.
    PlanCacheStats,
    /// Literal documents.
    Documents(Literal),
}

pub(super) fn is_source(name: &str) -> bool {
    matches!(
        name,
        "$changeStream"
            | "$collStats"
            | "$indexStats"
            | "$currentOp"
            | "$documents"
            | "$listLocalSessions"
            | "$listSessions"
            | "$planCacheStats"
    )
}

/// The source that a stage stands for; `None` for ordinary stages.
pub(super) fn parse(e: Elem<'_>, ctx: &QueryCtx) -> Result<Option<PipelineSource>> {
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
        ("$changeStream", Value::Document(spec)) => PipelineSource::ChangeStream(spec.to_buf()),
        ("$changeStream", _) => {
            return Err(Error::location(
                6_188_500,
                format!("$changeStream must take a nested object but found: {e:#}"),
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
        (name @ ("$listLocalSessions" | "$listSessions"), Value::Document(spec)) => {
            for f in spec {
                if !matches!(f.name(), "allUsers" | "users" | "$_internalPredicate") {
                    return Err(Error::location(
                        40415,
                        format!("BSON field '{name}.{}' is an unknown field.", f.name()),
                    ));
                }
            }
            match name {
                "$listSessions" => PipelineSource::Sessions(spec.to_buf()),
                _ => PipelineSource::LocalSessions(spec.to_buf()),
            }
        }
        ("$planCacheStats", Value::Document(spec)) if spec.is_empty() => PipelineSource::PlanCacheStats,
        ("$planCacheStats", v) => {
            let what = if v.as_doc().is_some() {
                "parameters object must be empty"
            } else {
                "value must be an object"
            };
            return Err(Error::failed_to_parse(format!("$planCacheStats {what}. Found: {}", v.type_name())));
        }
        (name @ ("$listLocalSessions" | "$listSessions"), v) => {
            return Err(Error::type_mismatch(format!(
                "{name} options must be specified in an object, but found: {}",
                v.type_name()
            )));
        }
        ("$documents", v) => PipelineSource::Documents(Literal::parse(v, ctx)?),
        _ => return Ok(None),
    }))
}

/// The argument of `$documents`: an expression that gives an array of documents.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal(DocBuf);

impl Literal {
    fn parse(v: Value<'_>, ctx: &QueryCtx) -> Result<Literal> {
        ParseCtx::new(ctx).parse(v)?;
        let mut b = DocBuilder::new();
        b.value("", v);
        Ok(Literal(b.finish()))
    }
    pub fn eval(&self, ctx: &QueryCtx) -> Result<Vec<DocBuf>> {
        let Some(e) = self.0.first() else { return Ok(Vec::new()) };
        let expr = Expr::parse(e.value(), ctx)?;
        let list = expr.eval_doc(RawDoc::empty(), ctx)?;
        let Some(list) = list.as_array() else {
            return Err(Error::location(5858203, "an array is expected"));
        };
        let mut out = Vec::new();
        for d in list {
            match d.value() {
                Value::Document(d) => out.push(d.to_buf()),
                v => return Err(not_an_object(v, ctx)),
            }
        }
        Ok(out)
    }
}

/// MongoDB's words: it puts the elements under a field with a random name.
fn not_an_object(v: Value<'_>, ctx: &QueryCtx) -> Error {
    let (a, b) = (ctx.random.next_u64(), ctx.random.next_u64());
    let name = format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        a & 0xffff,
        b >> 48,
        b & 0xffff_ffff_ffff
    );
    Error::location(
        40228,
        format!(
            "elements within the array passed to $documents must evaluate to an object, but resulting value was: {v:#}. Type \
             of resulting value: '{}'. Input document: {{{name}: {v:#}}}",
            v.type_name()
        ),
    )
}
