//! Who depends on whom.

// Histories of clients may hold any key; nothing is read in the order of a map.
#![allow(clippy::disallowed_types)]

use super::reads::{committed, reads, writers};
use crate::history::{History, Outcome};
use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    Ww,
    Wr,
    Rw,
    So,
}

/// Edges by transaction, by their place in the history.
pub struct Graph {
    pub edges: Vec<Vec<(usize, Kind)>>,
}

impl Graph {
    pub fn of(history: &History) -> Graph {
        let mut graph = Graph { edges: vec![Vec::new(); history.txns.len()] };
        graph.orders(history);
        graph.reads(history);
        graph.sessions(history);
        graph.edges.iter_mut().for_each(|e| {
            e.sort_unstable();
            e.dedup();
        });
        graph
    }

    fn add(&mut self, from: usize, to: usize, kind: Kind) {
        if from != to {
            self.edges[from].push((to, kind));
        }
    }
    fn orders(&mut self, history: &History) {
        let writers = writers(&history.txns);
        for (list, there) in &history.end {
            let of = |e: &u64| writers.get(&(*list, *e)).map(|w| w.txn);
            for pair in there.windows(2) {
                if let (Some(a), Some(b)) = (of(&pair[0]), of(&pair[1])) {
                    self.add(a, b, Kind::Ww);
                }
            }
        }
    }
    fn reads(&mut self, history: &History) {
        let writers: HashMap<(u64, u64), usize> =
            writers(&history.txns).into_iter().map(|(at, w)| (at, w.txn)).collect();
        for (n, txn) in committed(&history.txns) {
            for (list, elements) in reads(txn) {
                // What others had written.
                let own = elements.iter().rev().take_while(|e| writers.get(&(list, **e)) == Some(&n)).count();
                let others = elements.len() - own;
                let of = |e: &u64| writers.get(&(list, *e)).copied();
                if let Some(w) = elements[..others].last().and_then(of) {
                    self.add(w, n, Kind::Wr);
                }
                let there = history.end.get(&list).map_or(&[][..], Vec::as_slice);
                if let Some(w) = there.get(others).and_then(of) {
                    self.add(n, w, Kind::Rw);
                }
            }
        }
    }
    fn sessions(&mut self, history: &History) {
        let mut newest = BTreeMap::new();
        for (n, txn) in history.txns.iter().enumerate().filter(|(_, t)| t.outcome == Outcome::Committed) {
            if let Some(before) = newest.insert(txn.session, n) {
                self.add(before, n, Kind::So);
            }
        }
    }
}
