//! Filters move towards the input, past stages that leave their fields alone or only rename them, and into joins, so
//! that fewer documents are worked on and an index may find them.

use super::{Origin, Pipeline, Stage, matching};
use crate::ctx::QueryCtx;
use pando_base::Result;
use pando_base::limits::{CONDITION_BYTES_PER_LOOK, CONDITION_MOVES_EACH, CONDITION_MOVES_MIN};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc, Value};

/// The conditions that all have to hold, each as a filter of its own.
pub(super) fn conditions(filter: &RawDoc, out: &mut Vec<DocBuf>) {
    for e in filter {
        match (e.name(), e.value()) {
            ("$and", Value::Array(list)) => {
                for c in list {
                    if let Value::Document(d) = c.value() {
                        conditions(d, out);
                    }
                }
            }
            _ => {
                let mut b = DocBuilder::new();
                b.elem(e);
                out.push(b.finish());
            }
        }
    }
}

pub(super) fn joined(parts: &[DocBuf]) -> DocBuf {
    let mut b = DocBuilder::new();
    match parts {
        [one] => {
            b.elems_of(one);
        }
        many => {
            b.array("$and", |a| {
                for p in many {
                    a.raw_doc(p);
                }
            });
        }
    }
    b.finish()
}

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

/// The condition with its paths as `to` names them; `None` when one of them has no other name.
fn renamed(condition: &RawDoc, to: &dyn Fn(&str) -> Option<String>) -> Option<DocBuf> {
    let mut b = DocBuilder::new();
    for e in condition {
        match (e.name(), e.value()) {
            ("$and" | "$or" | "$nor", Value::Array(list)) => {
                let mut all = ArrayBuilder::new();
                for c in list {
                    all.raw_doc(&renamed(c.value().as_doc()?, to)?);
                }
                b.raw_array(e.name(), &all.finish());
            }
            (name, _) if name.starts_with('$') => return None,
            (name, v) => {
                b.value(&to(name)?, v);
            }
        }
    }
    Some(b.finish())
}

/// Whether the condition tells equal values apart, or null from what is missing.
fn is_particular(condition: &RawDoc, collated: bool) -> bool {
    let operand = |v: Value<'_>| match v {
        Value::Regex { .. } => collated,
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
        (_, Value::Document(d)) if d.first().is_some_and(|f| f.name().starts_with('$')) => {
            d.iter().any(|op| match (op.name(), op.value()) {
                ("$not", Value::Document(inner)) => inner.iter().any(|i| operator(i.name(), i.value())),
                (name, v) => operator(name, v),
            })
        }
        (_, v) => operand(v),
    })
}

/// The condition as it is before a stage; `None` when it has to stay behind.
fn before(stage: &dyn Stage, condition: &RawDoc, collated: bool) -> Option<DocBuf> {
    let mut paths = Vec::new();
    fields(condition, &mut paths)?;
    let same = |p: &String| stage.origin(p).is_some_and(|o: Origin| o.same);
    if !paths.iter().all(same) && is_particular(condition, collated) {
        return None;
    }
    renamed(condition, &|p| stage.origin(p).map(|o| o.path))
}

pub(super) fn spec(filter: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::new();
    b.raw_doc("$match", filter);
    b.finish()
}

/// A stage, and how explain shows it.
type Shown = (Box<dyn Stage>, Option<DocBuf>);

/// A filter on its way to the front.
struct Carried {
    conditions: Vec<DocBuf>,
    /// The stage it was, until it gets past another or leaves conditions behind.
    unmoved: Option<Shown>,
}

impl Carried {
    /// What stays behind `stage`, and what gets past it. Each condition that is looked at is taken from `looks`;
    /// when none are left, all stay.
    fn past(
        self,
        stage: &dyn Stage,
        ctx: &QueryCtx,
        looks: &mut usize,
    ) -> Result<(Option<Shown>, Option<Carried>)> {
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
    fn stage(self, ctx: &QueryCtx) -> Result<Shown> {
        if let Some(unmoved) = self.unmoved {
            return Ok(unmoved);
        }
        let filter = joined(&self.conditions);
        Ok((matching::stage(&filter, ctx)?, Some(spec(&filter))))
    }
}

impl Pipeline {
    /// One walk from the last stage to the first, carrying the conditions that get past each of them.
    pub(super) fn move_filters_forward(&mut self) -> Result<()> {
        if !self.stages.iter().skip(1).any(|s| s.as_filter().is_some()) {
            return Ok(());
        }
        let mut looks = CONDITION_MOVES_MIN + CONDITION_MOVES_EACH * self.stages.len();
        // The filter that comes first is at the end, as are the stages done.
        let (mut carried, mut done): (Vec<Carried>, Vec<Shown>) = (Vec::new(), Vec::new());
        let shown = std::mem::take(&mut self.shown);
        for (stage, shown) in std::mem::take(&mut self.stages).into_iter().zip(shown).rev() {
            if let Some(filter) = stage.as_filter() {
                let mut parts = Vec::new();
                conditions(filter, &mut parts);
                looks += CONDITION_MOVES_EACH * parts.len();
                carried.push(Carried { conditions: parts, unmoved: Some((stage, shown)) });
                continue;
            }
            let mut on = Vec::new();
            for filter in carried {
                let (left, goes_on) = filter.past(&*stage, &self.ctx, &mut looks)?;
                done.extend(left);
                on.extend(goes_on);
            }
            carried = on;
            done.push((stage, shown));
        }
        for filter in carried {
            done.push(filter.stage(&self.ctx)?);
        }
        (self.stages, self.shown) = done.into_iter().rev().unzip();
        Ok(())
    }

