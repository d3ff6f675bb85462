//! Whole plans for a query.

use super::access::{Access, Wanted, accesses, whole_index};
use super::eligible::{implies, wildcard_covers};
use super::filters::IndexFilter;
use super::interval::IntervalList;
use super::key_bounds::KeyBounds;
use super::leftover;
use super::node::{CollScan, IxScan, PlanNode};
use super::order::{key_sort, order_of};
use super::predicates::{Predicate, collect, conjuncts};
use super::shape::query_shape;
use super::{Hint, Query, shard_filter, wildcard_paths};
use crate::collation::Collation;
use crate::matcher::{CmpOp, Matcher, Node, Path, Pred};
use crate::source::{CollectionInfo, Direction, FieldKind, IndexInfo, IndexKind, RecordId};
use pando_base::{ErrorCode, Result, limits, patience};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuf, ElementType, Value};
use pando_bson::{Elem, RawDoc};
use std::sync::Arc;

/// A plan worth trying.
#[derive(Clone, Debug)]
pub struct Solution {
    pub root: PlanNode,
    /// The same for the same plan with other constants.
    pub signature: String,
}

/// Refuses the order of the records beside that of a `$near`.
pub fn check_one_order(matcher: &Matcher, hint: Option<&Hint>, natural: Option<Direction>) -> Result<()> {
    let what = match (natural, hint) {
        _ if !matcher.orders() => return Ok(()),
        (Some(_), _) => "sort order",
        (None, Some(Hint::Natural(_))) => "hint",
        _ => return Ok(()),
    };
    Err(pando_base::Error::bad_value(format!("geoNear expression not allowed with $natural {what}")))
}

/// What planning one branch of a disjunction takes.
pub(super) const BRANCH_STEPS: usize = 50;

// tour: find 4/9
/// The plans for `q`, best guesses first; at least one.
pub fn solutions(q: &Query, info: &CollectionInfo) -> Result<Vec<Solution>> {
    let mut found = unfiltered(q, info)?;
    shard_filter::filter_all(q, info, &mut found);
    Ok(found)
}

fn unfiltered(q: &Query, info: &CollectionInfo) -> Result<Vec<Solution>> {
    q.check_metas()?;
    let p = Planner::new(q, info);
    if p.has_text() && q.min.is_none() && q.max.is_none() {
        let found = p.text_solutions();
        return patience::check().and(found);
    }
    wildcard_paths::check(q.matcher.root(), info)?;
    let natural = match &q.hint {
        Some(Hint::Natural(dir)) => Some(*dir),
        _ => q.natural,
    };
    if natural.is_some() && matches!((&q.hint, q.natural), (Some(Hint::Natural(h)), Some(s)) if *h != s) {
        return Err(pando_base::Error::bad_value(
            "$natural hint must be in the same direction as $natural sort order",
        ));
    }
    check_one_order(&q.matcher, q.hint.as_ref(), q.natural)?;
    if q.tailable || natural.is_some() {
        return Ok(vec![p.collection_scan(natural.unwrap_or(Direction::Forward))]);
    }
    if let Some(one) = p.id_hack() {
        return Ok(vec![one]);
    }
    if let Some(one) = p.hinted_cluster()? {
        return Ok(vec![one]);
    }
    let hinted = p.hinted_index()?;
    if q.min.is_some() || q.max.is_some() {
        return p.min_max(hinted).map(|s| vec![s]);
    }
    if let Some((path, near)) = q.matcher.root().near() {
        return p.near(path, near, hinted);
    }
    if let Some(one) = q.firsts.as_ref().and_then(|f| p.firsts(f, hinted)) {
        return Ok(vec![one]);
    }
    let mut out = p.indexed(hinted);
    patience::check()?;
    out.truncate(limits::CANDIDATE_PLANS_MAX);
    if out.is_empty() {
        out.push(match hinted {
            Some(i) => p.hinted_whole_index(i)?,
            None => p.collection_scan(p.cluster_order().unwrap_or(Direction::Forward)),
        });
    }
    Ok(out)
}

pub(super) struct Planner<'q> {
    pub(super) q: &'q Query,
    pub(super) info: &'q CollectionInfo,
    pub(super) conj: &'q [Node],
    pub(super) predicates: Vec<Predicate<'q>>,
    allowed: Option<Arc<IndexFilter>>,
}

