//! Figures that requests leave behind: time per collection, how often plans and indexes were used, transactions, change
//! streams. Whoever carries a request out counts here; `serverStatus`, `top` and the stages that tell of collections read.

pub(crate) mod catalog_counts;
pub(crate) mod operations;
pub(crate) mod plan_use;
pub(crate) mod sizes;
pub(crate) mod top;

use crate::change_stream::metrics::Metrics as ChangeStreamMetrics;
use operations::Operations;
use pando_access::Access;
use pando_access::transaction::metrics::Metrics as TransactionMetrics;
use pando_base::Namespace;
use pando_query::named::Named;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use top::{Kind, Top};

pub(crate) struct Statistics {
    access: Access,
    pub(crate) top: Arc<Top>,
    pub(crate) transactions: Arc<TransactionMetrics>,
    pub(crate) change_streams: Arc<ChangeStreamMetrics>,
    pub(crate) operations: Arc<Operations>,
    pub(crate) named: Arc<Named>,
    /// `mapReduce` commands since the start.
    pub(crate) map_reduces: AtomicU64,
}

impl Statistics {
    pub(crate) fn new(access: Access, operations: Operations) -> Statistics {
        Statistics {
            access,
            top: Arc::default(),
            transactions: Arc::default(),
            change_streams: Arc::default(),
            operations: Arc::new(operations),
            named: Arc::new(pando_query::vocabulary::named()),
            map_reduces: AtomicU64::new(0),
        }
    }
    /// Counts an operation on `ns`.
    pub(crate) fn time(&self, ns: &Namespace, kind: Kind, writes: bool, took: Duration) {
        self.top.add(ns.as_str(), kind, writes, took, || self.access.definitions().named(ns).is_some());
    }
}
