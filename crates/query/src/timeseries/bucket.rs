//! One bucket: columns of measurements, with the least and greatest value of each field.
//!
//! A column is kept as the bytes of its document's elements, so that reading and writing a bucket copies them and
//! adding a measurement appends.

use super::extremes::{Difference, Extremes};
use super::{TimeSeries, uncompressed};
use pando_base::limits::{BUCKET_BYTES_MAX, BUCKET_MEASUREMENTS_MAX};
use pando_base::{Error, Result};
use pando_bson::{AsName, Bson, DocBuf, DocBuilder, Document, ElementType, Name, ObjectId, RawDoc, Value};
use std::cmp::Ordering;

/// A bucket in memory.
#[derive(Clone, Debug)]
pub struct Bucket {
    pub id: ObjectId,
    /// `meta` as an element of its own; empty when the measurements have none.
    meta: DocBuf,
    min: Extremes,
    max: Extremes,
    columns: Vec<Column>,
    count: usize,
    bytes: usize,
    start_ms: i64,
}

#[derive(Clone, Debug)]
struct Column {
    name: Name,
    elems: Vec<u8>,
    /// How many of the bytes were there when the bucket was read.
    stored: usize,
}

impl Column {
    fn push(&mut self, row: &str, ty: ElementType, data: &[u8]) {
        self.elems.push(ty as u8);
        self.elems.extend_from_slice(row.as_bytes());
        self.elems.push(0);
        self.elems.extend_from_slice(data);
    }
}

/// Why a measurement does not go into a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    Count,
    Size,
    TimeForward,
    TimeBackward,
}

