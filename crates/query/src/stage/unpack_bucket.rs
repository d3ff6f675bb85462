//! `$_internalUnpackBucket`: the measurements of a time series' buckets as documents.
//!
//! A bucket holds measurements of one source and one stretch of time as columns: `data.x.0` is field `x` of the
//! first measurement. A view of this stage alone is what users see of the collection of buckets. Columns are walked side
//! by side, only those that somebody behind looks at.

use super::bucket_frontier::{BucketOrder, FrontierReader};
use super::ends_of_buckets::instead_of;
use super::needs::Needs;
use super::parsed::Parsed;
use super::row::Row;
use super::running::{Running, Start};
use super::step::Step;
use super::upstream::Upstream;
use crate::exec::{Each, Fed};
use crate::expr::ParseCtx;
use crate::timeseries::{TimeSeries, is_compressed, uncompressed};
use pando_base::limits::STAGE_ROWS_PER_TURN;
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, ElementType, RawDoc, Value};
use std::collections::BTreeSet;
use std::ops::Range;

/// The measurements of buckets.
#[derive(Clone, PartialEq)]
pub(crate) struct UnpackBucket {
    pub(super) time_field: String,
    pub(super) meta_field: Option<String>,
    pub(super) span_secs: Option<i64>,
    /// Fields that are wanted, or that are not.
    listed: Vec<String>,
    includes: bool,
    pub(super) order: Option<BucketOrder>,
    /// Only the least and greatest values of these are looked at.
    pub(super) ends: Option<Vec<Vec<String>>>,
}

struct Unpacking {
    spec: UnpackBucket,
    order: Option<FrontierReader>,
    current: Option<Open>,
}

/// A bucket that is being unpacked.
struct Open {
    bucket: Row,
    /// Of `meta`, when it is wanted: type and where its value lies.
    meta: Option<(ElementType, Range<usize>)>,
    time: Column,
    columns: Vec<Column>,
    at: u32,
}

/// A column, and how far it has been walked.
struct Column {
    name: Range<usize>,
    /// Where its document lies in the bucket.
    doc: Range<usize>,
    /// The next element in that document.
    next: usize,
}

/// The number of a measurement as its columns name it.
struct Digits {
    text: [u8; 10],
    from: usize,
}

impl Digits {
    fn of(mut n: u32) -> Digits {
        let mut d = Digits { text: [b'0'; 10], from: 10 };
        loop {
            d.from -= 1;
            d.text[d.from] = b'0' + (n % 10) as u8;
            n /= 10;
            if n == 0 {
                return d;
            }
        }
    }
    fn bytes(&self) -> &[u8] {
        &self.text[self.from..]
    }
}

impl Column {
    /// Its value in this row, if it has one.
    #[inline]
    fn value<'b>(&mut self, bucket: &'b [u8], row: &Digits) -> Option<Elem<'b>> {
        let doc = RawDoc::trusted(&bucket[self.doc.clone()]);
        let (e, next) = doc.elem_at(self.next)?;
        if !e.is_named(row.bytes()) {
            return None;
        }
        self.next = next;
        Some(e)
    }
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

