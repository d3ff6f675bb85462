//! Time spent per collection (`top`).

use pando_base::limits;
use pando_bson::DocBuilder;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What an operation did, for the column it is counted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Query,
    GetMore,
    Insert,
    Update,
    Remove,
    Command,
}

/// The columns of one collection, in the order `top` prints them.
pub(crate) const COLUMNS: [&str; 9] =
    ["total", "readLock", "writeLock", "queries", "getmore", "insert", "update", "remove", "commands"];

#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Usage {
    pub(crate) micros: u64,
    pub(crate) count: u64,
}

/// Counters of all collections. Sharded by nothing: one short lock per operation.
#[derive(Default)]
pub(crate) struct Top(Mutex<BTreeMap<String, [Usage; 9]>>);

impl Top {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, [Usage; 9]>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// `is_there` tells whether the name stands for anything: it is asked where there is no row yet.
    pub(crate) fn add(
        &self,
        ns: &str,
        kind: Kind,
        writes: bool,
        took: Duration,
        is_there: impl FnOnce() -> bool,
    ) {
        let column = match kind {
            Kind::Query => 3,
            Kind::GetMore => 4,
            Kind::Insert => 5,
            Kind::Update => 6,
            Kind::Remove => 7,
            Kind::Command => 8,
        };
        let micros = took.as_micros() as u64;
        let mut all = self.lock();
        if !all.contains_key(ns) {
            if all.len() >= limits::TOP_NAMESPACES_MAX || !is_there() {
                return;
            }
            all.insert(ns.to_owned(), Default::default());
        }
        if let Some(row) = all.get_mut(ns) {
            for i in [0, if writes { 2 } else { 1 }, column] {
                row[i].micros += micros;
                row[i].count += 1;
            }
        }
    }
    /// A dropped or renamed collection starts anew.
    pub(crate) fn forget(&self, ns: &str) {
        self.lock().remove(ns);
    }
    /// `latencyStats` of `$collStats`.
    pub(crate) fn append_latencies(&self, ns: &str, d: &mut DocBuilder) {
        let row = self.lock().get(ns).copied().unwrap_or_default();
        let sum = |columns: &[usize]| {
            columns.iter().fold(Usage::default(), |a, i| Usage {
                micros: a.micros + row[*i].micros,
                count: a.count + row[*i].count,
            })
        };
        for (name, usage) in [
            ("reads", sum(&[3, 4])),
            ("writes", sum(&[5, 6, 7])),
            ("commands", sum(&[8])),
            // As on MongoDB: a transaction is not one collection's.
            ("transactions", Usage::default()),
        ] {
            d.doc(name, |x| {
                x.i64("latency", usage.micros as i64).i64("ops", usage.count as i64);
            });
        }
    }
    pub(crate) fn all(&self) -> Vec<(String, [Usage; 9])> {
        self.lock().iter().map(|(ns, row)| (ns.clone(), *row)).collect()
    }
}
