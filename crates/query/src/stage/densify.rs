//! `$densify`: documents for the steps of a sequence that are missing.
//!
//! The input comes sorted by the field (a `$sort` in front does that; by partition first, unless the range is that of
//! the whole collection). Between two documents of a partition, one is made for each step of the grid that begins at
//! the lower bound.

use super::element::null_array;
use super::needs::Needs;
use super::parsed::{Compiled, Parsed};
use super::row::Row;
use super::running::{Running, Start};
use super::sort::Sort;
use super::step::Step;
use super::unwind::write_with;
use super::upstream::Upstream;
use crate::collation::Collation;
use crate::ctx::QueryCtx;
use crate::date::{self, Unit, Zone};
use crate::expr::{FieldPath, ParseCtx};
use crate::matcher::exact_i64;
use crate::number::Number;
use crate::sort::SortPattern;
use pando_base::{Error, Result};
use pando_bson::compare::cmp_values;
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuilder, Elem, RawDoc, Value};
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Copy, Debug)]
enum Point {
    Number(Number),
    Date(i64),
}

impl Point {
    fn of(v: Value<'_>) -> Option<Point> {
        match v {
            Value::DateTime(ms) => Some(Point::Date(ms)),
            v => Number::of(v).map(Point::Number),
        }
    }
    fn value(self) -> Value<'static> {
        match self {
            Point::Number(n) => n.value(),
            Point::Date(ms) => Value::DateTime(ms),
        }
    }
    fn less(self, other: Point) -> bool {
        cmp_values(self.value(), other.value()).is_lt()
    }
    fn is_date(self) -> bool {
        matches!(self, Point::Date(_))
    }
}

#[derive(Clone, Copy, Debug)]
enum Range {
    Full,
    Partition,
    /// From the first up to, without, the second.
    Between(Point, Point),
}

/// Documents for the steps of a sequence that are missing.
#[derive(Clone, PartialEq)]
pub(crate) struct Densify {
    field: FieldPath,
    partition_by: Vec<FieldPath>,
    step: Compiled<Number>,
    unit: Option<Unit>,
    range: Compiled<Range>,
}

struct Densifying {
    spec: Densify,
    /// Of each partition, the fields that name it and the grid point that comes next.
    partitions: BTreeMap<Box<[u8]>, Track>,
    bytes: usize,
    /// The smallest and largest value so far.
    first: Option<Point>,
    last: Option<Point>,
    out: VecDeque<Row>,
    /// A run of documents being made: partition, next number of the grid, end, and what follows.
    run: Option<Run>,
    made: usize,
    /// Partitions to be finished at the end of the input.
    finish: Option<Vec<Box<[u8]>>>,
    order: Vec<Box<[u8]>>,
    current: Option<Box<[u8]>>,
}

struct Track {
    /// The partition's fields.
    names: Row,
    /// Where the grid begins: for numbers, the last step or document that stood on it (its type goes on from there, and
    /// each step is added to the one before).
    origin: Point,
    /// The number of the grid's next step.
    next: i64,
}

struct Run {
    key: Box<[u8]>,
    end: Point,
    inclusive: bool,
    then: Option<Row>,
    /// What names the partition in the document that follows: equal values may differ in type.
    names: Option<Row>,
}

