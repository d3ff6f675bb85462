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
use crate::source::{Direction, FieldKind};
use pando_bson::DocBuilder;
use std::sync::Arc;

/// A scan that is being finished.
struct Scanned<'a> {
    node: PlanNode,
    /// The one access behind it, when there is just one.
    access: Option<&'a Access>,
    dir: Direction,
    /// The access gives all that is wanted.
    covered: bool,
    /// Rows have their documents.
    fetched: bool,
    /// What goes on top wants documents.
    needs_docs: bool,
}

impl Scanned<'_> {
    fn fetch(&mut self) {
        if !self.fetched {
            self.node = std::mem::replace(&mut self.node, PlanNode::Eof).fetch(None);
            self.fetched = true;
        }
    }
}

impl Planner<'_> {
    /// Puts fetch, sort, skip, projection and limit on top of a scan.
    pub(super) fn finish(&self, rows: Rows) -> Solution {
        let q = self.q;
        let Rows { mut node, filter, sorted, access, dir, signature, lone: _ } = rows;
        let mut fetched = match &node {
            PlanNode::CollScan(_) | PlanNode::TextMatch(_) | PlanNode::GeoNear(_) => true,
            PlanNode::Or { inputs } | PlanNode::SortMerge { inputs, .. } => {
                inputs.iter().all(|n| matches!(n, PlanNode::Fetch { .. }))
            }
            _ => false,
        };
        let covered = access.as_ref().is_some_and(|a| filter.is_none() && self.covers(a));
        let needs_docs = filter.is_some() || (!covered && q.kind == QueryKind::Find && !q.return_key);
        let shows_key = q.projection.as_ref().is_some_and(|p| p.metas().contains(&MetaField::IndexKey));
        if let Some(a) = &access
            && (covered || q.return_key || shows_key)
            && q.min.is_none()
            && q.max.is_none()
        {
            node = self.scan_node(a, dir, true);
        }
        if let Some(f) = filter {
            node = node.fetch(Some(f));
            fetched = true;
        }
        let scanned = Scanned { node, access: access.as_ref(), dir, covered, fetched, needs_docs };
        let root = match &q.sort {
            Some(sort) if !sorted => self.sorted(scanned, sort),
            _ => self.as_it_comes(scanned),
        };
        Solution { root, signature }
    }

    /// Rows come as they are wanted.
    fn as_it_comes(&self, mut scanned: Scanned<'_>) -> PlanNode {
        scanned.node = self.skipped(scanned.node);
        if scanned.needs_docs {
            scanned.fetch();
        }
        let Scanned { mut node, access, covered, .. } = scanned;
        if let Some(sort) = &self.q.sort
            && self.q.projection.as_ref().is_some_and(|p| p.metas().contains(&MetaField::SortKey))
        {
            node = PlanNode::SortKeyGenerator { input: Box::new(node), pattern: sort.clone() };
        }
        self.limited(self.projected(node, access, covered))
    }

    /// Rows have to be sorted.
    fn sorted(&self, mut scanned: Scanned<'_>, sort: &Arc<SortPattern>) -> PlanNode {
        let limit = self.q.limit.map_or(0, |n| n.saturating_add(self.q.skip));
        let (access, covered) = (scanned.access, scanned.covered);
        let keys = match access.and_then(|a| Some((a, self.key_sort(&scanned, a, sort)?))) {
            Some((a, keys)) => {
                scanned.node = self.scan_node(a, scanned.dir, true);
                if covered {
                    scanned.node = self.projected(scanned.node, access, true);
                }
                keys
            }
            None => {
                scanned.fetch();
                SortKeySource::Documents
            }
        };
        let by_documents = matches!(keys, SortKeySource::Documents);
        let early = by_documents && limit == 0 && self.projects_before(sort);
        if early {
            scanned.node = self.projected(scanned.node, None, false);
        }
        let node = PlanNode::Sort { input: Box::new(scanned.node), pattern: sort.clone(), limit, keys };
        scanned.node = self.skipped(node);
        if early || (!by_documents && covered) {
            return scanned.node;
        }
        if scanned.needs_docs {
            scanned.fetch();
        }
        self.projected(scanned.node, access, false)
    }

    /// The pieces of index keys that make the sort keys, when these are enough.
    fn key_sort(&self, scanned: &Scanned<'_>, a: &Access, sort: &SortPattern) -> Option<SortKeySource> {
        let of_array = |path: &str| a.fields.iter().any(|f| f.multikey != 0 && f.name == path);
        let enough = !scanned.fetched
            && self.q.min.is_none()
            && self.q.max.is_none()
            && Collation::same(&self.index(a).collation, &self.q.ctx.collation)
            && !sort.parts.iter().any(|p| of_array(&p.path));
        enough.then(|| key_sort(a, sort)).flatten()
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
