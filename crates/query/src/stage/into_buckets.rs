//! What stands behind `$_internalUnpackBucket` and can be asked of buckets is asked of them, before they are unpacked.
//!
//! A condition on the source holds for all measurements of a bucket or for none: it moves. A condition on the time is
//! asked of the bucket's least and greatest time, and of its `_id`, which begins with the least; it is asked again of
//! each measurement. A sort by the source moves too.

use super::match_forward::{conditions, joined, spec};
use super::unpack_bucket::Series;
use super::{Needs, Pipeline, add_needs, geo_near, matching, sort};
use crate::sort::SortPattern;
use crate::timeseries::{TimeSeries, id_seconds};
use pando_base::Result;
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, ObjectId, RawDoc, Value};
use std::collections::BTreeSet;

impl Pipeline {
    /// `$geoNear` on a time series.
    pub(super) fn measure_in_buckets(&mut self) -> Result<()> {
        let Some(part) = self.stages.get(1).and_then(|s| s.as_near()).cloned() else { return Ok(()) };
        let Some(series) = self.stages[0].as_unpack() else { return Ok(()) };
        let ask = Ask::of(&series);
        let behind = self.stages.split_off(2);
        let shown = self.shown.split_off(2);
        self.stages.truncate(1);
        let Some(unpack) = self.stages.pop() else { return Ok(()) };
        self.stages = geo_near::on_buckets(&part, unpack, |key| ask.renamed(key), &self.ctx)?;
        self.shown = self.stages.iter().map(|s| s.shown()).collect();
        self.stages.extend(behind);
        self.shown.extend(shown);
        Ok(())
    }
    /// Called when filters have moved as far forward as they can.
    pub(super) fn push_into_buckets(&mut self) -> Result<()> {
        let Some(series) = self.stages.first().and_then(|s| s.as_unpack()) else { return Ok(()) };
        let ask = Ask::of(&series);
        let mut of_buckets = Vec::new();
        let mut at = 1;
        while let Some(filter) = self.stages.get(at).and_then(|s| s.as_filter()) {
            let mut all = Vec::new();
            conditions(filter, &mut all);
            let mut staying = Vec::new();
            for c in all {
                match ask.of_source(&c) {
                    Some(moved) => of_buckets.push(moved),
                    None => {
                        ask.loosely(&c, &mut of_buckets);
                        staying.push(c);
                    }
                }
            }
            if staying.is_empty() {
                self.stages.remove(at);
                self.shown.remove(at);
                continue;
            }
            let rest = joined(&staying);
            self.stages[at] = matching::stage(&rest, &self.ctx)?;
            self.shown[at] = Some(spec(&rest));
            at += 1;
        }
        self.sort_buckets(&ask, at)?;
        if !of_buckets.is_empty() {
            let filter = joined(&of_buckets);
            self.stages.insert(0, matching::stage(&filter, &self.ctx)?);
            self.shown.insert(0, Some(spec(&filter)));
        }
        Ok(())
    }

    /// Moves a `$sort` by the source alone, which stands behind the filters, before the unpacking.
    fn sort_buckets(&mut self, ask: &Ask, at: usize) -> Result<()> {
        if !self.metas.is_empty() || !self.stages.get(at).is_some_and(|s| s.is_sort()) {
            return Ok(());
        }
        let Some(pattern) = self.shown[at].as_deref().and_then(|d| d.first()?.value().as_doc()) else {
            return Ok(());
        };
        let mut b = DocBuilder::new();
        for e in pattern {
            match ask.renamed(e.name()) {
                Some(path) if e.value().is_number() => b.raw(e.ty, &path, e.data()),
                _ => return Ok(()),
            };
        }
        let pattern = b.finish();
        self.stages.remove(at);
        self.shown.remove(at);
        self.stages.insert(0, sort::sort(SortPattern::parse(&pattern)?, &self.ctx));
        let mut shown = DocBuilder::new();
        shown.raw_doc("$sort", &pattern);
        self.shown.insert(0, Some(shown.finish()));
        Ok(())
    }

    /// Buckets give out only the fields that somebody looks at.
    pub(super) fn narrow_unpacked(&mut self) {
        let Some(at) = self.stages.iter().position(|s| s.as_unpack().is_some()) else { return };
        let mut needs = Needs::default();
        add_needs(&self.stages[at + 1..], &mut needs);
        if let Some(paths) = needs.fields() {
            let root = |path: &String| path.split('.').next().unwrap_or_default().to_owned();
            self.stages[at].keep_fields(paths.iter().map(root).collect::<BTreeSet<_>>());
        }
        self.shown[at] = self.stages[at].shown();
    }
}

