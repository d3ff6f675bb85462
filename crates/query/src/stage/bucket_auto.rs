//! `$bucketAuto`: sorts by a value, then cuts into buckets of about the same number of documents.

use super::bucket::is_path_or_expression;
use super::granularity::Granularity;
use super::needs::Needs;
use super::parsed::{Compiled, Parsed};
use super::row::Row;
use super::running::{Running, Start};
use super::step::Step;
use super::upstream::Upstream;
use crate::accumulator::{self, AccSpec, Accumulator};
use crate::collation::Collation;
use crate::ctx::QueryCtx;
use crate::doc_size::check_size;
use crate::expr::{Expr, ParseCtx, Scope, Val};
use crate::matcher::exact_i64;
use crate::number::{Number, short_double};
use crate::sort::{SortedRows, Sorter, SpillSpace};
use bytes::Bytes;
use pando_base::{Error, Result};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{Decimal128, DocBuf, DocBuilder, Elem, Value};
use std::sync::Arc;

/// Documents sorted and cut into so many buckets.
#[derive(Clone, PartialEq)]
pub(crate) struct BucketAuto(Compiled<Cuts>);

#[derive(Clone)]
struct Cuts {
    group_by: Expr,
    buckets: i32,
    accs: Vec<AccSpec>,
    granularity: Option<Granularity>,
}

struct Bucketing {
    spec: Cuts,
    spill: Option<Arc<dyn SpillSpace>>,
    state: State,
}

enum State {
    Fresh,
    Filling(Sorter<Bytes>, u64),
    Cutting(Cutting),
    Done,
}

