//! Questions about measurements, turned into questions about their buckets.

use super::conditions::{conditions, joined};
use super::unpack_bucket::UnpackBucket;
use crate::ctx::QueryCtx;
use crate::matcher::{BUCKET_HOLDS, Matcher, Place, is_askable};
use crate::timeseries::{TimeSeries, id_seconds};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, ObjectId, RawDoc, Value};

/// A condition on the buckets that may hold measurements which meet `filter`.
/// `collated`: strings are not compared by their bytes, in the buckets or by the filter.
pub fn bucket_filter(series: &TimeSeries, filter: &RawDoc, collated: bool) -> DocBuf {
    let ask = Ask {
        time: series.time_field.clone(),
        meta: series.meta_field.clone(),
        span_ms: Some(series.span_ms()),
        collated,
    };
    let (mut conds, mut of_buckets) = (Vec::new(), Vec::new());
    conditions(filter, &mut conds);
    for c in conds {
        match ask.of_source(&c) {
            Some(moved) => of_buckets.push(moved),
            None => ask.loosely(&c, &mut of_buckets),
        }
    }
    if of_buckets.is_empty() { DocBuf::new() } else { joined(&of_buckets) }
}

/// The filter of a partial index, over buckets: those which may hold measurements that it covers. 5916301 when a
/// condition cannot be asked of buckets.
pub fn partial_filter(series: &TimeSeries, filter: &RawDoc, collated: bool) -> Result<DocBuf> {
    Matcher::parse_in(Place::Document, filter, &QueryCtx::default())?;
    let mut conds = Vec::new();
    conditions(filter, &mut conds);
    let mut of_buckets = Vec::new();
    for c in conds {
        if c.elem("$comment").is_some() {
            continue;
        }
        // No index's filter computes; that is told of expressions which could be asked of buckets.
        if let Some(expr) = c.get("$expr").filter(|expr| is_of_source(series, expr)) {
            let text =
                format!("Error in specification {expr} :: caused by :: $expr is not allowed in this context");
            return Err(Error::new(ErrorCode::QueryFeatureNotAllowed, text));
        }
        let asked = bucket_filter(series, &c, collated);
        if asked.is_empty() || c.elem("$expr").is_some() {
            return Err(Error::location(
                5_916_301,
                format!(
                    "Error translating non-metadata time-series predicate to operate on buckets: can't handle this \
                     predicate: {c}"
                ),
            ));
        }
        of_buckets.push(asked);
    }
    Ok(if of_buckets.is_empty() { DocBuf::new() } else { joined(&of_buckets) })
}

/// Whether an expression looks at the source only, or at nothing.
fn is_of_source(series: &TimeSeries, v: &Value<'_>) -> bool {
    match v {
        Value::String(s) => match s.strip_prefix('$') {
            Some(path) => {
                let rest = series.meta_field.as_deref().and_then(|meta| path.strip_prefix(meta));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            }
            None => true,
        },
        Value::Document(d) | Value::Array(d) => d.iter().all(|e| is_of_source(series, &e.value())),
        _ => true,
    }
}

/// Translates questions about measurements into questions about buckets.
pub(super) struct Ask {
    pub(super) time: String,
    meta: Option<String>,
    pub(super) span_ms: Option<i64>,
    collated: bool,
}

fn one(name: &str, op: &str, v: Value<'_>) -> DocBuf {
    let mut b = DocBuilder::new();
    b.doc(name, |d| {
        d.value(op, v);
    });
    b.finish()
}

/// The comparison with its sides exchanged.
fn flipped(op: &str) -> &str {
    match op {
        "$gt" => "$lt",
        "$gte" => "$lte",
        "$lt" => "$gt",
        "$lte" => "$gte",
        same => same,
    }
}

