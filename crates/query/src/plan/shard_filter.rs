//! Plans on a shard: of what a scan finds, only documents that the shard owns go on (SYS-215, SH-OWN-2).
//!
//! ```text
//!   sort, skip, projection, limit ◄─ SHARDING_FILTER ◄─ fetch, scan, union
//! ```
//! The filter stands right above what finds documents. It judges by the document, or by the index key where that has every field of
//! the shard key; else the document is fetched for it.

use super::node::{IxScan, PlanNode, ProjectKind};
use super::{Query, Solution};
use crate::source::{CollectionInfo, FieldKind, Owned};
use std::sync::Arc;

/// Puts the filter into every plan, where one is needed: a query for one value of the shard key came to the shard that owns it.
pub(super) fn filter_all(q: &Query, info: &CollectionInfo, plans: &mut [Solution]) {
    let Some(owned) = q.owned.as_ref().filter(|o| !o.is_pinned_by(&q.matcher)) else { return };
    for plan in plans {
        let root = std::mem::replace(&mut plan.root, PlanNode::Eof);
        plan.root = filtered(root, owned, info).node;
    }
}

/// A plan with the filter in it.
struct Filtered {
    node: PlanNode,
    /// A fetch was put in, so that rows have their documents.
    fetched: bool,
}

fn filtered(node: PlanNode, owned: &Arc<dyn Owned>, info: &CollectionInfo) -> Filtered {
    let below = |input: Box<PlanNode>, above: &dyn Fn(Box<PlanNode>, bool) -> PlanNode| {
        let Filtered { node, fetched } = filtered(*input, owned, info);
        Filtered { node: above(Box::new(node), fetched), fetched }
    };
    match node {
        PlanNode::Sort { input, pattern, limit, keys } => below(input, &|input, _| PlanNode::Sort {
            input,
            pattern: pattern.clone(),
            limit,
            keys: keys.clone(),
        }),
        PlanNode::SortKeyGenerator { input, pattern } => {
            below(input, &|input, _| PlanNode::SortKeyGenerator { input, pattern: pattern.clone() })
        }
        PlanNode::Skip { input, n } => below(input, &|input, _| PlanNode::Skip { input, n }),
        PlanNode::Limit { input, n } => below(input, &|input, _| PlanNode::Limit { input, n }),
        PlanNode::Project { input, projection, kind, key_fields } => below(input, &|input, fetched| {
            let kind = if fetched && kind == ProjectKind::Covered { ProjectKind::Simple } else { kind };
            let (projection, key_fields) = (projection.clone(), key_fields.clone());
            PlanNode::Project { input, projection, kind, key_fields }
        }),
        PlanNode::Reads { input, projection } => {
            below(input, &|input, _| PlanNode::Reads { input, projection: projection.clone() })
        }
        PlanNode::ReturnKey { input, fields } => {
            below(input, &|input, _| PlanNode::ReturnKey { input, fields: fields.clone() })
        }
        // Of rows that were sorted, or cut, before they are fetched.
        PlanNode::Fetch { input, filter: None } if passes_on(&input) => {
            let Filtered { node, fetched } = filtered(*input, owned, info);
            Filtered { node: if fetched { node } else { node.fetch(None) }, fetched }
        }
        PlanNode::Eof => Filtered { node: PlanNode::Eof, fetched: false },
        found => above(found, owned, info),
    }
}

/// Whether what finds documents stands further down.
fn passes_on(node: &PlanNode) -> bool {
    matches!(
        node,
        PlanNode::Sort { .. } | PlanNode::Skip { .. } | PlanNode::Limit { .. } | PlanNode::Project { .. }
    )
}

/// The filter above what finds documents.
fn above(found: PlanNode, owned: &Arc<dyn Owned>, info: &CollectionInfo) -> Filtered {
    let filter = |input: PlanNode, key_fields: Vec<String>| PlanNode::ShardFilter {
        input: Box::new(input),
        owned: owned.clone(),
        key_fields,
    };
    if has_documents(&found) {
        return Filtered { node: filter(found, Vec::new()), fetched: false };
    }
    if let PlanNode::IxScan(scan) = &found
        && holds_key(scan, &**owned, info)
    {
        let names = scan.fields.iter().map(|f| f.name.clone()).collect();
        let scan = IxScan { keep_key: true, ..IxScan::clone(scan) };
        return Filtered { node: filter(PlanNode::IxScan(Arc::new(scan)), names), fetched: false };
    }
    Filtered { node: filter(found.fetch(None), Vec::new()), fetched: true }
}

/// Whether the keys of an index hold every field of the shard key, as it is in documents.
fn holds_key(scan: &IxScan, owned: &dyn Owned, info: &CollectionInfo) -> bool {
    let is_plain =
        info.indexes.get(scan.index).is_some_and(|i| i.collation.is_none() && i.wildcard.is_none());
    let holds = |path: &String| {
        scan.fields.iter().any(|f| {
            f.name == *path
                && f.multikey == 0
                && matches!(f.kind, FieldKind::Ascending | FieldKind::Descending)
        })
    };
    is_plain && owned.fields().iter().all(holds)
}

fn has_documents(node: &PlanNode) -> bool {
    match node {
        PlanNode::CollScan(_)
        | PlanNode::IdHack { .. }
        | PlanNode::Fetch { .. }
        | PlanNode::TextMatch(_)
        | PlanNode::GeoNear(_) => true,
        PlanNode::Or { inputs } | PlanNode::SortMerge { inputs, .. } => inputs.iter().all(has_documents),
        _ => false,
    }
}
