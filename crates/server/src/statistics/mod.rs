//! Figures that requests leave behind: time per collection, how often plans and indexes were used, transactions, change
//! streams. Whoever carries a request out counts here; `serverStatus`, `top` and the stages that tell of collections read.

pub(crate) mod plan_use;
pub(crate) mod top;

use crate::{change_stream, transaction};
use pando_base::Namespace;
use pando_catalog::Catalog;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use top::{Kind, Top};

pub(crate) struct Statistics {
    catalog: Catalog,
    pub(crate) top: Arc<Top>,
    pub(crate) transactions: Arc<transaction::metrics::Metrics>,
    pub(crate) change_streams: Arc<change_stream::Metrics>,
    /// `mapReduce` commands since the start.
    pub(crate) map_reduces: AtomicU64,
}

impl Statistics {
    pub(crate) fn new(catalog: Catalog) -> Statistics {
        Statistics {
            catalog,
            top: Arc::default(),
            transactions: Arc::default(),
            change_streams: Arc::default(),
            map_reduces: AtomicU64::new(0),
        }
    }
    /// Counts an operation on `ns`.
    pub(crate) fn time(&self, ns: &Namespace, kind: Kind, writes: bool, took: Duration) {
        self.top.add(ns.as_str(), kind, writes, took, || self.catalog.snapshot().get(ns).is_some());
    }
}
