//! Filters move towards the input, past stages that leave their fields alone or only rename them, and into joins, so
//! that fewer documents are worked on and an index may find them.

use super::conditions::{conditions, joined, renamed};
use super::matching::Match;
use super::parsed::Origin;
use super::pipeline::Pipeline;
use super::spec::{Spec, Stage};
use crate::ctx::QueryCtx;
use pando_base::Result;
use pando_base::limits::{CONDITION_BYTES_PER_LOOK, CONDITION_MOVES_EACH, CONDITION_MOVES_MIN};
use pando_bson::{DocBuf, DocBuilder, ElementType, RawDoc, Value};

/// The fields that a condition looks at; `None` when it may be anything, or is not always the same.
fn fields(condition: &RawDoc, out: &mut Vec<String>) -> Option<()> {
    for e in condition {
        match (e.name(), e.value()) {
            ("$and" | "$or" | "$nor", Value::Array(list)) => {
                for c in list {
                    fields(c.value().as_doc()?, out)?;
                }
            }
            (name, _) if name.starts_with('$') => return None,
            (name, _) => out.push(name.to_owned()),
        }
    }
    Some(())
}

/// Whether the condition tells equal values apart, or null from what is missing.
fn is_particular(condition: &RawDoc, collated: bool) -> bool {
    let operand = |v: Value<'_>| match v {
        v if v.element_type() == ElementType::Regex => collated,
        Value::MinKey | Value::MaxKey => true,
        _ => false,
    };
    let operator = |name: &str, v: Value<'_>| match (name, v) {
        ("$in" | "$nin", Value::Array(list)) => list.iter().any(|e| operand(e.value())),
        ("$eq" | "$ne" | "$gt" | "$gte" | "$lt" | "$lte" | "$mod", v) => operand(v),
        _ => true,
    };
    condition.iter().any(|e| match (e.name(), e.value()) {
        ("$and" | "$or" | "$nor", Value::Array(list)) => {
            list.iter().any(|c| c.value().as_doc().is_none_or(|d| is_particular(d, collated)))
        }
        (_, Value::Document(d)) if d.first().is_some_and(|f| f.name_bytes().starts_with(b"$")) => {
            d.iter().any(|op| match (op.name(), op.value()) {
                ("$not", Value::Document(inner)) => inner.iter().any(|i| operator(i.name(), i.value())),
                (name, v) => operator(name, v),
            })
        }
        (_, v) => operand(v),
    })
}

/// The condition as it is before a stage; `None` when it has to stay behind.
fn before(stage: &Stage, condition: &RawDoc, collated: bool) -> Option<DocBuf> {
    let mut paths = Vec::new();
    fields(condition, &mut paths)?;
    let same = |p: &String| stage.spec.origin(p).is_some_and(|o: Origin| o.same);
    if !paths.iter().all(same) && is_particular(condition, collated) {
        return None;
    }
    renamed(condition, &|p| stage.spec.origin(p).map(|o| o.path))
}

/// A filter on its way to the front.
struct Carried {
    conditions: Vec<DocBuf>,
    /// The stage it was, until it gets past another or leaves conditions behind.
    unmoved: Option<Stage>,
}

impl Carried {
    /// What stays behind `stage`, and what gets past it. Each condition that is looked at is taken from `looks`;
    /// when none are left, all stay.
    fn past(
        self,
        stage: &Stage,
        ctx: &QueryCtx,
        looks: &mut usize,
    ) -> Result<(Option<Stage>, Option<Carried>)> {
        let (mut moving, mut staying) = (Vec::new(), Vec::new());
        for c in &self.conditions {
            *looks = looks.saturating_sub(1 + c.byte_len() / CONDITION_BYTES_PER_LOOK);
            let moved = if *looks == 0 { None } else { before(stage, c, ctx.collation.is_some()) };
            match moved {
                Some(moved) => moving.push(moved),
                None => staying.push(c.clone()),
            }
        }
        if moving.is_empty() {
            return Ok((Some(self.stage(ctx)?), None));
        }
        let left = match staying.is_empty() {
            true => None,
            false => Some(Carried { conditions: staying, unmoved: None }.stage(ctx)?),
        };
        Ok((left, Some(Carried { conditions: moving, unmoved: None })))
    }
    fn stage(self, ctx: &QueryCtx) -> Result<Stage> {
        match self.unmoved {
            Some(unmoved) => Ok(unmoved),
            None => Stage::matching(&joined(&self.conditions), ctx),
        }
    }
}

impl Pipeline {
    /// One walk from the last stage to the first, carrying the conditions that get past each of them.
    pub(super) fn move_filters_forward(&mut self) -> Result<()> {
        if !self.stages.iter().skip(1).any(|s| s.filter().is_some()) {
            return Ok(());
        }
        let mut looks = CONDITION_MOVES_MIN + CONDITION_MOVES_EACH * self.stages.len();
        // The filter that comes first is at the end, as are the stages done.
        let (mut carried, mut done): (Vec<Carried>, Vec<Stage>) = (Vec::new(), Vec::new());
        for stage in std::mem::take(&mut self.stages).into_iter().rev() {
            if let Some(filter) = stage.filter() {
                let mut parts = Vec::new();
                conditions(filter, &mut parts);
                looks += CONDITION_MOVES_EACH * parts.len();
                carried.push(Carried { conditions: parts, unmoved: Some(stage) });
                continue;
            }
            let mut on = Vec::new();
            for filter in carried {
                let (left, goes_on) = filter.past(&stage, &self.ctx, &mut looks)?;
                done.extend(left);
                on.extend(goes_on);
            }
            carried = on;
            done.push(stage);
        }
        for filter in carried {
            done.push(filter.stage(&self.ctx)?);
        }
        done.reverse();
        self.stages = done;
        Ok(())
    }