pub(super) fn parse(e: Elem<'_>, _: &mut ParseCtx<'_>) -> Result<UnpackBucket> {
    let Value::Document(spec) = e.value() else {
        return Err(Error::location(5_346_500, "$_internalUnpackBucket specification must be an object"));
    };
    let mut stage = UnpackBucket {
        time_field: String::new(),
        meta_field: None,
        span_secs: None,
        listed: Vec::new(),
        includes: false,
        order: None,
        ends: None,
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
            "bucketMaxSpanSeconds" => stage.span_secs = f.value().as_i64(),
            "assumeNoMixedSchemaData" | "usesExtendedRange" | "fixedBuckets" => {}
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
    Ok(stage)
}

fn check(series: &UnpackBucket, bucket: &RawDoc) -> Result<()> {
    if series.meta_field.is_none() && bucket.elem("meta").is_some() {
        return Err(Error::location(
            5_369_601,
            "The $_internalUnpackBucket stage expects buckets to have missing metadata regions if the metaField \
             parameter is not provided",
        ));
    }
    Ok(())
}

/// Where `part` lies in `whole`, which it is a slice of.
fn place(whole: &[u8], part: &[u8]) -> Range<usize> {
    let from = part.as_ptr() as usize - whole.as_ptr() as usize;
    from..from + part.len()
}

impl UnpackBucket {
    fn shows(&self, name: &[u8]) -> bool {
        self.listed.iter().any(|n| n.as_bytes() == name) == self.includes
    }
    /// Nobody looks at other fields.
    pub(super) fn keep_fields(&mut self, names: BTreeSet<String>) {
        let names = names.into_iter().filter(|n| self.shows(n.as_bytes())).collect();
        (self.listed, self.includes) = (names, true);
    }
    /// As it is written.
    pub(super) fn text(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.doc("$_internalUnpackBucket", |d| {
            d.array(if self.includes { "include" } else { "exclude" }, |a| {
                self.listed.iter().for_each(|n| {
                    a.str(n);
                });
            });
            d.str("timeField", &self.time_field);
            if let Some(m) = &self.meta_field {
                d.str("metaField", m);
            }
            if let Some(n) = self.span_secs {
                d.i32("bucketMaxSpanSeconds", n as i32);
            }
        });
        b.finish()
    }
}

impl Parsed for UnpackBucket {
    fn start(mut self, run: &mut Start<'_>) -> Result<Box<dyn Running>> {
        let order = self.order.take().map(|order| FrontierReader::start(order, run));
        Ok(Box::new(Unpacking { spec: self, order, current: None }))
    }
    fn needs(&self, needs: &mut Needs) {
        needs.whole();
    }
}

impl Unpacking {
    /// `None` for a bucket without measurements.
    fn open(&mut self, bucket: Row) -> Result<Option<Open>> {
        let doc = bucket.doc();
        if let Some(order) = &mut self.order {
            order.opens(doc)?;
        }
        check(&self.spec, doc)?;
        let ends = self.spec.ends.as_ref().and_then(|paths| instead_of(doc, &self.spec.time_field, paths));
        let bucket = match is_compressed(doc)? {
            _ if ends.is_some() => ends.unwrap_or_default().into(),
            true => {
                let wanted = |name: &[u8]| name == self.spec.time_field.as_bytes() || self.spec.shows(name);
                uncompressed(doc, &wanted)?.into_owned().into()
            }
            false => bucket,
        };
        let doc = bucket.doc();
        let whole = &bucket.bytes()[..];
        let column = |e: Elem<'_>| {
            let doc = e.value().as_doc()?;
            Some(Column { name: place(whole, e.name_bytes()), doc: place(whole, doc.as_bytes()), next: 4 })
        };
        let Some(data) = doc.get("data").and_then(|d| d.as_doc()) else { return Ok(None) };
        let Some(time) = data.elem(&self.spec.time_field).and_then(column) else { return Ok(None) };
        let others = data
            .iter()
            .filter(|c| c.name_bytes() != self.spec.time_field.as_bytes() && self.spec.shows(c.name_bytes()));
        let columns = others.filter_map(column).collect();
        let meta = match &self.spec.meta_field {
            Some(field) if self.spec.shows(field.as_bytes()) => {
                doc.elem("meta").map(|e| (e.ty, place(whole, e.data())))
            }
            _ => None,
        };
        Ok(Some(Open { meta, time, columns, at: 0, bucket }))
    }

    /// Appends the next measurement; false behind the last.
    fn append(&self, open: &mut Open, b: &mut DocBuilder) -> bool {
        let whole = &open.bucket.bytes()[..];
        let row = Digits::of(open.at);
        let Some(time) = open.time.value(whole, &row) else { return false };
        if self.spec.shows(self.spec.time_field.as_bytes()) {
            b.raw(time.ty, &self.spec.time_field, time.data());
        }
        if let (Some(field), Some((ty, data))) = (&self.spec.meta_field, &open.meta) {
            b.raw(*ty, field, &whole[data.clone()]);
        }
        for column in &mut open.columns {
            if let Some(v) = column.value(whole, &row) {
                b.raw(v.ty, &whole[column.name.clone()], v.data());
            }
        }
        open.at += 1;
        true
    }

    fn next_measurement(&mut self) -> Option<DocBuf> {
        let mut open = self.current.take()?;
        let mut b = DocBuilder::with_capacity(128);
        if !self.append(&mut open, &mut b) {
            return None;
        }
        self.current = Some(open);
        Some(b.finish())
    }
}

impl Running for Unpacking {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        loop {
            if let Some(doc) = self.next_measurement() {
                return Ok(Step::Row(doc.into()));
            }
            match up.next()? {
                Step::Row(bucket) => self.current = self.open(bucket)?,
                step => return Ok(step),
            }
        }
    }
    fn feed(&mut self, up: &mut Upstream<'_>, each: &mut Each<'_>) -> Option<Result<Fed>> {
        Some(self.feed_all(up, each))
    }
}

/// The measurements of one bucket.
pub fn measurements(series: &TimeSeries, bucket: &RawDoc) -> Result<Vec<DocBuf>> {
    let spec = UnpackBucket {
        time_field: series.time_field.clone(),
        meta_field: series.meta_field.clone(),
        span_secs: None,
        listed: Vec::new(),
        includes: false,
        order: None,
        ends: None,
    };
    let mut stage = Unpacking { spec, order: None, current: None };
    stage.current = stage.open(bucket.to_buf().into())?;
    Ok(std::iter::from_fn(|| stage.next_measurement()).collect())
}

impl Unpacking {
    /// One buffer for all measurements.
    fn feed_all(&mut self, up: &mut Upstream<'_>, each: &mut Each<'_>) -> Result<Fed> {
        let (mut buf, mut left) = (Vec::with_capacity(256), STAGE_ROWS_PER_TURN);
        loop {
            if let Some(mut open) = self.current.take() {
                loop {
                    if left == 0 {
                        self.current = Some(open);
                        return Ok(Fed::NeedYield);
                    }
                    left -= 1;
                    buf.clear();
                    let mut b = DocBuilder::append_to(std::mem::take(&mut buf));
                    if !self.append(&mut open, &mut b) {
                        break;
                    }
                    buf = b.into_buffer();
                    if !each(&buf)? {
                        self.current = Some(open);
                        return Ok(Fed::Stopped);
                    }
                }
            }
            match up.next()? {
                Step::Row(bucket) => self.current = self.open(bucket)?,
                Step::NeedYield => return Ok(Fed::NeedYield),
                Step::Eof => return Ok(Fed::Eof),
            }
        }
    }
}
