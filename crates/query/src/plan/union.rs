//! Plans for disjunctions: a scan per branch.

use super::access::{Access, accesses};
use super::candidates::{BRANCH_STEPS, Planner, Rows, Solution};
use super::interval::IntervalList;
use super::node::{PlanNode, SortKeySource};
use super::order::{key_sort, order_of, score};
use super::predicates::{collect, conjuncts};
use crate::collation::Collation;
use crate::matcher::{Matcher, Node};
use crate::sort::SortPattern;
use crate::source::Direction;
use pando_base::{HashMap, limits, patience};
use std::sync::Arc;

/// Both read the same part of the same index.
fn same_entries(a: &Rows, b: &Rows) -> bool {
    let (Some(x), Some(y)) = (&a.access, &b.access) else { return false };
    let bounds = x.fields.iter().map(|f| &f.intervals).eq(y.fields.iter().map(|f| &f.intervals));
    x.index == y.index
        && x.wild_path == y.wild_path
        && x.key_filter.is_empty()
        && y.key_filter.is_empty()
        && a.dir == b.dir
        && bounds
}

/// The part of an index that is read: equal for scans of the same entries.
fn entries_of(rows: &Rows) -> Option<String> {
    let access = rows.access.as_ref().filter(|a| a.key_filter.is_empty())?;
    let bounds: Vec<&IntervalList> = access.fields.iter().map(|f| &f.intervals).collect();
    Some(format!("{} {:?} {:?} {bounds:?}", access.index, access.wild_path, rows.dir))
}

/// Scans of the same entries as one that answers all their branches.
fn read_once(mut same: Vec<Rows>, either: impl FnOnce(Vec<Node>) -> Option<Arc<Matcher>>) -> Option<Rows> {
    if same.len() < 2 {
        return same.pop();
    }
    let filters: Option<Vec<Node>> = same.iter().map(|s| Some(s.filter.as_ref()?.root().clone())).collect();
    let signature = same.iter().map(|s| s.signature.as_str()).collect::<Vec<_>>().join(" = ");
    let first = same.swap_remove(0);
    Some(Rows { filter: filters.and_then(either), signature, ..first })
}

