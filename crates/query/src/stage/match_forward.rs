//! Filters move towards the input, past stages that leave their fields alone, so that fewer documents are worked on and
//! an index may find them.

use super::{Pipeline, matching};
use pando_base::Result;
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};

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

pub(super) fn spec(filter: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::new();
    b.raw_doc("$match", filter);
    b.finish()
}

impl Pipeline {
    pub(super) fn move_filters_forward(&mut self) -> Result<()> {
        let mut at = 1;
        while at < self.stages.len() {
            if self.move_one(at)? { at = at.saturating_sub(1).max(1) } else { at += 1 }
        }
        Ok(())
    }

    /// Moves what it can of the filter at `at` before the stage in front of it; true when something moved.
    fn move_one(&mut self, at: usize) -> Result<bool> {
        let before = &self.stages[at - 1];
        let Some(filter) = self.stages[at].as_filter() else { return Ok(false) };
        if before.as_filter().is_some() {
            return Ok(false);
        }
        let mut all = Vec::new();
        conditions(filter, &mut all);
        let free = |c: &DocBuf| {
            let mut paths = Vec::new();
            fields(c, &mut paths).is_some() && paths.iter().all(|p| before.leaves_alone(p))
        };
        let (moving, staying): (Vec<DocBuf>, Vec<DocBuf>) = all.into_iter().partition(free);
        if moving.is_empty() {
            return Ok(false);
        }
        let first = joined(&moving);
        let stage = matching::stage(&first, &self.ctx)?;
        if staying.is_empty() {
            self.stages.remove(at);
            self.shown.remove(at);
        } else {
            let rest = joined(&staying);
            self.stages[at] = matching::stage(&rest, &self.ctx)?;
            self.shown[at] = Some(spec(&rest));
        }
        self.stages.insert(at - 1, stage);
        self.shown.insert(at - 1, Some(spec(&first)));
        Ok(true)
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
    use crate::ctx::QueryCtx;

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
    fn a_filter_stays_behind_limits_and_expressions_stay_where_they_are() {
        assert!(shown(r#"[{"$limit":{"$numberLong":"5"}},{"$match":{"a":5}}]"#)[0].contains("$limit"));
        assert!(
            shown(r#"[{"$addFields":{"x":1}},{"$match":{"$expr":{"$eq":["$a",1]}}}]"#)[0]
                .contains("$addFields")
        );
    }
}