impl Densify {
    /// Step number `n` of the grid.
    fn grid(&self, origin: Point, n: i64) -> Result<Point> {
        Ok(match origin {
            Point::Number(o) => Point::Number(o + *self.step * number(n)),
            Point::Date(_) if n == 0 => origin,
            Point::Date(ms) => {
                let by = self.step.truncate_i64().and_then(|s| s.checked_mul(n));
                let unit = self.unit.unwrap_or(Unit::Millisecond);
                let by = by.ok_or_else(|| Error::location(5_166_406, "dateAdd overflowed"))?;
                Point::Date(date::add_exactly(ms, unit, by, &Zone::Utc)?)
            }
        })
    }
    /// The first grid number at or past `at`, at least `from`.
    fn past(&self, origin: Point, from: i64, at: Point) -> Result<i64> {
        let (mut low, mut high) = (from, from);
        let mut jump = 1i64;
        while self.grid(origin, high)?.less(at) {
            // Farther than there are steps (a decimal of 10^40): all of them come before it.
            if high == i64::MAX {
                return Ok(high);
            }
            low = high + 1;
            high = high.saturating_add(jump);
            jump = jump.saturating_mul(2);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.grid(origin, middle)?.less(at) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
    fn key(&self, doc: &RawDoc, ctx: &QueryCtx) -> Box<[u8]> {
        let mut key = KeyBuilder::default();
        for path in &self.partition_by {
            let v = path.of_doc(doc);
            key.append_with(v.value().unwrap_or(Value::Null), Collation::order(&ctx.collation));
        }
        key.finish().into()
    }
    /// The documents of a partition carry what names it, and so cannot be given another value of the field.
    fn check_names(&self, names: &Row) -> Result<()> {
        let (field, inside) =
            (self.field.parts(), |p: &FieldPath| p.parts().len() > self.field.parts().len());
        let within = |p: &FieldPath| inside(p) && p.parts().starts_with(field);
        if nested(names.doc(), self.field.parts()).is_some() || self.partition_by.iter().any(within) {
            return Err(Error::location(
                5_733_306,
                "DocGenerator cannot include field that is being densified",
            ));
        }
        Ok(())
    }
    fn names(&self, doc: &RawDoc) -> Row {
        let mut row = Row::from(DocBuilder::new().finish());
        for path in &self.partition_by {
            let mut holder = DocBuilder::new();
            let mut parts = path.parts();
            let v = path.of_doc(doc);
            if v.is_missing() {
                // Of a path that leads to nothing, what leads there is made.
                parts = &parts[..parts.len() - 1];
                if parts.is_empty() || nested(row.doc(), parts).is_some() {
                    continue;
                }
                holder.doc("", |_| {});
            } else {
                v.put_to(&mut holder, "");
            }
            let holder = holder.finish();
            let mut b = DocBuilder::new();
            write_with(row.doc(), parts, holder.first().map(|e| (e.ty, e.data())), &mut b);
            row = b.finish().into();
        }
        row
    }
    fn made(&self, names: &Row, at: Point) -> Row {
        let mut holder = DocBuilder::new();
        holder.value("", at.value());
        let holder = holder.finish();
        let mut b = DocBuilder::with_capacity(names.bytes().len() + 32);
        write_with(names.doc(), self.field.parts(), holder.first().map(|e| (e.ty, e.data())), &mut b);
        b.finish().into()
    }
    fn point(&self, doc: &RawDoc) -> Result<Option<Point>> {
        let Some(v) =
            nested(doc, self.field.parts()).filter(|v| !matches!(v, Value::Null | Value::Undefined))
        else {
            return Ok(None);
        };
        let point = Point::of(v);
        let point = point
            .ok_or_else(|| Error::location(5_733_201, "Densify field type must be numeric or a date"))?;
        match (point.is_date(), self.unit.is_some()) {
            (true, false) => Err(Error::location(
                6_053_600,
                "Encountered date densify value in collection when step does not have a date unit.",
            )),
            (false, true) => Err(Error::location(
                6_053_600,
                "Encountered numeric densify value in collection when step has a date unit.",
            )),
            _ => Ok(Some(point)),
        }
    }
}

/// A path does not lead into arrays here: there is nothing at its end.
fn nested<'a>(doc: &'a RawDoc, path: &[Box<str>]) -> Option<Value<'a>> {
    path.iter().try_fold(Value::Document(doc), |v, part| match v {
        Value::Document(d) => d.get(part),
        _ => None,
    })
}

fn number(n: i64) -> Number {
    i32::try_from(n).map_or(Number::Long(n), Number::Int)
}

impl Densifying {
    fn new(spec: Densify) -> Densifying {
        Densifying {
            spec,
            partitions: BTreeMap::new(),
            bytes: 0,
            first: None,
            last: None,
            out: VecDeque::new(),
            run: None,
            made: 0,
            finish: None,
            order: Vec::new(),
            current: None,
        }
    }

