//! What goes on top of a scan: fetch, sort, skip, projection, limit.

use super::QueryKind;
use super::access::Access;
use super::candidates::{Planner, Rows, Solution};
use super::node::{PlanNode, ProjectKind, SortKeySource};
use super::order::key_sort;
use crate::collation::Collation;
use crate::facts::MetaField;
use crate::projection::Projection;
use crate::sort::SortPattern;
use crate::source::FieldKind;
use pando_bson::DocBuilder;
use std::sync::Arc;

impl Planner<'_> {
    /// Puts fetch, sort, skip, projection and limit on top of a scan.
    pub(super) fn finish(&self, rows: Rows) -> Solution {
        let q = self.q;
        let Rows { mut node, filter, sorted, access, dir, signature, lone: _ } = rows;
        let has_docs = match &node {
            PlanNode::CollScan(_) | PlanNode::TextMatch(_) | PlanNode::GeoNear(_) => true,
            PlanNode::Or { inputs } | PlanNode::SortMerge { inputs, .. } => {
                inputs.iter().all(|n| matches!(n, PlanNode::Fetch { .. }))
            }
            _ => false,
        };
        let covered = access.as_ref().filter(|a| filter.is_none() && self.covers(a));
        let needs_docs =
            filter.is_some() || (covered.is_none() && q.kind == QueryKind::Find && !q.return_key);
        let shows_key = q.projection.as_ref().is_some_and(|p| p.metas().contains(&MetaField::IndexKey));
        if let Some(a) = &access
            && (covered.is_some() || q.return_key || shows_key)
            && q.min.is_none()
            && q.max.is_none()
        {
            node = self.scan_node(a, dir, true);
        }
        let mut fetched = has_docs;
        if let Some(f) = filter {
            node = node.fetch(Some(f));
            fetched = true;
        }
        let sort_limit = q.limit.map_or(0, |n| n.saturating_add(q.skip));
        match (&q.sort, sorted) {
            (Some(sort), false) => {
                let by_key = access
                    .as_ref()
                    .filter(|_| !fetched && q.min.is_none() && q.max.is_none())
                    .filter(|a| Collation::same(&self.index(a).collation, &q.ctx.collation))
                    .and_then(|a| Some((a, key_sort(a, sort)?)))
                    .filter(|(a, _)| {
                        !a.fields
                            .iter()
                            .any(|f| f.multikey != 0 && sort.parts.iter().any(|p| p.path == f.name))
                    });
                let keys = match by_key {
                    Some((a, keys)) => {
                        node = self.scan_node(a, dir, true);
                        if covered.is_some() {
                            node = self.projected(node, covered, true);
                        }
                        keys
                    }
                    None => {
                        if !fetched {
                            node = node.fetch(None);
                            fetched = true;
                        }
                        SortKeySource::Documents
                    }
                };
                let by_documents = matches!(keys, SortKeySource::Documents);
                let early = by_documents && sort_limit == 0 && self.projects_before(sort);
                if early {
                    node = self.projected(node, None, false);
                }
                node =
                    PlanNode::Sort { input: Box::new(node), pattern: sort.clone(), limit: sort_limit, keys };
                node = self.skipped(node);
                if early || (!by_documents && covered.is_some()) {
                    return Solution { root: node, signature };
                }
                if needs_docs && !fetched {
                    node = node.fetch(None);
                }
                return Solution { root: self.projected(node, access.as_ref(), false), signature };
            }
            _ => node = self.skipped(node),
        }
        if needs_docs && !fetched {
            node = node.fetch(None);
        }
        if let Some(sort) = &q.sort
            && q.projection.as_ref().is_some_and(|p| p.metas().contains(&MetaField::SortKey))
        {
            node = PlanNode::SortKeyGenerator { input: Box::new(node), pattern: sort.clone() };
        }
        let node = self.projected(node, access.as_ref(), covered.is_some());
        Solution { root: self.limited(node), signature }
    }

    /// The sort keeps everything and finds its keys in what is returned: it may as well hold only that.
    fn projects_before(&self, sort: &SortPattern) -> bool {
        let projection = self.q.projection.as_ref().or(self.q.reads.as_ref());
        let Some(p) = projection.filter(|_| self.q.kind == QueryKind::Find && !self.q.return_key) else {
            return false;
        };
        let Some(kept) = p.kept_fields() else { return false };
        let keeps = |path: &str| {
            kept.iter()
                .any(|k| path.strip_prefix(k.as_str()).is_some_and(|r| r.is_empty() || r.starts_with('.')))
        };
        sort.parts.iter().all(|part| part.meta.is_none() && keeps(&part.path))
    }

    fn skipped(&self, node: PlanNode) -> PlanNode {
        match self.q.skip {
            0 => node,
            n => PlanNode::Skip { input: Box::new(node), n },
        }
    }

    pub(super) fn limited(&self, node: PlanNode) -> PlanNode {
        match self.q.limit {
            None | Some(0) => node,
            Some(n) => PlanNode::Limit { input: Box::new(node), n },
        }
    }

    /// `access` is the index scan below, `covered` when it is all there is.
    pub(super) fn projected(&self, node: PlanNode, access: Option<&Access>, covered: bool) -> PlanNode {
        if self.q.return_key {
            let fields = access.map_or_else(Vec::new, |a| a.fields.iter().map(|f| f.name.clone()).collect());
            return PlanNode::ReturnKey { input: Box::new(node), fields };
        }
        if let (None, Some(reads), QueryKind::Find) = (&self.q.projection, &self.q.reads, self.q.kind) {
            return PlanNode::Reads { input: Box::new(node), projection: reads.clone() };
        }
        if self.q.show_record_id && self.q.projection.is_none() {
            return self.numbered(node);
        }
        let Some(p) = self.q.projection.as_ref().filter(|_| self.q.kind == QueryKind::Find) else {
            return node;
        };
        let kind = match ((p.is_inclusion() && p.is_simple()), covered) {
            (true, true) => ProjectKind::Covered,
            (true, false) => ProjectKind::Simple,
            (false, _) => ProjectKind::Default,
        };
        let key_fields = access.map_or_else(Vec::new, |a| a.fields.iter().map(|f| f.name.clone()).collect());
        PlanNode::Project { input: Box::new(node), projection: p.clone(), kind, key_fields }
    }

    /// Rows are told with their record's name.
    fn numbered(&self, node: PlanNode) -> PlanNode {
        let mut b = DocBuilder::new();
        b.doc("recordId", |b| {
            b.str("$meta", "recordId");
        });
        let Ok(p) = Projection::parse(&b.finish(), &self.q.ctx) else { return node };
        let mut shown = DocBuilder::new();
        shown.doc("$recordId", |b| {
            b.str("$meta", "recordId");
        });
        PlanNode::Reads { input: Box::new(node), projection: Arc::new(p.shown_as(shown.finish())) }
    }

    /// Whether the index key holds all that the projection asks for.
    pub(super) fn covers(&self, a: &Access) -> bool {
        let index = self.index(a);
        if index.collation.is_some() || self.q.kind != QueryKind::Find || self.q.show_record_id {
            return false;
        }
        let Some(paths) = self.q.projection.as_ref().and_then(|p| p.only_fields()) else { return false };
        paths.iter().all(|path| {
            a.fields.iter().any(|f| {
                f.name == *path
                    && f.multikey == 0
                    && matches!(f.kind, FieldKind::Ascending | FieldKind::Descending)
            })
        })
    }
}
