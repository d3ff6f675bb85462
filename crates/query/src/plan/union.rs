//! Plans for disjunctions: a scan per branch.

use super::access::{Access, accesses};
use super::candidates::{BRANCH_STEPS, Planner, Rows, Solution};
use super::eligible::same_collation;
use super::interval::IntervalList;
use super::node::{PlanNode, SortKeySource};
use super::order::{key_sort, order_of, score};
use super::predicates::{collect, conjuncts};
use crate::collation::Collation;
use crate::matcher::{Matcher, Node};
use crate::sort::SortPattern;
use crate::source::Direction;
use pando_base::{limits, patience};
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

impl Rows {
    /// Answers the other's branch as well.
    fn take_in(&mut self, other: &Rows, either: impl FnOnce(Vec<Node>) -> Option<Arc<Matcher>>) {
        self.filter = match (&self.filter, &other.filter) {
            (Some(a), Some(b)) => either(vec![a.root().clone(), b.root().clone()]),
            _ => None,
        };
        self.signature = format!("{} = {}", self.signature, other.signature);
    }
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
        let (mut out, mut held): (Vec<Rows>, Option<Rows>) = (Vec::new(), None);
        for s in scans {
            if s.lone.is_none() {
                match out.iter_mut().find(|o| o.lone.is_none() && same_entries(o, &s)) {
                    Some(same) => same.take_in(&s, |f| self.checks(f)),
                    None => out.push(s),
                }
                continue;
            }
            held = Some(match held {
                Some(mut before) if self.joins(&before, &s) => {
                    self.join(&mut before, &s);
                    before
                }
                before => {
                    out.extend(before);
                    s
                }
            });
        }
        if let Some(s) = held {
            match out.iter_mut().find(|o| same_entries(o, &s)) {
                Some(same) => same.take_in(&s, |f| self.checks(f)),
                None => out.push(s),
            }
        }
        out
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

    fn join(&self, a: &mut Rows, b: &Rows) {
        let (Some(x), Some(y)) = (&mut a.access, &b.access) else { return };
        let order = Collation::order(&self.info.indexes[x.index].collation);
        let mut all = std::mem::take(&mut x.fields[0].intervals.0);
        all.extend(y.fields[0].intervals.0.iter().cloned());
        x.fields[0].intervals = IntervalList(all).normalize(order);
        let mut either = match a.lone.take() {
            Some(Node::Or(list)) => list,
            one => one.into_iter().collect(),
        };
        either.extend(b.lone.clone());
        if a.filter.is_some() || b.filter.is_some() {
            a.filter = self.checks(either.clone());
        }
        a.lone = Some(Node::Or(either));
        a.signature = format!("{} + {}", a.signature, b.signature);
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
            .filter(|_| same_collation(&self.index(&access).collation, &self.q.ctx.collation))
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