    /// A document of the input: what comes before it is made first.
    fn take(&mut self, row: Row, ctx: &QueryCtx) -> Result<()> {
        let Some(at) = self.spec.point(row.doc())? else {
            self.out.push_back(row);
            return Ok(());
        };
        let key = self.spec.key(row.doc(), ctx);
        self.close_previous(&key, ctx)?;
        let before = self.first;
        let first = *self.first.get_or_insert(at);
        self.last = Some(at);
        if !self.partitions.contains_key(&key) {
            let origin = match *self.spec.range {
                Range::Between(low, _) => low,
                // A later partition comes to the first value by a step, with the type and the digits that this gives it.
                Range::Full => match (before, first) {
                    (Some(_), Point::Number(_)) => {
                        let one_less = self.spec.grid(first, -1)?;
                        self.spec.grid(one_less, 1)?
                    }
                    _ => first,
                },
                Range::Partition => at,
            };
            let names = self.spec.names(row.doc());
            self.bytes += names.bytes().len() + key.len();
            if self.bytes > ctx.memory.densify {
                return Err(Error::location(
                    6_007_200,
                    format!("$densify exceeded memory limit of {}", ctx.memory.densify),
                ));
            }
            self.partitions.insert(key.clone(), Track { names, origin, next: 0 });
            self.order.push(key.clone());
        }
        let (end, inclusive) = match *self.spec.range {
            // A range without a length has a step before what is behind it.
            Range::Between(low, high) if !at.less(high) => (high, !low.less(high) && high.less(at)),
            _ => (at, false),
        };
        self.run = Some(Run { key, end, inclusive, then: Some(row), names: None });
        Ok(())
    }

    /// With explicit bounds partitions come one after another: the one before is finished when the next begins.
    fn close_previous(&mut self, key: &[u8], ctx: &QueryCtx) -> Result<()> {
        if let Range::Between(..) = *self.spec.range {
            let before = self.current.replace(key.into());
            if let (Some(before), Range::Between(_, high)) =
                (before.filter(|b| **b != *key), *self.spec.range)
            {
                self.run = Some(Run { key: before, end: high, inclusive: false, then: None, names: None });
                while let Some(row) = self.step(ctx)? {
                    self.out.push_back(row);
                }
            }
        }
        Ok(())
    }

    /// The next document of the run.
    fn step(&mut self, ctx: &QueryCtx) -> Result<Option<Row>> {
        let Some(run) = &mut self.run else { return Ok(None) };
        if let Some(track) = self.partitions.get_mut(&run.key) {
            let at = self.spec.grid(track.origin, track.next)?;
            if at.less(run.end) || (run.inclusive && !run.end.less(at)) {
                let names = match &run.then {
                    Some(row) => run.names.get_or_insert_with(|| self.spec.names(row.doc())),
                    None => &track.names,
                };
                self.spec.check_names(names)?;
                (track.origin, track.next) = match at {
                    Point::Number(_) => (at, 1),
                    Point::Date(_) => (track.origin, track.next + 1),
                };
                self.made += 1;
                let max = ctx.memory.densified_docs;
                if self.made > max {
                    return Err(Error::location(
                        5_897_900,
                        format!(
                            "Generated {} documents in $densify, which is over the limit of {max}. Increase the 'internalQueryMaxAllowedDensifyDocs' parameter to allow more generated documents",
                            self.made
                        ),
                    ));
                }
                return Ok(Some(self.spec.made(names, at)));
            }
            // The document stands on the grid: that step is there.
            if let Some(row) = &run.then
                && let Some(at) = self.spec.point(row.doc())?
            {
                track.next = match *self.spec.range {
                    Range::Between(low, _) if at.less(low) => track.next,
                    // Values of a partition begin its grid anew at each document.
                    Range::Between(..) | Range::Full | Range::Partition => {
                        let n = self.spec.past(track.origin, track.next, at)?;
                        match at.less(self.spec.grid(track.origin, n)?) {
                            true => n,
                            false if at.is_date() => n + 1,
                            false => {
                                track.origin = at;
                                1
                            }
                        }
                    }
                };
            }
        }
        Ok(self.run.take().and_then(|r| r.then))
    }

    /// Behind the last document: partitions go on to the end of the range.
    fn next_to_finish(&mut self, ctx: &QueryCtx) -> Result<bool> {
        // A range without a length has a step where no document has the field.
        let alone = self.finish.is_none() && self.partitions.is_empty();
        if self.finish.is_none() {
            let mut keys: Vec<Box<[u8]>> = match *self.spec.range {
                Range::Partition => Vec::new(),
                Range::Full if self.spec.partition_by.is_empty() => Vec::new(),
                Range::Full => self.order.clone(),
                Range::Between(low, _) => {
                    // Where no document has the field, the range is made once, of no partition.
                    if self.partitions.is_empty() {
                        let key = self.spec.key(RawDoc::empty(), ctx);
                        let names = Row::from(DocBuilder::new().finish());
                        self.partitions.insert(key.clone(), Track { names, origin: low, next: 0 });
                        self.current = Some(key);
                    }
                    self.current.take().into_iter().collect()
                }
            };
            keys.reverse();
            self.finish = Some(keys);
        }
        let Some(key) = self.finish.as_mut().and_then(Vec::pop) else { return Ok(false) };
        let (end, inclusive) = match (*self.spec.range, self.last) {
            (Range::Between(low, high), _) => (high, alone && !low.less(high)),
            (_, Some(last)) => (last, true),
            (_, None) => return Ok(false),
        };
        self.run = Some(Run { key, end, inclusive, then: None, names: None });
        Ok(true)
    }
}