/// A constant in an expression: as it is, or as a literal.
fn constant(v: Value<'_>) -> Option<Value<'_>> {
    match v {
        Value::String(s) if s.starts_with('$') => None,
        Value::Document(d) if d.count() == 1 => {
            d.elem("$const").or_else(|| d.elem("$literal")).map(|e| e.value())
        }
        Value::Document(_) | Value::Array(_) => None,
        v => Some(v),
    }
}

/// Numbers in paths may stand for places in arrays.
fn has_positions(path: &str) -> bool {
    path.split('.').any(|part| part.bytes().all(|b| b.is_ascii_digit()))
}

/// The path that an expression names.
fn field_of(v: Value<'_>) -> Option<&str> {
    v.as_str()?.strip_prefix('$').filter(|path| !path.starts_with('$'))
}

impl Ask {
    pub(super) fn of(series: &UnpackBucket, ctx: &QueryCtx) -> Ask {
        Ask {
            time: series.time_field.clone(),
            meta: series.meta_field.clone(),
            span_ms: series.span_secs.map(|n| n.saturating_mul(1000)),
            collated: ctx.collation.is_some(),
        }
    }
    /// A path of the source as buckets call it.
    pub(super) fn renamed(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(self.meta.as_deref()?)?;
        (rest.is_empty() || rest.starts_with('.')).then(|| format!("meta{rest}"))
    }

    /// The same condition on buckets, when it looks at the source only.
    pub(super) fn of_source(&self, c: &RawDoc) -> Option<DocBuf> {
        let mut b = DocBuilder::new();
        for e in c {
            match (e.name(), e.value()) {
                ("$and" | "$or" | "$nor", Value::Array(list)) => {
                    let mut branches = ArrayBuilder::new();
                    for branch in list {
                        branches.raw_doc(&self.of_source(branch.value().as_doc()?)?);
                    }
                    b.raw_array(e.name_bytes(), &branches.finish());
                }
                (path, _) => {
                    b.raw(e.ty, &self.renamed(path)?, e.data());
                }
            }
        }
        Some(b.finish())
    }

    /// What holds for the buckets of all measurements that meet the condition.
    pub(super) fn loosely(&self, c: &RawDoc, out: &mut Vec<DocBuf>) {
        for e in c {
            match (e.name(), e.value()) {
                ("$and", Value::Array(list)) => {
                    list.iter().filter_map(|b| b.value().as_doc()).for_each(|b| self.loosely(b, out));
                }
                ("$or", Value::Array(list)) => out.extend(self.any_of(list)),
                ("$expr", Value::Document(d)) => self.expression(d, out),
                (path, v) if path == self.time => match v {
                    Value::DateTime(ms) => self.compare("$eq", ms, out),
                    Value::Document(ops) => {
                        for op in ops {
                            match op.value() {
                                Value::DateTime(ms) => self.compare(op.name(), ms, out),
                                Value::Array(list) if op.name() == "$in" => self.one_of(list, out),
                                _ => {}
                            }
                        }
                    }
                    _ => {}
                },
                (path, Value::Document(ops)) if self.is_measured(path) => {
                    self.places(path, ops, out);
                    ops.iter().for_each(|op| self.extremes(path, op.name(), op.value(), false, out));
                }
                (path, v) if self.is_measured(path) => self.extremes(path, "$eq", v, false, out),
                _ => out.extend(self.of_source(c).filter(|_| c.count() == 1)),
            }
        }
    }

    fn is_measured(&self, path: &str) -> bool {
        !path.starts_with('$') && path != self.time && self.renamed(path).is_none()
    }
    /// A comparison of a measured value, asked of its bucket.
    fn extremes(&self, path: &str, op: &str, v: Value<'_>, across: bool, out: &mut Vec<DocBuf>) {
        if op == "$exists" && v.is_truthy() && !path.contains('.') {
            out.extend(["min", "max"].map(|end| one(&format!("control.{end}.{path}"), op, v)));
            return;
        }
        let askable = |v: Value<'_>| is_askable(v, self.collated);
        let asked = match (op, v) {
            ("$in", Value::Array(list)) => !list.is_empty() && list.iter().all(|v| askable(v.value())),
            ("$eq" | "$gt" | "$gte" | "$lt" | "$lte", v) => askable(v),
            _ => false,
        };
        if !asked {
            return;
        }
        let mut b = DocBuilder::new();
        b.doc(BUCKET_HOLDS, |d| {
            d.str("field", path).value(op, v);
            if across {
                d.bool("across", true);
            }
        });
        out.push(b.finish());
    }
    /// `$geoWithin` and `$geoIntersects` of a measurement, asked of its bucket.
    fn places(&self, path: &str, ops: &RawDoc, out: &mut Vec<DocBuf>) {
        let Some(op) = ops.first().filter(|_| ops.count() == 1 && !has_positions(path)) else { return };
        let (true, Value::Document(region)) =
            (matches!(op.name(), "$geoWithin" | "$geoIntersects"), op.value())
        else {
            return;
        };
        // What is no area can be met all the same, but not by a bucket's corners.
        let mut within = DocBuilder::new();
        within.raw_doc("$geoWithin", region);
        if op.name() == "$geoIntersects" && crate::geo::GeoQuery::parse(&within.finish()).is_err() {
            return;
        }
        let mut b = DocBuilder::new();
        b.doc(crate::geo::BUCKET_OPERATOR, |d| {
            d.raw_doc("withinRegion", region).str("field", path);
        });
        out.push(b.finish());
    }

    /// `None` when a branch may hold for any bucket.
    fn any_of(&self, branches: &RawDoc) -> Option<DocBuf> {
        let mut any = ArrayBuilder::new();
        for branch in branches {
            let mut all = Vec::new();
            let mut conds = Vec::new();
            conditions(branch.value().as_doc()?, &mut conds);
            for c in conds {
                match self.of_source(&c) {
                    Some(moved) => all.push(moved),
                    None => self.loosely(&c, &mut all),
                }
            }
            if all.is_empty() {
                return None;
            }
            any.raw_doc(&joined(&all));
        }
        let mut b = DocBuilder::new();
        b.raw_array("$or", &any.finish());
        Some(b.finish())
    }

    /// `{$gte: ["$time", date]}` and the like.
    fn expression(&self, e: &RawDoc, out: &mut Vec<DocBuf>) {
        let Some(op) = e.first() else { return };
        let Value::Array(args) = op.value() else { return };
        if op.name() == "$and" {
            args.iter().filter_map(|a| a.value().as_doc()).for_each(|a| self.expression(a, out));
            return;
        }
        let mut args = args.iter().map(|a| a.value());
        let (Some(a), Some(b), None) = (args.next(), args.next(), args.next()) else { return };
        let (path, op, v) = match (field_of(a), constant(b), constant(a), field_of(b)) {
            (Some(path), Some(v), ..) => (path, op.name(), v),
            (.., Some(v), Some(path)) => (path, flipped(op.name()), v),
            _ => return,
        };
        match v {
            Value::DateTime(ms) if path == self.time => self.compare(op, ms, out),
            // What is missing is less than any constant.
            v if self.is_measured(path) && matches!(op, "$eq" | "$gt" | "$gte") => {
                self.extremes(path, op, v, true, out);
            }
            _ => {}
        }
    }

    fn one_of(&self, list: &RawDoc, out: &mut Vec<DocBuf>) {
        let mut ends: Option<(i64, i64)> = None;
        for v in list {
            let Value::DateTime(ms) = v.value() else { return };
            ends = Some(ends.map_or((ms, ms), |(a, b)| (a.min(ms), b.max(ms))));
        }
        if let Some((first, last)) = ends {
            self.compare("$gte", first, out);
            self.compare("$lte", last, out);
        }
    }

    /// A measurement's time compared with `ms`, asked of its bucket.
    fn compare(&self, op: &str, ms: i64, out: &mut Vec<DocBuf>) {
        let id = |ms: i64, rest: u8| {
            let mut id = [rest; 12];
            id[..4].copy_from_slice(&id_seconds(ms).to_be_bytes());
            Value::ObjectId(ObjectId(id))
        };
        let (min, max) = (format!("control.min.{}", self.time), format!("control.max.{}", self.time));
        let date = Value::DateTime;
        match op {
            "$eq" => {
                self.compare("$gte", ms, out);
                self.compare("$lte", ms, out);
            }
            "$gt" | "$gte" => {
                out.push(one(&max, op, date(ms)));
                if let Some(first) = self.span_ms.and_then(|span| ms.checked_sub(span)) {
                    out.push(one(&min, op, date(first)));
                    out.push(one("_id", "$gte", id(first, 0)));
                }
            }
            "$lt" | "$lte" => {
                out.push(one(&min, op, date(ms)));
                if let Some(last) = self.span_ms.and_then(|span| ms.checked_add(span)) {
                    out.push(one(&max, op, date(last)));
                }
                out.push(one("_id", "$lte", id(ms, 0xff)));
            }
            _ => {}
        }
    }
}
