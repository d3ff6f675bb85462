//! Options of collections as rows of the catalog and log entries carry them. They were checked when they were made, so what
//! only a command can get wrong is not looked for; what is null or not known here is passed over.

use crate::schema::options::{
    Capped, ClusteredIndex, CollectionOptions, ValidationAction, ValidationLevel, ViewDefinition, wrong_type,
};
use pando_base::{Error, Result};
use pando_bson::fields::safe_i64;
use pando_bson::{DocBuf, Elem, RawDoc, Value};
use pando_index::ttl_seconds;
use pando_query::timeseries::TimeSeries;

/// Parts that make one option together.
#[derive(Default)]
struct Parts<'a> {
    capped: bool,
    size: Option<i64>,
    max: Option<i64>,
    view_on: Option<&'a str>,
    pipeline: Option<&'a RawDoc>,
}

pub(super) fn read(options: &RawDoc) -> Result<CollectionOptions> {
    let (mut o, mut parts) = (CollectionOptions::default(), Parts::default());
    for e in options.iter().filter(|e| !matches!(e.value(), Value::Null | Value::Undefined)) {
        if !take_part(&mut parts, e)? {
            take(&mut o, e)?;
        }
    }
    // Older versions let convertToCapped store more than the bound; such a collection must still open.
    o.capped = parts.size.filter(|_| parts.capped).map(|size| Capped::new(size, parts.max));
    o.view = parts.view_on.map(|on| ViewDefinition {
        view_on: on.to_owned(),
        pipeline: parts.pipeline.map_or_else(DocBuf::new, RawDoc::to_buf),
    });
    Ok(o)
}

/// False when the field is none of the parts.
fn take_part<'a>(parts: &mut Parts<'a>, e: Elem<'a>) -> Result<bool> {
    match e.name() {
        "capped" => parts.capped = boolean(e)?,
        "size" => parts.size = safe_i64(&e.value()),
        "max" => parts.max = safe_i64(&e.value()),
        "viewOn" => match string(e)? {
            "" => return Err(Error::bad_value("'viewOn' cannot be empty")),
            on => parts.view_on = Some(on),
        },
        "pipeline" => match e.value() {
            Value::Array(stages) => parts.pipeline = Some(stages),
            _ => return Err(wrong_type("create", e, "type 'array'")),
        },
        _ => return Ok(false),
    }
    Ok(true)
}

fn take(o: &mut CollectionOptions, e: Elem<'_>) -> Result<()> {
    let filled = |e| object(e).map(|d| Some(d.to_buf()).filter(|d| !d.is_empty()));
    match e.name() {
        "validator" => o.validator = filled(e)?,
        "validationLevel" => {
            o.validation_level = Some(ValidationLevel::parse(string(e)?, "create.validationLevel")?);
        }
        "validationAction" => {
            o.validation_action = Some(ValidationAction::parse(string(e)?, "create.validationAction")?);
        }
        "collation" => o.collation = Some(object(e)?.to_buf()),
        "clusteredIndex" => o.clustered = clustered(e)?,
        "expireAfterSeconds" if e.value().is_number() => {
            o.expire_after_seconds = Some(ttl_seconds(e.value())?)
        }
        "expireAfterSeconds" => return Err(wrong_type("create", e, "types '[long, int, decimal, double']")),
        "changeStreamPreAndPostImages" => {
            let enabled = object(e)?.get("enabled");
            o.change_stream_pre_and_post_images = enabled.is_some_and(|on| on.is_truthy());
        }
        "storageEngine" => o.storage_engine = filled(e)?,
        "indexOptionDefaults" => o.index_option_defaults = filled(e)?,
        "temp" => o.temp = e.value().is_truthy(),
        "timeseries" => o.time_series = Some(TimeSeries::parse(object(e)?)?),
        "autoIndexId" => o.auto_index_id = Some(boolean(e)?),
        _ => {}
    }
    Ok(())
}

/// The buckets of a time series say no more than that they are clustered.
fn clustered(e: Elem<'_>) -> Result<Option<ClusteredIndex>> {
    let name = match e.value() {
        Value::Boolean(true) => "_id_",
        Value::Document(spec) => spec.get("name").and_then(|v| v.as_str()).unwrap_or("_id_"),
        v if v.is_number() || matches!(v, Value::Boolean(_)) => return Ok(None),
        _ => return Err(wrong_type("create", e, "types '[bool']")),
    };
    Ok(Some(ClusteredIndex { name: name.to_owned() }))
}

fn object(e: Elem<'_>) -> Result<&RawDoc> {
    e.value().as_doc().ok_or_else(|| wrong_type("create", e, "type 'object'"))
}
fn string(e: Elem<'_>) -> Result<&str> {
    e.value().as_str().ok_or_else(|| wrong_type("create", e, "type 'string'"))
}
fn boolean(e: Elem<'_>) -> Result<bool> {
    match e.value() {
        v if v.is_number() || matches!(v, Value::Boolean(_)) => Ok(v.is_truthy()),
        _ => Err(wrong_type("create", e, "types '[bool, long, int, decimal, double']")),
    }
}