/// A scan with what is left to do above it.
#[derive(Clone)]
pub(super) struct Rows {
    pub(super) node: PlanNode,
    /// To check on documents.
    pub(super) filter: Option<Arc<Matcher>>,
    pub(super) sorted: bool,
    /// The one access behind it, when there is just one.
    pub(super) access: Option<Access>,
    pub(super) dir: Direction,
    pub(super) signature: String,
    /// The one condition that it answers, when it is a branch of a disjunction.
    pub(super) lone: Option<Node>,
}

impl<'q> Planner<'q> {
    pub(super) fn new(q: &'q Query, info: &'q CollectionInfo) -> Planner<'q> {
        let conj = conjuncts(q.matcher.root());
        let allowed = info.index_filters.of(|| query_shape(q));
        Planner { q, info, conj, predicates: collect(conj), allowed }
    }
}

impl Planner<'_> {
    pub(super) fn index(&self, a: &Access) -> &IndexInfo {
        &self.info.indexes[a.index]
    }

    pub(super) fn matcher_of(&self, nodes: Vec<Node>) -> Option<Arc<Matcher>> {
        if nodes.is_empty() {
            return None;
        }
        Some(Arc::new(Matcher::from_node(Node::And(nodes), self.q.ctx.collation.clone())))
    }

    /// `{_id: value}` by point lookup.
    fn id_hack(&self) -> Option<Solution> {
        let q = self.q;
        let plain = q.skip == 0
            && q.hint.is_none()
            && q.min.is_none()
            && q.max.is_none()
            && !q.show_record_id
            && !q.return_key
            && self.info.clustered.is_none()
            && Collation::same(&q.ctx.collation, &self.info.collation);
        let [Node::Leaf(l)] = self.conj else { return None };
        let Pred::Cmp(c) = &l.pred else { return None };
        let exact = !matches!(
            c.rhs.ty(),
            ElementType::Null | ElementType::Undefined | ElementType::Array | ElementType::Regex
        );
        if !plain || c.op != CmpOp::Eq || l.path.dotted() != "_id" || !exact {
            return None;
        }
        self.info.indexes.iter().find(|i| i.is_id_index())?;
        let node = PlanNode::IdHack { key: c.rhs.clone() };
        let node = self.limited(self.projected(node, None, false));
        Some(Solution { root: node, signature: "IDHACK".into() })
    }

    fn collection_scan(&self, dir: Direction) -> Solution {
        self.scanned(self.scan_of(dir))
    }

    pub(super) fn scan_of(&self, dir: Direction) -> CollScan {
        let filter = (!self.q.matcher.is_trivial()).then(|| self.q.matcher.clone());
        let mut scan = CollScan {
            filter,
            dir,
            min: None,
            max: None,
            max_exclusive: false,
            clustered: false,
            tailable: self.q.tailable,
            resume_after: self.q.resume_after.clone(),
        };
        if self.info.clustered.is_some() {
            self.cluster_bounds(&mut scan);
        }
        if self.info.keyed_by_ts {
            self.ts_bounds(&mut scan);
        }
        scan
    }

    pub(super) fn scanned(&self, scan: CollScan) -> Solution {
        let dir = scan.dir;
        let rows = Rows {
            node: PlanNode::CollScan(scan),
            filter: None,
            sorted: self.q.sort.is_none() || self.cluster_order() == Some(dir),
            access: None,
            dir,
            signature: "COLLSCAN".into(),
            lone: None,
        };
        self.finish(rows)
    }

    /// Narrows a scan of the oplog by conditions on `ts`; the filter still checks them.
    fn ts_bounds(&self, scan: &mut CollScan) {
        for p in self.predicates.iter().filter(|p| p.path == "ts" && p.group.is_none()) {
            let Node::Leaf(leaf) = p.node else { continue };
            let Pred::Cmp(cmp) = &leaf.pred else { continue };
            let Value::Timestamp(ts) = cmp.rhs.value() else { continue };
            let rid = RecordId::Long(i64::try_from(ts.0).unwrap_or(i64::MAX));
            if matches!(cmp.op, CmpOp::Eq | CmpOp::Gt | CmpOp::Gte) {
                scan.min = Some(scan.min.take().map_or(rid.clone(), |m| m.max(rid.clone())));
            }
            if matches!(cmp.op, CmpOp::Eq | CmpOp::Lt | CmpOp::Lte) && !scan.tailable {
                scan.max = Some(scan.max.take().map_or(rid.clone(), |m| m.min(rid)));
            }
        }
    }

    pub(super) fn hinted_index(&self) -> Result<Option<usize>> {
        let found = match &self.q.hint {
            None | Some(Hint::Natural(_)) => return Ok(None),
            _ if self.allowed.is_some() => return Ok(None),
            Some(Hint::Name(name)) => self.info.indexes.iter().position(|i| i.name == *name),
            Some(Hint::Pattern(key)) => {
                self.info.indexes.iter().position(|i| same_pattern(&i.key_pattern, key))
            }
        };
        match found.filter(|i| !self.info.indexes[*i].hidden) {
            Some(i) => Ok(Some(i)),
            None => Err(self
                .q
                .error(ErrorCode::BadValue.0, "hint provided does not correspond to an existing index")),
        }
    }

    /// Indexes that may be used at all.
    pub(super) fn usable(&self, hinted: Option<usize>, root: &Node) -> Vec<usize> {
        let all = self.info.indexes.iter().enumerate();
        all.filter(|(i, index)| {
            hinted.is_none_or(|h| h == *i)
                && !index.hidden
                && index.kind != IndexKind::Text
                && self.allowed.as_ref().is_none_or(|f| f.allows(index))
                && (index.partial.as_ref().is_none_or(|p| implies(root, p.root())))
        })
        .map(|(i, _)| i)
        .filter(|i| !self.has_exact_id(hinted) || self.info.indexes[*i].is_id_index())
        .collect()
    }

    /// One `_id` is asked for: nothing can be more selective than its index.
    fn has_exact_id(&self, hinted: Option<usize>) -> bool {
        let exact = |n: &Node| match n {
            Node::Leaf(l) if l.path.dotted() == "_id" => {
                l.pred.as_eq().is_some_and(|c| !matches!(c.rhs.ty(), ElementType::Null | ElementType::Array))
            }
            _ => false,
        };
        hinted.is_none()
            && self.allowed.is_none()
            && self.conj.iter().any(exact)
            && self
                .info
                .indexes
                .iter()
                .any(|i| i.is_id_index() && Collation::same(&i.collation, &self.q.ctx.collation))
    }

    pub(super) fn wanted<'a>(&'a self, predicates: &'a [Predicate<'a>], conjuncts: usize) -> Wanted<'a> {
        Wanted { predicates, conjuncts, collation: &self.q.ctx.collation }
    }

    fn indexed(&self, hinted: Option<usize>) -> Vec<Solution> {
        let usable = self.usable(hinted, self.q.matcher.root());
        let wanted = self.wanted(&self.predicates, self.conj.len());
        let mut out = Vec::new();
        if let [Node::Or(branches)] = self.conj {
            let mut unions = self.unions(branches, &usable, hinted);
            if !unions.is_empty() {
                out.append(&mut unions);
                return out;
            }
        }
        for &i in &usable {
            if self.is_enough(&out) {
                break;
            }
            let index = &self.info.indexes[i];
            let mut gives_order = false;
            for access in accesses(i, index, &wanted) {
                let rows = self.index_rows(access);
                gives_order |= rows.sorted;
                out.push(self.finish(rows));
            }
            if !gives_order {
                out.extend(self.in_order(i));
            }
        }
        for (i, node) in self.conj.iter().enumerate() {
            if self.is_enough(&out) {
                break;
            }
            if let Node::Or(branches) = node
                && let Some(rows) = self.union(branches, i, hinted)
            {
                out.push(self.finish(rows));
            }
        }
        out
    }
    /// An index read from end to end for its order.
    pub(super) fn in_order(&self, i: usize) -> Option<Solution> {
        let index = &self.info.indexes[i];
        let whole = self.q.sort.is_some()
            && !index.sparse
            && matches!(index.kind, IndexKind::Btree | IndexKind::Hashed);
        let rows = whole.then(|| self.index_rows(whole_index(i, index, self.conj.len())))?;
        rows.sorted.then(|| self.finish(rows))
    }
    /// More plans than these are not tried; and the work on one takes as long as the filter is large.
    fn is_enough(&self, out: &[Solution]) -> bool {
        patience::is_over(self.conj.len()) || out.len() >= limits::CANDIDATE_PLANS_MAX
    }

    /// A hinted index that no condition can use, from end to end.
    fn hinted_whole_index(&self, i: usize) -> Result<Solution> {
        let index = &self.info.indexes[i];
        let no_plan = |why: &str| Err(self.q.error(ErrorCode::NoQueryExecutionPlans.0, why));
        match index.kind {
            IndexKind::Wildcard => {
                let related = index.wildcard.as_ref().is_some_and(|w| {
                    self.predicates.iter().any(|p| {
                        wildcard_covers(&w.prefix, &w.projection, &p.path)
                            && super::bounds::bounds_of(p.node, super::eligible::traits(index, 0, false))
                                .is_some()
                    })
                });
                if related {
                    return no_plan(
                        "$hint: refusing to build whole-index solution, because it's a wildcard index",
                    );
                }
                return no_plan("No query solutions");
            }
            IndexKind::Text => return no_plan("No query solutions"),
            IndexKind::Btree | IndexKind::Hashed | IndexKind::Geo2d | IndexKind::Geo2dSphere => {}
        }
        let rows = self.index_rows(whole_index(i, index, self.conj.len()));
        Ok(self.finish(rows))
    }

    fn min_max(&self, hinted: Option<usize>) -> Result<Solution> {
        let Some(i) = hinted else {
            return Err(self
                .q
                .error(51173, "When using min()/max() a hint of which index to use must be provided"));
        };
        let index = &self.info.indexes[i];
        let mut access = whole_index(i, index, self.conj.len());
        let directions = super::key_bounds::directions(&access.fields);
        let key = |d: &Option<DocBuf>| -> Result<Vec<u8>> {
            let Some(d) = d else { return Ok(Vec::new()) };
            let names: Vec<&[u8]> = d.iter().map(|e| e.name_bytes()).collect();
            let fits = names.iter().copied().eq(index.fields.iter().map(|f| f.path.as_bytes()));
            if !fits
                || !matches!(index.kind, IndexKind::Btree | IndexKind::Hashed)
                || !Collation::same(&index.collation, &self.q.ctx.collation)
            {
                return Err(self.q.error(51174, "The index chosen is not compatible with min/max"));
            }
            let mut b = KeyBuilder::new(directions);
            for e in d.iter() {
                b.append_elem(&e, Collation::order(&index.collation));
            }
            Ok(b.finish())
        };
        let (start, end) = (key(&self.q.min)?, key(&self.q.max)?);
        if !start.is_empty() && !end.is_empty() && start >= end {
            return Err(self.q.error(
                51175,
                "The value provided for min() does not come before the value provided for max() in the hinted index",
            ));
        }
        let bounds = KeyBounds::range(start, end, directions);
        // What the order is, the whole index tells; what is shown as bounds, nothing.
        let order = self.q.sort.as_ref().and_then(|s| order_of(&access, s));
        let dir = order.unwrap_or(Direction::Forward);
        let fields = std::mem::take(&mut access.fields);
        let rows = Rows {
            filter: self.matcher_of(self.conj.to_vec()).filter(|_| !self.q.matcher.is_trivial()),
            sorted: self.q.sort.is_none() || order.is_some(),
            dir,
            signature: format!("MINMAX {}", index.name),
            lone: None,
            node: PlanNode::IxScan(Arc::new(IxScan {
                index: i,
                dir,
                fields: Vec::new(),
                bounds,
                filter: None,
                dedup: access.multikey,
                keep_key: true,
                wild_path: None,
            })),
            access: Some(Access { fields, ..access }),
        };
        Ok(self.finish(rows))
    }

    pub(super) fn scan_node(&self, access: &Access, dir: Direction, keep_key: bool) -> PlanNode {
        PlanNode::IxScan(Arc::new(self.index_scan(access, dir, keep_key)))
    }

    pub(super) fn index_scan(&self, access: &Access, dir: Direction, keep_key: bool) -> IxScan {
        let index = self.index(access);
        IxScan {
            index: access.index,
            dir,
            bounds: KeyBounds::new(&access.fields, Collation::order(&index.collation)),
            fields: access.fields.clone(),
            filter: self.key_filter(access),
            dedup: access.multikey,
            keep_key,
            wild_path: access.wild_path.clone(),
        }
    }

    /// What is left to check on keys.
    pub(super) fn key_filter(&self, access: &Access) -> Option<Arc<Matcher>> {
        let key_nodes = access.key_filter.iter().map(|n| match n {
            Node::Leaf(l) => {
                let mut l = l.clone();
                l.path = Path::flat(l.path.dotted());
                Node::Leaf(l)
            }
            other => other.clone(),
        });
        self.matcher_of(key_nodes.collect())
    }

    pub(super) fn leftover(&self, access: &Access) -> Option<Arc<Matcher>> {
        self.left_of(self.conj, access)
    }

    /// What of these conditions has to be checked on documents.
    pub(super) fn left_of(&self, conj: &[Node], access: &Access) -> Option<Arc<Matcher>> {
        let bounds = |i: usize| access.used.get(i).is_some_and(|used| *used);
        let all = conj.iter().enumerate().zip(&access.done);
        let left = all.filter(|(_, done)| !**done).map(|((i, n), _)| (n.clone(), bounds(i))).collect();
        let left = leftover::ordered(access, left);
        let matcher = |parts| Arc::new(Matcher::of_parts(parts, self.q.ctx.collation.clone()));
        (!left.is_empty()).then(|| matcher(left))
    }

    pub(super) fn signature(&self, access: &Access, dir: Direction) -> String {
        let bounded: String =
            access.fields.iter().map(|f| if f.intervals.is_everything() { '-' } else { 'x' }).collect();
        let done: String = access.done.iter().map(|d| if *d { '1' } else { '0' }).collect();
        let path = access.wild_path.as_deref().unwrap_or_default();
        format!("IXSCAN {} {path} {bounded} {done} {dir:?}", self.index(access).name)
    }

    pub(super) fn index_rows(&self, access: Access) -> Rows {
        let order = match &self.q.sort {
            None => Some(Direction::Forward),
            Some(s) if Collation::same(&self.index(&access).collation, &self.q.ctx.collation) => {
                order_of(&access, s)
            }
            Some(_) => None,
        };
        if order.is_none()
            && let Some(rows) = self.exploded(&access)
        {
            return rows;
        }
        let rows = self.rows_of(access, order.unwrap_or(Direction::Forward));
        Rows { sorted: order.is_some(), ..rows }
    }

    /// A scan whose order is the wanted one.
    pub(super) fn rows_of(&self, access: Access, dir: Direction) -> Rows {
        Rows {
            node: self.scan_node(&access, dir, false),
            filter: self.leftover(&access),
            sorted: true,
            dir,
            signature: self.signature(&access, dir),
            access: Some(access),
            lone: None,
        }
    }

    /// Fields in front of the sort that take a few single values: one ordered scan per value, merged.
    fn exploded(&self, access: &Access) -> Option<Rows> {
        let sort = self.q.sort.as_ref()?;
        if !Collation::same(&self.index(access).collation, &self.q.ctx.collation) {
            return None;
        }
        let first = sort.parts.first()?;
        let lead = access.fields.iter().position(|f| f.name == first.path)?;
        let prefix = &access.fields[..lead];
        let scans = prefix.iter().try_fold(1usize, |n, f| {
            let points = f.intervals.all_points() && f.multikey == 0 && f.kind != FieldKind::Hashed;
            points.then(|| n.saturating_mul(f.intervals.0.len()))
        })?;
        if !(2..=limits::SORT_MERGE_SCANS_MAX).contains(&scans) {
            return None;
        }
        let mut combinations = vec![access.clone()];
        for i in 0..lead {
            combinations = combinations
                .into_iter()
                .flat_map(|a| {
                    let points = a.fields[i].intervals.0.clone();
                    points.into_iter().map(move |p| {
                        let mut one = a.clone();
                        one.fields[i].intervals = IntervalList::one(p);
                        one
                    })
                })
                .collect();
        }
        let dir = order_of(combinations.first()?, sort)?;
        let keys = key_sort(access, sort)?;
        if !dir.is_forward() {
            combinations.reverse();
        }
        let inputs: Vec<PlanNode> = combinations.iter().map(|a| self.scan_node(a, dir, true)).collect();
        Some(Rows {
            node: PlanNode::SortMerge {
                keys: vec![keys; inputs.len()],
                inputs,
                pattern: sort.clone(),
                dedup: access.multikey,
            },
            filter: self.leftover(access),
            sorted: true,
            access: None,
            dir,
            signature: format!("MERGE {}", self.signature(access, dir)),
            lone: None,
        })
    }
}

/// The same fields in the same order, with values that compare as equal: `1` and `NumberLong(1)` are one direction.
fn same_pattern(a: &RawDoc, b: &RawDoc) -> bool {
    let equal = |(x, y): (Elem<'_>, Elem<'_>)| {
        x.name_bytes() == y.name_bytes() && pando_bson::compare::values_equal(x.value(), y.value())
    };
    a.count() == b.count() && a.iter().zip(b.iter()).all(equal)
}
