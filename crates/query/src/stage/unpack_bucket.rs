//! `$_internalUnpackBucket`: the measurements of a time series' buckets as documents.
//!
//! A bucket holds measurements of one source and one stretch of time as columns: `data.x.0` is field `x` of the
//! first measurement. A view of this stage alone is what users see of the collection of buckets.

use super::{Needs, Row, Stage, Step, Upstream};
use crate::expr::ParseCtx;
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};

pub(super) struct UnpackBucket {
    time_field: String,
    meta_field: Option<String>,
    /// Fields that are wanted, or that are not.
    listed: Vec<String>,
    includes: bool,
    /// The bucket being unpacked, and the next row in it.
    current: Option<(Row, usize)>,
}

fn names(e: Elem<'_>) -> Result<Vec<String>> {
    let Value::Array(list) = e.value() else {
        return Err(Error::location(5_346_501, "include or exclude field must be an array"));
    };
    list.iter()
        .map(|n| match n.value() {
            Value::String(s) if s.contains('.') => Err(Error::location(
                5_346_503,
                "include or exclude field element must be a top-level field name",
            )),
            Value::String(s) => Ok(s.to_owned()),
            _ => Err(Error::location(5_346_502, "include or exclude field element must be a string")),
        })
        .collect()
}

pub(super) fn parse(e: Elem<'_>, _: &mut ParseCtx<'_>, out: &mut Vec<Box<dyn Stage>>) -> Result<()> {
    let Value::Document(spec) = e.value() else {
        return Err(Error::location(5_346_500, "$_internalUnpackBucket specification must be an object"));
    };
    let mut stage = UnpackBucket {
        time_field: String::new(),
        meta_field: None,
        listed: Vec::new(),
        includes: false,
        current: None,
    };
    let text = |f: Elem<'_>, code: i32| match f.value() {
        Value::String(s) => Ok(s.to_owned()),
        _ => Err(Error::location(code, format!("{} field must be a string", f.name()))),
    };
    let mut has_time = false;
    for f in spec {
        match f.name() {
            "timeField" => {
                stage.time_field = text(f, 5_346_504)?;
                has_time = true;
            }
            "metaField" => stage.meta_field = Some(text(f, 5_346_505)?),
            "include" | "exclude" => {
                stage.listed = names(f)?;
                stage.includes = f.name() == "include";
            }
            "bucketMaxSpanSeconds" | "assumeNoMixedSchemaData" | "usesExtendedRange" | "fixedBuckets" => {}
            other => {
                return Err(Error::location(
                    5_346_506,
                    format!("unrecognized parameter to $_internalUnpackBucket: {other}"),
                ));
            }
        }
    }
    if !has_time {
        return Err(Error::location(
            5_346_508,
            "The $_internalUnpackBucket stage requires a timeField parameter",
        ));
    }
    out.push(Box::new(stage));
    Ok(())
}

impl UnpackBucket {
    fn shows(&self, name: &str) -> bool {
        self.listed.iter().any(|n| n == name) == self.includes
    }

    /// Measurement `at` of a bucket; `None` behind the last.
    fn measurement(&self, bucket: &RawDoc, at: usize) -> Option<DocBuf> {
        let data = bucket.get("data")?.as_doc()?;
        let row = at.to_string();
        let times = data.get(&self.time_field)?.as_doc()?;
        let time = times.elem(&row)?;
        let mut b = DocBuilder::with_capacity(128);
        if self.shows(&self.time_field) {
            b.raw(time.ty, &self.time_field, time.data());
        }
        if let (Some(field), Some(meta)) = (&self.meta_field, bucket.elem("meta"))
            && self.shows(field)
        {
            b.raw(meta.ty, field, meta.data());
        }
        for column in data.iter().filter(|c| c.name() != self.time_field && self.shows(c.name())) {
            if let Some(v) = column.value().as_doc().and_then(|d| d.elem(&row)) {
                b.raw(v.ty, column.name(), v.data());
            }
        }
        Some(b.finish())
    }

    fn next_measurement(&mut self) -> Option<DocBuf> {
        let (bucket, at) = self.current.take()?;
        let doc = self.measurement(bucket.doc(), at)?;
        self.current = Some((bucket, at + 1));
        Some(doc)
    }
}

impl Stage for UnpackBucket {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        loop {
            if let Some(doc) = self.next_measurement() {
                return Ok(Step::Row(doc.into()));
            }
            match up.next()? {
                Step::Row(bucket) => {
                    let version =
                        bucket.doc().get("control").and_then(|c| c.as_doc()?.get("version")?.as_i64());
                    if version.is_some_and(|v| v != 1) {
                        return Err(Error::location(
                            5_346_510,
                            "this server reads buckets of version 1 only (uncompressed)",
                        ));
                    }
                    if self.meta_field.is_none() && bucket.doc().get("meta").is_some() {
                        return Err(Error::location(
                            5_369_601,
                            "The $_internalUnpackBucket stage expects buckets to have missing metadata regions if the \
                             metaField parameter is not provided",
                        ));
                    }
                    self.current = Some((bucket, 0));
                }
                step => return Ok(step),
            }
        }
    }
    fn needs(&self, needs: &mut Needs) {
        needs.whole();
    }
    fn drops_facts(&self) -> bool {
        true
    }
}
