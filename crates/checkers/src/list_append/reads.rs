//! What a single read shows to be wrong, without looking at cycles.

// Histories of clients may hold any key; nothing is read in the order of a map.
#![allow(clippy::disallowed_types)]

use super::{Anomaly, Problem, named};
use crate::history::{History, Op, Outcome, Txn};
use std::collections::{BTreeMap, BTreeSet, HashMap};

pub(super) fn check(history: &History) -> Vec<Problem> {
    let mut problems = Vec::new();
    lists(history, &mut problems);
    let writers = writers(&history.txns);
    for (n, txn) in committed(&history.txns) {
        let mut report = |anomaly, text: String| {
            problems.push(Problem { anomaly, text: format!("{}: {text}", named(n, txn)) });
        };
        for (list, elements) in reads(txn) {
            let there = history.end.get(&list).map_or(&[][..], Vec::as_slice);
            if !there.starts_with(elements) {
                report(Anomaly::Undone, format!("list {list} showed {elements:?}; it is {there:?}"));
            }
            for e in elements {
                match writers.get(&(list, *e)).map(|w| history.txns[w.txn].outcome) {
                    None => {
                        report(Anomaly::AbortedRead, format!("list {list} showed {e}, which nobody wrote"))
                    }
                    Some(Outcome::Aborted) => {
                        report(Anomaly::AbortedRead, format!("list {list} showed {e}, which was given up"));
                    }
                    Some(_) => {}
                }
            }
            let last = elements.last().and_then(|e| writers.get(&(list, *e)));
            if let Some(w) = last.filter(|w| w.txn != n && !w.last) {
                let other = named(w.txn, &history.txns[w.txn]);
                report(
                    Anomaly::IntermediateRead,
                    format!("list {list} showed {elements:?}, {other} half done"),
                );
            }
        }
        if let Some(text) = internal(txn) {
            report(Anomaly::Internal, text);
        }
    }
    problems
}

/// Who appended an element.
#[derive(Clone, Copy)]
pub(super) struct Writer {
    pub(super) txn: usize,
    /// Nothing later of this transaction on this list.
    last: bool,
}

pub(super) fn writers(txns: &[Txn]) -> HashMap<(u64, u64), Writer> {
    let mut all = HashMap::new();
    for (n, txn) in txns.iter().enumerate() {
        let mut newest = BTreeMap::new();
        for op in &txn.ops {
            if let Op::Append { list, element } = *op {
                all.insert((list, element), Writer { txn: n, last: true });
                if let Some(before) = newest.insert(list, element).and_then(|e| all.get_mut(&(list, e))) {
                    before.last = false;
                }
            }
        }
    }
    all
}

pub(super) fn committed(txns: &[Txn]) -> impl Iterator<Item = (usize, &Txn)> {
    txns.iter().enumerate().filter(|(_, t)| t.outcome == Outcome::Committed)
}

pub(super) fn reads(txn: &Txn) -> impl Iterator<Item = (u64, &[u64])> {
    txn.ops.iter().filter_map(|op| match op {
        Op::Read { list, elements } => Some((*list, elements.as_slice())),
        Op::Append { .. } => None,
    })
}

fn lists(history: &History, problems: &mut Vec<Problem>) {
    let mut owed: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for (_, txn) in committed(&history.txns) {
        for op in &txn.ops {
            if let Op::Append { list, element } = *op {
                owed.entry(list).or_default().insert(element);
            }
        }
    }
    for (list, there) in &history.end {
        let unique: BTreeSet<u64> = there.iter().copied().collect();
        if unique.len() != there.len() {
            let text = format!("list {list} holds an element twice: {there:?}");
            problems.push(Problem { anomaly: Anomaly::Duplicate, text });
        }
    }
    for (list, owed) in owed {
        let there: BTreeSet<u64> = history.end.get(&list).into_iter().flatten().copied().collect();
        let lost: Vec<u64> = owed.difference(&there).copied().collect();
        if !lost.is_empty() {
            problems.push(Problem { anomaly: Anomaly::Lost, text: format!("list {list} lacks {lost:?}") });
        }
    }
}

/// What a transaction saw is what it saw before and what it appended since.
fn internal(txn: &Txn) -> Option<String> {
    let mut known: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut own: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for op in &txn.ops {
        match op {
            Op::Append { list, element } => {
                own.entry(*list).or_default().push(*element);
                if let Some(known) = known.get_mut(list) {
                    known.push(*element);
                }
            }
            Op::Read { list, elements } => {
                let wrong = match known.get(list) {
                    Some(known) => known != elements,
                    None => !elements.ends_with(own.get(list).map_or(&[][..], Vec::as_slice)),
                };
                if wrong {
                    return Some(format!("list {list} showed {elements:?} in {:?}", txn.ops));
                }
                known.insert(*list, elements.clone());
            }
        }
    }
    None
}
