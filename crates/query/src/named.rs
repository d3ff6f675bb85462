//! How often requests have named each stage and operator (`metrics.aggStageCounters`, `metrics.operatorCounters`).
//!
//! Counted by the parsers, once for each time a name stands in a request; how many documents it then looks at makes no
//! difference. Nobody counts where no server asks for it ([`QueryCtx::named`](crate::QueryCtx) is `None`): in validators and
//! index filters, which are parsed at every start, and what a view's definition says.

use pando_metrics::{Collector, Counter, Source};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The names of one table, sorted.
#[derive(Debug)]
struct Names {
    rows: Vec<(&'static str, Counter)>,
    help: &'static str,
}

impl Names {
    fn new(help: &'static str, names: impl IntoIterator<Item = &'static str>) -> Names {
        let mut rows: Vec<_> = names.into_iter().map(|name| (name, Counter::default())).collect();
        rows.sort_by_key(|(name, _)| *name);
        rows.dedup_by_key(|(name, _)| *name);
        Names { rows, help }
    }
    fn count(&self, name: &str) {
        if let Ok(at) = self.rows.binary_search_by(|(n, _)| (*n).cmp(name)) {
            self.rows[at].1.inc();
        }
    }
    fn collect(&self, label: &'static str, to: &mut Collector<'_>) {
        for (name, count) in &self.rows {
            to.labelled_counter(label, name, count.get(), "times", self.help);
        }
    }
}

/// The names that there are.
pub(crate) struct Tables {
    pub(crate) stages: Vec<&'static str>,
    pub(crate) filters: Vec<&'static str>,
    pub(crate) expressions: Vec<&'static str>,
    pub(crate) accumulators: Vec<&'static str>,
    pub(crate) window_functions: Vec<&'static str>,
}

/// One for a server; parsers are given it with their [`QueryCtx`](crate::QueryCtx). It is made of the parsers' tables
/// ([`vocabulary::named`](crate::vocabulary::named)).
#[derive(Debug)]
pub struct Named {
    stages: Names,
    filters: Names,
    expressions: Names,
    accumulators: Names,
    window_functions: Names,
}

/// Other spellings of a filter's operators, and what has no count of its own.
fn filter_name(name: &str) -> &str {
    match name {
        "$within" => "$geoWithin",
        "$geoNear" => "$near",
        _ => name,
    }
}

impl Named {
    pub(crate) fn new(tables: Tables) -> Named {
        let filters = tables.filters.into_iter().filter(|n| filter_name(n) == *n && *n != "$options");
        Named {
            stages: Names::new("Stages that pipelines have named", tables.stages),
            filters: Names::new("Operators that filters have named", filters),
            expressions: Names::new("Operators that expressions have named", tables.expressions),
            accumulators: Names::new("Accumulators that groups have named", tables.accumulators),
            window_functions: Names::new("Functions that windows have named", tables.window_functions),
        }
    }
    pub(crate) fn stage(&self, name: &str) {
        self.stages.count(name);
    }
    pub(crate) fn filter(&self, name: &str) {
        self.filters.count(filter_name(name));
    }
    pub(crate) fn expression(&self, name: &str) {
        self.expressions.count(name);
    }
    pub(crate) fn accumulator(&self, name: &str) {
        self.accumulators.count(name);
    }
    pub(crate) fn window_function(&self, name: &str) {
        self.window_functions.count(name);
    }
}

/// `serverStatus.metrics`.
impl Source for Named {
    fn collect(&self, to: &mut Collector<'_>) {
        to.within("aggStageCounters", |to| self.stages.collect("stage", to));
        to.within("operatorCounters.expressions", |to| self.expressions.collect("operator", to));
        to.within("operatorCounters.groupAccumulators", |to| self.accumulators.collect("operator", to));
        to.within("operatorCounters.match", |to| self.filters.collect("operator", to));
        to.within("operatorCounters.windowAccumulators", |to| self.window_functions.collect("operator", to));
    }
}

/// The counts of a server while one request is parsed. Stages are parsed again when they are optimized, taken apart and run.
#[derive(Debug)]
pub struct Counting {
    named: Arc<Named>,
    over: AtomicBool,
}

impl Counting {
    pub fn new(named: Arc<Named>) -> Counting {
        Counting { named, over: AtomicBool::new(false) }
    }
    pub(crate) fn now(&self) -> Option<&Named> {
        (!self.over.load(Relaxed)).then_some(&*self.named)
    }
    pub(crate) fn end(&self) {
        self.over.store(true, Relaxed);
    }
}
