//! First stages whose documents come from somewhere else than a find plan: the caller supplies them.

use super::transform::invalid;
use crate::change_stream;
use crate::ctx::QueryCtx;
use crate::expr::{Expr, ParseCtx, optimize_error};
use crate::number::Number;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::shape::{Field, Shape, check_fields};
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

impl PipelineSource {
    /// 323 for what is outside Stable API version 1.
    pub fn check_stable(&self) -> Result<()> {
        let name = match self {
            PipelineSource::IndexStats => "$indexStats",
            PipelineSource::LocalSessions(_) => "$listLocalSessions",
            PipelineSource::Sessions(_) => "$listSessions",
            PipelineSource::PlanCacheStats => "$planCacheStats",
            PipelineSource::CurrentOp(_) => "$currentOp",
            PipelineSource::CollStats(spec) if spec.iter().any(|f| f.name() != "count") => {
                return Err(Error::new(
                    ErrorCode::APIStrictError,
                    "only the 'count' option to $collStats is supported in API Version 1",
                ));
            }
            _ => return Ok(()),
        };
        let text = format!("{name} is not allowed with 'apiStrict: true' in API Version 1");
        Err(Error::new(ErrorCode::APIStrictError, text))
    }
    /// The stage, as it is written; `None` for a collection, which the command names.
    pub(super) fn text(&self) -> Option<DocBuf> {
        let empty = DocBuf::new();
        let (name, spec) = match self {
            PipelineSource::Collection => return None,
            PipelineSource::Documents(Literal(v)) => {
                let mut b = DocBuilder::new();
                b.value("$documents", v.first()?.value());
                return Some(b.finish());
            }
            PipelineSource::CollStats(spec) => ("$collStats", spec),
            PipelineSource::ChangeStream(spec) => ("$changeStream", spec),
            PipelineSource::IndexStats => ("$indexStats", &empty),
            PipelineSource::CurrentOp(spec) => ("$currentOp", spec),
            PipelineSource::LocalSessions(spec) => ("$listLocalSessions", spec),
            PipelineSource::Sessions(spec) => ("$listSessions", spec),
            PipelineSource::PlanCacheStats => ("$planCacheStats", &empty),
        };
        let mut b = DocBuilder::new();
        b.raw_doc(name, spec);
        Some(b.finish())
    }
}

pub(super) const NAMES: &[&str] = &[
    "$changeStream",
    "$collStats",
    "$indexStats",
    "$currentOp",
    "$documents",
    "$listLocalSessions",
    "$listSessions",
    "$planCacheStats",
];

pub(super) fn is_source(name: &str) -> bool {
    NAMES.contains(&name)
}

const COLL_STATS: &[Field] = &[
    Field::optional("latencyStats", Shape::Fields(&[Field::optional("histograms", Shape::Bool)])),
    Field::optional(
        "storageStats",
        Shape::Fields(&[
            Field::optional("scale", Shape::Number),
            Field::optional("verbose", Shape::Bool),
            Field::optional("waitForLock", Shape::Bool),
            Field::optional("numericOnly", Shape::Bool),
        ]),
    ),
    Field::optional("count", Shape::Object),
    Field::optional("queryExecStats", Shape::Object),
];

const USER: &[Field] = &[Field::required("user", Shape::String), Field::required("db", Shape::String)];
const LIST_SESSIONS: &[Field] = &[
    Field::optional("users", Shape::List(&Shape::Fields(USER))),
    Field::optional("allUsers", Shape::Bool),
    Field::optional("$_internalPredicate", Shape::Object),
];

/// The object that a `$changeStream` is.
pub(super) fn change_stream<'e>(e: Elem<'e>) -> Result<&'e RawDoc> {
    let Value::Document(spec) = e.value() else {
        let text = format!("$changeStream must take a nested object but found: {e:#}");
        return Err(Error::location(6_188_500, text));
    };
    Ok(spec)
}

/// The other options are looked at where the stage runs.
fn check_current_op(spec: &RawDoc) -> Result<()> {
    for name in ["allUsers", "localOps"] {
        match spec.get(name) {
            None | Some(Value::Boolean(_)) => {}
            Some(v) => {
                return Err(Error::type_mismatch(format!(
                    "The '{name}' parameter of the $currentOp stage must be a boolean value, but found: {}",
                    v.type_name()
                )));
            }
        }
    }
    Ok(())
}