/// A condition on the buckets that may hold measurements which meet `filter`.
pub fn bucket_filter(series: &TimeSeries, filter: &RawDoc) -> DocBuf {
    let ask = Ask {
        time: series.time_field.clone(),
        meta: series.meta_field.clone(),
        span_ms: Some(series.span_ms()),
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

/// Translates questions about measurements into questions about buckets.
struct Ask {
    time: String,
    meta: Option<String>,
    span_ms: Option<i64>,
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

/// A date in an expression: as it is, or as a literal.
fn constant(v: Value<'_>) -> Option<i64> {
    match v {
        Value::DateTime(ms) => Some(ms),
        Value::Document(d) if d.count() == 1 => match (d.elem("$const"), d.elem("$literal")) {
            (Some(e), _) | (_, Some(e)) => constant(e.value()),
            _ => None,
        },
        _ => None,
    }
}

impl Ask {
    fn of(series: &Series<'_>) -> Ask {
        Ask {
            time: series.time_field.to_owned(),
            meta: series.meta_field.map(str::to_owned),
            span_ms: series.span_secs.map(|n| n * 1000),
        }
    }
    /// A path of the source as buckets call it.
    fn renamed(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(self.meta.as_deref()?)?;
        (rest.is_empty() || rest.starts_with('.')).then(|| format!("meta{rest}"))
    }

    /// The same condition on buckets, when it looks at the source only.
    fn of_source(&self, c: &RawDoc) -> Option<DocBuf> {
        let mut b = DocBuilder::new();
        for e in c {
            match (e.name(), e.value()) {
                ("$and" | "$or" | "$nor", Value::Array(list)) => {
                    let mut branches = ArrayBuilder::new();
                    for branch in list {
                        branches.raw_doc(&self.of_source(branch.value().as_doc()?)?);
                    }
                    b.raw_array(e.name(), &branches.finish());
                }
                (path, _) => {
                    b.raw(e.ty, &self.renamed(path)?, e.data());
                }
            }
        }
        Some(b.finish())
    }

    /// What holds for the buckets of all measurements that meet the condition.
    fn loosely(&self, c: &RawDoc, out: &mut Vec<DocBuf>) {
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
                (path, Value::Document(ops)) if self.is_column(path) => self.places(path, ops, out),
                _ => out.extend(self.of_source(c).filter(|_| c.count() == 1)),
            }
        }
    }

    /// A measured field that has a column of its own.
    fn is_column(&self, path: &str) -> bool {
        !path.starts_with('$') && !path.contains('.') && path != self.time && self.renamed(path).is_none()
    }
    /// `$geoWithin` and `$geoIntersects` of a measurement, asked of its bucket.
    fn places(&self, path: &str, ops: &RawDoc, out: &mut Vec<DocBuf>) {
        let Some(op) = ops.first().filter(|_| ops.count() == 1) else { return };
        let (true, Value::Document(region)) =
            (matches!(op.name(), "$geoWithin" | "$geoIntersects"), op.value())
        else {
            return;
        };
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
        let is_time =
            |v: Value<'_>| matches!(v, Value::String(s) if s.strip_prefix('$') == Some(&*self.time));
        match (constant(a), constant(b)) {
            (None, Some(ms)) if is_time(a) => self.compare(op.name(), ms, out),
            (Some(ms), None) if is_time(b) => self.compare(flipped(op.name()), ms, out),
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

#[cfg(test)]
mod tests {
    use crate::ctx::QueryCtx;
    use crate::stage::Pipeline;

    fn shown(stages: &str) -> Vec<String> {
        let unpack =
            r#"{"$_internalUnpackBucket":{"timeField":"t","metaField":"m","bucketMaxSpanSeconds":3600}}"#;
        let text = format!("{{\"p\":[{unpack},{stages}]}}");
        let holder = pando_bson::extjson::parse(&text).unwrap().to_raw();
        let p = Pipeline::parse(holder.get("p").unwrap().as_array().unwrap(), &QueryCtx::default()).unwrap();
        p.shown().iter().flatten().map(|d| d.to_string()).collect()
    }

    #[test]
    fn conditions_on_the_source_move_and_those_on_the_time_are_asked_twice() {
        let all = shown(r#"{"$match":{"m.a":1,"x":2,"t":{"$gte":{"$date":{"$numberLong":"7200000"}}}}}"#);
        assert_eq!(
            all[0],
            "{ $match: { $and: [ { meta.a: 1 }, { control.max.t: { $gte: new Date(7200000) } }, \
             { control.min.t: { $gte: new Date(3600000) } }, \
             { _id: { $gte: ObjectId('00000e100000000000000000') } } ] } }"
        );
        assert!(all[2].contains("x: 2") && all[2].contains("$gte") && !all[2].contains("m.a"), "{all:?}");
    }

    #[test]
    fn a_disjunction_moves_when_all_of_it_does() {
        let all = shown(r#"{"$match":{"$or":[{"m":1},{"m":{"$gt":5}}]}}"#);
        assert_eq!(all[0], "{ $match: { $or: [ { meta: 1 }, { meta: { $gt: 5 } } ] } }");
        assert_eq!(all.len(), 2);
        let all = shown(r#"{"$match":{"$or":[{"m":1},{"x":5}]}}"#);
        assert!(all[0].contains("Unpack"), "{all:?}");
        let all = shown(r#"{"$match":{"$or":[{"m":1},{"t":{"$lt":{"$date":{"$numberLong":"0"}}}}]}}"#);
        assert!(all[0].contains("control.min.t") && all.len() == 3, "{all:?}");
    }

    #[test]
    fn only_fields_that_are_looked_at_are_unpacked_and_sorts_by_source_come_first() {
        let all = shown(r#"{"$group":{"_id":"$m.a","n":{"$sum":"$x.y"}}}"#);
        assert!(all[0].contains("include: [ \"m\", \"x\" ]"), "{all:?}");
        let all = shown(r#"{"$sort":{"m.b":-1}},{"$limit":{"$numberLong":"3"}}"#);
        assert_eq!(all[0], "{ $sort: { meta.b: -1 } }");
        assert!(all[1].contains("exclude: []") && all[2].contains("$limit"), "{all:?}");
        assert!(shown(r#"{"$sort":{"m":1,"t":1}}"#)[0].contains("Unpack"));
    }
}