impl Running for Densifying {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        loop {
            if let Some(row) = self.out.pop_front() {
                return Ok(Step::Row(row));
            }
            if let Some(row) = self.step(up.ctx())? {
                return Ok(Step::Row(row));
            }
            if self.finish.is_some() {
                if !self.next_to_finish(up.ctx())? {
                    return Ok(Step::Eof);
                }
                continue;
            }
            match up.next()? {
                Step::Row(row) => self.take(row, up.ctx())?,
                Step::NeedYield => return Ok(Step::NeedYield),
                Step::Eof => {
                    if !self.next_to_finish(up.ctx())? {
                        return Ok(Step::Eof);
                    }
                }
            }
        }
    }
}

impl Parsed for Densify {
    fn start(self, _: &mut Start<'_>) -> Result<Box<dyn Running>> {
        Ok(Box::new(Densifying::new(self)))
    }
    fn needs(&self, needs: &mut Needs) {
        needs.whole();
    }
}

fn wrong_type(field: &str, v: Value<'_>, wanted: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '$densify.{field}' is the wrong type '{}', expected type '{wanted}'",
        v.type_name()
    ))
}

fn missing(field: &str) -> Error {
    Error::location(40414, format!("BSON field '$densify.{field}' is missing but a required field"))
}

fn unknown(field: &str) -> Error {
    Error::location(40415, format!("BSON field '$densify.{field}' is an unknown field."))
}

/// `range` as it is written.
struct RangeSpec<'a> {
    step: Number,
    bounds: Value<'a>,
    unit: Option<&'a str>,
}

fn parse_range(spec: &RawDoc) -> Result<RangeSpec<'_>> {
    let (mut step, mut bounds, mut unit) = (None, None, None);
    for f in spec {
        match (f.name(), f.value()) {
            ("step" | "unit", Value::Null | Value::Undefined) => {}
            ("step", v) => {
                step = Some(Number::of(v).ok_or_else(|| {
                    Error::type_mismatch(format!(
                        "BSON field '$densify.range.step' is the wrong type '{}', expected types '[int, decimal, double, long']",
                        v.type_name()
                    ))
                })?);
            }
            ("bounds", v) => bounds = Some(v),
            ("unit", Value::String(name)) => unit = Some(name),
            ("unit", v) => return Err(wrong_type("range.unit", v, "string")),
            (other, _) => return Err(unknown(&format!("range.{other}"))),
        }
    }
    let step = step.ok_or_else(|| missing("range.step"))?;
    let bounds = bounds.ok_or_else(|| missing("range.bounds"))?;
    Ok(RangeSpec { step, bounds, unit })
}

/// What a range says, once it is known that the stage has all that it needs.
fn read_range(spec: &RangeSpec<'_>) -> Result<(Option<Unit>, Range)> {
    let RangeSpec { step, bounds, unit } = *spec;
    if !cmp_values(step.value(), Value::Int32(0)).is_gt() {
        return Err(Error::location(
            5_733_401,
            "The step parameter in a range statement must be a strictly positive numeric value",
        ));
    }
    if unit.is_some() && exact_i64(step.value()).is_none() {
        return Err(Error::location(
            6_586_400,
            "The step parameter in a range statement must be a whole number when densifying a date range",
        ));
    }
    let unit = unit.map(|name| {
        Unit::parse(name).ok_or_else(|| Error::failed_to_parse(format!("unknown time unit value: {name}")))
    });
    let unit = unit.transpose()?;
    Ok((unit, parse_bounds(bounds, step, unit)?))
}