/// Sub-documents with their fields in order, so that equal sources are equal bytes.
fn normalized(v: Bson) -> Bson {
    match v {
        Bson::Document(d) => {
            let mut fields: Vec<(Name, Bson)> =
                d.into_fields().into_iter().map(|(k, v)| (k, normalized(v))).collect();
            fields.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
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

/// A document of these elements.
fn append_elems(b: &mut DocBuilder, name: impl AsName, elems: &[u8]) {
    let mut doc = Vec::with_capacity(elems.len() + 5);
    doc.extend_from_slice(&(elems.len() as u32 + 5).to_le_bytes());
    doc.extend_from_slice(elems);
    doc.push(0);
    b.raw(ElementType::Document, name, &doc);
}

fn elems_of(doc: &RawDoc) -> &[u8] {
    let bytes = doc.as_bytes();
    bytes.get(4..bytes.len() - 1).unwrap_or_default()
}

/// The beginning of the `_id`s of buckets that begin then. Times that it cannot tell are told by its least and its
/// greatest value, so that the order of `_id`s stays that of times.
pub fn id_seconds(start_ms: i64) -> u32 {
    start_ms.div_euclid(1000).clamp(0, i64::from(u32::MAX)) as u32
}

/// How many rows a column of dates has, from its length alone where rows are numbered without gaps.
fn rows_of_dates(column: &RawDoc) -> usize {
    let (mut left, mut rows) = (elems_of(column).len(), 0);
    let (mut digits, mut of_them) = (1, 10);
    loop {
        let one = 10 + digits;
        let n = (left / one).min(of_them);
        (left, rows) = (left - n * one, rows + n);
        if left == 0 {
            return rows;
        }
        if n < of_them {
            return column.count();
        }
        (digits, of_them) = (digits + 1, rows * 9);
    }
}

impl Bucket {
    /// An empty bucket for measurements like this one. `unique` makes its `_id` its own.
    pub fn new(series: &TimeSeries, measurement: &RawDoc, unique: ObjectId) -> Result<Bucket> {
        let start_ms = series.bucket_start(series.time_of(measurement)?);
        let mut id = unique.0;
        id[..4].copy_from_slice(&id_seconds(start_ms).to_be_bytes());
        let mut min = Extremes::new(Ordering::Less);
        min.push(&series.time_field, Bson::DateTime(start_ms));
        Ok(Bucket {
            id: ObjectId(id),
            meta: Bucket::source_of(series, measurement),
            min,
            max: Extremes::new(Ordering::Greater),
            columns: Vec::new(),
            count: 0,
            bytes: 0,
            start_ms,
        })
    }

    /// What measurements of one source have in common: `{meta: ..}`, or nothing.
    pub fn source_of(series: &TimeSeries, measurement: &RawDoc) -> DocBuf {
        let meta = series.meta_field.as_deref().and_then(|name| measurement.elem(name));
        let mut b = DocBuilder::new();
        match meta.map(|e| (e, e.value())) {
            None => {}
            Some((_, v @ (Value::Document(_) | Value::Array(_)))) => {
                b.bson("meta", &normalized(Bson::from(v)));
            }
            Some((e, _)) => {
                b.raw(e.ty, "meta", e.data());
            }
        }
        b.finish()
    }

    /// Reads a stored bucket; `None` when it takes no more measurements: closed, compressed, damaged.
    pub fn from_doc(series: &TimeSeries, doc: &RawDoc) -> Option<Bucket> {
        let closed = doc.get_path("control.closed").is_some_and(|v| v.is_truthy());
        if closed { None } else { Bucket::read(series, doc) }
    }
    fn read(series: &TimeSeries, doc: &RawDoc) -> Option<Bucket> {
        let Some(Value::ObjectId(id)) = doc.get("_id") else { return None };
        let control = doc.get("control")?.as_doc()?;
        if control.get("version")?.as_i64() != Some(1) {
            return None;
        }
        let min = control.get("min")?.as_doc()?;
        let Some(Value::DateTime(start_ms)) = min.get(&series.time_field) else { return None };
        let data = doc.get("data")?.as_doc()?;
        let mut columns = Vec::new();
        for column in data {
            let elems = elems_of(column.value().as_doc()?).to_vec();
            columns.push(Column { name: column.name_bytes().into(), stored: elems.len(), elems });
        }
        let mut meta = DocBuilder::new();
        if let Some(e) = doc.elem("meta") {
            meta.elem(e);
        }
        Some(Bucket {
            id,
            meta: meta.finish(),
            min: Extremes::stored(Ordering::Less, min),
            max: Extremes::stored(Ordering::Greater, control.get("max")?.as_doc()?),
            columns,
            count: rows_of_dates(data.get(&series.time_field)?.as_doc()?),
            bytes: doc.byte_len(),
            start_ms,
        })
    }

    /// The stored bucket with these measurements instead of its own: its `_id` and the beginning of its span stay.
    pub fn rebuilt(series: &TimeSeries, stored: &RawDoc, measurements: &[DocBuf]) -> Result<DocBuf> {
        let stored = uncompressed(stored, &|_| true)?;
        let Some(mut bucket) = Bucket::read(series, &stored) else {
            return Err(Error::internal("a bucket that cannot be read gives no measurement away"));
        };
        bucket.min = Extremes::new(Ordering::Less);
        bucket.min.push(&series.time_field, Bson::DateTime(bucket.start_ms));
        bucket.max = Extremes::new(Ordering::Greater);
        (bucket.columns, bucket.count) = (Vec::new(), 0);
        measurements.iter().for_each(|m| bucket.add(series, m));
        Ok(bucket.to_doc())
    }

    /// `{meta: ..}`, or nothing.
    pub fn source(&self) -> &RawDoc {
        &self.meta
    }

    pub fn start_ms(&self) -> i64 {
        self.start_ms
    }

    /// Whether a measurement of the same source may go into this bucket.
    pub fn room_for(
        &self,
        series: &TimeSeries,
        time_ms: i64,
        bytes: usize,
    ) -> std::result::Result<(), NoRoom> {
        if time_ms < self.start_ms {
            return Err(NoRoom::TimeBackward);
        }
        if time_ms.saturating_sub(self.start_ms) >= series.span_ms() {
            return Err(NoRoom::TimeForward);
        }
        if self.count >= BUCKET_MEASUREMENTS_MAX {
            return Err(NoRoom::Count);
        }
        if self.count > 0 && self.bytes + bytes > BUCKET_BYTES_MAX {
            return Err(NoRoom::Size);
        }
        Ok(())
    }

    pub fn add(&mut self, series: &TimeSeries, measurement: &RawDoc) {
        let row = self.count.to_string();
        let mut next = 0;
        for e in measurement {
            let name = e.name_bytes();
            if Some(name) == series.meta_field.as_ref().map(|meta| meta.as_bytes()) {
                continue;
            }
            if name != series.time_field.as_bytes() {
                self.min.take(name, e.value());
            }
            self.max.take(name, e.value());
            // Fields mostly come in the same order.
            let at = match self.columns.get(next) {
                Some(c) if c.name.as_bytes() == name => next,
                _ => self.column(name),
            };
            self.columns[at].push(&row, e.ty, e.data());
            next = at + 1;
        }
        self.count += 1;
        self.bytes += measurement.byte_len();
    }

    fn column(&mut self, name: &[u8]) -> usize {
        match self.columns.iter().position(|c| c.name.as_bytes() == name) {
            Some(at) => at,
            None => {
                self.columns.push(Column { name: name.into(), elems: Vec::new(), stored: 0 });
                self.columns.len() - 1
            }
        }
    }

    pub fn to_doc(&self) -> DocBuf {
        let mut b = DocBuilder::with_capacity(self.bytes * 2 + 256);
        b.object_id("_id", self.id);
        b.doc("control", |c| {
            c.i32("version", 1);
            self.min.append_to(c, "min");
            self.max.append_to(c, "max");
        });
        b.elems_of(&self.meta);
        b.doc("data", |d| {
            for c in &self.columns {
                append_elems(d, &c.name, &c.elems);
            }
        });
        b.finish()
    }

    /// A `$v: 2` difference between the bucket as it was read and as it is now.
    pub fn diff(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        let ends: Vec<(&str, Difference)> = [("min", &self.min), ("max", &self.max)]
            .into_iter()
            .filter_map(|(n, e)| Some((n, e.diff()?)))
            .collect();
        if !ends.is_empty() {
            b.doc("scontrol", |c| {
                if ends.iter().any(|(_, d)| matches!(d, Difference::Whole(_))) {
                    c.doc("u", |u| {
                        for (name, d) in &ends {
                            if let Difference::Whole(new) = d {
                                u.raw_doc(name, new);
                            }
                        }
                    });
                }
                for (name, d) in &ends {
                    if let Difference::Parts(diff) = d {
                        c.raw_doc(&format!("s{name}"), diff);
                    }
                }
            });
        }
        b.doc("sdata", |d| {
            if self.columns.iter().any(|c| c.stored == 0) {
                d.doc("i", |i| {
                    for c in self.columns.iter().filter(|c| c.stored == 0) {
                        append_elems(i, &c.name, &c.elems);
                    }
                });
            }
            for c in self.columns.iter().filter(|c| c.stored > 0 && c.stored < c.elems.len()) {
                d.doc(&[b"s", c.name.as_bytes()].concat(), |s| append_elems(s, "i", &c.elems[c.stored..]));
            }
        });
        b.finish()
    }
}
