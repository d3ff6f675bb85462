//! What the server does with a chosen plan besides running it: a summary for logs, counts per index, and whether
//! it still fits the collection.

use pando_access::Collection;
use pando_base::{Error, ErrorCode, Result};
use pando_query::plan::PlanNode;

fn indexes(plan: &PlanNode, visit: &mut dyn FnMut(usize)) {
    if let Some(index) = plan.index() {
        visit(index);
    }
    plan.inputs().iter().for_each(|n| indexes(n, visit));
}

/// `COLLSCAN`, `IDHACK`, `IXSCAN { a: 1 }, IXSCAN { b: 1 }`.
pub(crate) fn summary(plan: &PlanNode, coll: &Collection) -> String {
    let mut out = String::new();
    collect(plan, coll, &mut out);
    out
}

fn collect(plan: &PlanNode, coll: &Collection, out: &mut String) {
    if plan.inputs().is_empty() {
        if !out.is_empty() {
            out.push_str(", ");
        }
        out.push_str(plan.stage_name());
        if let Some(i) = plan.index().and_then(|i| coll.ready_indexes().get(i)) {
            out.push(' ');
            out.push_str(i.key_text());
        }
    }
    for input in plan.inputs() {
        collect(input, coll, out);
    }
}

/// Counts the use of each index for `$indexStats`.
pub(crate) fn count_use(plan: &PlanNode, coll: &Collection) {
    indexes(plan, &mut |index| {
        if let Some(i) = coll.ready_indexes().get(index) {
            i.used();
        }
    });
    if matches!(plan, PlanNode::IdHack { .. })
        && let Some(i) = coll.id_index()
    {
        i.used();
    }
}

/// Walks through all records in the plan: all of them, and those that do not tail.
pub(crate) fn collection_scans(plan: &PlanNode) -> (u64, u64) {
    match plan {
        PlanNode::CollScan(c) if !c.clustered => (1, u64::from(!c.tailable)),
        other => other.inputs().iter().fold((0, 0), |(total, not_tailing), input| {
            let (t, n) = collection_scans(input);
            (total + t, not_tailing + n)
        }),
    }
}

/// A cursor goes on only where the indexes of its plan are still there and what they were: hidden ones and those of another lifetime
/// are told as dropped, too (175).
pub(crate) fn check_indexes(coll: &Collection, now: &Collection, plan: Option<&PlanNode>) -> Result<()> {
    let mut gone = None;
    if let Some(plan) = plan {
        indexes(plan, &mut |index| {
            if let Some(i) = coll.ready_indexes().get(index)
                && !now.ready_indexes().iter().any(|n| n.ident == i.ident && n.spec.doc == i.spec.doc)
            {
                gone = Some(i.name().to_owned());
            }
        });
    }
    match gone {
        Some(name) => Err(Error::new(
            ErrorCode::QueryPlanKilled,
            format!("query plan killed :: index '{name}' dropped"),
        )),
        None => Ok(()),
    }
}