struct Cutting {
    rows: SortedRows<Bytes>,
    size: u64,
    made: i32,
    ahead: Option<(Val<'static>, Bytes)>,
    last_max: Option<Val<'static>>,
}

struct Bucket {
    min: Val<'static>,
    max: Val<'static>,
    accs: Vec<Box<dyn Accumulator>>,
}

fn bucket_count(v: Value<'_>) -> Result<i32> {
    if !v.is_number() {
        return Err(Error::location(
            40241,
            format!(
                "The $bucketAuto 'buckets' field must be a numeric value, but found type: {}",
                v.type_name()
            ),
        ));
    }
    let n = exact_i64(v).and_then(|n| i32::try_from(n).ok()).ok_or_else(|| {
        let text = match v {
            Value::Double(d) => short_double(d),
            Value::Int64(n) => short_double(n as f64),
            v => format!("{v:#}"),
        };
        Error::location(
            40242,
            format!(
                "The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found {text}"
            ),
        )
    })?;
    Ok(n)
}

pub(super) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<BucketAuto> {
    let Value::Document(spec) = e.value() else {
        return Err(Error::location(
            40240,
            format!("The argument to $bucketAuto must be an object, but found type: {}", e.ty.name()),
        ));
    };
    let (mut group_by, mut buckets, mut accs, mut granularity) = (None, None, None, None);
    for f in spec {
        match (f.name(), f.value()) {
            ("groupBy", v) => {
                if !is_path_or_expression(v) {
                    return Err(Error::location(
                        40239,
                        format!(
                            "The $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an expression object, \
                             but found: {v:#}"
                        ),
                    ));
                }
                group_by = Some(p.parse(v)?);
            }
            ("buckets", v) => buckets = Some(bucket_count(v)?),
            ("output", Value::Document(d)) => accs = Some(outputs(d, p)?).filter(|a| !a.is_empty()),
            ("output", v) => {
                let text = format!(
                    "The $bucketAuto 'output' field must be an object, but found type: {}",
                    v.type_name()
                );
                return Err(Error::location(40244, text));
            }
            ("granularity", Value::String(name)) => granularity = Some(Granularity::parse(name)?),
            ("granularity", v) => {
                let text = format!(
                    "The $bucketAuto 'granularity' field must be a string, but found type: {}",
                    v.type_name()
                );
                return Err(Error::location(40261, text));
            }
            (other, _) => {
                return Err(Error::location(40245, format!("Unrecognized option to $bucketAuto: {other}")));
            }
        }
    }
    let (Some(group_by), Some(buckets)) = (group_by, buckets) else {
        return Err(Error::location(40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified"));
    };
    if buckets <= 0 {
        let text = format!("The $bucketAuto 'buckets' field must be greater than 0, but found: {buckets}");
        return Err(Error::location(40243, text));
    }
    let accs = match accs {
        Some(accs) => accs,
        None => {
            let mut count = DocBuilder::new();
            count.i32("$sum", 1);
            vec![accumulator::parse("count", &count.finish(), p)?]
        }
    };
    Ok(BucketAuto(Compiled(Cuts { group_by, buckets, accs, granularity })))
}

fn outputs(d: &pando_bson::RawDoc, p: &mut ParseCtx<'_>) -> Result<Vec<AccSpec>> {
    d.iter()
        .map(|f| {
            let name = f.path()?;
            if name.contains('.') {
                let text = format!("The field name '{name}' cannot contain '.'");
                return Err(Error::location(40235, text));
            }
            match f.value() {
                Value::Document(_) if name.starts_with('$') => {
                    let text = format!("The field name '{name}' cannot be an operator name");
                    Err(Error::location(40236, text))
                }
                Value::Document(acc) => {
                    let mut spec = accumulator::parse(name, acc, p)?;
                    if spec.counts_by_group(p.ctx)? {
                        return Err(Error::location(4544714, "Can't refer to the group key in $bucketAuto"));
                    }
                    Ok(spec)
                }
                _ => Err(Error::location(40234, format!("The field '{name}' must be an accumulator object"))),
            }
        })
        .collect()
}

/// A boundary as a number that a granularity can round.
fn number(v: &Val<'_>) -> Result<f64> {
    let refuse = |code, text: String| Err(Error::location(code, text));
    let Some(n) = v.value().and_then(Number::of).map(Number::to_f64) else {
        return refuse(
            40258,
            format!(
                "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a value with type: {}",
                v.type_name()
            ),
        );
    };
    if n.is_nan() {
        return refuse(
            40259,
            "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a NaN"
                .to_owned(),
        );
    }
    if n < 0.0 {
        return refuse(
            40260,
            "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found a negative number"
                .to_owned(),
        );
    }
    Ok(n)
}

/// The next number of the series above or below a boundary; zero stays what it is.
fn rounded(g: &Granularity, v: &Val<'static>, up: bool) -> Result<Val<'static>> {
    let n = number(v)?;
    if n == 0.0 {
        return Ok(v.clone());
    }
    let n = if up { g.up(n) } else { g.down(n) };
    let whole = matches!(g, Granularity::PowersOf2) && n >= 1.0;
    Ok(match (v.value(), n as i64) {
        (Some(Value::Decimal128(_)), _) => Val::Ref(Value::Decimal128(Decimal128::from_f64(n))),
        (_, w) if whole => match i32::try_from(w) {
            Ok(w) => Val::int(w),
            Err(_) => Val::long(w),
        },
        _ => Val::double(n),
    })
}

impl Parsed for BucketAuto {
    fn start(self, run: &mut Start<'_>) -> Result<Box<dyn Running>> {
        Ok(Box::new(Bucketing { spec: self.0.0, spill: run.spill(), state: State::Fresh }))
    }
    fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        self.0.group_by.optimize(ctx)?;
        self.0.accs.iter_mut().try_for_each(|a| a.optimize(ctx))
    }
    fn needs(&self, needs: &mut Needs) {
        let mut complete = self.0.group_by.dependencies(needs.paths());
        for acc in &self.0.accs {
            complete &= acc.needs(needs.paths());
        }
        if complete { needs.settle() } else { needs.whole() }
    }
}

impl Bucketing {
    fn value_of(&self, row: &Bytes, ctx: &QueryCtx) -> Result<Val<'static>> {
        Ok(self.spec.group_by.eval_doc(pando_bson::RawDoc::trusted(row), ctx)?.into_owned())
    }
    fn fill(&self, sorter: &mut Sorter<Bytes>, count: &mut u64, up: &mut Upstream<'_>) -> Result<bool> {
        let mut key = KeyBuilder::default();
        loop {
            match up.next()? {
                Step::Row(row) => {
                    let v = self.value_of(row.bytes(), up.ctx())?;
                    if self.spec.granularity.is_some() {
                        number(&v)?;
                    }
                    key.clear();
                    key.append_with(v.value().unwrap_or(Value::Null), Collation::order(&up.ctx().collation));
                    sorter.add(key.bytes(), row.into_bytes())?;
                    *count += 1;
                }
                Step::NeedYield => return Ok(false),
                Step::Eof => return Ok(true),
            }
        }
    }
    fn next_row(&self, c: &mut Cutting, ctx: &QueryCtx) -> Result<Option<(Val<'static>, Bytes)>> {
        match c.rows.next_row()? {
            Some((_, row)) => Ok(Some((self.value_of(&row, ctx)?, row))),
            None => Ok(None),
        }
    }
    fn add(&mut self, bucket: &mut Bucket, (v, row): (Val<'static>, Bytes), ctx: &QueryCtx) -> Result<()> {
        let scope = Scope::new(pando_bson::RawDoc::trusted(&row), ctx);
        for (spec, acc) in self.spec.accs.iter_mut().zip(&mut bucket.accs) {
            spec.feed(&mut **acc, &scope)?;
        }
        bucket.max = v;
        Ok(())
    }
    /// Takes in what belongs below the bucket's upper boundary, and sets that.
    fn close(&mut self, bucket: &mut Bucket, c: &mut Cutting, ctx: &QueryCtx) -> Result<()> {
        let mut next = self.next_row(c, ctx)?;
        let compare = |a: &Val<'_>, b: &Val<'_>| {
            ctx.compare(a.value().unwrap_or(Value::Null), b.value().unwrap_or(Value::Null))
        };
        if let Some(g) = self.spec.granularity.clone() {
            let boundary = rounded(&g, &bucket.max, true)?;
            while let Some(row) = next.take_if(|n| compare(&n.0, &boundary).is_lt()) {
                number(&row.0)?;
                self.add(bucket, row, ctx)?;
                next = self.next_row(c, ctx)?;
            }
            if number(&bucket.max)? != 0.0 {
                bucket.max = boundary;
            } else if let Some((v, _)) = &next {
                bucket.max = rounded(&g, v, false)?;
            }
        } else {
            while let Some(row) = next.take_if(|n| compare(&n.0, &bucket.max).is_eq()) {
                self.add(bucket, row, ctx)?;
                next = self.next_row(c, ctx)?;
            }
            if let Some((v, _)) = &next {
                bucket.max = v.clone();
            }
        }
        c.ahead = next;
        Ok(())
    }
    fn next_bucket(&mut self, c: &mut Cutting, ctx: &QueryCtx) -> Result<Option<Row>> {
        let Some(first) = c.ahead.take() else { return Ok(None) };
        c.made += 1;
        let accs = self.spec.accs.iter().map(|s| s.start(&Val::Missing, ctx)).collect::<Result<Vec<_>>>()?;
        let mut bucket = Bucket { min: first.0.clone(), max: first.0.clone(), accs };
        if let Some(g) = &self.spec.granularity {
            let low = rounded(g, &first.0, false)?;
            bucket.min = c.last_max.take().unwrap_or(low);
        }
        self.add(&mut bucket, first, ctx)?;
        let last = c.made == self.spec.buckets;
        let mut taken = 1;
        while (last || taken < c.size)
            && let Some(row) = self.next_row(c, ctx)?
        {
            self.add(&mut bucket, row, ctx)?;
            taken += 1;
        }
        self.close(&mut bucket, c, ctx)?;
        c.last_max = Some(bucket.max.clone());
        self.output(bucket).map(Some)
    }
    fn output(&self, mut bucket: Bucket) -> Result<Row> {
        let mut b = DocBuilder::new();
        if !self.spec.accs.iter().any(|a| &*a.field == "_id") {
            b.doc("_id", |d| {
                d.value("min", bucket.min.value().unwrap_or(Value::Null));
                d.value("max", bucket.max.value().unwrap_or(Value::Null));
            });
        }
        for (spec, acc) in self.spec.accs.iter().zip(&mut bucket.accs) {
            acc.result()?.put_to(&mut b, &spec.field);
        }
        let doc: DocBuf = b.finish();
        check_size(&doc)?;
        Ok(doc.into())
    }
}

impl Running for Bucketing {
    fn held_bytes(&self) -> usize {
        match &self.state {
            State::Filling(sorter, _) => sorter.held_bytes(),
            State::Cutting(c) => c.rows.held_bytes(),
            State::Fresh | State::Done => 0,
        }
    }
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        loop {
            match std::mem::replace(&mut self.state, State::Done) {
                State::Fresh => {
                    let sorter = Sorter::new(None, up.ctx().memory.sort, self.spill.clone());
                    self.state = State::Filling(sorter, 0);
                }
                State::Filling(mut sorter, mut count) => {
                    if !self.fill(&mut sorter, &mut count, up)? {
                        self.state = State::Filling(sorter, count);
                        return Ok(Step::NeedYield);
                    }
                    let size = (count as f64 / f64::from(self.spec.buckets)).round().max(1.0) as u64;
                    let mut c =
                        Cutting { rows: sorter.finish()?, size, made: 0, ahead: None, last_max: None };
                    c.ahead = self.next_row(&mut c, up.ctx())?;
                    self.state = State::Cutting(c);
                }
                State::Cutting(mut c) => {
                    let Some(row) = self.next_bucket(&mut c, up.ctx())? else { return Ok(Step::Eof) };
                    self.state = State::Cutting(c);
                    return Ok(Step::Row(row));
                }
                State::Done => return Ok(Step::Eof),
            }
        }
    }
}
