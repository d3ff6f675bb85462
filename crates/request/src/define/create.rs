//! The arguments of `create`. What they mean together is in [`super::create_rules`].

use super::encrypted_fields::EncryptedFields;
use crate::declare::kinds::{
    Filter, Images, Object, Pipeline, SafeBool, ValidationAction, ValidationLevel, ViewOn,
};
use crate::declare::{Kind, arguments, kind};
use pando_base::Result;
use pando_base::limits::{BUCKET_SPAN_SECS_MAX, CAPPED_BYTES_MAX};
use pando_bson::fields::{duplicate, safe_i64};
use pando_bson::shape::{Field, Means, Null, Range, Shape, check_fields, wrong_type_at};
use pando_bson::{DocBuilder, Value};
use pando_index::storage_engine;
use pando_query::collation::Collation as FullCollation;

arguments! {
    /// What `create` asks for.
    pub struct CreateArgs of "create" as "create", refusing {
        "capped" capped: optional SafeBool,
        "autoIndexId" auto_index_id: optional SafeBool,
        "idIndex" id_index: optional Object,
        /// Bytes.
        "size" size: optional CappedSize,
        /// Documents.
        "max" max: optional CappedMax,
        "storageEngine" storage_engine: optional Object,
        "validator" validator: optional Filter,
        "validationLevel" validation_level: optional ValidationLevel,
        "validationAction" validation_action: optional ValidationAction,
        "indexOptionDefaults" index_option_defaults: optional IndexOptionDefaults,
        "viewOn" view_on: optional ViewOn,
        "pipeline" pipeline: optional Pipeline,
        "collation" collation: optional Collation,
        "changeStreamPreAndPostImages" images: optional Images,
        "timeseries" time_series: optional TimeSeriesOptions,
        "clusteredIndex" clustered: optional ClusteredIndex,
        /// Seconds, as given.
        "expireAfterSeconds" expire_after_seconds: optional Seconds,
        "encryptedFields" encrypted_fields: optional EncryptedFields,
        "temp" temp: optional SafeBool,
        "flags" flags: optional Seconds,
    }
}

kind! { pub CappedSize like crate::declare::kinds::Integer { SHAPE: Shape::Integer(Range::between(1, CAPPED_BYTES_MAX)) } }
kind! { pub CappedMax like crate::declare::kinds::Integer { SHAPE: Shape::Integer(Range::below(1 << 31)) } }
kind! { pub Seconds like crate::declare::kinds::Anything { SHAPE: Shape::Number } }
kind! {
    pub Collation like Object {
        SHAPE: Shape::Checked { like: &[Shape::Object], check: check_collation }, MEANS: Means::Collation,
    }
}
kind! {
    /// `{storageEngine: {<engine>: {..}}}`.
    pub IndexOptionDefaults like Object {
        SHAPE: Shape::Fields(&[Field::optional(
            "storageEngine",
            Shape::Checked { like: &[Shape::Object], check: storage_engine::check_form },
        )]),
    }
}
kind! { pub TimeSeriesOptions like Object { SHAPE: Shape::Fields(TIME_SERIES) } }

const SPAN: Shape = Shape::Integer(Range::between(1, BUCKET_SPAN_SECS_MAX));
pub(crate) const GRANULARITY: Field =
    Field::optional("granularity", Shape::Word(&["seconds", "minutes", "hours"]));
pub(crate) const MAX_SPAN: Field = Field::optional("bucketMaxSpanSeconds", SPAN);
pub(crate) const ROUNDING: Field = Field::optional("bucketRoundingSeconds", SPAN);
const TIME_SERIES: &[Field] = &[
    Field::required("timeField", Shape::String).means(Means::FieldName),
    Field::optional("metaField", Shape::String).means(Means::FieldName),
    GRANULARITY,
    MAX_SPAN,
    ROUNDING,
];

fn check_collation(path: &str, v: &Value<'_>) -> Result<()> {
    match v {
        Value::Document(d) => FullCollation::check_form(d, path),
        v => Err(wrong_type_at(path, v, &["object"])),
    }
}

/// `clusteredIndex` as it is given.
#[derive(Clone, Copy, Debug)]
pub enum Clustered<'a> {
    /// As a boolean.
    Legacy(bool),
    Spec {
        key: &'a pando_bson::RawDoc,
        unique: bool,
        name: &'a str,
        version: i64,
    },
}

const CLUSTERED: &[Field] = &[
    Field::required("key", Shape::Object).means(Means::IndexKey),
    Field::required("unique", Shape::SafeBool),
    Field::optional("name", Shape::String).means(Means::IndexName),
    Field::optional("v", Shape::Number),
];

#[derive(Debug)]
pub struct ClusteredIndex;
impl Kind for ClusteredIndex {
    type Of<'a> = Clustered<'a>;
    const SHAPE: Shape =
        Shape::Checked { like: &[Shape::Bool, Shape::Fields(CLUSTERED)], check: check_clustered };
    const NULL: Null = Null::Value;
    fn read(v: Value<'_>) -> Option<Clustered<'_>> {
        let Value::Document(d) = v else { return Some(Clustered::Legacy(v.is_truthy())) };
        let version = d.get("v").and_then(|v| safe_i64(&v)).unwrap_or(2);
        Some(Clustered::Spec {
            key: d.get("key")?.as_doc()?,
            unique: d.get("unique")?.is_truthy(),
            name: d.get("name").and_then(|v| v.as_str()).unwrap_or("_id_"),
            version: version.clamp(i64::from(i32::MIN), i64::from(i32::MAX)),
        })
    }
    fn spell(v: &Clustered<'_>, name: &str, b: &mut DocBuilder) {
        match *v {
            Clustered::Legacy(on) => b.bool(name, on),
            Clustered::Spec { key, unique, name: index, version } => b.doc(name, |d| {
                d.raw_doc("key", key).bool("unique", unique).str("name", index).i32_or_i64("v", version);
            }),
        };
    }
}

/// Its fields are told as if they were the command's.
fn check_clustered(path: &str, v: &Value<'_>) -> Result<()> {
    let owner = path.split('.').next().unwrap_or(path);
    match v {
        Value::Document(d) => match pando_bson::fields::doubled(d) {
            Some(twice) => Err(duplicate(owner, twice)),
            None => check_fields(CLUSTERED, owner, d),
        },
        v if v.is_number() || matches!(v, Value::Boolean(_)) => Ok(()),
        v => Err(pando_base::Error::type_mismatch(format!(
            "BSON field '{path}' is the wrong type '{}', expected types '[bool']",
            v.type_name()
        ))),
    }
}