fn parse_bounds(v: Value<'_>, step: Number, unit: Option<Unit>) -> Result<Range> {
    let list = match v {
        Value::String("full") => return Ok(Range::Full),
        Value::String("partition") => return Ok(Range::Partition),
        Value::String(_) => {
            return Err(Error::location(5_946_802, "Bounds string must either be 'full' or 'partition'"));
        }
        Value::Array(list) => list,
        _ => {
            return Err(Error::location(
                5_733_404,
                "The bounds in a range statement must be the string 'full', 'partition', or an ascending array of two \
                 numbers or two dates",
            ));
        }
    };
    let values: Vec<Value<'_>> = list.iter().map(|e| e.value()).collect();
    let [low, high] = *values else {
        return Err(Error::location(
            5_733_403,
            "A bounding array in a range statement must have exactly two elements",
        ));
    };
    if cmp_values(high, low).is_lt() {
        return Err(Error::location(
            5_733_402,
            "A bounding array must be an ascending array of either two dates or two numbers",
        ));
    }
    explicit_bounds(low, high, step, unit)
}

/// Two bounds that ascend. What they have to be goes by the first one.
fn explicit_bounds(low: Value<'_>, high: Value<'_>, step: Number, unit: Option<Unit>) -> Result<Range> {
    let text = match (Point::of(low), Point::of(high)) {
        (Some(Point::Number(_)), _) if unit.is_some() => {
            (5_733_409, "Numeric bounds may not have unit parameter")
        }
        (Some(low @ Point::Number(a)), Some(high @ Point::Number(b))) => {
            let kind = |n: Number| n.value().type_name();
            if kind(a) == kind(b) && kind(a) == kind(step) {
                return Ok(Range::Between(low, high));
            }
            (5_876_900, "Upper bound, lower bound, and step must all have the same type")
        }
        (Some(Point::Number(_)), _) => {
            (5_733_406, "A bounding array must contain either both dates or both numeric types")
        }
        (Some(low @ Point::Date(_)), Some(high @ Point::Date(_))) => {
            if unit.is_some() {
                return Ok(Range::Between(low, high));
            }
            (5_733_410, "A bounding array of dates must specify a unit")
        }
        (Some(Point::Date(_)), _) => {
            (5_733_405, "A bounding array must contain either both dates or both numeric types")
        }
        _ => (5_946_800, "Explicit bounds must be numeric or dates"),
    };
    Err(Error::location(text.0, text.1))
}

pub(super) fn parse(e: Elem<'_>, _: &mut ParseCtx<'_>) -> Result<Densify> {
    let Value::Document(spec) = e.value() else {
        return Err(Error::failed_to_parse(format!(
            "The $densify stage specification must be an object, found {}",
            e.ty.name()
        )));
    };
    let (mut field, mut partitions, mut range) = (None, Vec::new(), None);
    for f in spec {
        match (f.name(), f.value()) {
            ("field" | "range", Value::Null | Value::Undefined) => {}
            ("partitionByFields", Value::Null | Value::Undefined) => {
                return Err(null_array("partitionByFields"));
            }
            ("field", Value::String(path)) => field = Some(path),
            ("field", v) => return Err(wrong_type("field", v, "string")),
            ("partitionByFields", Value::Array(a)) => {
                for e in a {
                    match e.value() {
                        Value::String(path) => partitions.push(path),
                        Value::Undefined | Value::Null => {}
                        v => return Err(wrong_type(&format!("partitionByFields.{}", e.name()), v, "string")),
                    }
                }
            }
            ("partitionByFields", v) => return Err(wrong_type("partitionByFields", v, "array")),
            ("range", Value::Document(d)) => range = Some(parse_range(d)?),
            ("range", v) => return Err(wrong_type("range", v, "object")),
            (other, _) => return Err(unknown(other)),
        }
    }
    let field = field.ok_or_else(|| missing("field"))?;
    let spec = range.ok_or_else(|| missing("range"))?;
    let (unit, range) = read_range(&spec)?;
    let path = FieldPath::parse(field)?;
    let partition_by = partitions.iter().map(|p| FieldPath::parse(p)).collect::<Result<Vec<_>>>()?;
    if matches!(range, Range::Partition) && partition_by.is_empty() {
        return Err(Error::location(
            5_733_408,
            "One cannot specify the bounds as 'partition' without specifying a non-empty array of partitionByFields. You \
             may have meant to specify 'full' bounds.",
        ));
    }
    let (step, range) = (Compiled(spec.step), Compiled(range));
    Ok(Densify { field: path, partition_by, step, unit, range })
}

impl Densify {
    /// The order that documents have to come in.
    pub(super) fn order(&self) -> Result<Sort> {
        let mut order = DocBuilder::new();
        if !matches!(*self.range, Range::Full) {
            for path in &self.partition_by {
                order.i32(&path.dotted(), 1);
            }
        }
        order.i32(&self.field.dotted(), 1);
        Ok(Sort::by(SortPattern::parse(&order.finish())?))
    }
}
