//! Writes of users: `insert`, `update`, `delete` and `findAndModify` come together here, above the catalog's one write path.
//!
//! [`writes`] is what they have in common (retried statements, the shape of a reply), [`inserting`] puts documents in,
//! [`find_one`] finds what a statement is about and [`statements`] carries it out.

pub(crate) mod find_one;
pub(crate) mod inserting;
mod point_query;
pub(crate) mod statements;
pub(crate) mod writes;

use crate::read::Reads;
use crate::timeseries::OpenBuckets;
use crate::upkeep::admission::WriteAdmission;
use pando_access::transaction::metrics::Metrics as TransactionMetrics;
use pando_session::retryable::Retryable;
use std::sync::Arc;

/// What writes are carried out with.
pub(crate) struct Writes {
    /// What is written is found first.
    pub(crate) reads: Arc<Reads>,
    pub(crate) admission: Arc<WriteAdmission>,
    /// What sessions have carried out.
    pub(crate) retryable: Arc<Retryable>,
    pub(crate) transactions: Arc<TransactionMetrics>,
    /// Of time series: where the next measurements go.
    pub(crate) open_buckets: Arc<OpenBuckets>,
}