impl Planner<'_> {
    /// A scan per branch of a disjunction, which is conjunct `at`; `None` if some branch has no index.
    pub(super) fn union(&self, branches: &[Node], at: usize, hinted: Option<usize>) -> Option<Rows> {
        let ways = self.ways(branches, at, hinted)?;
        self.union_of(ways.into_iter().filter_map(|w| w.into_iter().next()).collect(), at)
    }

    /// The plans for a filter that is nothing but a disjunction: the best guess, the same with another way for one of
    /// the branches, and what is in the wanted order already.
    pub(super) fn unions(&self, branches: &[Node], usable: &[usize], hinted: Option<usize>) -> Vec<Solution> {
        let Some(ways) = self.ways(branches, 0, hinted) else { return Vec::new() };
        let with = |other: Option<(usize, usize)>| {
            let chosen = |b: usize| other.filter(|(branch, _)| *branch == b).map_or(0, |(_, way)| way);
            let scans = ways.iter().enumerate().filter_map(|(b, w)| w.get(chosen(b)).cloned()).collect();
            self.union_of(scans, 0)
        };
        let Some(best) = with(None) else { return Vec::new() };
        let sorted = best.sorted;
        let mut out = vec![self.finish(best)];
        let others = ways.iter().enumerate().flat_map(|(b, w)| (1..w.len()).map(move |i| (b, i)));
        for other in others {
            if out.len() >= limits::UNION_PLANS_MAX || patience::is_over(BRANCH_STEPS * branches.len()) {
                break;
            }
            out.extend(with(Some(other)).map(|rows| self.finish(rows)));
        }
        if !sorted {
            out.extend(usable.iter().filter_map(|i| self.in_order(*i)));
        }
        out
    }

    /// The ways to answer each branch, the best guess first; `None` if some branch has none.
    fn ways(&self, branches: &[Node], at: usize, hinted: Option<usize>) -> Option<Vec<Vec<Rows>>> {
        let mut all = Vec::new();
        for branch in branches {
            if patience::is_over(BRANCH_STEPS + self.conj.len()) {
                return None;
            }
            all.push(Some(self.branch(branch, at, hinted)).filter(|ways| !ways.is_empty())?);
        }
        Some(all)
    }

    fn union_of(&self, scans: Vec<Rows>, at: usize) -> Option<Rows> {
        let scans = self.in_turn(scans);
        if let [Rows { access: Some(only), filter: Some(_), .. }] = &scans[..] {
            let nothing = vec![false; self.conj.len()];
            return Some(self.index_rows(Access { done: nothing.clone(), used: nothing, ..only.clone() }));
        }
        if let Some(mut one) = self.single_scan(&scans) {
            one.done = (0..self.conj.len()).map(|i| i == at).collect();
            one.used.clone_from(&one.done);
            let rows = self.index_rows(one);
            let merges = self.q.sort.as_ref().is_some_and(|s| self.merged(&scans, s).is_some());
            if rows.sorted || !merges {
                return Some(rows);
            }
        }
        let others: Vec<Node> =
            self.conj.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, n)| n.clone()).collect();
        let filter = self.matcher_of(others);
        let signature =
            format!("OR {}", scans.iter().map(|s| s.signature.as_str()).collect::<Vec<_>>().join(" | "));
        let sorted = self.q.sort.as_ref().and_then(|s| self.merged(&scans, s));
        let fetched = |s: &Rows, keep_key: bool| {
            let node = match &s.access {
                // Not merged, the direction does not matter.
                Some(a) => self.scan_node(a, if keep_key { s.dir } else { Direction::Forward }, keep_key),
                None => s.node.clone(),
            };
            match &s.filter {
                Some(f) => node.fetch(Some(f.clone())),
                None => node,
            }
        };
        let node = match (&sorted, &self.q.sort) {
            (Some(keys), Some(sort)) => PlanNode::SortMerge {
                inputs: scans.iter().map(|s| fetched(s, true)).collect(),
                pattern: sort.clone(),
                keys: keys.clone(),
                dedup: true,
            },
            _ => PlanNode::Or { inputs: scans.iter().map(|s| fetched(s, false)).collect() },
        };
        Some(Rows {
            node,
            filter,
            sorted: self.q.sort.is_none() || sorted.is_some(),
            access: None,
            dir: Direction::Forward,
            signature,
            lone: None,
        })
    }

    /// In the order of the indexes, but lone conditions behind those that follow them; what reads the same entries
    /// reads them once.
    fn in_turn(&self, mut scans: Vec<Rows>) -> Vec<Rows> {
        scans.sort_by_key(|s| s.access.as_ref().map_or(usize::MAX, |a| a.index));
        let mut out: Vec<Vec<Rows>> = Vec::new();
        let mut read: HashMap<String, usize> = HashMap::default();
        let mut held: Vec<Rows> = Vec::new();
        for s in scans {
            if s.lone.is_some() {
                if held.first().is_some_and(|first| !self.joins(first, &s)) {
                    out.push(self.join(std::mem::take(&mut held)).into_iter().collect());
                }
                held.push(s);
                continue;
            }
            match entries_of(&s).map(|e| *read.entry(e).or_insert(out.len())) {
                Some(at) if at < out.len() => out[at].push(s),
                _ => out.push(vec![s]),
            }
        }
        if let Some(s) = self.join(held) {
            match out.iter_mut().find(|o| o.first().is_some_and(|o| same_entries(o, &s))) {
                Some(same) => same.push(s),
                None => out.push(vec![s]),
            }
        }
        out.into_iter().filter_map(|same| read_once(same, |f| self.checks(f))).collect()
    }

    fn checks(&self, either: Vec<Node>) -> Option<Arc<Matcher>> {
        let any = vec![Node::Or(either)];
        Some(Arc::new(Matcher::of_parts(any, self.q.ctx.collation.clone())))
    }

    /// Lone conditions on the first field of one index.
    fn joins(&self, a: &Rows, b: &Rows) -> bool {
        let (Some(x), Some(y)) = (&a.access, &b.access) else { return false };
        let first_only = |a: &Access| {
            a.key_filter.is_empty() && a.fields.iter().skip(1).all(|f| f.intervals.is_everything())
        };
        x.index == y.index
            && x.wild_path.is_none()
            && y.wild_path.is_none()
            && first_only(x)
            && first_only(y)
            && self.q.sort.is_none()
    }

    /// One scan for all of them.
    fn join(&self, mut all: Vec<Rows>) -> Option<Rows> {
        if all.len() < 2 {
            return all.pop();
        }
        let index = all.first()?.access.as_ref()?.index;
        let order = Collation::order(&self.info.indexes[index].collation);
        let signature = all.iter().map(|s| s.signature.as_str()).collect::<Vec<_>>().join(" + ");
        let filtered = all.iter().any(|s| s.filter.is_some());
        let (mut bounds, mut either) = (Vec::new(), Vec::new());
        for s in &mut all {
            if let Some(a) = &mut s.access {
                bounds.append(&mut a.fields[0].intervals.0);
            }
            match s.lone.take() {
                Some(Node::Or(list)) if either.is_empty() => either = list,
                one => either.extend(one),
            }
        }
        let mut one = all.swap_remove(0);
        one.access.as_mut()?.fields[0].intervals = IntervalList(bounds).normalize(order);
        if filtered {
            one.filter = self.checks(either.clone());
        }
        Some(Rows { lone: Some(Node::Or(either)), signature, ..one })
    }

    /// Branches on the first field of one index, nothing left to check: one scan over the union of the bounds.
    fn single_scan(&self, scans: &[Rows]) -> Option<Access> {
        let first = scans.first()?.access.as_ref()?;
        let order = Collation::order(&self.index(first).collation);
        let mut union = Vec::new();
        for s in scans {
            let a = s.access.as_ref()?;
            let same = a.index == first.index
                && a.wild_path == first.wild_path
                && a.wild_path.is_none()
                && a.key_filter.is_empty()
                && s.filter.is_none()
                && a.fields.iter().skip(1).all(|f| f.intervals.is_everything());
            if !same {
                return None;
            }
            union.extend(a.fields[0].intervals.0.iter().cloned());
        }
        let mut all = first.clone();
        all.fields[0].intervals = IntervalList(union).normalize(order);
        Some(all)
    }

    /// The single-index ways to answer one branch, the best guess first. Beside other conjuncts just that one, with
    /// their help where it bounds more.
    fn branch(&self, branch: &Node, at: usize, hinted: Option<usize>) -> Vec<Rows> {
        let own = conjuncts(branch);
        if let Some(rows) = self.text_rows(own) {
            return vec![rows];
        }
        let others = self.conj.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, n)| n.clone());
        let mut context: Vec<Node> = own.to_vec();
        context.extend(others);
        let root = Node::And(context.clone());
        let usable = self.usable(hinted, &root);
        let ways = |conj: &[Node]| {
            let predicates = collect(conj);
            let wanted = self.wanted(&predicates, conj.len());
            let all = usable.iter().flat_map(|i| accesses(*i, &self.info.indexes[*i], &wanted));
            // The branch's own conditions come first.
            let mut all: Vec<Access> = all.filter(|a| a.used.iter().take(own.len()).any(|u| *u)).collect();
            all.sort_by_key(|a| (std::cmp::Reverse(score(a)), a.index));
            all
        };
        let mut found = ways(own);
        if own.len() < context.len() {
            found.truncate(1);
            if let Some(wider) = ways(&context).into_iter().next()
                && found.first().is_none_or(|a| score(&wider) > score(a))
            {
                found = vec![wider];
            }
        }
        found.into_iter().map(|access| self.branch_rows(own, access)).collect()
    }

    fn branch_rows(&self, own: &[Node], access: Access) -> Rows {
        let sort = self.q.sort.as_ref();
        let order = sort
            .filter(|_| Collation::same(&self.index(&access).collation, &self.q.ctx.collation))
            .and_then(|s| order_of(&access, s));
        let dir = order.unwrap_or(Direction::Forward);
        Rows {
            node: self.scan_node(&access, dir, false),
            filter: self.left_of(own, &access),
            sorted: order.is_some(),
            dir,
            signature: self.signature(&access, dir),
            access: Some(access),
            lone: match own {
                [one] if !matches!(one, Node::ElemMatchObject(_)) => Some(one.clone()),
                _ => None,
            },
        }
    }

    /// Key sources, when every branch comes in the wanted order.
    fn merged(&self, scans: &[Rows], sort: &SortPattern) -> Option<Vec<SortKeySource>> {
        scans.iter().map(|s| if s.sorted { key_sort(s.access.as_ref()?, sort) } else { None }).collect()
    }
}
