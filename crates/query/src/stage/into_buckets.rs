//! What stands behind `$_internalUnpackBucket` and can be asked of buckets is asked of them, before they are unpacked.
//!
//! A condition on the source holds for all measurements of a bucket or for none: it moves. A condition on the time is
//! asked of the bucket's least and greatest time, and of its `_id`, which begins with the least; it is asked again of
//! each measurement; so is one on a measured value, of the least and greatest one. A sort by the source moves too.

use super::ask_buckets::Ask;
use super::conditions::{conditions, joined};
use super::near_buckets::near_buckets;
use super::needs::Needs;
use super::pipeline::Pipeline;
use super::sort::Sort;
use super::spec::{Spec, Stage, add_needs};
use crate::sort::SortPattern;
use pando_base::Result;
use pando_bson::DocBuilder;
use std::collections::BTreeSet;

impl Pipeline {
    /// `$geoNear` on a time series.
    pub(super) fn measure_in_buckets(&mut self) -> Result<()> {
        let Some(part) = self.stages.get(1).and_then(|s| s.near()).cloned() else { return Ok(()) };
        let Some(ask) = self.stages[0].unpacking().map(|series| Ask::of(series, &self.ctx)) else {
            return Ok(());
        };
        let behind = self.stages.split_off(2);
        self.stages.truncate(1);
        let Some(mut unpack) = self.stages.pop() else { return Ok(()) };
        unpack.spell_unpacking();
        self.stages = near_buckets(&part, unpack, |key| ask.renamed(key), &self.ctx)?;
        self.stages.extend(behind);
        Ok(())
    }
    /// Called when filters have moved as far forward as they can.
    pub(super) fn push_into_buckets(&mut self) -> Result<()> {
        let Some(series) = self.stages.first().and_then(|s| s.unpacking()) else { return Ok(()) };
        let ask = Ask::of(series, &self.ctx);
        let mut of_buckets = Vec::new();
        let mut at = 1;
        while let Some(filter) = self.stages.get(at).and_then(|s| s.filter()) {
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
                continue;
            }
            self.stages[at] = Stage::matching(&joined(&staying), &self.ctx)?;
            at += 1;
        }
        self.sort_buckets(&ask, at)?;
        if !of_buckets.is_empty() {
            self.stages.insert(0, Stage::matching(&joined(&of_buckets), &self.ctx)?);
        }
        Ok(())
    }

    /// Moves a `$sort` by the source alone, which stands behind the filters, before the unpacking.
    fn sort_buckets(&mut self, ask: &Ask, at: usize) -> Result<()> {
        let Some(sort) = self.stages.get(at).filter(|_| self.metas.is_empty()) else { return Ok(()) };
        let (Some(Sort { pattern, .. }), false) = (sort.sort(), sort.hidden) else { return Ok(()) };
        let mut b = DocBuilder::new();
        for e in &*pattern.spec {
            match ask.renamed(e.name()) {
                Some(path) if e.value().is_number() => b.raw(e.ty, &path, e.data()),
                _ => return Ok(()),
            };
        }
        let sort = Sort::by(SortPattern::parse(&b.finish())?);
        self.stages.remove(at);
        self.stages.insert(0, Stage::new(sort.text(), sort));
        Ok(())
    }

    /// Buckets give out only the fields that somebody looks at.
    pub(super) fn narrow_unpacked(&mut self) {
        let Some(at) = self.stages.iter().position(|s| s.unpacking().is_some()) else { return };
        let mut needs = Needs::default();
        add_needs(&self.stages[at + 1..], &mut needs);
        if let (Some(paths), Spec::UnpackBucket(unpack)) = (needs.fields(), &mut self.stages[at].spec) {
            let root = |path: &String| path.split('.').next().unwrap_or_default().to_owned();
            unpack.keep_fields(paths.iter().map(root).collect::<BTreeSet<_>>());
        }
        self.stages[at].spell_unpacking();
        self.ask_for_ends(at);
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
        let all =
            shown(r#"{"$match":{"m.a":1,"x":{"$gt":2},"t":{"$gte":{"$date":{"$numberLong":"7200000"}}}}}"#);
        assert_eq!(
            all[0],
            "{ $match: { $and: [ { meta.a: 1 }, { $_internalBucketHolds: { field: \"x\", $gt: 2 } }, { control.max.t: { $gte: new Date(7200000) } }, \
             { control.min.t: { $gte: new Date(3600000) } }, \
             { _id: { $gte: ObjectId('00000e100000000000000000') } } ] } }"
        );
        assert!(
            all[2].contains("x: { $gt: 2") && all[2].contains("$gte") && !all[2].contains("m.a"),
            "{all:?}"
        );
    }

    #[test]
    fn a_disjunction_moves_when_all_of_it_does() {
        let all = shown(r#"{"$match":{"$or":[{"m":1},{"m":{"$gt":5}}]}}"#);
        assert_eq!(all[0], "{ $match: { $or: [ { meta: 1 }, { meta: { $gt: 5 } } ] } }");
        assert_eq!(all.len(), 2);
        let all = shown(r#"{"$match":{"$or":[{"m":1},{"x":{"$ne":5}}]}}"#);
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