    /// Filters that follow one another become one, from `at` on.
    pub(super) fn join_filters(&mut self, at: usize) {
        let filters: Vec<&RawDoc> = self.stages[at..].iter().map_while(|s| s.as_filter()).collect();
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
        if let Ok(one) = matching::stage(&all.finish(), &self.ctx) {
            self.stages.splice(at..at + taken, [one]);
            self.shown.drain(at + 1..at + taken);
        }
    }
    /// Leaves these conditions of the filter at `at`; without any it goes away.
    fn keep_filter(&mut self, at: usize, staying: &[DocBuf]) -> Result<()> {
        if staying.is_empty() {
            self.stages.remove(at);
            self.shown.remove(at);
            return Ok(());
        }
        let rest = joined(staying);
        self.stages[at] = matching::stage(&rest, &self.ctx)?;
        self.shown[at] = Some(spec(&rest));
        Ok(())
    }

    /// Conditions on joined documents go into the join, where each of them becomes a document of its own.
    pub(super) fn filter_joined_documents(&mut self) -> Result<()> {
        let mut at = 1;
        while at < self.stages.len() {
            let (Some(field), Some(filter)) =
                (self.stages[at - 1].joined_field(), self.stages[at].as_filter())
            else {
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
                let filter = joined(&moving);
                self.stages[at - 1].filter_joined(&filter)?;
                self.show_joined_filter(at - 1, &filter);
                self.keep_filter(at, &staying)?;
            }
            at += 1;
        }
        Ok(())
    }

    /// Explain shows a filter on joined documents as the end of the join's own pipeline.
    fn show_joined_filter(&mut self, at: usize, filter: &RawDoc) {
        let Some(Some(stage)) = self.shown.get_mut(at) else { return };
        let Some((name, old)) = stage.first().and_then(|e| Some((e.name(), e.value().as_doc()?))) else {
            return;
        };
        let mut pipeline = ArrayBuilder::new();
        for own in old.get("pipeline").and_then(|p| p.as_array()).into_iter().flatten() {
            pipeline.value(own.value());
        }
        pipeline.raw_doc(&super::spelled::spelled(&spec(filter), &self.ctx));
        let mut b = DocBuilder::new();
        b.doc(name, |d| {
            old.iter().filter(|e| !matches!(e.name(), "pipeline" | "unwinding")).for_each(|e| {
                d.elem(e);
            });
            if old.elem("let").is_none() {
                d.doc("let", |_| {});
            }
            d.raw_array("pipeline", &pipeline.finish());
            if let Some(e) = old.elem("unwinding") {
                d.elem(e);
            }
        });
        *stage = b.finish();
    }

    /// The stage before `at` has taken in an `$unwind`: explain shows it there.
    pub(super) fn show_unwinding(&mut self, at: usize) {
        let unwind = self.shown.remove(at);
        let Some(Some(stage)) = self.shown.get_mut(at - 1) else { return };
        let unwind = unwind.as_deref().and_then(|d| d.first()).map(|e| {
            let mut b = DocBuilder::new();
            match e.value() {
                Value::String(_) => {
                    b.bool("preserveNullAndEmptyArrays", false);
                }
                v => {
                    if let Some(d) = v.as_doc() {
                        d.iter().filter(|e| e.name() != "path").for_each(|e| {
                            b.elem(e);
                        });
                    }
                }
            }
            b.finish()
        });
        let mut b = DocBuilder::new();
        if let (Some(e), Some(unwind)) = (stage.first(), unwind) {
            b.doc(e.name(), |d| {
                if let Some(inner) = e.value().as_doc() {
                    d.elems_of(inner);
                }
                d.raw_doc("unwinding", &unwind);
            });
        }
        *stage = b.finish();
    }
}

/// Whether two dotted paths have the same first name.
pub(super) fn same_root(a: &str, b: &str) -> bool {
    a.split('.').next() == b.split('.').next()
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