/// The options of a `$collStats` that are given: a null counts as not given.
fn coll_stats(spec: &RawDoc) -> Result<DocBuf> {
    check_fields(COLL_STATS, "$collStats", spec)?;
    if let Some(Value::Document(count)) = spec.get("count")
        && !count.is_empty()
    {
        return Err(Error::location(31170, format!("expected an empty object, but got {count}")));
    }
    let scale = spec.get("storageStats").and_then(|v| v.as_doc()?.get("scale"));
    // What is no number of 32 bits is the nearest one.
    let nearest =
        |v| Some(Number::of(v)?.to_f64().trunc().clamp(f64::from(i32::MIN), f64::from(i32::MAX)) as i32);
    if let Some(scale) = scale.and_then(nearest)
        && scale < 1
    {
        let text = format!("BSON field 'scale' value must be >= 1, actual value '{scale}'");
        return Err(Error::location(51024, text));
    }
    let mut given = DocBuilder::new();
    for e in spec.iter().filter(|e| !matches!(e.value(), Value::Null | Value::Undefined)) {
        given.elem(e);
    }
    Ok(given.finish())
}

fn no_plan_cache_stats(v: Value<'_>) -> Error {
    let what = match v {
        Value::Document(_) => "parameters object must be empty",
        _ => "value must be an object",
    };
    Error::failed_to_parse(format!("$planCacheStats {what}. Found: {}", v.type_name()))
}

/// The source that a stage stands for; `None` for ordinary stages.
pub(super) fn parse(e: Elem<'_>, ctx: &QueryCtx) -> Result<Option<PipelineSource>> {
    Ok(Some(match (e.name(), e.value()) {
        ("$collStats", Value::Document(spec)) => PipelineSource::CollStats(coll_stats(spec)?),
        ("$collStats", _) => {
            return Err(Error::location(
                5447000,
                format!("$collStats must take a nested object but found: {e:#}"),
            ));
        }
        ("$changeStream", _) => {
            let spec = change_stream(e)?;
            change_stream::Spec::parse(spec)?;
            PipelineSource::ChangeStream(spec.to_buf())
        }
        ("$indexStats", Value::Document(spec)) if spec.is_empty() => PipelineSource::IndexStats,
        ("$indexStats", _) => {
            return Err(Error::location(
                28803,
                "The $indexStats stage specification must be an empty object",
            ));
        }
        ("$currentOp", Value::Document(spec)) => {
            check_current_op(spec)?;
            PipelineSource::CurrentOp(spec.to_buf())
        }
        ("$currentOp", v) => {
            return Err(Error::type_mismatch(format!(
                "$currentOp options must be specified in an object, but found: {}",
                v.type_name()
            )));
        }
        (name @ ("$listLocalSessions" | "$listSessions"), Value::Document(spec)) => {
            check_fields(LIST_SESSIONS, name, spec)?;
            match name {
                "$listSessions" => PipelineSource::Sessions(spec.to_buf()),
                _ => PipelineSource::LocalSessions(spec.to_buf()),
            }
        }
        ("$planCacheStats", Value::Document(spec)) if spec.is_empty() => PipelineSource::PlanCacheStats,
        ("$planCacheStats", v) => return Err(no_plan_cache_stats(v)),
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
        let read = match v {
            Value::Document(d) => below_a_field(d, ctx).map(drop),
            v => ParseCtx::new(ctx).parse(v).map(drop),
        };
        read.map_err(|e| invalid("$documents", e))?;
        let mut b = DocBuilder::new();
        b.value("", v);
        Ok(Literal(b.finish()))
    }
    pub fn eval(&self, ctx: &QueryCtx) -> Result<Vec<DocBuf>> {
        let Some(e) = self.0.first() else { return Ok(Vec::new()) };
        let no_array = || Error::location(5858203, "an array is expected");
        let is_operator = |d: &RawDoc| d.first().is_some_and(|e| e.name_bytes().starts_with(b"$"));
        if let Some(d) = e.value().as_doc().filter(|d| !is_operator(d)) {
            below_a_field(d, ctx)?.optimize(ctx).map_err(|e| optimize_error("pipeline", e))?;
            return Err(no_array());
        }
        let expr = Expr::parse(e.value(), ctx)?;
        let list = expr.eval_doc(RawDoc::empty(), ctx)?;
        let list = list.as_array().ok_or_else(no_array)?;
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

/// The argument stands as a field of a projection, so an object is read as what is below that field.
fn below_a_field(d: &RawDoc, ctx: &QueryCtx) -> Result<super::shape::Shape> {
    let mut field = DocBuilder::new();
    field.raw_doc("documents", d);
    super::shape::Shape::project(&field.finish(), &mut ParseCtx::new(ctx))
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