    /// Filters that follow one another become one, from `at` on.
    pub(super) fn join_filters(&mut self, at: usize) {
        let filters: Vec<&RawDoc> = self.stages[at..].iter().map_while(|s| s.filter()).collect();
        if filters.len() < 2 {
            return;
        }
        let mut all = DocBuilder::new();
        all.array("$and", |a| {
            filters.iter().for_each(|f| {
                a.raw_doc(f);
            });
        });
        let taken = filters.len();
        // Together they may be too large, or nest too deep: then they stay apart.
        if let Ok(one) = Stage::matching(&all.finish(), &self.ctx) {
            self.stages.splice(at..at + taken, [one]);
        }
    }
    /// Leaves these conditions of the filter at `at`; without any it goes away.
    fn keep_filter(&mut self, at: usize, staying: &[DocBuf]) -> Result<()> {
        match staying.is_empty() {
            true => drop(self.stages.remove(at)),
            false => self.stages[at] = Stage::matching(&joined(staying), &self.ctx)?,
        }
        Ok(())
    }

    /// Conditions on joined documents go into the join, where each of them becomes a document of its own.
    pub(super) fn filter_joined_documents(&mut self) -> Result<()> {
        let mut at = 1;
        while at < self.stages.len() {
            let (before, behind) = self.stages.split_at_mut(at);
            let (Some(Spec::Lookup(join)), Some(filter)) =
                (before.last_mut().map(|s| &mut s.spec), behind[0].filter())
            else {
                at += 1;
                continue;
            };
            let Some(field) = join.unwound_field() else {
                at += 1;
                continue;
            };
            let inside = |path: &str| path.strip_prefix(field)?.strip_prefix('.').map(str::to_owned);
            let (mut all, mut moving, mut staying) = (Vec::new(), Vec::new(), Vec::new());
            conditions(filter, &mut all);
            for c in all {
                match renamed(&c, &inside) {
                    Some(moved) => moving.push(moved),
                    None => staying.push(c),
                }
            }
            if !moving.is_empty() {
                join.joined = Some(Match::new(&joined(&moving), &self.ctx)?);
                self.keep_filter(at, &staying)?;
            }
            at += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(stages: &str) -> Vec<String> {
        let holder = pando_bson::extjson::parse(&format!("{{\"p\":{stages}}}")).unwrap().to_raw();
        let ctx = QueryCtx::default();
        let p = Pipeline::parse(holder.get("p").unwrap().as_array().unwrap(), &ctx).unwrap();
        p.shown().iter().flatten().map(|d| d.to_string()).collect()
    }

    #[test]
    fn a_filter_moves_past_what_leaves_its_fields_alone() {
        let all = shown(
            r#"[{"$addFields":{"x":1}},{"$unwind":"$b"},{"$sort":{"c":1}},{"$match":{"a":5,"b":1,"x":2}}]"#,
        );
        assert_eq!(all[0], "{ $match: { a: 5 } }");
        assert!(all.last().unwrap().contains("$sort"), "{all:?}");
    }

    #[test]
    fn a_filter_follows_a_field_to_its_old_name() {
        for (stage, condition) in [
            (r#"{"$project":{"z":"$a"}}"#, r#"{"z.x":5}"#),
            (r#"{"$addFields":{"z":"$a"}}"#, r#"{"z.x":5}"#),
            (r#"{"$group":{"_id":"$a"}}"#, r#"{"_id.x":5}"#),
            (r#"{"$group":{"_id":{"y":"$a"}}}"#, r#"{"_id.y.x":5}"#),
            (r#"{"$setWindowFields":{"partitionBy":"$a","output":{"r":{"$sum":1}}}}"#, r#"{"a.x":5}"#),
        ] {
            let all = shown(&format!("[{stage},{{\"$match\":{condition}}}]"));
            assert_eq!(all[0], "{ $match: { a.x: 5 } }", "{all:?}");
            assert_eq!(all.len(), 2);
        }
        // A group shows null for what is missing, so these ask for something else there.
        for condition in [r#"{"_id":{"$exists":true}}"#, r#"{"_id":{"$type":"null"}}"#] {
            let all = shown(&format!("[{{\"$group\":{{\"_id\":\"$a\"}}}},{{\"$match\":{condition}}}]"));
            assert!(all[0].contains("$group"), "{all:?}");
        }
    }

    #[test]
    fn a_filter_on_joined_documents_goes_into_the_join() {
        let join = r#"{"$lookup":{"from":"o","localField":"a","foreignField":"b","as":"j"}}"#;
        let all =
            shown(&format!(r#"[{join},{{"$unwind":"$j"}},{{"$match":{{"j.c":1,"j":{{"$ne":2}},"a":3}}}}]"#));
        assert_eq!(all[0], "{ $match: { a: 3 } }");
        assert!(all[1].contains("pipeline: [ { $match: { c: { $eq: 1 } } } ], unwinding"), "{all:?}");
        assert_eq!(all[2], "{ $match: { j: { $ne: 2 } } }");
        let kept = format!(
            r#"[{join},{{"$unwind":{{"path":"$j","preserveNullAndEmptyArrays":true}}}},{{"$match":{{"j.c":1}}}}]"#
        );
        assert_eq!(shown(&kept).len(), 2, "documents without a match are asked as well");
    }

    #[test]
    fn a_filter_stays_behind_limits_and_expressions_stay_where_they_are() {
        assert!(shown(r#"[{"$limit":{"$numberLong":"5"}},{"$match":{"a":5}}]"#)[0].contains("$limit"));
        assert!(
            shown(r#"[{"$addFields":{"x":1}},{"$match":{"$expr":{"$eq":["$a",1]}}}]"#)[0]
                .contains("$addFields")
        );
    }
}
