//! The fields of `collMod`, each looked at by itself in the order of the document, before anybody knows what the name
//! stands for. Nulls count as not given.

use crate::schema::options::{
    CAPPED_BYTES_MAX, ValidationAction, ValidationLevel, bounded, invalid, parse_images, wrong_type,
};
use pando_base::{Error, Result};
use pando_bson::fields::{self, duplicate, unknown};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};
use pando_query::timeseries::TimeSeries;

const OWNER: &str = "collMod";
const BOOLISH: &[&str] = &["bool", "long", "int", "decimal", "double"];
const NUMBERS: &[&str] = &["long", "int", "decimal", "double"];

/// The command's own fields that are given; unknown ones, and those of a wrong form, are errors.
pub fn checked_fields(body: &RawDoc, is_generic: impl Fn(&str) -> bool) -> Result<DocBuf> {
    let mut b = DocBuilder::new();
    let (mut dry_run, mut to_unique) = (false, false);
    for (i, e) in body.iter().enumerate() {
        if i == 0 {
            b.elem(e);
            continue;
        }
        if is_generic(e.name()) {
            continue;
        }
        if !FIELDS.contains(&e.name()) {
            return Err(unknown(OWNER, e.name()));
        }
        if is_none(e.value()) {
            if e.name() == "expireAfterSeconds" {
                return Err(fields::wrong_type(OWNER, e.name(), &e.value(), &["string", "long"]));
            }
            if e.name() == "pipeline" {
                return Err(Error::location(10065, "invalid parameter: expected an object (pipeline)"));
            }
            continue;
        }
        match e.name() {
            "index" => {
                let index = checked_index(object(e)?)?;
                to_unique = index.get("unique").is_some_and(|v| v.is_truthy());
                b.raw_doc("index", &index);
                continue;
            }
            "dryRun" => dry_run = boolish(OWNER, e)?,
            _ => check_form(e)?,
        }
        b.elem(e);
    }
    if dry_run && !to_unique {
        return Err(invalid(match body.get("index") {
            Some(Value::Document(_)) => "dry run mode requires an index modification with unique: true.",
            _ => "dry run mode requires an valid index modification.",
        }));
    }
    Ok(b.finish())
}

const FIELDS: &[&str] = &[
    "index",
    "validator",
    "validationLevel",
    "validationAction",
    "viewOn",
    "pipeline",
    "cappedSize",
    "cappedMax",
    "changeStreamPreAndPostImages",
    "expireAfterSeconds",
    "dryRun",
    "timeseries",
    "isTimeseriesNamespace",
];

fn check_form(e: Elem<'_>) -> Result<()> {
    let v = e.value();
    match e.name() {
        "validator" => object(e).map(drop),
        "validationLevel" => ValidationLevel::parse(string(e)?, "collMod.validationLevel").map(drop),
        "validationAction" => ValidationAction::parse(string(e)?, "collMod.validationAction").map(drop),
        "viewOn" if string(e)?.is_empty() => Err(Error::bad_value("'viewOn' cannot be empty")),
        "pipeline" => check_pipeline(e),
        "cappedSize" => bounded(OWNER, e, 1, CAPPED_BYTES_MAX, "<=").map(drop),
        "cappedMax" => bounded(OWNER, e, i64::MIN, i64::from(i32::MAX), "<").map(drop),
        "changeStreamPreAndPostImages" => parse_images(e, OWNER).map(drop),
        "expireAfterSeconds" if matches!(v, Value::String(_)) || v.is_number() => Ok(()),
        "expireAfterSeconds" => Err(fields::wrong_type(OWNER, e.name(), &v, &["string", "long"])),
        "timeseries" => TimeSeries::check_change(object(e)?),
        "isTimeseriesNamespace" if !matches!(v, Value::Boolean(_)) => {
            Err(fields::wrong_type(OWNER, e.name(), &v, &["bool"]))
        }
        _ => Ok(()),
    }
}

fn check_pipeline(e: Elem<'_>) -> Result<()> {
    let Value::Array(stages) = e.value() else { return Err(wrong_type(OWNER, e, "type 'array'")) };
    match stages.iter().find(|s| !matches!(s.value(), Value::Document(_))) {
        Some(bad) => {
            let name = format!("pipeline.{}", bad.name());
            Err(fields::wrong_type(OWNER, &name, &bad.value(), &["object"]))
        }
        None => Ok(()),
    }
}

fn checked_index(index: &RawDoc) -> Result<DocBuf> {
    const OWNER: &str = "collMod.index";
    if let Some(twice) = fields::doubled(index) {
        return Err(duplicate(OWNER, twice));
    }
    let mut b = DocBuilder::new();
    for f in index {
        let v = f.value();
        let expected: &[&str] = match f.name() {
            "name" | "keyPattern" | "expireAfterSeconds" | "hidden" | "unique" | "prepareUnique"
                if is_none(v) =>
            {
                continue;
            }
            "name" if matches!(v, Value::String(_)) => &[],
            "name" => &["string"],
            "keyPattern" if matches!(v, Value::Document(_)) => &[],
            "keyPattern" => &["object"],
            "expireAfterSeconds" if v.is_number() => &[],
            "expireAfterSeconds" => NUMBERS,
            "hidden" | "unique" | "prepareUnique" => {
                boolish(OWNER, f)?;
                &[]
            }
            other => return Err(unknown(OWNER, other)),
        };
        if !expected.is_empty() {
            return Err(fields::wrong_type(OWNER, f.name(), &v, expected));
        }
        b.elem(f);
    }
    Ok(b.finish())
}

fn is_none(v: Value<'_>) -> bool {
    matches!(v, Value::Null | Value::Undefined)
}

fn object(e: Elem<'_>) -> Result<&RawDoc> {
    e.value().as_doc().ok_or_else(|| wrong_type(OWNER, e, "type 'object'"))
}

fn string(e: Elem<'_>) -> Result<&str> {
    e.value().as_str().ok_or_else(|| wrong_type(OWNER, e, "type 'string'"))
}

fn boolish(owner: &str, e: Elem<'_>) -> Result<bool, Error> {
    match e.value() {
        Value::Boolean(on) => Ok(on),
        v if v.is_number() => Ok(v.is_truthy()),
        v => Err(fields::wrong_type(owner, e.name(), &v, BOOLISH)),
    }
}
