//! Cycles of dependencies, from the worst kind to the mildest; one of the shortest for each knot.

use super::graph::{Graph, Kind};
use super::{Anomaly, Problem, named};
use crate::history::Txn;
use std::collections::{BTreeMap, VecDeque};

type Edge = (usize, Kind, usize);

pub fn find(graph: &Graph, txns: &[Txn]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for knot in knots(graph) {
        if let Some((anomaly, cycle)) = worst(graph, &knot) {
            let mut text = String::new();
            for (from, kind, _) in &cycle {
                text += &format!("{} -{}-> ", named(*from, &txns[*from]), format!("{kind:?}").to_lowercase());
            }
            text += &named(cycle[0].0, &txns[cycle[0].0]);
            problems.push(Problem { anomaly, text });
        }
    }
    problems
}

fn worst(graph: &Graph, knot: &[usize]) -> Option<(Anomaly, Vec<Edge>)> {
    let inside: Vec<bool> = {
        let mut inside = vec![false; graph.edges.len()];
        knot.iter().for_each(|n| inside[*n] = true);
        inside
    };
    let edges = |n: usize| graph.edges[n].iter().filter(|(to, _)| inside[*to]).copied();
    let starts = |kind: Kind| {
        knot.iter()
            .flat_map(move |from| edges(*from).filter(move |(_, k)| *k == kind).map(|(to, k)| (*from, k, to)))
    };
    let kinds = [
        (Anomaly::G0, Kind::Ww, Rest::Written),
        (Anomaly::G1c, Kind::Wr, Rest::NoRw),
        (Anomaly::GSingle, Kind::Rw, Rest::NoRw),
        (Anomaly::GNonadjacent, Kind::Rw, Rest::Apart),
        (Anomaly::G2, Kind::Rw, Rest::Any),
    ];
    kinds.into_iter().find_map(|(anomaly, kind, rest)| {
        starts(kind).find_map(|start| Some((anomaly, back(edges, start, rest)?)))
    })
}

/// What a cycle may be made of besides the edge it begins with.
#[derive(Clone, Copy)]
enum Rest {
    Written,
    NoRw,
    /// No rw next to another one, nor to the first edge.
    Apart,
    Any,
}

impl Rest {
    fn allows(self, after_rw: bool, kind: Kind, closes: bool) -> bool {
        match self {
            Rest::Written => matches!(kind, Kind::Ww | Kind::So),
            Rest::NoRw => kind != Kind::Rw,
            Rest::Apart => kind != Kind::Rw || (!after_rw && !closes),
            Rest::Any => true,
        }
    }
}

/// From the end of an edge back to its beginning.
fn back<I: Iterator<Item = (usize, Kind)>>(
    edges: impl Fn(usize) -> I,
    start: Edge,
    rest: Rest,
) -> Option<Vec<Edge>> {
    // Where the way came from, by place and whether an rw led there.
    let mut from: BTreeMap<(usize, bool), Option<(usize, bool, Kind)>> = BTreeMap::new();
    let first = (start.2, start.1 == Kind::Rw);
    from.insert(first, None);
    let mut open = VecDeque::from([first]);
    while let Some((at, by_rw)) = open.pop_front() {
        for (to, kind) in edges(at).filter(|(to, k)| rest.allows(by_rw, *k, *to == start.0)) {
            if to == start.0 {
                let mut cycle = vec![(at, kind, to)];
                let mut here = (at, by_rw);
                while let Some((n, rw, k)) = from[&here] {
                    cycle.push((n, k, here.0));
                    here = (n, rw);
                }
                cycle.push(start);
                cycle.reverse();
                return Some(cycle);
            }
            let next = (to, kind == Kind::Rw);
            from.entry(next).or_insert_with(|| {
                open.push_back(next);
                Some((at, by_rw, kind))
            });
        }
    }
    None
}

/// Strongly connected sets of more than one transaction (Tarjan, without recursion).
fn knots(graph: &Graph) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let n = graph.edges.len();
    let (mut index, mut low, mut on) = (vec![NEW; n], vec![0; n], vec![false; n]);
    let (mut stack, mut found, mut next) = (Vec::new(), Vec::new(), 0);
    for root in 0..n {
        if index[root] != NEW {
            continue;
        }
        let mut calls = vec![(root, 0)];
        while let Some((at, edge)) = calls.pop() {
            if edge == 0 {
                (index[at], low[at], on[at]) = (next, next, true);
                next += 1;
                stack.push(at);
            }
            let after = graph.edges[at].iter().enumerate().skip(edge);
            let deeper = after.map(|(i, (to, _))| (i, *to)).find(|(_, to)| {
                if index[*to] == NEW {
                    return true;
                }
                if on[*to] {
                    low[at] = low[at].min(index[*to]);
                }
                false
            });
            if let Some((i, to)) = deeper {
                calls.push((at, i + 1));
                calls.push((to, 0));
                continue;
            }
            if low[at] == index[at] {
                let start = stack.iter().rposition(|s| *s == at).unwrap_or(0);
                let knot = stack.split_off(start);
                knot.iter().for_each(|s| on[*s] = false);
                if knot.len() > 1 {
                    found.push(knot);
                }
            }
            if let Some((parent, _)) = calls.last() {
                low[*parent] = low[*parent].min(low[at]);
            }
        }
    }
    found
}
