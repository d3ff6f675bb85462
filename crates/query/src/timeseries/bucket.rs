//! One bucket: columns of measurements, with the least and greatest value of each field.

use super::TimeSeries;
use pando_base::limits::{BUCKET_BYTES_MAX, BUCKET_MEASUREMENTS_MAX};
use pando_base::{Error, Result};
use pando_bson::compare::cmp_values;
use pando_bson::{Bson, DocBuf, DocBuilder, Document, ObjectId, RawDoc};
use std::cmp::Ordering;

/// A bucket in memory.
#[derive(Clone, Debug)]
pub struct Bucket {
    pub id: ObjectId,
    /// Normalized; `None` when the measurements have none.
    meta: Option<Bson>,
    min: Document,
    max: Document,
    /// Field names with `(row, value)`.
    columns: Vec<(String, Vec<(usize, Bson)>)>,
    count: usize,
    bytes: usize,
    start_ms: i64,
}

/// Sub-documents with their fields in order, so that equal sources are equal bytes.
fn normalized(v: Bson) -> Bson {
    match v {
        Bson::Document(d) => {
            let mut fields: Vec<(String, Bson)> =
                d.into_fields().into_iter().map(|(k, v)| (k, normalized(v))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            let mut out = Document::new();
            for (k, v) in fields {
                out.push(k, v);
            }
            Bson::Document(out)
        }
        Bson::Array(a) => Bson::Array(a.into_iter().map(normalized).collect()),
        other => other,
    }
}

fn holder(v: &Bson) -> DocBuf {
    let mut b = DocBuilder::new();
    b.bson("", v);
    b.finish()
}

fn compare(a: &Bson, b: &Bson) -> Ordering {
    let (a, b) = (holder(a), holder(b));
    match (a.first(), b.first()) {
        (Some(a), Some(b)) => cmp_values(a.value(), b.value()),
        _ => Ordering::Equal,
    }
}

/// Takes `v` into the extreme that `wanted` stands for: documents and arrays member by member.
fn take_in(extreme: &mut Bson, v: &Bson, wanted: Ordering) {
    match (&mut *extreme, v) {
        (Bson::Document(a), Bson::Document(b)) => {
            for (name, value) in b.iter() {
                take_field(a, name, value, wanted);
            }
        }
        (Bson::Array(a), Bson::Array(b)) => {
            for (mine, theirs) in a.iter_mut().zip(b) {
                take_in(mine, theirs, wanted);
            }
            let have = a.len();
            a.extend(b.iter().skip(have).cloned());
        }
        _ => {
            if compare(v, extreme) == wanted {
                *extreme = v.clone();
            }
        }
    }
}

fn take_field(d: &mut Document, name: &str, v: &Bson, wanted: Ordering) {
    match d.get_mut(name) {
        Some(mine) => take_in(mine, v, wanted),
        None => d.push(name, v.clone()),
    }
}

impl Bucket {
    /// An empty bucket for measurements like this one. `unique` makes its `_id` its own.
    pub fn new(series: &TimeSeries, measurement: &RawDoc, unique: ObjectId) -> Result<Bucket> {
        let start_ms = series.bucket_start(series.time_of(measurement)?);
        let mut id = unique.0;
        id[..4].copy_from_slice(&((start_ms.div_euclid(1000)) as u32).to_be_bytes());
        let mut min = Document::new();
        min.push(series.time_field.clone(), Bson::DateTime(start_ms));
        Ok(Bucket {
            id: ObjectId(id),
            meta: Bucket::meta_of(series, measurement),
            min,
            max: Document::new(),
            columns: Vec::new(),
            count: 0,
            bytes: 0,
            start_ms,
        })
    }

    fn meta_of(series: &TimeSeries, measurement: &RawDoc) -> Option<Bson> {
        let v = measurement.get(series.meta_field.as_deref()?)?;
        Some(normalized(Bson::from(v)))
    }

    /// What measurements of one source have in common.
    pub fn source_of(series: &TimeSeries, measurement: &RawDoc) -> Vec<u8> {
        Bucket::meta_of(series, measurement).map_or_else(Vec::new, |m| holder(&m).into_bytes())
    }

    /// Reads a stored bucket.
    pub fn from_doc(series: &TimeSeries, doc: &RawDoc) -> Result<Bucket> {
        let damaged = || Error::internal(format!("this is no bucket of version 1: {doc}"));
        let d = Document::from(doc);
        let Some(Bson::ObjectId(id)) = d.get("_id") else { return Err(damaged()) };
        let control = d.get("control").and_then(Bson::as_doc).ok_or_else(damaged)?;
        let part = |name: &str| control.get(name).and_then(Bson::as_doc).cloned().ok_or_else(damaged);
        let (min, max) = (part("min")?, part("max")?);
        let Some(Bson::DateTime(start_ms)) = min.get(&series.time_field) else { return Err(damaged()) };
        let data = d.get("data").and_then(Bson::as_doc).ok_or_else(damaged)?;
        let mut columns = Vec::new();
        let mut count = 0;
        for (name, column) in data.iter() {
            let column = column.as_doc().ok_or_else(damaged)?;
            let mut rows = Vec::new();
            for (row, v) in column.iter() {
                rows.push((row.parse().map_err(|_| damaged())?, v.clone()));
            }
            if *name == series.time_field {
                count = rows.len();
            }
            columns.push((name.to_owned(), rows));
        }
        let meta = d.get("meta").cloned();
        let (id, start_ms) = (*id, *start_ms);
        Ok(Bucket { id, meta, min, max, columns, count, bytes: doc.byte_len(), start_ms })
    }

    /// Whether a measurement of the same source may go into this bucket.
    pub fn has_room(&self, series: &TimeSeries, time_ms: i64, bytes: usize) -> bool {
        self.count < BUCKET_MEASUREMENTS_MAX
            && self.bytes + bytes <= BUCKET_BYTES_MAX
            && time_ms >= self.start_ms
            && time_ms < self.start_ms + series.granularity.span_secs() * 1000
    }

    pub fn add(&mut self, series: &TimeSeries, measurement: &RawDoc) {
        for e in measurement {
            if Some(e.name()) == series.meta_field.as_deref() {
                continue;
            }
            let v = Bson::from(e.value());
            if e.name() != series.time_field {
                take_field(&mut self.min, e.name(), &v, Ordering::Less);
            }
            take_field(&mut self.max, e.name(), &v, Ordering::Greater);
            let at = match self.columns.iter().position(|(n, _)| n == e.name()) {
                Some(at) => at,
                None => {
                    self.columns.push((e.name().to_owned(), Vec::new()));
                    self.columns.len() - 1
                }
            };
            self.columns[at].1.push((self.count, v));
        }
        self.count += 1;
        self.bytes += measurement.byte_len();
    }

    pub fn to_doc(&self) -> DocBuf {
        let mut b = DocBuilder::with_capacity(self.bytes + 256);
        b.object_id("_id", self.id);
        b.doc("control", |c| {
            c.i32("version", 1);
            c.raw_doc("min", &self.min.to_raw());
            c.raw_doc("max", &self.max.to_raw());
        });
        if let Some(meta) = &self.meta {
            b.bson("meta", meta);
        }
        b.doc("data", |d| {
            for (name, rows) in &self.columns {
                d.doc(name, |c| {
                    for (row, v) in rows {
                        c.bson(&row.to_string(), v);
                    }
                });
            }
        });
        b.finish()
    }
}
