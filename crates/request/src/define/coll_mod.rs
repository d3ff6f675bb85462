//! The arguments of `collMod`.

use super::create::{CappedMax, CappedSize, GRANULARITY, MAX_SPAN, ROUNDING};
use super::create_rules::invalid;
use crate::declare::kinds::{
    Anything, Bool, Filter, Images, Object, Pipeline, SafeBool, Uuid, ValidationAction, ValidationLevel,
    ViewOn,
};
use crate::declare::{Kind, arguments, kind};
use pando_base::Result;
use pando_bson::fields::{doubled, duplicate};
use pando_bson::shape::{Field, Means, Null, Shape, check_fields, wrong_type_at};
use pando_bson::{DocBuf, DocBuilder, Value};

arguments! {
    /// What `collMod` asks for.
    pub struct CollModArgs of "collMod" as "collMod", refusing {
        "index" index: optional IndexChange,
        "validator" validator: optional Filter,
        "validationLevel" validation_level: optional ValidationLevel,
        "validationAction" validation_action: optional ValidationAction,
        "viewOn" view_on: optional ViewOn,
        "pipeline" pipeline: optional Pipeline,
        /// Bytes.
        "cappedSize" capped_size: optional CappedSize,
        /// Documents.
        "cappedMax" capped_max: optional CappedMax,
        "changeStreamPreAndPostImages" images: optional Images,
        /// A number of seconds, or "off".
        "expireAfterSeconds" expire_after_seconds: optional Expiry,
        "dryRun" dry_run: optional SafeBool,
        "timeseries" time_series: optional SeriesChange,
        "isTimeseriesNamespace" by_buckets: optional Bool,
        "collectionUUID" collection_uuid: optional Uuid,
    }
}

impl CollModArgs<'_> {
    /// What the arguments mean together.
    pub fn check(&self) -> Result<()> {
        let to_unique = self.index.as_ref().and_then(|i| i.get("unique")).is_some_and(|v| v.is_truthy());
        match (self.dry_run, &self.index) {
            (Some(true), Some(_)) if !to_unique => {
                Err(invalid("dry run mode requires an index modification with unique: true."))
            }
            (Some(true), None) => Err(invalid("dry run mode requires an valid index modification.")),
            _ => Ok(()),
        }
    }
    /// The changes as a command on the collection `coll`, as the log tells of it too.
    pub fn changes(&self, coll: &str) -> DocBuf {
        let mut b = DocBuilder::new();
        b.str("collMod", coll);
        CollModArgs { collection_uuid: None, ..self.clone() }.spell(&mut b);
        b.finish()
    }
}

const INDEX: &[Field] = &[
    Field::optional("name", Shape::String).means(Means::IndexName),
    Field::optional("keyPattern", Shape::Object).means(Means::IndexKey),
    Field::optional("expireAfterSeconds", Shape::Number),
    Field::optional("hidden", Shape::SafeBool),
    Field::optional("unique", Shape::SafeBool),
    Field::optional("prepareUnique", Shape::SafeBool),
];

/// The wanted change of one index, without what is null.
#[derive(Debug)]
pub struct IndexChange;
impl Kind for IndexChange {
    type Of<'a> = DocBuf;
    const SHAPE: Shape = Shape::Checked { like: &[Shape::Fields(INDEX)], check: check_index };
    fn read(v: Value<'_>) -> Option<DocBuf> {
        let mut b = DocBuilder::new();
        for f in v.as_doc()?.iter().filter(|f| !matches!(f.value(), Value::Null | Value::Undefined)) {
            b.elem(f);
        }
        Some(b.finish())
    }
    fn spell(v: &DocBuf, name: &str, b: &mut DocBuilder) {
        b.raw_doc(name, v);
    }
}

fn check_index(path: &str, v: &Value<'_>) -> Result<()> {
    check_single(INDEX, path, v)
}

/// Names that come twice are told before everything else.
fn check_single(fields: &[Field], path: &str, v: &Value<'_>) -> Result<()> {
    let Value::Document(d) = v else { return Err(wrong_type_at(path, v, &["object"])) };
    match doubled(d) {
        Some(twice) => Err(duplicate(path, twice)),
        None => check_fields(fields, path, d),
    }
}

const SERIES: &[Field] = &[GRANULARITY, MAX_SPAN, ROUNDING];
kind! {
    pub SeriesChange like Object {
        SHAPE: Shape::Checked { like: &[Shape::Fields(SERIES)], check: check_series },
    }
}
fn check_series(path: &str, v: &Value<'_>) -> Result<()> {
    check_single(SERIES, path, v)
}

kind! {
    pub Expiry like Anything {
        SHAPE: Shape::Checked { like: &[Shape::Number, Shape::Word(&["off"])], check: check_expiry },
        NULL: Null::Value,
    }
}
fn check_expiry(path: &str, v: &Value<'_>) -> Result<()> {
    match v {
        Value::String(_) => Ok(()),
        v if v.is_number() => Ok(()),
        v => Err(wrong_type_at(path, v, &["string", "long"])),
    }
}
