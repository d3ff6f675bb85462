//! The arguments of `aggregate`.

use crate::constants::RUNTIME_CONSTANTS;
use crate::fields::{bool_field, cursor_option};
use crate::spell::{self, spell_hint};
use pando_base::{Error, Result};
use pando_bson::shape::{Field, Shape};
use pando_bson::{DocBuilder, Elem, RawDoc, Value};
use pando_command::generic_args::check_max_time_of_aggregate;
use pando_command::request::missing;
use pando_command::{Arg, Request};
use pando_query::plan::Hint;

#[derive(Clone)]
pub struct AggregateArgs<'a> {
    /// An array of documents; what they mean is not known here.
    pub pipeline: &'a RawDoc,
    /// `cursor` was given.
    pub has_cursor: bool,
    pub batch_size: Option<u64>,
    pub explain: bool,
    pub allow_disk_use: Option<bool>,
    pub collation: Option<&'a RawDoc>,
    pub let_vars: Option<&'a RawDoc>,
    pub hint: Option<Hint>,
    /// A router asks, on behalf of a client.
    pub from_mongos: bool,
    /// The router will merge what this pipeline gives; `None` when it was not said.
    pub needs_merge: Option<bool>,
    pub bypass_validation: bool,
    pub collection_uuid: Option<Value<'a>>,
    /// Arguments that are checked here and acted on nowhere.
    pub passthrough: Vec<Elem<'a>>,
}

impl Default for AggregateArgs<'_> {
    fn default() -> Self {
        AggregateArgs {
            pipeline: RawDoc::empty(),
            has_cursor: false,
            batch_size: None,
            explain: false,
            allow_disk_use: None,
            collation: None,
            let_vars: None,
            hint: None,
            from_mongos: false,
            needs_merge: None,
            bypass_validation: false,
            collection_uuid: None,
            passthrough: Vec::new(),
        }
    }
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

/// An array of documents.
pub fn pipeline_array<'a>(v: Value<'a>) -> Result<&'a RawDoc> {
    match v {
        Value::Array(a) if a.iter().any(|e| e.value().as_doc().is_none()) => {
            Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"))
        }
        Value::Array(a) => Ok(a),
        _ => Err(Error::type_mismatch("'pipeline' option must be specified as an array")),
    }
}

impl<'a> AggregateArgs<'a> {
    /// Reads everything behind the collection's name.
    pub fn parse(req: &Request<'a>) -> Result<AggregateArgs<'a>> {
        AggregateArgs::read(req).and_then(AggregateArgs::with_cursor)
    }
    /// The same within an `explain`, which is asked for once.
    pub fn parse_explained(req: &Request<'a>) -> Result<AggregateArgs<'a>> {
        let a = AggregateArgs::read(req)?;
        if req.body.get("explain").is_some() {
            let text = "The 'explain' option is illegal when a explain verbosity is also provided";
            return Err(Error::failed_to_parse(text));
        }
        a.with_cursor()
    }
    fn with_cursor(self) -> Result<AggregateArgs<'a>> {
        if !self.has_cursor && !self.explain {
            return Err(Error::failed_to_parse(
                "The 'cursor' option is required, except for aggregate with the explain argument",
            ));
        }
        Ok(self)
    }
    fn read(req: &Request<'a>) -> Result<AggregateArgs<'a>> {
        let mut a = AggregateArgs::default();
        let mut pipeline = None;
        for arg in req.args("aggregate").and(&["readConcern", "maxTimeMS"]) {
            let v = arg.value();
            match arg.name() {
                "readConcern" => arg.check(&Shape::Object)?,
                // A null is no number, but that is told late.
                "maxTimeMS" if arg.is_absent() => {}
                "maxTimeMS" => check_max_time_of_aggregate(&v)?,
                "pipeline" => pipeline = Some(pipeline_array(v)?),
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
                "needsMerge" => a.needs_merge = Some(bool_field(&arg)?),
                name if arg.is_absent() && is_nullable(name) => {}
                "hint" => a.hint = Hint::parse(v)?,
                "let" => a.let_vars = Some(arg.doc()?),
                "collation" => a.collation = Some(arg.doc()?).filter(|d| !d.is_empty()),
                "bypassDocumentValidation" => a.bypass_validation = arg.boolish()?,
                "collectionUUID" => {
                    arg.check(&Shape::Uuid)?;
                    a.collection_uuid = Some(v);
                }
                name => {
                    match name {
                        "encryptionInformation" => arg.no_encryption()?,
                        "isMapReduceCommand" => drop(bool_field(&arg)?),
                        "runtimeConstants" => arg.check(&RUNTIME_CONSTANTS)?,
                        "exchange" => {
                            arg.check(&EXCHANGE)?;
                            return Err(Error::location(50967, "exchange is not supported by this server"));
                        }
                        "$_requestReshardingResumeToken" => check_resharding_token(req, &arg)?,
                        "includeQueryStatsMetrics" | "querySettings" => {}
                        _ => return Err(arg.unknown()),
                    }
                    a.passthrough.push(arg.elem());
                }
            }
        }
        a.pipeline = pipeline.ok_or_else(|| missing("aggregate", "pipeline"))?;
        if a.needs_merge.is_some() && !a.from_mongos {
            return Err(Error::failed_to_parse("Cannot specify 'needsMerge' without 'fromMongos'"));
        }
        Ok(a)
    }

    /// Writes the arguments that [`AggregateArgs::parse`] reads.
    pub fn spell(&self, b: &mut DocBuilder) {
        b.raw_array("pipeline", self.pipeline);
        if self.has_cursor {
            b.doc("cursor", |c| spell::count(c, "batchSize", self.batch_size));
        }
        spell::flag(b, "explain", self.explain);
        if let Some(allowed) = self.allow_disk_use {
            b.bool("allowDiskUse", allowed);
        }
        spell::doc(b, "collation", self.collation);
        spell::doc(b, "let", self.let_vars);
        spell_hint(b, self.hint.as_ref());
        spell::flag(b, "fromMongos", self.from_mongos);
        if let Some(merges) = self.needs_merge {
            b.bool("needsMerge", merges);
        }
        spell::flag(b, "bypassDocumentValidation", self.bypass_validation);
        if let Some(uuid) = self.collection_uuid {
            b.value("collectionUUID", uuid);
        }
        spell::passthrough(b, &self.passthrough);
    }
}
/// Who copies documents to other shards asks how far it has read, of the log alone.
fn check_resharding_token(req: &Request<'_>, arg: &Arg<'_>) -> Result<()> {
    let coll = req.first().value().as_str();
    if !bool_field(arg)? || (req.db == "local" && coll == Some("oplog.rs")) {
        return Ok(());
    }
    let ns = match coll {
        Some(coll) => format!("{}.{coll}", req.db),
        None => format!("{}.$cmd.aggregate", req.db),
    };
    let text = format!("{} must only be set for the oplog namespace, not {ns}", arg.name());
    Err(Error::failed_to_parse(text))
}
